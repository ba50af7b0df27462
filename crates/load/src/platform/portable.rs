//! POSIX alone: timers of the runtime, no kernel stamps, threads wherever the system puts them.

use std::future::Future;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::resource::UsageWho;
use nix::sys::socket::{MsgFlags, recvmsg};
use tokio::net::TcpStream;

use super::Received;

/// The CPU time of one thread is not known.
pub(crate) const THREAD_CPU: Option<UsageWho> = None;

/// Without timerfd the runtime's timers serve, with their millisecond.
#[derive(Debug)]
pub(crate) struct Timer(Pin<Box<tokio::time::Sleep>>);

#[expect(clippy::disallowed_methods, reason = "this is the pacer")]
fn sleep_until(monotonic_ns: u64) -> tokio::time::Sleep {
    let now = crate::clock::monotonic_ns();
    tokio::time::sleep(Duration::from_nanos(monotonic_ns.saturating_sub(now)))
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Box::pin(sleep_until(0))))
    }

    pub(crate) fn set(&mut self, monotonic_ns: u64) -> io::Result<()> {
        self.0.set(sleep_until(monotonic_ns));
        Ok(())
    }

    pub(crate) fn poll_rang(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll(cx).map(Ok)
    }
}

/// A sleep of the machine goes unnoticed.
pub(crate) fn asleep() -> Duration {
    Duration::ZERO
}

/// There are no stamps: the user-space moment of the read is used, and the result says so.
pub(crate) fn enable_stamps(_: &TcpStream) -> bool {
    false
}

pub(crate) fn control_room() -> Vec<u8> {
    Vec::new()
}

pub(crate) fn switch_stamps_on() {}

pub(crate) fn receive_now(
    tcp: &TcpStream,
    room: &mut [u8],
    _: Option<&mut [u8]>,
) -> io::Result<Received> {
    let mut slices = [IoSliceMut::new(room)];
    let message = recvmsg::<()>(tcp.as_raw_fd(), &mut slices, None, MsgFlags::MSG_DONTWAIT)?;
    Ok(Received { bytes: message.bytes, stamp_realtime_ns: None })
}

pub(crate) fn set_small_pages(_: bool) {}

/// The cores are not known.
pub fn allowed() -> Vec<usize> {
    Vec::new()
}

/// Threads are not pinned.
pub fn pin_to(_: usize) {}
