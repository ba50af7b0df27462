//! One connection: bytes in, requests to the mode, answers out, in order.
//!
//! A connection does one request at a time; what a client sends ahead waits in a bounded buffer.
//! Every visit is short: after a number of reads or writes it asks to be visited again, so that
//! one busy client does not make the others late.

use std::io::{self, ErrorKind, Write as _};
use std::net::Shutdown;
use std::rc::Rc;

use mio::event::Event;
use mio::net::TcpStream;

use crate::clock::{Clock, Moment};
use crate::http::{self, Parsed};
use crate::options::Limits;
use crate::platform::reset_on_close;
use crate::server::{AfterAnswer, Context, Next, Reply, Service, Written};
use crate::socket::{Received, Receiver};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared<S> {
    pub(crate) service: S,
    pub(crate) clock: Clock,
    pub(crate) receiver: Receiver,
    pub(crate) limits: Limits,
}

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its socket has to become ready.
    Wait,
    /// It has something to write at that moment.
    At(Moment),
    /// It could go on, but others come first.
    Again,
    /// It is over.
    Closed,
}

/// One client's connection.
pub(crate) struct Connection<S: Service> {
    pub(crate) stream: TcpStream,
    /// Where the loop keeps it.
    slot: usize,
    phase: Phase,
    /// Bytes that came and were not used yet.
    inbound: Vec<u8>,
    /// Looking at `inbound` is worthwhile when it has this many bytes.
    needed: usize,
    /// When the last read's bytes came.
    received: Received,
    reply: Option<Reply<S::Answer>>,
    /// Bytes of a plain reply that the socket has taken.
    sent: usize,
    /// The client was allowed to send the current body.
    continued: bool,
    socket: SocketState,
}

/// What is known of the socket.
#[derive(Clone, Copy, Debug, Default)]
struct SocketState {
    /// It may have bytes for us.
    readable: bool,
    /// The client has closed its side; the bytes ahead of that are still to be read.
    hung_up: bool,
    /// It was full and has not been found to have room since.
    full: bool,
    /// When it was last found to have room again after having been full.
    room_since: Option<Moment>,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// More requests may follow.
    Open,
    /// The reply at hand is the last.
    Last,
    /// The reply at hand is the last, and the client may still be sending.
    Refused,
    /// Everything is sent. Closing now, with bytes unread, would reset the connection and could take the
    /// reply from the client; so up to this many more bytes are read and thrown away.
    Draining { bytes_left: usize },
}

/// How far writing got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing is left to write.
    Idle,
    /// The socket is full, or the mode has nothing to write yet and will say when it has.
    Blocked,
    NotBefore(Moment),
    /// Enough for one visit.
    Enough,
    /// The last reply has been written.
    Complete,
    /// The client is gone.
    Lost,
}

impl<S: Service> Connection<S> {
    pub(crate) fn new(stream: TcpStream, slot: usize) -> Self {
        Self {
            stream,
            slot,
            phase: Phase::Open,
            inbound: Vec::new(),
            needed: 0,
            received: Received::default(),
            reply: None,
            sent: 0,
            continued: false,
            socket: SocketState::default(),
        }
    }

    /// Notes what the poll reported, which are hints only: the next call on the socket decides. A
    /// visit should follow.
    pub(crate) fn note(&mut self, event: &Event, shared: &Shared<S>) {
        let hung_up = event.is_read_closed() || event.is_error();
        self.socket.readable |= event.is_readable() || hung_up;
        self.socket.hung_up |= hung_up;
        if self.socket.full && (event.is_writable() || event.is_error()) {
            self.socket.full = false;
            self.socket.room_since = S::KEEPS_TRUTH.then(|| shared.clock.now());
        }
    }

    /// Writes what is due, then reads and answers what came.
    pub(crate) fn visit(&mut self, shared: &mut Shared<S>) -> Turn {
        let mut progress = self.answer_inbound(shared);
        for _ in 0..READS_PER_VISIT {
            if progress == Progress::Lost || !self.wants_bytes() {
                break;
            }
            match self.read(shared) {
                Ok(Some(after)) => progress = after,
                Ok(None) => break,
                Err(Gone) => progress = Progress::Lost,
            }
        }
        if progress == Progress::Lost {
            if let Some(Reply::Generated(answer)) = self.reply.take() {
                shared.service.abandoned(answer, &shared.clock);
            }
            return Turn::Closed;
        }
        if progress == Progress::Complete && self.phase == Phase::Last {
            return Turn::Closed;
        }
        if progress == Progress::Enough || self.wants_bytes() {
            return Turn::Again;
        }
        if let Progress::NotBefore(due) = progress { Turn::At(due) } else { Turn::Wait }
    }

    /// Whether to read: not while a client that is busy being answered has sent far ahead.
    fn wants_bytes(&self) -> bool {
        self.socket.readable
            && (self.reply.is_none() || self.socket.hung_up || self.inbound.len() < AHEAD_BYTES)
    }

