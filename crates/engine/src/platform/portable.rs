//! POSIX alone: the time-out of the poll is the timer, and the kernel stamps nothing.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Registry, Token};

use crate::clock::Moment;
use crate::socket::Listener;

/// Wakes the loop at a given time, as exactly as the poll's time-out can.
#[derive(Debug)]
pub(crate) struct Alarm {
    set_for: Option<Moment>,
}

#[expect(clippy::unnecessary_wraps, reason = "the timer of Linux can fail")]
impl Alarm {
    pub(crate) fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
        Ok(Self { set_for: None })
    }

    pub(crate) fn set(&mut self, at: Moment) -> io::Result<()> {
        self.set_for = Some(at);
        Ok(())
    }

    /// Acknowledges the alarm.
    pub(crate) fn went_off(&mut self) {
        self.set_for = None;
    }

    /// How long the poll may sleep. No event reports that it woke, so the alarm is set for one poll.
    pub(crate) fn poll_timeout(&mut self, now: Moment) -> Option<Duration> {
        self.set_for.take().map(|at| at.since(now).unwrap_or_default())
    }
}

pub(crate) fn make_room_for_files(_listener: &Listener, _files: usize) {}

pub(crate) fn control_room() -> Vec<u8> {
    Vec::new()
}

/// Reads, and returns the number of bytes; there is no stamp.
pub(crate) fn receive(
    mut stream: &TcpStream,
    buffer: &mut [u8],
    _control: &mut [u8],
) -> io::Result<(usize, Option<u64>)> {
    io::Read::read(&mut stream, buffer).map(|length| (length, None))
}

#[expect(clippy::unnecessary_wraps, reason = "asking Linux for stamps can fail")]
pub(crate) fn stamp_receipts(_socket: &impl AsFd) -> io::Result<()> {
    Ok(())
}

/// Closing the connection cuts it off, whatever the client has not read yet.
pub(crate) fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    Ok(nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &linger)?)
}
