//! Whether as many requests were ever in flight as a level asks for.

use crate::metric;
use serde::{Deserialize, Serialize};

use crate::run::{LoadFacts, ThinkFacts};
use crate::summary::Summary;

/// A closed loop that has fewer requests than users never has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    pub asked: u32,
    /// The most that were in flight in any run that counts.
    pub most: u32,
}

/// From this share on a level is the one that was asked for.
const SHARE_REACHED: f64 = 0.9;
/// Below this one its figures are those of another level.
const SHARE_GRAVE: f64 = 0.5;

impl Reached {
    /// `None` of an open loop, of users who think between their requests, and where it is not known.
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a Summary>) -> Option<Self> {
        let of_run = |run: &Summary| {
            let LoadFacts::Closed { concurrency, think: ThinkFacts::None } = run.run.load else {
                return None;
            };
            let peak = run.metrics.scalar(&metric::CONCURRENCY_PEAK)?.value?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count of requests, which the conversion keeps within its type"
            )]
            Some(Self { asked: concurrency, most: peak.round() as u32 })
        };
        runs.filter_map(of_run).max_by_key(|found| found.most)
    }

    pub fn is_reached(self) -> bool {
        SHARE_REACHED <= self.share()
    }

    pub(super) fn is_grave(self) -> bool {
        self.share() < SHARE_GRAVE
    }

    fn share(self) -> f64 {
        f64::from(self.most) / f64::from(self.asked.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::fixture::with_users;

    #[test]
    fn a_level_is_reached_by_nine_tenths_of_its_users() {
        // As a published suite has it: 30 requests at 32 users.
        for (asked, most, is_reached, is_grave) in [
            (32, 30.0, true, false),
            (100, 90.0, true, false),
            (100, 89.0, false, false),
            (200, 100.0, false, false),
            (400, 100.0, false, true),
        ] {
            let run = with_users(asked, Some(most));
            let found = Reached::of([&run].into_iter()).unwrap();
            assert_eq!((found.is_reached(), found.is_grave()), (is_reached, is_grave), "{asked}");
        }
    }

    #[test]
    fn what_is_not_known_is_no_reason_to_doubt() {
        assert_eq!(Reached::of([].into_iter()), None);
        assert_eq!(Reached::of([&with_users(8, None)].into_iter()), None);
        let mut thinking = with_users(8, Some(2.0));
        let think = ThinkFacts::Fixed { time_s: 2.0 };
        thinking.run.load = LoadFacts::Closed { concurrency: 8, think };
        assert_eq!(Reached::of([&thinking].into_iter()), None, "they think most of the time");
    }
}
