//! `inferometer export`.

use std::process::ExitCode;

use crate::arguments::ExportArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let _ = arguments;
    Err(Failure::usage("not built yet"))
}
