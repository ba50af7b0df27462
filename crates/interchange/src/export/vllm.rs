//! Results as `vllm bench serve` saves them: its keys in its order, one object on one line.
//!
//! Only figures that mean what that tool means by the key are written; a figure that is missing is
//! null, where that tool writes zero. What it has no key for is where its `--metadata` is: who
//! measured, whether the result is valid, and whether a server was measured at all.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{self, Write};

use inferometer_analysis::definitions::vllm::Rank;
use inferometer_analysis::tool_result::extra::{self, ExtraFigure, Printed};
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, Tool, ToolResult,
};
use serde::ser::{Error, Serialize, SerializeSeq, Serializer};
use serde_json::ser::Formatter;

use super::{ExportError, measured_by};
use crate::import::vllm;

/// How a result is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writing {
    pub shape: Shape,
    /// Whether the arrays of single requests are written (`--save-detailed`).
    pub detail: bool,
    /// `--label`; without one it is the configuration's name, where there is one.
    pub label: Option<String>,
    /// `--percentile-metrics`: those asked for are written even when there is nothing to say.
    /// `None` writes those that the sheet has.
    pub latencies: Option<Vec<LatencyKind>>,
    /// `--metric-percentiles` in their order. `None` writes those that the sheet has, but for the
    /// median, which has a key of its own.
    pub percentiles: Option<Vec<String>>,
    pub ramp: Option<Ramp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The current shape.
    #[default]
    New,
    /// Up to v0.9: the goodput's key is misspelt, and failures and peaks are left out.
    Old,
}

/// A rate that grows with each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// `linear` or `exponential`.
    pub strategy: String,
    pub start_rps: u64,
    pub end_rps: u64,
}

/// The order in which that tool writes them.
const LATENCIES: [(LatencyKind, &str); 4] = [
    (LatencyKind::Ttft, "ttft"),
    (LatencyKind::Tpot, "tpot"),
    (LatencyKind::Itl, "itl"),
    (LatencyKind::E2e, "e2el"),
];

/// One result on one line, without a line feed at its end.
pub fn write(sheet: &ToolResult, writing: &Writing, to: impl Write) -> Result<(), ExportError> {
    let requests = match (&sheet.requests, writing.detail) {
        (Some(requests), true) => Some(requests.as_slice()),
        (None, true) => return Err(ExportError::NoRequests { name: sheet.source.name.clone() }),
        (_, false) => None,
    };
    let mut object = Object::default();
    setup(&mut object, sheet, writing);
    traffic(&mut object, sheet, writing.ramp.as_ref());
    if is_pooling(sheet) {
        pooling_figures(&mut object, sheet);
    } else {
        figures(&mut object, sheet, writing.shape);
    }
    if let Some(requests) = requests {
        set(&mut object, requests, writing.shape, is_pooling(sheet));
    }
    if writing.shape == Shape::New && !is_pooling(sheet) {
        peaks(&mut object, sheet);
        further_figures(&mut object, sheet);
    }
    latencies(&mut object, sheet, writing);
    Ok(object.write(to)?)
}

/// As text.
pub fn line(sheet: &ToolResult, writing: &Writing) -> Result<String, ExportError> {
    let mut bytes = Vec::new();
    write(sheet, writing, &mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// What goes before a result that is appended to a file with so many bytes.
pub const fn separator(file_bytes: u64) -> &'static str {
    if file_bytes == 0 { "" } else { "\n" }
}

fn setup<'a>(object: &mut Object<'a>, sheet: &'a ToolResult, writing: &'a Writing) {
    let configured = Some(sheet.configuration.as_str()).filter(|name| !name.is_empty());
    object.set("date", Value::text(sheet.started.as_deref().map(date)));
    if writing.shape == Shape::New {
        object.set("endpoint_type", Value::text(sheet.backend.clone()));
    }
    object.set("backend", Value::text(sheet.backend.clone()));
    if writing.shape == Shape::New {
        let label = writing.label.as_deref().or(configured);
        object.set("label", Value::text(label.map(str::to_owned)));
    }
    object.set("model_id", Value::text(sheet.model.clone()));
    object.set("tokenizer_id", Value::text(sheet.tokenizer.clone()));
    object.set("num_prompts", Value::Count(sheet.requests_planned));
    for (key, text) in sheet.metadata.iter().cloned().chain(provenance(sheet)) {
        object.set(key, Value::text(Some(text)));
    }
}

