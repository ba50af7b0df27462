//! The command that plays a suite.

use clap::{Arg, Args, Command, Id};
use inferometer_model::campaign::Prompts;
use inferometer_model::spec::{LoadTable, SourceTable};

use super::ResultArguments;
use super::experiment::ExperimentArguments;
use super::narrator::NarratorArguments;
use crate::suite::Price;

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
    /// Whether each scenario and level has prompts of its own, or all begin alike, so that one may
    /// find what another left in the server's prefix cache [default: as the suite says]
    #[arg(long, value_name = "WHICH", help_heading = "Suite")]
    pub(crate) prompts: Option<Prompts>,
    /// List the suites that are built in
    #[arg(long, conflicts_with_all = ["suite", "show"], help_heading = "Suite")]
    pub(crate) list: bool,
    /// Print the file of a built-in suite, as a beginning for one of your own
    #[arg(long, value_name = "NAME", conflicts_with = "suite", help_heading = "Suite")]
    pub(crate) show: Option<String>,
    /// Price to reckon a dry run with: 2.50/h, or 0.15/M-in,0.60/M-out for a million tokens read
    /// and written
    #[arg(long, value_name = "PRICE", help_heading = "Suite")]
    pub(crate) price: Option<Price>,
    #[command(flatten)]
    pub(crate) narrator: NarratorArguments,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Simulate it in virtual time
    #[arg(long = "virtual", help_heading = "Virtual time")]
    pub(crate) virtual_time: bool,
    /// Go on with a suite that was stopped; what it asks is stored with it, and where its keys are.
    /// Keys themselves and headers are not, and must be given again
    #[arg(long, value_name = "SET", conflicts_with = "suite", help_heading = "Results")]
    pub(crate) resume: Option<String>,
}

impl SuiteArguments {
    /// A suite as it is, on the embedded engine.
    pub(super) fn of(name: &str) -> Self {
        Self { suite: Some(name.to_owned()), ..Self::default() }
    }
}
