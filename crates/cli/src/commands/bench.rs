//! `inferometer bench`: what `vllm bench` does, with our client.

mod serve;

use std::process::ExitCode;

use crate::arguments::{BenchArguments, BenchCommand, SweepBenchCommand};
use crate::bench_sweep;
use crate::failure::Failure;

pub(crate) fn run(arguments: &BenchArguments) -> Result<ExitCode, Failure> {
    match &arguments.what {
        BenchCommand::Serve(arguments) => serve::run(arguments),
        BenchCommand::Sweep(arguments) => {
            let SweepBenchCommand::Serve(typed) = &arguments.what;
            bench_sweep::run(typed)
        }
    }
}
