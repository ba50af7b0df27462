//! The scheduler's bounds, with the defaults of vLLM's API server.

use crate::scheduler::{Generation, Policy, SchedulerConfig};

use super::bytes::GIB;
use super::{EngineGeneration, EngineTable, Gpu, Model, ProfileError, SchedulingPolicy};

const BLOCK_SIZE: u32 = 16;
/// Above it steps and KV blocks do not fit their types; no server is near it.
pub(super) const SETTING_MAX: u32 = 1 << 24;

/// The configuration but for its blocks, which follow from memory.
pub(super) fn scheduler(
    choice: &EngineTable,
    gpu: &Gpu,
    model: &Model,
) -> Result<SchedulerConfig, ProfileError> {
    let max_model_len = max_model_len(choice, model)?;
    let generation = generation(choice)?;
    let v1 = generation == Generation::V1;
    let chunked = choice.enable_chunked_prefill.unwrap_or(v1);
    if chunked && !v1 {
        return Err(ProfileError::ChunksNeedV1);
    }
    let (tokens, seqs) = default_batch(gpu, v1);
    let max_num_seqs = positive("--max-num-seqs", choice.max_num_seqs, seqs)?;
    // Whole prompts need a step that can hold the longest.
    let tokens = if chunked { tokens } else { tokens.max(max_model_len) };
    let most = max_num_seqs.saturating_mul(max_model_len);
    let max_num_batched_tokens =
        positive("--max-num-batched-tokens", choice.max_num_batched_tokens, tokens.min(most))?;
    if !chunked && max_num_batched_tokens < max_model_len {
        return Err(ProfileError::StepTooSmall { max_num_batched_tokens, max_model_len });
    }
    if choice.max_num_seqs.is_some() && max_num_seqs > max_num_batched_tokens {
        return Err(ProfileError::TooManySeqs { max_num_seqs, max_num_batched_tokens });
    }
    Ok(SchedulerConfig {
        block_size: positive("--block-size", choice.block_size, BLOCK_SIZE)?,
        max_num_seqs: max_num_seqs.min(max_num_batched_tokens),
        max_num_batched_tokens,
        max_model_len,
        long_prefill_token_threshold: choice.long_prefill_token_threshold.unwrap_or(0),
        chunked_prefill: chunked,
        prefix_caching: choice.enable_prefix_caching.unwrap_or(v1),
        policy: match choice.scheduling_policy {
            Some(SchedulingPolicy::Priority) => Policy::Priority,
            Some(SchedulingPolicy::Fcfs) | None => Policy::Fcfs,
        },
        generation,
        async_scheduling: choice.async_scheduling.unwrap_or(v1),
        pipeline_stages: choice.pp.unwrap_or(1),
        ..SchedulerConfig::default()
    })
}

fn max_model_len(choice: &EngineTable, model: &Model) -> Result<u32, ProfileError> {
    let limit = model.max_position_embeddings;
    let asked = positive("--max-model-len", choice.max_model_len, limit)?;
    if asked > limit {
        let model = model.title.clone();
        return Err(ProfileError::BeyondModel { model, asked, limit });
    }
    Ok(asked)
}

fn generation(choice: &EngineTable) -> Result<Generation, ProfileError> {
    match (choice.generation.unwrap_or(EngineGeneration::V1), choice.num_scheduler_steps) {
        (EngineGeneration::V0, steps) => {
            Ok(Generation::V0 { scheduler_steps: positive("--num-scheduler-steps", steps, 1)? })
        }
        (EngineGeneration::V1, None | Some(1)) => Ok(Generation::V1),
        (EngineGeneration::V1, Some(steps)) => Err(ProfileError::StepsNeedV0 { steps }),
    }
}

/// Tokens and requests of a step, by the GPU's memory.
fn default_batch(gpu: &Gpu, v1: bool) -> (u32, u32) {
    let memory = gpu.memory_bytes() as f64;
    match () {
        () if !v1 => (2048, 256),
        () if memory >= 160.0 * GIB => (16_384, 1024),
        () if memory >= 70.0 * GIB && !gpu.name.starts_with("a100") => (8192, 1024),
        () => (2048, 256),
    }
}

pub(super) fn positive(
    name: &'static str,
    asked: Option<u32>,
    default: u32,
) -> Result<u32, ProfileError> {
    match asked.unwrap_or(default) {
        value @ 1..=SETTING_MAX => Ok(value),
        value => {
            Err(ProfileError::Setting { name, value: value.to_string(), range: "1 to 16777216" })
        }
    }
}