/// Before the version of a run of ours that was read from a file in this format.
const OURS: &str = "inferometer ";

/// What a reader must know and that tool has no key for.
fn provenance(sheet: &ToolResult) -> Vec<(String, String)> {
    let source = &sheet.source;
    let mut facts = Vec::new();
    let mut say = |key: &str, text: Option<String>| {
        facts.extend(text.map(|text| (key.to_owned(), text)));
    };
    say("tensor_parallel_size", sheet.tensor_parallel.map(|gpus| gpus.to_string()));
    let read_back = source.version.as_deref().and_then(|version| version.strip_prefix(OURS));
    if source.tool == Tool::Inferometer {
        say(vllm::RUN, Some(source.name.clone()));
        say(vllm::VERSION, source.version.clone());
    } else if let Some(version) = read_back.filter(|_| source.tool == Tool::Vllm) {
        say(vllm::RUN, Some(source.name.clone()));
        say(vllm::VERSION, Some(version.to_owned()));
    } else if source.tool != Tool::Vllm || source.version.is_some() {
        say(vllm::MEASURED_BY, Some(measured_by(source)));
    }
    say(vllm::VERDICT, sheet.verdict.map(|verdict| verdict.key().to_owned()));
    say(vllm::SIMULATED, source.simulated.then(|| "true".to_owned()));
    facts
}

fn traffic<'a>(object: &mut Object<'a>, sheet: &ToolResult, ramp: Option<&'a Ramp>) {
    object.set("request_rate", Value::rate(sheet.request_rate));
    object.set("burstiness", sheet.burstiness.map_or(Value::Number(None), Value::or_infinite));
    object.set("max_concurrency", Value::Count(sheet.max_concurrency.map(u64::from)));
    if let Some(ramp) = ramp {
        object.set("ramp_up_strategy", Value::text(Some(ramp.strategy.clone())));
        object.set("ramp_up_start_rps", Value::Count(Some(ramp.start_rps)));
        object.set("ramp_up_end_rps", Value::Count(Some(ramp.end_rps)));
    }
}

/// Whether nothing was generated: that tool then has other figures.
fn is_pooling(sheet: &ToolResult) -> bool {
    sheet.further.contains_key(extra::INPUT_THROUGHPUT.key)
}

fn pooling_figures(object: &mut Object<'_>, sheet: &ToolResult) {
    object.set("duration", Value::Number(sheet.duration_s));
    object.set("completed", Value::Count(sheet.completed));
    object.set("total_input_tokens", Value::Count(sheet.input_tokens));
    further_of(object, sheet, &[extra::INPUTS]);
    object.set("request_throughput", Value::Number(sheet.request_throughput));
    further_of(object, sheet, &[extra::INPUT_THROUGHPUT]);
    object.set("total_token_throughput", Value::Number(sheet.total_token_throughput));
}

fn figures(object: &mut Object<'_>, sheet: &ToolResult, shape: Shape) {
    object.set("duration", Value::Number(sheet.duration_s));
    object.set("completed", Value::Count(sheet.completed));
    if shape == Shape::New {
        object.set("failed", Value::Count(sheet.failed));
    }
    object.set("total_input_tokens", Value::Count(sheet.input_tokens));
    object.set("total_output_tokens", Value::Count(sheet.output_tokens));
    object.set("request_throughput", Value::Number(sheet.request_throughput));
    let goodput = match shape {
        Shape::New => "request_goodput",
        Shape::Old => "request_goodput:",
    };
    object.set(goodput, Value::Number(sheet.request_goodput));
    object.set("output_throughput", Value::Number(sheet.output_throughput));
    object.set("total_token_throughput", Value::Number(sheet.total_token_throughput));
}

fn peaks(object: &mut Object<'_>, sheet: &ToolResult) {
    object.set("max_output_tokens_per_s", Value::Number(sheet.peak_output_throughput));
    object.set("max_concurrent_requests", Value::Count(sheet.peak_concurrent_requests));
    // Seconds of audio that went in, for each second: a run of ours sends none.
    let none = (sheet.source.tool == Tool::Inferometer).then_some(0.0);
    let rtfx = sheet.further.get(extra::REAL_TIME_FACTOR.key).copied().or(none);
    if rtfx.is_some() {
        object.set(extra::REAL_TIME_FACTOR.key, Value::Number(rtfx));
    }
}

