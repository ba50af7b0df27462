//! `inferometer calibrate`: how fast and how exact this client is on this machine.

use std::process::ExitCode;

use inferometer_analysis::calibration::{Calibration, Machine, Method, SCHEMA};
use inferometer_load::{SystemClock, resources};
use inferometer_model::SpecDraft;
use inferometer_model::spec::ClientSpec;
use inferometer_report::calibration::{self, CalibrationFiles};
use inferometer_report::escape;
use inferometer_report::terminal::Style;

use crate::arguments::CalibrateArguments;
use crate::calibration::cache::CalibrationFolder;
use crate::calibration::scope::{self, Scope};
use crate::calibration::{Client, DriveOptions, fidelity, ladder, machine, memory, pacing};
use crate::draft::client;
use crate::failure::Failure;
use crate::measurement::drivers;
use crate::output;

const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(arguments: &CalibrateArguments) -> Result<ExitCode, Failure> {
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let spec = SpecDraft { client: client(&arguments.client), ..SpecDraft::default() }.resolve()?;
    let machine = machine::this();
    let folder = CalibrationFolder::of(&machine::key(&machine, TOOL_VERSION)).ok_or_else(|| {
        Failure::usage(
            "there is no place to keep a calibration: neither XDG_CACHE_HOME nor HOME is set",
        )
    })?;
    folder.create()?;
    let warn = |why: String| output::talk(&format!("warning: {}", escape::terminal(&why)));
    let before = folder.read(warn);
    // A rough answer must not take the place of a good one.
    let keeps = !(arguments.quick && before.as_ref().is_some_and(|before| !before.method.quick));
    if let Some(before) = &before {
        let what = if keeps { "will replace" } else { "quick: only shown, and keeping" };
        talk(&format!("{what} the calibration of {}", escape::terminal(&before.when)));
    }
    let scope = if arguments.quick { Scope::QUICK } else { Scope::FULL };
    let measured = Measuring { scope, quick: arguments.quick, client: spec.client };
    let calibration = measured.measure(machine, talk)?;
    if keeps {
        keep(&folder, &calibration)?;
    }
    let files = files(&folder);
    if arguments.json {
        output::result(&calibration::json(&calibration, &files))?;
    } else {
        let style = if output::is_coloured() { Style::Coloured } else { Style::Plain };
        output::result(&calibration::terminal(&calibration, &files, style))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The document goes last: where it lies, the others do.
fn keep(folder: &CalibrationFolder, measured: &Calibration) -> Result<(), Failure> {
    let (throughput, latency) = (CalibrationFolder::THROUGHPUT, CalibrationFolder::LATENCY);
    folder.write(throughput, calibration::throughput(measured).as_bytes())?;
    folder.write(latency, calibration::latency(measured).as_bytes())?;
    let page = calibration::markdown(measured, throughput, latency);
    folder.write(CalibrationFolder::PAGE, page.as_bytes())?;
    folder.write(CalibrationFolder::DOCUMENT, &measured.to_json_bytes())
}

fn files(folder: &CalibrationFolder) -> CalibrationFiles {
    let path = |name: &str| folder.path().join(name).display().to_string();
    CalibrationFiles {
        folder: folder.path().display().to_string(),
        document: path(CalibrationFolder::DOCUMENT),
        page: path(CalibrationFolder::PAGE),
        throughput: path(CalibrationFolder::THROUGHPUT),
        latency: path(CalibrationFolder::LATENCY),
    }
}

/// What is to be measured, and with how many threads.
struct Measuring {
    scope: Scope,
    quick: bool,
    client: ClientSpec,
}

impl Measuring {
    fn measure(
        &self,
        machine: Machine,
        talk: impl Fn(&str) + Copy,
    ) -> Result<Calibration, Failure> {
        let scope = &self.scope;
        let options = DriveOptions { kernel_stamps: true, drivers: drivers(&self.client) };
        let client =
            Client { options, ceiling: resources::raise_in_flight_ceiling(self.client.drivers) };
        let when = wall_time()?;
        let notes = [
            machine::busy_note(&machine),
            memory::note(&client, scope),
            ladder::note(&client, scope),
        ];
        let memory = memory::measure(&client, scope, talk)?;
        let ladder = ladder::measure(&client, scope, talk)?;
        let pacing = pacing::measure(&client, scope, talk)?;
        let fidelity = fidelity::measure(&client, scope, talk)?;
        let capacity = ladder.capacity().ok_or_else(|| {
            Failure::internal("no level of the ladder was steady, so there is no capacity to tell")
        })?;
        Ok(Calibration {
            schema: SCHEMA.to_owned(),
            when,
            tool_version: TOOL_VERSION.to_owned(),
            machine,
            method: Method {
                quick: self.quick,
                drivers: self.client.drivers.get(),
                input_tokens: scope::INPUT_TOKENS,
                ladder_tokens: scope::LADDER_TOKENS,
                ttft_ms: scope::TTFT.as_secs_f64() * 1e3,
            },
            capacity,
            ladder,
            fidelity,
            pacing,
            memory,
            notes: notes.into_iter().flatten().collect(),
        })
    }
}

fn wall_time() -> Result<String, Failure> {
    let nanos = SystemClock::new().anchor().realtime_ns;
    jiff::Timestamp::from_nanosecond(nanos.into())
        .map(|now| now.round(jiff::Unit::Second).unwrap_or(now).to_string())
        .map_err(|error| Failure::internal(format!("the wall clock: {error}")))
}
