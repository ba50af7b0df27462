//! What `inferometer bench` may be told: the flags of `vllm bench serve`.

use clap::{Args, Subcommand};

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

#[derive(Args, Debug)]
pub(crate) struct SweepBenchArguments {}
