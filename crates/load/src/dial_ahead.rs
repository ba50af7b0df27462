//! Connections that are opened before the plan begins.
//!
//! A request that opens its own connection waits for it, and where a thousand begin at once, each
//! waits for all the others as well: the first answers of a closed loop would look slower than the
//! server is. So what a plan needs from its first moment on is opened before its clock starts, and
//! slowly enough that the server's queue of connections is not overrun.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use inferometer_model::journal::Dialling;
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::Dial;
use inferometer_model::{Clock, Moment, Plan, Release, RequestId};
use tokio::task::JoinSet;

use crate::answer::Failure;
use crate::connection::Connection;
use crate::control::{Control, Stop};
use crate::dispatcher::SlotId;
use crate::exchange::Exchanges;
use crate::limits::before;
use crate::target::Target;

/// Connections that all drivers together have under way at once. Many servers queue 128, some 100.
const AT_ONCE: usize = 64;
/// Of these, so many begin together, and the next ones after a pause in which the server takes them out of
/// its queue: llama.cpp and Python's servers queue five. A connection that overran the queue looks open, and
/// its first request waits until the kernel has tried again.
const IN_A_ROW: usize = 4;
const PAUSE: Duration = Duration::from_millis(1);
/// A connection that took this long was dropped from a full queue, and tried again by the kernel.
const QUEUE_WAS_FULL: Duration = Duration::from_millis(500);
/// Failures in a row after which no more is tried: the requests will show what is wrong.
const FAILURES_MAX: u32 = 16;
/// How soon a stop is noticed while a server does not answer.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The requests of an open loop that are due within this time are given connections, but no more than
/// these: how many are in flight at once depends on the server.
const OPEN_LOOP_TIME: Moment = Moment::from_nanos(1_000_000_000);
const OPEN_LOOP_MAX: usize = 1_024;

/// How many requests a plan may have in flight soon after its beginning, so that each needs a
/// connection (or, with HTTP/2, a place on one). Zero where requests open their own.
pub fn connections_needed(plan: &dyn Plan, target: &Target, ceiling: usize) -> usize {
    let slots = plan.bounds().slots.map(|slots| slots.get() as usize);
    let is_kept = match target.connections {
        Connections::Reuse => true,
        Connections::PerUser => slots.is_some(),
        Connections::New => false,
    };
    let most = if is_kept { slots.unwrap_or(usize::MAX).min(ceiling) } else { 0 };
    let (mut at_once, mut soon) = (0, 0);
    for id in (0..).map(RequestId) {
        if most <= at_once + soon || OPEN_LOOP_MAX <= soon {
            break;
        }
        match plan.request(id).map(|request| request.release) {
            Some(Release::WhenSlotFree | Release::At(Moment::ZERO)) => at_once += 1,
            Some(Release::At(moment)) if moment < OPEN_LOOP_TIME => soon += 1,
            Some(Release::After { .. } | Release::Beside { .. }) => {}
            Some(Release::At(_)) | None => break,
        }
    }
    at_once + soon
}

/// How many of so many connections one driver opens: they are dealt like slots.
pub(crate) fn share(connections: usize, lane: usize, drivers: usize) -> usize {
    connections.saturating_sub(lane).div_ceil(drivers.max(1))
}

impl Exchanges {
    /// Opens so many connections. What fails is counted, and the request that lacks the connection will try itself.
    pub(crate) async fn dial_ahead(self: &Rc<Self>, count: usize, control: &Control) -> Dialling {
        let clock = self.clock.system;
        let started = clock.now();
        let mut dialling = match self.target.http {
            HttpVersion::Http1 => self.dial_paced(count, control).await,
            HttpVersion::Http2 => self.dial_links(count, control).await,
        };
        let took = clock.now().since(started).unwrap_or_default();
        dialling.took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        dialling
    }

