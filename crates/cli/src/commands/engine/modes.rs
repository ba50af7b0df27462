//! Flags that belong to another mode are refused by name: ignored, they would mislead.

use crate::arguments::{EngineArguments, EngineMode, PacedArguments, ServeArguments};
use crate::failure::Failure;

pub(super) fn check(arguments: &EngineArguments) -> Result<(), Failure> {
    let (mode, foreign, home) = match arguments.mode {
        None | Some(EngineMode::Serve) => ("serve", given_paced(&arguments.paced), "paced"),
        Some(EngineMode::Paced) => ("paced", given_serve(&arguments.serve), "serve"),
        Some(EngineMode::Echo) => ("echo", given_serve(&arguments.serve), "serve"),
    };
    match foreign {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!("{flag} means nothing in mode {mode}"))
            .hint(format!("leave it out, or choose --mode {home}"))),
    }
}

/// The first flag of the modes `paced` and `echo` that was given.
fn given_paced(paced: &PacedArguments) -> Option<&'static str> {
    let PacedArguments { ttft, gap, tokens, tokens_per_write, events_per_write, jitter, faults } =
        paced;
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

/// The first flag of the mode `serve` that was given.
fn given_serve(serve: &ServeArguments) -> Option<&'static str> {
    first(&[
        ("--list", serve.list),
        ("--profile", serve.profile.is_some()),
        ("--hardware", serve.hardware.is_some()),
        ("--tp", serve.tp.is_some()),
        ("--pp", serve.pp.is_some()),
        ("--dtype", serve.dtype.is_some()),
        ("--quantization", serve.quantization.is_some()),
        ("--kv-cache-dtype", serve.kv_cache_dtype.is_some()),
        ("--gpu-memory-utilization", serve.gpu_memory_utilization.is_some()),
        ("--max-model-len", serve.max_model_len.is_some()),
        ("--max-num-seqs", serve.max_num_seqs.is_some()),
        ("--max-num-batched-tokens", serve.max_num_batched_tokens.is_some()),
        ("--long-prefill-token-threshold", serve.long_prefill_token_threshold.is_some()),
        ("--block-size", serve.block_size.is_some()),
        ("--num-gpu-blocks-override", serve.num_gpu_blocks_override.is_some()),
        ("--enable-prefix-caching", serve.enable_prefix_caching),
        ("--no-enable-prefix-caching", serve.no_enable_prefix_caching),
        ("--enable-chunked-prefill", serve.enable_chunked_prefill),
        ("--no-enable-chunked-prefill", serve.no_enable_chunked_prefill),
        ("--scheduling-policy", serve.scheduling_policy.is_some()),
        ("--async-scheduling", serve.async_scheduling),
        ("--no-async-scheduling", serve.no_async_scheduling),
        ("--generation", serve.generation.is_some()),
        ("--num-scheduler-steps", serve.num_scheduler_steps.is_some()),
        ("--enforce-eager", serve.enforce_eager),
        ("--no-enforce-eager", serve.no_enforce_eager),
        ("--noise", serve.noise.is_some()),
        ("--served-model-name", serve.served_model_name.is_some()),
        ("--step", serve.step.is_some()),
        ("--speed", serve.speed.is_some()),
        ("--metrics-names", serve.metrics_names.is_some()),
        ("--api-key-file", serve.api_key_file.is_some()),
        ("--log-steps", serve.log_steps),
    ])
}

fn first(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    flags.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
}
