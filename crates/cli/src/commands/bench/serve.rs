//! `inferometer bench serve`.

use std::process::ExitCode;

use crate::arguments::ServeBenchArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &ServeBenchArguments) -> Result<ExitCode, Failure> {
    let _ = arguments;
    Err(Failure::usage("not built yet"))
}
