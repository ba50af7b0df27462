//! The time-outs of all requests in flight, without a timer for each.
//!
//! A heap holds when to look at a place next. A limit that moved back is found when its old moment
//! comes, which is the case of every token: nothing is touched on its path.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use inferometer_model::outcome::Outcome;
use inferometer_model::{Moment, spec};

/// What the time-outs need to know of a request.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub admitted: Moment,
    pub connected: bool,
    pub sent: Option<Moment>,
    pub last_read: Option<Moment>,
    pub has_output: bool,
    pub streaming: bool,
}

impl Standing {
    /// The next moment at which waiting becomes a failure, and which failure.
    ///
    /// Bytes without output, such as pings, do not move the first-token limit; after the first
    /// output any byte is a sign of life.
    pub fn next_limit(&self, limits: &spec::Limits) -> (Moment, Outcome) {
        let total = (self.admitted + limits.total, Outcome::TimeoutTotal);
        let stage = if !self.connected {
            Some((self.admitted + limits.connect, Outcome::TimeoutConnect))
        } else if !self.streaming {
            None
        } else if self.has_output {
            self.last_read.map(|last| (last + limits.idle, Outcome::TimeoutIdle))
        } else {
            let from = self.sent.unwrap_or(self.admitted);
            Some((from + limits.first_token, Outcome::TimeoutFirstToken))
        };
        stage.into_iter().chain([total]).min_by_key(|(moment, _)| *moment).unwrap_or(total)
    }
}

/// When to look at which place. Early is allowed, late is not.
///
/// A stage may bring a limit that comes sooner than the one before it, so nobody should look later
/// than after the shortest of all limits.
#[derive(Debug, Default)]
pub struct Limits {
    heap: BinaryHeap<Reverse<(Moment, usize)>>,
    /// The earliest moment in the heap for each place.
    armed: Vec<Option<Moment>>,
}

impl Limits {
    /// Looks at `place` at `at`, or before.
    pub fn arm(&mut self, place: usize, at: Moment) {
        if self.armed.len() <= place {
            self.armed.resize(place + 1, None);
        }
        let armed = &mut self.armed[place];
        if armed.is_none_or(|armed| at < armed) {
            *armed = Some(at);
            self.heap.push(Reverse((at, place)));
        }
    }

    /// When to look next, at the earliest.
    pub fn next(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// A place whose moment has come. Whoever asks looks at it, and arms it again if need be.
    pub fn due(&mut self, now: Moment) -> Option<usize> {
        loop {
            let Reverse((at, place)) = *self.heap.peek().filter(|Reverse((at, _))| *at <= now)?;
            self.heap.pop();
            // Armed for an earlier moment meanwhile, and that one has been looked at.
            if self.armed[place] == Some(at) {
                self.armed[place] = None;
                return Some(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_place_is_looked_at_once_and_never_late() {
        let mut limits = Limits::default();
        limits.arm(3, ms(50));
        limits.arm(3, ms(80));
        limits.arm(0, ms(70));
        assert_eq!(limits.due(ms(49)), None);
        assert_eq!(limits.due(ms(50)), Some(3));
        limits.arm(3, ms(80));
        limits.arm(3, ms(60));
        assert_eq!(limits.due(ms(90)), Some(3));
        assert_eq!(limits.due(ms(90)), Some(0));
        assert_eq!(limits.due(ms(90)), None, "its later moment was overtaken");
    }

    #[test]
    fn each_stage_has_its_limit() {
        let second = |seconds: u64| Moment::ZERO + Duration::from_secs(seconds);
        let limits = spec::Limits::default();
        let connecting = Standing {
            admitted: second(0),
            connected: false,
            sent: None,
            last_read: None,
            has_output: false,
            streaming: true,
        };
        assert_eq!(connecting.next_limit(&limits), (second(10), Outcome::TimeoutConnect));
        let waiting = Standing {
            connected: true,
            sent: Some(second(1)),
            last_read: Some(second(100)),
            ..connecting
        };
        assert_eq!(waiting.next_limit(&limits), (second(121), Outcome::TimeoutFirstToken));
        let streaming = Standing { has_output: true, ..waiting };
        assert_eq!(streaming.next_limit(&limits), (second(160), Outcome::TimeoutIdle));
        let late = Standing { last_read: Some(second(1_790)), ..streaming };
        assert_eq!(late.next_limit(&limits), (second(1_800), Outcome::TimeoutTotal));
        let whole = Standing { streaming: false, ..waiting };
        assert_eq!(whole.next_limit(&limits), (second(1_800), Outcome::TimeoutTotal));
    }
}
