//! What the socket notes while hyper reads and writes through it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use inferometer_model::record::Read;
use inferometer_model::{Clock, Moment};

use crate::clock::{StampMapper, SystemClock};

/// When the driver's loop last woke from waiting. The runtime's own hook sets it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<AtomicU64>);

impl Turn {
    pub(crate) fn began(&self, at: Moment) {
        self.0.store(at.as_nanos(), Ordering::Relaxed);
    }

    fn moment(&self) -> Moment {
        Moment::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// The clocks of one driver.
#[derive(Debug)]
pub(crate) struct DriverClock {
    pub(crate) system: SystemClock,
    pub(crate) mapper: StampMapper,
    turn: Turn,
}

impl DriverClock {
    pub(crate) fn new(system: SystemClock, turn: Turn) -> Self {
        Self { system, mapper: StampMapper::new(system), turn }
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
    reads: RefCell<Vec<Read>>,
}

impl Wire {
    pub(crate) fn new(clock: Rc<DriverClock>) -> Self {
        Self { clock, notes: Rc::default() }
    }

    /// Forgets the exchange before.
    pub(crate) fn begin(&self) {
        self.notes.sent.set(None);
        self.notes.last_read.set(None);
        self.notes.reads.borrow_mut().clear();
    }

    /// Called before each write; the first one of an exchange is its `sent`.
    pub(crate) fn writing(&self) {
        if self.notes.sent.get().is_none() {
            self.notes.sent.set(Some(self.clock.system.now()));
        }
    }

    /// Called when a read returned, before anything looks at its bytes.
    pub(crate) fn read(&self, bytes: usize, drained: bool, stamp_realtime_ns: Option<u64>) {
        let user = self.clock.system.now();
        let kernel = stamp_realtime_ns.and_then(|stamp| self.clock.mapper.moment(stamp, user));
        self.notes.last_read.set(Some(user));
        self.notes.reads.borrow_mut().push(Read {
            kernel,
            user,
            turn: self.clock.turn.moment().min(user),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            drained,
        });
    }

    pub(crate) fn sent(&self) -> Option<Moment> {
        self.notes.sent.get()
    }

    /// When bytes last came, by the user-space clock.
    pub(crate) fn last_read(&self) -> Option<Moment> {
        self.notes.last_read.get()
    }

    /// Index of the read whose bytes are being handed out now.
    ///
    /// hyper holds at most one read's bytes of a body at a time: it reads again only when its
    /// buffer is empty and the frame before has been taken, so the latest read is the right one.
    pub(crate) fn current_read(&self) -> u32 {
        let count = self.notes.reads.borrow().len();
        u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    pub(crate) fn has_reads(&self) -> bool {
        !self.notes.reads.borrow().is_empty()
    }

    /// When the last bytes arrived, by the best stamp there is.
    pub(crate) fn last_arrival(&self) -> Option<Moment> {
        self.notes.reads.borrow().last().map(Read::at)
    }

    pub(crate) fn take_reads(&self) -> Vec<Read> {
        std::mem::take(&mut *self.notes.reads.borrow_mut())
    }
}
