//! A connection of our own: dialled by us, secured by us, and never retried.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use inferometer_model::observations::HttpVersion;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::{ConnectionFacts, Dial};
use inferometer_model::{Clock, Moment};
use nix::errno::Errno;
use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::answer::Failure;
use crate::http1::{Head, Http1};
use crate::http2::Lease;
use crate::socket::{DriverClock, StampedSocket, Wire};
use crate::target::Target;

/// Why a request that was to be sent has no answer.
pub(crate) enum NotAnswered {
    Ended(Failure),
    /// The connection broke before an answer came.
    Broken(Failure),
    /// The connection was found closed before a byte of the request had left.
    Unsent,
}

impl NotAnswered {
    /// What it means, where the request is not sent another way. `was_closed` is a reused connection that broke at
    /// once, without a byte for this request: the server had closed it before.
    pub(crate) fn failure(self, was_closed: bool) -> Failure {
        match self {
            Self::Broken(failure) if !was_closed => failure,
            Self::Ended(failure) => failure,
            Self::Broken(_) | Self::Unsent => {
                Failure::new(Outcome::TransportError, Cause::StalePool)
            }
        }
    }
}

/// What one exchange needs: a connection of its own, or its part of a shared one.
pub(crate) struct Connection {
    carrier: Carrier,
    pub(crate) wire: Wire,
    pub(crate) ordinal: u32,
    /// How it was opened; taken by the record of the request that opened it.
    pub(crate) dial: Option<Dial>,
    /// When it was opened, if that was before a request asked for it, until one has.
    ahead: Option<Moment>,
    /// The same, while that request has it.
    pub(crate) first_use: Option<Moment>,
}

enum Carrier {
    Own(Http1),
    Shared(Lease),
}

impl Connection {
    fn new(carrier: Carrier, wire: Wire, ordinal: u32, dial: Option<Dial>) -> Box<Self> {
        Box::new(Self { carrier, wire, ordinal, dial, ahead: None, first_use: None })
    }

    /// A request's place on a connection that others share.
    pub(crate) fn shared(lease: Lease, wire: Wire, ordinal: u32, dial: Option<Dial>) -> Box<Self> {
        Self::new(Carrier::Shared(lease), wire, ordinal, dial)
    }

    /// Sends a request over a connection of its own, and returns with the head of its answer.
    pub(crate) fn send(
        &mut self,
        head: Vec<u8>,
        body: Bytes,
    ) -> impl Future<Output = Result<Head, NotAnswered>> + '_ {
        let Self { carrier, wire, .. } = self;
        wire.begin();
        // It is handed on at once and not kept in what is returned: every exchange in flight would have room for it.
        if let Carrier::Own(http1) = carrier {
            http1.begin(head, body);
        }
        poll_fn(move |cx| match carrier {
            Carrier::Own(http1) => http1.poll_head(cx, wire),
            Carrier::Shared(_) => Poll::Ready(Err(NotAnswered::Ended(reset()))),
        })
    }

    /// The same over a shared one.
    pub(crate) async fn send_shared(
        &mut self,
        request: http::Request<()>,
        body: Bytes,
    ) -> Result<Head, NotAnswered> {
        match &mut self.carrier {
            Carrier::Own(_) => Err(NotAnswered::Ended(reset())),
            Carrier::Shared(lease) => lease.send(request, body, &self.wire).await,
        }
    }

    /// Reads the body of the answer to its end, and lends each part of it to `on_part`.
    pub(crate) async fn read_body(
        &mut self,
        mut on_part: impl FnMut(&Wire, &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { carrier, wire, .. } = self;
        match carrier {
            Carrier::Own(http1) => poll_fn(|cx| http1.poll_body(cx, wire, &mut on_part)).await,
            Carrier::Shared(lease) => Box::pin(lease.read_body(wire, on_part)).await,
        }
    }

    /// How the request that now takes it came by it.
    pub(crate) fn facts(&mut self) -> ConnectionFacts {
        self.first_use = self.ahead.take();
        let dial = self.dial.take();
        ConnectionFacts { ordinal: self.ordinal, reused: dial.is_none(), dial }
    }

    /// Whoever takes it finds it open: how it was opened is no matter of its first request.
    pub(crate) fn opened_ahead(&mut self) -> Option<Dial> {
        self.ahead = self.dial.map(|dial| dial.secured.unwrap_or(dial.connected));
        self.dial.take()
    }

    /// Whether its last answer leaves it fit for another request.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(&self.carrier, Carrier::Own(http1) if http1.is_kept())
    }

    /// Whether another request may go over it.
    pub(crate) fn is_reusable(&mut self) -> bool {
        match &mut self.carrier {
            Carrier::Own(http1) => http1.is_open(&self.wire),
            Carrier::Shared(_) => false,
        }
    }

    /// Returns when the other side has closed the connection.
    pub(crate) async fn closed(&mut self) {
        if let Carrier::Own(http1) = &mut self.carrier {
            poll_fn(|cx| http1.poll_closed(cx, &self.wire)).await;
        }
    }
}

/// Opens an HTTP/1.1 connection.
pub(crate) async fn dial(
    target: &Target,
    clock: &Rc<DriverClock>,
    ordinal: u32,
    stage: &Cell<Stage>,
) -> Result<Box<Connection>, Failure> {
    let wire = Wire::new(Rc::clone(clock));
    let (socket, dial) = open(target, clock, &wire, stage).await?;
    Ok(Connection::new(Carrier::Own(Http1::new(socket)), wire, ordinal, Some(dial)))
}

