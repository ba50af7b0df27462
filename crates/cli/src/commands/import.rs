//! `inferometer import`.

use std::process::ExitCode;

use crate::arguments::ImportArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let _ = arguments;
    Err(Failure::usage("not built yet"))
}
