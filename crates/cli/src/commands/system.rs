//! `inferometer system`: what this machine is, as runs record it.

use std::process::ExitCode;

use inferometer_report::terminal;
use inferometer_target::system::ServerInfo;

use crate::arguments::SystemArguments;
use crate::environment;
use crate::failure::Failure;
use crate::output;

const SCHEMA: &str = "inferometer.system/1";

pub(crate) fn run(arguments: &SystemArguments) -> Result<ExitCode, Failure> {
    let machine = environment::machine();
    if arguments.json {
        let info = ServerInfo {
            schema: Some(SCHEMA.to_owned()),
            machine: Some(machine.clone()),
            ..ServerInfo::default()
        };
        let document = serde_json::to_string_pretty(&info)
            .map_err(|error| Failure::internal(format!("the machine as JSON: {error}")))?;
        output::result(&(document + "\n"))?;
    } else {
        output::result(&terminal::system(machine))?;
    }
    Ok(ExitCode::SUCCESS)
}
