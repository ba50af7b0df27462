//! `inferometer engine`: the embedded engine by itself, and `--list`: the profiles, GPUs and models to
//! choose from.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use inferometer_engine::metrics::MetricNames;
use inferometer_engine::profile::{Gpu, Model, Profile, ProfileFile, catalogue};
use inferometer_engine::{
    ApiKey, EngineError, EngineOptions, Extras, Fault, Faults, Mode, Pacing, ServeOptions, Stop,
    serve,
};
use inferometer_model::spec::EngineTable;
use inferometer_report::document::terminal::table;
use inferometer_report::document::{Cell, Columns, Table, plain};
use inferometer_report::escape::terminal;
use inferometer_report::fmt;
use inferometer_report::terminal::Style;
use inferometer_target::process::ANNOUNCEMENT;

use crate::arguments::{EngineArguments, set_flags};
use crate::failure::{Failure, Result};
use crate::{embedded, output, secrets, signals};

const PORT: u16 = 8_000;

pub(crate) fn run(arguments: &EngineArguments) -> Result<ExitCode> {
    check_mode(arguments)?;
    if arguments.serve.list {
        return output::result(&tables());
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
    let ip = options.address.ip();
    if !ip.is_loopback() && options.serve.api_key.is_none() {
        output::talk(&format!(
            "warning: the engine listens on {ip} and asks for no key, so everyone who reaches this \
             machine can use it"
        ));
    }
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

fn failure(error: EngineError) -> Failure {
    match error {
        EngineError::Options(_) | EngineError::Address { .. } => Failure::from_usage(error),
        EngineError::Listen { .. } | EngineError::EventLoop { .. } => Failure::from_error(error),
    }
}

/// Refuses flags of another mode by name: ignored, they would mislead.
fn check_mode(arguments: &EngineArguments) -> Result<()> {
    let mode = arguments.mode.unwrap_or(Mode::Serve);
    if mode != Mode::Corpus && !arguments.cases.is_empty() {
        return Err(Failure::usage(format!("--case has no meaning in mode {mode}"))
            .hint("leave it out, or choose --mode corpus"));
    }
    let of_paced = set_flags(&arguments.paced);
    let is_shared = |flag: &String| ["--tokens-per-write", "--jitter"].contains(&&**flag);
    let (foreign, home) = match mode {
        Mode::Corpus if !of_paced.is_empty() => (of_paced.into_iter().next(), "paced"),
        Mode::Serve => (of_paced.into_iter().find(|flag| !is_shared(flag)), "paced"),
        Mode::Paced | Mode::Echo | Mode::Corpus => (first_of_serve(arguments), "serve"),
    };
    match foreign {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!("{flag} has no meaning in mode {mode}"))
            .hint(format!("leave it out, or choose --mode {home}"))),
    }
}

/// The first flag of the mode `serve` that was given; the model and the seed are of all modes.
fn first_of_serve(arguments: &EngineArguments) -> Option<String> {
    let serve = &arguments.serve;
    let others = [
        ("--list", serve.list),
        ("--served-model-name", serve.served_model_name.is_some()),
        ("--metrics-names", serve.metrics_names.is_some()),
        ("--request-times", serve.request_times.is_some()),
        ("--reasoning-tokens", serve.reasoning_tokens.is_some()),
        ("--right-answers", serve.right_answers.is_some()),
        ("--api-key-file", serve.api_key_file.is_some()),
        ("--log-steps", serve.log_steps),
    ];
    let options = EngineTable { model: None, seed: None, ..arguments.options() };
    let flag = embedded::flags(&options).into_iter().next();
    flag.map(|flag| flag.split('=').next().unwrap_or_default().to_owned()).or_else(|| {
        others.iter().find(|(_, is_given)| *is_given).map(|(name, _)| (*name).to_owned())
    })
}

fn engine_options(typed: &EngineArguments) -> Result<EngineOptions> {
    let host = typed.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mode = typed.mode.unwrap_or(Mode::Serve);
    let (model, serve) = match mode {
        Mode::Serve => (typed.serve.served_model_name.clone(), serve_options(typed)?),
        Mode::Paced | Mode::Echo | Mode::Corpus => {
            (typed.engine.model.clone(), ServeOptions::default())
        }
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
        faults: paced
            .faults
            .iter()
            .map(|name| name.parse::<Fault>())
            .collect::<Result<Faults, _>>()
            .map_err(|error| Failure::usage(format!("--fault: {error}")))?,
        cases: typed.cases.clone(),
        serve,
        seed: typed.engine.seed.unwrap_or_default(),
        ..EngineOptions::default()
    })
}

