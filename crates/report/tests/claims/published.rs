//! The facts of the published report (R1), from its own tables.

use inferometer_report::narrative::Facts;
use inferometer_report::narrative::facts::FactRow;
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
    requests: f64,
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
    let mut facts = Facts::default();
    for row in &table.row {
        let users = f64::from(row.concurrency);
        let numbers = [
            ("concurrency", users),
            ("input_tokens", row.input_tokens),
            ("output_tokens", row.output_tokens),
            ("requests", row.requests),
            ("output_throughput", row.output_throughput),
            ("peak_output_throughput", row.peak_output_throughput),
            ("per_user_throughput", row.output_throughput / users),
            ("pp", row.input_tokens / (row.ttft_mean_ms / 1e3)),
            ("tg", 1e3 / row.tpot_mean_ms),
            ("ttft.mean", row.ttft_mean_ms),
            ("ttft.p50", row.ttft_median_ms),
            ("ttft.p99", row.ttft_p99_ms),
            ("tpot.mean", row.tpot_mean_ms),
            ("tpot.p50", row.tpot_median_ms),
            ("tpot.p99", row.tpot_p99_ms),
        ];
        add_row(&mut facts, &row.name, row.concurrency, &numbers);
    }
    add_row(&mut facts, "Concurrency Scaling (c=4)", 4, &[("per_user_spot", 4.0)]);
    facts
}

/// Adds numbers of one row, by their quantities.
pub(crate) fn add_row(
    facts: &mut Facts,
    scenario: &str,
    concurrency: u32,
    numbers: &[(&str, f64)],
) {
    let row = FactRow { scenario: Some(scenario.to_owned()), concurrency: Some(concurrency) };
    for (quantity, value) in numbers {
        facts.add(&row, "performance-summary", quantity, Some(*value));
    }
}
