//! The event loop: one thread, one poll, connections in slots, due moments in a queue.
//!
//! It knows no mode. What is due comes first: the mode itself and due writes are looked after
//! between any two connections. A mode ([`Service`]) decides which bytes are sent and when; it does
//! no I/O and reads no clock. The loop moves the bytes and reports what became of them. An answer
//! that is written over time is a value of the mode's own type, which lives with its connection.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write as _};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use crate::clock::{Clock, Due, Moment, TimerQueue};
use crate::connection::{Connection, Shared, Turn};
use crate::http::{self, ErrorBody, Request, Route, Status, models_reply};
use crate::options::{EngineError, EngineOptions, Limits};
use crate::platform::{Alarm, stamp_receipts};
use crate::socket::{Listener, Received, Receiver};
use crate::truth::{Api, Ledger};

pub(crate) struct Server<S: Service> {
    stop: Stop,
    listener: TcpListener,
    /// The listener has connections for us that could not be taken when it reported them.
    accept_stalled: bool,
    slots: Vec<Slot<S>>,
    free: Vec<usize>,
    /// Slots emptied in this round. Events of the round may still name them, so they are not
    /// given away before its end.
    emptied: Vec<usize>,
    timers: TimerQueue,
    alarm: Alarm,
    /// Slots whose connection could go on at once.
    waiting: VecDeque<usize>,
    /// Slots for whose answers the mode has something to write.
    ready: VecDeque<usize>,
    /// The result of the mode in one wake-up; kept to be filled again.
    woken: Vec<usize>,
    shared: Shared<S>,
}

/// A place for a connection, which outlives it.
struct Slot<S: Service> {
    connection: Option<Connection<S>>,
    /// Counts alarms set and cancelled; an entry of the timer queue counts while it is the same.
    generation: u64,
    due: Option<Moment>,
    /// Whether it is in `waiting`.
    is_waiting: bool,
    /// Whether it is in `ready`.
    is_ready: bool,
}

impl<S: Service> Server<S> {
    pub(crate) fn new(
        service: S,
        limits: Limits,
        listener: Listener,
        stop: Stop,
    ) -> Result<Self, EngineError> {
        let mut listener = listener.socket;
        let registry = stop.poll.registry();
        registry
            .register(&mut listener, LISTENER, Interest::READABLE)
            .map_err(EngineError::doing("watch its listener"))?;
        let alarm = Alarm::new(registry, ALARM).map_err(EngineError::doing("make a timer"))?;
        if S::KEEPS_TRUTH {
            // A kernel without stamps leaves us with our own moments, and the truth reports it.
            let _stamped: io::Result<()> = stamp_receipts(&listener);
        }
        let clock = Clock::start();
        let shared = Shared { service, clock, receiver: Receiver::new(), limits };
        Ok(Self {
            stop,
            listener,
            accept_stalled: false,
            slots: Vec::new(),
            free: Vec::new(),
            emptied: Vec::new(),
            timers: TimerQueue::default(),
            alarm,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            woken: Vec::new(),
            shared,
        })
    }

