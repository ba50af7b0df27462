//! One module for each tool: the words of its command line, and how its report is read.

pub(crate) mod aiperf;
pub(crate) mod guidellm;
pub(crate) mod ours;
pub(crate) mod vllm;
pub(crate) mod wrk;

use serde_json::Value;

use super::tool::Percentiles;

/// Tokens of every prompt.
pub(crate) const INPUT_TOKENS: usize = 16;

/// The number at a JSON pointer.
fn number(document: &Value, pointer: &str) -> Option<f64> {
    document.pointer(pointer)?.as_f64()
}

/// Two percentiles; a tool that gives only one of them gives none.
fn percentiles(document: &Value, p50: &str, p99: &str) -> Option<Percentiles> {
    Some(Percentiles { p50: number(document, p50)?, p99: number(document, p99)? })
}
