//! What the user may type. Nothing has a default here: defaults live where drafts are resolved.

mod bench;
mod engine;
mod experiment;
pub(crate) mod foreign;
mod help;
pub(crate) mod hints;
mod judging;
mod results;
mod workers;

use std::any::TypeId;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

pub(crate) use bench::*;
pub(crate) use engine::*;
pub(crate) use experiment::*;
pub(crate) use inferometer_model::spec::{Grammar, Time, Written, count, number};
pub(crate) use judging::*;
pub(crate) use results::*;
pub(crate) use workers::*;

use crate::experiment::schema;

/// What `--version` prints behind the name.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("INFEROMETER_COMMIT"),
    "\nbuild:  ",
    env!("INFEROMETER_BUILD"),
);

/// Measures LLM inference servers, and reports how valid its numbers are.
///
/// Without a command it plays the suite `quick` on the embedded engine: about half a minute, and
/// nothing else is needed.
#[derive(Debug, Parser)]
#[command(name = "inferometer", version, long_version = VERSION, max_term_width = 100, allow_negative_numbers = true)]
#[command(mut_subcommands(with_flags))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure one server, once or several times
    #[command(allow_negative_numbers = true)]
    Run(Box<RunArguments>),
    /// Measure many workloads on one server, and write a report that can be published
    ///
    /// A suite is a list of scenarios: built in (--list shows them) or a file of your own. All runs
    /// are one set in the folder of runs.
    #[command(allow_negative_numbers = true)]
    Suite(Box<SuiteArguments>),
    /// Measure at many loads, or resume a set that was stopped
    ///
    /// Rates or numbers in flight, each measured once or several times, on one server or on several
    /// side by side; the highest load that meets its SLOs. All runs are one set in the folder of
    /// runs.
    #[command(allow_negative_numbers = true)]
    Sweep(Box<SweepArguments>),
    /// Deploy servers on hardware presets, measure each, and rank them
    ///
    /// A matrix is presets × models × context lengths × parallel strategies × flags: built in
    /// (--list shows them) or a file of your own. Every cell is deployed, measured, drained and stopped;
    /// a cell that fails is a result. All runs are one set in the folder of runs.
    #[command(allow_negative_numbers = true)]
    Matrix(Box<MatrixArguments>),
    /// Simulate a run in virtual time, against the embedded engine
    ///
    /// The same experiment, records and page as `run`, thousands of times faster than real time, and
    /// marked as simulated. Several files are played in their order on one engine, which keeps its
    /// prefix cache.
    #[command(allow_negative_numbers = true)]
    Simulate(Box<SimulateArguments>),
    /// Fit an engine profile to measured results, and report how well it predicts them
    ///
    /// Moves a few coefficients of the step-time model, within what the hardware can do, until a
    /// simulation reproduces the measured values; then checks how well it predicts rows that it has
    /// not seen.
    #[command(allow_negative_numbers = true)]
    Fit(Box<FitArguments>),
    /// Probe a server for two minutes, learn its step times, and write a profile
    ///
    /// A staircase of requests in flight, with prompts of many lengths that the server has not seen.
    /// Simulations with the profile predict other loads of that server, with intervals. Options under
    /// "The embedded engine" tell what is known of a server's settings and hardware.
    #[command(allow_negative_numbers = true)]
    Profile(Box<ProfileArguments>),
    /// Rank settings and loads of a server in virtual time, and prove the best ones by measurements
    ///
    /// Each load that `sweep` takes is simulated with each setting that the profile models; what it
    /// cannot model is listed. The profile of a live server is learned by `profile`.
    #[command(allow_negative_numbers = true)]
    Tune(Box<TuneArguments>),
    /// How many replicas of which hardware serve a rate or so many users within SLOs, and the price
    #[command(allow_negative_numbers = true)]
    Capacity(Box<CapacityArguments>),
    /// Compare runs or sets: what changed, with confidence intervals, and whether it is better
    ///
    /// Refuses what is not comparable and says why. Exits with 10 when the primary quantity is worse,
    /// shown by at least two runs a side.
    Compare(CompareArguments),
    /// Show what a run would send, and save it
    ///
    /// Sends nothing, but with --save, a URL and no tokenizer the server is asked how it counts
    /// words.
    #[command(allow_negative_numbers = true)]
    Plan(Box<PlanArguments>),
    /// Check what a server supports and what is wrong with it, each finding with its remedy
    #[command(allow_negative_numbers = true)]
    Check(Box<CheckArguments>),
    /// Measure this client on this machine: how fast it is, and how exact
    ///
    /// Starts the embedded engine and compares what the client reports with what the engine did:
    /// a ladder of concurrency levels, the errors of TTFT and ITL, the pacing of an open loop, and
    /// the memory of a stream. Takes about two minutes; nothing else should run at that time. The
    /// result is kept in the cache folder of the user, for this machine, kernel and version.
    Calibrate(CalibrateArguments),
    /// Check stored runs against thresholds, such as ttft.p99<500ms
    ///
    /// One run is judged by the interval within it, several runs of the same experiment by the
    /// interval between them. Exits with 99 when a threshold is missed or cannot be shown to be met.
    Require(RequireCommand),
    /// Write the report of stored runs and sets, as HTML, Markdown, CSV or JSON
    ///
    /// Without --format the HTML page and the Markdown page with its charts are put into the folder
    /// of the run or set, and the path of the HTML page is printed.
    Report(ReportArguments),
    /// Show where the time of a stored run went, from the server's steps
    ///
    /// Tokens of one step leave together, so their arrivals show which requests were in each step and how
    /// long it took: what the time between tokens and TTFT consist of, with what can be done about it.
    Anatomy(AnatomyArguments),
    /// Import result files of other tools, so that every command can use them
    ///
    /// The file is kept as it is. What could not be mapped is listed, and what is missing stays
    /// missing.
    Import(ImportArguments),
    /// Check published results without their server: arithmetic, hardware, caches, lost requests, samples
    ///
    /// Reads what `import` reads, pages with tables of results, and tables typed into TOML. Each finding
    /// has its evidence and what would settle it. Exits with 4 when a figure cannot be true or describes
    /// only a part of the load.
    Audit(AuditArguments),
    /// Judge another benchmark client: what it reports, beside the truth of the server that it measured
    ///
    /// Starts the embedded engine, whose truth is known, runs the client's own command against it with
    /// clean, overloaded, failing and oddly framed streams, and grades its counts, times and rates. Exits
    /// with 4 from grade D on.
    Judge(JudgeArguments),
    /// Write a run or a set as one file that `verify` checks and recomputes on any machine
    Bundle(BundleArguments),
    /// Write runs in other tools' formats
    Export(ExportArguments),
    /// Merge the runs of the workers of one load into one run
    ///
    /// The workers were started with `run --stripe`, or by `run --on`. Every record of every worker is
    /// in the merged run, and its figures are computed from all of them. A worker that is missing,
    /// died or began late is named, and its requests are accounted for. Exits with 4 if the run is
    /// invalid.
    Merge(MergeArguments),
    /// Do what `vllm bench` does, with the same flags, labels and files
    #[command(allow_negative_numbers = true)]
    Bench(Box<BenchArguments>),
    /// Explain a metric or a term, how it is computed, and what other tools call it
    Explain(ExplainArguments),
    /// Start the embedded engine as a separate server, with known step times
    #[command(allow_negative_numbers = true)]
    Engine(Box<EngineArguments>),
    /// List stored runs, sets and imports, or remove some of them
    #[command(args_conflicts_with_subcommands = true)]
    Runs(Box<RunsArguments>),
    /// Show which values files, variables and flags set, and where each comes from
    ///
    /// A value is taken from the first of these that sets it: a flag, the experiment file, an
    /// `INFEROMETER_*` variable, the project's inferometer.toml, the user's config.toml.
    #[command(allow_negative_numbers = true)]
    Config(Box<ConfigArguments>),
    /// Finish a run that ended without being saved, as after a crash
    Recover(StoredRunArguments),
    /// Print the JSON Schema of the experiment file, of a suite or of a matrix
    Schema(SchemaArguments),
    /// Show the facts about this machine that every run stores; --json is for --server-info
    System(SystemArguments),
    /// Show stored runs in a browser: list, overlay, explore, requests, and runs that are going on
    ///
    /// Serves pages on this machine and prints their address. It only reads, unless --allow-run is
    /// set.
    Ui(UiArguments),
    /// Recompute the summary of a stored run, set, import or bundle, and compare it with what is stored
    Verify(StoredRunArguments),
    /// Print the script that completes commands, flags and names in a shell
    Completions(CompletionsArguments),
    /// Print the manual page of a command, or write those of all commands into a folder
    Man(ManArguments),
}

