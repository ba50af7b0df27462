//! The flags and tables of an experiment, and the flags of the commands that measure many runs: sweep,
//! suite and matrix.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, Command, Id};
use inferometer_model::spec::{
    AnswersTable, ClientTable, ControlTable, EngineTable, Grammar, LimitTable, LoadTable, Share,
    Slo, SourceTable, TargetTable, Time, WorkloadTable, Written, number,
};
use inferometer_model::study::{Prompts, RunOrder, StopAt};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{KubernetesTable, NarratorArguments, ResultArguments, SchedulerArguments, SlurmTable};
use crate::draft::deploy::DeployTable;
use crate::experiment::schema::embedded;
use crate::study::sweep::{Bound, ConcurrencyLevels, Find, RateLevels};

/// Everything that says what is measured; `run`, `plan` and `check` take the same.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ExperimentArguments {
    /// Base URL of the server, such as `http://localhost:8000` (with or without a path prefix, with
    /// or without /v1), an experiment file, or both; without a URL the embedded engine is measured
    #[arg(value_name = "URL|FILE")]
    pub(crate) places: Vec<String>,
    /// Base URL of the server, as a flag
    #[arg(long, value_name = "URL", help_heading = "Target")]
    pub(crate) url: Option<String>,
    /// Experiment file, in TOML, whose values the other flags override; see `inferometer schema`. Or
    /// the name of a built-in one: r3, the load of the matrix r3
    #[arg(short, long, value_name = "FILE|NAME")]
    pub(crate) experiment: Option<PathBuf>,
    /// Value of the experiment file to override, such as workload.mix.0.weight=2; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    #[command(flatten)]
    pub(crate) tables: Experiment,
    /// The same as --duration; a number without a unit is seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "duration")]
    #[arg(help_heading = "Load")]
    pub(crate) max_seconds: Option<Time>,
    /// Extra header of every request, as "Name: value"; values are never stored. In a value {request}
    /// stands for the name of the request, and {session} for that of its session
    #[arg(long = "header", value_name = "HEADER", help_heading = "Target")]
    pub(crate) headers: Vec<String>,
    /// Ask for whole answers instead of streams
    #[arg(long, conflicts_with = "stream", help_heading = "Workload")]
    pub(crate) no_stream: bool,
    /// SLO to judge by, such as ttft<500ms of each request or ttft.p99<1s of the run; may be
    /// repeated
    #[arg(long = "slo", value_name = "SLO", help_heading = "SLOs")]
    pub(crate) slos: Vec<Slo>,
    /// Fact to store with the results, as key=value; may be repeated
    #[arg(long = "metadata", value_name = "K=V", help_heading = "Results")]
    pub(crate) facts: Vec<String>,
    /// Name that `inferometer runs` shows; short for --metadata label=TEXT
    #[arg(long, value_name = "TEXT", help_heading = "Results")]
    pub(crate) label: Option<String>,
    /// Read no inferometer.toml, no configuration of the user, and no `INFEROMETER_*` variables of flags
    #[arg(long)]
    pub(crate) no_config: bool,
}

/// A duration, or a number of seconds.
fn seconds(text: &str) -> Result<Time, String> {
    let bare = number(text).filter(|_| !text.ends_with(|c: char| c.is_ascii_alphabetic()));
    match bare.and_then(|bare| Duration::try_from_secs_f64(bare).ok()) {
        Some(time) => Ok(time.into()),
        None => Time::read(text),
    }
}

/// An Inferometer experiment: what is asked of which server, when, and which SLOs apply.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct Experiment {
    #[command(flatten)]
    pub(crate) target: TargetTable,
    #[command(flatten)]
    pub(crate) workload: WorkloadTable,
    #[command(flatten)]
    pub(crate) load: LoadTable,
    #[arg(skip)]
    #[schemars(schema_with = "slo_schema")]
    pub(crate) slo: BTreeMap<String, Value>,
    #[command(flatten)]
    pub(crate) repeat: RepeatTable,
    /// Flags of the command `sweep` alone; `run` measures the one load of `[load]`.
    #[arg(skip)]
    pub(crate) sweep: SweepTable,
    #[command(flatten)]
    pub(crate) client: ClientTable,
    #[command(flatten)]
    pub(crate) limits: LimitTable,
    #[command(flatten)]
    pub(crate) control: ControlTable,
    #[command(flatten)]
    pub(crate) answers: AnswersTable,
    // Few measure the embedded engine or a deployment of their own, and both have many flags.
    #[command(flatten)]
    pub(crate) engine: EngineTable,
    #[command(flatten)]
    pub(crate) deploy: DeployTable,
    #[arg(skip)]
    pub(crate) slurm: SlurmTable,
    #[arg(skip)]
    pub(crate) kubernetes: KubernetesTable,
    #[arg(skip)]
    #[schemars(schema_with = "metadata_schema")]
    pub(crate) metadata: BTreeMap<String, Value>,
}

