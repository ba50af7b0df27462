//! `inferometer schema`: the JSON Schema of the experiment file.

use std::process::ExitCode;

use crate::experiment::schema;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run() -> Result<ExitCode, Failure> {
    output::result(&format!("{:#}\n", schema::document()))?;
    Ok(ExitCode::SUCCESS)
}
