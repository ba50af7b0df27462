//! `inferometer engine`: the embedded engine by itself.

mod list;

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use inferometer_engine::metrics::MetricNames;
use inferometer_engine::profile::Profile;
use inferometer_engine::{
    ApiKey, EngineError, EngineOptions, Fault, Faults, Mode, Pacing, ServeOptions, Stop, serve,
};
use inferometer_model::spec::EngineTable;
use inferometer_report::escape::terminal;
use inferometer_target::process::ANNOUNCEMENT;

use crate::arguments::{EngineArguments, EngineMode, MetricsNames, PacedArguments};
use crate::embedded;
use crate::failure::Failure;
use crate::output;
use crate::secrets;
use crate::signals;

const PORT: u16 = 8_000;
const KEY_VARIABLE: &str = "INFEROMETER_ENGINE_API_KEY";

pub(crate) fn run(arguments: &EngineArguments) -> Result<ExitCode, Failure> {
    check_mode(arguments)?;
    if arguments.serve.list {
        output::result(&list::tables())?;
        return Ok(ExitCode::SUCCESS);
    }
    inferometer_load::resources::raise_in_flight_ceiling(std::num::NonZeroU32::MIN);
    let options = engine_options(arguments)?;
    let stop = Stop::new().map_err(failure)?;
    if arguments.until_stdin_closes {
        let handle = stop.handle();
        std::thread::spawn(move || {
            // Only the end of the input matters.
            let mut ignored = [0; 256];
            while std::io::stdin().lock().read(&mut ignored).is_ok_and(|bytes| 0 < bytes) {}
            handle.stop();
        });
    }
    let handle = stop.handle();
    let interruption = signals::end_with(move || handle.stop())?;
    introduce(&options);
    serve(options, stop, |address| {
        // A parent that does not read has gone; its closed pipe ends this process.
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

/// Refuses flags of another mode by name: ignored, they would mislead.
fn check_mode(arguments: &EngineArguments) -> Result<(), Failure> {
    let (mode, foreign, home) = match arguments.mode {
        None | Some(EngineMode::Serve) => ("serve", first_of_paced(arguments), "paced"),
        Some(EngineMode::Paced) => ("paced", first_of_serve(arguments), "serve"),
        Some(EngineMode::Echo) => ("echo", first_of_serve(arguments), "serve"),
    };
    match foreign {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!("{flag} has no meaning in mode {mode}"))
            .hint(format!("leave it out, or choose --mode {home}"))),
    }
}

/// The first flag of the modes `paced` and `echo` that was given.
fn first_of_paced(arguments: &EngineArguments) -> Option<String> {
    let PacedArguments { ttft, gap, tokens, tokens_per_write, events_per_write, jitter, faults } =
        &arguments.paced;
    first(&[
        ("--ttft", ttft.is_some()),
        ("--gap", gap.is_some()),
        ("--tokens", tokens.is_some()),
        ("--tokens-per-write", tokens_per_write.is_some()),
        ("--events-per-write", events_per_write.is_some()),
        ("--jitter", jitter.is_some()),
        ("--fault", !faults.is_empty()),
    ])
}

/// The first flag of the mode `serve` that was given; the model and the seed are of all modes.
fn first_of_serve(arguments: &EngineArguments) -> Option<String> {
    let serve = &arguments.serve;
    let others = [
        ("--list", serve.list),
        ("--served-model-name", serve.served_model_name.is_some()),
        ("--metrics-names", serve.metrics_names.is_some()),
        ("--api-key-file", serve.api_key_file.is_some()),
        ("--log-steps", serve.log_steps),
    ];
    let options = EngineTable { model: None, seed: None, ..arguments.options() };
    let flag = embedded::flags(&options).into_iter().next();
    flag.map(|flag| flag.split('=').next().unwrap_or_default().to_owned()).or(first(&others))
}

fn first(flags: &[(&'static str, bool)]) -> Option<String> {
    flags.iter().find(|(_, is_given)| *is_given).map(|(name, _)| (*name).to_owned())
}

fn engine_options(typed: &EngineArguments) -> Result<EngineOptions, Failure> {
    let host = typed.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mode = match typed.mode {
        Some(EngineMode::Echo) => Mode::Echo,
        Some(EngineMode::Paced) => Mode::Paced,
        Some(EngineMode::Serve) | None => Mode::Serve,
    };
    let (model, serve) = match mode {
        Mode::Serve => (typed.serve.served_model_name.clone(), serve_options(typed)?),
        Mode::Paced | Mode::Echo => (typed.engine.model.clone(), ServeOptions::default()),
    };
    let default = Pacing::default();
    let paced = &typed.paced;
    Ok(EngineOptions {
        mode,
        address: SocketAddr::new(host, typed.port.unwrap_or(PORT)),
        model,
        pacing: Pacing {
            ttft: paced.ttft.unwrap_or(default.ttft),
            gap: paced.gap.unwrap_or(default.gap),
            tokens: paced.tokens.unwrap_or(default.tokens),
            tokens_per_write: paced.tokens_per_write.unwrap_or(default.tokens_per_write),
            events_per_write: paced.events_per_write.unwrap_or(default.events_per_write),
            jitter: paced.jitter.unwrap_or(default.jitter),
        },
        faults: faults(&paced.faults)?,
        serve,
        seed: typed.engine.seed.unwrap_or_default(),
        ..EngineOptions::default()
    })
}

fn faults(names: &[String]) -> Result<Faults, Failure> {
    names
        .iter()
        .map(|name| name.parse::<Fault>())
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::usage(format!("--fault: {error}")))
}

fn serve_options(typed: &EngineArguments) -> Result<ServeOptions, Failure> {
    let options = typed.options();
    let profile = Profile::compose(&options).map_err(|error| embedded::refusal(&error))?;
    let metric_names = match typed.serve.metrics_names {
        None => MetricNames::for_generation(profile.scheduler.generation),
        Some(MetricsNames::VllmV1) => MetricNames::VllmV1,
        Some(MetricsNames::VllmV0) => MetricNames::VllmV0,
        Some(MetricsNames::Sglang) => MetricNames::Sglang,
    };
    Ok(ServeOptions {
        profile,
        step: options.step,
        speed: options.speed.unwrap_or(1.0),
        metric_names,
        api_key: api_key(typed.serve.api_key_file.as_deref())?,
        log_steps: typed.serve.log_steps,
    })
}

/// A key is never a flag: the list of processes shows flags to every user.
fn api_key(file: Option<&Path>) -> Result<Option<ApiKey>, Failure> {
    let key = match file {
        Some(path) => Some(secrets::key_in(path)?),
        None => secrets::key_in_environment(KEY_VARIABLE)?,
    };
    Ok(key.and_then(|key| ApiKey::new(&key)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    #[test]
    fn metrics_have_the_names_of_the_generation_unless_others_are_asked_for() {
        let names = |words: &[&str]| {
            let typed = Arguments::try_parse_from([&["inferometer", "engine"], words].concat());
            let Some(Command::Engine(typed)) = typed.unwrap().command else { panic!("no engine") };
            serve_options(&typed).unwrap().metric_names
        };
        let older = ["--profile", "mi300x4-llama-70b"];
        assert_eq!(names(&[]), MetricNames::VllmV1);
        assert_eq!(names(&older), MetricNames::VllmV0);
        let other = [older[0], older[1], "--metrics-names", "sglang"];
        assert_eq!(names(&other), MetricNames::Sglang);
    }
}
