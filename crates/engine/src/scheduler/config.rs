//! What a scheduler may do, in vLLM's words.

/// The bounds and rules of one scheduler. Names are those of vLLM's options.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of vLLM's, under its name")]
pub struct SchedulerConfig {
    /// Tokens of one KV block.
    pub block_size: u32,
    /// KV blocks, with the null block that is never given away.
    pub blocks: u32,
    pub max_num_seqs: u32,
    pub max_num_batched_tokens: u32,
    pub max_model_len: u32,
    /// Most tokens of one prompt in one step while there are other requests; zero for no such bound.
    pub long_prefill_token_threshold: u32,
    pub chunked_prefill: bool,
    pub prefix_caching: bool,
    /// A prompt is admitted only when all of it fits, not just its first chunk.
    pub reserve_full_prompt: bool,
    /// Share of the blocks that admission leaves free while anything runs.
    pub watermark: f64,
    pub policy: Policy,
    pub generation: Generation,
    /// The next step is put together while one runs: host time hides behind it, and who comes
    /// meanwhile waits for one boundary more. In vLLM a request that ends by a stop rule also keeps
    /// its slot for one step, because that step was put together before its last token was known.
    /// That is not played: ends by length, which benchmarks ask for, are foreseen there, and steps
    /// here are compared with those of a scheduler that runs in turn.
    pub async_scheduling: bool,
    /// Batches that are under way at once, one per stage.
    pub pipeline_stages: u32,
}

/// Who is next, and who gives way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    #[default]
    Fcfs,
    /// By (priority, arrival); the smaller number goes first.
    Priority,
}

/// How steps are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// Prompts and answers share steps.
    #[default]
    V1,
    /// A step holds whole prompts or answers, prompts first; a scheduling decision holds for so
    /// many steps of answers.
    V0 { scheduler_steps: u32 },
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            block_size: 16,
            blocks: 10_000,
            max_num_seqs: 256,
            max_num_batched_tokens: 2048,
            max_model_len: 8192,
            long_prefill_token_threshold: 0,
            chunked_prefill: true,
            prefix_caching: true,
            reserve_full_prompt: true,
            watermark: 0.0,
            policy: Policy::Fcfs,
            generation: Generation::V1,
            async_scheduling: false,
            pipeline_stages: 1,
        }
    }
}
