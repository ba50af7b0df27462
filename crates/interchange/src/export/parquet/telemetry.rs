//! One row for each scrape of the server's metrics, those that brought nothing among them.

use inferometer_model::telemetry::{
    Counters, Gauges, MissedScrape, SumCount, TelemetrySample, Timings,
};
use inferometer_model::{Moment, Observations};

use super::requests::wall_ns;
use super::table::{Cell, Column};

pub(super) struct TelemetryRow {
    result: String,
    at: Moment,
    time_ns: Option<i64>,
    missed: Option<&'static str>,
    sample: Option<TelemetrySample>,
}

pub(super) fn columns() -> Vec<Column<TelemetryRow>> {
    vec![
        ("result", Cell::Text(|row| Some(&row.result))),
        ("time", Cell::Time(|row| row.time_ns)),
        ("at_ns", Cell::Whole(|row| Some(row.at.as_nanos()))),
        ("missed", Cell::Text(|row| row.missed)),
        ("server", Cell::Text(|row| Some(row.sample.as_ref()?.dialect.title()))),
        ("took_ms", Cell::Real(|row| Some(row.sample?.took.as_secs_f64() * 1e3))),
        ("process_start_s", Cell::Real(|row| row.sample?.process_start_s)),
        ("running_requests", Cell::Real(|row| row.gauges()?.running)),
        ("waiting_requests", Cell::Real(|row| row.gauges()?.waiting)),
        ("swapped_requests", Cell::Real(|row| row.gauges()?.swapped)),
        ("kv_usage_share", Cell::Real(|row| row.gauges()?.kv_usage)),
        ("prefix_queries_total_tokens", Cell::Real(|row| row.counters()?.prefix_queries)),
        ("prefix_hits_total_tokens", Cell::Real(|row| row.counters()?.prefix_hits)),
        ("preemptions_total", Cell::Real(|row| row.counters()?.preemptions)),
        ("prompt_total_tokens", Cell::Real(|row| row.counters()?.prompt_tokens)),
        ("generation_total_tokens", Cell::Real(|row| row.counters()?.generation_tokens)),
        ("ttft_sum_s", Cell::Real(|row| sum(row.timings()?.ttft))),
        ("ttft_count", Cell::Real(|row| count(row.timings()?.ttft))),
        ("e2e_sum_s", Cell::Real(|row| sum(row.timings()?.e2e))),
        ("e2e_count", Cell::Real(|row| count(row.timings()?.e2e))),
        ("queue_sum_s", Cell::Real(|row| sum(row.timings()?.queue))),
        ("queue_count", Cell::Real(|row| count(row.timings()?.queue))),
    ]
}

/// In the order of time; none where nothing was recorded.
pub(super) fn rows(name: &str, run: &Observations) -> Vec<TelemetryRow> {
    let Some(recording) = run.telemetry.recording() else { return Vec::new() };
    let row = |at: Moment, missed: Option<&MissedScrape>, sample: Option<&TelemetrySample>| {
        TelemetryRow {
            result: name.to_owned(),
            at,
            time_ns: wall_ns(run, at),
            missed: missed.map(|scrape| scrape.reason.key()),
            sample: sample.copied(),
        }
    };
    let samples = recording.samples.iter().map(|sample| row(sample.at, None, Some(sample)));
    let missed = recording.missed.iter().map(|scrape| row(scrape.at, Some(scrape), None));
    let mut rows: Vec<TelemetryRow> = samples.chain(missed).collect();
    rows.sort_by_key(|row| row.at);
    rows
}

impl TelemetryRow {
    fn gauges(&self) -> Option<Gauges> {
        Some(self.sample?.gauges)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.sample?.counters)
    }

    fn timings(&self) -> Option<Timings> {
        Some(self.sample?.timings)
    }
}

fn sum(timing: Option<SumCount>) -> Option<f64> {
    Some(timing?.sum_s)
}

fn count(timing: Option<SumCount>) -> Option<f64> {
    Some(timing?.count)
}
