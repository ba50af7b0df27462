//! Sockets: listening, and reading with the kernel's receive stamps.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use nix::sys::socket::Backlog;

use crate::clock::{Clock, Moment, Stamp};
use crate::options::EngineError;

/// A bound and listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
}

pub(crate) fn listen(address: SocketAddr) -> Result<Listener, EngineError> {
    let bind = || {
        let socket = TcpListener::bind(address)?;
        // Listening again only lengthens the queue. A short one makes a burst of connections wait
        // a second for their SYN to be sent again, which would look like a slow server.
        nix::sys::socket::listen(&socket, Backlog::MAXCONN)?;
        let address = socket.local_addr()?;
        Ok(Listener { socket, address })
    };
    bind().map_err(|source| EngineError::listening(address, source))
}

/// Makes room for as many open files as the engine may need.
///
/// The kernel doubles a process's table of files whenever that is full, and in a process with
/// threads opening a file then takes for 5 to 20 ms each time: on an engine that has one
/// thread, every step and every token would be as late. The table never shrinks, so one file with
/// a high number makes it large for good.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn make_room_for_files(listener: &Listener, files: usize) {
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::sys::resource::{Resource, getrlimit};

    let Ok((allowed, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let highest = allowed.saturating_sub(1).min(files as u64);
    let Ok(highest) = i32::try_from(highest) else { return };
    // Without it the engine is only late at times, and reports it.
    if let Ok(copy) = fcntl(&listener.socket, FcntlArg::F_DUPFD_CLOEXEC(highest)) {
        let _closed: nix::Result<()> = nix::unistd::close(copy);
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn make_room_for_files(_listener: &Listener, _files: usize) {}

/// When the bytes of a read came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    /// When the last of them reached this machine, where the kernel reports it.
    pub(crate) kernel: Option<Stamp>,
    /// When the read returned.
    pub(crate) user: Moment,
}

impl Received {
    /// The best known moment of receipt.
    pub(crate) fn at(&self) -> Moment {
        self.kernel.map_or(self.user, |stamp| stamp.at)
    }
}

/// Reads sockets into one buffer that all connections share.
#[derive(Debug)]
pub(crate) struct Receiver {
    buffer: Vec<u8>,
    /// Where the kernel puts its stamps.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    control: Vec<u8>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; READ_BYTES],
            #[cfg(any(target_os = "linux", target_os = "android"))]
            control: nix::cmsg_space!([nix::libc::timespec; 3]),
        }
    }

    /// What the last read brought, when it brought `length` bytes.
    pub(crate) fn bytes(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Whether a read of `length` bytes left nothing behind it.
    pub(crate) fn drained_by(&self, length: usize) -> bool {
        length < self.buffer.len()
    }

    pub(crate) fn read(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        retry(|| io::Read::read(stream, &mut self.buffer))
    }

    /// Reads, and returns when the bytes arrived.
    pub(crate) fn read_stamped(
        &mut self,
        stream: &TcpStream,
        clock: &mut Clock,
    ) -> io::Result<(usize, Received)> {
        let (length, stamp_ns) = retry(|| stream.try_io(|| self.receive(stream)))?;
        let user = clock.now();
        let kernel = stamp_ns.and_then(|stamp_ns| clock.place(stamp_ns, user));
        Ok((length, Received { kernel, user }))
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn receive(&mut self, stream: &TcpStream) -> io::Result<(usize, Option<u64>)> {
        use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
        use std::os::fd::AsRawFd;

        let mut slices = [IoSliceMut::new(&mut self.buffer)];
        let message = recvmsg::<()>(
            stream.as_raw_fd(),
            &mut slices,
            Some(&mut self.control),
            MsgFlags::empty(),
        )?;
        // An unreadable control message is a stamp we do not have, not a failed read.
        let stamp_ns = message.cmsgs().ok().and_then(|mut messages| {
            messages.find_map(|control| {
                let ControlMessageOwned::ScmTimestampsns(stamps) = control else { return None };
                Some(crate::clock::timespec_ns(stamps.system)).filter(|ns| *ns != 0)
            })
        });
        Ok((message.bytes, stamp_ns))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn receive(&mut self, mut stream: &TcpStream) -> io::Result<(usize, Option<u64>)> {
        let mut slices = [IoSliceMut::new(&mut self.buffer)];
        io::Read::read_vectored(&mut stream, &mut slices).map(|length| (length, None))
    }
}

/// Repeats a read that a signal interrupted.
fn retry<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Asks the kernel to stamp what this socket receives.
///
/// Set on the listener too: the kernel stamps no packet of the machine before some socket asks,
/// and a request may arrive ahead of its connection's `accept`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn stamp_receipts(socket: &impl std::os::fd::AsFd) -> io::Result<()> {
    use nix::sys::socket::{TimestampingFlag, setsockopt, sockopt};

    let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    Ok(setsockopt(socket, sockopt::Timestamping, &flags)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn stamp_receipts(_socket: &impl std::os::fd::AsFd) -> io::Result<()> {
    Ok(())
}

/// A common request fits; a long body takes several reads.
const READ_BYTES: usize = 64 << 10;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_files_is_as_long_as_it_may_become() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        make_room_for_files(&listener, 3_000);
        let (allowed, _) =
            nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        let size: u64 = line.trim().parse().unwrap();
        assert!(allowed.min(3_000) <= size, "{size} of {allowed}");
    }
}
