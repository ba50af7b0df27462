//! What `github-action-benchmark` reads: two lists, as it knows one direction for each.

use inferometer_analysis::Better;
use inferometer_analysis::tool_result::{Mark, ToolResult};
use serde::Serialize;

use super::ExportError;
use super::figure::{self, Figure};

/// Files by name. The name is the tool to configure in the action, `custom` and the direction.
pub fn render(sheets: &[ToolResult]) -> Result<[(&'static str, String); 2], ExportError> {
    Ok([
        ("customSmallerIsBetter.json", entries(sheets, Better::Lower)?),
        ("customBiggerIsBetter.json", entries(sheets, Better::Higher)?),
    ])
}

#[derive(Serialize)]
struct Entry {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

fn entries(sheets: &[ToolResult], better: Better) -> Result<String, ExportError> {
    let names = figure::benchmark_names(sheets);
    let of_sheet = |(name, sheet): (&String, &ToolResult)| -> Vec<Entry> {
        let figures = figure::figures(sheet).into_iter();
        let drawn = figures.filter(|figure| figure.is_headline() && figure.better == better);
        drawn.map(|figure| entry(name, sheet, &figure)).collect()
    };
    let entries: Vec<Entry> = names.iter().zip(sheets).flat_map(of_sheet).collect();
    Ok(serde_json::to_string_pretty(&entries)? + "\n")
}

fn entry(benchmark: &str, sheet: &ToolResult, figure: &Figure) -> Entry {
    let unit = figure.unit.written;
    let mut extra = vec![format!("result {}", sheet.source.name)];
    if let Some(interval) = figure.interval {
        extra.push(format!("95 % interval {} to {} {unit}", interval.low, interval.high));
    }
    if !sheet.marks.is_empty() {
        let marks: Vec<&str> = sheet.marks.iter().map(Mark::key).collect();
        extra.push(format!("marked {}", marks.join(", ")));
    }
    Entry {
        name: format!("{benchmark} · {}", figure.title()),
        unit,
        value: figure.value,
        range: figure.interval.map(|interval| format!("± {}", interval.half_width())),
        extra: extra.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::Interval;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_direction_has_its_own_list_and_doubts_go_along() {
        let mut sheet = ToolResult {
            model: Some("m".to_owned()),
            failed: Some(2),
            output_throughput: Some(100.0),
            marks: vec![Mark::Failures { failed: 2 }],
            ..ToolResult::default()
        };
        "r1".clone_into(&mut sheet.source.name);
        let interval = Interval { low: 95.0, high: 105.0 };
        sheet.intervals.insert("output_throughput".to_owned(), interval);
        let [(_, smaller), (_, bigger)] = render(&[sheet]).unwrap();
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(
            read(&smaller),
            json!([{ "name": "m · failed", "unit": "requests", "value": 2.0,
                     "extra": "result r1\nmarked failures" }])
        );
        assert_eq!(
            read(&bigger),
            json!([{ "name": "m · output_throughput", "unit": "tok/s", "value": 100.0,
                     "range": "± 5",
                     "extra": "result r1\n95 % interval 95 to 105 tok/s\nmarked failures" }])
        );
    }
}
