//! Results in the formats of other programs: their own results, spreadsheets, data frames, monitoring,
//! CI.
//!
//! Each writer takes [`ToolResult`]s, ours or imported ones, and says
//! nothing that they do not say; tables of requests take a run's
//! [`Observations`](inferometer_model::Observations). To add a format of figures: a function in
//! [`figures`], and an arm in the command.

pub mod figures;
#[cfg(feature = "parquet")]
pub mod parquet;

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, Mark, ResultLatency, ResultSource, Tool, ToolResult,
};
use jiff::civil::DateTime;

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
    Tool::ALL.into_iter().any(|tool| tool.key() == first)
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

#[cfg(test)]
mod tests;
