//! Results as `vllm bench serve` saves them: its keys in its order, one object on one line.
//!
//! Only figures that mean what that tool means by the key are written; a figure that is missing is
//! null, where that tool writes zero. What it has no key for is where its `--metadata` is: who
//! measured, whether the result is valid, and whether a server was measured at all.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use inferometer_analysis::definitions::vllm::Rank;
use inferometer_analysis::tool_result::extra::{self, ExtraFigure, Printed};
use inferometer_analysis::tool_result::{
    CountsFrom, LatencyKind, ResultLatency, ResultRate, Tool, ToolResult,
};
use serde::Serializer as _;
use serde_json::ser::Formatter;

use super::read;
use super::{COLUMNS, LATENCIES, QUEUED_E2E, is_pooling, meaning, positions, printed_ranks};
use crate::export::{ExportError, has_form, meant, measured_by};
use crate::json::Json;

/// How a result is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writing {
    pub shape: Shape,
    /// Whether the arrays of single requests are written (`--save-detailed`).
    pub detail: bool,
    /// `--label`; without one it is the configuration's name, where there is one.
    pub label: Option<String>,
    /// `--percentile-metrics`: those asked for are written even when there is nothing to say.
    /// `None` writes those that the result has.
    pub latencies: Option<Vec<LatencyKind>>,
    /// `--metric-percentiles` in their order. `None` writes those that the result has, but for the
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

/// One result on one line, without a line feed at its end.
pub fn line(result: &ToolResult, writing: &Writing) -> Result<String, ExportError> {
    let requests = match (&result.requests, writing.detail) {
        (None, true) => return Err(ExportError::NoRequests { name: result.source.name.clone() }),
        (requests, true) => requests.as_deref(),
        (_, false) => None,
    };
    let mut object = Object { result, members: Vec::new() };
    object.put_setup(writing);
    let (is_new, is_pooling) = (writing.shape == Shape::New, is_pooling(result));
    object.put_figures(is_new, is_pooling);
    for column in &COLUMNS {
        let Some(rows) = requests else { break };
        let values: Vec<Json> = rows.iter().map(column.get).collect();
        // Here that tool has zeroes for what a failed request does not have. A list of which no
        // request has anything is left out, as its zeroes would pass for figures.
        if (is_new || column.is_old)
            && (!is_pooling || column.is_pooling)
            && values.iter().any(|value| *value != Json::Null)
        {
            let or_empty = |value| if value == Json::Null { column.empty.clone() } else { value };
            object.set(column.key, values.into_iter().map(or_empty).collect::<Vec<_>>());
        }
    }
    if is_new && !is_pooling {
        object.put_peaks();
    }
    object.put_latencies(writing);
    Ok(object.into_text()?)
}

/// What goes before a result that is appended to a file with so many bytes.
pub const fn separator(file_bytes: u64) -> &'static str {
    if file_bytes == 0 { "" } else { "\n" }
}

/// The object in the making, as a dictionary of Python: a key that is set again keeps its place.
struct Object<'a> {
    result: &'a ToolResult,
    members: Vec<(String, Json)>,
}

