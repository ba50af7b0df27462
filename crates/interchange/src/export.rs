//! Results in the formats of other programs: spreadsheets, data frames, monitoring, CI.
//!
//! Each writer takes [`ToolResult`]s, ours or imported ones, and writes nothing that they do not hold;
//! tables of requests take a run's [`Observations`](inferometer_model::Observations). There is one list
//! of a result's figures, each with the name, unit and interval that every format gives it. To add a
//! format of figures: a function here, and an arm in the command.

#[cfg(feature = "parquet")]
pub mod parquet;

use std::collections::BTreeMap;
use std::fmt::Write;

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, Mark, ResultLatency, ResultRate, ResultSource, Tool, ToolResult,
};
use inferometer_analysis::{Better, Interval};
use inferometer_model::spreadsheet::guarded;
use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use crate::json::{Json, object};

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(
        "{name} has no figures of single requests, and the detailed form is made of them; export it \
         in the plain form"
    )]
    NoRequests { name: String },
    #[error("cannot write the result: {0}")]
    Write(#[from] std::io::Error),
    #[error("cannot write the result: {0}")]
    Json(#[from] serde_json::Error),
}

/// Who measured, with its version where that is known. A result that was written in the format of
/// another tool has both in its version.
pub(crate) fn measured_by(source: &ResultSource) -> String {
    match &source.version {
        Some(version) if names_a_tool(version) => version.clone(),
        Some(version) => format!("{} {version}", source.tool.key()),
        None => source.tool.key().to_owned(),
    }
}

/// Whether the text begins with a tool's key, as [`measured_by`] writes one.
pub(crate) fn names_a_tool(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    Tool::ALL.iter().any(|tool| tool.key() == first)
}

/// The latency with exactly this meaning: what its source leaves open must not come back defined.
pub(crate) fn meant(
    result: &ToolResult,
    kind: LatencyKind,
    from: CountsFrom,
    grain: Grain,
) -> Option<&ResultLatency> {
    let is_meant = |it: &&ResultLatency| (it.kind, it.from, it.grain) == (kind, from, grain);
    result.latencies.iter().find(is_meant)
}

/// How much of the load was done, where that was not all of it.
pub(crate) fn cut(result: &ToolResult) -> Option<String> {
    result.marks.iter().find_map(|mark| match *mark {
        Mark::Cut { completed, planned } => {
            Some(format!("{completed} of {planned} requests completed"))
        }
        Mark::Failures { .. } | Mark::Saturated { .. } | Mark::Invalid | Mark::Simulated => None,
    })
}

/// The time as ISO 8601 has it; `None` where the text is no time. Without a zone where its source has
/// none.
pub(crate) fn moment(started: &str) -> Option<String> {
    if has_form(started, "0000-00-00T00:00:00") {
        return started.is_ascii().then(|| started.to_owned());
    }
    let is_compact = has_form(started, "00000000-000000") && started.len() == 15;
    let civil = is_compact.then(|| DateTime::strptime("%Y%m%d-%H%M%S", started).ok());
    civil.flatten().map(|civil| civil.to_string())
}

/// Whether a text begins like this: with a digit where the form has a zero, and with its marks.
pub(crate) fn has_form(text: &str, form: &str) -> bool {
    let fits = |(found, form): (u8, u8)| match form {
        b'0' => found.is_ascii_digit(),
        mark => found == mark,
    };
    text.len() >= form.len() && text.bytes().zip(form.bytes()).all(fits)
}

pub(crate) fn pretty(document: &impl serde::Serialize) -> Result<String, ExportError> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// A mean of whole numbers; `None` where there is nothing to divide by.
pub(crate) fn mean(total: Option<u64>, count: Option<u64>) -> Option<f64> {
    let count = count.filter(|count| 0 < *count)?;
    total.map(|total| total as f64 / count as f64)
}

#[derive(Clone, Debug, PartialEq)]
struct Figure {
    /// Our word for the quantity: `ttft_schedule`, `request_throughput`.
    name: String,
    unit: Unit,
    /// `mean`, `p99` and so on, of a distribution.
    statistic: Option<String>,
    value: f64,
    interval: Option<Interval>,
    better: Better,
}

/// A unit as each format writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    /// After a number.
    written: &'static str,
    /// As the last part of a column's name; empty where the name itself includes it.
    suffix: &'static str,
    openmetrics: Option<&'static str>,
    otlp: &'static str,
    /// What a value is multiplied by for `OpenMetrics` and OTLP, which have seconds alone.
    scale: f64,
}

