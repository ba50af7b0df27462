//! A step: what the GPU does at once, and what its time depends on.

/// One step as it was put together.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Requests that ended with the step before: the host takes leave of them.
    pub finished: u32,
}

impl StepShape {
    /// Tokens that pass through the linear layers.
    pub fn tokens(&self) -> u64 {
        self.prefill_tokens + u64::from(self.decodes)
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