impl Object<'_> {
    fn set(&mut self, key: impl Into<String>, value: impl Into<Json>) {
        let (key, value) = (key.into(), value.into());
        match self.members.iter_mut().find(|(known, _)| *known == key) {
            Some(member) => member.1 = value,
            None => self.members.push((key, value)),
        }
    }

    fn put(&mut self, keys: &[&str]) {
        for key in keys {
            self.set(*key, super::field(key).map(|field| (field.get)(self.result)));
        }
    }

    fn put_setup(&mut self, writing: &Writing) {
        let result = self.result;
        self.set("date", result.started.as_deref().map(date));
        if writing.shape == Shape::New {
            let configured = Some(&result.configuration).filter(|name| !name.is_empty());
            self.put(&["endpoint_type", "backend"]);
            self.set("label", writing.label.as_ref().or(configured).cloned());
        } else {
            self.put(&["backend"]);
        }
        self.put(&["model_id", "tokenizer_id", "num_prompts"]);
        for (key, text) in result.metadata.iter().cloned().chain(provenance(result)) {
            self.set(key, text);
        }
        self.put(&["request_rate", "burstiness", "max_concurrency"]);
        if let Some(Ramp { strategy, start_rps, end_rps }) = &writing.ramp {
            self.set("ramp_up_strategy", strategy.as_str());
            self.set("ramp_up_start_rps", *start_rps);
            self.set("ramp_up_end_rps", *end_rps);
        }
    }

    fn put_figures(&mut self, is_new: bool, is_pooling: bool) {
        self.put(&["duration", "completed"]);
        if is_pooling {
            self.put(&["total_input_tokens"]);
            self.put_extra(&[extra::INPUTS]);
            self.put(&["request_throughput"]);
            self.put_extra(&[extra::INPUT_THROUGHPUT]);
        } else {
            self.put(if is_new { &["failed"] } else { &[] });
            self.put(&["total_input_tokens", "total_output_tokens", "request_throughput"]);
            self.put(&[if is_new { "request_goodput" } else { "request_goodput:" }]);
            self.put(&["output_throughput"]);
        }
        self.put(&["total_token_throughput"]);
    }

    /// The peaks, and what that tool alone has, where the result came from it.
    fn put_peaks(&mut self) {
        self.put(&["max_output_tokens_per_s", "max_concurrent_requests"]);
        // Seconds of audio that went in, for each second: a run of ours sends none.
        let none = (self.result.source.tool == Tool::Inferometer).then_some(0.0);
        let key = extra::REAL_TIME_FACTOR.key;
        if let Some(factor) = self.result.further.get(key).copied().or(none) {
            self.set(key, factor);
        }
        self.put_extra(&extra::PROBES);
        self.put_extra(&extra::SPECULATION);
        let positions = positions(self.result);
        if !positions.is_empty() {
            self.set(extra::POSITIONS, positions.into_iter().map(Json::Number).collect::<Vec<_>>());
        }
        self.put_extra(&extra::DIFFUSION);
    }

    fn put_extra(&mut self, figures: &[ExtraFigure]) {
        for figure in figures {
            let Some(value) = self.result.further.get(figure.key) else { continue };
            // A count that was read as a float is written without a point.
            let whole = || format!("{value:.0}").parse().ok().map(Json::Count);
            let is_whole = figure.printed == Printed::Whole;
            self.set(figure.key, is_whole.then(whole).flatten().unwrap_or(Json::Number(*value)));
        }
    }

    fn put_latencies(&mut self, writing: &Writing) {
        for (kind, name, ..) in LATENCIES {
            let (from, grain) = meaning(kind);
            let latency = meant(self.result, kind, from, grain);
            let is_asked = writing.latencies.as_ref().map(|asked| asked.contains(&kind));
            if is_asked.unwrap_or(latency.is_some()) {
                self.put_statistics(name, latency, writing);
            }
        }
        if self.result.source.tool != Tool::Vllm {
            return;
        }
        // What that tool reports of waiting for its own cap.
        let further = self.result.further.iter();
        for (key, value) in further.filter(|(key, _)| key.ends_with(extra::CLIENT_QUEUE.0)) {
            self.set(key, *value);
        }
        let waited = self.result.latency_from(LatencyKind::E2e, CountsFrom::Schedule);
        if waited.is_some() {
            self.put_statistics(QUEUED_E2E.0, waited, writing);
        }
    }

    fn put_statistics(&mut self, name: &str, latency: Option<&ResultLatency>, writing: &Writing) {
        self.set(format!("mean_{name}_ms"), latency.and_then(|latency| latency.mean_ms));
        self.set(format!("median_{name}_ms"), latency.and_then(ResultLatency::median_ms));
        self.set(format!("std_{name}_ms"), latency.and_then(|latency| latency.std_ms));
        let mut ranks: Vec<Rank> = match (&writing.percentiles, latency) {
            (Some(asked), _) => asked.iter().filter_map(|rank| Rank::parse(rank)).collect(),
            (None, Some(known)) => {
                printed_ranks(known).filter_map(|rank| Rank::parse(rank)).collect()
            }
            (None, None) => Vec::new(),
        };
        if writing.percentiles.is_none() {
            ranks.sort_by(|a, b| a.probability.share().total_cmp(&b.probability.share()));
        }
        for Rank { name: rank, .. } in ranks {
            let value = latency.and_then(|latency| latency.percentile_ms(&rank));
            self.set(format!("p{rank}_{name}_ms"), value);
        }
    }

    fn into_text(self) -> io::Result<String> {
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
        serializer.collect_map(self.members)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }
}

/// Before the version of a run of ours that was read from a file in this format.
const OURS: &str = "inferometer ";

