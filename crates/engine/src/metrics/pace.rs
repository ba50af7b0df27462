//! Two rates that SGLang shows as gauges.

use crate::scheduler::Step;

/// Steps that a rate of tokens is taken over, as SGLang does.
const STEPS: u32 = 40;

/// What the last steps achieved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Tokens of answers per second, over the last full window.
    pub(super) tokens_per_s: f64,
    /// Share of the prompt tokens that the cache spared the last step with prompts.
    pub(super) hit_rate: f64,
    began_ns: u64,
    steps: u32,
    tokens: u64,
}

impl Pace {
    pub(super) fn step_began(&mut self, step: &Step) {
        if step.shape.prefills == 0 {
            return;
        }
        let hits: u64 = step.admitted.iter().map(|(_, cached)| u64::from(*cached)).sum();
        let all = (hits + step.shape.prefill_tokens).max(1);
        self.hit_rate = hits as f64 / all as f64;
    }

    pub(super) fn step_ended(&mut self, step: &Step) {
        self.steps += 1;
        if self.steps < STEPS {
            return;
        }
        let window_ns = step.ends_ns.saturating_sub(self.began_ns).max(1);
        self.tokens_per_s = self.tokens as f64 / (window_ns as f64 / 1e9);
        self.began_ns = step.ends_ns;
        self.steps = 0;
        self.tokens = 0;
    }

    pub(super) fn token(&mut self) {
        self.tokens += 1;
    }
}
