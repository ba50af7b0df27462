//! The process's clocks. Nothing else in the program reads one.
//!
//! Moments are on `CLOCK_MONOTONIC`. The kernel stamps packets on `CLOCK_REALTIME`, so the distance
//! between the two is estimated again and again during a run, and the error of that estimate is
//! known: it is half the time between two monotonic readings around one realtime reading, plus
//! what the distance moved since the estimate before.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use inferometer_model::journal::ClockMapping;
use inferometer_model::observations::ClockAnchor;
use inferometer_model::{Clock, Moment};
use nix::time::ClockId;

use crate::platform::{Timer, asleep};

/// The run's clock, with its zero at the moment of its making.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    anchor: ClockAnchor,
}

impl SystemClock {
    #[expect(clippy::new_without_default, reason = "making a clock reads the time: an effect")]
    pub fn new() -> Self {
        let estimate = Estimate::best_of_five(&SystemClocks);
        let monotonic_ns = monotonic_ns();
        let realtime_ns = estimate.realtime_at(monotonic_ns);
        Self { anchor: ClockAnchor { monotonic_ns, realtime_ns } }
    }

    /// A clock whose zero is when the wall clock showed, or will show, this time.
    pub fn with_zero_at(realtime_ns: u64) -> Self {
        let monotonic_ns = Estimate::best_of_five(&SystemClocks).monotonic_at(realtime_ns);
        Self { anchor: ClockAnchor { monotonic_ns, realtime_ns } }
    }

    pub fn anchor(&self) -> ClockAnchor {
        self.anchor
    }

    /// The moment at which the wall clock shows this time. A time before the run's zero is the zero.
    pub fn moment_at_realtime(&self, realtime_ns: u64) -> Moment {
        let monotonic_ns = Estimate::best_of_five(&SystemClocks).monotonic_at(realtime_ns);
        Moment::from_nanos(monotonic_ns.saturating_sub(self.anchor.monotonic_ns))
    }

    /// The wall clock, in nanoseconds after 1970.
    pub fn realtime_ns() -> u64 {
        realtime_ns()
    }

    /// The moment as `CLOCK_MONOTONIC` nanoseconds, for timers of the kernel.
    pub fn monotonic_ns_at(&self, moment: Moment) -> u64 {
        self.anchor.monotonic_ns.saturating_add(moment.as_nanos())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(monotonic_ns().saturating_sub(self.anchor.monotonic_ns))
    }
}

/// The clock of moments and the clock of stamps; those of the system, or those of a simulation.
pub trait ClockPair {
    fn monotonic_ns(&self) -> u64;
    fn realtime_ns(&self) -> u64;
}

#[derive(Clone, Copy, Debug)]
pub struct SystemClocks;

impl ClockPair for SystemClocks {
    fn monotonic_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn realtime_ns(&self) -> u64 {
        realtime_ns()
    }
}

/// Maps kernel stamps to moments, one per driver.
#[derive(Debug)]
pub struct StampMapper<C = SystemClocks> {
    clocks: C,
    /// The run's zero on the monotonic clock.
    zero_ns: u64,
    estimate: Cell<Estimate>,
    facts: Cell<ClockMapping>,
}

/// How old an estimate may become: NTP turns the wall clock by at most 500 ppm, so 50 µs in this.
const ESTIMATE_AGE_MAX: Duration = Duration::from_millis(100);
/// A larger move between two estimates cannot be slewing.
const JUMP_PPM: u64 = 600;

impl StampMapper {
    pub fn new(clock: SystemClock) -> Self {
        Self::between(SystemClocks, clock.anchor.monotonic_ns)
    }
}

impl<C: ClockPair> StampMapper<C> {
    pub fn between(clocks: C, zero_ns: u64) -> Self {
        let estimate = Estimate::best_of_five(&clocks);
        let facts = ClockMapping { estimates: 1, error_ns_max: estimate.half_width_ns, jumps: 0 };
        Self { clocks, zero_ns, estimate: Cell::new(estimate), facts: Cell::new(facts) }
    }

    pub fn facts(&self) -> ClockMapping {
        self.facts.get()
    }

