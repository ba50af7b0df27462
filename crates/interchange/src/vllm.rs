//! Everything that belongs to `vllm bench serve`: its result files in and out, and its printed block.
//!
//! `FIELDS` and `COLUMNS` are the only lists of its fields: readers and writers share them.

pub mod block;
pub(crate) mod read;
mod write;

use inferometer_analysis::definitions::vllm;
use inferometer_analysis::tool_result::extra;
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ToolResult,
};

use crate::import::{count, figure, name, small_count};
use crate::json::Json;

pub use write::{Ramp, Shape, Writing, file_name, line, separator};

/// One field of a result.
#[derive(Debug)]
pub(crate) struct Field {
    /// In the JSON.
    key: &'static str,
    /// In the printed block, without its colon; its case changed between versions. Empty where the
    /// block has no such line.
    label: &'static str,
    get: fn(&ToolResult) -> Json,
    /// Fails with the reason why the value cannot be in this field.
    pub(crate) set: fn(&mut ToolResult, &Json) -> Result<(), String>,
}

macro_rules! field {
    ($key:literal, $label:literal, $read:ident => $place:ident) => {
        Field {
            key: $key,
            label: $label,
            get: |result| (&result.$place).into(),
            set: |result, value| {
                result.$place = Some($read(value)?);
                Ok(())
            },
        }
    };
}

pub(crate) static FIELDS: [Field; 25] = [
    field!("date", "", name => started),
    // The two say the same; the older versions have one of them.
    field!("endpoint_type", "", name => backend),
    field!("backend", "", name => backend),
    field!("model_id", "", name => model),
    field!("tokenizer_id", "", name => tokenizer),
    field!("tensor_parallel_size", "", gpus => tensor_parallel),
    field!("tp", "", gpus => tensor_parallel),
    field!("tp_size", "", gpus => tensor_parallel),
    field!("num_prompts", "", count => requests_planned),
    field!("completed", "Successful requests", count => completed),
    field!("failed", "Failed requests", count => failed),
    field!("max_concurrency", "Maximum request concurrency", small_count => max_concurrency),
    field!("request_rate", "Request rate configured (RPS)", rate => request_rate),
    field!("request_rate", "Traffic request rate", rate => request_rate),
    Field {
        get: |result| result.burstiness.map(or_infinite).into(),
        ..field!("burstiness", "Burstiness factor", burstiness => burstiness)
    },
    field!("duration", "Benchmark duration (s)", figure => duration_s),
    field!("total_input_tokens", "Total input tokens", count => input_tokens),
    field!("total_output_tokens", "Total generated tokens", count => output_tokens),
    field!("request_throughput", "Request throughput (req/s)", figure => request_throughput),
    field!("request_goodput", "Request goodput (req/s)", figure => request_goodput),
    // So it was written up to v0.9.1.
    field!("request_goodput:", "", figure => request_goodput),
    field!("output_throughput", "Output token throughput (tok/s)", figure => output_throughput),
    field!("max_output_tokens_per_s", "Peak output token throughput (tok/s)", figure => peak_output_throughput),
    field!("max_concurrent_requests", "Peak concurrent requests", count => peak_concurrent_requests),
    field!("total_token_throughput", "Total token throughput (tok/s)", figure => total_token_throughput),
];

/// The field with this key.
pub(crate) fn field(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.key == key)
}

impl From<ResultRate> for Json {
    fn from(rate: ResultRate) -> Self {
        match rate {
            ResultRate::PerSecond(per_s) => Self::Number(per_s),
            ResultRate::Unlimited => or_infinite(f64::INFINITY),
        }
    }
}

/// JSON has no infinity.
fn or_infinite(value: f64) -> Json {
    if value.is_finite() { Json::Number(value) } else { "inf".into() }
}

/// One list of a detailed result, with a value for each request.
pub(crate) struct Column {
    key: &'static str,
    /// Whether the files up to v0.9 have it.
    is_old: bool,
    /// Whether a result has it where nothing was generated.
    is_pooling: bool,
    /// What is written for a request that has no such value.
    empty: Json,
    get: fn(&ResultRequest) -> Json,
    set: fn(&mut ResultRequest, Json) -> Result<(), String>,
}

macro_rules! column {
    ($key:literal, $is_old:literal, $is_pooling:literal, $empty:expr, $read:ident => $place:ident) => {
        Column {
            key: $key,
            is_old: $is_old,
            is_pooling: $is_pooling,
            empty: $empty,
            get: |row| (&row.$place).into(),
            set: |row, value| {
                row.$place = Some($read(&value)?);
                Ok(())
            },
        }
    };
}

