//! Which tool wrote a file: by what is in it, never by its name.

use std::borrow::Cow;

use super::ImportError;

/// What files that are no text begin with, and what to do about it.
const NOT_TEXT: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "compressed with gzip", "unpack it with `gunzip` first"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "unpack it with `unzstd` first"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "give the JSON file that belongs to it"),
    (b"PAR1", "Parquet", "give the JSON file that belongs to it"),
    (b"\xff\xfe", "UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
];
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Damaged letters are replaced: a published page may have some, and its figures are still good.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, ImportError> {
    for (beginning, what, remedy) in NOT_TEXT {
        if bytes.starts_with(beginning) {
            return Err(ImportError::NotText { what, remedy });
        }
    }
    Ok(match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_start_matches(BYTE_ORDER_MARK)),
        Cow::Owned(text) => Cow::Owned(text),
    })
}

/// What a file is, as far as it can be seen without reading all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Anything in which results of `vllm bench serve` may stand.
    Vllm,
    SglangLines,
    GuideLlm,
    AiPerf,
    AiPerfRequests,
    LlmD,
    GenaiBench,
    /// What genai-bench writes next to its results.
    GenaiBenchExperiment,
}

/// All of these keys stand in a file of the shape; the first shape that fits is meant. A quoted key
/// cannot be part of a text inside of JSON, where quotes have backslashes. A key behind a line break
/// may begin any line, the first too.
const KEYS: [(Shape, &[&str]); 12] = [
    (Shape::GuideLlm, &["\"benchmarks\"", "\"request_totals\""]),
    (Shape::GuideLlm, &["\"benchmarks\"", "\"generative_benchmark\""]),
    (Shape::AiPerf, &["\"aiperf_version\""]),
    (Shape::AiPerf, &["\"input_config\"", "\"request_throughput\"", "\"unit\""]),
    (Shape::AiPerfRequests, &["\"request_start_ns\"", "\"metrics\""]),
    (Shape::GenaiBench, &["\"aggregated_metrics\""]),
    (Shape::GenaiBenchExperiment, &["\"traffic_scenario\"", "\"server_engine\""]),
    (Shape::LlmD, &["\"scenario\"", "\"results\"", "\"request_performance\""]),
    (Shape::LlmD, &["\nscenario:", "\nresults:", "request_performance:"]),
    (Shape::LlmD, &["\nscenario:", "\nmetrics:", "version: "]),
    (Shape::SglangLines, &["\"mean_e2e_latency_ms\"", "\"output_throughput\""]),
    (Shape::SglangLines, &["\"total_output_tokens_retokenized\""]),
];

pub(super) fn shape(text: &str) -> Shape {
    let begins = |key: &str| key.strip_prefix('\n').is_some_and(|key| text.starts_with(key));
    let fits = |keys: &&[&str]| keys.iter().all(|key| begins(key) || text.contains(key));
    let found = KEYS.iter().find(|(_, keys)| fits(keys));
    found.map_or(Shape::Vllm, |(shape, _)| *shape)
}
