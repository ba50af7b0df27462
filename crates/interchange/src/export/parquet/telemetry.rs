//! One row for each look: a scrape of the server's metrics, those that brought nothing among them, each
//! GPU of a look at them, and the client's machine. `about` says which; the columns of the others are
//! null.

use std::time::Duration;

use inferometer_model::telemetry::{
    ClientSample, Counters, DeviceReading, DevicesSample, Gauges, MissedScrape, SumCount,
    TelemetrySample, Throttle, Timings,
};
use inferometer_model::{Moment, Observations};

use super::requests::wall_ns;
use super::table::{Cell, Column};

pub(super) struct TelemetryRow {
    result: String,
    at: Moment,
    time_ns: Option<i64>,
    told: Told,
}

enum Told {
    Scrape(TelemetrySample),
    Missed(&'static str),
    Gpu { source: &'static str, took: Duration, reading: DeviceReading },
    Client(ClientSample),
}

pub(super) fn columns() -> Vec<Column<TelemetryRow>> {
    let mut columns: Vec<Column<TelemetryRow>> = vec![
        ("result", Cell::Text(|row| Some(&row.result))),
        ("time", Cell::Time(|row| row.time_ns)),
        ("at_ns", Cell::Whole(|row| Some(row.at.as_nanos()))),
        ("about", Cell::Text(|row| Some(row.about()))),
        ("missed", Cell::Text(TelemetryRow::missed)),
        ("took_ms", Cell::Real(|row| Some(row.took()?.as_secs_f64() * 1e3))),
    ];
    columns.extend(server_columns());
    columns.extend(gpu_columns());
    columns.extend(client_columns());
    columns
}

fn server_columns() -> Vec<Column<TelemetryRow>> {
    vec![
        ("server", Cell::Text(|row| Some(row.scrape()?.dialect.title()))),
        ("process_start_s", Cell::Real(|row| row.scrape()?.process_start_s)),
        ("running_requests", Cell::Real(|row| row.gauges()?.running)),
        ("waiting_requests", Cell::Real(|row| row.gauges()?.waiting)),
        ("swapped_requests", Cell::Real(|row| row.gauges()?.swapped)),
        ("kv_usage_share", Cell::Real(|row| row.gauges()?.kv_usage)),
        ("cpu_kv_usage_share", Cell::Real(|row| row.gauges()?.cpu_kv_usage)),
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

fn gpu_columns() -> Vec<Column<TelemetryRow>> {
    vec![
        ("gpu", Cell::Whole(|row| Some(u64::from(row.gpu()?.index)))),
        ("gpu_source", Cell::Text(TelemetryRow::source)),
        ("gpu_use_share", Cell::Real(|row| row.gpu()?.use_share)),
        ("gpu_memory_used_bytes", Cell::Whole(|row| row.gpu()?.memory_used_bytes)),
        ("gpu_memory_total_bytes", Cell::Whole(|row| row.gpu()?.memory_total_bytes)),
        ("gpu_power_w", Cell::Real(|row| row.gpu()?.power_w)),
        ("gpu_energy_total_j", Cell::Real(|row| row.gpu()?.energy_j)),
        ("gpu_core_clock_mhz", Cell::Real(|row| row.gpu()?.core_clock_mhz)),
        ("gpu_memory_clock_mhz", Cell::Real(|row| row.gpu()?.memory_clock_mhz)),
        ("gpu_temperature_c", Cell::Real(|row| row.gpu()?.temperature_c)),
        ("gpu_throttled_power", Cell::Flag(|row| Some(row.throttle()?.power))),
        ("gpu_throttled_thermal", Cell::Flag(|row| Some(row.throttle()?.thermal))),
        ("gpu_throttled_hardware", Cell::Flag(|row| Some(row.throttle()?.hardware))),
        ("gpu_processes", Cell::Whole(|row| Some(row.gpu()?.processes.as_ref()?.len() as u64))),
    ]
}

fn client_columns() -> Vec<Column<TelemetryRow>> {
    vec![
        ("client_cpu_share", Cell::Real(|row| row.client()?.cpu_share)),
        ("client_steal_share", Cell::Real(|row| row.client()?.steal_share)),
        ("client_own_cpus", Cell::Real(|row| row.client()?.own_cpus)),
        ("client_received_total_bytes", Cell::Whole(|row| row.client()?.received_bytes)),
        ("client_sent_total_bytes", Cell::Whole(|row| row.client()?.sent_bytes)),
        ("client_memory_available_bytes", Cell::Whole(|row| row.client()?.memory_available_bytes)),
    ]
}

/// In the order of time; none where nothing was recorded.
pub(super) fn rows(name: &str, run: &Observations) -> Vec<TelemetryRow> {
    let row = |at: Moment, told: Told| TelemetryRow {
        result: name.to_owned(),
        at,
        time_ns: wall_ns(run, at),
        told,
    };
    let missed = |scrape: &MissedScrape| row(scrape.at, Told::Missed(scrape.reason.key()));
    let mut rows: Vec<TelemetryRow> = Vec::new();
    if let Some(recording) = run.telemetry.recording() {
        rows.extend(recording.samples.iter().map(|it| row(it.at, Told::Scrape(*it))));
        rows.extend(recording.missed.iter().map(missed));
    }
    let devices = |sample: &DevicesSample| {
        let (at, took, source) = (sample.at, sample.took, sample.source.title());
        let told = |reading: &DeviceReading| Told::Gpu { source, took, reading: reading.clone() };
        sample.devices.iter().map(|reading| row(at, told(reading))).collect::<Vec<_>>()
    };
    rows.extend(run.machines.devices.iter().flat_map(devices));
    rows.extend(run.machines.client.iter().map(|sample| row(sample.at, Told::Client(*sample))));
    rows.sort_by_key(|row| row.at);
    rows
}

impl TelemetryRow {
    const fn about(&self) -> &'static str {
        match self.told {
            Told::Scrape(_) | Told::Missed(_) => "server",
            Told::Gpu { .. } => "gpu",
            Told::Client(_) => "client",
        }
    }

    fn missed(&self) -> Option<&str> {
        if let Told::Missed(reason) = self.told { Some(reason) } else { None }
    }

    fn took(&self) -> Option<Duration> {
        match &self.told {
            Told::Scrape(sample) => Some(sample.took),
            Told::Gpu { took, .. } => Some(*took),
            Told::Missed(_) | Told::Client(_) => None,
        }
    }

    fn scrape(&self) -> Option<&TelemetrySample> {
        if let Told::Scrape(sample) = &self.told { Some(sample) } else { None }
    }

    fn gauges(&self) -> Option<Gauges> {
        Some(self.scrape()?.gauges)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.scrape()?.counters)
    }

    fn timings(&self) -> Option<Timings> {
        Some(self.scrape()?.timings)
    }

    fn gpu(&self) -> Option<&DeviceReading> {
        if let Told::Gpu { reading, .. } = &self.told { Some(reading) } else { None }
    }

    fn source(&self) -> Option<&str> {
        if let Told::Gpu { source, .. } = self.told { Some(source) } else { None }
    }

    fn throttle(&self) -> Option<Throttle> {
        self.gpu()?.throttle
    }

    fn client(&self) -> Option<&ClientSample> {
        if let Told::Client(sample) = &self.told { Some(sample) } else { None }
    }
}

fn sum(timing: Option<SumCount>) -> Option<f64> {
    Some(timing?.sum_s)
}

fn count(timing: Option<SumCount>) -> Option<f64> {
    Some(timing?.count)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::super::table::Table;
    use super::*;

    fn read(told: Vec<Told>) -> Vec<Row> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut table = Table::new(file.reopen().unwrap(), columns()).unwrap();
        for told in told {
            let at = Moment::from_nanos(5);
            table.push(TelemetryRow { result: "r".to_owned(), at, time_ns: None, told }).unwrap();
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    }

    fn cell(row: &Row, name: &str) -> Field {
        row.get_column_iter().find(|(found, _)| *found == name).unwrap().1.clone()
    }

    #[test]
    fn a_gpu_and_the_client_have_rows_of_their_own_and_nulls_besides() {
        let reading = DeviceReading {
            index: 3,
            power_w: Some(412.5),
            memory_used_bytes: Some(1 << 40),
            throttle: Some(Throttle { power: true, ..Throttle::default() }),
            processes: Some(vec![7, 8]),
            ..DeviceReading::default()
        };
        let client = ClientSample {
            at: Moment::ZERO,
            cpu_share: Some(0.5),
            steal_share: None,
            own_cpus: None,
            received_bytes: Some(9),
            sent_bytes: None,
            memory_available_bytes: None,
        };
        let gpu = Told::Gpu { source: "NVML", took: Duration::from_millis(2), reading };
        let rows = read(vec![gpu, Told::Client(client), Told::Missed("timeout")]);
        let about: Vec<Field> = rows.iter().map(|row| cell(row, "about")).collect();
        assert_eq!(about, ["gpu", "client", "server"].map(|text| Field::Str(text.to_owned())));
        assert_eq!(cell(&rows[0], "gpu"), Field::Long(3));
        assert_eq!(cell(&rows[0], "gpu_source"), Field::Str("NVML".to_owned()));
        assert_eq!(cell(&rows[0], "gpu_power_w"), Field::Double(412.5));
        assert_eq!(cell(&rows[0], "gpu_memory_used_bytes"), Field::Long(1 << 40));
        assert_eq!(cell(&rows[0], "gpu_throttled_power"), Field::Bool(true));
        assert_eq!(cell(&rows[0], "gpu_processes"), Field::Long(2));
        assert_eq!(cell(&rows[0], "took_ms"), Field::Double(2.0));
        for unknown in ["gpu_energy_total_j", "client_cpu_share", "running_requests", "missed"] {
            assert_eq!(cell(&rows[0], unknown), Field::Null, "{unknown}");
        }
        assert_eq!(cell(&rows[1], "client_cpu_share"), Field::Double(0.5));
        assert_eq!(cell(&rows[1], "gpu"), Field::Null);
        assert_eq!(cell(&rows[2], "missed"), Field::Str("timeout".to_owned()));
    }
}
