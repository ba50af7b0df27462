//! Results as `vllm bench serve` saves them: its keys in its order, one object on one line.
//!
//! Only figures that mean what that tool means by the key are written; a figure that is missing is
//! null, where that tool writes zero. What it has no key for stands where its `--metadata` does: who
//! measured, whether the result is valid, and whether a server was measured at all.

mod arrays;
mod name;
mod value;

use std::io::Write;

use inferometer_analysis::definitions::vllm::Rank;
use inferometer_analysis::sheet::further::{self, Further};
use inferometer_analysis::sheet::{CountsFrom, Grain, LatencyKind, Sheet, SheetLatency, Tool};

use self::value::{Object, Value};
use super::{ExportError, measured_by};
use crate::import::vllm::own;
pub use name::{FileName, date};

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
    /// Of today.
    #[default]
    New,
    /// Up to v0.9: the goodput's key is misspelt, and failures and peaks are not told.
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
pub fn write(sheet: &Sheet, writing: &Writing, to: impl Write) -> Result<(), ExportError> {
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
        arrays::set(&mut object, requests, writing.shape, is_pooling(sheet));
    }
    if writing.shape == Shape::New && !is_pooling(sheet) {
        peaks(&mut object, sheet);
        further_figures(&mut object, sheet);
    }
    latencies(&mut object, sheet, writing);
    Ok(object.write(to)?)
}

/// The same as text.
pub fn line(sheet: &Sheet, writing: &Writing) -> Result<String, ExportError> {
    let mut bytes = Vec::new();
    write(sheet, writing, &mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// What goes before a result that is appended to a file with so many bytes.
pub const fn separator(file_bytes: u64) -> &'static str {
    if file_bytes == 0 { "" } else { "\n" }
}

fn setup<'a>(object: &mut Object<'a>, sheet: &'a Sheet, writing: &'a Writing) {
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
fn provenance(sheet: &Sheet) -> Vec<(String, String)> {
    let source = &sheet.source;
    let mut facts = Vec::new();
    let mut say = |key: &str, text: Option<String>| {
        facts.extend(text.map(|text| (key.to_owned(), text)));
    };
    say("tensor_parallel_size", sheet.tensor_parallel.map(|gpus| gpus.to_string()));
    let read_back = source.version.as_deref().and_then(|version| version.strip_prefix(OURS));
    if source.tool == Tool::Inferometer {
        say(own::RUN, Some(source.name.clone()));
        say(own::VERSION, source.version.clone());
    } else if let Some(version) = read_back.filter(|_| source.tool == Tool::Vllm) {
        say(own::RUN, Some(source.name.clone()));
        say(own::VERSION, Some(version.to_owned()));
    } else if source.tool != Tool::Vllm || source.version.is_some() {
        say(own::MEASURED_BY, Some(measured_by(source)));
    }
    say(own::VERDICT, sheet.verdict.map(|verdict| verdict.key().to_owned()));
    say(own::SIMULATED, source.simulated.then(|| "true".to_owned()));
    facts
}

fn traffic<'a>(object: &mut Object<'a>, sheet: &Sheet, ramp: Option<&'a Ramp>) {
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
fn is_pooling(sheet: &Sheet) -> bool {
    sheet.further.contains_key(further::INPUT_THROUGHPUT.key)
}

fn pooling_figures(object: &mut Object<'_>, sheet: &Sheet) {
    object.set("duration", Value::Number(sheet.duration_s));
    object.set("completed", Value::Count(sheet.completed));
    object.set("total_input_tokens", Value::Count(sheet.input_tokens));
    further_of(object, sheet, &[further::INPUTS]);
    object.set("request_throughput", Value::Number(sheet.request_throughput));
    further_of(object, sheet, &[further::INPUT_THROUGHPUT]);
    object.set("total_token_throughput", Value::Number(sheet.total_token_throughput));
}

fn figures(object: &mut Object<'_>, sheet: &Sheet, shape: Shape) {
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

fn peaks(object: &mut Object<'_>, sheet: &Sheet) {
    object.set("max_output_tokens_per_s", Value::Number(sheet.peak_output_throughput));
    object.set("max_concurrent_requests", Value::Count(sheet.peak_concurrent_requests));
    // Seconds of audio that went in, for each second: a run of ours sends none.
    let none = (sheet.source.tool == Tool::Inferometer).then_some(0.0);
    let rtfx = sheet.further.get(further::REAL_TIME_FACTOR.key).copied().or(none);
    if rtfx.is_some() {
        object.set(further::REAL_TIME_FACTOR.key, Value::Number(rtfx));
    }
}

/// What that tool alone has, where the sheet came from it.
fn further_figures(object: &mut Object<'_>, sheet: &Sheet) {
    further_of(object, sheet, &further::PROBES);
    further_of(object, sheet, &further::SPECULATION);
    let positions: Vec<f64> = (0..)
        .map_while(|position| sheet.further.get(&further::position_key(position)).copied())
        .collect();
    if !positions.is_empty() {
        object.set(further::POSITIONS, Value::Shares(positions));
    }
    further_of(object, sheet, &further::DIFFUSION);
}

fn further_of(object: &mut Object<'_>, sheet: &Sheet, figures: &[Further]) {
    for figure in figures {
        let Some(value) = sheet.further.get(figure.key) else { continue };
        object.set(figure.key, Value::printed(*value, figure.printed));
    }
}

fn latencies(object: &mut Object<'_>, sheet: &Sheet, writing: &Writing) {
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
fn waits(object: &mut Object<'_>, sheet: &Sheet, writing: &Writing) {
    let (suffix, _) = further::CLIENT_QUEUE;
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
    latency: Option<&SheetLatency>,
    percentiles: Option<&[String]>,
) {
    let of = |value: fn(&SheetLatency) -> Option<f64>| Value::Number(latency.and_then(value));
    object.set(format!("mean_{name}_ms"), of(|latency| latency.mean_ms));
    object.set(format!("median_{name}_ms"), of(SheetLatency::median_ms));
    object.set(format!("std_{name}_ms"), of(|latency| latency.std_ms));
    for rank in ranks(latency, percentiles) {
        let value = latency.and_then(|latency| latency.percentile_ms(&rank));
        object.set(format!("p{rank}_{name}_ms"), Value::Number(value));
    }
}

/// That tool counts from the sending, and a gap is one between chunks.
fn meant(sheet: &Sheet, kind: LatencyKind) -> Option<&SheetLatency> {
    let (from, grain) = match kind {
        LatencyKind::Ttft | LatencyKind::E2e => (CountsFrom::Send, Grain::Request),
        LatencyKind::Tpot => (CountsFrom::Output, Grain::Request),
        LatencyKind::Itl => (CountsFrom::Output, Grain::Chunk),
    };
    super::meant(sheet, kind, from, grain)
}

fn ranks(latency: Option<&SheetLatency>, asked: Option<&[String]>) -> Vec<String> {
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

#[cfg(test)]
mod tests;