/// What that tool alone has, where the sheet came from it.
fn further_figures(object: &mut Object<'_>, sheet: &ToolResult) {
    further_of(object, sheet, &extra::PROBES);
    further_of(object, sheet, &extra::SPECULATION);
    let positions: Vec<f64> = (0..)
        .map_while(|position| sheet.further.get(&extra::position_key(position)).copied())
        .collect();
    if !positions.is_empty() {
        object.set(extra::POSITIONS, Value::Shares(positions));
    }
    further_of(object, sheet, &extra::DIFFUSION);
}

fn further_of(object: &mut Object<'_>, sheet: &ToolResult, figures: &[ExtraFigure]) {
    for figure in figures {
        let Some(value) = sheet.further.get(figure.key) else { continue };
        object.set(figure.key, Value::printed(*value, figure.printed));
    }
}

fn latencies(object: &mut Object<'_>, sheet: &ToolResult, writing: &Writing) {
    for (kind, name) in LATENCIES {
        let latency = meant(sheet, kind);
        let is_asked = writing.latencies.as_ref().map(|asked| asked.contains(&kind));
        if is_asked.unwrap_or(latency.is_some()) {
            statistics(object, name, latency, writing.percentiles.as_deref());
        }
    }
    if sheet.source.tool == Tool::Vllm {
        waits(object, sheet, writing);
    }
}

/// What that tool tells of waiting for its own cap, where it did.
fn waits(object: &mut Object<'_>, sheet: &ToolResult, writing: &Writing) {
    let (suffix, _) = extra::CLIENT_QUEUE;
    for (key, value) in sheet.further.iter().filter(|(key, _)| key.ends_with(suffix)) {
        object.set(key.clone(), Value::Number(Some(*value)));
    }
    if let Some(latency) = sheet.latency_from(LatencyKind::E2e, CountsFrom::Schedule) {
        let name = "e2el_including_client_queue";
        statistics(object, name, Some(latency), writing.percentiles.as_deref());
    }
}

fn statistics(
    object: &mut Object<'_>,
    name: &str,
    latency: Option<&ResultLatency>,
    percentiles: Option<&[String]>,
) {
    let of = |value: fn(&ResultLatency) -> Option<f64>| Value::Number(latency.and_then(value));
    object.set(format!("mean_{name}_ms"), of(|latency| latency.mean_ms));
    object.set(format!("median_{name}_ms"), of(ResultLatency::median_ms));
    object.set(format!("std_{name}_ms"), of(|latency| latency.std_ms));
    for rank in ranks(latency, percentiles) {
        let value = latency.and_then(|latency| latency.percentile_ms(&rank));
        object.set(format!("p{rank}_{name}_ms"), Value::Number(value));
    }
}

/// That tool counts from the sending, and a gap is one between chunks.
fn meant(sheet: &ToolResult, kind: LatencyKind) -> Option<&ResultLatency> {
    let (from, grain) = match kind {
        LatencyKind::Ttft | LatencyKind::E2e => (CountsFrom::Send, Grain::Request),
        LatencyKind::Tpot => (CountsFrom::Output, Grain::Request),
        LatencyKind::Itl => (CountsFrom::Output, Grain::Chunk),
    };
    super::meant(sheet, kind, from, grain)
}

fn ranks(latency: Option<&ResultLatency>, asked: Option<&[String]>) -> Vec<String> {
    if let Some(asked) = asked {
        return asked.iter().filter_map(|rank| Rank::parse(rank)).map(|rank| rank.name).collect();
    }
    let written = latency.into_iter().flat_map(|latency| latency.percentiles_ms.keys());
    let mut ranks: Vec<Rank> = written.filter_map(|rank| Rank::parse(rank)).collect();
    let has_p50 = latency.is_some_and(|latency| latency.has_p50);
    ranks.retain(|rank| has_p50 || rank.name != "50");
    ranks.sort_by(|a, b| a.probability.share().total_cmp(&b.probability.share()));
    ranks.into_iter().map(|rank| rank.name).collect()
}