impl Command {
    /// What is set about the results of a command that measures or simulates.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other command has them")]
    pub(crate) fn results(&self) -> Option<&ResultArguments> {
        match self {
            Self::Run(arguments) => Some(&arguments.results),
            Self::Suite(arguments) => Some(&arguments.results),
            Self::Sweep(arguments) => Some(&arguments.results),
            Self::Matrix(arguments) => Some(&arguments.results),
            Self::Simulate(arguments) => Some(&arguments.results),
            Self::Profile(arguments) => Some(&arguments.results),
            Self::Tune(arguments) => Some(&arguments.results),
            Self::Capacity(arguments) => Some(&arguments.results),
            _ => None,
        }
    }
}

impl Default for Command {
    fn default() -> Self {
        Self::Suite(Box::new(SuiteArguments::named("quick")))
    }
}

/// Completes what the fields of the arguments leave out. A field without `long` and `value_name` is a
/// flag of its own name, and its type names the value; a field with `value_name` alone is positional.
fn with_flags(command: clap::Command) -> clap::Command {
    help::shortened(command.mut_args(flag).mut_subcommands(with_flags))
}

pub(crate) fn flag(argument: Arg) -> Arg {
    let (name, kind) = (argument.get_id().to_string(), argument.get_value_parser().type_id());
    let argument = with_numbers(argument);
    let is_named = argument.get_value_names().is_some_and(|names| names != [name.to_uppercase()]);
    if argument.get_long().is_some() || is_named {
        return argument;
    }
    let whole = [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    let takes_value = argument.get_action().takes_values();
    let argument = argument.long(name.replace('_', "-"));
    if whole.iter().any(|whole| kind == *whole) {
        argument.value_name("N")
    } else if kind == TypeId::of::<PathBuf>() {
        argument.value_name("FILE")
    } else if kind == TypeId::of::<Time>() {
        argument.value_name("TIME").allow_hyphen_values(true)
    } else if kind == TypeId::of::<bool>() && takes_value {
        // `--http2` and `--http2=false`.
        let argument = argument.num_args(0..=1).require_equals(true).default_missing_value("true");
        argument.value_name("BOOL").hide_possible_values(true)
    } else {
        argument
    }
}

/// Numbers as people write them, and messages that say how.
fn with_numbers(argument: Arg) -> Arg {
    let kind = argument.get_value_parser().type_id();
    // A percentage has a parser of its own.
    if argument.get_value_names().is_some_and(|names| names == ["PERCENT"]) {
        return argument;
    }
    let real = |text: &str| number(text).ok_or("write a number, such as 0.5, 20 or 2k");
    let long = argument.get_long().unwrap_or(argument.get_id().as_str()).replace('_', "-");
    if kind == TypeId::of::<u16>() {
        argument.value_parser(move |text: &str| count_of_flag::<u16>(text, &long))
    } else if kind == TypeId::of::<u32>() {
        argument.value_parser(move |text: &str| count_of_flag::<u32>(text, &long))
    } else if kind == TypeId::of::<u64>() {
        argument.value_parser(move |text: &str| count_of_flag::<u64>(text, &long))
    } else if kind == TypeId::of::<f64>() {
        argument.value_parser(real)
    } else {
        argument
    }
}

/// A whole number; the message about any other value names the range of the flag, which is that of
/// its key in the experiment file.
fn count_of_flag<T: TryFrom<u64>>(text: &str, long: &str) -> Result<T, String> {
    let with_range = |problem| match schema::range_of_flag(&format!("--{long}")) {
        Some(range) => format!("{problem}; it must be {range}"),
        None => problem,
    };
    count(text).map_err(with_range)
}

/// A flag with one of these names as its value.
fn choice<T: Copy + Send + Sync>(
    choices: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(choices.iter().map(|(name, _)| *name)).try_map(move |typed| {
        let chosen = choices.iter().find(|(name, _)| *name == typed);
        chosen.map(|(_, value)| *value).ok_or("is not known")
    })
}

/// The flags of a table that are set.
pub(crate) fn set_flags(table: &impl Serialize) -> Vec<String> {
    let Ok(Value::Object(table)) = serde_json::to_value(table) else { return Vec::new() };
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    let is_set =
        |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && !is_empty(value);
    let set = table.iter().filter(|(_, value)| is_set(value));
    set.map(|(key, _)| format!("--{}", key.replace('_', "-"))).collect()
}

#[derive(Args, Debug, Default)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Simulate it in virtual time; `inferometer simulate` is short for this
    #[arg(long = "virtual", help_heading = "Virtual time")]
    pub(crate) virtual_time: bool,
    /// Hold the run to the rules of an audit: at least a minute and 662 requests, a seed that nobody
    /// chooses, no warm cache, a client with room to spare; its page has a table of them. The hash of
    /// the drawn nonce is printed first
    #[arg(long, conflicts_with_all = ["virtual_time", "on", "stripe"], help_heading = "Audit")]
    pub(crate) audit: bool,
    /// Text from the auditor that the seed of an audited run follows from, beside the drawn nonce; `-`
    /// asks for it once the hash of the drawn one is printed
    #[arg(long, value_name = "TEXT", help_heading = "Audit")]
    #[arg(conflicts_with_all = ["virtual_time", "on", "stripe"])]
    pub(crate) audit_nonce: Option<String>,
    /// Simulation: keep every record, or none [default: all]
    #[arg(long, value_enum, value_name = "WHICH")]
    #[arg(requires = "virtual_time", help_heading = "Virtual time")]
    pub(crate) records: Option<Records>,
    /// Send the result to mlflow=URL or to otlp=URL when it is stored; may be repeated. Keys come from
    /// the variables of the receivers' own clients (`MLFLOW_TRACKING_TOKEN`,
    /// `OTEL_EXPORTER_OTLP_HEADERS`)
    #[arg(long, value_name = "TO=URL", help_heading = "Results")]
    #[arg(conflicts_with_all = ["virtual_time", "on", "stripe", "runs"])]
    pub(crate) push: Vec<crate::push::Destination>,
    #[command(flatten)]
    pub(crate) workers: WorkerArguments,
}

