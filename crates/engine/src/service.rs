//! The line between the event loop and a mode.
//!
//! A mode decides which bytes leave and when; it does no I/O and reads no clock. The loop moves
//! the bytes and reports what became of them. An answer that is written over time is a value of the
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

    /// A whole request came.
    fn answer(&mut self, request: &Request<'_>, visit: Context<'_>) -> Reply<Self::Answer>;

    /// What of the answer comes next.
    ///
    /// Asked again ahead of every write, so it must be cheap when nothing was written meanwhile.
    fn next<'a>(&mut self, answer: &'a mut Self::Answer) -> Next<'a>;

    /// Some or all bytes of the last [`NextWrite`] were taken by the socket.
    fn wrote(&mut self, answer: &mut Self::Answer, written: &Written);

    /// All of the answer has been written.
    fn completed(&mut self, answer: Self::Answer);

    /// The client left before the answer was complete.
    fn abandoned(&mut self, answer: Self::Answer, clock: &Clock);

    /// A connection was closed at once because there were too many.
    fn refused_connection(&mut self);

    /// When the mode itself has something to do that no connection waits for by name.
    fn next_due(&self) -> Option<Moment> {
        None
    }

    /// That moment has come. Adds the slots whose answers returned [`Next::Wait`] and can go on.
    fn wake(&mut self, _now: Moment, _ready: &mut Vec<usize>) {}
}

/// The circumstances of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) received: &'a Received,
    /// For the wall time that answers carry.
    pub(crate) clock: &'a Clock,
    /// Where the connection is to be found when its answer can go on.
    pub(crate) slot: usize,
}

/// What an answer needs next.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    Write(NextWrite<'a>),
    /// Nothing to write before the mode asks for it.
    Wait,
    /// All of it has been written.
    End,
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
