//! What the engine reports of its own work on a request, in the form of the servers that do: its queue,
//! its prefill and its decoding, as the scheduler timed them, and reasoning tokens.

use std::time::Duration;

use super::answer::Usage;
use crate::json::{Json, Members, members};
use crate::scheduler::{Drafts, RequestFacts};

/// In whose form answers report the engine's own times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// vLLM's `metrics`.
    Vllm,
    /// The `timings` of llama.cpp, which has no queue in them.
    LlamaCpp,
}

/// What answers have besides text and usage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extras {
    pub report: Option<ReportForm>,
    /// The first tokens of each chat answer, as many as these, are reasoning.
    pub reasoning_tokens: u32,
    /// The share of sums, JSON documents and calls of tools that is answered right; `None` answers all
    /// requests with words by chance.
    pub right_answers: Option<f64>,
}

/// The times of one answer on the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnTimes {
    queue: Duration,
    prefill: Duration,
    decode: Duration,
    drafts: Drafts,
}

impl OwnTimes {
    /// `None` without a token.
    pub(crate) fn from_facts(facts: &RequestFacts) -> Option<Self> {
        let scheduled_ns = facts.scheduled_ns?;
        let (first_ns, last_ns) = (facts.first_token_ns?, facts.last_token_ns?);
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        Some(Self {
            queue: between(facts.arrived_ns, scheduled_ns),
            prefill: between(scheduled_ns, first_ns),
            decode: between(first_ns, last_ns),
            drafts: facts.drafts,
        })
    }

    /// On the wall, where `speed` seconds of the engine pass in one.
    pub(crate) fn at_speed(self, speed: f64) -> Self {
        let wall = |time: Duration| time.div_f64(speed);
        let (queue, prefill) = (wall(self.queue), wall(self.prefill));
        Self { queue, prefill, decode: wall(self.decode), ..self }
    }

    /// The member of the document that ends an answer.
    pub(crate) fn member(
        self,
        form: ReportForm,
        usage: &Usage,
    ) -> (&'static str, Members<'static>) {
        let ms = |time: Duration| Json::Number(time.as_secs_f64() * 1e3);
        let tokens = usage.completion_tokens;
        match form {
            ReportForm::Vllm => {
                let gaps = tokens.saturating_sub(1);
                let itl = if gaps == 0 { Json::Null } else { ms(self.decode / gaps) };
                let busy_s = (self.prefill + self.decode).as_secs_f64();
                let rate = (0.0 < busy_s).then(|| Json::Number(f64::from(tokens) / busy_s));
                let mut metrics = members! {
                    "time_to_first_token_ms": ms(self.prefill),
                    "generation_time_ms": ms(self.decode),
                    "queue_time_ms": ms(self.queue), "mean_itl_ms": itl,
                    "tokens_per_second": rate.unwrap_or(Json::Null),
                };
                let Drafts { steps, drafted, accepted, histogram } = self.drafts;
                if 0 < steps {
                    let used = histogram.iter().rposition(|steps| 0 < *steps).unwrap_or(0);
                    let histogram = histogram[..=used].iter().map(|steps| Json::Count(*steps));
                    let drafts = members! {
                        "num_spec_steps": Json::Count(steps),
                        "num_accepted_draft_tokens": Json::Count(accepted),
                        "num_draft_tokens": Json::Count(drafted),
                        "acceptance_histogram": Json::List(histogram.collect()),
                    };
                    metrics.push(("speculative_decoding", drafts.into()));
                }
                ("metrics", metrics)
            }
            ReportForm::LlamaCpp => {
                let computed = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
                let mut timings = members! {
                    "cache_n": usage.cached_tokens, "prompt_n": computed,
                    "prompt_ms": ms(self.prefill), "predicted_n": tokens,
                    "predicted_ms": ms(self.decode),
                };
                if 0 < self.drafts.steps {
                    timings.push(("draft_n", Json::Count(self.drafts.drafted)));
                    timings.push(("draft_n_accepted", Json::Count(self.drafts.accepted)));
                }
                ("timings", timings)
            }
        }
    }
}
