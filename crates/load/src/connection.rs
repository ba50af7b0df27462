//! A connection of our own: dialled by us, secured by us, framed by hyper, and never retried.

mod http2;

pub(crate) use http2::Links;

use std::cell::Cell;
use std::error::Error as _;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use inferometer_model::Clock;
use inferometer_model::observations::HttpVersion;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::{ConnectionFacts, Dial};
use nix::errno::Errno;
use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::answer::Failure;
use crate::socket::StampedSocket;
use crate::socket::{DriverClock, Wire};
use crate::target::Target;

pub(crate) type Request = http::Request<Full<Bytes>>;
pub(crate) type Response = http::Response<Incoming>;
type Answered = Result<Response, NotAnswered>;

/// Why a request that was to be sent has no answer.
pub(crate) enum NotAnswered {
    Failed(hyper::Error),
    Ended(Failure),
    /// The connection was found closed before a byte of the request had left.
    Unsent(Box<Request>),
}

impl NotAnswered {
    /// What it means, where the request is not sent another way. For `was_closed` see
    /// [`http_failure`].
    pub(crate) fn failure(self, stage: Stage, was_closed: bool) -> Failure {
        match self {
            Self::Failed(error) => http_failure(&error, stage, was_closed),
            Self::Ended(failure) => failure,
            Self::Unsent(_) => Failure::new(Outcome::TransportError, Cause::StalePool),
        }
    }
}

/// What one exchange needs: a connection of its own, or its part of a shared one.
pub(crate) struct Connection {
    sender: Sender,
    pub(crate) pump: Pump,
    pub(crate) wire: Wire,
    pub(crate) ordinal: u32,
    /// How it was opened; taken by the record of the request that opened it.
    pub(crate) dial: Option<Dial>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::Lease),
}

/// The answer to come, by either protocol.
enum Pending<A, B> {
    Http1(A),
    Http2(B),
}

/// hyper's half of the connection, which must be polled for anything to move. A shared one is
/// polled by a task of its own.
pub(crate) struct Pump {
    connection: Option<http1::Connection<TokioIo<Socket>, Full<Bytes>>>,
    ended: bool,
}

impl Pump {
    const ELSEWHERE: Self = Self { connection: None, ended: false };

    /// Runs `work` and the connection in the same task: a token passes no queue and no second
    /// wake-up between the socket and its reader.
    pub(crate) fn with<'a, F: Future>(
        &'a mut self,
        mut work: Pin<&'a mut F>,
    ) -> impl Future<Output = F::Output> + use<'a, F> {
        std::future::poll_fn(move |cx| {
            self.poll(cx);
            work.as_mut().poll(cx)
        })
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
        if !self.ended
            && let Some(connection) = &mut self.connection
        {
            // Errors reach the request through its own future or body.
            self.ended = Pin::new(connection).poll(cx).is_ready();
        }
    }
}

impl Connection {
    /// Sends a request, and returns with the head of its answer.
    ///
    /// The request is handed on at once and not kept in what is returned: every exchange in flight
    /// would have room for it.
    pub(crate) fn send(&mut self, request: Request) -> impl Future<Output = Answered> + '_ {
        let Self { sender, pump, wire, .. } = self;
        wire.begin();
        let answer = match sender {
            Sender::Http1(sender) => Pending::Http1(sender.send_request(request)),
            Sender::Http2(lease) => Pending::Http2(Box::pin(lease.send(request, wire))),
        };
        async move {
            match answer {
                Pending::Http1(answer) => {
                    pump.with(pin!(answer)).await.map_err(NotAnswered::Failed)
                }
                Pending::Http2(answer) => answer.await,
            }
        }
    }

    /// How the request that now takes it came by it.
    pub(crate) fn facts(&mut self) -> ConnectionFacts {
        let dial = self.dial.take();
        ConnectionFacts { ordinal: self.ordinal, reused: dial.is_none(), dial }
    }

    /// Called with each part of a body, before it is decoded. What a shared connection reads
    /// belongs to many, so a part counts as read when it is handed to its exchange.
    pub(crate) fn handed(&self, bytes: &[u8]) {
        match &self.sender {
            Sender::Http1(_) => {}
            Sender::Http2(_) => self.wire.handed(bytes.len()),
        }
    }

    /// Whether another request may go over it. Looks once and does not wait: no task is woken for
    /// an idle connection, and the next user looks again.
    pub(crate) fn is_reusable(&mut self) -> bool {
        let Sender::Http1(sender) = &mut self.sender else { return false };
        let mut cx = Context::from_waker(Waker::noop());
        self.pump.poll(&mut cx);
        let ready = matches!(sender.poll_ready(&mut cx), Poll::Ready(Ok(())));
        ready && !self.pump.ended
    }
}