pub(crate) static COLUMNS: [Column; 9] = [
    column!("input_lens", true, true, Json::Count(0), count => input_tokens),
    column!("output_lens", true, false, Json::Count(0), count => output_tokens),
    column!("ttfts", true, false, Json::Number(0.0), figure => ttft_s),
    Column {
        key: "itls",
        is_old: true,
        is_pooling: false,
        empty: Json::List(Vec::new()),
        // An answer of one chunk has no gap.
        get: |row| {
            let has_gaps = row.ttft_s.is_some() || !row.gaps_s.is_empty();
            has_gaps
                .then(|| row.gaps_s.iter().copied().map(Json::Number).collect::<Vec<_>>())
                .into()
        },
        set: |row, value| {
            let Json::List(gaps) = value else { return Err(OTHER_KIND.to_owned()) };
            row.gaps_s = gaps.iter().map(gap).collect::<Option<_>>().ok_or(OTHER_KIND)?;
            Ok(())
        },
    },
    column!("latencies", false, true, Json::Number(0.0), figure => e2e_s),
    column!("start_times", false, true, Json::Number(0.0), figure => start_s),
    column!("queue_times", false, true, Json::Number(0.0), figure => queued_s),
    column!("generated_texts", true, false, Json::Text(String::new()), any_text => text),
    column!("errors", true, true, Json::Text(String::new()), any_text => error),
];

const OTHER_KIND: &str = "is of another kind";

fn gap(value: &Json) -> Option<f64> {
    value.number().filter(|number| 0.0 <= *number)
}

/// Answers may be long.
fn any_text(value: &Json) -> Result<String, String> {
    value.text().map(str::to_owned).ok_or_else(|| OTHER_KIND.to_owned())
}

/// The latencies in the order in which they are written: kind, name in keys, name in labels, and the
/// title of their section. The clock starts when a request is sent, and a gap is one between events of
/// a stream.
pub(crate) const LATENCIES: [(LatencyKind, &str, &str, &str); 4] = [
    (LatencyKind::Ttft, "ttft", "TTFT", "Time to First Token"),
    (LatencyKind::Tpot, "tpot", "TPOT", "Time per Output Token (excl. 1st token)"),
    (LatencyKind::Itl, "itl", "ITL", "Inter-token Latency"),
    (LatencyKind::E2e, "e2el", "E2EL", "End-to-end Latency"),
];
/// End to end with the wait for the client's own cap, in keys and in labels.
const QUEUED_E2E: (&str, &str) = ("e2el_including_client_queue", "E2EL incl. Client Queue");

/// The latency of this name in keys, such as `e2el`.
pub fn latency_kind(name: &str) -> Option<LatencyKind> {
    LATENCIES.iter().find(|(_, key, ..)| *key == name).map(|(kind, ..)| *kind)
}

/// What this tool means by a latency.
fn meaning(kind: LatencyKind) -> (CountsFrom, Grain) {
    let found = vllm::LATENCIES.into_iter().find(|(known, ..)| *known == kind);
    found.map_or((CountsFrom::Unknown, Grain::Unknown), |(_, from, grain)| (from, grain))
}

/// Shares of drafts that were accepted, by their position.
fn positions(result: &ToolResult) -> Vec<f64> {
    (0..)
        .map_while(|position| result.further.get(&extra::position_key(position)).copied())
        .collect()
}

/// Whether nothing was generated: the tool then has other figures.
fn is_pooling(result: &ToolResult) -> bool {
    result.further.contains_key(extra::INPUT_THROUGHPUT.key)
}

/// The percentiles that a latency is printed with, besides the median, which has a place of its own.
fn printed_ranks(latency: &ResultLatency) -> impl Iterator<Item = &String> {
    latency.percentiles_ms.keys().filter(|rank| latency.has_p50 || *rank != "50")
}

/// People write it into their metadata, which is text.
fn gpus(value: &Json) -> Result<u32, String> {
    let number = value.text().and_then(|text| text.trim().parse().ok()).map(Json::Number);
    match small_count(number.as_ref().unwrap_or(value))? {
        0 => Err("is zero, which no number of GPUs can be".to_owned()),
        gpus => Ok(gpus),
    }
}

fn rate(value: &Json) -> Result<ResultRate, String> {
    let rate = above_zero(value, "rate")?;
    Ok(if rate.is_infinite() { ResultRate::Unlimited } else { ResultRate::PerSecond(rate) })
}

fn burstiness(value: &Json) -> Result<f64, String> {
    above_zero(value, "burstiness")
}

fn above_zero(value: &Json, what: &str) -> Result<f64, String> {
    let is_word =
        |text: &str| ["inf", "infinity"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if value.number() == Some(f64::INFINITY) || value.text().is_some_and(is_word) {
        return Ok(f64::INFINITY);
    }
    match figure(value)? {
        number if number > 0.0 => Ok(number),
        _ => Err(format!("is zero, which no {what} can be")),
    }
}
