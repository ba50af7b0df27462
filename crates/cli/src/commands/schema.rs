//! `inferometer schema`: the JSON Schema of the experiment file, of a suite or of a matrix.

use std::process::ExitCode;

use crate::arguments::SchemaArguments;
use crate::experiment;
use crate::failure::Failure;
use crate::output;
use crate::study::{matrix, suite};

pub(crate) fn run(arguments: &SchemaArguments) -> Result<ExitCode, Failure> {
    let document = match (arguments.suite, arguments.matrix) {
        (true, _) => suite::schema(),
        (false, true) => matrix::schema(),
        (false, false) => experiment::schema::document(),
    };
    output::result(&format!("{document:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}
