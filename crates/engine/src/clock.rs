//! The only place that reads a clock.
//!
//! The truth is kept on `CLOCK_MONOTONIC`, which client and engine share on one machine. Kernel
//! receive stamps are on `CLOCK_REALTIME`; they are brought over by reading the two clocks close
//! together, and the width of that reading is the error that a mapped stamp carries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::ClockId;

/// A point on this machine's `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    pub(crate) const fn ns(self) -> u64 {
        self.0
    }

    pub(crate) const fn plus_ns(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// The time from `earlier` to `self`, or `None` when the two are out of order.
    pub(crate) fn since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }
}

/// A kernel stamp brought over to the monotonic clock, with the error of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) at: Moment,
    pub(crate) error_ns: u64,
}

/// The clocks of this process, and how far the wall clock is ahead of the monotonic one.
#[derive(Debug)]
pub(crate) struct Clock {
    ahead_ns: u64,
    error_ns: u64,
    /// When the two were compared.
    compared: Moment,
}

impl Clock {
    /// Takes the narrowest of a few sandwiched readings: a preempted one is wide.
    pub(crate) fn start() -> Self {
        let readings = (0..COMPARISONS).map(|_| {
            let before = read_ns(ClockId::CLOCK_MONOTONIC);
            let wall = read_ns(ClockId::CLOCK_REALTIME);
            let after = read_ns(ClockId::CLOCK_MONOTONIC);
            let width = after.saturating_sub(before);
            // Half the width, rounded up: the wall clock was read somewhere in between.
            let error_ns = width.div_ceil(2);
            let ahead_ns = wall.saturating_sub(before + width / 2);
            Self { ahead_ns, error_ns, compared: Moment(after) }
        });
        readings.min_by_key(|reading| reading.error_ns).expect("at least one reading is taken")
    }

    #[expect(clippy::unused_self, reason = "only who was given the clock may read it")]
    pub(crate) fn now(&self) -> Moment {
        Moment(read_ns(ClockId::CLOCK_MONOTONIC))
    }

    /// Seconds since 1970, for the `created` field of answers.
    #[expect(clippy::unused_self, reason = "only who was given the clock may read it")]
    pub(crate) fn wall_seconds(&self) -> u64 {
        read_ns(ClockId::CLOCK_REALTIME) / NS_PER_S
    }

    /// Brings a wall-clock stamp, read at `now`, over to the monotonic clock.
    ///
    /// A stamp from the future means that someone set the wall clock meanwhile; it means nothing
    /// then, and the caller falls back to its own moment.
    pub(crate) fn place(&mut self, stamp_ns: u64, now: Moment) -> Option<Stamp> {
        if now.since(self.compared).is_none_or(|age| COMPARISON_AGE_MAX < age) {
            *self = Self::start();
        }
        let at = Moment(stamp_ns.checked_sub(self.ahead_ns)?);
        let error_ns = self.error_ns;
        (at <= now.plus_ns(error_ns)).then_some(Stamp { at, error_ns })
    }
}

/// Nanoseconds of a kernel time value.
pub(crate) fn timespec_ns(time: TimeSpec) -> u64 {
    time.tv_sec().cast_unsigned() * NS_PER_S + time.tv_nsec().cast_unsigned()
}

#[expect(clippy::disallowed_methods, reason = "this is the process's clock module")]
fn read_ns(clock: ClockId) -> u64 {
    timespec_ns(nix::time::clock_gettime(clock).expect("POSIX systems have these clocks"))
}

const NS_PER_S: u64 = 1_000_000_000;

/// The wall clock may be set at any time, so what we know of it must be young.
const COMPARISON_AGE_MAX: Duration = Duration::from_millis(100);

const COMPARISONS: u32 = 4;

/// A connection is due. It counts only while the connection's slot has the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) at: Moment,
    pub(crate) slot: usize,
    pub(crate) generation: u64,
}

/// Due moments, earliest first. Cancelled ones stay until popped or swept.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    heap: BinaryHeap<Reverse<Due>>,
}

impl TimerQueue {
    pub(crate) fn push(&mut self, due: Due) {
        self.heap.push(Reverse(due));
    }

    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse(due)| due.at)
    }

    /// Takes the earliest entry if it is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Moment) -> Option<Due> {
        let due = self.heap.peek().filter(|Reverse(due)| due.at <= now)?.0;
        self.heap.pop();
        Some(due)
    }

    /// Drops cancelled entries when they outnumber the live ones, of which a slot has at most one.
    ///
    /// Without this, clients that keep leaving ahead of a long first token would fill the memory.
    pub(crate) fn sweep(&mut self, slots: usize, is_live: impl Fn(&Due) -> bool) {
        if SWEEP_FLOOR.max(2 * slots) < self.heap.len() {
            self.heap.retain(|Reverse(due)| is_live(due));
        }
    }
}

const SWEEP_FLOOR: usize = 4096;

#[cfg(test)]
mod clock_tests {
    use super::*;

    #[test]
    fn a_stamp_taken_between_two_moments_is_placed_between_them() {
        let mut clock = Clock::start();
        let before = clock.now();
        let wall = read_ns(ClockId::CLOCK_REALTIME);
        let after = clock.now();
        let stamp = clock.place(wall, after).unwrap();
        assert!(before <= stamp.at.plus_ns(stamp.error_ns), "{before:?} {stamp:?}");
        assert!(stamp.at <= after.plus_ns(stamp.error_ns), "{stamp:?} {after:?}");
    }

    #[test]
    fn a_stamp_from_the_future_is_not_believed() {
        let mut clock = Clock::start();
        let ahead = read_ns(ClockId::CLOCK_REALTIME) + NS_PER_S;
        let now = clock.now();
        assert_eq!(clock.place(ahead, now), None);
    }

    #[test]
    fn an_old_comparison_is_made_again() {
        let mut clock = Clock::start();
        clock.ahead_ns = 0;
        let later = clock.compared.plus_ns(2 * NS_PER_S);
        let wall = read_ns(ClockId::CLOCK_REALTIME);
        assert!(clock.place(wall, later).is_some());
        assert_ne!(clock.ahead_ns, 0);
    }
}

#[cfg(test)]
mod timer_tests {
    use super::*;

    fn due(at_ns: u64, slot: usize) -> Due {
        Due { at: Moment::from_ns(at_ns), slot, generation: 0 }
    }

    #[test]
    fn entries_leave_in_order_and_not_before_their_moment() {
        let mut queue = TimerQueue::default();
        for entry in [due(30, 1), due(10, 2), due(20, 3)] {
            queue.push(entry);
        }
        assert_eq!(queue.next_at(), Some(Moment::from_ns(10)));
        assert_eq!(queue.pop_due(Moment::from_ns(9)), None);
        assert_eq!(queue.pop_due(Moment::from_ns(25)), Some(due(10, 2)));
        assert_eq!(queue.pop_due(Moment::from_ns(25)), Some(due(20, 3)));
        assert_eq!(queue.pop_due(Moment::from_ns(25)), None);
        assert_eq!(queue.next_at(), Some(Moment::from_ns(30)));
    }

    #[test]
    fn cancelled_entries_are_swept_only_when_there_are_many() {
        let mut queue = TimerQueue::default();
        (0..SWEEP_FLOOR).for_each(|slot| queue.push(due(1, slot)));
        queue.sweep(1, |entry| entry.slot == 7);
        assert_eq!(queue.heap.len(), SWEEP_FLOOR);
        queue.push(due(2, 0));
        queue.sweep(1, |entry| entry.slot == 7);
        assert_eq!(queue.heap.len(), 1);
    }
}
