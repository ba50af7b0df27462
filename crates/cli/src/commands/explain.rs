//! `inferometer explain`: what a metric or a word means.

use std::process::ExitCode;

use crate::arguments::ExplainArguments;
use crate::failure::Failure;

pub(crate) fn run(_arguments: &ExplainArguments) -> Result<ExitCode, Failure> {
    Ok(ExitCode::SUCCESS)
}
