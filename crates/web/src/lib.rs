//! `inferometer ui`: a web page over a folder of stored runs.
//!
//! It lists what is stored, shows the pages that `inferometer report` writes, overlays results, follows
//! runs that are going on, and shows a request token by token. It only reads, unless it is allowed to
//! start runs, which it does as child processes.
//!
//! What comes from a browser is not trusted: see `guard.rs`. Names are looked up in the list of what is
//! stored and never become paths.

mod guard;
mod job;
mod library;
mod live;
mod overlay;
mod pages;
mod query;
mod requests;
mod server;

use std::path::PathBuf;

use inferometer_analysis::Summary;
use inferometer_analysis::tool_result::ToolResult;
use inferometer_report::document::Document;
use inferometer_store::Stored;
use serde::Serialize;

pub use guard::Token;
pub use server::{Server, Stopper};

/// What a user may set.
#[derive(Debug)]
pub struct Settings {
    /// The folder of stored runs.
    pub folder: PathBuf,
    /// Who may read; `None` is everybody on this machine.
    pub token: Option<Token>,
    /// The program that starts runs; `None` forbids it.
    pub runs_with: Option<PathBuf>,
}

/// One line of the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    pub id: String,
    /// `run`, `sweep`, `suite`, `import` and so on.
    pub kind: String,
    /// The name of a suite, of a matrix or of an imported file.
    pub name: String,
    /// As `inferometer runs` writes it.
    pub state: String,
    pub verdict: String,
    pub model: String,
    pub server: String,
    /// Load of a run, levels of a set, results of an import; or why it cannot be read.
    pub load: String,
    /// RFC 3339, UTC.
    pub started: String,
    pub simulated: bool,
    pub ok: Option<u64>,
    pub ttft_ms: Option<f64>,
    pub output_per_s: Option<f64>,
}

impl Entry {
    /// Whether a process is writing to it.
    pub fn is_running(&self) -> bool {
        self.state == RUNNING
    }

    /// Whether it stays as it is while no file is added to its folder: a set can be resumed.
    fn is_settled(&self) -> bool {
        self.state == SEALED || self.kind == RUN && !self.is_running()
    }
}

/// The states that pages tell apart.
pub const RUNNING: &str = "running";
pub const SEALED: &str = "sealed";
/// The kind of a run that is in no set.
pub const RUN: &str = "run";

/// A stored run, or one result of an import.
#[derive(Clone, Debug)]
pub struct NamedResult {
    /// Its id, `SET/N` or `IMPORT/N`.
    pub name: String,
    pub result: ToolResult,
    /// Only of runs of ours.
    pub summary: Option<Box<Summary>>,
}

/// Reads what is stored, as the other commands do. An error is a message for the user.
pub trait Reader: Send + Sync {
    fn entry(&self, found: &Stored) -> Entry;
    /// The page that `inferometer report` writes.
    fn page(&self, found: &Stored) -> Result<Document, String>;
    /// One page of several, as `inferometer report --together` writes it.
    fn together(&self, found: &[Stored]) -> Result<Document, String>;
    fn results(&self, found: &Stored) -> Result<Vec<NamedResult>, String>;
    fn csv(&self, found: &Stored) -> Result<String, String>;
}
