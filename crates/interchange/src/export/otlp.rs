//! OpenTelemetry metrics as OTLP/JSON: one document, one resource for each result.
//!
//! A collector's file receiver and any OTLP/HTTP endpoint take it. Figures are gauges whose window is
//! the run's own; intervals are metrics of their own, as sums over attributes must not mix them in.

use inferometer_analysis::sheet::{Mark, Sheet};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::ExportError;
use super::figure::{self, Figure, Unit};

/// The whole document on one line, as a file of such documents wants it.
pub fn render(sheets: &[Sheet]) -> Result<String, ExportError> {
    let numbered = sheets.iter().zip(figure::repeats(sheets));
    let resource_metrics = numbered.map(|(sheet, repeat)| resource_metrics(sheet, repeat));
    let request = Request { resource_metrics: resource_metrics.collect() };
    Ok(serde_json::to_string(&request)? + "\n")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics {
    resource: Resource,
    scope_metrics: [ScopeMetrics; 1],
}

#[derive(Serialize)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Serialize)]
struct ScopeMetrics {
    scope: Scope,
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Metric {
    name: String,
    unit: &'static str,
    gauge: Gauge,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Gauge {
    data_points: Vec<DataPoint>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DataPoint {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<Attribute>,
    #[serde(flatten)]
    window: Window,
    as_double: f64,
}

/// Nanoseconds after 1970, as text: JSON's numbers do not hold 64 bits. What the source does not say
/// is left out, which the protocol reads as unknown.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Window {
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time_unix_nano: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_unix_nano: Option<String>,
}

#[derive(Clone, Serialize)]
struct Attribute {
    key: &'static str,
    value: AttributeValue,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct AttributeValue {
    string_value: String,
}

impl Window {
    fn of(sheet: &Sheet) -> Self {
        let started: Option<Timestamp> = sheet.started.as_ref().and_then(|at| at.parse().ok());
        let Some(started) = started else { return Self::default() };
        let length = sheet.duration_s.and_then(|s| SignedDuration::try_from_secs_f64(s).ok());
        let ended = length.and_then(|length| started.checked_add(length).ok());
        let written = |at: Timestamp| at.as_nanosecond().to_string();
        Self {
            start_time_unix_nano: Some(written(started)),
            time_unix_nano: Some(written(ended.unwrap_or(started))),
        }
    }
}

fn attribute(key: &'static str, value: impl Into<String>) -> Attribute {
    Attribute { key, value: AttributeValue { string_value: value.into() } }
}

fn resource_metrics(sheet: &Sheet, repeat: u32) -> ResourceMetrics {
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
    let scope = Scope { name: "inferometer", version: env!("CARGO_PKG_VERSION") };
    ResourceMetrics {
        resource: Resource { attributes },
        scope_metrics: [ScopeMetrics { scope, metrics: metrics(sheet) }],
    }
}

fn metrics(sheet: &Sheet) -> Vec<Metric> {
    let window = Window::of(sheet);
    let mut metrics: Vec<Metric> = Vec::new();
    for figure in figure::of(sheet) {
        let (unit, scale) = unit(figure.unit);
        let mut add = |name: String, bound: Option<&str>, value: f64| {
            let mut attributes = of_statistic(&figure);
            attributes.extend(bound.map(|bound| attribute("bound", bound)));
            let as_double = value * scale;
            let point = DataPoint { attributes, window: window.clone(), as_double };
            match metrics.iter_mut().find(|metric| metric.name == name) {
                Some(metric) => metric.gauge.data_points.push(point),
                None => {
                    metrics.push(Metric { name, unit, gauge: Gauge { data_points: vec![point] } });
                }
            }
        };
        add(format!("inferometer.{}", figure.name), None, figure.value);
        if let Some(interval) = figure.interval {
            let name = format!("inferometer.{}.interval", figure.name);
            add(name.clone(), Some("low"), interval.low);
            add(name, Some("high"), interval.high);
        }
    }
    metrics
}

fn of_statistic(figure: &Figure) -> Vec<Attribute> {
    figure.statistic.iter().map(|word| attribute("statistic", word.clone())).collect()
}

/// The unit in the protocol's own signs, and what our values are multiplied by to be in it.
const fn unit(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Milliseconds => ("s", 1e-3),
        Unit::Seconds => ("s", 1.0),
        Unit::Requests => ("{request}", 1.0),
        Unit::Tokens => ("{token}", 1.0),
        Unit::RequestsPerSecond => ("{request}/s", 1.0),
        Unit::TokensPerSecond => ("{token}/s", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_figure_is_a_point_in_the_window_of_its_run() {
        let sheet = Sheet {
            started: Some("1970-01-01T00:00:01Z".to_owned()),
            duration_s: Some(2.5),
            request_throughput: Some(4.0),
            ..Sheet::default()
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
        let sheet = Sheet {
            started: Some("20240811-143000".to_owned()),
            completed: Some(7),
            ..Sheet::default()
        };
        let text = render(&[sheet]).unwrap();
        assert!(text.contains("\"asDouble\":7.0"), "{text}");
        assert!(!text.contains("UnixNano"), "{text}");
    }
}
