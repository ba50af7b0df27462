//! Flags of the commands that deal with the embedded engine.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::target::ClientTable;
use crate::duration;

#[derive(Args, Debug)]
pub(crate) struct CalibrateArguments {
    /// Fewer levels and less time: a quarter of a minute, and rougher numbers
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) client: ClientTable,
    /// Print one JSON document instead of the page
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress; results and errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EngineArguments {
    /// `paced` keeps time and truth; `echo` answers as fast as it can [default: paced]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<EngineMode>,
    /// Port to listen on; 0 takes a free one [default: 8000]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<std::net::IpAddr>,
    /// Name of the model [default: the mode's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Time from a request to its first token [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) ttft: Option<Duration>,
    /// Time between tokens [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) gap: Option<Duration>,
    /// Tokens per answer when the request does not say [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) tokens: Option<u32>,
    /// Tokens that one event carries [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) tokens_per_write: Option<u32>,
    /// Events that one write carries [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) events_per_write: Option<u32>,
    /// Share by which each interval may vary, from 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub(crate) jitter: Option<f64>,
    /// Framing fault to commit; may be repeated (byte-wise, several-events, crlf, cr, comments,
    /// role-first, usage-on-last-choice, no-done, multi-line, bom)
    #[arg(long = "fault", value_name = "FAULT")]
    pub(crate) faults: Vec<String>,
    /// Seed of text and jitter [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// End when standard input closes: how a parent process keeps hold of it
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EngineMode {
    Echo,
    Paced,
}
