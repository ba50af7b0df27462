//! A TCP socket whose reads carry the kernel's receive stamps, and the notes that it takes of what is read and written
//! through it.

use std::cell::{Cell, RefCell, RefMut};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use inferometer_model::record::Read;
use inferometer_model::{Clock, Moment};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::{StampMapper, SystemClock};
use crate::connection::is_breakage;
use crate::platform;

#[derive(Debug)]
pub(crate) struct StampedSocket {
    tcp: TcpStream,
    wire: Wire,
    /// Room for the control message that holds the stamp; made once.
    control: Vec<u8>,
    stamped: bool,
}

impl StampedSocket {
    pub(crate) fn new(tcp: TcpStream, wire: Wire, kernel_stamps: bool) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        let stamped = kernel_stamps && platform::enable_stamps(&tcp);
        Ok(Self { tcp, wire, control: platform::control_room(), stamped })
    }

    /// One read of at most so many bytes, into the driver's own room.
    fn receive(&mut self, most: usize) -> io::Result<usize> {
        let mut room = self.wire.clock.room.borrow_mut();
        let length = room.len().min(most);
        let control = self.stamped.then_some(self.control.as_mut_slice());
        let mut received = None;
        let result = self.tcp.try_io(Interest::READABLE, || {
            let read = platform::receive_now(&self.tcp, &mut room[..length], control)?;
            let drained = 0 < read.bytes && read.bytes < length;
            received = Some((read, drained));
            // An emptied socket will be announced anew. To ask it again would be one more system
            // call, only to hear that there is nothing.
            if drained { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(0) }
        });
        let Some((read, drained)) = received else { return result };
        if 0 < read.bytes {
            self.wire.read(read.bytes, drained, read.stamp_realtime_ns);
        }
        Ok(read.bytes)
    }

    /// One read, which is lent to `take`; nothing is the end.
    pub(crate) fn poll_take<T>(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        loop {
            ready!(self.tcp.poll_read_ready(cx))?;
            match self.receive(most) {
                Ok(bytes) => return Poll::Ready(Ok(take(&self.wire.clock.room.borrow()[..bytes]))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncRead for StampedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        // What comes is mostly short, and cheaper to copy than the whole buffer is to wipe.
        self.get_mut().poll_take(cx, buffer.remaining(), |bytes| buffer.put_slice(bytes))
    }
}

impl AsyncWrite for StampedSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.wire.writing();
        left_to_reading(Pin::new(&mut this.tcp).poll_write(cx, bytes), bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.wire.writing();
        let length = slices.iter().map(|slice| slice.len()).sum();
        left_to_reading(Pin::new(&mut this.tcp).poll_write_vectored(cx, slices), length)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(cx)
    }
}

/// A server that does not read on may have answered before it left: whoever reads finds its answer,
/// and the end after it.
fn left_to_reading(written: Poll<io::Result<usize>>, length: usize) -> Poll<io::Result<usize>> {
    match written {
        Poll::Ready(Err(error)) if is_breakage(error.kind()) => Poll::Ready(Ok(length)),
        written @ (Poll::Ready(_) | Poll::Pending) => written,
    }
}

/// Since when the driver's loop may not have looked at its sockets. The runtime's own hooks keep
/// it: the loop goes to wait, and wakes.
///
/// A loop that wakes in time has lost nothing: the first bytes woke it. A process that was stopped
/// or not scheduled wakes late, and everything since it went to wait may have lain unread. A
/// regular tick distinguishes the two: when its moment is long past, the loop is late.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<TurnMoments>);

#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the unit comes last, and here all share it")]
struct TurnMoments {
    since_ns: AtomicU64,
    waiting_from_ns: AtomicU64,
    woke_ns: AtomicU64,
    /// When the next tick is due; zero while nothing ticks.
    tick_due_ns: AtomicU64,
    /// When output was last read; zero before the first.
    output_ns: AtomicU64,
}

/// How late a tick may be, and how long a turn may take, before the loop counts as away.
const SLACK_NS: u64 = 500_000;

impl Turn {
    pub(crate) fn waits(&self, now: Moment) {
        // A signal ends a wait without a look at the sockets, and the loop waits again at once:
        // as long as the tick is overdue, it is still the same absence.
        if !self.is_late(now) {
            self.0.waiting_from_ns.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    pub(crate) fn wakes(&self, now: Moment) {
        let waiting_from_ns = self.0.waiting_from_ns.load(Ordering::Relaxed);
        let woke_ns = self.0.woke_ns.swap(now.as_nanos(), Ordering::Relaxed);
        let since_ns = if self.is_late(now) {
            waiting_from_ns
        } else if woke_ns + SLACK_NS < waiting_from_ns {
            // The turn before was long, and what came during it is only found now.
            woke_ns
        } else {
            now.as_nanos()
        };
        self.0.since_ns.store(since_ns, Ordering::Relaxed);
    }

    fn is_late(&self, now: Moment) -> bool {
        let due_ns = self.0.tick_due_ns.load(Ordering::Relaxed);
        0 < due_ns && due_ns + SLACK_NS < now.as_nanos()
    }

    pub(crate) fn tick_due(&self, due: Moment) {
        self.0.tick_due_ns.store(due.as_nanos(), Ordering::Relaxed);
    }

    /// Output arrived: shows that the run is alive.
    pub(crate) fn output_came(&self, at: Moment) {
        self.0.output_ns.store(at.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn last_output(&self) -> Moment {
        Moment::from_nanos(self.0.output_ns.load(Ordering::Relaxed))
    }

    fn moment(&self) -> Moment {
        Moment::from_nanos(self.0.since_ns.load(Ordering::Relaxed))
    }
}

/// The clocks of one driver.
#[derive(Debug)]
pub(crate) struct DriverClock {
    pub(crate) system: SystemClock,
    pub(crate) mapper: StampMapper,
    pub(crate) turn: Turn,
    /// Where reads land before they are handed on: one room for all sockets of a driver, and no
    /// byte of it has to be wiped before each read.
    room: RefCell<Vec<u8>>,
    /// The same for what TLS has opened.
    opened_room: RefCell<Vec<u8>>,
    /// Where requests are written before they leave.
    leaving_room: RefCell<Vec<u8>>,
}

const ROOM_BYTES: usize = 512 << 10;
/// TLS opens one record at a time.
const OPENED_ROOM_BYTES: usize = 16 << 10;
/// A longer room is given back: few requests need one.
const LEAVING_ROOM_BYTES: usize = 16 << 10;

impl DriverClock {
    pub(crate) fn new(system: SystemClock, turn: Turn) -> Self {
        platform::switch_stamps_on();
        Self {
            system,
            mapper: StampMapper::new(system),
            turn,
            room: RefCell::new(vec![0; ROOM_BYTES]),
            opened_room: RefCell::new(vec![0; OPENED_ROOM_BYTES]),
            leaving_room: RefCell::default(),
        }
    }

    /// Room for a request, which is put back when it has left.
    pub(crate) fn leaving_room(&self) -> Vec<u8> {
        self.leaving_room.take()
    }
}

/// The reads and the first write of the exchange that a connection now carries.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    clock: Rc<DriverClock>,
    notes: Rc<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    sent: Cell<Option<Moment>>,
    last_read: Cell<Option<Moment>>,
    /// Bytes that came later than this cannot carry an earlier stamp: the socket was empty.
    emptied: Cell<Option<Moment>>,
    reads: RefCell<Vec<Read>>,
    is_shared: Cell<bool>,
    is_secured: Cell<bool>,
}

impl Wire {
    pub(crate) fn new(clock: Rc<DriverClock>) -> Self {
        Self { clock, notes: Rc::default() }
    }

    /// For a socket that carries many exchanges: it keeps its latest read only, and they note their own.
    pub(crate) fn shared(clock: Rc<DriverClock>) -> Self {
        let wire = Self::new(clock);
        wire.notes.is_shared.set(true);
        wire
    }

    /// The socket below speaks TLS, which has words of its own.
    pub(crate) fn secured(&self) {
        self.notes.is_secured.set(true);
    }

    /// Called when a part of an answer is handed over that this read of a shared socket brought.
    pub(crate) fn handed(&self, read: Read, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.notes.last_read.set(Some(read.user));
        let mut reads = self.notes.reads.borrow_mut();
        match reads.last_mut() {
            Some(last) if last.user == read.user => last.bytes = last.bytes.saturating_add(bytes),
            _ => reads.push(Read { bytes, ..read }),
        }
    }

    pub(crate) fn latest_read(&self) -> Option<Read> {
        self.notes.reads.borrow().last().copied()
    }

    /// Forgets the exchange before.
    pub(crate) fn begin(&self) {
        self.notes.sent.set(None);
        self.notes.last_read.set(None);
        self.notes.emptied.set(None);
        self.notes.reads.borrow_mut().clear();
    }

    /// Called before each write; the first one of an exchange is its `sent`.
    pub(crate) fn writing(&self) {
        if self.notes.sent.get().is_none() {
            let now = self.now();
            self.left(now);
            // An answer cannot come before its request; a TLS session ticket can.
            if !self.notes.is_secured.get() {
                self.notes.emptied.set(Some(now));
            }
        }
    }

    /// The request left at this moment, by the first write of it.
    pub(crate) fn left(&self, at: Moment) {
        self.notes.sent.set(Some(at));
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.system.now()
    }

    /// Called when a read returned, before anything looks at its bytes.
    pub(crate) fn read(&self, bytes: usize, drained: bool, stamp_realtime_ns: Option<u64>) {
        let user = self.now();
        let earliest = self.notes.emptied.get().unwrap_or_default();
        let kernel =
            stamp_realtime_ns.and_then(|stamp| self.clock.mapper.moment(stamp, earliest, user));
        self.notes.last_read.set(Some(user));
        let read = Read {
            kernel,
            user,
            turn: self.clock.turn.moment().min(user),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            drained,
        };
        if drained {
            self.notes.emptied.set(Some(read.at()));
        }
        let mut reads = self.notes.reads.borrow_mut();
        if self.notes.is_shared.get() {
            reads.clear();
        }
        reads.push(read);
    }

    pub(crate) fn opened_room(&self) -> RefMut<'_, Vec<u8>> {
        self.clock.opened_room.borrow_mut()
    }

    pub(crate) fn put_back_room(&self, mut room: Vec<u8>) {
        if room.capacity() <= LEAVING_ROOM_BYTES {
            room.clear();
            self.clock.leaving_room.replace(room);
        }
    }

    pub(crate) fn sent(&self) -> Option<Moment> {
        self.notes.sent.get()
    }

    /// When bytes last came, by the user-space clock.
    pub(crate) fn last_read(&self) -> Option<Moment> {
        self.notes.last_read.get()
    }

    /// Index of the read whose bytes are being handed out now: a body is read on only when all of the read before
    /// has been taken, so the latest is the right one.
    pub(crate) fn current_read(&self) -> u32 {
        let count = self.notes.reads.borrow().len();
        u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    pub(crate) fn has_reads(&self) -> bool {
        !self.notes.reads.borrow().is_empty()
    }

    /// When the last bytes arrived, by the best stamp there is.
    pub(crate) fn last_arrival(&self) -> Option<Moment> {
        self.latest_read().as_ref().map(Read::at)
    }

    pub(crate) fn take_reads(&self) -> Vec<Read> {
        std::mem::take(&mut *self.notes.reads.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(count: u64) -> Moment {
        Moment::from_nanos(count * 1_000)
    }

    #[test]
    fn a_loop_that_wakes_in_time_has_looked_since_it_woke() {
        let turn = Turn::default();
        turn.tick_due(micros(2_000));
        turn.waits(micros(100));
        turn.wakes(micros(1_900));
        assert_eq!(turn.moment(), micros(1_900));
    }

    #[test]
    fn what_came_during_a_long_turn_is_only_found_in_the_next() {
        let turn = Turn::default();
        turn.tick_due(micros(2_000));
        turn.waits(micros(50));
        turn.wakes(micros(100));
        // The turn takes five milliseconds, and serves its tick in the middle of them.
        turn.tick_due(micros(7_000));
        turn.waits(micros(5_100));
        turn.wakes(micros(5_110));
        assert_eq!(turn.moment(), micros(100));
        turn.waits(micros(5_200));
        turn.wakes(micros(5_300));
        assert_eq!(turn.moment(), micros(5_300));
    }

    #[test]
    fn a_loop_that_wakes_late_has_not_looked_since_it_went_to_wait() {
        let turn = Turn::default();
        turn.tick_due(micros(2_000));
        turn.waits(micros(100));
        turn.wakes(micros(400_000));
        assert_eq!(turn.moment(), micros(100));
        // A signal woke it; it waits and wakes again before it has served its tick.
        turn.waits(micros(400_010));
        turn.wakes(micros(400_020));
        assert_eq!(turn.moment(), micros(100));
        turn.tick_due(micros(402_000));
        turn.waits(micros(400_100));
        turn.wakes(micros(401_000));
        assert_eq!(turn.moment(), micros(401_000));
    }
}
