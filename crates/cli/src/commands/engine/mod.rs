//! `inferometer engine`: the embedded engine by itself.

mod list;
mod modes;
mod options;

use std::io::Read;
use std::process::ExitCode;

use inferometer_engine::{EngineError, EngineOptions, Mode, Stop, serve};
use inferometer_report::escape::terminal;
use inferometer_target::process::ANNOUNCEMENT;

use crate::arguments::EngineArguments;
use crate::failure::Failure;
use crate::output;
use crate::signals;

pub(crate) fn run(arguments: &EngineArguments) -> Result<ExitCode, Failure> {
    modes::check(arguments)?;
    if arguments.serve.list {
        output::result(&list::tables())?;
        return Ok(ExitCode::SUCCESS);
    }
    inferometer_load::resources::raise_in_flight_ceiling(std::num::NonZeroU32::MIN);
    let options = options::of(arguments)?;
    let stop = Stop::new().map_err(failure)?;
    if arguments.until_stdin_closes {
        let handle = stop.handle();
        std::thread::spawn(move || {
            // Whatever comes is not for us; the end of it is.
            let mut ignored = [0; 256];
            while std::io::stdin().lock().read(&mut ignored).is_ok_and(|bytes| 0 < bytes) {}
            handle.stop();
        });
    }
    let handle = stop.handle();
    let interruption = signals::end_with(move || handle.stop())?;
    introduce(&options);
    serve(options, stop, |address| {
        // Whoever started us and does not listen has left; its closed pipe ends us.
        let _ = output::result(&format!("{ANNOUNCEMENT}http://{address}\n"));
    })
    .map_err(failure)?;
    Ok(interruption.exit().map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Says what is served, as a real server does when it starts.
fn introduce(options: &EngineOptions) {
    if options.mode == Mode::Serve {
        for line in options.serve.profile.describe().lines() {
            // A profile's file may say anything.
            output::talk(&terminal(line));
        }
        let speed = options.serve.speed;
        if (speed - 1.0).abs() > f64::EPSILON {
            output::talk(&format!("{speed} times as fast as that: what a client measures is not"));
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failure(error: EngineError) -> Failure {
    match error {
        EngineError::Options(_)
        | EngineError::PortInUse { .. }
        | EngineError::PortForbidden { .. }
        | EngineError::NoSuchAddress { .. } => Failure::usage(error.to_string()),
        EngineError::Listen { .. } | EngineError::EventLoop { .. } => {
            Failure::internal(error.to_string())
        }
    }
}
