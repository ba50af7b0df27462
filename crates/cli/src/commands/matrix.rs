//! `inferometer matrix`.

use std::process::ExitCode;

use crate::arguments::MatrixArguments;
use crate::failure::Failure;
use crate::matrix::{listed, outline, plan, shown};
use crate::output;

pub(crate) fn run(arguments: &MatrixArguments) -> Result<ExitCode, Failure> {
    let results = &arguments.results;
    if arguments.list {
        output::result(&listed(results.page.format())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.show {
        output::result(shown(name)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = plan(arguments)?;
    if results.dry_run {
        return match outline(&plan, results)? {
            Ok(text) => output::result(&text).map(|()| ExitCode::SUCCESS),
            Err(exit) => Ok(exit.into()),
        };
    }
    Err(Failure::internal("`matrix` measures nothing yet; --dry-run shows its plan"))
}
