//! When each token of an answer is due, fixed when its request arrives.

use std::time::Duration;

use crate::clock::Moment;
use crate::draws::{Draws, Purpose};
use crate::options::Pacing;

/// The due moments of an answer's tokens, one after another, for as long as anyone asks.
///
/// They depend on the receipt and the seed alone: a late token never moves the ones after it.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// The last due moment; the receipt, ahead of the first token.
    last: Moment,
    /// What comes next: the time to the first token, then gaps.
    next_ns: u64,
    gap_ns: u64,
    jitter: f64,
    draws: Draws,
}

impl Schedule {
    pub(crate) fn new(received: Moment, pacing: &Pacing, seed: u64, ordinal: u64) -> Self {
        Self {
            last: received,
            next_ns: whole_ns(pacing.ttft),
            gap_ns: whole_ns(pacing.gap),
            jitter: pacing.jitter,
            draws: Draws::new(seed, ordinal, Purpose::Schedule),
        }
    }

    /// When the next token is due.
    pub(crate) fn next(&mut self) -> Moment {
        let factor = 1.0 + self.jitter * (2.0 * self.draws.unit() - 1.0);
        self.last = self.last.plus_ns(scaled(self.next_ns, factor));
        self.next_ns = self.gap_ns;
        self.last
    }

    /// When the last of `tokens` is due.
    pub(crate) fn nth(mut self, tokens: u32) -> Moment {
        (0..tokens).for_each(|_| {
            self.next();
        });
        self.last
    }
}

fn whole_ns(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an interval is at most INTERVAL_MAX and a factor lies in [0, 2]"
)]
fn scaled(ns: u64, factor: f64) -> u64 {
    (ns as f64 * factor).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(jitter: f64) -> Pacing {
        let (ttft, gap) = (Duration::from_micros(1), Duration::from_nanos(100));
        Pacing { ttft, gap, jitter, ..Pacing::default() }
    }

    fn first(jitter: f64, seed: u64, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(Moment::from_ns(5), &pacing(jitter), seed, 0);
        (0..count).map(|_| schedule.next().ns()).collect()
    }

    #[test]
    fn without_jitter_tokens_are_evenly_spaced_after_the_first() {
        assert_eq!(first(0.0, 1, 4), [1_005, 1_105, 1_205, 1_305]);
        let schedule = Schedule::new(Moment::from_ns(5), &pacing(0.0), 1, 0);
        assert_eq!(schedule.nth(4).ns(), 1_305);
    }

    #[test]
    fn jitter_stays_within_its_share_of_every_interval() {
        for seed in 0..200 {
            let due = first(0.25, seed, 50);
            assert!((755..=1_255).contains(&due[0]), "seed {seed}: {due:?}");
            let fits = due.windows(2).all(|pair| (75..=125).contains(&(pair[1] - pair[0])));
            assert!(fits, "seed {seed}: {due:?}");
        }
    }

    #[test]
    fn a_seed_fixes_the_schedule() {
        assert_eq!(first(0.5, 9, 20), first(0.5, 9, 20));
        assert_ne!(first(0.5, 9, 20), first(0.5, 10, 20));
    }
}
