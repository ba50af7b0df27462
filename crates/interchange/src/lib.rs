//! Other tools' result files in.
//!
//! [`read_results`] finds the results of `vllm bench serve` (and of `benchmark_serving` before it)
//! in a text: its JSON objects and its printed blocks, also between other text. A
//! [`PublishedTable`] is a table of figures that somebody typed in. All of them are summary figures
//! only: nothing here is a run, and what a file does not say stays missing.

mod block;
mod field;
mod import;
mod json;
mod lines;
mod published;
mod result;

pub use import::{BrokenRecord, ImportError, Imported, read_results};
pub use published::{PublishedRow, PublishedTable, PublishedTableError};
pub use result::{ForeignRate, ForeignResult, Origin, ResultKind, Spread};
