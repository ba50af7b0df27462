//! The published figures of a suite on four MI100, as facts.

use inferometer_report::narrative::facts::PublishedFacts;
use serde::Deserialize;

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
    ttft_mean_ms: f64,
    ttft_median_ms: f64,
    ttft_p99_ms: f64,
    tpot_mean_ms: f64,
    tpot_median_ms: f64,
    tpot_p99_ms: f64,
}

/// The best second of each, which the file does not have.
const PEAKS: [f64; 10] = [56.0, 432.0, 144.0, 58.0, 278.0, 104.0, 184.0, 280.0, 432.0, 420.0];

pub(crate) fn mi100() -> Vec<PublishedFacts> {
    let text = include_str!("../../../../examples/published/mi100x4-devstral-24b.toml");
    let table: Table = toml::from_str(text).unwrap();
    assert_eq!(table.row.len(), PEAKS.len());
    table.row.into_iter().zip(PEAKS).map(|(row, peak)| row.facts(peak)).collect()
}

impl Row {
    fn facts(self, peak: f64) -> PublishedFacts {
        PublishedFacts {
            scenario: self.name,
            concurrency: Some(self.concurrency),
            input_tokens: Some(self.input_tokens),
            output_tokens: Some(self.output_tokens),
            requests: Some(self.requests),
            output_throughput: Some(self.output_throughput),
            peak_output_throughput: Some(peak),
            ttft_ms_mean: Some(self.ttft_mean_ms),
            ttft_ms_p50: Some(self.ttft_median_ms),
            ttft_ms_p99: Some(self.ttft_p99_ms),
            tpot_ms_mean: Some(self.tpot_mean_ms),
            tpot_ms_p50: Some(self.tpot_median_ms),
            tpot_ms_p99: Some(self.tpot_p99_ms),
            pp: None,
            tg: None,
        }
    }
}
