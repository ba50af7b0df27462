//! `inferometer bench`: what `vllm bench` does, with our client.

mod serve;
mod sweep;

use std::process::ExitCode;

use crate::arguments::{BenchArguments, BenchCommand};
use crate::failure::Failure;

pub(crate) fn run(arguments: &BenchArguments) -> Result<ExitCode, Failure> {
    match &arguments.what {
        BenchCommand::Serve(arguments) => serve::run(arguments),
        BenchCommand::Sweep(arguments) => sweep::run(arguments),
    }
}
