//! Linux: timerfd, software receive stamps, the size of the table of files.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, recvmsg, setsockopt, sockopt,
};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::{Moment, timespec_ns};
use crate::socket::Listener;

/// Closing the connection cuts it off, whatever the client has not read yet.
pub(crate) fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    Ok(setsockopt(stream, sockopt::Linger, &linger)?)
}

/// Wakes the loop at a given time, to tens of microseconds.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: TimerFd,
    set_for: Option<Moment>,
}

impl Alarm {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let fd = timer.as_fd().as_raw_fd();
        registry.register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        Ok(Self { timer, set_for: None })
    }

    /// Sets the alarm for `at`, unless it is set for it already.
    ///
    /// The timer is never read: the registration is edge-triggered, and setting it anew clears it.
    pub(crate) fn set(&mut self, at: Moment) -> io::Result<()> {
        if self.set_for != Some(at) {
            // Zero would switch the timer off; no time after boot is zero.
            let expiration = Expiration::OneShot(Duration::from_nanos(at.ns().max(1)).into());
            self.timer.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        }
        self.set_for = Some(at);
        Ok(())
    }

    /// Acknowledges the alarm.
    pub(crate) fn went_off(&mut self) {
        self.set_for = None;
    }

    /// How long the poll may sleep: without an end, because the timer wakes it.
    #[expect(clippy::unused_self, reason = "the portable alarm needs itself and the time")]
    pub(crate) fn poll_timeout(&self, _now: Moment) -> Option<Duration> {
        None
    }
}

/// Makes room for as many open files as the engine may need.
///
/// The kernel doubles a process's table of files whenever that is full, and in a process with
/// threads opening a file then takes for 5 to 20 ms each time: on an engine that has one
/// thread, every step and every token would be as late. The table never shrinks, so one file with
/// a high number makes it large for good.
pub(crate) fn make_room_for_files(listener: &Listener, files: usize) {
    let Ok((allowed, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let highest = allowed.saturating_sub(1).min(files as u64);
    let Ok(highest) = i32::try_from(highest) else { return };
    // Without it the engine is only late at times, and reports it.
    if let Ok(copy) = fcntl(&listener.socket, FcntlArg::F_DUPFD_CLOEXEC(highest)) {
        let _closed: nix::Result<()> = nix::unistd::close(copy);
    }
}

/// Room for the control message that holds the stamp.
pub(crate) fn control_room() -> Vec<u8> {
    nix::cmsg_space!([nix::libc::timespec; 3])
}

/// Reads, and returns the number of bytes and the kernel's stamp.
pub(crate) fn receive(
    stream: &TcpStream,
    buffer: &mut [u8],
    control: &mut [u8],
) -> io::Result<(usize, Option<u64>)> {
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut slices, Some(control), MsgFlags::empty())?;
    // An unreadable control message is a stamp we do not have, not a failed read.
    let stamp_ns = message.cmsgs().ok().and_then(|mut messages| {
        messages.find_map(|control| {
            let ControlMessageOwned::ScmTimestampsns(stamps) = control else { return None };
            Some(timespec_ns(stamps.system)).filter(|ns| *ns != 0)
        })
    });
    Ok((message.bytes, stamp_ns))
}

/// Asks the kernel to stamp what this socket receives.
///
/// Set on the listener too: the kernel stamps no packet of the machine before some socket asks,
/// and a request may arrive ahead of its connection's `accept`.
pub(crate) fn stamp_receipts(socket: &impl AsFd) -> io::Result<()> {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    Ok(setsockopt(socket, sockopt::Timestamping, &flags)?)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::socket::listen;

    #[test]
    fn the_table_of_files_is_as_long_as_it_may_become() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        make_room_for_files(&listener, 3_000);
        let (allowed, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        let size: u64 = line.trim().parse().unwrap();
        assert!(allowed.min(3_000) <= size, "{size} of {allowed}");
    }
}
