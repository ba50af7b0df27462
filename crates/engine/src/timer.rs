//! Due moments of connections, and the alarm that wakes the loop for the next one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::Duration;

use mio::{Registry, Token};

use crate::clock::Moment;

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

/// Wakes the loop at a moment, to tens of microseconds.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: nix::sys::timerfd::TimerFd,
    set_for: Option<Moment>,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Alarm {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
        use std::os::fd::{AsFd, AsRawFd};

        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let fd = timer.as_fd().as_raw_fd();
        registry.register(&mut mio::unix::SourceFd(&fd), token, mio::Interest::READABLE)?;
        Ok(Self { timer, set_for: None })
    }

    /// Sets the alarm for `at`, unless it is set for it already.
    ///
    /// The timer is never read: the registration is edge-triggered, and setting it anew clears it.
    pub(crate) fn set(&mut self, at: Moment) -> io::Result<()> {
        use nix::sys::timerfd::{Expiration, TimerSetTimeFlags};

        if self.set_for == Some(at) {
            return Ok(());
        }
        // Zero would switch the timer off; no moment after boot is zero.
        let since_boot = Duration::from_nanos(at.ns().max(1));
        let expiration = Expiration::OneShot(since_boot.into());
        self.timer.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.set_for = Some(at);
        Ok(())
    }

    /// Says that the alarm went off.
    pub(crate) fn went_off(&mut self) {
        self.set_for = None;
    }

    /// How long the poll may sleep on its own account: for ever, the timer wakes it.
    #[expect(clippy::unused_self, reason = "the alarm of other systems needs both")]
    pub(crate) fn poll_timeout(&self, _now: Moment) -> Option<Duration> {
        None
    }
}

/// Wakes the loop at a moment, as exactly as the poll's time-out can.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Debug)]
pub(crate) struct Alarm {
    set_for: Option<Moment>,
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Alarm {
    pub(crate) fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
        Ok(Self { set_for: None })
    }

    pub(crate) fn set(&mut self, at: Moment) -> io::Result<()> {
        self.set_for = Some(at);
        Ok(())
    }

    pub(crate) fn went_off(&mut self) {
        self.set_for = None;
    }

    pub(crate) fn poll_timeout(&self, now: Moment) -> Option<Duration> {
        self.set_for.map(|at| at.since(now).unwrap_or_default())
    }
}

const SWEEP_FLOOR: usize = 4096;

#[cfg(test)]
mod tests {
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
