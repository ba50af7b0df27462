//! The histograms of an engine.

use super::MetricNames;
use super::histogram::{
    CHOICES, FIRST_TOKEN_S, Histogram, PER_TOKEN_S, REQUEST_S, SGLANG_FIRST_TOKEN_S,
    SGLANG_PER_TOKEN_S, SGLANG_QUEUE_S, SGLANG_REQUEST_S, STEP_TOKENS, one_two_five,
};
use super::requests::Choices;
use crate::scheduler::RequestFacts;

/// Times in seconds, and counts of tokens and answers.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) first_token: Histogram,
    pub(super) inter_token: Histogram,
    pub(super) per_output_token: Histogram,
    pub(super) request: Histogram,
    pub(super) queue: Histogram,
    pub(super) inference: Histogram,
    pub(super) prefill: Histogram,
    pub(super) decode: Histogram,
    pub(super) prompt_tokens: Histogram,
    pub(super) output_tokens: Histogram,
    pub(super) max_tokens: Histogram,
    pub(super) computed_prompt_tokens: Histogram,
    /// The longest answer of each request.
    pub(super) longest_answer: Histogram,
    /// Answers asked of each request.
    pub(super) choices: Histogram,
    pub(super) step_tokens: Histogram,
}

impl Observed {
    pub(super) fn new(names: MetricNames, max_model_len: u32) -> Self {
        let [first_token, per_token, request, queue] = match names {
            MetricNames::VllmV1 | MetricNames::VllmV0 => {
                [FIRST_TOKEN_S, PER_TOKEN_S, REQUEST_S, REQUEST_S]
            }
            MetricNames::Sglang => {
                [SGLANG_FIRST_TOKEN_S, SGLANG_PER_TOKEN_S, SGLANG_REQUEST_S, SGLANG_QUEUE_S]
            }
        };
        let tokens = Histogram::new(&one_two_five(max_model_len));
        let request = Histogram::new(request);
        let per_token = Histogram::new(per_token);
        Self {
            first_token: Histogram::new(first_token),
            inter_token: per_token.clone(),
            per_output_token: per_token,
            queue: Histogram::new(queue),
            inference: request.clone(),
            prefill: request.clone(),
            decode: request.clone(),
            request,
            prompt_tokens: tokens.clone(),
            output_tokens: tokens.clone(),
            max_tokens: tokens.clone(),
            computed_prompt_tokens: tokens.clone(),
            longest_answer: tokens,
            choices: Histogram::new(CHOICES),
            step_tokens: Histogram::new(STEP_TOKENS),
        }
    }

    /// A request whose answer is complete.
    pub(super) fn request(&mut self, facts: &RequestFacts, front_ns: u64) {
        self.request.observe_ns(facts.ended_ns.saturating_sub(front_ns));
        self.prompt_tokens.observe(f64::from(facts.prompt_tokens));
        self.output_tokens.observe(f64::from(facts.output_tokens));
        self.max_tokens.observe(f64::from(facts.max_tokens));
        let computed = facts.prompt_tokens.saturating_sub(facts.cached_tokens);
        self.computed_prompt_tokens.observe(f64::from(computed));
        if let (Some(scheduled), Some(first), Some(last)) =
            (facts.scheduled_ns, facts.first_token_ns, facts.last_token_ns)
        {
            self.queue.observe_ns(scheduled.saturating_sub(facts.arrived_ns));
            self.prefill.observe_ns(first.saturating_sub(scheduled));
            self.inference.observe_ns(last.saturating_sub(scheduled));
            let decode_ns = last.saturating_sub(first);
            self.decode.observe_ns(decode_ns);
            let gaps = f64::from(facts.output_tokens.saturating_sub(1).max(1));
            self.per_output_token.observe(decode_ns as f64 / 1e9 / gaps);
        }
    }

    /// All answers to a request are complete.
    pub(super) fn choices(&mut self, choices: Choices) {
        self.choices.observe(f64::from(choices.asked));
        self.longest_answer.observe(f64::from(choices.longest));
    }
}
