//! The embedded engine that an experiment asks for: as the engine's own choice, and as the flags of
//! `inferometer engine`.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_engine::metrics::MetricNames;
use inferometer_engine::profile;
use inferometer_engine::profile::{Choice, Profile, ProfileError, UnknownWord};
use inferometer_engine::scheduler::tokens::mix;
use inferometer_engine::{EngineError, EngineOptions, ServeOptions, Stop, StopHandle, serve};
use inferometer_model::spec::{EngineGeneration, EnginePolicy, EngineSpec};
use inferometer_model::{BaseUrl, Spec};
use inferometer_target::EngineProcess;

use crate::failure::Failure;

/// What was asked for, in the words of profiles.
pub fn choice(spec: &EngineSpec) -> Result<Choice, Failure> {
    let spec = spec.clone();
    Ok(Choice {
        profile: spec.profile,
        hardware: spec.hardware,
        model: spec.model,
        tp: spec.tp,
        pp: spec.pp,
        dtype: word("--dtype", spec.dtype)?,
        quantization: word("--quantization", spec.quantization)?,
        kv_cache_dtype: word("--kv-cache-dtype", spec.kv_cache_dtype)?,
        gpu_memory_utilization: spec.gpu_memory_utilization,
        max_model_len: spec.max_model_len,
        max_num_seqs: spec.max_num_seqs,
        max_num_batched_tokens: spec.max_num_batched_tokens,
        long_prefill_token_threshold: spec.long_prefill_token_threshold,
        block_size: spec.block_size,
        num_gpu_blocks_override: spec.num_gpu_blocks_override,
        enable_prefix_caching: spec.enable_prefix_caching,
        enable_chunked_prefill: spec.enable_chunked_prefill,
        scheduling_policy: spec.scheduling_policy.map(|policy| match policy {
            EnginePolicy::Fcfs => profile::SchedulingPolicy::Fcfs,
            EnginePolicy::Priority => profile::SchedulingPolicy::Priority,
        }),
        async_scheduling: spec.async_scheduling,
        generation: spec.generation.map(|generation| match generation {
            EngineGeneration::V0 => profile::EngineGeneration::V0,
            EngineGeneration::V1 => profile::EngineGeneration::V1,
        }),
        num_scheduler_steps: spec.num_scheduler_steps,
        enforce_eager: spec.enforce_eager,
        noise: spec.noise,
        seed: spec.seed,
    })
}

fn word<T: FromStr<Err = UnknownWord>>(
    flag: &str,
    said: Option<String>,
) -> Result<Option<T>, Failure> {
    let read = |text: String| {
        text.parse().map_err(|error: UnknownWord| Failure::usage(format!("{flag}: {error}")))
    };
    said.map(read).transpose()
}

/// What the engine's noise is drawn from in a run: the run's own seed, so that repeated runs differ
/// as those of a server do. An engine with a seed has other noise in all of them.
pub fn noise_seed(spec: &Spec) -> u64 {
    spec.engine.seed.map_or(spec.seed, |own| mix(spec.seed ^ mix(own)))
}

/// As long as any interval of the live engine may be.
const STEP_MAX: Duration = Duration::from_secs(10_000);

/// The profile that was asked for, or why no engine can be so.
pub fn profile(spec: &EngineSpec) -> Result<Profile, Failure> {
    if let Some(step) = spec.step.filter(|step| STEP_MAX < *step) {
        return Err(Failure::usage(format!("--engine-step {step:?} is longer than {STEP_MAX:?}")));
    }
    Profile::compose(&choice(spec)?).map_err(|error| refusal(&error))
}

/// The arithmetic of a model that does not fit has lines of its own.
pub fn refusal(error: &ProfileError) -> Failure {
    let text = error.to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    Failure::usage(first).shown(lines.map(str::to_owned).collect())
}

/// The same as flags of the live engine: each key by its own name. What is on by itself can only be
/// switched off there, and what is off only on.
pub fn flags(spec: &EngineSpec) -> Result<Vec<String>, Failure> {
    let tree = serde_json::to_value(EngineSpec { step: None, ..spec.clone() })
        .map_err(|error| Failure::internal(format!("[engine]: {error}")))?;
    let keys = tree.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let of_keys = keys.map(|(key, value)| {
        let name = key.replace('_', "-");
        match value.as_bool() {
            Some(true) => format!("--{name}"),
            Some(false) => format!("--no-{name}"),
            None => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("--{name}={text}")
            }
        }
    });
    let step = spec.step.map(|step| format!("--step={}s", step.as_secs_f64()));
    Ok(of_keys.chain(step).collect())
}

/// The program whose `engine` command runs engines, if they are to be processes of their own.
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
    pub fn for_spec(spec: &Spec) -> Result<Self, Failure> {
        let engine = EngineSpec { seed: Some(noise_seed(spec)), ..spec.engine.clone() };
        let profile = profile(&engine)?;
        let default = ServeOptions::default();
        let serve = ServeOptions {
            metric_names: MetricNames::of(profile.scheduler.generation),
            step: engine.step,
            speed: engine.speed.unwrap_or(default.speed),
            profile,
            ..default
        };
        let seed = engine.seed.unwrap_or_default();
        let options = EngineOptions { serve, seed, ..EngineOptions::default() };
        Self::start(options, flags(&engine)?)
    }

    /// Starts an engine with these options; the flags say the same to a child process.
    pub(crate) fn start(options: EngineOptions, flags: Vec<String>) -> Result<Self, Failure> {
        let Some(program) = ENGINE_PROGRAM.get() else {
            return EngineThread::start(options).map(Self::Thread);
        };
        let mode = ["--mode", options.mode.name()].map(str::to_owned);
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
    fn start(options: EngineOptions) -> Result<Self, Failure> {
        let stopping = Stop::new().map_err(Failure::from_error)?;
        let stop = stopping.handle();
        let (announced, address) = channel();
        let thread = std::thread::spawn(move || {
            serve(options, stopping, |address| {
                // Nobody waits for it any more if this fails.
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
    use super::*;

    #[test]
    fn every_key_becomes_its_flag() {
        let spec = EngineSpec {
            profile: Some("h100".to_owned()),
            tp: Some(2),
            enable_prefix_caching: Some(false),
            enforce_eager: Some(true),
            async_scheduling: Some(true),
            generation: Some(EngineGeneration::V0),
            step: Some(Duration::from_millis(25)),
            ..EngineSpec::default()
        };
        let mut flags = flags(&spec).unwrap();
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
        assert_eq!(super::flags(&EngineSpec::default()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_unknown_word_is_refused_with_its_flag_and_the_known_ones() {
        let spec = EngineSpec { dtype: Some("int3".to_owned()), ..EngineSpec::default() };
        let refused = format!("{:?}", choice(&spec).unwrap_err());
        assert!(refused.contains("--dtype") && refused.contains("bfloat16"), "{refused}");
    }
}