    /// Serves until its `Stop` is triggered.
    pub(crate) fn run(mut self) -> Result<(), EngineError> {
        let mut events = Events::with_capacity(EVENTS_PER_ROUND);
        loop {
            let of_mode = self.shared.service.next_due();
            if let Some(at) = self.timers.next_at().into_iter().chain(of_mode).min() {
                self.alarm.set(at).map_err(EngineError::doing("set its timer"))?;
            }
            let timeout = if self.waiting.is_empty() && self.ready.is_empty() {
                self.alarm.poll_timeout(self.shared.clock.now())
            } else {
                Some(std::time::Duration::ZERO)
            };
            match self.stop.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result.map_err(EngineError::doing("wait for events"))?,
            }
            if self.stop.asked() {
                return Ok(());
            }
            for event in &events {
                self.handle(event);
                self.visit_due();
            }
            self.visit_due();
            // Those that could go on at once, each one time.
            for _ in 0..self.waiting.len() {
                if let Some(slot) = self.waiting.pop_front() {
                    self.slots[slot].is_waiting = false;
                    self.visit(slot);
                    self.visit_due();
                }
            }
            let slots = &self.slots;
            self.timers.sweep(slots.len(), |due| slots[due.slot].generation == due.generation);
            if !self.emptied.is_empty() {
                self.free.append(&mut self.emptied);
                if self.accept_stalled {
                    self.accept_all();
                }
            }
        }
    }

    fn handle(&mut self, event: &Event) {
        match event.token() {
            STOP => {}
            LISTENER => self.accept_all(),
            ALARM => self.alarm.went_off(),
            Token(token) => {
                let slot = token - FIRST_SLOT;
                if let Some(connection) = &mut self.slots[slot].connection {
                    connection.note(event, &self.shared);
                    self.visit(slot);
                }
            }
        }
    }

    /// Visits all connections that have something to write by now.
    fn visit_due(&mut self) {
        self.wake_mode();
        // Each one time: a mode that is always behind must not keep the loop from its clients.
        for _ in 0..self.ready.len() {
            if let Some(slot) = self.ready.pop_front() {
                self.slots[slot].is_ready = false;
                self.visit(slot);
                self.wake_mode();
            }
        }
        // Without timers, as in a mode that keeps no truth, the clock is not even read.
        while self.timers.next_at().is_some() {
            let Some(due) = self.timers.pop_due(self.shared.clock.now()) else { return };
            let slot = &mut self.slots[due.slot];
            if slot.generation == due.generation {
                slot.due = None;
                self.visit(due.slot);
                self.wake_mode();
            }
        }
    }

    fn wake_mode(&mut self) {
        let Some(due) = self.shared.service.next_due() else { return };
        let now = self.shared.clock.now();
        if now < due {
            return;
        }
        self.shared.service.wake(now, &mut self.woken);
        for index in self.woken.drain(..) {
            let slot = &mut self.slots[index];
            if !slot.is_ready {
                slot.is_ready = true;
                self.ready.push_back(index);
            }
        }
    }

    fn visit(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        match connection.visit(&mut self.shared) {
            Turn::Wait => slot.cancel_due(),
            Turn::At(at) => {
                if slot.due != Some(at) {
                    slot.cancel_due();
                    slot.due = Some(at);
                    self.timers.push(Due { at, slot: index, generation: slot.generation });
                }
            }
            Turn::Again => {
                slot.cancel_due();
                if !slot.is_waiting {
                    slot.is_waiting = true;
                    self.waiting.push_back(index);
                }
            }
            Turn::Closed => {
                slot.cancel_due();
                // Closing the socket takes it out of the poll.
                slot.connection = None;
                self.emptied.push(index);
            }
        }
    }

    /// Takes all new connections: the poll reports them only once.
    fn accept_all(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _peer)) => {
                    self.admit(stream);
                    // A burst of connections takes milliseconds.
                    self.visit_due();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // Most likely no file descriptor is free; one is when a connection ends.
                    self.accept_stalled = error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut stream: TcpStream) {
        let open = self.slots.len() - self.free.len() - self.emptied.len();
        let most = self.shared.limits.connections;
        if most <= open {
            self.shared.service.refused_connection();
            let message = format!("{most} connections are open already");
            let reply = ErrorBody::new(Status::UNAVAILABLE, message).closing_reply();
            // A new socket has room for it; if not, the closed connection shows it.
            let _written: io::Result<usize> = stream.write(&reply);
            return;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            let (connection, due) = (None, None);
            let slot = Slot { connection, generation: 0, due, is_waiting: false, is_ready: false };
            self.slots.push(slot);
            self.slots.len() - 1
        });
        let mut connection = Connection::new(stream, index);
        match self.prepare(&mut connection.stream, index) {
            Ok(()) => self.slots[index].connection = Some(connection),
            // The client is gone already.
            Err(_) => self.free.push(index),
        }
    }

    fn prepare(&self, stream: &mut TcpStream, index: usize) -> io::Result<()> {
        stream.set_nodelay(true)?;
        if S::KEEPS_TRUTH {
            // As for the listener: without stamps we go on.
            let _stamped: io::Result<()> = stamp_receipts(stream);
        }
        // Registered once for both, so that no system call is spent on changing it.
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.stop.poll.registry().register(stream, Token(FIRST_SLOT + index), interest)
    }
}

