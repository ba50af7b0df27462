//! From what was typed to what the engine is told.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use inferometer_engine::metrics::MetricNames;
use inferometer_engine::profile::{Choice, Profile};
use inferometer_engine::{ApiKey, EngineOptions, Fault, Faults, Mode, Pacing, ServeOptions};

use crate::arguments::{EngineArguments, EngineMode, MetricsNames, PacedArguments, ServeArguments};
use crate::embedded;
use crate::failure::Failure;
use crate::secrets;

const PORT: u16 = 8_000;
const KEY_VARIABLE: &str = "INFEROMETER_ENGINE_API_KEY";

pub(super) fn of(typed: &EngineArguments) -> Result<EngineOptions, Failure> {
    let host = typed.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mode = match typed.mode {
        Some(EngineMode::Echo) => Mode::Echo,
        Some(EngineMode::Paced) => Mode::Paced,
        Some(EngineMode::Serve) | None => Mode::Serve,
    };
    let (model, serve) = match mode {
        Mode::Serve => (typed.serve.served_model_name.clone(), serve(typed)?),
        Mode::Paced | Mode::Echo => (typed.model.clone(), ServeOptions::default()),
    };
    Ok(EngineOptions {
        mode,
        address: SocketAddr::new(host, typed.port.unwrap_or(PORT)),
        model,
        pacing: pacing(&typed.paced),
        faults: faults(&typed.paced.faults)?,
        serve,
        seed: typed.seed.unwrap_or_default(),
        ..EngineOptions::default()
    })
}

fn pacing(typed: &PacedArguments) -> Pacing {
    let default = Pacing::default();
    Pacing {
        ttft: typed.ttft.unwrap_or(default.ttft),
        gap: typed.gap.unwrap_or(default.gap),
        tokens: typed.tokens.unwrap_or(default.tokens),
        tokens_per_write: typed.tokens_per_write.unwrap_or(default.tokens_per_write),
        events_per_write: typed.events_per_write.unwrap_or(default.events_per_write),
        jitter: typed.jitter.unwrap_or(default.jitter),
    }
}

fn faults(names: &[String]) -> Result<Faults, Failure> {
    names
        .iter()
        .map(|name| name.parse::<Fault>())
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::usage(format!("--fault: {error}")))
}

fn serve(typed: &EngineArguments) -> Result<ServeOptions, Failure> {
    let profile = Profile::compose(&choice(typed)).map_err(|error| embedded::refusal(&error))?;
    let flags = &typed.serve;
    let default = ServeOptions::default();
    let metric_names = match flags.metrics_names {
        None => MetricNames::of(profile.scheduler.generation),
        Some(MetricsNames::VllmV1) => MetricNames::VllmV1,
        Some(MetricsNames::VllmV0) => MetricNames::VllmV0,
        Some(MetricsNames::Sglang) => MetricNames::Sglang,
    };
    Ok(ServeOptions {
        profile,
        step: flags.step,
        speed: flags.speed.unwrap_or(default.speed),
        metric_names,
        api_key: api_key(flags.api_key_file.as_deref())?,
        log_steps: flags.log_steps,
    })
}

fn choice(typed: &EngineArguments) -> Choice {
    let flags: &ServeArguments = &typed.serve;
    let switch = |on: bool, off: bool| on.then_some(true).or(off.then_some(false));
    Choice {
        profile: flags.profile.clone(),
        hardware: flags.hardware.clone(),
        model: typed.model.clone(),
        tp: flags.tp,
        pp: flags.pp,
        dtype: flags.dtype,
        quantization: flags.quantization,
        kv_cache_dtype: flags.kv_cache_dtype,
        gpu_memory_utilization: flags.gpu_memory_utilization,
        max_model_len: flags.max_model_len,
        max_num_seqs: flags.max_num_seqs,
        max_num_batched_tokens: flags.max_num_batched_tokens,
        long_prefill_token_threshold: flags.long_prefill_token_threshold,
        block_size: flags.block_size,
        num_gpu_blocks_override: flags.num_gpu_blocks_override,
        enable_prefix_caching: switch(flags.enable_prefix_caching, flags.no_enable_prefix_caching),
        enable_chunked_prefill: switch(
            flags.enable_chunked_prefill,
            flags.no_enable_chunked_prefill,
        ),
        scheduling_policy: flags.scheduling_policy,
        async_scheduling: switch(flags.async_scheduling, flags.no_async_scheduling),
        generation: flags.generation,
        num_scheduler_steps: flags.num_scheduler_steps,
        enforce_eager: switch(flags.enforce_eager, flags.no_enforce_eager),
        noise: flags.noise,
        seed: typed.seed,
    }
}

/// A key is never a flag: the list of processes shows flags to everyone.
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
            serve(&typed).unwrap().metric_names
        };
        let older = ["--profile", "mi300x4-llama-70b"];
        assert_eq!(names(&[]), MetricNames::VllmV1);
        assert_eq!(names(&older), MetricNames::VllmV0);
        let other = [older[0], older[1], "--metrics-names", "sglang"];
        assert_eq!(names(&other), MetricNames::Sglang);
    }
}
