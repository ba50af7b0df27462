//! The time-outs of all requests in flight, without a timer for each.
//!
//! A heap holds when to look at a place next. A limit that moved back is found when its old moment
//! comes, which is the case of every token: nothing is touched on its path.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use inferometer_model::outcome::Outcome;
use inferometer_model::{Clock, Moment, spec};
use tokio::time::Sleep;

use crate::clock::SystemClock;

/// What the time-outs need to know of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestState {
    pub admitted: Moment,
    pub connected: bool,
    pub sent: Option<Moment>,
    pub last_read: Option<Moment>,
    pub has_output: bool,
    pub streaming: bool,
}

impl RequestState {
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
/// A stage may bring a limit that comes sooner than the one before it, so the next check must not come later
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

    /// A place whose moment has come. The caller checks it, and arms it again if needed.
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

#[derive(Debug)]
pub(crate) struct Deadline {
    clock: SystemClock,
    /// When the timer fires. It may be early, never late.
    armed: Moment,
    sleep: Pin<Box<Sleep>>,
}

impl Deadline {
    pub(crate) fn new(clock: SystemClock, at: Moment) -> Self {
        let left = at.since(clock.now()).unwrap_or_default();
        Self { clock, armed: at, sleep: Box::pin(sleep_for(left)) }
    }

    /// Ready when the limit that `next_limit` names has passed.
    ///
    /// A limit that moved back leaves the timer as it is, to be looked at when it fires: that is
    /// the case of every token. A limit that came nearer, as with a new stage, arms it anew.
    pub(crate) fn poll_passed(
        &mut self,
        cx: &mut Context<'_>,
        next_limit: impl Fn() -> (Moment, Outcome),
    ) -> Poll<Outcome> {
        loop {
            let (at, outcome) = next_limit();
            if at < self.armed {
                self.arm(at);
            }
            ready!(self.sleep.as_mut().poll(cx));
            if at <= self.clock.now() {
                return Poll::Ready(outcome);
            }
            self.arm(at);
        }
    }

    fn arm(&mut self, at: Moment) {
        self.armed = at;
        self.sleep.set(sleep_for(at.since(self.clock.now()).unwrap_or_default()));
    }

    pub(crate) async fn passed(mut self) {
        self.sleep.as_mut().await;
    }
}

/// What `work` gives, or `None` when it was not done by `at`.
pub(crate) async fn before<F: Future>(
    clock: SystemClock,
    at: Moment,
    work: F,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = Deadline::new(clock, at).passed() => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the deadline module")]
fn sleep_for(length: Duration) -> Sleep {
    tokio::time::sleep(length)
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
        let connecting = RequestState {
            admitted: second(0),
            connected: false,
            sent: None,
            last_read: None,
            has_output: false,
            streaming: true,
        };
        assert_eq!(connecting.next_limit(&limits), (second(10), Outcome::TimeoutConnect));
        let waiting = RequestState {
            connected: true,
            sent: Some(second(1)),
            last_read: Some(second(100)),
            ..connecting
        };
        assert_eq!(waiting.next_limit(&limits), (second(121), Outcome::TimeoutFirstToken));
        let streaming = RequestState { has_output: true, ..waiting };
        assert_eq!(streaming.next_limit(&limits), (second(160), Outcome::TimeoutIdle));
        let late = RequestState { last_read: Some(second(1_790)), ..streaming };
        assert_eq!(late.next_limit(&limits), (second(1_800), Outcome::TimeoutTotal));
        let whole = RequestState { streaming: false, ..waiting };
        assert_eq!(whole.next_limit(&limits), (second(1_800), Outcome::TimeoutTotal));
    }
}