/// Here that tool has zeroes for what a failed request does not have, and a list has no holes; a
/// list of which no request has anything is left out, as its zeroes would pass for figures.
fn set<'a>(object: &mut Object<'a>, requests: &'a [ResultRequest], shape: Shape, is_pooling: bool) {
    let any = |has: fn(&ResultRequest) -> bool| requests.iter().any(has);
    let mut list = |key: &'static str, has: fn(&ResultRequest) -> bool, values: Value<'a>| {
        if any(has) {
            object.set(key, values);
        }
    };
    let counts = |of| Value::Counts(requests, of);
    let numbers = |of| Value::Numbers(requests, of);
    list(
        "input_lens",
        |row| row.input_tokens.is_some(),
        counts(|row| row.input_tokens.unwrap_or(0)),
    );
    if !is_pooling {
        let outputs = counts(|row| row.output_tokens.unwrap_or(0));
        list("output_lens", |row| row.output_tokens.is_some(), outputs);
        list("ttfts", |row| row.ttft_s.is_some(), numbers(|row| row.ttft_s.unwrap_or(0.0)));
        // An answer of one chunk has no gap.
        let has_gaps = |row: &ResultRequest| row.ttft_s.is_some() || !row.gaps_s.is_empty();
        list("itls", has_gaps, Value::Lists(requests, |row| &row.gaps_s));
    }
    if shape == Shape::New {
        list("latencies", |row| row.e2e_s.is_some(), numbers(|row| row.e2e_s.unwrap_or(0.0)));
        list("start_times", |row| row.start_s.is_some(), numbers(|row| row.start_s.unwrap_or(0.0)));
        list(
            "queue_times",
            |row| row.queued_s.is_some(),
            numbers(|row| row.queued_s.unwrap_or(0.0)),
        );
    }
    if !is_pooling {
        let texts = Value::Texts(requests, |row| row.text.as_deref());
        list("generated_texts", |row| row.text.is_some(), texts);
    }
    list("errors", |row| row.error.is_some(), Value::Texts(requests, |row| row.error.as_deref()));
}

/// What a file's name is made of.
#[derive(Clone, Copy, Debug)]
pub struct FileName<'a> {
    /// The label, or without one the backend.
    pub label: &'a str,
    pub rate: ResultRate,
    pub ramp: Option<&'a Ramp>,
    pub max_concurrency: Option<u32>,
    pub model: &'a str,
    /// As [`date`] gives it.
    pub date: &'a str,
}

impl FileName<'_> {
    /// Without a folder: of names that hold one, only the last part is taken. What is not known
    /// leaves no gap.
    pub fn file_name(&self) -> String {
        let load = match (self.ramp, self.rate) {
            (Some(ramp), _) => {
                let Ramp { strategy, start_rps, end_rps } = ramp;
                format!("ramp-up-{strategy}-{start_rps}qps-{end_rps}qps")
            }
            (None, ResultRate::PerSecond(per_s)) => format!("{per_s:?}qps"),
            (None, ResultRate::Unlimited) => "infqps".to_owned(),
        };
        let cap = self.max_concurrency.map(|cap| format!("concurrency{cap}")).unwrap_or_default();
        let (label, model, date) = (plain(self.label), plain(self.model), plain(self.date));
        let mut parts = vec![label, load, cap, model, date];
        parts.retain(|part| !part.is_empty());
        format!("{}.json", parts.join("-"))
    }
}

/// Names come from files and servers: none may lead out of a folder or into a terminal, and a blank
/// would end a name in a shell.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    last.chars().map(|c| if c.is_control() || c.is_whitespace() { '_' } else { c }).collect()
}

/// `20260102-030405` of `2026-01-02T03:04:05Z`; any other text stays as it is.
pub fn date(started: &str) -> String {
    let is_moment = started.get(..19).is_some_and(|moment| {
        moment.bytes().zip(*b"0000-00-00T00:00:00").all(|(found, form)| match form {
            b'0' => found.is_ascii_digit(),
            mark => found == mark,
        })
    });
    if !is_moment {
        return started.to_owned();
    }
    let moment = started[..19].chars().filter_map(|c| match c {
        'T' => Some('-'),
        '-' | ':' => None,
        digit => Some(digit),
    });
    moment.collect()
}

/// As a dictionary of Python: a key that is set again keeps its place.
#[derive(Default)]
struct Object<'a>(Vec<(Cow<'static, str>, Value<'a>)>);

