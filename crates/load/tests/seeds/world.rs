//! A run of a drawn plan against drawn servers, on a drawn disk, in virtual time.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::answer::{Answer, AnswerReader, Failure};
use inferometer_load::clock::StampMapper;
use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_load::limits::{Limits, RequestState};
use inferometer_model::journal::{ClientFacts, RunStop, StartedRequest};
use inferometer_model::outcome::{Cause, Ending, Outcome, Stage};
use inferometer_model::plan::Bounds;
use inferometer_model::record::{ConnectionFacts, Read};
use inferometer_model::{
    JournalEntry, Moment, NotSent, Plan, RequestId, RequestRecord, RunEnding, spec,
};
use inferometer_store::JournalWriter;

use super::Draw;
use super::clocks::{Clocks, ZERO_NS};
use super::plan::DrawnPlan;
use super::server::{Connecting, Script, Step, reset};

/// What a seed came to.
pub(super) struct Played {
    pub(super) bounds: Bounds,
    /// All that the drivers noted, in order.
    pub(super) entries: Vec<JournalEntry>,
    /// How many of them had been handed to the kernel.
    pub(super) flushed: usize,
    /// The journal's bytes.
    pub(super) disk: Vec<u8>,
    /// Whether the plan was played to its end and its ending was written.
    pub(super) is_complete: bool,
}

pub(super) fn play(seed: u64) -> Played {
    let mut world = World::new(seed);
    for _ in 0..100_000 {
        if world.is_over() {
            return world.ended();
        }
        world.step();
    }
    panic!("the run never ends");
}

/// A journal's disk: it takes what it likes, and may be full.
struct Disk {
    bytes: Rc<RefCell<Vec<u8>>>,
    space: usize,
    draw: Draw,
}