const fn unit(
    written: &'static str,
    suffix: &'static str,
    openmetrics: Option<&'static str>,
    otlp: &'static str,
) -> Unit {
    Unit { written, suffix, openmetrics, otlp, scale: 1.0 }
}

const MILLISECONDS: Unit = Unit { scale: 1e-3, ..unit("ms", "_ms", Some("seconds"), "s") };
const SECONDS: Unit = unit("s", "_s", Some("seconds"), "s");
const SHARE: Unit = unit("share", "", None, "1");
const REQUESTS: Unit = unit("requests", "", None, "{request}");
const TOKENS: Unit = unit("tokens", "", None, "{token}");
const REQUESTS_PER_S: Unit = unit("req/s", "_per_s", Some("requests_per_second"), "{request}/s");
const TOKENS_PER_S: Unit = unit("tok/s", "_per_s", Some("tokens_per_second"), "{token}/s");

impl Figure {
    /// Whether it is one of the few that a chart over many commits is drawn of.
    fn is_headline(&self) -> bool {
        let is_drawn = |statistic: &String| matches!(statistic.as_str(), "mean" | "p50" | "p99");
        self.better != Better::Neither && self.statistic.as_ref().is_none_or(is_drawn)
    }

    /// The quantity and the statistic: `ttft_schedule.p99`.
    fn title(&self) -> String {
        match &self.statistic {
            Some(statistic) => format!("{}.{statistic}", self.name),
            None => self.name.clone(),
        }
    }
}

/// All figures that the result has, in one order for all results. Values that are no numbers are left
/// out: a format without an infinity would have to lie.
fn figures(result: &ToolResult) -> Vec<Figure> {
    let mut figures = scalars(result);
    let mut latencies: Vec<&ResultLatency> = result.latencies.iter().collect();
    latencies.sort_by_key(|latency| (latency.kind, latency.from, latency.grain));
    figures.extend(latencies.into_iter().flat_map(latency_figures));
    figures.retain(|figure| figure.value.is_finite());
    figures
}

/// Counts and rates, in their order.
fn scalars(result: &ToolResult) -> Vec<Figure> {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let peak_requests = count(result.peak_concurrent_requests);
    let listed = [
        ("requests_planned", REQUESTS, count(result.requests_planned), Better::Neither),
        ("completed", REQUESTS, count(result.completed), Better::Neither),
        ("failed", REQUESTS, count(result.failed), Better::Lower),
        ("input_tokens", TOKENS, count(result.input_tokens), Better::Neither),
        ("output_tokens", TOKENS, count(result.output_tokens), Better::Neither),
        ("peak_concurrent_requests", REQUESTS, peak_requests, Better::Neither),
        ("duration", SECONDS, result.duration_s, Better::Neither),
        ("request_throughput", REQUESTS_PER_S, result.request_throughput, Better::Higher),
        ("request_goodput", REQUESTS_PER_S, result.request_goodput, Better::Higher),
        ("output_throughput", TOKENS_PER_S, result.output_throughput, Better::Higher),
        ("total_token_throughput", TOKENS_PER_S, result.total_token_throughput, Better::Higher),
        ("peak_output_throughput", TOKENS_PER_S, result.peak_output_throughput, Better::Neither),
        ("valid_answers", SHARE, result.further.get("valid_answers").copied(), Better::Higher),
        ("accuracy", SHARE, result.further.get("accuracy").copied(), Better::Higher),
    ];
    let known = listed.into_iter().filter_map(|(name, unit, value, better)| {
        let interval = result.intervals.get(name).copied();
        let (name, value) = (name.to_owned(), value?);
        Some(Figure { name, unit, statistic: None, value, interval, better })
    });
    known.collect()
}

fn latency_figures(latency: &ResultLatency) -> Vec<Figure> {
    let name = latency_name(latency.kind, latency.from, latency.grain);
    let figure = |(statistic, key, value): (String, &str, Option<f64>)| {
        let interval = latency.intervals_ms.get(key).copied();
        let (name, unit, statistic) = (name.clone(), MILLISECONDS, Some(statistic));
        Some(Figure { name, unit, statistic, value: value?, interval, better: Better::Lower })
    };
    let plain = |name: &'static str, value: Option<f64>| (name.to_owned(), name, value);
    let ranked = latency.percentiles_ms.iter();
    let mut ranks: Vec<_> =
        ranked.map(|(rank, value)| (format!("p{rank}"), rank.as_str(), Some(*value))).collect();
    // A rank comes from a file: one that is no number goes last.
    let height = |rank: &str| rank.parse().unwrap_or(f64::INFINITY);
    ranks.sort_by(|(_, one, _), (_, other, _)| height(one).total_cmp(&height(other)));
    [plain("mean", latency.mean_ms), plain("std", latency.std_ms), plain("min", latency.min_ms)]
        .into_iter()
        .chain(ranks)
        .chain([plain("max", latency.max_ms)])
        .filter_map(figure)
        .collect()
}

