//! What `inferometer bench` may be told: the flags of `vllm bench serve`.

mod serve;
mod serve_data;
mod sweep;

use clap::{Args, Subcommand};

pub(crate) use serve::{
    Definitions, LoraAssignment, RampStrategy, ServeBenchArguments, ServeLoadArguments,
    ServeReportArguments, ServeTargetArguments,
};
pub(crate) use serve_data::ServeDataArguments;
pub(crate) use sweep::{ServeSweepArguments, SweepBenchArguments, SweepBenchCommand};

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) what: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure a server as `vllm bench serve` does: its flags, its block, its result file
    ///
    /// Flags may be written with `-` or `_`. What cannot be done here is refused by name, with the
    /// reason and a way out; docs/bench.md has the whole list. The run is stored as any other.
    /// Of a flag that is given twice the last counts, as there.
    #[command(allow_negative_numbers = true, args_override_self = true)]
    Serve(Box<ServeBenchArguments>),
    /// Measure many servers and loads as `vllm bench sweep` does
    Sweep(SweepBenchArguments),
}
