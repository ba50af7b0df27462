//! How a GPU's memory is divided, and how many KV blocks are left.

use super::{EngineGeneration, EngineTable, Gpu, Model, Numbers, ProfileError, SchedulingPolicy};
use super::{GIB, MIB};
use crate::scheduler::{Generation, Policy, SchedulerConfig};

/// The share of memory that a server takes unless set otherwise.
pub(super) const UTILIZATION: f64 = 0.92;

/// Memory of one GPU, in bytes; that of the fullest one where they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// What the driver gives.
    pub total: f64,
    pub utilization: f64,
    /// Total times utilisation.
    pub budget: f64,
    pub weights: f64,
    /// Peak of a step of the greatest size.
    pub activations: f64,
    /// What libraries take in addition to the framework.
    pub other: f64,
    /// Captured decode steps.
    pub graphs: f64,
    /// What is left for the KV cache; below zero where nothing is.
    pub left: f64,
    /// One KV block.
    pub block: f64,
    /// The KV cache of one request of the greatest length, with the block that is never given away.
    pub needed: f64,
}

/// What memory depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deployment<'a> {
    pub gpu: &'a Gpu,
    pub model: &'a Model,
    pub numbers: Numbers,
    pub tp: u32,
    pub pp: u32,
    pub utilization: f64,
    pub eager: bool,
    pub scheduler: &'a SchedulerConfig,
}

impl Memory {
    pub(super) fn divide(deployment: &Deployment<'_>) -> Self {
        let total = deployment.gpu.memory_bytes() as f64;
        let budget = libm::ceil(total * deployment.utilization);
        let weights = weights(deployment);
        let activations = activations(deployment);
        let other = if deployment.tp * deployment.pp > 1 { 0.6 * GIB } else { 0.15 * GIB };
        // An estimate: all captured sizes take 20 MiB per layer.
        let graphs = if deployment.eager { 0.0 } else { stage_layers(deployment) * 20.0 * MIB };
        let block = f64::from(deployment.scheduler.block_size) * token_bytes(deployment);
        let blocks = deployment.scheduler.max_model_len.div_ceil(deployment.scheduler.block_size);
        Self {
            total,
            utilization: deployment.utilization,
            budget,
            weights,
            activations,
            other,
            graphs,
            left: budget - weights - activations - other - graphs,
            block,
            needed: (f64::from(blocks) + 1.0) * block,
        }
    }

    /// Whether one request of the greatest length can be served.
    pub fn fits(&self) -> bool {
        self.needed <= self.left
    }

    /// KV blocks, with the one that is never given away.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative here, and the cast saturates"
    )]
    pub fn blocks(&self) -> u32 {
        libm::floor((self.left / self.block).max(0.0)) as u32
    }
}

/// Layers of the longest pipeline stage.
fn stage_layers(deployment: &Deployment<'_>) -> f64 {
    f64::from(deployment.model.layers.div_ceil(deployment.pp))
}

fn weights(deployment: &Deployment<'_>) -> f64 {
    let count = deployment.model.count();
    let stage = stage_layers(deployment) / f64::from(deployment.model.layers);
    let layers = (count.dense + count.routed) * deployment.numbers.weight_bytes() * stage;
    // The table is on the first stage and the output layer on the last; both stay at 16 bits.
    let vocabulary = if deployment.pp > 1 { count.embedding } else { count.vocabulary() } * 2.0;
    (layers + vocabulary) / f64::from(deployment.tp)
}

/// Bytes that one token takes in the KV cache of one GPU.
fn token_bytes(deployment: &Deployment<'_>) -> f64 {
    let numbers = deployment.model.kv_numbers(deployment.tp);
    stage_layers(deployment) * f64::from(numbers) * f64::from(deployment.numbers.kv_bytes())
}

/// An estimate, as no dummy step can be run: what an MLP holds of all tokens at once, or the
/// sampler of all requests, whichever is more.
fn activations(deployment: &Deployment<'_>) -> f64 {
    let (model, tp) = (deployment.model, f64::from(deployment.tp));
    let tokens = f64::from(deployment.scheduler.max_num_batched_tokens);
    let hidden = f64::from(model.hidden_size);
    // Gate and up projection with their product; an expert's, once for each expert of a token.
    let dense = 3.0 * f64::from(model.intermediate_size) / tp;
    let widest = model.moe.map_or(dense, |moe| {
        let expert = 3.0 * f64::from(moe.intermediate_size) / tp + hidden;
        dense.max(f64::from(moe.experts_per_token) * expert)
    });
    // Residual, normed input, queries with keys and values, output.
    let forward = tokens * (widest + 6.0 * hidden) * 2.0;
    // Logits at 16 bits, then twice at 32 for the sampler's sort.
    let requests = f64::from(deployment.scheduler.max_num_seqs);
    let sampler = tokens * hidden * 2.0 + requests * f64::from(model.vocab_size) * 10.0;
    forward.max(sampler)
}

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
    let unsupported = |mistake: String| Err(ProfileError::Unsupported(mistake));
    if chunked && !v1 {
        return unsupported(
            "--enable-chunked-prefill belongs to the newer scheduler: the older one, as it is \
             played here, takes prompts whole; leave out one of it and --generation v0"
                .to_owned(),
        );
    }
    let (tokens, seqs) = default_batch(gpu, v1);
    let max_num_seqs = positive("--max-num-seqs", choice.max_num_seqs, seqs)?;
    // Whole prompts need a step that can hold the longest.
    let tokens = if chunked { tokens } else { tokens.max(max_model_len) };
    let most = max_num_seqs.saturating_mul(max_model_len);
    let max_num_batched_tokens =
        positive("--max-num-batched-tokens", choice.max_num_batched_tokens, tokens.min(most))?;
    if !chunked && max_num_batched_tokens < max_model_len {
        return unsupported(format!(
            "--max-num-batched-tokens {max_num_batched_tokens} is less than the {max_model_len} \
             tokens of the longest request, and prompts are not chunked; raise it, lower \
             --max-model-len, or turn chunked prefill on"
        ));
    }
    if choice.max_num_seqs.is_some() && max_num_seqs > max_num_batched_tokens {
        return unsupported(format!(
            "--max-num-seqs {max_num_seqs} is more than --max-num-batched-tokens \
             {max_num_batched_tokens}; each request needs a token of the step"
        ));
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
    if asked <= limit {
        return Ok(asked);
    }
    Err(ProfileError::Unsupported(format!(
        "--max-model-len {asked} is more than the {limit} positions of {}; use at most {limit}",
        model.title
    )))
}

fn generation(choice: &EngineTable) -> Result<Generation, ProfileError> {
    match (choice.generation.unwrap_or(EngineGeneration::V1), choice.num_scheduler_steps) {
        (EngineGeneration::V0, steps) => {
            Ok(Generation::V0 { scheduler_steps: positive("--num-scheduler-steps", steps, 1)? })
        }
        (EngineGeneration::V1, None | Some(1)) => Ok(Generation::V1),
        (EngineGeneration::V1, Some(steps)) => Err(ProfileError::Unsupported(format!(
            "--num-scheduler-steps {steps} belongs to the older scheduler; add --generation v0"
        ))),
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
        value => Err(ProfileError::setting(name, value, "1 to 16777216")),
    }
}