    /// The moment of a kernel stamp, or `None` when the stamp cannot be true: later than the read
    /// that brought it, or earlier than the bytes can have come, by more than the mapping's error.
    /// The wall clock was set meanwhile, so the mapping is estimated anew.
    pub fn moment(&self, realtime_ns: u64, earliest: Moment, read_at: Moment) -> Option<Moment> {
        let age_ns = self.age_ns(read_at);
        if ESTIMATE_AGE_MAX.as_nanos() <= u128::from(age_ns) {
            self.estimate_anew(age_ns);
        }
        let estimate = self.estimate.get();
        // What lies before the run's zero is no moment.
        let since_zero_ns = estimate.monotonic_at(realtime_ns).checked_sub(self.zero_ns);
        let mapped = since_zero_ns.map(Moment::from_nanos);
        let allowed_ns = i64::try_from(self.facts.get().error_ns_max).unwrap_or(i64::MAX);
        let possible = mapped.filter(|moment| {
            moment.nanos_after(read_at) <= allowed_ns && -allowed_ns <= moment.nanos_after(earliest)
        });
        if possible.is_none() {
            self.estimate_anew(age_ns);
        }
        possible.map(|moment| moment.clamp(earliest, read_at.max(earliest)))
    }

    fn age_ns(&self, now: Moment) -> u64 {
        let now_ns = self.zero_ns.saturating_add(now.as_nanos());
        now_ns.saturating_sub(self.estimate.get().monotonic_ns)
    }

    fn estimate_anew(&self, age_ns: u64) {
        let old = self.estimate.get();
        let new = Estimate::best_of_five(&self.clocks);
        let moved_ns = new.offset_ns.abs_diff(old.offset_ns);
        let mut facts = self.facts.get();
        facts.estimates += 1;
        let slewed_ns_max =
            age_ns / 1_000_000 * JUMP_PPM + old.half_width_ns + new.half_width_ns + 1_000;
        if slewed_ns_max < moved_ns {
            facts.jumps += 1;
        } else {
            facts.error_ns_max = facts.error_ns_max.max(new.half_width_ns + moved_ns);
        }
        self.facts.set(facts);
        self.estimate.set(new);
    }
}

/// Notices that the machine slept: `CLOCK_MONOTONIC` stands still meanwhile, `CLOCK_BOOTTIME` does
/// not.
#[derive(Debug)]
pub(crate) struct SleepWatch {
    asleep: Duration,
}

impl SleepWatch {
    pub(crate) fn new() -> Self {
        Self { asleep: asleep() }
    }

    /// How long the machine slept since the last look.
    pub(crate) fn slept(&mut self) -> Duration {
        self.slept_until(asleep())
    }

    fn slept_until(&mut self, asleep: Duration) -> Duration {
        // Two clocks are not read at one moment: an interruption between them is no sleep.
        let slept = asleep.saturating_sub(self.asleep);
        if slept < SLEEP_MIN {
            return Duration::ZERO;
        }
        self.asleep = asleep;
        slept
    }
}

/// No machine falls asleep and wakes up within this.
const SLEEP_MIN: Duration = Duration::from_millis(200);

/// One reading of how far the wall clock is ahead of the monotonic one.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit comes last, and here all share it")]
struct Estimate {
    monotonic_ns: u64,
    offset_ns: i64,
    half_width_ns: u64,
}

impl Estimate {
    /// The narrowest of five sandwiches: a preemption inside one widens it, and it is not taken.
    fn best_of_five(clocks: &impl ClockPair) -> Self {
        let first = Self::sandwich(clocks);
        (1..5).fold(first, |best, _| {
            let next = Self::sandwich(clocks);
            if next.half_width_ns < best.half_width_ns { next } else { best }
        })
    }

    fn sandwich(clocks: &impl ClockPair) -> Self {
        let before = clocks.monotonic_ns();
        let realtime = clocks.realtime_ns();
        let after = clocks.monotonic_ns();
        let middle = before + (after - before) / 2;
        Self {
            monotonic_ns: middle,
            offset_ns: realtime.cast_signed() - middle.cast_signed(),
            half_width_ns: (after - before).div_ceil(2),
        }
    }

    fn monotonic_at(self, realtime_ns: u64) -> u64 {
        u64::try_from(realtime_ns.cast_signed() - self.offset_ns).unwrap_or(0)
    }