/// Our word for a latency with this meaning. Another meaning is another word, so that no chart joins
/// what does not belong together.
fn latency_name(kind: LatencyKind, from: CountsFrom, grain: Grain) -> String {
    let (name, usual) = match (kind, grain) {
        (LatencyKind::Ttft, _) => ("ttft", CountsFrom::Send),
        (LatencyKind::E2e, _) => ("e2e", CountsFrom::Send),
        (LatencyKind::Tpot, _) => ("tpot", CountsFrom::Output),
        (LatencyKind::Itl, Grain::Token) => return "itl".to_owned(),
        (LatencyKind::Itl, Grain::Chunk) => return "icl".to_owned(),
        (LatencyKind::Itl, Grain::Request) => return "itl_of_request".to_owned(),
        (LatencyKind::Itl, Grain::Unknown) => return "itl_of_unknown".to_owned(),
    };
    let start = match from {
        from if from == usual => "",
        CountsFrom::Schedule => "_schedule",
        CountsFrom::Send => "_send",
        CountsFrom::Output => "_output",
        CountsFrom::Unknown => "_unknown_start",
    };
    let grain = match grain {
        Grain::Request => "",
        Grain::Token => "_of_token",
        Grain::Chunk => "_of_chunk",
        Grain::Unknown => "_of_unknown",
    };
    format!("{name}{start}{grain}")
}

/// `None` where the source does not state the load.
fn load(result: &ToolResult) -> Option<String> {
    match (result.request_rate, result.max_concurrency) {
        (Some(ResultRate::PerSecond(rate)), None) => Some(format!("{rate} req/s")),
        (Some(ResultRate::PerSecond(rate)), Some(most)) => {
            Some(format!("{rate} req/s, at most {most} at once"))
        }
        (_, Some(most)) => Some(format!("c={most}")),
        (Some(ResultRate::Unlimited), None) => Some("all at once".to_owned()),
        (None, None) => None,
    }
}

/// How many times each came before, itself included.
fn occurrences<T: Ord + Clone>(identities: impl Iterator<Item = T>) -> Vec<(T, u32)> {
    let mut seen: BTreeMap<T, u32> = BTreeMap::new();
    let counted = identities.map(|identity| {
        let times = seen.entry(identity.clone()).or_default();
        *times += 1;
        (identity, *times)
    });
    counted.collect()
}

/// Which of those with the same name, configuration and load a result is, from one; missing for the
/// first. In an import, all results without a name of their own have the file's.
fn repeats(results: &[ToolResult]) -> impl Iterator<Item = Option<String>> {
    let identity = |result: &ToolResult| {
        (result.source.name.clone(), result.configuration.clone(), load(result))
    };
    let counted = occurrences(results.iter().map(identity)).into_iter();
    counted.map(|(_, times)| (1 < times).then(|| times.to_string()))
}