/// How often the measurement is repeated.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "Repetition")]
pub(crate) struct RepeatTable {
    /// Measure this many times, one after the other, each with the next seed [default: 1]
    #[arg(long = "repeat", value_name = "N")]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) runs: Option<u32>,
    /// Pause between repeated runs, such as 60s [default: none]
    pub(crate) cool_down: Option<Time>,
    /// Command that restarts the server, by `sh`, before each run but the first
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart: Option<String>,
    /// How long a restarted server may take until it answers again [default: 10m]
    pub(crate) restart_timeout: Option<Time>,
    /// End early when the runs agree this well, such as `output_throughput=2%`: half of the
    /// 95 % confidence interval of the mean, as a share of it
    #[arg(long, value_name = "QUANTITY=SHARE")]
    pub(crate) stop_at: Option<Written<StopAt>>,
}

/// SLOs in both of their forms.
fn slo_schema(_: &mut SchemaGenerator) -> Schema {
    embedded("slo")
}

fn metadata_schema(_: &mut SchemaGenerator) -> Schema {
    embedded("metadata")
}

/// Many loads, by `inferometer sweep`; `run` takes no notice of it.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "Levels")]
pub(crate) struct SweepTable {
    /// Rates to measure at, in requests per second: numbers and `inf`, and ranges such as
    /// 500..1000:50 (by steps of 50) or 1..64*2 (by a factor of 2), after commas
    #[arg(long, value_name = "LEVELS", allow_hyphen_values = true)]
    pub(crate) rates: Option<Written<RateLevels>>,
    /// Requests in flight to measure at: numbers and ranges such as 1..64*2, after commas
    /// [default, without rates: 1..64*2]
    #[arg(long, value_name = "LEVELS", allow_hyphen_values = true)]
    pub(crate) concurrencies: Option<Written<ConcurrencyLevels>>,
    /// Requests of each level, as a multiple of its concurrency [default, without a number of
    /// requests or a duration: 10, and at least 100 requests]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) waves: Option<u32>,
    /// Server to measure beside others: NAME=URL, NAME=embedded, NAME=embedded:PROFILE, or
    /// NAME=FILE with its `[target]`, `[engine]` or `[deploy]` table; the flag may be repeated
    #[arg(long = "target", value_name = "NAME=WHERE")]
    pub(crate) targets: Option<Vec<String>>,
    /// Whether levels and servers take turns, or one is measured to its end before the next
    /// [default: interleaved]
    pub(crate) order: Option<RunOrder>,
    /// More levels around the knee, once the others are measured: steps to cut that stretch into
    /// [default: none; 8 when no number is given]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "8",
          value_name = "STEPS")]
    #[schemars(range(min = 2, max = 200), extend("examples" = [8]))]
    pub(crate) fine: Option<u32>,
    /// Runs at each level that --fine adds [default: as --repeat says]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) fine_runs: Option<u32>,
    /// Look for the highest level that meets these SLOs, such as
    /// 'max rate where ttft.p99<500ms, tpot.p99<50ms'
    #[arg(long, value_name = "QUESTION")]
    pub(crate) find: Option<Written<Find>>,
    /// Level that the search begins with [default: the lowest given, or 1]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) from: Option<Written<Bound>>,
    /// Level that the search never exceeds [default: 1000]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) at_most: Option<Written<Bound>>,
    /// Resolution of the answer, as a share of it [default: 5%]
    pub(crate) resolution: Option<Share>,
}

