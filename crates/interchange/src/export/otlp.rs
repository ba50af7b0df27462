//! OpenTelemetry metrics as OTLP/JSON: one document, one resource for each result.
//!
//! A collector's file receiver and any OTLP/HTTP endpoint take it. Figures are gauges whose window is
//! the run's own; intervals are metrics of their own, as sums over attributes must not mix them in.

use inferometer_analysis::tool_result::{Mark, ToolResult};
use jiff::{SignedDuration, Timestamp};

use super::ExportError;
use super::figure::{self, Unit};
use super::json::{Json, object};

/// One request of all results.
pub fn render(sheets: &[ToolResult]) -> Result<String, ExportError> {
    let numbered = sheets.iter().zip(figure::repeats(sheets));
    let resources: Vec<Json> =
        numbered.map(|(sheet, repeat)| resource_metrics(sheet, repeat)).collect();
    Ok(serde_json::to_string(&object! {"resourceMetrics": resources})? + "\n")
}

fn attribute(key: &str, value: impl Into<String>) -> Json {
    object! {"key": key, "value": object! {"stringValue": value.into()}}
}

fn resource_metrics(sheet: &ToolResult, repeat: u32) -> Json {
    let source = &sheet.source;
    let mut attributes = vec![
        attribute("service.name", "inferometer"),
        attribute("inferometer.result", source.name.clone()),
        attribute("inferometer.tool", source.tool.key()),
    ];
    let configuration = (!sheet.configuration.is_empty()).then(|| sheet.configuration.clone());
    let marks: Vec<&str> = sheet.marks.iter().map(Mark::key).collect();
    let optional = [
        ("inferometer.tool_version", source.version.clone()),
        ("inferometer.configuration", configuration),
        ("inferometer.load", figure::load(sheet)),
        ("inferometer.repeat", (1 < repeat).then(|| repeat.to_string())),
        ("inferometer.verdict", sheet.verdict.map(|verdict| verdict.to_string())),
        ("inferometer.marks", (!marks.is_empty()).then(|| marks.join(" "))),
        ("gen_ai.request.model", sheet.model.clone()),
    ];
    let known = optional.into_iter().filter_map(|(key, value)| Some(attribute(key, value?)));
    attributes.extend(known);
    let scope = object! {"name": "inferometer", "version": env!("CARGO_PKG_VERSION")};
    object! {
        "resource": object! {"attributes": attributes},
        "scopeMetrics": vec![object! {"scope": scope, "metrics": metrics(sheet)}],
    }
}

/// The figures in their order; all statistics of one quantity are points of one metric.
fn metrics(sheet: &ToolResult) -> Vec<Json> {
    let (start, end) = window(sheet);
    let mut metrics: Vec<(String, &str, Vec<Json>)> = Vec::new();
    for figure in figure::figures(sheet) {
        let Unit { otlp: unit, scale, .. } = figure.unit;
        let mut add = |name: String, bound: Option<&str>, value: f64| {
            let statistic = figure.statistic.iter().map(|word| attribute("statistic", word));
            let attributes: Vec<Json> =
                statistic.chain(bound.map(|bound| attribute("bound", bound))).collect();
            let point = object! {
                "attributes": (!attributes.is_empty()).then_some(attributes),
                "startTimeUnixNano": start.clone(),
                "timeUnixNano": end.clone(),
                "asDouble": value * scale,
            };
            match metrics.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, points)) => points.push(point),
                None => metrics.push((name, unit, vec![point])),
            }
        };
        add(format!("inferometer.{}", figure.name), None, figure.value);
        if let Some(interval) = figure.interval {
            let name = format!("inferometer.{}.interval", figure.name);
            add(name.clone(), Some("low"), interval.low);
            add(name, Some("high"), interval.high);
        }
    }
    let metric = |(name, unit, points): (String, &str, Vec<Json>)| {
        object! {"name": name, "unit": unit, "gauge": object! {"dataPoints": points}}
    };
    metrics.into_iter().map(metric).collect()
}

/// Beginning and end of the run in nanoseconds of the epoch; `None` where the beginning is not known.
fn window(sheet: &ToolResult) -> (Option<String>, Option<String>) {
    let started: Option<Timestamp> = sheet.started.as_ref().and_then(|at| at.parse().ok());
    let Some(started) = started else { return (None, None) };
    let length = sheet.duration_s.and_then(|s| SignedDuration::try_from_secs_f64(s).ok());
    let ended = length.and_then(|length| started.checked_add(length).ok());
    let written = |at: Timestamp| Some(at.as_nanosecond().to_string());
    (written(started), written(ended.unwrap_or(started)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_figure_is_a_point_in_the_window_of_its_run() {
        let sheet = ToolResult {
            started: Some("1970-01-01T00:00:01Z".to_owned()),
            duration_s: Some(2.5),
            request_throughput: Some(4.0),
            ..ToolResult::default()
        };
        let document: Value = serde_json::from_str(&render(&[sheet]).unwrap()).unwrap();
        let metrics = &document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let expected = json!({
            "name": "inferometer.request_throughput",
            "unit": "{request}/s",
            "gauge": { "dataPoints": [{
                "startTimeUnixNano": "1000000000", "timeUnixNano": "3500000000", "asDouble": 4.0,
            }] },
        });
        assert_eq!(metrics[1], expected);
    }

    #[test]
    fn a_date_in_another_form_is_unknown_and_never_zero() {
        let sheet = ToolResult {
            started: Some("20240811-143000".to_owned()),
            completed: Some(7),
            ..ToolResult::default()
        };
        let text = render(&[sheet]).unwrap();
        assert!(text.contains("\"asDouble\":7.0"), "{text}");
        assert!(!text.contains("UnixNano"), "{text}");
    }
}