#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Keep every record, or none: then a short page is all there is, in memory that does not grow
    /// with the requests beyond the plan [default: all]
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Results")]
    pub(crate) records: Option<Records>,
}

/// What a simulation keeps of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Records {
    All,
    None,
}

#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// File to write every request to, with its words, as JSON lines; `run --plan FILE` plays it, and
    /// `-` prints them instead of the page
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) save: Option<PathBuf>,
    /// Print one JSON document instead of the page
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Print one JSON document instead of the page
    pub(crate) json: bool,
    /// No messages; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Results")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ResultArguments {
    /// Show the plan and send nothing
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    #[command(flatten)]
    pub(crate) require: RequireArguments,
    /// Exit with 4 on a degraded run too
    #[arg(long, help_heading = "Results")]
    pub(crate) strict: bool,
    /// How progress is shown: live (a page of figures), bar, lines (one per second), json (an object
    /// for each event), or none [default: on a terminal live for studies and from 20 s on, else a bar;
    /// lines elsewhere]
    #[arg(long, value_enum, value_name = "HOW", hide_possible_values = true)]
    #[arg(help_heading = "Results")]
    pub(crate) progress: Option<ProgressStyle>,
    /// Short for --progress live
    #[arg(long, conflicts_with = "progress", help_heading = "Results")]
    pub(crate) live: bool,
    /// No progress and no messages; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

