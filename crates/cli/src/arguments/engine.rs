//! Flags of the commands that deal with the embedded engine or this client: engine, calibrate and fit.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use inferometer_engine::metrics::MetricNames;
use inferometer_engine::{Mode, ReportForm};
use inferometer_model::spec::{ClientTable, EngineTable, Grammar};
use serde::Serialize;

use super::{StoreArguments, choice};

const MODES: [(&str, Mode); 4] = [
    ("serve", Mode::Serve),
    ("paced", Mode::Paced),
    ("echo", Mode::Echo),
    ("corpus", Mode::Corpus),
];
const METRIC_NAMES: [(&str, MetricNames); 3] = [
    ("vllm-v1", MetricNames::VllmV1),
    ("vllm-v0", MetricNames::VllmV0),
    ("sglang", MetricNames::Sglang),
];

const REPORT_FORMS: [(&str, ReportForm); 2] =
    [("vllm", ReportForm::Vllm), ("llama.cpp", ReportForm::LlamaCpp)];

#[derive(Args, Debug)]
pub(crate) struct CalibrateArguments {
    /// Fewer levels and less time: a quarter of a minute, and rougher numbers
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) client: ClientTable,
    /// Print one JSON document instead of the page
    pub(crate) json: bool,
    /// No progress; results and errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
#[command(
    mut_arg("engine_model", |model| model
        .long("model")
        .value_name("NAME")
        .help_heading(None)
        .help("In mode serve the model to play (see --list), else the name to serve under")),
    mut_arg("engine_seed", |seed| seed
        .long("seed")
        .help_heading(None)
        .help("Seed of text, jitter and noise [default: 0]")),
    mut_arg("engine_step", |step| step.long("step")),
    mut_arg("engine_speed", |speed| speed.long("speed")),
    mut_arg("hardware", |hardware| hardware.help("GPU to play, by its name in --list")),
    mut_arg("tp", |tp| tp.alias("tensor-parallel-size")),
    mut_arg("pp", |pp| pp.alias("pipeline-parallel-size")),
    mut_arg("enable_prefix_caching", |on| on.overrides_with("no_enable_prefix_caching")),
    mut_arg("enable_chunked_prefill", |on| on.overrides_with("no_enable_chunked_prefill")),
    mut_arg("async_scheduling", |on| on.overrides_with("no_async_scheduling")),
    mut_arg("enforce_eager", |on| on.overrides_with("no_enforce_eager")),
)]
pub(crate) struct EngineArguments {
    /// `serve` plays a vLLM server; `paced` keeps a given pace; `echo` answers as fast as it can;
    /// `corpus` plays the cases of the conformance corpus
    /// [default: serve]
    #[arg(long, value_parser = choice(&MODES))]
    pub(crate) mode: Option<Mode>,
    /// Port to listen on; 0 takes a free one [default: 8000]
    pub(crate) port: Option<u16>,
    /// Address to listen on [default: 127.0.0.1]
    pub(crate) host: Option<std::net::IpAddr>,
    #[command(flatten)]
    pub(crate) engine: EngineTable,
    #[command(flatten)]
    pub(crate) serve: ServeArguments,
    #[command(flatten)]
    pub(crate) paced: PacedArguments,
    /// Case of the corpus to play, once for each; a path that begins with /case/NAME chooses one itself
    /// [default: all, in turn]
    #[arg(long = "case", value_name = "NAME", help_heading = "Mode corpus")]
    pub(crate) cases: Vec<String>,
    /// End when standard input closes, so that the engine ends with its parent process
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

/// Flags of mode `serve` beside the options of the engine.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Mode serve")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ServeArguments {
    /// Print the known profiles, GPUs and models, and end
    pub(crate) list: bool,
    #[arg(long, hide = true, overrides_with = "enable_prefix_caching")]
    pub(crate) no_enable_prefix_caching: bool,
    #[arg(long, hide = true, overrides_with = "enable_chunked_prefill")]
    pub(crate) no_enable_chunked_prefill: bool,
    #[arg(long, hide = true, overrides_with = "async_scheduling")]
    pub(crate) no_async_scheduling: bool,
    #[arg(long, hide = true, overrides_with = "enforce_eager")]
    pub(crate) no_enforce_eager: bool,
    /// Name to serve the model under
    pub(crate) served_model_name: Option<String>,
    /// Names of the metrics at /metrics [default: those of vLLM's --generation]
    #[arg(long, value_name = "NAMES", value_parser = choice(&METRIC_NAMES))]
    pub(crate) metrics_names: Option<MetricNames>,
    /// Report the time in the queue, of the prefill and of the decoding with each answer, in the form
    /// of this server [default: not reported]
    #[arg(long, value_name = "FORM", value_parser = choice(&REPORT_FORMS))]
    pub(crate) request_times: Option<ReportForm>,
    /// Tokens at the beginning of each chat answer that are reasoning [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) reasoning_tokens: Option<u32>,
    /// Answer sums, JSON schemas and tools, this share of them right and the others wrong, from 0 to 1
    /// [default: words by chance]
    #[arg(long, value_name = "SHARE")]
    pub(crate) right_answers: Option<f64>,
    /// File with the key that clients must send [default: `INFEROMETER_ENGINE_API_KEY`]
    pub(crate) api_key_file: Option<std::path::PathBuf>,
    /// Keep a log of all steps at /steps
    pub(crate) log_steps: bool,
}

