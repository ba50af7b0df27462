//! The line between the event loop and a mode.
//!
//! A mode decides which bytes leave and when; it does no I/O and reads no clock. The loop moves
//! the bytes and says what became of them. An answer that is written over time is a value of the
//! mode's own type, which lives with its connection.

use std::rc::Rc;

use crate::clock::{Clock, Moment};
use crate::http::Request;
use crate::socket::Received;

/// A mode: requests in, answers out.
pub(crate) trait Service {
    /// An answer that is written over time.
    type Answer;

    /// Whether moments matter to it. If not, the loop reads no clock and asks for no stamps.
    const KEEPS_TRUTH: bool;

    /// A whole request came. The clock is for the wall time that answers carry.
    fn answer(
        &mut self,
        request: &Request<'_>,
        received: &Received,
        clock: &Clock,
    ) -> Reply<Self::Answer>;

    /// What of the answer comes next, or `None` when all of it has been written.
    ///
    /// Asked again ahead of every write, so it must be cheap when nothing was written meanwhile.
    fn next_write<'a>(&mut self, answer: &'a mut Self::Answer) -> Option<NextWrite<'a>>;

    /// Some or all bytes of the last [`NextWrite`] were taken by the socket.
    fn wrote(&mut self, answer: &mut Self::Answer, written: &Written);

    /// All of the answer has been written.
    fn completed(&mut self, answer: Self::Answer);

    /// The client left before the answer was complete.
    fn abandoned(&mut self, answer: Self::Answer);

    /// A connection was closed at once because there were too many.
    fn refused_connection(&mut self);
}

/// What a request gets.
#[derive(Debug)]
pub(crate) enum Reply<A> {
    /// Bytes that leave at once and of which nothing is recorded.
    Plain(Rc<Vec<u8>>),
    /// An answer that is written over time.
    Generated(A),
}

/// Bytes for one `write()`.
#[derive(Debug)]
pub(crate) struct NextWrite<'a> {
    pub(crate) bytes: &'a [u8],
    /// Not to be written before; `None` is as soon as what came before it has been written.
    pub(crate) due: Option<Moment>,
}

/// What one `write()` did.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) bytes: usize,
    /// The clock immediately ahead of the call; zero for a mode that keeps no truth.
    pub(crate) before: Moment,
    /// The clock immediately after it; zero for a mode that keeps no truth.
    pub(crate) after: Moment,
    /// When a socket that had been full was last found to have room again.
    pub(crate) room_since: Option<Moment>,
}
