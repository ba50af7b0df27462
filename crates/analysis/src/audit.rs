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

const INPUT_UNKNOWN: Missing = Missing("the server did not report how long its prompts were");
const NO_FIRST_TURN: Missing = Missing("no first turn of a conversation ended ok");
const OUTPUT_UNKNOWN: Missing = Missing("the server did not report how long its answers were");
pub(crate) const CACHE_UNKNOWN: Missing =
    Missing("the server does not report the tokens from its prefix cache");

impl Difference {
    /// The same on every request, if it is.
    pub fn constant(&self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }
}

impl Audit {
    pub(crate) fn from_attempts(attempts: &[Attempt<'_>], generates: bool) -> Self {
        let ok = || attempts.iter().filter(|attempt| attempt.is_ok());
        let first_turns = || ok().filter(|attempt| attempt.record.asked.turn == 0);
        let reported = first_turns().filter(|attempt| attempt.input.reported);
        let input = reported.map(|it| (it.record.asked.input_tokens, it.input.count));
        let counted = ok().filter(|attempt| attempt.output.source == TokenSource::Usage);
        let output = counted.map(|it| (it.record.asked.output_tokens, it.output.count));
        let cached = || ok().filter_map(|it| it.record.usage?.cached_tokens);
        let cached_tokens = cached().reduce(u64::saturating_add);
        let input_tokens = total(ok().map(|attempt| attempt.input.count)).max(1);
        let no_input = if first_turns().count() == 0 { NO_FIRST_TURN } else { INPUT_UNKNOWN };
        let no_output = if generates { OUTPUT_UNKNOWN } else { NO_TOKENS };
        let or_nothing_ok = |missing| if ok().count() == 0 { NOTHING_OK } else { missing };
        let no_cache = or_nothing_ok(CACHE_UNKNOWN).0.to_owned();
        Self {
            input: LengthAudit::compare(input, or_nothing_ok(no_input)),
            follow_ups: (ok().count() - first_turns().count()) as u64,
            output: LengthAudit::compare(output, or_nothing_ok(no_output)),
            cache: CacheAudit {
                requests: cached().count() as u64,
                cached_tokens,
                share: cached_tokens.map(|cached| cached as f64 / input_tokens as f64),
                reason: Some(no_cache).filter(|_| cached_tokens.is_none()),
            },
        }
    }
}

impl LengthAudit {
    /// Compares planned with actual tokens, request by request.
    fn compare(lengths: impl Iterator<Item = (u32, u64)>, missing: Missing) -> Self {
        let lengths: Vec<(u32, u64)> = lengths.collect();
        let difference = |(planned, actual): &(u32, u64)| {
            i64::try_from(*actual).map_or(i64::MAX, |actual| actual - i64::from(*planned))
        };
        let differences = || lengths.iter().map(difference);
        let (Some(min), Some(max)) = (differences().min(), differences().max()) else {
            return Self { reason: Some(missing.0.to_owned()), ..Self::default() };
        };
        let planned = total(lengths.iter().map(|(planned, _)| u64::from(*planned)));
        let actual = total(lengths.iter().map(|(_, actual)| *actual));
        let mean = (actual as f64 - planned as f64) / lengths.len() as f64;
        Self {
            requests: lengths.len() as u64,
            planned_tokens: Some(planned),
            actual_tokens: Some(actual),
            exact: Some(differences().filter(|difference| *difference == 0).count() as u64),
            difference: Some(Difference { min, mean, max }),
            reason: None,
        }
    }
}

/// A sum of counts, which come from the server and may be of any size.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
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
        assert_eq!(alone.input.reason.as_deref(), Some(NO_FIRST_TURN.0));
    }

    #[test]
    fn what_nobody_reported_is_null_with_a_reason() {
        let found = audit(vec![Given::ok(0).arrival(50, &[Some(3)]).no_usage().record()]);
        for (lengths, reason) in [(found.input, INPUT_UNKNOWN), (found.output, OUTPUT_UNKNOWN)] {
            assert_eq!((lengths.requests, lengths.planned_tokens, lengths.exact), (0, None, None));
            assert_eq!((lengths.actual_tokens, lengths.difference), (None, None));
            assert_eq!(lengths.reason.as_deref(), Some(reason.0));
        }
        assert_eq!(
            (found.cache.requests, found.cache.cached_tokens, found.cache.share),
            (0, None, None)
        );
        assert_eq!(found.cache.reason.as_deref(), Some(CACHE_UNKNOWN.0));
        let nothing = audit(vec![]);
        let reasons = [nothing.input.reason, nothing.output.reason, nothing.cache.reason];
        assert!(reasons.iter().all(|reason| reason.as_deref() == Some(NOTHING_OK.0)));
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
