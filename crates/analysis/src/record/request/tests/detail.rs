//! Tests of `detail`.

use crate::fixture::{Given, calm, ms};
use crate::metric;
use crate::record::request::*;
use crate::summary::summarize;

fn sum(values: impl Iterator<Item = Option<f64>>) -> (u64, f64) {
    values.flatten().fold((0, 0.0), |(n, sum), value| (n + 1, sum + value))
}

#[test]
fn the_summary_follows_from_the_rows() {
    let observations = calm();
    let summary = summarize(&observations);
    let rows: Vec<RequestDetail<'_>> = requests(&observations).collect();
    assert_eq!(rows.len() as u64, summary.attempted);
    let tokens = rows.iter().filter_map(|row| row.output_tokens).map(|(count, _)| count);
    assert_eq!(tokens.sum::<u64>(), summary.tokens.output_total);
    for (name, (n, sum)) in [
        ("ttft", sum(rows.iter().map(|row| row.latencies.get(&metric::TTFT)))),
        ("tpot", sum(rows.iter().map(|row| row.latencies.get(&metric::TPOT)))),
        ("e2e_schedule", sum(rows.iter().map(|row| row.latencies.get(&metric::E2E_SCHEDULE)))),
        ("send_lag", sum(rows.iter().map(|row| row.latencies.get(&metric::SEND_LAG)))),
        ("icl", sum(rows.iter().flat_map(|row| &row.arrivals).map(|found| found.icl_ms))),
    ] {
        let found =
            summary.metrics.distribution(crate::metric::Metric::named(name).unwrap()).unwrap();
        assert!(0 < n, "{name}");
        assert_eq!(found.n, n, "{name}");
        assert!((found.mean.unwrap() - sum / n as f64).abs() < 1e-9, "{name}");
    }
}

#[test]
fn a_failure_has_facts_and_no_latency_of_an_answer() {
    let mut observations = calm();
    let failed = Given::failed(0, Outcome::Truncated).no_usage().arrival(50, &[Some(1)]);
    observations.records = vec![failed.arrival(60, &[Some(2)]).record()].into();
    let row = requests(&observations).next().unwrap();
    assert_eq!(
        (
            row.latencies.get(&metric::TTFT),
            row.latencies.get(&metric::E2E),
            row.latencies.get(&metric::TPOT)
        ),
        (None, None, None)
    );
    assert_eq!(row.output_tokens, Some((3, TokenSource::StreamMarks)));
    let last = row.arrivals[1];
    assert_eq!((last.at, last.tokens, last.icl_ms), (ms(60), Some(2), None));
}

#[test]
fn text_without_tokens_passes_its_gap_on() {
    let mut observations = calm();
    let given = Given::ok(0).arrival(100, &[Some(1)]).arrival(110, &[Some(0)]);
    observations.records = vec![given.arrival(130, &[Some(2)]).record()].into();
    let row = requests(&observations).next().unwrap();
    let per_token: Vec<Option<f64>> = row.arrivals.iter().map(|found| found.itl_ms).collect();
    assert_eq!(per_token, [None, None, Some(15.0)]);
}
