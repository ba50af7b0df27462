//! `inferometer bench sweep`.

use std::process::ExitCode;

use crate::arguments::SweepBenchArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &SweepBenchArguments) -> Result<ExitCode, Failure> {
    let _ = arguments;
    Err(Failure::usage("not built yet"))
}
