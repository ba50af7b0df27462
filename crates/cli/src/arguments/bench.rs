//! What `inferometer bench` may be told: the flags of `vllm bench serve`.

mod sweep;

use clap::{Args, Subcommand};

pub(crate) use sweep::{ServeSweepArguments, SweepBenchArguments, SweepBenchCommand};

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) what: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure a server as `vllm bench serve` does
    Serve(ServeBenchArguments),
    /// Measure many servers and loads as `vllm bench sweep` does
    Sweep(SweepBenchArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ServeBenchArguments {}
