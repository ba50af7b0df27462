//! A request as the scheduler sees it: lengths, hashes and rules, but no text.

use serde::Serialize;

use super::blocks::{PromptHasher, token};
use super::speculation::{Drafts, Speculation};

/// A request to generate.
#[derive(Clone, Debug, Serialize)]
pub struct SchedulerRequest {
    /// Unique among the requests that are in flight.
    pub id: u64,
    #[serde(flatten)]
    pub prompt: HashedPrompt,
    /// Decides the tokens of the answer: the one at `index` is `tokens::token(seed, index)`.
    pub answer_seed: u64,
    #[serde(flatten)]
    pub stop: StopRules,
    /// Counts under `Policy::Priority` only; the smaller number goes first.
    pub priority: i32,
}

/// When an answer ends. Checked in vLLM's order after each token: nothing before `min_tokens`,
/// then the end of sequence, then stop strings, then the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StopRules {
    pub min_tokens: u32,
    /// The answer would end by itself with this many tokens, its last one the end of sequence;
    /// `None` when that is to be ignored.
    pub eos_at: Option<u32>,
    /// A stop string or stop token is complete with this many tokens.
    pub stop_at: Option<u32>,
    /// Zero asks for no answer at all.
    pub max_tokens: u32,
}

impl StopRules {
    /// No answer: the request is over when its prompt is computed, as one for an embedding is.
    pub const NO_ANSWER: Self = Self { min_tokens: 0, eos_at: None, stop_at: None, max_tokens: 0 };

    /// An answer of exactly so many tokens.
    pub fn after(tokens: u32) -> Self {
        Self { min_tokens: 0, eos_at: None, stop_at: None, max_tokens: tokens }
    }
}

/// The prompt's length, and the chained hashes of its full blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HashedPrompt {
    #[serde(rename = "prompt_tokens")]
    pub tokens: u32,
    #[serde(rename = "prompt_hashes")]
    pub hashes: Vec<u64>,
    /// What the answer's blocks are chained to: the tokens behind the last full block.
    #[serde(rename = "prompt_rest")]
    pub rest: PromptHasher,
}

impl HashedPrompt {
    /// From token ids.
    pub fn of_tokens(ids: impl IntoIterator<Item = u32>, block_size: u32) -> Self {
        let mut rest = PromptHasher::new(block_size);
        let mut hashes = Vec::new();
        let mut tokens = 0;
        for id in ids {
            tokens += 1;
            hashes.extend(rest.push(id));
        }
        Self { tokens, hashes, rest }
    }

    /// From runs of tokens, each a seed and a length: equal seeds begin with equal tokens.
    pub fn of_segments(segments: impl IntoIterator<Item = (u64, u32)>, block_size: u32) -> Self {
        let ids = segments
            .into_iter()
            .flat_map(|(seed, tokens)| (0..tokens).map(move |index| token(seed, index)));
        Self::of_tokens(ids, block_size)
    }
}

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
    /// Of v1 alone.
    pub speculation: Option<Speculation>,
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
            speculation: None,
        }
    }
}

/// Receives everything that happens, in the order in which it happens.
pub trait Listener {
    fn step_began(&mut self, _step: &Step) {}

    /// A step is over; its tokens follow.
    fn step_ended(&mut self, _step: &Step) {}

    /// The token at `index` of the answer to `id` is there.
    fn token(&mut self, _id: u64, _index: u32, _at_ns: u64) {}

    /// A request is no longer here: its answer is complete, or it was taken back.
    fn ended(&mut self, _facts: &RequestFacts) {}
}

/// Ignores all events.
impl Listener for () {}

/// What became of one request: times and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    pub id: u64,
    pub arrived_ns: u64,
    /// When it first had a part in a step.
    pub scheduled_ns: Option<u64>,
    pub first_token_ns: Option<u64>,
    pub last_token_ns: Option<u64>,
    pub ended_ns: u64,
    pub prompt_tokens: u32,
    /// Prompt tokens that the prefix cache held when it was first admitted.
    pub cached_tokens: u32,
    pub output_tokens: u32,
    pub max_tokens: u32,
    pub preemptions: u32,
    pub drafts: Drafts,
    pub end: RequestEnd,
}

/// Why a request is no longer here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestEnd {
    /// The end of sequence, or a stop string; also a prompt without an answer.
    Stop,
    /// `max_tokens` or the model's length.
    Length,
    /// Its client aborted it.
    #[default]
    Abort,
}

/// One step as it was put together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// From zero.
    pub ordinal: u64,
    pub began_ns: u64,
    pub ends_ns: u64,
    /// Requests and how many of their tokens are computed, running ones first.
    pub scheduled: Vec<(u64, u32)>,
    /// Requests that lost their blocks while it was put together.
    pub preempted: Vec<u64>,
    /// Requests that came in from the queue, with the tokens that the prefix cache spared them.
    pub admitted: Vec<(u64, u32)>,
    #[serde(skip)]
    pub shape: StepShape,
}

/// What the time of a step depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepShape {
    /// Prompt tokens that are computed (recomputed ones as well).
    pub prefill_tokens: u64,
    /// Prompts that have a part in it.
    pub prefills: u32,
    /// For each chunk of t tokens behind s others, t·(s + t/2), summed: token pairs of attention.
    pub prefill_pairs: f64,
    /// Requests that get one token each from their whole context.
    pub decodes: u32,
    /// Tokens that those attend to, summed.
    pub decode_context: u64,
    pub decode_context_max: u32,
    /// Tokens of drafts that are verified with them.
    pub drafted: u64,
    /// Requests that ended with the step before: the host takes leave of them.
    pub finished: u32,
}

impl StepShape {
    /// Tokens that pass through the linear layers.
    pub fn tokens(&self) -> u64 {
        self.prefill_tokens + u64::from(self.decodes) + self.drafted
    }

    /// Whether no prompt has a part in it.
    pub fn is_decode_only(&self) -> bool {
        self.prefills == 0
    }
}

/// How long a step takes.
pub trait StepTime {
    fn step_ns(&mut self, shape: &StepShape) -> u64;
}

/// Every step takes as long as any other: what queueing theory knows the answers for.
#[derive(Clone, Copy, Debug)]
pub struct ConstantStep(pub u64);

impl StepTime for ConstantStep {
    fn step_ns(&mut self, _: &StepShape) -> u64 {
        self.0
    }
}
