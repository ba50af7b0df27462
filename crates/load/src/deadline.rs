//! Time-outs. One timer per request, moved lazily: a token does not touch it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use inferometer_model::outcome::Outcome;
use inferometer_model::spec::Limits;
use inferometer_model::{Clock, Moment};
use tokio::time::Sleep;

use crate::clock::SystemClock;

/// What the time-outs need to know of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) admitted: Moment,
    pub(crate) connected: bool,
    pub(crate) sent: Option<Moment>,
    pub(crate) last_read: Option<Moment>,
    pub(crate) has_output: bool,
    pub(crate) streaming: bool,
}

impl Standing {
    /// The next moment at which waiting becomes a failure, and which failure.
    ///
    /// Bytes without output, such as pings, do not move the first-token limit; after the first
    /// output any byte is a sign of life.
    pub(crate) fn next_limit(&self, limits: &Limits) -> (Moment, Outcome) {
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
    use super::*;

    #[test]
    fn each_stage_has_its_limit() {
        let second = |seconds: u64| Moment::ZERO + Duration::from_secs(seconds);
        let limits = Limits::default();
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