enum Value<'a> {
    Text(Option<String>),
    Count(Option<u64>),
    Number(Option<f64>),
    /// A number of Python that is whole.
    Whole(f64),
    Shares(Vec<f64>),
    Counts(&'a [ResultRequest], fn(&ResultRequest) -> u64),
    Numbers(&'a [ResultRequest], fn(&ResultRequest) -> f64),
    Lists(&'a [ResultRequest], fn(&ResultRequest) -> &[f64]),
    /// What is missing is the empty text there.
    Texts(&'a [ResultRequest], fn(&ResultRequest) -> Option<&str>),
}

impl<'a> Object<'a> {
    fn set(&mut self, key: impl Into<Cow<'static, str>>, value: Value<'a>) {
        let key = key.into();
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    fn write(&self, to: impl Write) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::with_formatter(to, Spaced);
        let entries = self.0.iter().map(|(key, value)| (key, value));
        Ok(serializer.collect_map(entries)?)
    }
}

impl Value<'_> {
    fn text(text: Option<String>) -> Self {
        Self::Text(text)
    }

    fn rate(rate: Option<ResultRate>) -> Self {
        match rate {
            None => Self::Number(None),
            Some(ResultRate::PerSecond(per_s)) => Self::Number(Some(per_s)),
            Some(ResultRate::Unlimited) => Self::or_infinite(f64::INFINITY),
        }
    }

    fn printed(value: f64, printed: Printed) -> Self {
        match printed {
            Printed::Decimal => Self::Number(Some(value)),
            Printed::Whole => Self::Whole(value),
        }
    }

    /// JSON has no infinity.
    fn or_infinite(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(Some(value))
        } else {
            Self::Text(Some("inf".to_owned()))
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Count(count) => count.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
            Self::Whole(number) => {
                // A count that was read as a float is written without a point.
                let written: serde_json::Number =
                    format!("{number:.0}").parse().map_err(S::Error::custom)?;
                written.serialize(serializer)
            }
            Self::Shares(shares) => shares.serialize(serializer),
            Self::Counts(rows, of) => each(serializer, rows, *of),
            Self::Numbers(rows, of) => each(serializer, rows, *of),
            Self::Lists(rows, of) => {
                let mut list = serializer.serialize_seq(Some(rows.len()))?;
                for row in *rows {
                    list.serialize_element(of(row))?;
                }
                list.end()
            }
            Self::Texts(rows, of) => {
                let mut list = serializer.serialize_seq(Some(rows.len()))?;
                for row in *rows {
                    list.serialize_element(of(row).unwrap_or_default())?;
                }
                list.end()
            }
        }
    }
}

fn each<S: Serializer, T: Serialize>(
    serializer: S,
    rows: &[ResultRequest],
    of: fn(&ResultRequest) -> T,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().map(of))
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod name_tests {
    use super::*;

    fn name() -> FileName<'static> {
        FileName {
            label: "openai-chat",
            rate: ResultRate::PerSecond(10.0),
            ramp: None,
            max_concurrency: None,
            model: "mistralai/Mistral-7B",
            date: "20260102-030405",
        }
    }

    #[test]
    fn a_name_says_load_and_model() {
        assert_eq!(name().file_name(), "openai-chat-10.0qps-Mistral-7B-20260102-030405.json");
        let capped = FileName { rate: ResultRate::Unlimited, max_concurrency: Some(8), ..name() };
        assert_eq!(
            capped.file_name(),
            "openai-chat-infqps-concurrency8-Mistral-7B-20260102-030405.json"
        );
        let ramp = Ramp { strategy: "linear".to_owned(), start_rps: 1, end_rps: 9 };
        assert_eq!(
            FileName { ramp: Some(&ramp), ..name() }.file_name(),
            "openai-chat-ramp-up-linear-1qps-9qps-Mistral-7B-20260102-030405.json"
        );
    }

    #[test]
    fn no_name_leads_out_of_its_folder() {
        let name = FileName { label: "../../etc", model: "a\u{1b}[2J/b\n", ..name() };
        assert_eq!(name.file_name(), "etc-10.0qps-b_-20260102-030405.json");
    }

    #[test]
    fn blanks_are_filled_and_what_is_missing_leaves_no_gap() {
        let bare = FileName { label: "configuration 1", model: "", date: "", ..name() };
        assert_eq!(bare.file_name(), "configuration_1-10.0qps.json");
    }

    #[test]
    fn moments_are_written_as_that_tool_writes_them() {
        assert_eq!(date("2026-01-02T03:04:05.678Z"), "20260102-030405");
        assert_eq!(date("20250424-225517"), "20250424-225517");
        assert_eq!(date("yesterday, more or less"), "yesterday, more or less");
    }
}
