//! Linux: timerfd, software receive stamps, affinity, huge pages.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::UsageWho;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

use super::Received;
use crate::clock::{monotonic_ns, read_clock};

/// Whose CPU time is that of the calling thread.
pub(crate) const THREAD_CPU: Option<UsageWho> = Some(UsageWho::RUSAGE_THREAD);

#[derive(Debug)]
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// A kernel timer with absolute deadlines, so that nothing drifts.
#[derive(Debug)]
pub(crate) struct Timer(AsyncFd<Descriptor>);

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
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
    pub(crate) fn set(&mut self, monotonic_ns: u64) -> io::Result<()> {
        // A deadline of zero would disarm the timer.
        let at = TimeSpec::from_duration(Duration::from_nanos(monotonic_ns.max(1)));
        let timer = &self.0.get_ref().0;
        timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        Ok(())
    }

    pub(crate) fn poll_rang(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ready = ready!(self.0.poll_read_ready(cx))?;
        // Reading resets the descriptor; a timer set anew meanwhile has nothing to read.
        let _expired = self.0.get_ref().0.wait();
        ready.clear_ready();
        Poll::Ready(Ok(()))
    }
}

/// How long the machine has slept since it was started.
pub(crate) fn asleep() -> Duration {
    let since_start = read_clock(nix::time::ClockId::CLOCK_BOOTTIME);
    Duration::from_nanos(since_start.saturating_sub(monotonic_ns()))
}

/// Asks for software receive stamps; `false` where the kernel does not give them.
pub(crate) fn enable_stamps(tcp: &impl AsFd) -> bool {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    setsockopt(tcp, sockopt::Timestamping, &flags).is_ok()
}

pub(crate) fn control_room() -> Vec<u8> {
    nix::cmsg_space!(Timestamps)
}

/// The kernel switches stamping on with the first socket that asks for it, but some
/// milliseconds later, and off with the last. So one socket that asks stays open as long as
/// the process lives, and sends itself datagrams until one of them has a stamp.
pub(crate) fn switch_stamps_on() {
    static ALWAYS_ASKING: OnceLock<Option<UdpSocket>> = OnceLock::new();
    ALWAYS_ASKING.get_or_init(|| first_stamped().ok());
}

fn first_stamped() -> io::Result<UdpSocket> {
    const TRIES: u32 = 200;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(socket.local_addr()?)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    if !enable_stamps(&socket) {
        return Ok(socket);
    }
    let mut control = control_room();
    for _ in 0..TRIES {
        socket.send(&[0])?;
        let received = receive(&socket, &mut [0; 1], Some(&mut control), MsgFlags::empty())?;
        if received.stamp_realtime_ns.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(socket)
}

pub(crate) fn receive_now(
    tcp: &TcpStream,
    room: &mut [u8],
    control: Option<&mut [u8]>,
) -> io::Result<Received> {
    receive(tcp, room, control, MsgFlags::MSG_DONTWAIT)
}

fn receive(
    socket: &impl AsFd,
    room: &mut [u8],
    control: Option<&mut [u8]>,
    flags: MsgFlags,
) -> io::Result<Received> {
    let mut slices = [IoSliceMut::new(room)];
    let message = recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut slices, control, flags)?;
    let stamp = message.cmsgs().ok().and_then(|mut messages| {
        messages.find_map(|message| {
            let ControlMessageOwned::ScmTimestampsns(stamps) = message else { return None };
            Some(stamps.system)
        })
    });
    let stamp_realtime_ns = stamp.and_then(|stamp| {
        let seconds = u64::try_from(stamp.tv_sec()).ok()?;
        let nanos = u64::try_from(stamp.tv_nsec()).ok()?;
        // A kernel that kept no stamp leaves zeroes.
        (0 < seconds).then_some(seconds * 1_000_000_000 + nanos)
    });
    Ok(Received { bytes: message.bytes, stamp_realtime_ns })
}

/// Where it cannot be set, only a little of both is lost.
pub(crate) fn set_small_pages(small: bool) {
    let _ = nix::sys::prctl::set_thp_disable(small);
}

/// The cores that this process may use, by number; empty where the system does not report them.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

/// Keeps the calling thread on one core, where the system can. A core that does not exist leaves
/// the thread where it was: the cores were checked when they were chosen.
pub fn pin_to(core: usize) {
    let mut set = CpuSet::new();
    if set.set(core).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}