    fn realtime_at(self, monotonic_ns: u64) -> u64 {
        u64::try_from(monotonic_ns.cast_signed() + self.offset_ns).unwrap_or(0)
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    read_clock(ClockId::CLOCK_MONOTONIC)
}

fn realtime_ns() -> u64 {
    read_clock(ClockId::CLOCK_REALTIME)
}

#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
#[expect(clippy::expect_used, reason = "POSIX systems have both clocks; without one nothing works")]
pub(crate) fn read_clock(clock: ClockId) -> u64 {
    let time = nix::time::clock_gettime(clock).expect("the system has this clock");
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec()).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

#[derive(Debug)]
pub(crate) struct Pacer {
    clock: SystemClock,
    timer: Timer,
    /// What the timer is set to.
    armed: Option<Moment>,
}

impl Pacer {
    pub(crate) fn new(clock: SystemClock) -> io::Result<Self> {
        Ok(Self { clock, timer: Timer::new()?, armed: None })
    }

    /// Ready at `moment` or just after it, never before. Asking again for the same moment costs
    /// no system call.
    pub(crate) fn poll_until(
        &mut self,
        cx: &mut Context<'_>,
        moment: Moment,
    ) -> Poll<io::Result<()>> {
        while self.clock.now() < moment {
            if self.armed != Some(moment) {
                self.timer.set(self.clock.monotonic_ns_at(moment))?;
                self.armed = Some(moment);
            }
            ready!(self.timer.poll_rang(cx))?;
            // Rung for an older moment, or early: it is set again.
            self.armed = None;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_taken_now_maps_to_now_within_the_stated_error() {
        let clock = SystemClock::new();
        let mapper = StampMapper::new(clock);
        for _ in 0..1_000 {
            let before = clock.now();
            let stamp = realtime_ns();
            let after = clock.now();
            let moment = mapper.moment(stamp, Moment::ZERO, after).unwrap();
            let error = mapper.facts().error_ns_max.cast_signed();
            assert!(-error <= moment.nanos_after(before), "stamp before it was taken");
            assert!(moment <= after);
        }
    }

    /// Faults: 79.
    #[test]
    fn a_stamp_from_the_future_is_no_stamp() {
        let clock = SystemClock::new();
        let mapper = StampMapper::new(clock);
        let second = 1_000_000_000;
        assert_eq!(mapper.moment(realtime_ns() + second, Moment::ZERO, clock.now()), None);
    }

    #[test]
    fn a_stamp_from_before_the_bytes_can_have_come_is_no_stamp() {
        let clock = SystemClock::new();
        let mapper = StampMapper::new(clock);
        let emptied = clock.now() + Duration::from_millis(1);
        let read_at = emptied + Duration::from_millis(1);
        assert_eq!(mapper.moment(realtime_ns(), emptied, read_at), None);
    }

    /// Stamps that were taken before the clock was set back are not believed afterwards, and the
    /// jump is counted.
    /// Faults: 79.
    #[test]
    fn a_jump_of_the_wall_clock_is_counted_and_no_moment_follows_it() {
        for hour_ns in [3_600_000_000_000, -3_600_000_000_000] {
            let clock = SystemClock::new();
            let mapper = StampMapper::new(clock);
            let estimate = mapper.estimate.get();
            let offset_ns = estimate.offset_ns - hour_ns;
            mapper.estimate.set(Estimate { offset_ns, ..estimate });
            assert_eq!(mapper.moment(realtime_ns(), Moment::ZERO, clock.now()), None);
            assert_eq!(mapper.facts().jumps, 1);
            assert!(mapper.moment(realtime_ns(), Moment::ZERO, clock.now()).is_some());
            assert_eq!(mapper.facts().jumps, 1, "it is over");
        }
    }

    /// Faults: 80.
    #[test]
    fn sleep_of_the_machine_is_noticed_once() {
        let second = Duration::from_secs(1);
        let mut watch = SleepWatch { asleep: second * 5 };
        assert_eq!(watch.slept_until(second * 5), Duration::ZERO);
        assert_eq!(watch.slept_until(second * 5 + SLEEP_MIN / 2), Duration::ZERO);
        assert_eq!(watch.slept_until(second * 35), second * 30);
        assert_eq!(watch.slept_until(second * 35), Duration::ZERO);
        assert_eq!(SleepWatch::new().slept(), Duration::ZERO, "this machine is awake");
    }
}
