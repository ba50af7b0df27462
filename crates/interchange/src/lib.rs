//! Other tools' result files in and out.
//!
//! [`export`] writes results as other tools do. [`read_results`] finds the results in a text, whichever tool wrote it. A [`PublishedTable`] is a
//! table of figures that somebody typed in. All of them are summary figures, as
//! [`Sheet`](inferometer_analysis::sheet::Sheet)s: what a file does not say stays missing.

pub mod export;
mod import;
mod published;

pub use import::{BrokenRecord, ImportError, Imported, read_results};
pub use published::{PublishedRow, PublishedTable, PublishedTableError};
