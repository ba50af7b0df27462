//! Summary to pages. A page computes nothing and opens nothing: all it shows is in the summary.

pub mod calibration;
pub mod chart;
pub mod comparison;
pub mod document;
pub mod escape;
pub mod explain;
pub mod fmt;
mod gpus;
pub mod json;
pub mod junit;
pub mod lines;
pub mod machine;
pub mod markdown;
pub mod narrative;
pub mod outline;
pub mod pages;
mod requirements;
pub mod terminal;
mod texts;

pub use requirements::Judgement;
use serde::Serialize;

/// Where the run is stored, so that a page can say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Files {
    pub run: String,
    pub manifest: String,
    pub journal: String,
    pub summary: String,
    /// The HTML page, where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}
