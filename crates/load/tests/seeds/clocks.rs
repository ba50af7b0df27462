//! The machine's two clocks, with all that goes wrong with them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use inferometer_load::clock::ClockPair;
use inferometer_model::Moment;

use super::Draw;

/// The run's zero on the monotonic clock.
pub(super) const ZERO_NS: u64 = 5_000_000_000_000;
const WALL_NS: i64 = 1_700_000_000_000_000_000;

/// A piece of the wall clock's way: from this moment on it is ahead by `ahead_ns`, and drifts.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from_ns: u64,
    ahead_ns: i64,
    drift_ppm: i64,
}

impl Piece {
    fn ahead_ns(&self, monotonic_ns: u64) -> i64 {
        let passed_ns = monotonic_ns.saturating_sub(self.from_ns).cast_signed();
        self.ahead_ns + passed_ns / 1_000_000 * self.drift_ppm
    }
}

/// Shared by the run and by what reads the clocks in it.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    now_ns: Rc<Cell<u64>>,
    pieces: Rc<RefCell<Vec<Piece>>>,
    draw: Rc<RefCell<Draw>>,
}

impl Clocks {
    pub(super) fn new(mut draw: Draw) -> Self {
        let drift_ppm = draw.below(1_000).cast_signed() - 500;
        let piece = Piece { from_ns: 0, ahead_ns: WALL_NS, drift_ppm };
        Self {
            now_ns: Rc::new(Cell::new(ZERO_NS)),
            pieces: Rc::new(RefCell::new(vec![piece])),
            draw: Rc::new(RefCell::new(draw)),
        }
    }

    pub(super) fn now(&self) -> Moment {
        Moment::from_nanos(self.now_ns.get() - ZERO_NS)
    }

    /// Time only goes on.
    pub(super) fn advance_to(&self, moment: Moment) {
        self.now_ns.set(self.now_ns.get().max(ZERO_NS + moment.as_nanos()));
    }

    /// Somebody sets the wall clock.
    pub(super) fn jump(&self, by_ns: i64) {
        let from_ns = self.now_ns.get();
        let mut pieces = self.pieces.borrow_mut();
        let last = pieces.last().unwrap();
        let piece = Piece { from_ns, ahead_ns: last.ahead_ns(from_ns) + by_ns, ..*last };
        pieces.push(piece);
    }

    pub(super) fn has_jumped(&self) -> bool {
        1 < self.pieces.borrow().len()
    }

    /// What the kernel writes on a packet that comes at this moment.
    pub(super) fn stamp(&self, moment: Moment) -> u64 {
        let monotonic_ns = ZERO_NS + moment.as_nanos();
        let pieces = self.pieces.borrow();
        let piece = pieces.iter().rev().find(|piece| piece.from_ns <= monotonic_ns).unwrap();
        (monotonic_ns.cast_signed() + piece.ahead_ns(monotonic_ns)).cast_unsigned()
    }

    /// Reading a clock takes a moment, and sometimes another process is served first.
    fn spend(&self) {
        let mut draw = self.draw.borrow_mut();
        let cost_ns = if draw.chance(2) { draw.below(300_000) } else { 20 + draw.below(100) };
        self.advance_to(self.now() + Duration::from_nanos(cost_ns));
    }
}

impl ClockPair for Clocks {
    fn monotonic_ns(&self) -> u64 {
        self.spend();
        self.now_ns.get()
    }

    fn realtime_ns(&self) -> u64 {
        self.spend();
        self.stamp(self.now())
    }
}