/// Opens a socket, and secures it where the target is.
pub(crate) async fn open(
    target: &Target,
    clock: &DriverClock,
    wire: &Wire,
    stage: &Cell<Stage>,
) -> Result<(Socket, Dial), Failure> {
    let started = clock.system.now();
    stage.set(Stage::Connect);
    let tcp = TcpStream::connect(target.address).await.map_err(|error| connect_failure(&error))?;
    let stamped = StampedSocket::new(tcp, wire.clone(), target.kernel_stamps)
        .map_err(|error| connect_failure(&error))?;
    let connected = clock.system.now();
    let mut secured = None;
    let socket = match &target.tls {
        None => Socket::Plain(stamped),
        Some(connector) => {
            stage.set(Stage::Tls);
            let tls = secure(target, connector, stamped).await?;
            wire.secured();
            secured = Some(clock.system.now());
            tls
        }
    };
    Ok((socket, Dial { started, connected, secured }))
}

async fn secure(
    target: &Target,
    connector: &tokio_rustls::TlsConnector,
    socket: StampedSocket,
) -> Result<Socket, Failure> {
    let host = target.base.host_to_resolve().to_owned();
    let name = ServerName::try_from(host).map_err(|error| {
        Failure::with_message(Outcome::TlsError, Cause::Certificate, error.to_string())
    })?;
    let secured =
        connector.connect(name, socket).await.map_err(|error| tls_failure(&error, target.http))?;
    // A server that offers only HTTP/2 must not be answered in HTTP/1: the bytes would mean nothing.
    let agreed = secured.get_ref().1.alpn_protocol();
    if target.http == HttpVersion::Http2 && agreed != Some(b"h2") {
        return Err(not_offered(target.http));
    }
    Ok(Socket::Tls(Box::new(secured)))
}

fn tls_failure(error: &io::Error, asked: HttpVersion) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(tls @ rustls::Error::InvalidCertificate(_)) => {
            Failure::with_message(Outcome::TlsError, Cause::Certificate, tls.to_string())
        }
        Some(rustls::Error::InvalidMessage(_)) => Failure::with_message(
            Outcome::TlsError,
            Cause::Handshake,
            "the server answered without TLS",
        ),
        Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            not_offered(asked)
        }
        Some(tls) => Failure::with_message(Outcome::TlsError, Cause::Handshake, tls.to_string()),
        None => Failure {
            outcome: Outcome::TlsError,
            cause: io_failure(error).cause,
            message: Some(error.to_string()),
        },
    }
}

/// The server speaks TLS, but not the HTTP that was asked for.
fn not_offered(asked: HttpVersion) -> Failure {
    let words = match asked {
        HttpVersion::Http1 => "the server does not offer HTTP/1.1",
        HttpVersion::Http2 => "the server does not offer HTTP/2",
    };
    Failure::with_message(Outcome::TlsError, Cause::Handshake, words)
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
        // Libraries may pass the kind on, and lose the number.
        _ => is_breakage(error.kind()).then_some(Cause::Reset),
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

pub(crate) fn is_breakage(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
    )
}

/// What the error of a socket that was open means, before an answer came or in its body.
pub(crate) fn io_failure_at(error: &io::Error, in_body: bool) -> Failure {
    let kind = error.kind();
    if kind == io::ErrorKind::UnexpectedEof && in_body {
        // Also a TLS stream without close_notify, which may have been cut by anyone.
        Failure::new(Outcome::Truncated, Cause::NoFinalChunk)
    } else if kind == io::ErrorKind::UnexpectedEof {
        reset()
    } else if matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) {
        Failure::with_message(Outcome::ProtocolError, Cause::BadFraming, error.to_string())
    } else {
        io_failure(error)
    }
}

pub(crate) fn reset() -> Failure {
    Failure::new(Outcome::TransportError, Cause::Reset)
}

/// Plain or secured; the stamps are taken below either.
pub(crate) enum Socket {
    Plain(StampedSocket),
    Tls(Box<TlsStream<StampedSocket>>),
}

impl Socket {
    /// One read, which is lent to `take`; nothing is the end.
    pub(crate) fn poll_take<T>(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        match self {
            Self::Plain(socket) => socket.poll_take(cx, usize::MAX, take),
            Self::Tls(socket) => {
                let mut room = wire.opened_room();
                let mut buffer = ReadBuf::new(&mut room);
                ready!(Pin::new(socket).poll_read(cx, &mut buffer))?;
                Poll::Ready(Ok(take(buffer.filled())))
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults: 17, 18.
    #[test]
    fn what_this_machine_lacks_is_no_fault_of_the_server() {
        for errno in [Errno::EADDRNOTAVAIL, Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS] {
            let failure = connect_failure(&io::Error::from(errno));
            assert_eq!(failure.cause, Some(Cause::ClientResource), "{errno}");
        }
        assert_eq!(connect_failure(&Errno::ECONNREFUSED.into()).cause, Some(Cause::Refused));
        let timed_out = connect_failure(&Errno::ETIMEDOUT.into());
        assert_eq!(timed_out.outcome, Outcome::TimeoutConnect);
    }
}