    /// One read and what follows from it; `None` when there was nothing to read.
    fn read(&mut self, shared: &mut Shared<S>) -> Result<Option<Progress>, Gone> {
        let length = if S::KEEPS_TRUTH {
            let read = shared.receiver.read_stamped(&self.stream, &mut shared.clock);
            read.map(|(length, received)| {
                self.received = received;
                length
            })
        } else {
            shared.receiver.read(&mut self.stream)
        };
        let length = match length {
            Ok(0) => return Err(Gone),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.socket.readable = false;
                return Ok(None);
            }
            Err(_) => return Err(Gone),
        };
        // A short read has emptied the socket; the poll will tell of more. Not so when the client
        // has hung up: that was reported already, and is read as zero bytes.
        self.socket.readable = self.socket.hung_up || !shared.receiver.drained_by(length);
        if let Phase::Draining { bytes_left } = &mut self.phase {
            *bytes_left = bytes_left.checked_sub(length).ok_or(Gone)?;
            return Ok(Some(Progress::Idle));
        }
        if self.inbound.is_empty() {
            // The common case: the bytes are used where they lie.
            let Shared { service, clock, receiver, limits } = shared;
            let bytes = receiver.bytes(length);
            let (used, progress) = self.answer(bytes, service, clock, limits);
            self.inbound.extend_from_slice(&bytes[used..]);
            return Ok(Some(progress));
        }
        self.inbound.extend_from_slice(shared.receiver.bytes(length));
        Ok(Some(self.answer_inbound(shared)))
    }

    fn answer_inbound(&mut self, shared: &mut Shared<S>) -> Progress {
        let mut inbound = std::mem::take(&mut self.inbound);
        let Shared { service, clock, limits, .. } = shared;
        let (used, progress) = self.answer(&inbound, service, clock, limits);
        inbound.drain(..used);
        // A long body is rare; its buffer is not kept for the connection's life.
        if !inbound.is_empty() || inbound.capacity() <= AHEAD_BYTES {
            self.inbound = inbound;
        }
        progress
    }

    /// Answers the requests in `bytes` one after another; also returns how many bytes they took.
    fn answer(
        &mut self,
        bytes: &[u8],
        service: &mut S,
        clock: &Clock,
        limits: &Limits,
    ) -> (usize, Progress) {
        let mut used = 0;
        loop {
            let progress = self.write(service, clock);
            if progress != Progress::Idle {
                return (used, progress);
            }
            let rest = &bytes[used..];
            if rest.is_empty() || rest.len() < self.needed {
                return (used, Progress::Idle);
            }
            self.reply = Some(match http::parse(rest, limits) {
                Ok(Parsed::Whole { request, length }) => {
                    used += length;
                    self.needed = 0;
                    self.continued = false;
                    if request.close {
                        self.phase = Phase::Last;
                    }
                    let context = Context { received: &self.received, clock, slot: self.slot };
                    service.answer(&request, context)
                }
                Ok(Parsed::Partial { needed, expects_continue }) => {
                    self.needed = needed;
                    if !expects_continue || self.continued {
                        return (used, Progress::Idle);
                    }
                    self.continued = true;
                    Reply::Plain(Rc::new(http::CONTINUE.to_vec()))
                }
                Err(refusal) => {
                    used = bytes.len();
                    self.phase = Phase::Refused;
                    Reply::Plain(Rc::new(refusal.closing_reply()))
                }
            });
        }
    }

    /// Writes the reply at hand as far as the socket, the schedule and the visit allow.
    fn write(&mut self, service: &mut S, clock: &Clock) -> Progress {
        if self.socket.full {
            return Progress::Blocked;
        }
        for _ in 0..WRITES_PER_VISIT {
            match self.write_once(service, clock) {
                Ok(None) => {}
                Ok(Some(progress)) => return progress,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.socket.full = true;
                    return Progress::Blocked;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Progress::Lost,
            }
        }
        if self.reply.is_some() { Progress::Enough } else { self.settled() }
    }

    /// Makes one `write()`; returns why there is none to make, or none that is due.
    fn write_once(&mut self, service: &mut S, clock: &Clock) -> io::Result<Option<Progress>> {
        let answer = match &mut self.reply {
            None => return Ok(Some(self.settled())),
            Some(Reply::Plain(bytes)) => {
                self.sent += self.stream.write(&bytes[self.sent..])?;
                if self.sent == bytes.len() {
                    self.sent = 0;
                    self.reply = None;
                }
                return Ok(None);
            }
            Some(Reply::Generated(answer)) => answer,
        };
        let next = match service.next(answer) {
            Next::Write(next) => next,
            Next::Wait => return Ok(Some(Progress::Blocked)),
            Next::End => {
                if let Some(Reply::Generated(answer)) = self.reply.take() {
                    match service.completed(answer) {
                        AfterAnswer::Keep => {}
                        AfterAnswer::Close => self.phase = Phase::Last,
                        AfterAnswer::Reset => {
                            reset_on_close(&self.stream)?;
                            self.phase = Phase::Last;
                        }
                    }
                }
                return Ok(None);
            }
        };
        let now = || if S::KEEPS_TRUTH { clock.now() } else { Moment::default() };
        let before = now();
        if let Some(due) = next.due.filter(|due| before < *due) {
            return Ok(Some(Progress::NotBefore(due)));
        }
        let bytes = self.stream.write(next.bytes)?;
        let (after, room_since) = (now(), self.socket.room_since);
        service.wrote(answer, &Written { bytes, before, after, room_since });
        Ok(None)
    }

    /// What it means that there is no reply to write.
    fn settled(&mut self) -> Progress {
        match self.phase {
            Phase::Open => Progress::Idle,
            Phase::Last | Phase::Draining { .. } => Progress::Complete,
            Phase::Refused => {
                self.phase = Phase::Draining { bytes_left: DRAIN_BYTES };
                match self.stream.shutdown(Shutdown::Write) {
                    Ok(()) => Progress::Complete,
                    Err(_) => Progress::Lost,
                }
            }
        }
    }
}

/// The client has left, or sent more than anyone will read.
#[derive(Clone, Copy, Debug)]
struct Gone;

/// A large upload is read over several visits.
const READS_PER_VISIT: u32 = 16;
/// A fast stream is written over several visits.
const WRITES_PER_VISIT: u32 = 64;
/// How far a client may send ahead of the answer at hand.
const AHEAD_BYTES: usize = 64 << 10;
/// What a refused client may still send before it is cut off.
const DRAIN_BYTES: usize = 128 << 20;
