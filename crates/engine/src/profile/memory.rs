//! How a GPU's memory is divided, and how many KV blocks are left.

use crate::scheduler::SchedulerConfig;

use super::bytes::{GIB, MIB};
use super::{Gpu, Model, Numbers};

/// The share of memory that a server takes unless told otherwise.
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
    /// What libraries take beside the framework.
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
        let graphs = graphs(deployment);
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

/// An estimate: all captured sizes take 20 MiB per layer.
fn graphs(deployment: &Deployment<'_>) -> f64 {
    if deployment.eager { 0.0 } else { stage_layers(deployment) * 20.0 * MIB }
}
