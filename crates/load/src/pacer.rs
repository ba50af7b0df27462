//! Waiting for a moment, to tens of microseconds. The runtime's own timers tick in milliseconds.

use std::io;

use inferometer_model::{Clock, Moment};

use crate::clock::SystemClock;

#[cfg(target_os = "linux")]
mod timer {
    use std::os::fd::{AsFd, AsRawFd, RawFd};

    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use tokio::io::unix::AsyncFd;

    use super::io;

    #[derive(Debug)]
    struct Descriptor(TimerFd);

    impl AsRawFd for Descriptor {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    /// A kernel timer with absolute deadlines, so that nothing drifts.
    #[derive(Debug)]
    pub(super) struct Timer(AsyncFd<Descriptor>);

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
            #[expect(
                deprecated,
                reason = "its successor is unsafe; this descriptor is owned and never replaced"
            )]
            let registered = AsyncFd::new(Descriptor(timer))?;
            Ok(Self(registered))
        }

        pub(super) async fn until(&mut self, monotonic_ns: u64) -> io::Result<()> {
            // A deadline of zero would disarm the timer.
            let at = TimeSpec::from_duration(std::time::Duration::from_nanos(monotonic_ns.max(1)));
            self.0
                .get_ref()
                .0
                .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            let mut ready = self.0.readable().await?;
            // Reading resets the descriptor; a timer set anew meanwhile has nothing to read.
            let _expired = self.0.get_ref().0.wait();
            ready.clear_ready();
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use super::io;

    /// Without timerfd the runtime's timers serve, with their millisecond.
    #[derive(Debug)]
    pub(super) struct Timer;

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        #[expect(clippy::disallowed_methods, reason = "this is the pacer")]
        pub(super) async fn until(&mut self, monotonic_ns: u64) -> io::Result<()> {
            let now = crate::clock::monotonic_ns();
            let wait = std::time::Duration::from_nanos(monotonic_ns.saturating_sub(now));
            tokio::time::sleep(wait).await;
            Ok(())
        }
    }
}

#[derive(Debug)]
pub(crate) struct Pacer {
    clock: SystemClock,
    timer: timer::Timer,
}

impl Pacer {
    pub(crate) fn new(clock: SystemClock) -> io::Result<Self> {
        Ok(Self { clock, timer: timer::Timer::new()? })
    }

    /// Returns at `moment` or just after it, never before. May be dropped and called again.
    pub(crate) async fn until(&mut self, moment: Moment) -> io::Result<()> {
        while self.clock.now() < moment {
            self.timer.until(self.clock.monotonic_ns_at(moment)).await?;
        }
        Ok(())
    }
}
