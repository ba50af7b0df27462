//! The metric format of Bencher: benchmarks, their measures, and the ends of each.

use std::collections::BTreeMap;

use inferometer_analysis::tool_result::ToolResult;
use serde::Serialize;

use super::ExportError;
use super::figure::{self, Figure};

#[derive(Serialize)]
struct Measure {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// One document of all results. It has no place for doubts other than intervals.
pub fn render(sheets: &[ToolResult]) -> Result<String, ExportError> {
    let names = figure::benchmark_names(sheets);
    let benchmarks: BTreeMap<&String, BTreeMap<String, Measure>> =
        names.iter().zip(sheets).map(|(name, sheet)| (name, measures(sheet))).collect();
    Ok(serde_json::to_string_pretty(&benchmarks)? + "\n")
}

fn measures(sheet: &ToolResult) -> BTreeMap<String, Measure> {
    let figures = figure::figures(sheet).into_iter().filter(Figure::is_headline);
    let measure = |figure: Figure| {
        let measure = Measure {
            value: figure.value,
            lower_value: figure.interval.map(|interval| interval.low),
            upper_value: figure.interval.map(|interval| interval.high),
        };
        (slug(&figure), measure)
    };
    figures.map(measure).collect()
}

/// A measure is known there by a slug, and has one unit for good.
fn slug(figure: &Figure) -> String {
    let unit = figure.unit.suffix;
    format!("{}{unit}", figure.title()).replace(['.', '_'], "-")
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::Interval;
    use inferometer_analysis::tool_result::{CountsFrom, Grain, LatencyKind};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_measure_has_its_interval_and_counts_of_work_are_none() {
        let mut sheet = ToolResult {
            model: Some("m".to_owned()),
            completed: Some(9),
            max_concurrency: Some(8),
            ..ToolResult::default()
        };
        let latency = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request);
        latency.percentiles_ms.insert("99".to_owned(), 50.0);
        latency.percentiles_ms.insert("90".to_owned(), 40.0);
        latency.intervals_ms.insert("99".to_owned(), Interval { low: 45.0, high: 60.0 });
        let document: Value = serde_json::from_str(&render(&[sheet]).unwrap()).unwrap();
        let measure = json!({ "value": 50.0, "lower_value": 45.0, "upper_value": 60.0 });
        assert_eq!(document, json!({ "m · 8 at once": { "ttft-schedule-p99-ms": measure } }));
    }
}
