//! Waiting for a moment, to tens of microseconds. The runtime's own timers tick in milliseconds.

use std::io;
use std::task::{Context, Poll, ready};

use inferometer_model::{Clock, Moment};

use crate::clock::SystemClock;

#[cfg(target_os = "linux")]
mod timer {
    use std::os::fd::{AsFd, AsRawFd, RawFd};

    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use tokio::io::unix::AsyncFd;

    use super::{Context, Poll, io, ready};

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

        /// Sets the timer, whatever it was set to before.
        pub(super) fn set(&mut self, monotonic_ns: u64) -> io::Result<()> {
            // A deadline of zero would disarm the timer.
            let at = TimeSpec::from_duration(std::time::Duration::from_nanos(monotonic_ns.max(1)));
            let timer = &self.0.get_ref().0;
            timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            Ok(())
        }

        pub(super) fn poll_rang(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            // Reading resets the descriptor; a timer set anew meanwhile has nothing to read.
            let _expired = self.0.get_ref().0.wait();
            ready.clear_ready();
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::future::Future;
    use std::pin::Pin;

    use super::{Context, Poll, io};

    /// Without timerfd the runtime's timers serve, with their millisecond.
    #[derive(Debug)]
    pub(super) struct Timer(Pin<Box<tokio::time::Sleep>>);

    #[expect(clippy::disallowed_methods, reason = "this is the pacer")]
    fn sleep_until(monotonic_ns: u64) -> tokio::time::Sleep {
        let now = crate::clock::monotonic_ns();
        tokio::time::sleep(std::time::Duration::from_nanos(monotonic_ns.saturating_sub(now)))
    }

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(Box::pin(sleep_until(0))))
        }

        pub(super) fn set(&mut self, monotonic_ns: u64) -> io::Result<()> {
            self.0.set(sleep_until(monotonic_ns));
            Ok(())
        }

        pub(super) fn poll_rang(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.as_mut().poll(cx).map(Ok)
        }
    }
}

#[derive(Debug)]
pub(crate) struct Pacer {
    clock: SystemClock,
    timer: timer::Timer,
    /// What the timer is set to.
    armed: Option<Moment>,
}

impl Pacer {
    pub(crate) fn new(clock: SystemClock) -> io::Result<Self> {
        Ok(Self { clock, timer: timer::Timer::new()?, armed: None })
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
