//! `inferometer engine`: the embedded engine by itself.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use inferometer_engine::{EngineError, EngineOptions, Fault, Faults, Mode, Pacing, Stop, serve};
use inferometer_target::process::ANNOUNCEMENT;

use crate::arguments::{EngineArguments, EngineMode};
use crate::failure::Failure;
use crate::output;

const PORT: u16 = 8_000;

pub(crate) fn run(arguments: &EngineArguments) -> Result<ExitCode, Failure> {
    inferometer_load::resources::raise_in_flight_ceiling(std::num::NonZeroU32::MIN);
    let options = options(arguments)?;
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
    serve(options, stop, |address| {
        // Whoever started us and does not listen has left; its closed pipe ends us.
        let _ = output::result(&format!("{ANNOUNCEMENT}http://{address}\n"));
    })
    .map_err(failure)?;
    Ok(ExitCode::SUCCESS)
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

fn options(typed: &EngineArguments) -> Result<EngineOptions, Failure> {
    let host = typed.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let default = Pacing::default();
    let faults = typed
        .faults
        .iter()
        .map(|name| name.parse::<Fault>())
        .collect::<Result<Faults, _>>()
        .map_err(|error| Failure::usage(format!("--fault: {error}")))?;
    Ok(EngineOptions {
        mode: match typed.mode {
            Some(EngineMode::Echo) => Mode::Echo,
            Some(EngineMode::Paced) | None => Mode::Paced,
        },
        address: SocketAddr::new(host, typed.port.unwrap_or(PORT)),
        model: typed.model.clone(),
        pacing: Pacing {
            ttft: typed.ttft.unwrap_or(default.ttft),
            gap: typed.gap.unwrap_or(default.gap),
            tokens: typed.tokens.unwrap_or(default.tokens),
            tokens_per_write: typed.tokens_per_write.unwrap_or(default.tokens_per_write),
            events_per_write: typed.events_per_write.unwrap_or(default.events_per_write),
            jitter: typed.jitter.unwrap_or(default.jitter),
        },
        faults,
        seed: typed.seed.unwrap_or_default(),
        ..EngineOptions::default()
    })
}
