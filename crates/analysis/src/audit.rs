//! Planned against actual lengths of the `ok` requests, by the server's own counts.

use serde::{Deserialize, Serialize};

use crate::metric::{Missing, NOTHING_OK};
use crate::record::{Attempt, NO_TOKENS, TokenSource};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Lengths of first turns: a later turn carries the history, so its prompt is longer than its new
    /// text.
    pub input: LengthAudit,
    /// Later turns of conversations, which `input` leaves out.
    pub follow_ups: u64,
    pub output: LengthAudit,
    pub cache: CacheAudit,
}

/// The requests whose length the server reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LengthAudit {
    pub requests: u64,
    pub planned_tokens: Option<u64>,
    pub actual_tokens: Option<u64>,
    /// Requests whose count equals the plan.
    pub exact: Option<u64>,
    pub difference: Option<Difference>,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Actual less planned tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    pub min: i64,
    pub mean: f64,
    pub max: i64,
}

/// Tokens from the server's prefix cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheAudit {
    /// Requests that reported it. Some servers omit it for a request that found nothing.
    pub requests: u64,
    pub cached_tokens: Option<u64>,
    /// Share of the input tokens of all `ok` requests; an omitted count is zero.
    pub share: Option<f64>,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

const INPUT_UNKNOWN: Missing = "the server did not report how long its prompts were";
const NO_FIRST_TURN: Missing = "no first turn of a conversation ended ok";
const OUTPUT_UNKNOWN: Missing = "the server did not report how long its answers were";
pub(crate) const CACHE_UNKNOWN: Missing =
    "the server does not report the tokens from its prefix cache";

impl Difference {
    /// The same on every request, if it is.
    pub fn constant(&self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }
}

/// Lengths of the `ok` requests, while the records are read.
#[derive(Debug, Default)]
pub(crate) struct AuditTally {
    input: LengthAudit,
    output: LengthAudit,
    first_turns: u64,
    /// Input tokens of all `ok` requests.
    input_tokens: u64,
    cached: u64,
    cached_tokens: Option<u64>,
}

impl AuditTally {
    pub(crate) fn add_ok(&mut self, attempt: &Attempt) {
        self.input_tokens = self.input_tokens.saturating_add(attempt.input.count);
        if attempt.asked.turn == 0 {
            self.first_turns += 1;
            if attempt.input.reported {
                self.input.add(attempt.asked.input_tokens, attempt.input.count);
            }
        }
        if attempt.output.source == TokenSource::Usage {
            self.output.add(attempt.asked.output_tokens, attempt.output.count);
        }
        if let Some(cached) = attempt.cached {
            self.cached += 1;
            self.cached_tokens = Some(self.cached_tokens.unwrap_or(0).saturating_add(cached));
        }
    }

    /// The audit of so many `ok` requests.
    pub(crate) fn finish(self, ok: u64, generates: bool) -> Audit {
        let no_input = if self.first_turns == 0 { NO_FIRST_TURN } else { INPUT_UNKNOWN };
        let no_output = if generates { OUTPUT_UNKNOWN } else { NO_TOKENS };
        let or_nothing_ok = |missing| if ok == 0 { NOTHING_OK } else { missing };
        let no_cache = or_nothing_ok(CACHE_UNKNOWN).to_owned();
        let input_tokens = self.input_tokens.max(1) as f64;
        Audit {
            input: self.input.finish(or_nothing_ok(no_input)),
            follow_ups: ok - self.first_turns,
            output: self.output.finish(or_nothing_ok(no_output)),
            cache: CacheAudit {
                requests: self.cached,
                cached_tokens: self.cached_tokens,
                share: self.cached_tokens.map(|cached| cached as f64 / input_tokens),
                reason: Some(no_cache).filter(|_| self.cached_tokens.is_none()),
            },
        }
    }
}

impl LengthAudit {
    /// The counts of a server may be of any size.
    fn add(&mut self, planned: u32, actual: u64) {
        let difference =
            i64::try_from(actual).map_or(i64::MAX, |actual| actual - i64::from(planned));
        let add = |sum: &mut Option<u64>, more: u64| {
            *sum = Some(sum.unwrap_or(0).saturating_add(more));
        };
        self.requests += 1;
        add(&mut self.planned_tokens, planned.into());
        add(&mut self.actual_tokens, actual);
        add(&mut self.exact, u64::from(difference == 0));
        let first = Difference { min: difference, mean: 0.0, max: difference };
        let known = self.difference.get_or_insert(first);
        (known.min, known.max) = (known.min.min(difference), known.max.max(difference));
    }