impl EngineArguments {
    /// The options of the engine, with what `--no-…` switches off.
    pub(crate) fn options(&self) -> EngineTable {
        let (mut engine, off) = (self.engine.clone(), &self.serve);
        for (is_off, on) in [
            (off.no_enable_prefix_caching, &mut engine.enable_prefix_caching),
            (off.no_enable_chunked_prefill, &mut engine.enable_chunked_prefill),
            (off.no_async_scheduling, &mut engine.async_scheduling),
            (off.no_enforce_eager, &mut engine.enforce_eager),
        ] {
            if is_off {
                *on = Some(false);
            }
        }
        engine
    }
}

#[derive(Args, Debug, Default, Serialize)]
#[command(next_help_heading = "Modes paced and echo")]
pub(crate) struct PacedArguments {
    /// Time from a request to its first token [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = Duration::read)]
    pub(crate) ttft: Option<Duration>,
    /// Time between tokens [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = Duration::read)]
    pub(crate) gap: Option<Duration>,
    /// Tokens per answer when the request does not say [default: 64]
    pub(crate) tokens: Option<u32>,
    /// Tokens that one event carries; in mode serve the first has one of its own [default: 1]
    pub(crate) tokens_per_write: Option<u32>,
    /// Events that one write carries [default: 1]
    pub(crate) events_per_write: Option<u32>,
    /// Share by which each interval may vary, from 0 to 1; in mode serve the share of its step by which
    /// each token may be late [default: 0]
    pub(crate) jitter: Option<f64>,
    /// Framing fault to commit; may be repeated (byte-wise, several-events, crlf, cr, comments,
    /// role-first, usage-on-last-choice, no-done, multi-line, bom)
    #[arg(long = "fault", value_name = "FAULT")]
    #[serde(rename = "fault")]
    pub(crate) faults: Vec<String>,
}

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct FitArguments {
    /// Measured results: our runs (folders, ids or `latest`), imports (ids, or `ID/N` for one result),
    /// other tools' files as `inferometer import` takes them, or typed-in tables (TOML, as in
    /// examples/published); `FILE@max_num_seqs=4096` where a result's server was set otherwise
    #[arg(value_name = "RESULT", required = true)]
    pub(crate) results: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) engine: EngineTable,
    /// Learn step times from the steps that our own runs show, instead of fitting coefficients; the
    /// hardware need not be known
    #[arg(long, help_heading = "Fit", conflicts_with_all = ["free", "input_spread", "output_spread"])]
    pub(crate) learn: bool,
    /// Coefficients to fit, at most one for two rows; `none` only reports how well the profile
    /// predicts the results as it is [default: the most influential ones]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Fit")]
    pub(crate) free: Vec<String>,
    /// Standard deviation over mean of the prompts' lengths, where a result has only their sum
    /// [default: 0, all alike]
    #[arg(long, value_name = "SHARE", help_heading = "Fit")]
    pub(crate) input_spread: Option<f64>,
    /// Standard deviation over mean of the answers' lengths, where a result has only their sum
    /// [default: 0, all alike]
    #[arg(long, value_name = "SHARE", help_heading = "Fit")]
    pub(crate) output_spread: Option<f64>,
    /// Skip the leave-one-out validation, which takes longest
    #[arg(long, help_heading = "Fit")]
    pub(crate) no_leave_one_out: bool,
    /// Name of the profile [default: that of the profile to start from, and -fitted]
    #[arg(long, value_name = "NAME", help_heading = "Results")]
    pub(crate) name: Option<String>,
    /// Where the results come from, for the profile's file [default: their file names]
    #[arg(long, value_name = "SENTENCE", help_heading = "Results")]
    pub(crate) source: Option<String>,
    /// File to write the profile to; `--profile FILE` uses it
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) save: Option<PathBuf>,
    /// Save the profile even if it is unusable
    #[arg(long, help_heading = "Results", requires = "save")]
    pub(crate) force: bool,
    /// Print one JSON document instead of the page
    pub(crate) json: bool,
    /// No messages; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}
