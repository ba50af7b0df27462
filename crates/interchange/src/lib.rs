//! Other tools' result files in and out.
//!
//! [`read_file`] finds out which tool wrote a file, and gives the results in it; [`read_results`] finds
//! those of `vllm bench serve` in a text. [`export`] writes results as other tools do. A
//! [`PublishedTable`] is a table of figures that was typed in. All of them are summary figures,
//! as [`ToolResult`](inferometer_analysis::tool_result::ToolResult)s: what a file does not say stays missing.

pub mod aiperf;
pub mod export;
mod import;
mod json;
pub mod llm_d;
mod published;
pub mod vllm;

pub use import::{
    BrokenRecord, Import, ImportError, Imported, PageFacts, meaning, page_facts, read_file,
    read_results,
};
pub use published::{PublishedRow, PublishedTable, PublishedTableError};
