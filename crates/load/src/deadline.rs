//! Time-outs. One timer per request, moved lazily: a token does not touch it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use inferometer_model::outcome::Outcome;
use inferometer_model::{Clock, Moment};
use tokio::time::Sleep;

use crate::clock::SystemClock;

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