impl<S: Service> Slot<S> {
    fn cancel_due(&mut self) {
        self.generation += 1;
        self.due = None;
    }
}

const LISTENER: Token = Token(1);
const ALARM: Token = Token(2);
const FIRST_SLOT: usize = 3;

const EVENTS_PER_ROUND: usize = 1024;

/// The routes that are the same in every mode, and what they need.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    pub(crate) options: EngineOptions,
    pub(crate) ledger: Ledger,
    health: Rc<Vec<u8>>,
    version: Rc<Vec<u8>>,
}

impl Housekeeping {
    pub(crate) fn new(options: EngineOptions) -> Self {
        let ledger = Ledger::new(options.mode, &options.limits);
        let version = http::json(&serde_json::json!({ "version": env!("CARGO_PKG_VERSION") }));
        Self { options, ledger, health: http::empty(), version }
    }

    /// The API of a generation request that is laid out ahead of time; the reply to anything else.
    pub(crate) fn route(
        &mut self,
        request: &Request<'_>,
        clock: &Clock,
    ) -> Result<Api, Rc<Vec<u8>>> {
        match http::route(request) {
            Ok(Route::Generate(api @ (Api::Chat | Api::Completions))) => Ok(api),
            Ok(route) => Err(self.reply(route, request.path, clock)),
            Err(error) => Err(error.reply()),
        }
    }

    /// The reply, also for a route that only another mode has.
    pub(crate) fn reply(&mut self, route: Route, path: &str, clock: &Clock) -> Rc<Vec<u8>> {
        match route {
            Route::Health => Rc::clone(&self.health),
            Route::Version => Rc::clone(&self.version),
            Route::Models => models_reply(&self.options, clock.wall_seconds()),
            Route::ReadTruth => http::json(self.ledger.truth()),
            Route::ClearTruth => {
                self.ledger.clear();
                http::empty()
            }
            Route::Generate(_)
            | Route::Metrics
            | Route::Steps
            | Route::ResetCache
            | Route::Tokenizer
            | Route::TokenizerConfig
            | Route::Tokenize
            | Route::Detokenize => {
                let mode = self.options.mode;
                let message = format!("there is nothing at `{path}` in mode {mode}");
                ErrorBody::new(Status::NOT_FOUND, message).reply()
            }
        }
    }
}

/// Ends one [`serve`](crate::serve()), which takes it; keep a [`StopHandle`] to trigger it.
#[derive(Debug)]
pub struct Stop {
    /// The loop's own poll lives here, because a waker exists only together with one.
    pub(crate) poll: Poll,
    handle: StopHandle,
}

impl Stop {
    pub fn new() -> Result<Self, EngineError> {
        let poll = Poll::new().map_err(EngineError::doing("open its poll"))?;
        let waker =
            Waker::new(poll.registry(), STOP).map_err(EngineError::doing("make a waker"))?;
        let state = StopState { asked: AtomicBool::new(false), waker };
        Ok(Self { poll, handle: StopHandle(Arc::new(state)) })
    }

    /// A handle for another thread.
    pub fn handle(&self) -> StopHandle {
        self.handle.clone()
    }

    pub(crate) fn asked(&self) -> bool {
        self.handle.0.asked.load(Ordering::Acquire)
    }
}

/// Triggers a [`Stop`] from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<StopState>);

impl StopHandle {
    /// Ends the loop soon; a second call changes nothing.
    ///
    /// When the wake-up itself fails, the loop still ends with its next event.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::Release);
        let _woken: io::Result<()> = self.0.waker.wake();
    }
}

#[derive(Debug)]
struct StopState {
    asked: AtomicBool,
    waker: Waker,
}

/// The waker's events need no handling: the loop looks at [`Stop::asked`] after every wake-up.
pub(crate) const STOP: Token = Token(0);

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
    fn completed(&mut self, answer: Self::Answer) -> AfterAnswer;

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

/// What becomes of the connection behind an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterAnswer {
    /// It takes further requests.
    Keep,
    Close,
    /// It is cut off without an end.
    Reset,
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
