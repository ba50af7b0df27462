//! Which embedded engine was meant.

use inferometer_model::spec::EngineSpec;

use super::plain;
use crate::arguments::EngineTable;

pub(crate) fn draft(said: EngineTable) -> EngineSpec {
    EngineSpec {
        profile: said.profile,
        hardware: said.hardware,
        model: said.model,
        tp: said.tp,
        pp: said.pp,
        dtype: said.dtype,
        quantization: said.quantization,
        kv_cache_dtype: said.kv_cache_dtype,
        gpu_memory_utilization: said.gpu_memory_utilization,
        block_size: said.block_size,
        max_model_len: said.max_model_len,
        max_num_seqs: said.max_num_seqs,
        max_num_batched_tokens: said.max_num_batched_tokens,
        long_prefill_token_threshold: said.long_prefill_token_threshold,
        num_gpu_blocks_override: said.num_gpu_blocks_override,
        enable_prefix_caching: said.enable_prefix_caching,
        enable_chunked_prefill: said.enable_chunked_prefill,
        generation: plain(said.generation),
        num_scheduler_steps: said.num_scheduler_steps,
        scheduling_policy: plain(said.scheduling_policy),
        async_scheduling: said.async_scheduling,
        enforce_eager: said.enforce_eager,
        noise: said.noise,
        seed: said.seed,
        speed: said.speed,
        step: plain(said.step),
    }
}