/// What a reader must know and that tool has no key for.
fn provenance(result: &ToolResult) -> impl Iterator<Item = (String, String)> {
    let source = &result.source;
    let read_back = source.version.as_deref().and_then(|version| version.strip_prefix(OURS));
    let read_back = read_back.filter(|_| source.tool == Tool::Vllm).map(str::to_owned);
    let is_ours = source.tool == Tool::Inferometer;
    let is_run = is_ours || read_back.is_some();
    let is_foreign = !is_run && (source.tool != Tool::Vllm || source.version.is_some());
    let version = if is_ours { source.version.clone() } else { read_back };
    let facts = [
        ("tensor_parallel_size", result.tensor_parallel.map(|gpus| gpus.to_string())),
        (read::RUN, is_run.then(|| source.name.clone())),
        (read::VERSION, version),
        (read::MEASURED_BY, is_foreign.then(|| measured_by(source))),
        (read::VERDICT, result.verdict.map(|verdict| verdict.key().to_owned())),
        (read::SIMULATED, source.simulated.then(|| "true".to_owned())),
    ];
    facts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?)))
}

/// Python's separators.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

/// The name that the tool gives to the file of a result, without a folder: of names that hold one, only
/// the last part is taken. What is not known leaves no gap. Without a label it has the backend.
pub fn file_name(result: &ToolResult, label: &str, ramp: Option<&Ramp>) -> String {
    let load = match (ramp, result.request_rate) {
        (Some(Ramp { strategy, start_rps, end_rps }), _) => {
            format!("ramp-up-{strategy}-{start_rps}qps-{end_rps}qps")
        }
        (None, Some(ResultRate::PerSecond(per_s))) => format!("{per_s:?}qps"),
        (None, Some(ResultRate::Unlimited) | None) => "infqps".to_owned(),
    };
    let cap = result.max_concurrency.map(|cap| format!("concurrency{cap}")).unwrap_or_default();
    // Names come from files and servers: none may lead out of a folder or into a terminal, and a
    // blank would end a name in a shell.
    let plain = |name: &str| -> String {
        let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
        last.chars().map(|c| if c.is_control() || c.is_whitespace() { '_' } else { c }).collect()
    };
    let model = plain(result.model.as_deref().unwrap_or_default());
    let started = plain(&date(result.started.as_deref().unwrap_or_default()));
    let mut parts = vec![plain(label), load, cap, model, started];
    parts.retain(|part| !part.is_empty());
    format!("{}.json", parts.join("-"))
}

/// `20260102-030405` of `2026-01-02T03:04:05Z`; any other text stays as it is.
fn date(started: &str) -> String {
    if !has_form(started, "0000-00-00T00:00:00") {
        return started.to_owned();
    }
    started[..19].replace(['-', ':'], "").replace('T', "-")
}

#[cfg(test)]
mod name_tests {
    use super::*;

    fn result() -> ToolResult {
        ToolResult {
            request_rate: Some(ResultRate::PerSecond(10.0)),
            model: Some("mistralai/Mistral-7B".to_owned()),
            started: Some("20260102-030405".to_owned()),
            ..ToolResult::default()
        }
    }

    fn name(result: &ToolResult) -> String {
        file_name(result, "openai-chat", None)
    }

    #[test]
    fn a_name_says_load_and_model() {
        assert_eq!(name(&result()), "openai-chat-10.0qps-Mistral-7B-20260102-030405.json");
        let rate = Some(ResultRate::Unlimited);
        let capped = ToolResult { request_rate: rate, max_concurrency: Some(8), ..result() };
        assert_eq!(
            name(&capped),
            "openai-chat-infqps-concurrency8-Mistral-7B-20260102-030405.json"
        );
        let ramp = Ramp { strategy: "linear".to_owned(), start_rps: 1, end_rps: 9 };
        assert_eq!(
            file_name(&result(), "openai-chat", Some(&ramp)),
            "openai-chat-ramp-up-linear-1qps-9qps-Mistral-7B-20260102-030405.json"
        );
    }

    /// Faults: 93.
    #[test]
    fn no_name_leads_out_of_its_folder() {
        let hostile = ToolResult { model: Some("a\u{1b}[2J/b\n".to_owned()), ..result() };
        assert_eq!(file_name(&hostile, "../../etc", None), "etc-10.0qps-b_-20260102-030405.json");
    }

    #[test]
    fn blanks_are_filled_and_what_is_missing_leaves_no_gap() {
        let bare = ToolResult { model: None, started: None, ..result() };
        assert_eq!(file_name(&bare, "configuration 1", None), "configuration_1-10.0qps.json");
    }

    #[test]
    fn moments_are_written_as_that_tool_writes_them() {
        assert_eq!(date("2026-01-02T03:04:05.678Z"), "20260102-030405");
        assert_eq!(date("20250424-225517"), "20250424-225517");
        assert_eq!(date("yesterday, more or less"), "yesterday, more or less");
    }
}