#[derive(Args, Debug)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    #[command(flatten)]
    pub(crate) sweep: SweepTable,
    #[command(flatten)]
    pub(crate) workers: SchedulerArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Simulate it in virtual time, with a new engine for each run
    #[arg(long = "virtual", help_heading = "Virtual time")]
    pub(crate) virtual_time: bool,
    /// Resume a set that was stopped. Its experiment is stored with it, and the names of its key files;
    /// keys themselves and headers are not, and must be given again
    #[arg(long, value_name = "SET", help_heading = "Results")]
    pub(crate) resume: Option<String>,
    /// With --resume: run the commands and read the files of a set that was begun elsewhere
    #[arg(long, requires = "resume", help_heading = "Results")]
    pub(crate) trust: bool,
}

impl SweepArguments {
    /// What was typed, as any other command would take it.
    pub(crate) fn merged(&self) -> ExperimentArguments {
        let mut experiment = self.experiment.clone();
        experiment.tables.sweep = self.sweep.clone();
        experiment
    }
}

/// What a server is probed with, and where its profile is written.
#[derive(Args, Debug)]
pub(crate) struct ProfileArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Numbers of requests in flight to probe with [default: 1..64*2]
    #[arg(long, value_name = "LEVELS", help_heading = "Probe")]
    pub(crate) concurrencies: Option<Written<ConcurrencyLevels>>,
    /// How long the probe sends requests, over all levels [default: 2m]
    #[arg(long, value_name = "TIME", help_heading = "Probe")]
    pub(crate) probe_time: Option<Time>,
    /// Probe the embedded engine in virtual time
    #[arg(long = "virtual", help_heading = "Virtual time")]
    pub(crate) virtual_time: bool,
    /// Name of the profile [default: learned]
    #[arg(long, value_name = "NAME", help_heading = "Results")]
    pub(crate) name: Option<String>,
    /// File to write the profile to; `--profile FILE` uses it
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) save: PathBuf,
    /// Save the profile even if it is unusable
    #[arg(long, help_heading = "Results")]
    pub(crate) force: bool,
}

/// Which settings and loads are ranked, and how many are measured.
#[derive(Args, Debug)]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    #[command(flatten)]
    pub(crate) levels: SweepTable,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Setting to vary, with its values, such as `max_num_seqs=64,128`, or `replicas=1,2`, which share
    /// the load; the flag may be repeated. Of a key that no profile models, such as `ub=256,512` for a
    /// `{ub}` in --serve, the first value is the present one [default: those that the profile models]
    #[arg(long, value_name = "KEY=VALUES", help_heading = "Tuning")]
    pub(crate) vary: Vec<String>,
    /// Deploy the best N settings and the present one, and compare them by measurements. A command of
    /// --serve may contain the settings, as in `-np {max_num_seqs} -b {max_num_batched_tokens}`
    #[arg(long, value_name = "N", help_heading = "Tuning")]
    pub(crate) prove: Option<u32>,
}

/// How much is to be served, and on what.
#[derive(Args, Debug)]
pub(crate) struct CapacityArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Hardware to choose from: NAME=embedded:PROFILE, or NAME=FILE with its engine and its price;
    /// the flag may be repeated [default: the profile that is set]
    #[arg(long = "target", value_name = "NAME=WHERE", help_heading = "Capacity")]
    pub(crate) targets: Option<Vec<String>>,
    /// Requests per second to serve
    #[arg(long, value_name = "RATE", help_heading = "Capacity")]
    #[arg(conflicts_with = "users", required_unless_present = "users")]
    pub(crate) serve_rate: Option<f64>,
    /// Users to serve, instead of a rate
    #[arg(long, value_name = "N", help_heading = "Capacity")]
    pub(crate) users: Option<u64>,
    /// Requests of one user in a day [default: 10]
    #[arg(long, value_name = "NUMBER", requires = "users", help_heading = "Capacity")]
    pub(crate) requests_per_day: Option<f64>,
    /// Rate of the busiest time over that of the mean [default: 3]
    #[arg(long, value_name = "FACTOR", requires = "users", help_heading = "Capacity")]
    pub(crate) peak: Option<f64>,
}

/// Flags that would make all scenarios alike are refused with a reason, and no help shows them: the
/// source of prompts and the load, but for what every scenario may share.
fn hide_refused(argument: Arg) -> Arg {
    let tables =
        [SourceTable::augment_args(Command::new("")), LoadTable::augment_args(Command::new(""))];
    let is_of_scenario = |id: &Id| {
        !["source", "warm_up"].contains(&id.as_str())
            && tables.iter().any(|table| table.get_arguments().any(|flag| flag.get_id() == id))
    };
    if is_of_scenario(argument.get_id()) { argument.hide(true) } else { argument }
}

