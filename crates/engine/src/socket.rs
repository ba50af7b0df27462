//! Sockets: listening, and reading with the kernel's receive stamps.

use std::io;
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use nix::sys::socket::Backlog;

use crate::clock::{Clock, Moment, Stamp};
use crate::options::EngineError;
use crate::platform;

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
    control: Vec<u8>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; READ_BYTES], control: platform::control_room() }
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
        let (length, stamp_ns) = retry(|| {
            stream.try_io(|| platform::receive(stream, &mut self.buffer, &mut self.control))
        })?;
        let user = clock.now();
        let kernel = stamp_ns.and_then(|stamp_ns| clock.place(stamp_ns, user));
        Ok((length, Received { kernel, user }))
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

/// A common request fits; a long body takes several reads.
const READ_BYTES: usize = 64 << 10;