impl Write for Disk {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if self.draw.chance(5) {
            return Err(ErrorKind::Interrupted.into());
        }
        let mut bytes = self.bytes.borrow_mut();
        let room = self.space - bytes.len();
        let wanted = if self.draw.chance(30) { 1 + self.draw.size(from.len()) } else { from.len() };
        match wanted.min(room) {
            0 => Err(ErrorKind::StorageFull.into()),
            taken => {
                bytes.extend_from_slice(&from[..taken]);
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A request in flight.
struct Flight {
    departure: Departure,
    lane: usize,
    serial: u64,
    script: Script,
    next_step: usize,
    connected: bool,
    sent: Option<Moment>,
    reader: AnswerReader,
    reads: Vec<Read>,
    /// Until when nothing can lie in the socket.
    emptied: Moment,
}

struct World {
    draw: Draw,
    clocks: Clocks,
    mapper: StampMapper<Clocks>,
    bounds: Bounds,
    dispatcher: Dispatcher,
    ceiling: usize,
    limits: spec::Limits,
    watch: Limits,
    lanes: Vec<usize>,
    flights: Vec<Option<Flight>>,
    serials: u64,
    /// When something happens to which flight.
    due: BinaryHeap<Reverse<(Moment, usize, u64)>>,
    /// Moments at which the user stops the run, the last first.
    stops: Vec<Moment>,
    stop: RunStop,
    drain_until: Option<Moment>,
    is_cut: bool,
    /// How many steps are left before the process is killed.
    life: Option<u64>,
    disk: Rc<RefCell<Vec<u8>>>,
    journal: JournalWriter<Disk>,
    entries: Vec<JournalEntry>,
    flushed: usize,
    disk_failed: bool,
    /// The largest distance of a stamp's moment from the truth.
    stamp_error_ns: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let clocks = Clocks::new(draw.branch());
        let plan = DrawnPlan::draw(&mut draw);
        let (bounds, drivers) = (plan.bounds(), 1 + draw.size(4));
        let ceiling = if draw.chance(80) { 1_000 } else { 1 + draw.size(10) };
        let limit = |draw: &mut Draw| Duration::from_millis(50 + draw.below(3_000));
        let limits = spec::Limits {
            connect: limit(&mut draw),
            first_token: limit(&mut draw),
            idle: limit(&mut draw),
            total: limit(&mut draw) * 4,
            drain: limit(&mut draw),
        };
        let dispatcher = Dispatcher::new(Arc::new(plan), ceiling, Moment::ZERO, drivers);
        let stops = if draw.chance(30) { 1 + draw.size(2) } else { 0 };
        let stop = |draw: &mut Draw| Moment::from_nanos(draw.below(1_000_000_000));
        let mut stops: Vec<Moment> = (0..stops).map(|_| stop(&mut draw)).collect();
        stops.sort_unstable_by_key(|moment| Reverse(*moment));
        let space = if draw.chance(20) { draw.size(4_000) } else { usize::MAX };
        let disk: Rc<RefCell<Vec<u8>>> = Rc::default();
        let taking = Disk { bytes: Rc::clone(&disk), space, draw: draw.branch() };
        Self {
            mapper: StampMapper::between(clocks.clone(), ZERO_NS),
            clocks,
            bounds,
            ceiling,
            limits,
            watch: Limits::default(),
            lanes: (0..dispatcher.lane_count()).collect(),
            dispatcher,
            flights: Vec::new(),
            serials: 0,
            due: BinaryHeap::new(),
            stops,
            stop: RunStop::PlanDone,
            drain_until: None,
            is_cut: false,
            disk,
            life: draw.chance(25).then(|| draw.below(200)),
            journal: JournalWriter::new(taking, PathBuf::from("runs/seed/requests.journal")),
            entries: Vec::new(),
            flushed: 0,
            disk_failed: false,
            stamp_error_ns: 0,
            draw,
        }
    }

    fn is_over(&self) -> bool {
        self.lanes.is_empty() || self.disk_failed || self.life == Some(0)
    }

    fn ended(mut self) -> Played {
        let mut is_complete = false;
        if self.lanes.is_empty() && !self.disk_failed && self.life != Some(0) {
            assert!(self.flights.iter().all(Option::is_none), "a request is still in flight");
            assert_eq!(self.dispatcher.in_flight(), 0);
            let client = ClientFacts { mapping: Some(self.mapper.facts()), ..<_>::default() };
            let (began, at, stop) = (Some(Moment::ZERO), self.clocks.now(), self.stop);
            self.note(JournalEntry::RunEnded(RunEnding { began, at, stop, client }));
            self.flush();
            is_complete = !self.disk_failed;
        }
        if !self.clocks.has_jumped() {
            // Between two estimates the wall clock may drift by this.
            let drift_ns = 60_000;
            let allowed_ns = self.mapper.facts().error_ns_max + drift_ns;
            assert!(self.stamp_error_ns <= allowed_ns, "{} ns off", self.stamp_error_ns);
            assert_eq!(self.mapper.facts().jumps, 0, "no jump may be invented");
        }
        let Self { bounds, entries, flushed, disk, .. } = self;
        Played { bounds, entries, flushed, disk: disk.take(), is_complete }
    }

    /// The next moment at which anything happens, and all that happens then.
    fn step(&mut self) {
        self.life = self.life.map(|steps| steps - 1);
        let wake = self.ask_lanes();
        if self.lanes.is_empty() {
            return;
        }
        let end = self.bounds.release_before.filter(|end| self.clocks.now() < *end);
        let due = self.next_due();
        let stop = self.stops.last().copied();
        let drain = self.drain_until.filter(|_| !self.is_cut);
        let next = [wake, due, self.watch.next(), stop, drain, end].into_iter().flatten().min();
        self.clocks.advance_to(next.expect("nothing would ever happen again"));
        self.disturb();
        let limits_first = self.draw.chance(50);
        if limits_first {
            self.check_limits();
        }
        self.move_flights();
        if !limits_first {
            self.check_limits();
        }
        self.conduct();
        if self.draw.chance(20) {
            self.flush();
        }
    }

    /// When something happens to a request that is still in flight.
    fn next_due(&mut self) -> Option<Moment> {
        loop {
            let Reverse((moment, place, serial)) = *self.due.peek()?;
            if self.flights[place].as_ref().is_some_and(|flight| flight.serial == serial) {
                return Some(moment);
            }
            self.due.pop();
        }
    }

    /// The process is stopped for a while, the wall clock is set.
    fn disturb(&mut self) {
        if self.draw.below(400) == 0 {
            let pause = Duration::from_millis(self.draw.below(4_000));
            self.clocks.advance_to(self.clocks.now() + pause);
        }
        if self.draw.below(2_000) == 0 {
            let by_ns = self.draw.below(7_200_000_000_000).cast_signed() - 3_600_000_000_000;
            self.clocks.jump(by_ns);
        }
    }

    /// Every driver does what it is told. Returns when the first of them wants to be woken.
    fn ask_lanes(&mut self) -> Option<Moment> {
        let mut wake: Option<Moment> = None;
        for lane in self.lanes.clone() {
            loop {
                match self.dispatcher.next(lane, self.clocks.now()) {
                    Command::Send(departure) => self.start(lane, departure),
                    Command::Refuse { id, cause } => self.note_not_sent(id, cause),
                    Command::WaitUntil(moment) => {
                        wake = Some(wake.map_or(moment, |earlier| earlier.min(moment)));
                        break;
                    }
                    Command::WaitForReply => break,
                    Command::Done => {
                        self.lanes.retain(|other| *other != lane);
                        break;
                    }
                }
            }
        }
        wake
    }

    fn start(&mut self, lane: usize, departure: Departure) {
        let now = self.clocks.now();
        assert!(departure.intended <= departure.admitted && departure.admitted <= now);
        assert!(self.dispatcher.in_flight() <= self.ceiling);
        if let Some(slots) = self.bounds.slots {
            assert!(self.dispatcher.in_flight() <= slots.get() as usize, "a slot was held twice");
        }
        let Departure { request, intended, admitted, slot: _ } = departure;
        let (id, asked) = (request.id, request.asked());
        self.note(JournalEntry::Started(StartedRequest { id, intended, admitted, asked }));
        let script = Script::draw(&mut self.draw.branch());
        let place = self.flights.iter().position(Option::is_none).unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        let first = match script.connecting {
            Connecting::Takes(time) => now + time,
            Connecting::Refused | Connecting::NoDescriptor => now,
        };
        self.serials += 1;
        let serial = self.serials;
        self.due.push(Reverse((first, place, serial)));
        self.watch.arm(place, admitted + self.soonest_limit());
        let reader = AnswerReader::new(script.api, script.framing);
        self.flights[place] = Some(Flight {
            departure,
            lane,
            serial,
            script,
            next_step: 0,
            connected: false,
            sent: None,
            reader,
            reads: Vec::new(),
            emptied: now,
        });
    }

    fn move_flights(&mut self) {
        let now = self.clocks.now();
        while let Some(Reverse((_, place, serial))) =
            self.due.peek().copied().filter(|Reverse((at, ..))| *at <= now)
        {
            let Reverse((at, ..)) = self.due.pop().unwrap();
            let Some(mut flight) = self.flights[place].take_if(|flight| flight.serial == serial)
            else {
                continue;
            };
            let failure = if flight.connected {
                self.read_socket(&mut flight, at)
            } else {
                self.connect(&mut flight)
            };
            match failure {
                None => {
                    let (delay, _) = flight.script.steps[flight.next_step];
                    let from = at.max(flight.emptied);
                    self.due.push(Reverse((from + delay, place, serial)));
                    self.flights[place] = Some(flight);
                }
                Some(ended) => self.finish(flight, ended),
            }
        }
    }

    /// `None` when it is connected and the request was sent.
    fn connect(&mut self, flight: &mut Flight) -> Option<Result<(), Failure>> {
        let refused = |cause| Some(Err(Failure::new(Outcome::TransportError, cause)));
        match flight.script.connecting {
            Connecting::Refused => refused(Cause::Refused),
            Connecting::NoDescriptor => refused(Cause::ClientResource),
            Connecting::Takes(_) => {
                flight.connected = true;
                flight.sent = Some(self.clocks.now());
                flight.emptied = self.clocks.now();
                None
            }
        }
    }

    /// Takes what has come by now, in pieces of any size. `Some` is the end of the answer.
    fn read_socket(&mut self, flight: &mut Flight, came: Moment) -> Option<Result<(), Failure>> {
        let step = flight.script.steps[flight.next_step].1.clone();
        let Step::Bytes(bytes) = step else {
            return match step {
                Step::End => Some(flight.reader.end(last_read(&flight.reads))),
                Step::Reset => Some(Err(reset())),
                Step::Silence | Step::Bytes(_) => {
                    // Asked again when it has long met its limit.
                    flight.script.steps[flight.next_step].0 = Duration::from_hours(1);
                    None
                }
            };
        };
        flight.next_step += 1;
        let (stamp, user) = (self.clocks.stamp(came), self.clocks.now());
        let kernel = self.mapper.moment(stamp, flight.emptied, user);
        if let Some(moment) = kernel {
            assert!(flight.emptied <= moment && moment <= user.max(flight.emptied));
            let off_ns = moment.nanos_after(came).unsigned_abs();
            self.stamp_error_ns = self.stamp_error_ns.max(off_ns);
        }
        let bytes_read = u32::try_from(bytes.len()).unwrap();
        let turn = flight.emptied;
        flight.reads.push(Read { kernel, user, turn, bytes: bytes_read, drained: true });
        flight.emptied = user;
        let read = last_read(&flight.reads);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + self.draw.size(rest.len()));
            if let Err(failure) = flight.reader.push(piece, read) {
                return Some(Err(failure));
            }
            rest = after;
        }
        None
    }

