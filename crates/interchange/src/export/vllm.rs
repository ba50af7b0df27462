//! Results as `vllm bench serve` saves them: its keys in its order, one object on one line.
//!
//! Only figures that mean what that tool means by the key are written; a figure that is missing is
//! null, where that tool writes zero. What it has no key for stands where its `--metadata` does: who
//! measured, whether the result is valid, and whether a server was measured at all.

mod name;
mod value;

use std::io::Write;

use inferometer_analysis::definitions::vllm::Rank;
use inferometer_analysis::sheet::{
    CountsFrom, Grain, LatencyKind, Sheet, SheetLatency, SheetRequest, Tool,
};

use self::value::{Object, Value};
use super::ExportError;
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
    figures(&mut object, sheet, writing.shape);
    if let Some(requests) = requests {
        arrays(&mut object, requests, writing.shape);
    }
    if writing.shape == Shape::New {
        peaks(&mut object, sheet);
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
    // Without one of its own the model's is used, there as here.
    object.set("tokenizer_id", Value::text(sheet.tokenizer.clone().or(sheet.model.clone())));
    object.set("num_prompts", Value::Count(sheet.requests_planned));
    for (key, text) in sheet.metadata.iter().cloned().chain(provenance(sheet)) {
        object.set(key, Value::text(Some(text)));
    }
}

/// What a reader must know and that tool has no key for.
fn provenance(sheet: &Sheet) -> Vec<(String, String)> {
    let source = &sheet.source;
    let mut facts = Vec::new();
    let mut say = |key: &str, text: Option<String>| {
        facts.extend(text.map(|text| (key.to_owned(), text)));
    };
    say("tensor_parallel_size", sheet.tensor_parallel.map(|gpus| gpus.to_string()));
    if source.tool == Tool::Inferometer {
        say("inferometer_run", Some(source.name.clone()));
        say("inferometer_version", source.version.clone());
        say("inferometer_verdict", sheet.verdict.map(|verdict| verdict.key().to_owned()));
    }
    say("simulated", source.simulated.then(|| "true".to_owned()));
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

/// Here that tool has zeroes for what a failed request does not have, and an array has no holes.
fn arrays<'a>(object: &mut Object<'a>, requests: &'a [SheetRequest], shape: Shape) {
    object.set("input_lens", Value::Counts(requests, |row| row.input_tokens.unwrap_or(0)));
    object.set("output_lens", Value::Counts(requests, |row| row.output_tokens.unwrap_or(0)));
    object.set("ttfts", Value::Numbers(requests, |row| row.ttft_s.unwrap_or(0.0)));
    object.set("itls", Value::Lists(requests, |row| &row.gaps_s));
    if shape == Shape::New {
        let any = |has: fn(&SheetRequest) -> bool| requests.iter().any(has);
        if any(|row| row.e2e_s.is_some()) {
            object.set("latencies", Value::Numbers(requests, |row| row.e2e_s.unwrap_or(0.0)));
        }
        object.set("start_times", Value::Numbers(requests, |row| row.start_s.unwrap_or(0.0)));
        if any(|row| row.queued_s.is_some()) {
            object.set("queue_times", Value::Numbers(requests, |row| row.queued_s.unwrap_or(0.0)));
        }
    }
    object.set("generated_texts", Value::Texts(requests, |row| row.text.as_deref()));
    object.set("errors", Value::Texts(requests, |row| row.error.as_deref()));
}

fn peaks(object: &mut Object<'_>, sheet: &Sheet) {
    object.set("max_output_tokens_per_s", Value::Number(sheet.peak_output_throughput));
    object.set("max_concurrent_requests", Value::Count(sheet.peak_concurrent_requests));
    // Seconds of audio that went in, for each second: a run of ours sends none.
    if sheet.source.tool == Tool::Inferometer {
        object.set("rtfx", Value::Number(Some(0.0)));
    }
}

fn latencies(object: &mut Object<'_>, sheet: &Sheet, writing: &Writing) {
    for (kind, name) in LATENCIES {
        let latency = meant(sheet, kind);
        let is_written =
            writing.latencies.as_ref().map_or(latency.is_some(), |asked| asked.contains(&kind));
        if !is_written {
            continue;
        }
        let of = |value: fn(&SheetLatency) -> Option<f64>| Value::Number(latency.and_then(value));
        object.set(format!("mean_{name}_ms"), of(|latency| latency.mean_ms));
        object.set(format!("median_{name}_ms"), of(SheetLatency::median_ms));
        object.set(format!("std_{name}_ms"), of(|latency| latency.std_ms));
        for rank in ranks(latency, writing.percentiles.as_deref()) {
            let value = latency.and_then(|latency| latency.percentile_ms(&rank));
            object.set(format!("p{rank}_{name}_ms"), Value::Number(value));
        }
    }
}

/// The latency that means what that tool means: it counts from the sending, and a gap is one
/// between chunks. Where a source does not say what it means, it is taken as it is.
fn meant(sheet: &Sheet, kind: LatencyKind) -> Option<&SheetLatency> {
    let (from, grain) = match kind {
        LatencyKind::Ttft | LatencyKind::E2e => (CountsFrom::Send, Grain::Request),
        LatencyKind::Tpot => (CountsFrom::Output, Grain::Request),
        LatencyKind::Itl => (CountsFrom::Output, Grain::Chunk),
    };
    sheet.latencies.iter().find(|latency| {
        latency.kind == kind
            && [from, CountsFrom::Unknown].contains(&latency.from)
            && [grain, Grain::Unknown].contains(&latency.grain)
    })
}

fn ranks(latency: Option<&SheetLatency>, asked: Option<&[String]>) -> Vec<String> {
    if let Some(asked) = asked {
        return asked.iter().filter_map(|rank| Rank::parse(rank)).map(|rank| rank.name).collect();
    }
    let written = latency.into_iter().flat_map(|latency| latency.percentiles_ms.keys());
    let mut ranks: Vec<Rank> = written.filter_map(|rank| Rank::parse(rank)).collect();
    ranks.retain(|rank| rank.name != "50");
    ranks.sort_by(|a, b| a.probability.share().total_cmp(&b.probability.share()));
    ranks.into_iter().map(|rank| rank.name).collect()
}

#[cfg(test)]
mod tests;
