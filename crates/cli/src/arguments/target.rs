//! `[target]`, `[client]`, `[limits]` and `[repeat]`: who is asked, by whom, how long we wait, and
//! how often all of it is done.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use inferometer_model::campaign::StopAt;
use inferometer_model::endpoint::Api;
use inferometer_model::observations::Connections;
use inferometer_model::spec::DevicesAsked;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grammars::Switch;
use super::written::{Written, named};
use crate::cores::CoreList;

/// Who is asked. Keys and headers have no place in a file: they may be secret.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "Who is asked")]
pub(crate) struct TargetTable {
    /// Base URL of the server, such as `http://localhost:8000`; without it the embedded engine is
    /// measured
    #[arg(skip)]
    pub(crate) url: Option<String>,
    /// API to speak [default: chat]
    #[arg(long, value_name = "API", value_parser = named::<Api>())]
    pub(crate) api: Option<Written<Api>>,
    /// Model to ask for [default: the first that /v1/models lists]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// File that holds the API key; else the variable `OPENAI_API_KEY` is used
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// One connection for many requests, a fresh one for each, or each user's own [default: as
    /// the server does]
    #[arg(long, value_name = "HOW", value_parser = named::<Connections>())]
    pub(crate) connections: Option<Written<Connections>>,
    /// Speak HTTP/2, over TLS or not; tokens are then stamped by this program, not by the kernel
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) http2: Option<bool>,
    /// Do not check the server's TLS certificate: anybody may answer, and every page says so
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) insecure: Option<bool>,
    /// What the server runs on, where it is another machine: a file, a command that prints one
    /// (such as `ssh gpu1 inferometer system --json`), or `local` for this machine
    #[arg(long, value_name = "FILE|COMMAND")]
    pub(crate) server_info: Option<String>,
    /// Whether the server's own metrics are read during the run [default: on]
    #[arg(long, value_name = "SWITCH", value_parser = named::<Switch>())]
    pub(crate) telemetry: Option<Written<Switch>>,
    /// Where the server has its metrics, behind the base URL [default: /metrics]
    #[arg(long, value_name = "PATH")]
    pub(crate) metrics_path: Option<String>,
    /// How often its metrics are read, from 100ms to 1m [default: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) telemetry_every: Option<Written<Duration>>,
    /// Who tells of the GPUs meanwhile: auto (whatever this machine has, if the server runs on it),
    /// off, nvml, nvidia-smi, amd-smi, rocm-smi, or dcgm=URL of an exporter [default: auto]
    #[arg(long, value_name = "WHO")]
    pub(crate) gpu_telemetry: Option<Written<DevicesAsked>>,
}

/// This client.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "This client")]
pub(crate) struct ClientTable {
    /// Threads that drive the load, a core for each [default: one per four cores, at most 8]
    #[arg(long = "client-cores", value_name = "N")]
    #[schemars(range(min = 1, max = 256))]
    pub(crate) cores: Option<u32>,
    /// Cores to keep those threads on, such as 2,4-6 [default: as the system likes]
    #[arg(long, value_name = "LIST")]
    pub(crate) pin_cores: Option<Written<CoreList>>,
}

/// How long we wait before we call it a failure.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitTable {
    /// Time to connect [default: 10s]
    #[arg(long = "connect-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) connect: Option<Written<Duration>>,
    /// Time from sending to the first token [default: 2m]
    #[arg(long = "first-token-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) first_token: Option<Written<Duration>>,
    /// Silence inside a stream [default: 1m]
    #[arg(long = "idle-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) idle: Option<Written<Duration>>,
    /// Whole answer [default: 30m]
    #[arg(long = "total-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) total: Option<Written<Duration>>,
    /// Requests in flight after the run is stopped, or after its time is over [default: 30s]
    #[arg(long = "drain-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) drain: Option<Written<Duration>>,
}

/// How often all of it is done.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "Repetition")]
pub(crate) struct RepeatTable {
    /// Measure this many times, one after the other, each with the next seed [default: 1]
    #[arg(long = "repeat", value_name = "N", value_parser = runs)]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) runs: Option<u32>,
    /// Rest between those runs, such as 60s [default: not at all]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) cool_down: Option<Written<Duration>>,
    /// Command that restarts the server, by `sh`, before each run but the first
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart: Option<String>,
    /// How long it may take until the server answers again [default: 10m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) restart_timeout: Option<Written<Duration>>,
    /// End early when the runs agree this well, such as `output_throughput=2%`: half of the
    /// 95 % interval of the mean, as a share of it
    #[arg(long, value_name = "QUANTITY=SHARE")]
    pub(crate) stop_at: Option<Written<StopAt>>,
}

/// Numbers out of the range are refused where files are, too.
fn runs(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write a number from 1 to 1000".to_owned())
}
