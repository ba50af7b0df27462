//! A connection of our own: dialled by us, secured by us, framed by hyper, and never retried.

use std::cell::Cell;
use std::error::Error as _;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use inferometer_model::Clock;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::Dial;
use nix::errno::Errno;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::answer::Failure;
use crate::socket::StampedSocket;
use crate::target::Target;
use crate::wire::{DriverClock, Wire};

pub(crate) type Sender = http1::SendRequest<Full<Bytes>>;

pub(crate) struct Connection {
    pub(crate) sender: Sender,
    pub(crate) pump: Pump,
    pub(crate) wire: Wire,
    pub(crate) ordinal: u32,
    /// How it was opened; taken by the record of the request that opened it.
    pub(crate) dial: Option<Dial>,
}

/// hyper's half of the connection, which must be polled for anything to move.
pub(crate) struct Pump {
    connection: http1::Connection<TokioIo<Socket>, Full<Bytes>>,
    ended: bool,
}

impl Pump {
    /// Runs `work` and the connection in the same task: a token passes no queue and no second
    /// wake-up between the socket and its reader.
    pub(crate) async fn with<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            self.poll(cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Returns when the other side has closed the connection.
    pub(crate) async fn closed(&mut self) {
        std::future::poll_fn(|cx| {
            self.poll(cx);
            if self.ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) {
        if !self.ended {
            // Errors reach the request through its own future or body.
            self.ended = Pin::new(&mut self.connection).poll(cx).is_ready();
        }
    }
}

impl Connection {
    /// Whether another request may go over it. Looks once and does not wait.
    pub(crate) async fn is_reusable(&mut self) -> bool {
        std::future::poll_fn(|cx| {
            self.pump.poll(cx);
            let ready = matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())));
            Poll::Ready(ready && !self.pump.ended)
        })
        .await
    }
}

const HEADER_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;

pub(crate) async fn dial(
    target: &Target,
    clock: &Rc<DriverClock>,
    ordinal: u32,
    stage: &Cell<Stage>,
) -> Result<Connection, Failure> {
    let started = clock.system.now();
    stage.set(Stage::Connect);
    let tcp = TcpStream::connect(target.address).await.map_err(|error| connect_failure(&error))?;
    let wire = Wire::new(Rc::clone(clock));
    let stamped = StampedSocket::new(tcp, wire.clone(), target.kernel_stamps)
        .map_err(|error| connect_failure(&error))?;
    let connected = clock.system.now();
    let mut secured = None;
    let socket = match &target.tls {
        None => Socket::Plain(stamped),
        Some(connector) => {
            stage.set(Stage::Tls);
            let tls = secure(target, connector, stamped).await?;
            secured = Some(clock.system.now());
            tls
        }
    };
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(|error| http_failure(&error, Stage::Connect, false))?;
    Ok(Connection {
        sender,
        pump: Pump { connection, ended: false },
        wire,
        ordinal,
        dial: Some(Dial { started, connected, secured }),
    })
}

async fn secure(
    target: &Target,
    connector: &tokio_rustls::TlsConnector,
    socket: StampedSocket,
) -> Result<Socket, Failure> {
    let host = target.base.host_to_resolve().to_owned();
    let name = ServerName::try_from(host).map_err(|error| {
        Failure::saying(Outcome::TlsError, Cause::Certificate, error.to_string())
    })?;
    let secured = connector.connect(name, socket).await.map_err(|error| tls_failure(&error))?;
    Ok(Socket::Tls(Box::new(secured)))
}

fn tls_failure(error: &io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(tls @ rustls::Error::InvalidCertificate(_)) => {
            Failure::saying(Outcome::TlsError, Cause::Certificate, tls.to_string())
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            Failure::saying(Outcome::TlsError, Cause::Handshake, "the server answered without TLS")
        }
        Some(tls) => Failure::saying(Outcome::TlsError, Cause::Handshake, tls.to_string()),
        None => Failure {
            outcome: Outcome::TlsError,
            cause: io_failure(error).cause,
            message: Some(error.to_string()),
        },
    }
}

/// What a socket's error means, in our words.
pub(crate) fn io_failure(error: &io::Error) -> Failure {
    let errno = error.raw_os_error().map(Errno::from_raw);
    let cause = match errno {
        Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => {
            Some(Cause::ClientResource)
        }
        Some(Errno::EADDRNOTAVAIL) => Some(Cause::ClientResource),
        Some(Errno::ECONNREFUSED) => Some(Cause::Refused),
        Some(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENETDOWN) => {
            Some(Cause::Unreachable)
        }
        Some(Errno::ECONNRESET | Errno::EPIPE | Errno::ECONNABORTED) => Some(Cause::Reset),
        _ => None,
    };
    Failure { outcome: Outcome::TransportError, cause, message: Some(error.to_string()) }
}

/// The kernel's own connect time-out is one too; on an open connection it means something else.
fn connect_failure(error: &io::Error) -> Failure {
    let failure = io_failure(error);
    let timed_out = error.raw_os_error().map(Errno::from_raw) == Some(Errno::ETIMEDOUT);
    let outcome = if timed_out { Outcome::TimeoutConnect } else { failure.outcome };
    Failure { outcome, ..failure }
}

/// What hyper's error means, in our words. `was_closed` is a reused connection that broke at once,
/// without a byte for this request: the server had closed it before.
pub(crate) fn http_failure(error: &hyper::Error, stage: Stage, was_closed: bool) -> Failure {
    if was_closed && !error.is_parse() {
        return Failure::new(Outcome::TransportError, Cause::StalePool);
    }
    if error.is_parse() {
        return Failure::saying(Outcome::ProtocolError, Cause::Headers, error.to_string());
    }
    let in_body = Stage::FirstToken <= stage;
    if let Some(io) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        return body_io_failure(io, in_body);
    }
    if error.is_incomplete_message() && in_body {
        return Failure::new(Outcome::Truncated, Cause::NoFinalChunk);
    }
    Failure::saying(Outcome::TransportError, Cause::Reset, error.to_string())
}

fn body_io_failure(error: &io::Error, in_body: bool) -> Failure {
    let kind = error.kind();
    if kind == io::ErrorKind::UnexpectedEof && in_body {
        // Also a TLS stream without close_notify, which may have been cut by anyone.
        Failure::new(Outcome::Truncated, Cause::NoFinalChunk)
    } else if kind == io::ErrorKind::UnexpectedEof {
        Failure::new(Outcome::TransportError, Cause::Reset)
    } else if matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) {
        Failure::saying(Outcome::ProtocolError, Cause::BadFraming, error.to_string())
    } else {
        io_failure(error)
    }
}

/// Plain or secured; the stamps are taken below either.
pub(crate) enum Socket {
    Plain(StampedSocket),
    Tls(Box<TlsStream<StampedSocket>>),
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(socket) => Pin::new(socket).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Tls(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
