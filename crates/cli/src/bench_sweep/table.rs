//! All results of a sweep in one table: a CSV file for other programs, and a page for the terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use inferometer_model::spreadsheet::guarded;
use inferometer_report::document::{Cell, Columns, Table, plain, terminal};
use inferometer_report::terminal::Style;
use serde_json::Value;

use super::run::RunData;

/// Columns of the page: keys of the result and titles.
const SHOWN: [(&str, &str); 5] = [
    ("mean_ttft_ms", "TTFT mean ms"),
    ("p99_ttft_ms", "TTFT p99 ms"),
    ("mean_tpot_ms", "TPOT mean ms"),
    ("request_throughput", "req/s"),
    ("output_throughput", "output tok/s"),
];

/// One row for each run, with all keys that any of them has; the first column counts them, as
/// pandas does. A text that a spreadsheet would take for a formula is made text by an apostrophe.
pub(super) fn csv(runs: &[RunData]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for run in runs {
        for key in run.keys() {
            if !columns.contains(&key.as_str()) {
                columns.push(key);
            }
        }
    }
    let head = columns.iter().map(|column| quoted(column));
    let mut text = format!(",{}\n", head.collect::<Vec<_>>().join(","));
    for (number, run) in runs.iter().enumerate() {
        let cells = columns.iter().map(|column| cell(run.get(*column)));
        let _ = writeln!(text, "{number},{}", cells.collect::<Vec<_>>().join(","));
    }
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::Bool(true)) => "True".to_owned(),
        Some(Value::Bool(false)) => "False".to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => quoted(text),
        Some(other) => quoted(&other.to_string()),
    }
}

fn quoted(text: &str) -> String {
    let guarded = guarded(text);
    if guarded.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded.into_owned()
    }
}

/// The mean and the standard deviation over the runs of each combination.
pub(super) fn page(results: &[(String, Vec<RunData>)]) -> String {
    type Row = (String, Vec<RunData>);
    let mut columns = Columns::new("combination", |(name, _): &&Row| Cell::text(name))
        .right("runs", |(_, runs)| Cell::text(runs.len().to_string()));
    for (key, title) in SHOWN {
        columns = columns.right(title, move |(_, runs)| Cell::text(spread(runs, key)));
    }
    let table = columns.table("", "", results);
    let notes = vec![plain("± is the standard deviation over runs")];
    terminal::table(&Table { notes, ..table }, Style::Plain)
}

fn spread(runs: &[RunData], key: &str) -> String {
    let values: Vec<f64> =
        runs.iter().filter_map(|run| run.get(key).and_then(Value::as_f64)).collect();
    let Some(sample) = inferometer_analysis::Sample::new(values) else { return "–".to_owned() };
    match sample.std_sample() {
        Some(deviation) => format!("{:.2} ± {deviation:.2}", sample.mean()),
        None => format!("{:.2}", sample.mean()),
    }
}

/// Results by combination, in the order of measurement.
pub(super) fn grouped(results: Vec<(String, RunData)>) -> Vec<(String, Vec<RunData>)> {
    let mut order: Vec<String> = Vec::new();
    let mut runs: BTreeMap<String, Vec<RunData>> = BTreeMap::new();
    for (name, run) in results {
        if !runs.contains_key(&name) {
            order.push(name.clone());
        }
        runs.entry(name).or_default().push(run);
    }
    order.into_iter().filter_map(|name| runs.remove(&name).map(|runs| (name, runs))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(document: Value) -> RunData {
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn rows_have_all_columns_and_no_cell_is_a_formula() {
        let runs = [
            run(json!({"a": -1.5, "model_id": " =cmd()"})),
            run(json!({"a": null, "b": "x,\"y\"", "c": true})),
        ];
        assert_eq!(csv(&runs), ",a,model_id,b,c\n0,-1.5,' =cmd(),,\n1,,,\"x,\"\"y\"\"\",True\n");
    }

    #[test]
    fn runs_of_a_combination_stand_in_one_row() {
        let results = vec![
            ("b".to_owned(), run(json!({"mean_ttft_ms": 10.0}))),
            ("a".to_owned(), run(json!({"mean_ttft_ms": null}))),
            ("b".to_owned(), run(json!({"mean_ttft_ms": 12.0}))),
        ];
        let page = page(&grouped(results));
        let rows: Vec<&str> = page.lines().collect();
        assert!(rows[1].starts_with("  b ") && rows[1].contains("11.00 ± 1.41"), "{page}");
        assert!(rows[2].starts_with("  a ") && rows[2].contains('–'), "{page}");
    }
}
