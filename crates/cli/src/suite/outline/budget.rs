//! How much of a suite a dry run simulates: what keeps nobody waiting.

use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::spec::{Extent, LoadShape, Rate};

/// Of one level: beyond these many not even the plan is made, which holds the moment of each.
pub(super) const PLANNED_REQUESTS_MAX: u64 = 1_000_000;

/// What is left to be simulated, of the whole suite.
#[derive(Debug)]
pub(super) struct Budget(Work);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) requests: u64,
    /// Tokens; those that are written take longer, as each has a step of its own.
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self(Work { requests: 200_000, read: 50_000_000, written: 5_000_000 })
    }
}

impl Budget {
    /// Whether there is enough left for it; then it is spent.
    pub(super) fn allows(&mut self, work: Work) -> bool {
        let Self(left) = self;
        let rest = left.minus(work);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }
}

/// Of each place in flight, where the engine decides how many it gets through: more than most do.
const REQUESTS_PER_S: f64 = 10.0;
const WRITTEN_PER_S: f64 = 200.0;
/// Of each request, where nothing better is known.
const TOKENS_PER_REQUEST: u64 = 1_000;

impl Work {
    /// What a run may come to, before its plan is made. What a file decides counts for nothing.
    pub(super) fn foreseen(spec: &Spec) -> Self {
        let within = |time: Duration| Self::within(&spec.load.shape, time);
        let exactly = |requests: u64| Self::of_requests(requests);
        match spec.load.extent {
            Extent::Whole => exactly(0),
            Extent::Requests(requests) => exactly(requests.get()),
            Extent::Duration(time) => within(time),
            Extent::UntilBoth { requests, duration } => {
                within(duration).max(exactly(requests.get()))
            }
            Extent::UntilFirst { requests, duration } => {
                within(duration).min(exactly(requests.get()))
            }
        }
    }

    /// The warm-up asks the same.
    pub(super) fn with_warm_up(self, requests: u64) -> Self {
        let more = |tokens: u64| {
            let each = tokens / self.requests.max(1);
            tokens.saturating_add(each.saturating_mul(requests))
        };
        Self {
            requests: self.requests.saturating_add(requests),
            read: more(self.read),
            written: more(self.written),
        }
    }

    fn minus(self, other: Self) -> Option<Self> {
        Some(Self {
            requests: self.requests.checked_sub(other.requests)?,
            read: self.read.checked_sub(other.read)?,
            written: self.written.checked_sub(other.written)?,
        })
    }

    fn within(shape: &LoadShape, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let per_s = match shape {
            LoadShape::Closed { concurrency, .. } => {
                let slots = f64::from(concurrency.get());
                let requests = rounded(slots * seconds * REQUESTS_PER_S);
                let written = rounded(slots * seconds * WRITTEN_PER_S);
                return Self { written, ..Self::of_requests(requests) };
            }
            LoadShape::Open { rate: Rate::Steady { per_s }, .. } => *per_s,
            LoadShape::Open { rate: Rate::Ramp { segments, .. }, .. } => {
                let rates = segments.iter().flat_map(|it| [it.from_per_s, it.to_per_s]);
                rates.fold(0.0, f64::max)
            }
            LoadShape::Open { rate: Rate::Unlimited, .. } => f64::INFINITY,
            LoadShape::Open { rate: Rate::Recorded(_), .. } => 0.0,
        };
        Self::of_requests(rounded(per_s * seconds))
    }

    fn of_requests(requests: u64) -> Self {
        let tokens = requests.saturating_mul(TOKENS_PER_REQUEST);
        Self { requests, read: tokens, written: tokens }
    }

    fn max(self, other: Self) -> Self {
        if self.requests < other.requests { other } else { self }
    }

    fn min(self, other: Self) -> Self {
        if self.requests < other.requests { self } else { other }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, never negative; too much is as much as fits"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_on_one_level_is_not_there_for_the_next() {
        let mut budget = Budget::default();
        let most = Work { requests: 150_000, read: 30_000_000, written: 3_000_000 };
        assert!(budget.allows(most));
        assert!(!budget.allows(most));
        let rest = Work { requests: 50_000, read: 20_000_000, written: 2_000_000 };
        assert!(budget.allows(rest));
        assert!(!budget.allows(Work { requests: 0, read: 0, written: 1 }));
    }

    #[test]
    fn a_warm_up_asks_as_much_for_each_request() {
        let work = Work { requests: 10, read: 1_000, written: 100 };
        assert_eq!(work.with_warm_up(5), Work { requests: 15, read: 1_500, written: 150 });
        let none = Work { requests: 0, read: 0, written: 0 };
        assert_eq!(none.with_warm_up(5), Work { requests: 5, ..none });
    }
}