const HEADER_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;

/// How head and body of a request go to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Copied together, in one piece: cheaper where they are short.
    Joined,
    /// As they are, in one call.
    Apart,
}

impl Writing {
    /// A connection is made for requests like its first.
    pub(crate) fn new(body_bytes: usize) -> Self {
        const SHORT_BYTES: usize = 4 << 10;
        if body_bytes < SHORT_BYTES { Self::Joined } else { Self::Apart }
    }
}

/// Opens an HTTP/1.1 connection.
pub(crate) async fn dial(
    target: &Target,
    clock: &Rc<DriverClock>,
    ordinal: u32,
    stage: &Cell<Stage>,
    writing: Writing,
) -> Result<Box<Connection>, Failure> {
    let wire = Wire::new(Rc::clone(clock));
    let (socket, dial) = open(target, clock, &wire, stage).await?;
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .writev(writing == Writing::Apart)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(|error| http_failure(&error, Stage::Connect, false))?;
    Ok(Box::new(Connection {
        sender: Sender::Http1(sender),
        pump: Pump { connection: Some(connection), ended: false },
        wire,
        ordinal,
        dial: Some(dial),
    }))
}

/// Opens a socket, and secures it where the target is.
async fn open(
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

/// What hyper's error means, in our words. `was_closed` is a reused connection that broke at once,
/// without a byte for this request: the server had closed it before.
pub(crate) fn http_failure(error: &hyper::Error, stage: Stage, was_closed: bool) -> Failure {
    // A frame that ends one stream of a shared connection says so itself.
    if let Some(h2) = error.source().and_then(|source| source.downcast_ref::<h2::Error>()) {
        return http2_failure(h2);
    }
    if was_closed && !error.is_parse() {
        return Failure::new(Outcome::TransportError, Cause::StalePool);
    }
    if error.is_parse() {
        return Failure::with_message(Outcome::ProtocolError, Cause::Headers, error.to_string());
    }
    let in_body = Stage::FirstToken <= stage;
    if let Some(io) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        return body_io_failure(io, in_body);
    }
    if error.is_incomplete_message() && in_body {
        return Failure::new(Outcome::Truncated, Cause::NoFinalChunk);
    }
    Failure::with_message(Outcome::TransportError, Cause::Reset, error.to_string())
}

fn http2_failure(error: &h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        return io_failure(io);
    }
    let (outcome, cause) = if error.is_library() {
        // What the server sent is not HTTP/2 as we read it.
        (Outcome::ProtocolError, Cause::BadFraming)
    } else if error.is_go_away() && error.is_remote() {
        (Outcome::TransportError, Cause::GoAway)
    } else {
        (Outcome::TransportError, Cause::Reset)
    };
    Failure::with_message(outcome, cause, error.to_string())
}

fn is_breakage(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
    )
}

fn body_io_failure(error: &io::Error, in_body: bool) -> Failure {
    let kind = error.kind();
    if kind == io::ErrorKind::UnexpectedEof && in_body {
        // Also a TLS stream without close_notify, which may have been cut by anyone.
        Failure::new(Outcome::Truncated, Cause::NoFinalChunk)
    } else if kind == io::ErrorKind::UnexpectedEof {
        Failure::new(Outcome::TransportError, Cause::Reset)
    } else if matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) {
        Failure::with_message(Outcome::ProtocolError, Cause::BadFraming, error.to_string())
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
