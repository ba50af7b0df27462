//! The facts of the published report (R1), from its own tables.

use inferometer_report::narrative::Facts;
use inferometer_report::narrative::facts::{PublishedFacts, of_published};
use serde::Deserialize;

const TABLE: &str = include_str!("../../../../examples/published/mi100x4-devstral-24b.toml");

#[derive(Deserialize)]
struct Table {
    row: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    input_tokens: f64,
    output_tokens: f64,
    concurrency: u32,
    requests: u64,
    output_throughput: f64,
    peak_output_throughput: f64,
    ttft_mean_ms: f64,
    ttft_median_ms: f64,
    ttft_p99_ms: f64,
    tpot_mean_ms: f64,
    tpot_median_ms: f64,
    tpot_p99_ms: f64,
}

pub(crate) fn r1() -> Facts {
    let table: Table = toml::from_str(TABLE).expect("the published table is TOML");
    let rows: Vec<PublishedFacts> = table.row.into_iter().map(published).collect();
    of_published(&rows)
}

fn published(row: Row) -> PublishedFacts {
    PublishedFacts {
        scenario: row.name,
        concurrency: Some(row.concurrency),
        input_tokens: Some(row.input_tokens),
        output_tokens: Some(row.output_tokens),
        requests: Some(row.requests),
        output_throughput: Some(row.output_throughput),
        peak_output_throughput: Some(row.peak_output_throughput),
        ttft_ms_mean: Some(row.ttft_mean_ms),
        ttft_ms_p50: Some(row.ttft_median_ms),
        ttft_ms_p99: Some(row.ttft_p99_ms),
        tpot_ms_mean: Some(row.tpot_mean_ms),
        tpot_ms_p50: Some(row.tpot_median_ms),
        tpot_ms_p99: Some(row.tpot_p99_ms),
        pp: None,
        tg: None,
    }
}
