//! `[engine]`: which embedded engine is measured or simulated.

use std::time::Duration;

use clap::Args;
use inferometer_model::spec::{EngineGeneration, EnginePolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::written::{Written, named};

/// The embedded engine, where no other server is named: what it runs on, and how it is set. Names
/// are those of vLLM's options, where it has them.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "The embedded engine")]
pub(crate) struct EngineTable {
    /// Profile by its name, or a file of one; `inferometer engine --list` shows them
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// GPU to pretend to have, with --engine-model instead of a profile
    #[arg(long, value_name = "GPU")]
    pub(crate) hardware: Option<String>,
    /// Model to pretend to serve
    #[arg(id = "engine_model", long = "engine-model", value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Tensor parallelism: GPUs that share each layer [default: as the profile says, or 1]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) tp: Option<u32>,
    /// Pipeline parallelism: stages, each with its share of the layers [default: likewise]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) pp: Option<u32>,
    /// Data type of weights and activations, such as bf16 [default: as the model's]
    #[arg(long, value_name = "TYPE")]
    pub(crate) dtype: Option<String>,
    /// How weights are stored, such as fp8 or int4 [default: as the model's]
    #[arg(long, value_name = "KIND")]
    pub(crate) quantization: Option<String>,
    /// How keys and values are stored, such as fp8 [default: as the model computes]
    #[arg(long, value_name = "TYPE")]
    pub(crate) kv_cache_dtype: Option<String>,
    /// Share of the GPU's memory that the engine may use [default: 0.92]
    #[arg(long, value_name = "SHARE")]
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub(crate) gpu_memory_utilization: Option<f64>,
    /// Tokens of one KV block [default: 16]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 4096))]
    pub(crate) block_size: Option<u32>,
    /// Longest prompt with its answer [default: as the model's]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1))]
    pub(crate) max_model_len: Option<u32>,
    /// Most requests in one step
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1))]
    pub(crate) max_num_seqs: Option<u32>,
    /// Most tokens in one step
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1))]
    pub(crate) max_num_batched_tokens: Option<u32>,
    /// Most tokens of one prompt in one step [default: no such bound]
    #[arg(long, value_name = "N")]
    pub(crate) long_prefill_token_threshold: Option<u32>,
    /// KV blocks, instead of what the memory leaves room for
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1))]
    pub(crate) num_gpu_blocks_override: Option<u32>,
    /// Keep what was computed for prompts that begin alike [default: as the profile says]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) enable_prefix_caching: Option<bool>,
    /// Let prompts and answers share steps, a piece of a prompt at a time [default: likewise]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) enable_chunked_prefill: Option<bool>,
    /// Whose scheduler to follow [default: likewise]
    #[arg(long, value_name = "GENERATION", value_parser = named::<EngineGeneration>())]
    pub(crate) generation: Option<Written<EngineGeneration>>,
    /// Steps that one decision of a v0 scheduler holds for [default: likewise]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1))]
    pub(crate) num_scheduler_steps: Option<u32>,
    /// Who is next in its queue [default: fcfs]
    #[arg(long, value_name = "POLICY", value_parser = named::<EnginePolicy>())]
    pub(crate) scheduling_policy: Option<Written<EnginePolicy>>,
    /// Put the next step together while one runs [default: as the profile says]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) async_scheduling: Option<bool>,
    /// Launch every kernel by itself, without recorded graphs [default: likewise]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) enforce_eager: Option<bool>,
    /// Sigma by which step times vary, from 0 to 1 [default: likewise]
    #[arg(long, value_name = "SIGMA")]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) noise: Option<f64>,
    /// Seed of that noise, beside the seed of each run [default: the run's alone]
    #[arg(id = "engine_seed", long = "engine-seed", value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How much faster than its profile a live engine runs; a simulation needs no such thing
    /// [default: 1]
    #[arg(id = "engine_speed", long = "engine-speed", value_name = "FACTOR")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) speed: Option<f64>,
    /// Time of every step, whatever it holds, instead of a model of the hardware
    #[arg(id = "engine_step", long = "engine-step", value_name = "TIME")]
    pub(crate) step: Option<Written<Duration>>,
}