    /// No limit of a request can come sooner after anything than this.
    fn soonest_limit(&self) -> Duration {
        let spec::Limits { connect, first_token, idle, total, drain: _ } = self.limits;
        connect.min(first_token).min(idle).min(total)
    }

    fn check_limits(&mut self) {
        let now = self.clocks.now();
        while let Some(place) = self.watch.due(now) {
            let Some(flight) = &self.flights[place] else { continue };
            let state = RequestState {
                admitted: flight.departure.admitted,
                connected: flight.connected,
                sent: flight.sent,
                last_read: flight.reads.last().map(|read| read.user),
                has_output: flight.reader.has_output(),
                streaming: true,
            };
            let (at, outcome) = state.next_limit(&self.limits);
            if now < at {
                self.watch.arm(place, at.min(now + self.soonest_limit()));
                continue;
            }
            let flight = self.flights[place].take().unwrap();
            self.finish(flight, Err(Failure { outcome, cause: None, message: None }));
        }
    }

    fn finish(&mut self, flight: Flight, ended: Result<(), Failure>) {
        let now = self.clocks.now();
        let (id, lane, departure) = (flight.departure.request.id, flight.lane, flight.departure);
        if let Err(Failure { cause: Some(Cause::ClientResource), .. }) = ended {
            self.dispatcher.replied(lane, &departure, Reply { at: now, ok: false });
            self.note_not_sent(id, Cause::ClientResource);
            return;
        }
        let outcome = ended.as_ref().map_or_else(|failure| failure.outcome, |()| Outcome::Ok);
        let is_timeout = matches!(
            outcome,
            Outcome::TimeoutConnect
                | Outcome::TimeoutFirstToken
                | Outcome::TimeoutIdle
                | Outcome::TimeoutTotal
        );
        let is_expected = outcome == flight.script.outcome
            || is_timeout
            || outcome == Outcome::Cancelled && self.is_cut;
        assert!(is_expected, "request {id}: {outcome:?}, and not {:?}", flight.script.outcome);
        let record = record(flight, ended, now);
        assert!(record.admitted <= record.ending.at, "request {id} ended before it began");
        let ok = outcome == Outcome::Ok;
        self.dispatcher.replied(lane, &departure, Reply { at: record.ending.at, ok });
        self.note(JournalEntry::Ended(Box::new(record)));
    }