    fn finish(self, missing: Missing) -> Self {
        let totals = self.planned_tokens.zip(self.actual_tokens);
        let apart = totals.map_or(0.0, |(planned, actual)| actual as f64 - planned as f64);
        let mean = apart / self.requests as f64;
        Self {
            difference: self.difference.map(|found| Difference { mean, ..found }),
            reason: self.difference.is_none().then(|| missing.to_owned()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::{Outcome, RequestRecord};

    use super::*;
    use crate::fixture::{Given, run};
    use crate::record::Measured;

    fn audit(records: Vec<RequestRecord>) -> Audit {
        Measured::from_observations(&run(records)).audit
    }

    #[test]
    fn planned_and_actual_are_added_up_and_compared_request_by_request() {
        let found = audit(vec![
            Given::ok(0).asked(100, 8).arrival(50, &[None]).usage(130, 8).record(),
            Given::ok(1).asked(200, 8).arrival(50, &[None]).usage(200, 5).record(),
            Given::ok(2).asked(300, 8).arrival(50, &[None]).usage(285, 8).record(),
            // Nothing reported, and a failure: neither is compared.
            Given::ok(3).asked(900, 8).arrival(50, &[None]).no_usage().record(),
            Given::failed(4, Outcome::Truncated).asked(900, 8).usage(1, 1).record(),
        ]);
        let input = found.input;
        assert_eq!((input.requests, input.exact, input.reason), (3, Some(1), None));
        assert_eq!((input.planned_tokens, input.actual_tokens), (Some(600), Some(615)));
        assert_eq!(input.difference, Some(Difference { min: -15, mean: 5.0, max: 30 }));
        let output = found.output;
        assert_eq!((output.requests, output.exact), (3, Some(2)));
        assert_eq!((output.planned_tokens, output.actual_tokens), (Some(24), Some(21)));
        assert_eq!(output.difference, Some(Difference { min: -3, mean: -1.0, max: 0 }));
    }

    #[test]
    fn a_chat_template_is_a_constant_difference() {
        let records = (0..4).map(|id| Given::ok(id).usage(512 + 30, 0).record());
        let difference = audit(records.collect()).input.difference.unwrap();
        assert_eq!(difference.constant(), Some(30));
        assert_eq!(Difference { min: 0, mean: 0.5, max: 1 }.constant(), None);
    }

    #[test]
    fn later_turns_carry_history_and_are_counted_apart() {
        let found = audit(vec![
            Given::ok(0).asked(100, 3).usage(100, 3).record(),
            Given::ok(1).asked(100, 3).turn(1).usage(203, 3).record(),
        ]);
        assert_eq!((found.input.requests, found.input.actual_tokens), (1, Some(100)));
        assert_eq!((found.follow_ups, found.output.requests), (1, 2));
        let alone = audit(vec![Given::ok(0).turn(1).usage(203, 3).record()]);
        assert_eq!(alone.input.reason.as_deref(), Some(NO_FIRST_TURN));
    }

    #[test]
    fn what_nobody_reported_is_null_with_a_reason() {
        let found = audit(vec![Given::ok(0).arrival(50, &[Some(3)]).no_usage().record()]);
        for (lengths, reason) in [(found.input, INPUT_UNKNOWN), (found.output, OUTPUT_UNKNOWN)] {
            assert_eq!((lengths.requests, lengths.planned_tokens, lengths.exact), (0, None, None));
            assert_eq!((lengths.actual_tokens, lengths.difference), (None, None));
            assert_eq!(lengths.reason.as_deref(), Some(reason));
        }
        assert_eq!(
            (found.cache.requests, found.cache.cached_tokens, found.cache.share),
            (0, None, None)
        );
        assert_eq!(found.cache.reason.as_deref(), Some(CACHE_UNKNOWN));
        let nothing = audit(vec![]);
        let reasons = [nothing.input.reason, nothing.output.reason, nothing.cache.reason];
        assert!(reasons.iter().all(|reason| reason.as_deref() == Some(NOTHING_OK)));
    }

    #[test]
    fn the_cache_is_a_share_of_all_input_and_zero_is_not_silence() {
        let found = audit(vec![
            Given::ok(0).usage(100, 3).cached(50).record(),
            Given::ok(1).usage(300, 3).record(),
        ]);
        let cache = found.cache;
        assert_eq!((cache.requests, cache.cached_tokens, cache.share), (1, Some(50), Some(0.125)));
        let none = audit(vec![Given::ok(0).usage(100, 3).cached(0).record()]).cache;
        assert_eq!((none.cached_tokens, none.share, none.reason), (Some(0), Some(0.0), None));
    }

    #[test]
    fn counts_past_all_bounds_stay_numbers() {
        let given = |id| Given::ok(id).usage(u64::MAX, u64::MAX).cached(u64::MAX).record();
        let found = audit(vec![given(0), given(1)]);
        assert_eq!(found.input.actual_tokens, Some(u64::MAX));
        assert_eq!(found.input.difference.unwrap().max, i64::MAX);
        assert_eq!(found.cache.cached_tokens, Some(u64::MAX));
        assert_eq!(found.cache.share, Some(1.0));
    }
}
