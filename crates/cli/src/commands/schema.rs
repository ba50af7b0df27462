//! `inferometer schema`: the JSON Schema of the experiment file, or of a suite.

use std::process::ExitCode;

use crate::arguments::SchemaArguments;
use crate::experiment;
use crate::failure::Failure;
use crate::output;
use crate::suite;

pub(crate) fn run(arguments: &SchemaArguments) -> Result<ExitCode, Failure> {
    let document =
        if arguments.suite { suite::schema::document() } else { experiment::schema::document() };
    output::result(&format!("{document:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}