    /// What the conductor does: the end of the time, the user's signals, the drain.
    fn conduct(&mut self) {
        let now = self.clocks.now();
        let expired = self.dispatcher.expire(now);
        if let Some(part) = expired {
            self.note(JournalEntry::NotSent(part));
        }
        while self.stops.pop_if(|at| *at <= now).is_some() {
            if self.drain_until.is_none() || self.stop == RunStop::PlanDone {
                self.stop = RunStop::Drained;
                let parts = self.dispatcher.stop(now);
                for part in parts {
                    self.note(JournalEntry::NotSent(part));
                }
                self.drain_from(now);
            } else {
                self.cut();
            }
        }
        if self.dispatcher.is_time_over(now) && self.dispatcher.has_released_all(now) {
            self.drain_from(now);
        }
        if self.drain_until.is_some_and(|until| until <= now) {
            self.cut();
        }
    }

    fn drain_from(&mut self, now: Moment) {
        self.drain_until.get_or_insert(now + self.limits.drain);
    }

    fn cut(&mut self) {
        self.is_cut = true;
        for place in 0..self.flights.len() {
            if let Some(flight) = self.flights[place].take() {
                self.stop = RunStop::Cut;
                let failure = Failure::new(Outcome::Cancelled, Cause::RunStopped);
                self.finish(flight, Err(failure));
            }
        }
    }

    fn note_not_sent(&mut self, first: RequestId, cause: Cause) {
        let at = self.clocks.now();
        self.note(JournalEntry::NotSent(NotSent { first, count: 1, cause, at }));
    }

    fn note(&mut self, entry: JournalEntry) {
        if !self.disk_failed {
            self.disk_failed = self.journal.append(&entry).is_err();
            self.entries.push(entry);
        }
    }

    fn flush(&mut self) {
        if !self.disk_failed {
            self.disk_failed = self.journal.flush().is_err();
            if !self.disk_failed {
                self.flushed = self.entries.len();
            }
        }
    }
}

fn last_read(reads: &[Read]) -> u32 {
    u32::try_from(reads.len().saturating_sub(1)).unwrap()
}

fn record(flight: Flight, ended: Result<(), Failure>, now: Moment) -> RequestRecord {
    let Departure { request, intended, admitted, slot: _ } = flight.departure;
    let started = StartedRequest { id: request.id, intended, admitted, asked: request.asked() };
    let Answer { events, comments, usage, server, finishes, done, .. } =
        flight.reader.into_answer();
    let ending = match ended {
        Ok(()) => Ending::ok(flight.reads.last().map_or(now, Read::at)),
        Err(Failure { outcome, cause, message }) => {
            Ending { outcome, at: now, stage: Stage::Unknown, cause, message }
        }
    };
    RequestRecord {
        sent: flight.sent,
        connection: flight.connected.then_some(ConnectionFacts {
            ordinal: 0,
            reused: true,
            dial: None,
        }),
        reads: flight.reads,
        events,
        comments,
        usage,
        server,
        finishes,
        done,
        ..RequestRecord::without_answer(&started, ending)
    }
}