/// How the progress of a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressStyle {
    Live,
    Bar,
    Lines,
    Json,
    None,
}

impl ResultArguments {
    pub(crate) fn progress(&self) -> Option<ProgressStyle> {
        self.progress.or(self.live.then_some(ProgressStyle::Live))
    }
}

#[derive(Args, Debug, Default)]
pub(crate) struct StoreArguments {
    /// Folder of stored runs [default: ./runs, or `INFEROMETER_RUNS`]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args, Debug, Default)]
pub(crate) struct PageArguments {
    /// Print one JSON document instead of the page (short for --format json)
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Print the whole page of a run and not its summary (short for --format full)
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub(crate) full: bool,
    /// What to print: the page, the whole page, the JSON document, or the "Serving Benchmark Result" block with
    /// the definitions of `vllm bench serve` [default: page]
    #[arg(long, value_enum)]
    pub(crate) format: Option<PageFormat>,
}

impl PageArguments {
    /// The format that is set.
    pub(crate) fn asked(&self) -> Option<PageFormat> {
        let short = match (self.json, self.full) {
            (true, _) => Some(PageFormat::Json),
            (false, true) => Some(PageFormat::Full),
            (false, false) => None,
        };
        self.format.or(short)
    }

    pub(crate) fn format(&self) -> PageFormat {
        self.asked().unwrap_or(PageFormat::Page)
    }
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArguments {
    /// That of a suite file
    #[arg(long, conflicts_with = "matrix")]
    pub(crate) suite: bool,
    /// That of a matrix file
    pub(crate) matrix: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) what: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every value that is set, and where it comes from
    #[command(allow_negative_numbers = true)]
    Show(Box<ConfigShowArguments>),
}

#[derive(Args, Debug)]
pub(crate) struct ConfigShowArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Print one JSON document
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RunsArguments {
    #[command(subcommand)]
    pub(crate) what: Option<RunsCommand>,
    #[command(flatten)]
    pub(crate) filter: RunsFilter,
    /// Show how much room each takes on the disk
    #[arg(long)]
    pub(crate) sizes: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Print one JSON document
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Remove what the filters select: shows it first, and asks
    ///
    /// What is running is never removed. Without a terminal to ask at, nothing is removed unless
    /// --yes is given.
    Prune(PruneArguments),
}

/// Which runs, sets and imports are meant; those that fit every filter.
#[derive(Args, Debug, Default, PartialEq)]
#[command(next_help_heading = "Filters")]
pub(crate) struct RunsFilter {
    /// Words that the id, model, server, label, file or facts must contain
    #[arg(value_name = "TEXT")]
    pub(crate) words: Vec<String>,
    /// Only these: run, set, repeat, sweep, search, suite, matrix or import
    #[arg(long, value_name = "KIND", value_parser = KINDS)]
    pub(crate) kind: Option<String>,
    /// Only with this verdict: valid, degraded, invalid or simulated
    #[arg(long, value_name = "VERDICT", value_parser = ["valid", "degraded", "invalid", "simulated"])]
    pub(crate) verdict: Option<String>,
    /// Only what began at this date or later, such as 2026-11-18, or in the last 12h or 7d
    #[arg(long, value_name = "DATE|TIME", value_parser = moment)]
    pub(crate) since: Option<Timestamp>,
    /// Only what began before this date, or longer ago than 12h or 30d
    #[arg(long, value_name = "DATE|TIME", visible_alias = "older-than", value_parser = moment)]
    pub(crate) before: Option<Timestamp>,
}

const KINDS: [&str; 8] = ["run", "set", "repeat", "sweep", "search", "suite", "matrix", "import"];

/// A date in this machine's time zone, or a time before now.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = std::time::Duration::read(text) {
        return Timestamp::now().checked_sub(time).map_err(|_| format!("`{text}` is too long ago"));
    }
    let date: Option<jiff::civil::Date> = text.trim().parse().ok();
    let zoned = date.and_then(|date| date.to_zoned(jiff::tz::TimeZone::system()).ok());
    zoned
        .map(|zoned| zoned.timestamp())
        .ok_or_else(|| format!("`{text}` is not a date; write 2026-11-18, or a time such as 7d"))
}