#[derive(Args, Debug, Default)]
#[command(mut_args(hide_refused))]
pub(crate) struct SuiteArguments {
    /// Suite to play: a name that --list shows, or a file of your own [default: standard]
    #[arg(value_name = "NAME|FILE")]
    pub(crate) suite: Option<String>,
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Whether each scenario and level has different prompts, or all begin alike, so that one may
    /// find what another left in the server's prefix cache [default: as the suite says]
    #[arg(long, value_name = "WHICH", help_heading = "Suite")]
    pub(crate) prompts: Option<Prompts>,
    /// List the suites that are built in
    #[arg(long, conflicts_with_all = ["suite", "show"], help_heading = "Suite")]
    pub(crate) list: bool,
    /// Print the file of a built-in suite, as a beginning for one of your own
    #[arg(long, value_name = "NAME", conflicts_with = "suite", help_heading = "Suite")]
    pub(crate) show: Option<String>,
    #[command(flatten)]
    pub(crate) narrator: NarratorArguments,
    #[command(flatten)]
    pub(crate) workers: SchedulerArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Simulate it in virtual time
    #[arg(long = "virtual", help_heading = "Virtual time")]
    pub(crate) virtual_time: bool,
    /// Resume a suite that was stopped. Its experiment is stored with it, and the names of its key
    /// files; keys themselves and headers are not, and must be given again
    #[arg(long, value_name = "SET", conflicts_with = "suite", help_heading = "Results")]
    pub(crate) resume: Option<String>,
    /// With --resume: run the commands and read the files of a suite that was begun elsewhere
    #[arg(long, requires = "resume", help_heading = "Results")]
    pub(crate) trust: bool,
}

impl SuiteArguments {
    /// A suite as it is, on the embedded engine.
    pub(super) fn named(name: &str) -> Self {
        Self { suite: Some(name.to_owned()), ..Self::default() }
    }
}

#[derive(Args, Debug, Default)]
// A set of cells has no one result that could be required, nor a block of one run: what is refused
// is not offered.
#[command(
    mut_arg("limits", |argument| argument.hide(true)),
    mut_arg("undecided", |argument| argument.hide(true)),
    mut_arg("junit", |argument| argument.hide(true)),
    mut_arg("step_summary", |argument| argument.hide(true)),
    mut_arg("format", |argument| argument
        .hide_possible_values(true)
        .help("What to print: page or json [default: page]")),
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct MatrixArguments {
    /// Matrix to measure: a name that --list shows, or a file of your own [default: r3]
    #[arg(value_name = "NAME|FILE")]
    pub(crate) matrix: Option<String>,
    /// Measure cells of the embedded engine in virtual time
    #[arg(long = "virtual")]
    pub(crate) virtual_time: bool,
    /// Resume a matrix that was stopped
    #[arg(long, value_name = "SET")]
    pub(crate) resume: Option<String>,
    /// With --resume: run the commands and read the files of a matrix that was begun elsewhere
    #[arg(long, requires = "resume")]
    pub(crate) trust: bool,
    /// Only the cells that are so, such as `preset=H100X1,model=Llama-8B`, and with `concurrency=10`
    /// only at this load; may be given several times
    #[arg(long, value_name = "FILTER")]
    pub(crate) only: Vec<String>,
    /// With --resume: measure again the cells that failed, and the runs in which requests failed
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,
    /// List the matrices that are built in
    #[arg(long, conflicts_with_all = ["matrix", "show"])]
    pub(crate) list: bool,
    /// Print the file of a built-in matrix, as a beginning for one of your own
    #[arg(long, value_name = "NAME", conflicts_with = "matrix")]
    pub(crate) show: Option<String>,
    /// Value of the file to override, such as load.requests=20; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(crate) sets: Vec<String>,
    /// How often each cell is deployed and measured [default: as the file says, or 1]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) repeat: Option<u32>,
    /// Presets that are measured at once [default: as the file says, or 1]
    pub(crate) lanes: Option<u32>,
    /// Seed of everything that is drawn [default: drawn for each command; 1 in virtual time]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) seed: Option<u64>,
    /// Extra header of every request, as "Name: value"; values are never stored
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}