    async fn dial_paced(self: &Rc<Self>, count: usize, control: &Control) -> Dialling {
        let clock = self.clock.system;
        let drivers = self.drivers();
        let pause = PAUSE * u32::try_from(drivers.div_ceil(IN_A_ROW)).unwrap_or(u32::MAX);
        let mut at_once = (AT_ONCE / drivers).max(1);
        let mut ahead = Ahead::new(count);
        let (mut opened, mut open) = (Vec::new(), JoinSet::new());
        // Of many drivers, four begin at a time as well.
        let turn = u32::try_from(self.driver() / IN_A_ROW).unwrap_or(u32::MAX);
        let (mut begun, mut next) = (0, clock.now() + PAUSE * turn);
        while ahead.tried < count && !ahead.is_hopeless() && control.asked() == Stop::Run {
            let has_more = begun < count && open.len() < at_once;
            if has_more && next <= clock.now() {
                let starting =
                    (IN_A_ROW / drivers).max(1).min(at_once - open.len()).min(count - begun);
                for _ in 0..starting {
                    let exchanges = Rc::clone(self);
                    open.spawn_local(async move { exchanges.dial_one().await });
                }
                begun += starting;
                next = clock.now() + pause;
            }
            let until = if has_more { next } else { clock.now() + LOOK_EVERY };
            if open.is_empty() {
                before(clock, until, std::future::pending::<()>()).await;
                continue;
            }
            match before(clock, until, open.join_next()).await {
                Some(Some(Ok(dialled))) => {
                    let (took, connection) = ahead.take(dialled);
                    opened.extend(connection);
                    if QUEUE_WAS_FULL <= took {
                        at_once = (at_once / 4).max(1);
                    }
                }
                // A task that panicked was not counted, and one is not enough to give up.
                Some(_) => ahead.tried += 1,
                None => {}
            }
        }
        self.keep(opened, ahead)
    }

    /// One connection, within the time that a request would have for it.
    async fn dial_one(&self) -> Result<Box<Connection>, Failure> {
        let clock = self.clock.system;
        let stage = Cell::new(Stage::Connect);
        let limit = clock.now() + self.target.limits.connect;
        let dialled = before(clock, limit, self.dial(&stage)).await;
        dialled.unwrap_or(Err(TIMED_OUT))
    }

    /// Puts the connections where the first requests look for them, in the order of their numbers.
    #[expect(clippy::vec_box, reason = "a connection is large, and is kept in a box")]
    fn keep(&self, mut opened: Vec<Box<Connection>>, ahead: Ahead) -> Dialling {
        opened.sort_unstable_by_key(|connection| std::cmp::Reverse(connection.ordinal));
        for connection in opened {
            // Slots are dealt to drivers as the numbers of connections are.
            let slot = SlotId(connection.ordinal);
            self.put_back(connection, Some(slot));
        }
        ahead.dialling
    }

    /// HTTP/2: connections until each of so many requests has a place on one.
    async fn dial_links(&self, count: usize, control: &Control) -> Dialling {
        let clock = self.clock.system;
        let mut ahead = Ahead::new(0);
        while self.links.places() < count && !ahead.is_hopeless() && control.asked() == Stop::Run {
            let stage = Cell::new(Stage::Connect);
            let limit = clock.now() + self.target.limits.connect;
            let dialled = before(clock, limit, self.dial_link(&stage)).await;
            ahead.take(dialled.unwrap_or(Err(TIMED_OUT)));
            ahead.dialling.wanted += 1;
        }
        ahead.dialling
    }
}

const TIMED_OUT: Failure = Failure { outcome: Outcome::TimeoutConnect, cause: None, message: None };

/// What was opened so far, and what failed.
struct Ahead {
    dialling: Dialling,
    tried: usize,
    failed_in_a_row: u32,
}

impl Ahead {
    fn new(wanted: usize) -> Self {
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        Self { dialling: Dialling { wanted, ..Dialling::default() }, tried: 0, failed_in_a_row: 0 }
    }

    /// Notes an attempt: how long it took, and the connection.
    fn take(
        &mut self,
        dialled: Result<Box<Connection>, Failure>,
    ) -> (Duration, Option<Box<Connection>>) {
        self.tried += 1;
        match dialled {
            Ok(mut connection) => {
                self.failed_in_a_row = 0;
                let took = connection.opened_ahead().map_or(Duration::ZERO, length);
                let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
                self.dialling.connect_ns.push(took_ns);
                (took, Some(connection))
            }
            Err(failure) => {
                self.failed_in_a_row += 1;
                if failure.cause == Some(Cause::ClientResource) {
                    self.failed_in_a_row = FAILURES_MAX;
                }
                self.dialling.add_failure(failure.outcome, failure.cause, 1);
                (Duration::ZERO, None)
            }
        }
    }

    fn is_hopeless(&self) -> bool {
        FAILURES_MAX <= self.failed_in_a_row
    }
}

fn length(dial: Dial) -> Duration {
    dial.secured.unwrap_or(dial.connected).since(dial.started).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_dealt_like_slots() {
        let shares = |connections| [0, 1, 2].map(|lane| share(connections, lane, 3));
        assert_eq!(shares(0), [0, 0, 0]);
        assert_eq!(shares(2), [1, 1, 0]);
        assert_eq!(shares(10), [4, 3, 3]);
    }
}
