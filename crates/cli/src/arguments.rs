//! What the user may type. Nothing has a default here: defaults live where drafts are resolved.

use std::path::PathBuf;
use std::time::Duration;

use inferometer_model::spec::Lengths;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cores::{self, CoreList};
use crate::duration;
use crate::rates::{self, Ramp};

/// Measures LLM inference servers, and says how far its numbers can be believed.
///
/// Without a command it measures the embedded engine: a short real run that needs nothing.
#[derive(Debug, Parser)]
#[command(name = "inferometer", version, max_term_width = 100, allow_negative_numbers = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure one server once
    #[command(allow_negative_numbers = true)]
    Run(Box<RunArguments>),
    /// Measure this client on this machine: how fast it is, and how exact
    ///
    /// Starts the embedded engine and compares what the client reports with what the engine did:
    /// a ladder of concurrency levels, the errors of TTFT and ITL, the pacing of an open loop, and
    /// the memory of a stream. Takes about two minutes; nothing else should run meanwhile. The
    /// result is kept in the cache folder of the user, for this machine, kernel and version.
    Calibrate(CalibrateArguments),
    /// Start the embedded engine by itself: a server whose truth is known
    #[command(allow_negative_numbers = true)]
    Engine(EngineArguments),
    /// List stored runs
    Runs(RunsArguments),
    /// Finish a run that ended without being saved, as after a crash
    Recover(StoredRunArguments),
    /// Recompute a stored run's summary and compare it with what is stored
    Verify(StoredRunArguments),
}

impl Default for Command {
    fn default() -> Self {
        Self::Run(Box::default())
    }
}

#[derive(Args, Debug, Default)]
pub(crate) struct RunArguments {
    /// Base URL of the server, such as `http://localhost:8000` (with or without a path prefix, with
    /// or without /v1); without it the embedded engine is measured
    pub(crate) url: Option<String>,

    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) access: AccessArguments,
    #[command(flatten)]
    pub(crate) client: ClientArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "What is asked")]
