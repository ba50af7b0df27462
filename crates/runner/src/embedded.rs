//! The embedded engine of an experiment: as a profile, and as the flags of `inferometer engine`.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_engine::metrics::MetricNames;
use inferometer_engine::profile::{Profile, ProfileError};
use inferometer_engine::scheduler::blocks::mix;
use inferometer_engine::{EngineError, EngineOptions, ServeOptions, Stop, StopHandle, serve};
use inferometer_model::spec::{EngineTable, Grammar};
use inferometer_model::{BaseUrl, Spec};
use inferometer_target::EngineProcess;
use serde_json::Value;

use crate::failure::{Failure, Result};

/// What the engine's noise is drawn from in a run: the run's own seed, so that repeated runs differ
/// as those of a server do. An engine with a seed has other noise in all of them.
pub fn noise_seed(spec: &Spec) -> u64 {
    spec.engine.seed.map_or(spec.seed, |own| mix(spec.seed ^ mix(own)))
}

/// As long as any interval of the live engine may be.
const STEP_MAX: Duration = Duration::from_secs(10_000);

/// The requested profile, or why it is not possible.
pub fn profile(spec: &EngineTable) -> Result<Profile> {
    if let Some(step) = spec.step.filter(|step| STEP_MAX < *step) {
        return Err(Failure::usage(format!("--engine-step {step:?} is longer than {STEP_MAX:?}")));
    }
    Profile::compose(spec).map_err(|error| refusal(&error))
}

/// The first line is the message; the arithmetic of a model that does not fit is shown below it.
pub fn refusal(error: &ProfileError) -> Failure {
    let text = error.to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    Failure::usage(first).shown(lines.map(str::to_owned).collect())
}

/// The options as flags of `inferometer engine`, each key by its own name.
pub fn flags(engine: &EngineTable) -> Vec<String> {
    let flag = |(key, value): (String, Value)| {
        let name = key.replace('_', "-");
        match value {
            Value::Bool(true) => format!("--{name}"),
            Value::Bool(false) => format!("--no-{name}"),
            Value::String(text) => format!("--{name}={text}"),
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                format!("--{name}={value}")
            }
        }
    };
    let rest = EngineTable { step: None, ..engine.clone() };
    let step = engine.step.map(|step| format!("--step={}", step.write()));
    rest.entries().into_iter().map(flag).chain(step).collect()
}

/// The program whose `engine` command runs engines, if they are child processes.
static ENGINE_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// From now on engines are child processes of this program, started as `PROGRAM engine …`. Without
/// it they run on threads of this process, and share its cores with the client.
pub fn run_engines_with(program: PathBuf) {
    // The first program stays.
    let _ = ENGINE_PROGRAM.set(program);
}

/// A running engine; it ends when this is dropped.
#[derive(Debug)]
pub enum Engine {
    /// A child process.
    Process(EngineProcess),
    /// A thread of this process.
    Thread(EngineThread),
}

impl Engine {
    /// The engine that a spec asks for. What cannot be served is refused with an explanation.
    pub fn for_spec(spec: &Spec) -> Result<Self> {
        let engine = EngineTable { seed: Some(noise_seed(spec)), ..spec.engine.clone() };
        let profile = profile(&engine)?;
        let default = ServeOptions::default();
        let serve = ServeOptions {
            metric_names: MetricNames::for_generation(profile.scheduler.generation),
            step: engine.step,
            speed: engine.speed.unwrap_or(default.speed),
            profile,
            ..default
        };
        let seed = engine.seed.unwrap_or_default();
        let options = EngineOptions { serve, seed, ..EngineOptions::default() };
        Self::start(options, flags(&engine))
    }

    /// Starts an engine with these options; the flags say the same to a child process.
    pub(crate) fn start(options: EngineOptions, flags: Vec<String>) -> Result<Self> {
        let Some(program) = ENGINE_PROGRAM.get() else {
            return EngineThread::start(options).map(Self::Thread);
        };
        let mode = ["--mode".to_owned(), options.mode.to_string()];
        EngineProcess::start(program, &[mode.to_vec(), flags].concat())
            .map(Self::Process)
            .map_err(Failure::from_error)
    }

    /// The base URL of the engine.
    pub fn base(&self) -> &BaseUrl {
        match self {
            Self::Process(process) => &process.base,
            Self::Thread(thread) => &thread.base,
        }
    }
}

/// An engine on a thread of this process.
#[derive(Debug)]
pub struct EngineThread {
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), EngineError>>>,
    base: BaseUrl,
}

impl EngineThread {
    fn start(options: EngineOptions) -> Result<Self> {
        let stopping = Stop::new().map_err(Failure::from_error)?;
        let stop = stopping.handle();
        let (announced, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            serve(options, stopping, |address| {
                // If this fails, the caller has stopped waiting.
                let _ = announced.send(address);
            })
        });
        let Ok(address) = address.recv() else {
            let ended = thread.join().map_err(|_| Failure::internal("the engine panicked"))?;
            let ended = ended.err().map(|error| error.to_string()).unwrap_or_default();
            return Err(Failure::internal(format!("the engine did not start: {ended}")));
        };
        let base = format!("http://{address}").parse().map_err(Failure::from_error)?;
        Ok(Self { stop, thread: Some(thread), base })
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // Its results are complete; an error has no effect on them any more.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::spec::EngineGeneration;

    use super::*;

    #[test]
    fn every_key_becomes_its_flag() {
        let spec = EngineTable {
            profile: Some("h100".to_owned()),
            tp: Some(2),
            enable_prefix_caching: Some(false),
            enforce_eager: Some(true),
            async_scheduling: Some(true),
            generation: Some(EngineGeneration::V0),
            step: Some(Duration::from_millis(25)),
            ..EngineTable::default()
        };
        let mut flags = flags(&spec);
        flags.sort();
        let wanted = [
            "--async-scheduling",
            "--enforce-eager",
            "--generation=v0",
            "--no-enable-prefix-caching",
            "--profile=h100",
            "--step=0.025s",
            "--tp=2",
        ];
        assert_eq!(flags, wanted);
        assert_eq!(super::flags(&EngineTable::default()), Vec::<String>::new());
    }
}