fn serve_options(typed: &EngineArguments) -> Result<ServeOptions> {
    let options = typed.options();
    let profile = Profile::compose(&options).map_err(|error| embedded::refusal(&error))?;
    let by_default = MetricNames::for_generation(profile.scheduler.generation);
    Ok(ServeOptions {
        profile,
        step: options.step,
        speed: options.speed.unwrap_or(1.0),
        metric_names: typed.serve.metrics_names.unwrap_or(by_default),
        api_key: api_key(typed.serve.api_key_file.as_deref())?,
        log_steps: typed.serve.log_steps,
        extras: Extras {
            report: typed.serve.request_times,
            reasoning_tokens: typed.serve.reasoning_tokens.unwrap_or_default(),
            right_answers: typed.serve.right_answers,
        },
    })
}

/// A key is never a flag: the list of processes shows flags to every user.
fn api_key(file: Option<&Path>) -> Result<Option<ApiKey>> {
    let key = match file {
        Some(path) => Some(secrets::key_by("--api-key-file", path)?),
        None => secrets::key_in_environment("INFEROMETER_ENGINE_API_KEY")?,
    };
    Ok(key.and_then(|key| ApiKey::new(&key)))
}

fn tables() -> String {
    let known = catalogue();
    let billions = |parameters: f64| fmt::decimals(parameters / 1e9, 1) + " B";
    let teraflops =
        |flops: Option<f64>| flops.map_or_else(|| "-".to_owned(), |flops| tera(flops, "FLOP/s"));
    let profiles = Columns::new("--profile", |row: &&ProfileFile| Cell::text(&row.name))
        // The name has the hardware and how many of it.
        .left("model", |row| Cell::text(row.serve.model.as_deref().unwrap_or_default()))
        .left("coefficients", |row| {
            let fitted = row.fitted.as_ref().map(|fitted| format!("fitted to {}", fitted.source));
            Cell::text(fitted.unwrap_or_else(|| "generic".to_owned()))
        })
        .table("", "", &known.profiles);
    let note = "a GPU and a model joined are a profile too, as in mi300x-qwen3-32b-tp2 or \
                h100-llama-3.1-70b-tp4-fp8";
    let hardware = Columns::new("--hardware", |gpu: &&Gpu| Cell::text(&gpu.name))
        .left("GPU", |gpu| Cell::text(&gpu.title))
        .right("memory", |gpu| Cell::text(fmt::whole(gpu.memory_gib) + " GiB"))
        .right("bandwidth", |gpu| Cell::text(tera(gpu.bandwidth, "B/s")))
        .right("FP16", |gpu| Cell::text(teraflops(Some(gpu.flops.fp16))))
        .right("FP8", |gpu| Cell::text(teraflops(gpu.flops.fp8)))
        .left("link", |gpu| Cell::text(&gpu.link.kind))
        .table("", "", &known.hardware);
    let models = Columns::new("--model", |model: &&Model| Cell::text(&model.name))
        .left("id", |model| Cell::text(&model.id))
        .right("parameters", |model| Cell::text(billions(model.parameters)))
        .right("active", |model| {
            let active = model.active_parameters;
            Cell::text(active.map_or_else(|| "all".to_owned(), billions))
        })
        .right("layers", |model| Cell::text(model.layers.to_string()))
        .right("context", |model| Cell::text(model.max_position_embeddings.to_string()))
        .table("", "", &known.models);
    let tables = [Table { notes: vec![plain(note)], ..profiles }, hardware, models];
    tables.map(|shown| table(&shown, Style::Plain)).join("\n")
}

fn tera(value: f64, unit: &str) -> String {
    let value = value / 1e12;
    format!("{} T{unit}", fmt::decimals(value, if value < 10.0 { 2 } else { 0 }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    #[test]
    fn everything_that_can_be_chosen_is_listed() {
        let text = tables();
        for flag in ["--profile", "--hardware", "--model"] {
            assert!(text.contains(flag), "{text}");
        }
        assert!(text.contains("h100"), "{text}");
    }

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
