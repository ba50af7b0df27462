//! `inferometer matrix`.

use std::process::ExitCode;

use crate::arguments::MatrixArguments;
use crate::failure::Failure;

pub(crate) fn run(_arguments: &MatrixArguments) -> Result<ExitCode, Failure> {
    Err(Failure::internal("`matrix` is not built yet"))
}
