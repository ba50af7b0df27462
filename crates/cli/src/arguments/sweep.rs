//! `[sweep]`: at which loads, of which servers; and the command that measures them.

use clap::Args;
use inferometer_model::campaign::Order;
use inferometer_model::spec::{Share, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResultArguments;
use super::experiment::ExperimentArguments;
use crate::sweep::{Bound, ConcurrencyLevels, Find, RateLevels};

/// Many loads, by `inferometer sweep`; `run` takes no notice of it.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "Levels")]
pub(crate) struct SweepTable {
    /// Rates to measure at, in requests per second: numbers and `inf`, and ranges such as
    /// 500..1000:50 (by steps of 50) or 1..64*2 (by a factor of 2), after commas
    #[arg(long, value_name = "LEVELS", allow_hyphen_values = true)]
    pub(crate) rates: Option<Written<RateLevels>>,
    /// Requests in flight to measure at, written alike [default, without rates: 1..64*2]
    #[arg(long, value_name = "LEVELS", allow_hyphen_values = true)]
    pub(crate) concurrencies: Option<Written<ConcurrencyLevels>>,
    /// Requests of each level, as a multiple of its concurrency [default, where nothing says
    /// how long a level is: 10, and at least 100 requests]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) waves: Option<u32>,
    /// Server to measure beside others: NAME=URL, NAME=embedded, NAME=embedded:PROFILE, or
    /// NAME=FILE with its `[target]`, `[engine]` or `[deploy]` table; the flag may be repeated
    #[arg(long = "target", value_name = "NAME=WHERE")]
    pub(crate) targets: Option<Vec<String>>,
    /// Whether levels and servers take turns, or one is measured to its end before the next
    /// [default: interleaved]
    #[arg(long, value_name = "HOW")]
    pub(crate) order: Option<Order>,
    /// More levels around the knee, once the others are measured: steps to cut that stretch into
    /// [default: none; 8 when no number is given]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "8",
          value_name = "STEPS")]
    #[schemars(range(min = 2, max = 200), extend("examples" = [8]))]
    pub(crate) fine: Option<u32>,
    /// Runs at each of those levels [default: as --repeat says]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) fine_runs: Option<u32>,
    /// Look for the highest level that keeps these promises, such as
    /// 'max rate where ttft.p99<500ms, tpot.p99<50ms'
    #[arg(long, value_name = "QUESTION")]
    pub(crate) find: Option<Written<Find>>,
    /// Level that the search begins with [default: the lowest given, or 1]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) from: Option<Written<Bound>>,
    /// Level that the search never exceeds [default: 1000]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) at_most: Option<Written<Bound>>,
    /// How exact the answer is to be, as a share of it [default: 5%]
    #[arg(long, value_name = "SHARE")]
    pub(crate) resolution: Option<Share>,
}

#[derive(Args, Debug)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    #[command(flatten)]
    pub(crate) sweep: SweepTable,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
    /// Simulate it in virtual time, with an engine of its own for each run
    #[arg(long = "virtual", help_heading = "Virtual time")]
    pub(crate) virtual_time: bool,
    /// Go on with a set that was stopped; what it asks is stored with it, and where
    /// its keys are. Keys themselves and headers are not, and must be given again
    #[arg(long, value_name = "SET", help_heading = "Results")]
    pub(crate) resume: Option<String>,
}

impl SweepArguments {
    /// What was typed, as any other command would take it.
    pub(crate) fn merged(&self) -> ExperimentArguments {
        let mut experiment = self.experiment.clone();
        experiment.tables.sweep = self.sweep.clone();
        experiment
    }
}
