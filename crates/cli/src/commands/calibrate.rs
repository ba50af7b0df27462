//! `inferometer calibrate`: how fast and how exact this client is on this machine.

use std::process::ExitCode;

use inferometer_analysis::calibration::Calibration;
use inferometer_model::SpecDraft;
use inferometer_report::calibration::{self as pages, CalibrationFiles};
use inferometer_report::escape;

use crate::arguments::CalibrateArguments;
use crate::calibration::{self, CalibrationFolder};
use crate::draft::cores_allowed;
use crate::failure::{Failure, Result};
use crate::output;

pub(crate) fn run(arguments: &CalibrateArguments) -> Result<ExitCode> {
    let talk = output::talk_unless(arguments.quiet);
    let client = arguments.client.clone();
    let draft = SpecDraft { client, cores_allowed: cores_allowed(), ..SpecDraft::default() };
    let spec = draft.resolve()?;
    let machine = calibration::this_machine();
    let folder = CalibrationFolder::new(&machine).ok_or_else(|| {
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
    let calibration = calibration::measure(&spec.client, arguments.quick, machine, talk)?;
    if keeps {
        keep(&folder, &calibration)?;
    }
    let path = |name: &str| folder.path().join(name).display().to_string();
    let files = CalibrationFiles {
        folder: folder.path().display().to_string(),
        document: path(CalibrationFolder::DOCUMENT),
        page: path(CalibrationFolder::PAGE),
        throughput: path(CalibrationFolder::THROUGHPUT),
        latency: path(CalibrationFolder::LATENCY),
    };
    output::result(&if arguments.json {
        pages::json(&calibration, &files)
    } else {
        pages::terminal(&calibration, &files, super::style())
    })
}

/// The document goes last: where it lies, the others do.
fn keep(folder: &CalibrationFolder, measured: &Calibration) -> Result<()> {
    let (throughput, latency) = (CalibrationFolder::THROUGHPUT, CalibrationFolder::LATENCY);
    folder.write(throughput, pages::throughput(measured).as_bytes())?;
    folder.write(latency, pages::latency(measured).as_bytes())?;
    let page = pages::markdown(measured, throughput, latency);
    folder.write(CalibrationFolder::PAGE, page.as_bytes())?;
    folder.write(CalibrationFolder::DOCUMENT, &measured.to_json_bytes())
}
