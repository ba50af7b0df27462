//! `inferometer calibrate`: how fast and how exact this client is on this machine.

use std::process::ExitCode;

use inferometer_analysis::calibration::{Calibration, Method, SCHEMA};
use inferometer_load::{SystemClock, resources};

use crate::arguments::CalibrateArguments;
use crate::calibration::cache::CalibrationFolder;
use crate::calibration::scope::{self, Scope};
use crate::calibration::{Client, DriveOptions, fidelity, ladder, machine, memory, pacing};
use crate::failure::Failure;
use crate::output;

const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(arguments: &CalibrateArguments) -> Result<ExitCode, Failure> {
    let machine = machine::this();
    let calibration = measure(arguments, machine)?;
    output::result(&String::from_utf8_lossy(&calibration.to_json_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

fn measure(
    arguments: &CalibrateArguments,
    machine: inferometer_analysis::calibration::Machine,
) -> Result<Calibration, Failure> {
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let scope = if arguments.quick { Scope::QUICK } else { Scope::FULL };
    let client =
        Client { options: DriveOptions::default(), ceiling: resources::raise_in_flight_ceiling() };
    let when = wall_time()?;
    let memory = memory::measure(&client, &scope, talk)?;
    let ladder = ladder::measure(&client, &scope, talk)?;
    let pacing = pacing::measure(&client, &scope, talk)?;
    let fidelity = fidelity::measure(&client, &scope, talk)?;
    let capacity = ladder.capacity().ok_or_else(|| {
        Failure::internal("no level of the ladder was steady, so there is no capacity to tell")
    })?;
    Ok(Calibration {
        schema: SCHEMA.to_owned(),
        when,
        tool_version: TOOL_VERSION.to_owned(),
        machine,
        method: Method {
            quick: arguments.quick,
            input_tokens: scope::INPUT_TOKENS,
            ladder_tokens: scope::LADDER_TOKENS,
            ttft_ms: scope::TTFT.as_secs_f64() * 1e3,
            gap_ms: scope::GAP.as_secs_f64() * 1e3,
        },
        capacity,
        ladder,
        fidelity,
        pacing,
        memory,
        notes: [memory::note(&client, &scope), ladder::note(&client, &scope)]
            .into_iter()
            .flatten()
            .collect(),
    })
}

fn wall_time() -> Result<String, Failure> {
    let nanos = SystemClock::new().anchor().realtime_ns;
    jiff::Timestamp::from_nanosecond(nanos.into())
        .map(|now| now.round(jiff::Unit::Second).unwrap_or(now).to_string())
        .map_err(|error| Failure::internal(format!("the wall clock: {error}")))
}