pub(crate) struct WorkloadArguments {
    /// API to speak [default: chat]
    #[arg(long, value_enum)]
    pub(crate) api: Option<ApiName>,
    /// Model to ask for [default: the first that /v1/models lists]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Prompt length, an estimate without a tokenizer [default: 512]
    #[arg(long, value_name = "N")]
    pub(crate) input_tokens: Option<Lengths>,
    /// Answer length to ask for [default: 128]
    #[arg(long, value_name = "N")]
    pub(crate) output_tokens: Option<Lengths>,
    /// Ask for whole answers instead of streams
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Seed of every random draw [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "When it is asked")]
pub(crate) struct LoadArguments {
    /// Closed loop: keep this many requests in flight [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u32>,
    /// Closed loop: how long each of them rests after its reply, such as 2s [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) think_time: Option<Duration>,
    /// Whether that time is always the same or the mean of random ones [default: fixed]
    #[arg(long, value_enum)]
    pub(crate) think: Option<ThinkName>,
    /// Open loop: send this many requests per second, whatever is in flight; `inf` sends all at
    /// once
    #[arg(long, value_name = "PER_SECOND", value_parser = rates::parse)]
    pub(crate) rate: Option<f64>,
    /// Open loop: a rate that changes, such as 2..20:60s or 2..20:60s,20..5:30s; after its last
    /// segment it stays as it ended
    #[arg(long, value_name = "SEGMENTS", value_parser = rates::parse_ramp)]
    pub(crate) ramp: Option<Ramp>,
    /// How a ramp gets from rate to rate [default: linear]
    #[arg(long, value_enum)]
    pub(crate) ramp_curve: Option<RampCurveName>,
    /// Open loop: hold back what is due while this many are in flight (capped-open)
    #[arg(long, value_name = "N")]
    pub(crate) max_concurrency: Option<u32>,
    /// How the requests of an open loop are spaced [default: poisson]
    #[arg(long, value_enum)]
    pub(crate) arrivals: Option<ArrivalsName>,
    /// Shape of gamma arrivals, as in `vllm bench serve`: 1 is Poisson, below 1 is burstier, above
    /// more even
    #[arg(long, value_name = "K")]
    pub(crate) burstiness: Option<f64>,
    /// Stop after this many requests [default: 100; a ramp is played to its end]
    #[arg(long, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// Stop releasing requests after this time, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) duration: Option<Duration>,
    /// With both --requests and --duration: go on until both are reached, or the first [default:
    /// both]
    #[arg(long, value_enum)]
    pub(crate) until: Option<UntilName>,
    /// Requests to send before the run, which are not counted [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) warm_up: Option<u64>,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArguments {
    /// Extra header of every request, as "Name: value"; values are never stored
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// One connection for many requests, a fresh one for each, or each user's own [default: as
    /// the server does]
    #[arg(long, value_enum)]
    pub(crate) connections: Option<ConnectionsName>,
    /// Speak HTTP/2, over TLS or not; tokens are then stamped by this program, not by the kernel
    #[arg(long)]
    pub(crate) http2: bool,
    /// Do not check the server's TLS certificate: anybody may answer, and every page says so
    #[arg(long)]
    pub(crate) insecure: bool,
    /// File that holds the API key; else the variable `OPENAI_API_KEY` is used
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "This client")]
pub(crate) struct ClientArguments {
    /// Threads that drive the load, a core for each [default: one per four cores, at most 8]
    #[arg(long, value_name = "N")]
    pub(crate) client_cores: Option<u32>,
    /// Cores to keep those threads on, such as 2,4-6 [default: as the system likes]
    #[arg(long, value_name = "LIST", value_parser = cores::parse)]
    pub(crate) pin_cores: Option<CoreList>,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Limits")]
#[expect(clippy::struct_field_names, reason = "the field's name is the flag's")]
pub(crate) struct LimitArguments {
    /// Time to connect [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Time from sending to the first token [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) first_token_timeout: Option<Duration>,
    /// Silence inside a stream [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Whole answer [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) total_timeout: Option<Duration>,
    /// Requests in flight after the run is stopped, or after its time is over [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) drain_timeout: Option<Duration>,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Results")]
pub(crate) struct ResultArguments {
    /// Fact to store with the results, as key=value; may be repeated
    #[arg(long = "metadata", value_name = "K=V")]
    pub(crate) metadata: Vec<String>,
    /// Show the plan and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Exit with 4 on a degraded run too
    #[arg(long)]
    pub(crate) strict: bool,
    /// No progress and no talk; results and errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug, Default)]
pub(crate) struct StoreArguments {
    /// Folder of stored runs [default: ./runs, or `INFEROMETER_RUNS`]
    #[arg(long = "output", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args, Debug, Default)]
pub(crate) struct PageArguments {
    /// Print one JSON document instead of the page (short for --format json)
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// What to print: the page, the JSON document, or the "Serving Benchmark Result" block with
    /// the definitions of `vllm bench serve` [default: page]
    #[arg(long, value_enum)]
    pub(crate) format: Option<PageFormat>,
}

impl PageArguments {
    /// What was asked for outright.
    pub(crate) fn asked(&self) -> Option<PageFormat> {
        self.format.or(self.json.then_some(PageFormat::Json))
    }

    pub(crate) fn format(&self) -> PageFormat {
        self.asked().unwrap_or(PageFormat::Page)
    }
}

#[derive(Args, Debug)]
pub(crate) struct CalibrateArguments {
    /// Fewer levels and less time: a quarter of a minute, and rougher numbers
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) client: ClientArguments,
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

#[derive(Args, Debug)]
pub(crate) struct RunsArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StoredRunArguments {
    /// A run's id, the beginning of one, `latest`, or the path of its folder
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ApiName {
    Chat,
    Completions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ArrivalsName {
    Constant,
    Poisson,
    Gamma,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ThinkName {
    Fixed,
    Exponential,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RampCurveName {
    Linear,
    Exponential,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UntilName {
    Both,
    First,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ConnectionsName {
    Reuse,
    New,
    PerUser,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    Page,
    Json,
    Vllm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EngineMode {
    Echo,
    Paced,
}
