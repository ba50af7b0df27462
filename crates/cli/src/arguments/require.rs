//! What may be required of runs, and what may be asked about words.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use inferometer_analysis::Undecided;
use inferometer_model::spec::Slo;

use super::{PageArguments, StoreArguments};

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "What is required")]
pub(crate) struct RequireArguments {
    /// Limit on the result, such as ttft.p99<500ms or attainment>=95%; several may
    /// follow, and it may be repeated. Exits with 99 when one is missed or its keeping is not shown
    #[arg(long = "require", value_name = "LIMIT", num_args = 1..)]
    pub(crate) limits: Vec<Slo>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
}

/// How what is required is judged and told.
#[derive(Args, Debug, Default)]
pub(crate) struct GateArguments {
    /// What a limit counts as whose interval straddles it, or that cannot be judged [default: fail]
    #[arg(long, value_enum, value_name = "WHAT")]
    undecided: Option<UndecidedName>,
    /// File to write the requirements and promises to as JUnit XML, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// File to append a Markdown summary to [default: `GITHUB_STEP_SUMMARY`, where something is
    /// required]
    #[arg(long, value_name = "FILE")]
    pub(crate) step_summary: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UndecidedName {
    Pass,
    Fail,
}

impl GateArguments {
    pub(crate) fn undecided(&self) -> Undecided {
        match self.undecided {
            Some(UndecidedName::Pass) => Undecided::Pass,
            Some(UndecidedName::Fail) => Undecided::Fail,
            None => Undecided::default(),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct RequireCommand {
    /// Runs or imports (an id, the beginning of one, `latest`, the path of a folder, or IMPORT/N), then
    /// limits, such as ttft.p99<500ms; what has a `<` or a `>` is a limit
    #[arg(required = true, value_name = "RUN|LIMIT")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// Metrics (`ttft`), quantities (`ttft.p99`), words of the pages (`knee`), another tool's name
    /// (`mean_ttft_ms`) or the tool itself (`vllm`) [default: list them]
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