/// Names that stay the same from one commit to the next, so never the name of a run: what was
/// measured, and the load. Those that come again are numbered.
fn benchmark_names(results: &[ToolResult]) -> Vec<String> {
    let name = |result: &ToolResult| {
        let model = || result.model.clone().unwrap_or_else(|| result.source.tool.key().to_owned());
        let subject = configuration(result).unwrap_or_else(model);
        [Some(subject), load(result)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    };
    let numbered = |(name, times): (String, u32)| {
        if times == 1 { name } else { format!("{name} ({times})") }
    };
    occurrences(results.iter().map(name)).into_iter().map(numbered).collect()
}

fn configuration(result: &ToolResult) -> Option<String> {
    Some(result.configuration.clone()).filter(|name| !name.is_empty())
}

fn mark_keys(result: &ToolResult, separator: &str) -> String {
    result.marks.iter().map(Mark::key).collect::<Vec<_>>().join(separator)
}

/// A table for spreadsheets: one row for each result, one column for each figure that any of them has.
///
/// It has a head, and lines end as RFC 4180 has it. A text that a spreadsheet would take for a formula
/// is kept one by an apostrophe: names come from servers and files. Numbers are left alone, and what
/// is not known is an empty cell.
pub fn csv(results: &[ToolResult]) -> String {
    let cells: Vec<Vec<(String, f64)>> =
        results.iter().map(|result| figures(result).iter().flat_map(csv_cells).collect()).collect();
    let columns = csv_columns(&cells);
    let line = |cells: Vec<Json>| {
        let written = cells.into_iter().map(|cell| match cell {
            Json::Number(value) => value.to_string(),
            Json::Text(text) => format!("\"{}\"", guarded(&text).replace('"', "\"\"")),
            Json::Null | Json::Flag(_) | Json::Count(_) | Json::List(_) | Json::Map(_) => {
                String::new()
            }
        });
        written.collect::<Vec<_>>().join(",") + "\r\n"
    };
    let head = CSV_FACTS.iter().map(|(name, _)| Json::from(*name));
    let mut text = line(head.chain(columns.iter().map(|name| Json::from(name.as_str()))).collect());
    for (result, cells) in results.iter().zip(cells) {
        let cells: BTreeMap<String, f64> = cells.into_iter().collect();
        let facts = CSV_FACTS.iter().map(|(_, fact)| fact(result));
        text +=
            &line(facts.chain(columns.iter().map(|it| cells.get(it).copied().into())).collect());
    }
    text
}

type CsvFact = (&'static str, fn(&ToolResult) -> Json);

const CSV_FACTS: [CsvFact; 14] = [
    ("result", |result| result.source.name.as_str().into()),
    ("tool", |result| result.source.tool.key().into()),
    ("tool_version", |result| (&result.source.version).into()),
    ("configuration", |result| result.configuration.as_str().into()),
    ("model", |result| (&result.model).into()),
    ("tokenizer", |result| (&result.tokenizer).into()),
    ("backend", |result| (&result.backend).into()),
    ("started", |result| (&result.started).into()),
    ("request_rate_per_s", |result| result.request_rate.into()),
    ("burstiness", |result| result.burstiness.into()),
    ("max_concurrency", |result| result.max_concurrency.map(f64::from).into()),
    ("tensor_parallel", |result| result.tensor_parallel.map(f64::from).into()),
    ("verdict", |result| result.verdict.map(|verdict| verdict.to_string()).into()),
    ("marks", |result| mark_keys(result, " ").into()),
];

/// Those of all results, each once, in the order of the first result that has it; a later result's
/// own stand behind the one that they follow there.
fn csv_columns(rows: &[Vec<(String, f64)>]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        let mut place = 0;
        for (name, _) in row {
            let known = columns.iter().position(|known| known == name);
            if known.is_none() {
                columns.insert(place, name.clone());
            }
            place = known.unwrap_or(place) + 1;
        }
    }
    columns
}

/// The value, and the ends of its interval where it has one.
fn csv_cells(figure: &Figure) -> Vec<(String, f64)> {
    let statistic = figure.statistic.as_ref().map_or_else(String::new, |word| format!("_{word}"));
    let (stem, unit) = (format!("{}{statistic}", figure.name), figure.unit.suffix);
    let mut cells = vec![(format!("{stem}{unit}"), figure.value)];
    if let Some(interval) = figure.interval {
        cells.push((format!("{stem}_low{unit}"), interval.low));
        cells.push((format!("{stem}_high{unit}"), interval.high));
    }
    cells
}

/// What `github-action-benchmark` reads: files by name, two of them, as it knows one direction for
/// each. The name is the tool to configure in the action, `custom` and the direction.
pub fn github(results: &[ToolResult]) -> Result<[(&'static str, String); 2], ExportError> {
    let names = benchmark_names(results);
    let list = |better: Better| {
        let entries = names.iter().zip(results).flat_map(|(name, result)| {
            let figures = figures(result).into_iter();
            let drawn = figures.filter(|figure| figure.is_headline() && figure.better == better);
            drawn.map(|figure| github_entry(name, result, &figure)).collect::<Vec<_>>()
        });
        pretty(&entries.collect::<Vec<Json>>())
    };
    Ok([
        ("customSmallerIsBetter.json", list(Better::Lower)?),
        ("customBiggerIsBetter.json", list(Better::Higher)?),
    ])
}

fn github_entry(benchmark: &str, result: &ToolResult, figure: &Figure) -> Json {
    let unit = figure.unit.written;
    let mut extra = vec![format!("result {}", result.source.name)];
    if let Some(interval) = figure.interval {
        extra.push(format!("95 % interval {} to {} {unit}", interval.low, interval.high));
    }
    if !result.marks.is_empty() {
        extra.push(format!("marked {}", mark_keys(result, ", ")));
    }
    object! {
        "name": format!("{benchmark} · {}", figure.title()),
        "unit": unit,
        "value": figure.value,
        "range": figure.interval.map(|interval| format!("± {}", interval.half_width())),
        "extra": extra.join("\n"),
    }
}

/// The metric format of Bencher: benchmarks, their measures, and the ends of each. It has no place for
/// warnings.
pub fn bencher(results: &[ToolResult]) -> Result<String, ExportError> {
    // A measure is known there by a slug, and has one unit for good.
    let measure = |figure: Figure| {
        let slug = format!("{}{}", figure.title(), figure.unit.suffix).replace(['.', '_'], "-");
        let measure = object! {
            "value": figure.value,
            "lower_value": figure.interval.map(|interval| interval.low),
            "upper_value": figure.interval.map(|interval| interval.high),
        };
        (slug, measure)
    };
    let measures = |result: &ToolResult| {
        figures(result).into_iter().filter(Figure::is_headline).map(measure).collect()
    };
    let names = benchmark_names(results);
    let benchmarks: BTreeMap<&String, BTreeMap<String, Json>> =
        names.iter().zip(results.iter().map(measures)).collect();
    pretty(&benchmarks)
}

type Labels = Vec<(&'static str, String)>;

fn known(labels: impl IntoIterator<Item = (&'static str, Option<String>)>) -> Labels {
    labels.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The text of `OpenMetrics`, which Prometheus and its kin read: each figure is a gauge of its result.
///
/// Latencies are in seconds, as that world has it. The ends of an interval are a family of their own:
/// a sum over a family must not add bounds to values.
pub fn openmetrics(results: &[ToolResult]) -> String {
    let mut families = Families::default();
    for (result, repeat) in results.iter().zip(repeats(results)) {
        let source = &result.source;
        // What distinguishes the series of one result from those of another.
        let identity = known([
            ("result", Some(source.name.clone())),
            ("configuration", configuration(result)),
            ("load", load(result)),
            ("repeat", repeat),
        ]);
        let facts = known([
            ("tool", Some(source.tool.key().to_owned())),
            ("tool_version", source.version.clone()),
            ("model", result.model.clone()),
            ("started", result.started.clone()),
            ("verdict", result.verdict.map(|verdict| verdict.to_string())),
        ]);
        let head = ("info", None, "what was measured");
        families.add("inferometer_result", head, [&identity, &facts], 1.0);
        for mark in &result.marks {
            let head = ("gauge", None, "why the result is not that of a clean run");
            let mark = vec![("mark", mark.key().to_owned())];
            families.add("inferometer_result_mark", head, [&identity, &mark], 1.0);
        }
        for figure in figures(result) {
            families.add_figure(&identity, &figure);
        }
    }
    families.0.into_values().collect::<String>() + "# EOF\n"
}

/// The head and the samples of each family: a family must stand in one piece, whichever result its
/// samples come from.
#[derive(Default)]
struct Families(BTreeMap<String, String>);

impl Families {
    fn add_figure(&mut self, identity: &Labels, figure: &Figure) {
        let Unit { openmetrics: unit, scale, .. } = figure.unit;
        let suffix = unit.map_or_else(String::new, |unit| format!("_{unit}"));
        let mut labels = identity.clone();
        labels.extend(figure.statistic.clone().map(|statistic| ("statistic", statistic)));
        let mut add = |part: &str, help: String, bound: &Labels, value: f64| {
            let name = format!("inferometer_{}{part}{suffix}", figure.name);
            self.add(&name, ("gauge", unit, &help), [&labels, bound], value * scale);
        };
        add("", format!("{} of the result", figure.name), &Vec::new(), figure.value);
        let Some(interval) = figure.interval else { return };
        for (bound, value) in [("low", interval.low), ("high", interval.high)] {
            let help = format!("95 % interval of {}, from within the run", figure.name);
            add("_interval", help, &vec![("bound", bound.to_owned())], value);
        }
    }

    fn add(
        &mut self,
        name: &str,
        (kind, unit, help): (&str, Option<&str>, &str),
        labels: [&Labels; 2],
        value: f64,
    ) {
        // A carriage return may end a line for a reader, and the format has no escape for it.
        let escaped = |value: &str| {
            let plain = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            plain.replace('\r', " ")
        };
        let labels = labels.into_iter().flatten();
        let labels: Vec<String> =
            labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let text = self.0.entry(name.to_owned()).or_insert_with(|| {
            let unit = unit.map_or_else(String::new, |unit| format!("# UNIT {name} {unit}\n"));
            format!("# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n")
        });
        let suffix = if kind == "info" { "_info" } else { "" };
        let _ = writeln!(text, "{name}{suffix}{{{}}} {value}", labels.join(","));
    }
}

/// OpenTelemetry metrics as OTLP/JSON: one document, one resource for each result.
///
/// A collector's file receiver and any OTLP/HTTP endpoint take it. Figures are gauges whose window is
/// the run's own; intervals are metrics of their own, as sums over attributes must not mix them in.
pub fn otlp(results: &[ToolResult]) -> Result<String, ExportError> {
    let resources = results.iter().zip(repeats(results)).map(|(result, repeat)| {
        let source = &result.source;
        let attributes = known([
            ("service.name", Some("inferometer".to_owned())),
            ("inferometer.result", Some(source.name.clone())),
            ("inferometer.tool", Some(source.tool.key().to_owned())),
            ("inferometer.tool_version", source.version.clone()),
            ("inferometer.configuration", configuration(result)),
            ("inferometer.load", load(result)),
            ("inferometer.repeat", repeat),
            ("inferometer.verdict", result.verdict.map(|verdict| verdict.to_string())),
            ("inferometer.marks", Some(mark_keys(result, " ")).filter(|marks| !marks.is_empty())),
            ("gen_ai.request.model", result.model.clone()),
        ]);
        let attributes: Vec<Json> =
            attributes.into_iter().map(|(key, value)| attribute(key, value)).collect();
        let scope = object! {"name": "inferometer", "version": env!("CARGO_PKG_VERSION")};
        object! {
            "resource": object! {"attributes": attributes},
            "scopeMetrics": vec![object! {"scope": scope, "metrics": otlp_metrics(result)}],
        }
    });
    let document = object! {"resourceMetrics": resources.collect::<Vec<_>>()};
    Ok(serde_json::to_string(&document)? + "\n")
}

fn attribute(key: &str, value: impl Into<String>) -> Json {
    object! {"key": key, "value": object! {"stringValue": value.into()}}
}

/// The figures in their order; all statistics of one quantity are points of one metric.
fn otlp_metrics(result: &ToolResult) -> Vec<Json> {
    let (start, end) = window(result);
    let mut metrics: Vec<(String, &str, Vec<Json>)> = Vec::new();
    for figure in figures(result) {
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

/// A run of `MLflow`, in the words of its REST API: name, times, tags, parameters and metrics.
pub fn mlflow(result: &ToolResult) -> serde_json::Value {
    use serde_json::json;
    let (start, end) = window(result);
    let ms = |ns: &Option<String>| ns.as_ref()?.parse::<u64>().ok().map(|ns| ns / 1_000_000);
    let (start, end) = (ms(&start), ms(&end));
    let pair = |(key, value): (&str, String)| json!({"key": key, "value": value});
    let params = known([
        ("configuration", configuration(result)),
        ("load", load(result)),
        ("model", result.model.clone()),
        ("backend", result.backend.clone()),
    ]);
    let tags = known([
        ("inferometer.result", Some(result.source.name.clone())),
        ("inferometer.tool", Some(result.source.tool.key().to_owned())),
        ("inferometer.tool_version", result.source.version.clone()),
        ("inferometer.verdict", result.verdict.map(|verdict| verdict.to_string())),
        ("inferometer.marks", Some(mark_keys(result, " ")).filter(|marks| !marks.is_empty())),
    ]);
    let at = end.or(start).unwrap_or_default();
    let metric =
        |key: String, value: f64| json!({"key": key, "value": value, "timestamp": at, "step": 0});
    let metrics = figures(result).into_iter().flat_map(|figure| {
        let name = format!("{}{}", figure.title(), figure.unit.suffix).replace('.', "_");
        let bounds = figure.interval.map(|it| [("low", it.low), ("high", it.high)]);
        let bounds = bounds.into_iter().flatten();
        let bounds: Vec<_> =
            bounds.map(|(bound, value)| metric(format!("{name}/{bound}"), value)).collect();
        std::iter::once(metric(name, figure.value)).chain(bounds)
    });
    let metrics: Vec<_> = metrics.collect();
    json!({
        "run_name": result.source.name, "start_time": start, "end_time": end,
        "tags": tags.into_iter().map(pair).collect::<Vec<_>>(),
        "params": params.into_iter().map(pair).collect::<Vec<_>>(),
        "metrics": metrics,
    })
}

/// Beginning and end of the run in nanoseconds of the epoch; `None` where the beginning is not known.
fn window(result: &ToolResult) -> (Option<String>, Option<String>) {
    let started: Option<Timestamp> = result.started.as_ref().and_then(|at| at.parse().ok());
    let Some(started) = started else { return (None, None) };
    let length = result.duration_s.and_then(|s| SignedDuration::try_from_secs_f64(s).ok());
    let ended = length.and_then(|length| started.checked_add(length).ok());
    let written = |at: Timestamp| Some(at.as_nanosecond().to_string());
    (written(started), written(ended.unwrap_or(started)))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod figure_tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_known_of_the_meaning() {
        use {CountsFrom as From, Grain as Of, LatencyKind as Kind};
        for (kind, from, grain, name) in [
            (Kind::Ttft, From::Send, Of::Request, "ttft"),
            (Kind::Ttft, From::Schedule, Of::Request, "ttft_schedule"),
            (Kind::E2e, From::Unknown, Of::Request, "e2e_unknown_start"),
            (Kind::Tpot, From::Output, Of::Request, "tpot"),
            (Kind::Tpot, From::Output, Of::Unknown, "tpot_of_unknown"),
            (Kind::Itl, From::Output, Of::Token, "itl"),
            (Kind::Itl, From::Output, Of::Chunk, "icl"),
        ] {
            assert_eq!(latency_name(kind, from, grain), name);
        }
    }

    #[test]
    fn ranks_stand_in_their_order_and_what_is_no_number_is_left_out() {
        let mut latency = ResultLatency::new(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
        latency.max_ms = Some(f64::INFINITY);
        latency.mean_ms = Some(2.0);
        for (rank, value) in [("99.9", 9.0), ("5", 1.0), ("50", 2.0)] {
            latency.percentiles_ms.insert(rank.to_owned(), value);
        }
        let result = ToolResult { latencies: vec![latency], ..ToolResult::default() };
        let titles: Vec<String> = figures(&result).iter().map(Figure::title).collect();
        assert_eq!(titles, ["ttft.mean", "ttft.p5", "ttft.p50", "ttft.p99.9"]);
    }

    #[test]
    fn benchmarks_are_named_by_what_was_measured_and_repeats_are_numbered() {
        let result = |configuration: &str| ToolResult {
            configuration: configuration.to_owned(),
            model: Some("m".to_owned()),
            request_rate: Some(ResultRate::PerSecond(4.0)),
            ..ToolResult::default()
        };
        let names = benchmark_names(&[result("tp8"), result("tp8"), result("")]);
        assert_eq!(names, ["tp8 · 4 req/s", "tp8 · 4 req/s (2)", "m · 4 req/s"]);
    }
}

#[cfg(test)]
mod csv_tests {
    use super::*;

    fn result(name: &str) -> ToolResult {
        let mut result = ToolResult { completed: Some(3), ..ToolResult::default() };
        name.clone_into(&mut result.source.name);
        result
    }

    #[test]
    fn columns_are_those_of_all_results_and_nothing_is_an_empty_cell() {
        let first = ToolResult { request_throughput: Some(0.5), ..result("a") };
        let mut second =
            ToolResult { failed: Some(1), request_throughput: Some(2.0), ..result("b") };
        let interval = Interval { low: 1.0, high: 3.0 };
        second.intervals.insert("request_throughput".to_owned(), interval);
        let table = csv(&[first, second]);
        let lines: Vec<&str> = table.split("\r\n").collect();
        let head = "\"completed\",\"failed\",\"request_throughput_per_s\",\
                    \"request_throughput_low_per_s\",\"request_throughput_high_per_s\"";
        assert!(lines[0].ends_with(head), "{}", lines[0]);
        assert!(lines[1].starts_with("\"a\",\"inferometer\",,"), "{}", lines[1]);
        assert!(lines[1].ends_with(",3,,0.5,,"), "{}", lines[1]);
        assert!(lines[2].ends_with(",3,1,2,1,3"), "{}", lines[2]);
        assert_eq!(lines[3..], [""]);
    }

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        for hostile in ["=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =x", ";=x", "＝x"] {
            let table = csv(&[result(hostile)]);
            assert!(table.contains(&format!("\r\n\"'{hostile}\",")), "{hostile:?}: {table}");
        }
        assert!(csv(&[result("a \"b\", c=4")]).contains("\r\n\"a \"\"b\"\", c=4\","));
    }
}

#[cfg(test)]
mod github_tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_direction_has_its_own_list_and_doubts_go_along() {
        let mut result = ToolResult {
            model: Some("m".to_owned()),
            failed: Some(2),
            output_throughput: Some(100.0),
            marks: vec![Mark::Failures { failed: 2 }],
            ..ToolResult::default()
        };
        "r1".clone_into(&mut result.source.name);
        let interval = Interval { low: 95.0, high: 105.0 };
        result.intervals.insert("output_throughput".to_owned(), interval);
        let [(_, smaller), (_, bigger)] = github(&[result]).unwrap();
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

#[cfg(test)]
mod bencher_tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_measure_has_its_interval_and_counts_of_work_are_none() {
        let mut result = ToolResult {
            model: Some("m".to_owned()),
            completed: Some(9),
            max_concurrency: Some(8),
            ..ToolResult::default()
        };
        let latency = result.latency_mut(LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request);
        latency.percentiles_ms.insert("99".to_owned(), 50.0);
        latency.percentiles_ms.insert("90".to_owned(), 40.0);
        latency.intervals_ms.insert("99".to_owned(), Interval { low: 45.0, high: 60.0 });
        let document: Value = serde_json::from_str(&bencher(&[result]).unwrap()).unwrap();
        let measure = json!({ "value": 50.0, "lower_value": 45.0, "upper_value": 60.0 });
        assert_eq!(document, json!({ "m · c=8": { "ttft-schedule-p99-ms": measure } }));
    }
}

#[cfg(test)]
mod openmetrics_tests {
    use super::*;

    fn result(name: &str) -> ToolResult {
        let mut result = ToolResult::default();
        name.clone_into(&mut result.source.name);
        let latency = result.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
        latency.mean_ms = Some(250.0);
        latency.intervals_ms.insert("mean".to_owned(), Interval { low: 200.0, high: 300.0 });
        result
    }

    #[test]
    fn a_family_stands_in_one_piece_and_its_interval_apart() {
        let text = openmetrics(&[result("a"), result("b\"\\\n")]);
        let family = "# TYPE inferometer_ttft_seconds gauge\n\
                      # UNIT inferometer_ttft_seconds seconds\n\
                      # HELP inferometer_ttft_seconds ttft of the result\n\
                      inferometer_ttft_seconds{result=\"a\",statistic=\"mean\"} 0.25\n\
                      inferometer_ttft_seconds{result=\"b\\\"\\\\\\n\",statistic=\"mean\"} 0.25\n";
        assert!(text.contains(family), "{text}");
        let low = "inferometer_ttft_interval_seconds{result=\"a\",statistic=\"mean\",bound=\"low\"} 0.2\n";
        assert!(text.contains(low), "{text}");
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(text.matches("# TYPE ").count(), 3, "{text}");
    }

    #[test]
    fn repeats_of_a_result_are_numbered() {
        let text = openmetrics(&[result("a"), result("a")]);
        assert!(text.contains("{result=\"a\",repeat=\"2\",statistic=\"mean\"} 0.25\n"), "{text}");
        assert!(text.contains("{result=\"a\",statistic=\"mean\"} 0.25\n"), "{text}");
    }
}

#[cfg(test)]
mod otlp_tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_figure_is_a_point_in_the_window_of_its_run() {
        let result = ToolResult {
            started: Some("1970-01-01T00:00:01Z".to_owned()),
            duration_s: Some(2.5),
            request_throughput: Some(4.0),
            ..ToolResult::default()
        };
        let document: Value = serde_json::from_str(&otlp(&[result]).unwrap()).unwrap();
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
        let result = ToolResult {
            started: Some("20240811-143000".to_owned()),
            completed: Some(7),
            ..ToolResult::default()
        };
        let text = otlp(&[result]).unwrap();
        assert!(text.contains("\"asDouble\":7.0"), "{text}");
        assert!(!text.contains("UnixNano"), "{text}");
    }
}
