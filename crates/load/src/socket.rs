//! A TCP socket whose reads carry the kernel's receive stamps.

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::wire::Wire;

#[derive(Debug)]
pub(crate) struct StampedSocket {
    tcp: TcpStream,
    wire: Wire,
    /// Room for the control message that holds the stamp; made once.
    control: Vec<u8>,
    stamped: bool,
}

impl StampedSocket {
    pub(crate) fn new(tcp: TcpStream, wire: Wire, kernel_stamps: bool) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        let stamped = kernel_stamps && stamps::enable(&tcp);
        Ok(Self { tcp, wire, control: stamps::control_room(), stamped })
    }
}

impl StampedSocket {
    /// One read, into the driver's own room and from there to `buffer`: what comes is mostly
    /// short, and cheaper to copy than the whole buffer is to wipe.
    fn receive(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let mut room = self.wire.room();
        let length = room.len().min(buffer.remaining());
        let control = self.stamped.then_some(self.control.as_mut_slice());
        let mut received = None;
        let result = self.tcp.try_io(Interest::READABLE, || {
            let read = stamps::receive_now(&self.tcp, &mut room[..length], control)?;
            let drained = 0 < read.bytes && read.bytes < length;
            received = Some((read, drained));
            // An emptied socket will be announced anew. To ask it again would be one more system
            // call, only to hear that there is nothing.
            if drained { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        let Some((read, drained)) = received else { return result };
        if 0 < read.bytes {
            self.wire.read(read.bytes, drained, read.stamp_realtime_ns);
            buffer.put_slice(&room[..read.bytes]);
        }
        Ok(())
    }
}

impl AsyncRead for StampedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(this.tcp.poll_read_ready(cx))?;
            match this.receive(buffer) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for StampedSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.wire.writing();
        Pin::new(&mut this.tcp).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.wire.writing();
        Pin::new(&mut this.tcp).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(cx)
    }
}

/// Makes sure that the kernel stamps packets from now on, as far as it will at all.
pub(crate) fn switch_stamps_on() {
    stamps::switch_on();
}

struct Received {
    bytes: usize,
    stamp_realtime_ns: Option<u64>,
}

#[cfg(target_os = "linux")]
mod stamps {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::{AsFd, AsRawFd};
    use std::sync::OnceLock;
    use std::time::Duration;

    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, setsockopt, sockopt,
    };

    use super::{IoSliceMut, Received, TcpStream, io};

    /// Asks for software receive stamps; `false` where the kernel does not give them.
    pub(super) fn enable(tcp: &impl AsFd) -> bool {
        let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        setsockopt(tcp, sockopt::Timestamping, &flags).is_ok()
    }

    pub(super) fn control_room() -> Vec<u8> {
        nix::cmsg_space!(Timestamps)
    }

    /// The kernel switches stamping on with the first socket that asks for it, but some
    /// milliseconds later, and off with the last. So one socket that asks stays open as long as
    /// the process lives, and sends itself datagrams until one of them has a stamp.
    pub(super) fn switch_on() {
        static ALWAYS_ASKING: OnceLock<Option<UdpSocket>> = OnceLock::new();
        ALWAYS_ASKING.get_or_init(|| first_stamped().ok());
    }

    fn first_stamped() -> io::Result<UdpSocket> {
        const TRIES: u32 = 200;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        if !enable(&socket) {
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

    pub(super) fn receive_now(
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
}

/// Systems without such stamps: the user-space moment of the read is used, and the result says so.
#[cfg(not(target_os = "linux"))]
mod stamps {
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{MsgFlags, recvmsg};

    use super::{IoSliceMut, Received, TcpStream, io};

    pub(super) fn enable(_: &TcpStream) -> bool {
        false
    }

    pub(super) fn control_room() -> Vec<u8> {
        Vec::new()
    }

    pub(super) fn switch_on() {}

    pub(super) fn receive_now(
        tcp: &TcpStream,
        room: &mut [u8],
        _: Option<&mut [u8]>,
    ) -> io::Result<Received> {
        let mut slices = [IoSliceMut::new(room)];
        let message = recvmsg::<()>(tcp.as_raw_fd(), &mut slices, None, MsgFlags::MSG_DONTWAIT)?;
        Ok(Received { bytes: message.bytes, stamp_realtime_ns: None })
    }
}