#[derive(Args, Debug)]
pub(crate) struct PruneArguments {
    #[command(flatten)]
    pub(crate) filter: RunsFilter,
    /// Keep this many of the newest that the filters select
    pub(crate) keep: Option<u32>,
    /// Remove without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

#[derive(Args, Debug)]
pub(crate) struct UiArguments {
    /// Folder of stored runs, as with --output
    #[arg(value_name = "FOLDER", conflicts_with = "folder")]
    pub(crate) runs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Port to listen on; 0 is any free one [default: 7431, or a free one where it is taken]
    pub(crate) port: Option<u16>,
    /// Address to listen on; one that other machines can reach needs --token [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<IpAddr>,
    /// File with a token that readers must have
    pub(crate) token: Option<PathBuf>,
    /// Add a form that starts runs and suites on this machine
    pub(crate) allow_run: bool,
    /// Open the page in a browser
    pub(crate) open: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SystemArguments {
    /// Print one JSON document
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// The shell that reads the script
    #[arg(value_name = "SHELL")]
    pub(crate) name: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// Command whose page is printed, or the folder to write the pages of all commands to, written
    /// with a slash, such as ./man1 [default: print the page of the program]
    #[arg(value_name = "COMMAND|DIR")]
    pub(crate) page: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct StoredRunArguments {
    /// The id of a run, set or import, the beginning of one, `latest`, the path of its folder or bundle,
    /// or SET/N for a run of a set
    #[arg(value_name = "NAME")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    Page,
    Full,
    Json,
    Vllm,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Every positional argument, as `command NAME`.
    fn positionals(command: &clap::Command) -> Vec<String> {
        let named = command.get_positionals().map(|argument| {
            let names = argument.get_value_names().unwrap_or_default();
            format!("{} {}", command.get_name(), names.join(" "))
        });
        named.chain(command.get_subcommands().flat_map(positionals)).collect()
    }

    #[test]
    fn every_other_field_is_a_flag() {
        let found = positionals(&Arguments::command()).join(", ");
        let expected = "run URL|FILE, suite NAME|FILE, suite URL|FILE, sweep URL|FILE, \
                        matrix NAME|FILE, simulate URL|FILE, fit RESULT, profile URL|FILE, \
                        tune URL|FILE, capacity URL|FILE, compare SIDE, plan URL|FILE, \
                        check URL|FILE, require RUN|LIMIT, report RUN, anatomy RUN, import FILE, \
                        audit FILE, judge CLIENT, bundle NAME, export RUN, merge DIR, \
                        explain WORD, runs TEXT, prune TEXT, \
                        show URL|FILE, recover NAME, ui FOLDER, verify NAME, completions SHELL, \
                        man COMMAND|DIR";
        assert_eq!(found, expected);
    }
}
