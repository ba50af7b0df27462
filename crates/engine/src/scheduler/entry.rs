//! A request under way: what is known of its tokens, what is computed, and where that lies.

use super::blocks::BlockId;
use super::listener::{RequestEnd, RequestFacts};
use super::request::{SchedulerRequest, StopRules};
use super::tokens::{PromptHasher, token};

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: u64,
    /// Counts requests since the start: order among equals, and proof that a place has not
    /// changed hands.
    pub(super) serial: u64,
    pub(super) priority: i32,
    pub(super) prompt_tokens: u32,
    pub(super) outputs: u32,
    /// Tokens whose keys and values are computed, or will be when the steps under way have ended.
    pub(super) computed: u32,
    pub(super) blocks: Vec<BlockId>,
    /// Blocks of those that have their name.
    pub(super) named: u32,
    /// Names of full blocks, of the prompt and then of the answer.
    pub(super) names: Vec<u64>,
    hasher: PromptHasher,
    answer_seed: u64,
    stop: StopRules,
    facts: Moments,
}

#[derive(Debug)]
struct Moments {
    arrived_ns: u64,
    scheduled_ns: Option<u64>,
    first_token_ns: Option<u64>,
    last_token_ns: Option<u64>,
    cached_tokens: u32,
    preemptions: u32,
}

impl Entry {
    pub(super) fn new(request: SchedulerRequest, serial: u64, arrived_ns: u64) -> Self {
        Self {
            id: request.id,
            serial,
            priority: request.priority,
            prompt_tokens: request.prompt.tokens,
            outputs: 0,
            computed: 0,
            blocks: Vec::new(),
            named: 0,
            names: request.prompt.hashes,
            hasher: request.prompt.rest,
            answer_seed: request.answer_seed,
            stop: request.stop,
            facts: Moments {
                arrived_ns,
                scheduled_ns: None,
                first_token_ns: None,
                last_token_ns: None,
                cached_tokens: 0,
                preemptions: 0,
            },
        }
    }

    /// Tokens of the prompt and of the answer so far.
    pub(super) fn known(&self) -> u32 {
        self.prompt_tokens + self.outputs
    }

    /// Whether more is asked for than that the prompt is computed.
    pub(super) fn wants_answer(&self) -> bool {
        0 < self.stop.max_tokens
    }

    pub(super) fn arrived_ns(&self) -> u64 {
        self.facts.arrived_ns
    }

    /// How often it lost its blocks.
    pub(super) fn preemptions(&self) -> u32 {
        self.facts.preemptions
    }

    pub(super) fn admit(&mut self, now_ns: u64, cached_tokens: u32) {
        if self.facts.scheduled_ns.is_none() {
            self.facts.scheduled_ns = Some(now_ns);
            self.facts.cached_tokens = cached_tokens;
        }
    }

    pub(super) fn preempt(&mut self) {
        self.computed = 0;
        self.named = 0;
        self.facts.preemptions += 1;
    }

    /// One more token of the answer; says whether it is the last.
    pub(super) fn grow(
        &mut self,
        at_ns: u64,
        max_model_len: u32,
        names: bool,
    ) -> Option<RequestEnd> {
        if names && let Some(name) = self.hasher.push(token(self.answer_seed, self.outputs)) {
            self.names.push(name);
        }
        self.outputs += 1;
        self.facts.first_token_ns.get_or_insert(at_ns);
        self.facts.last_token_ns = Some(at_ns);
        self.end(max_model_len)
    }

    fn end(&self, max_model_len: u32) -> Option<RequestEnd> {
        let StopRules { min_tokens, eos_at, stop_at, max_tokens } = self.stop;
        let reached = |at: Option<u32>| at.is_some_and(|at| at <= self.outputs);
        let may_stop = min_tokens <= self.outputs;
        if may_stop && (reached(eos_at) || reached(stop_at)) {
            return Some(RequestEnd::Stop);
        }
        let is_full = max_tokens <= self.outputs || max_model_len <= self.known();
        is_full.then_some(RequestEnd::Length)
    }

    pub(super) fn facts(&self, ended_ns: u64, end: RequestEnd) -> RequestFacts {
        let Moments { arrived_ns, scheduled_ns, first_token_ns, last_token_ns, .. } = self.facts;
        RequestFacts {
            id: self.id,
            arrived_ns,
            scheduled_ns,
            first_token_ns,
            last_token_ns,
            ended_ns,
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.facts.cached_tokens,
            output_tokens: self.outputs,
            max_tokens: self.stop.max_tokens,
            preemptions: self.facts.preemptions,
            end,
        }
    }
}
