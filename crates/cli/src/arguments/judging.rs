//! Flags of the commands that judge other tools and their results.

use std::path::PathBuf;

use clap::Args;

use super::{StoreArguments, Time, WriteArguments};

#[derive(Args, Debug)]
pub(crate) struct AuditArguments {
    /// Result files of any tool, pages with tables of results, tables typed into TOML, and stored runs,
    /// sets or imports by their names; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Hardware that was measured, such as "4x MI100" [default: as the file says]
    #[arg(long, value_name = "GPUS", help_heading = "Reading")]
    pub(crate) hardware: Option<String>,
    /// Model that was measured, by its name on the hub or its size, such as 24B [default: as the file says]
    #[arg(long, value_name = "MODEL", help_heading = "Reading")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Exit with 4 on a doubtful figure too
    #[arg(long, help_heading = "Results")]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) write: WriteArguments,
}

#[derive(Args, Debug)]
pub(crate) struct JudgeArguments {
    /// The client's command behind `--`; {url}, {model}, {requests}, {concurrency}, {output}, {input} and
    /// {result}, the file to write, are filled in. With a preset only its program, where it has another path
    #[arg(value_name = "CLIENT", last = true)]
    pub(crate) command: Vec<String>,
    /// Command line of a known client: inferometer, vllm, guidellm, aiperf, genai-perf, inference-perf,
    /// sglang, oha or k6
    #[arg(long, value_name = "NAME", help_heading = "Client")]
    pub(crate) preset: Option<String>,
    /// Play every case of the conformance corpus, one request each, instead of the loads
    #[arg(long, help_heading = "Loads")]
    pub(crate) conformance: bool,
    /// Only these loads or cases
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Loads")]
    pub(crate) only: Vec<String>,
    /// Requests of each load [default: as the load says]
    #[arg(long, help_heading = "Loads")]
    pub(crate) requests: Option<u64>,
    /// Requests in flight of each load [default: as the load says]
    #[arg(long, help_heading = "Loads")]
    pub(crate) concurrency: Option<u32>,
    /// Most time of the client for one load [default: 2m]
    #[arg(long, help_heading = "Loads")]
    pub(crate) time_limit: Option<Time>,
    /// Folder in which the client runs and its files are kept [default: a temporary one]
    #[arg(long, value_name = "FOLDER", help_heading = "Results")]
    pub(crate) keep: Option<PathBuf>,
    /// File to write a badge with the grade to, as SVG
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) badge: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) write: WriteArguments,
}

#[derive(Args, Debug)]
pub(crate) struct BundleArguments {
    /// A run or a set: its id, the beginning of one, `latest`, its folder, or SET/N for a run of a set
    #[arg(value_name = "NAME")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Leave out prompts, host names, addresses and messages of the server; the rest is computed again
    #[arg(long, help_heading = "Content")]
    pub(crate) redact: bool,
    /// Sign it with this Ed25519 key in PKCS #8, as PEM or DER
    #[arg(long, value_name = "FILE", help_heading = "Content")]
    pub(crate) key: Option<PathBuf>,
    /// File to write [default: RUN.inferometer]
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) to: Option<PathBuf>,
}
