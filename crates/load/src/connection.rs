//! A connection of our own: dialled by us, secured by us, framed by hyper, and never retried.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::error::Error as _;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use inferometer_model::observations::HttpVersion;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::{ConnectionFacts, Dial};
use inferometer_model::{Clock, Moment};
use nix::errno::Errno;
use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::client::TlsStream;

use crate::answer::Failure;
use crate::clock::SystemClock;
use crate::limits::before;
use crate::socket::{DriverClock, StampedSocket, Wire};
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
    /// When it was opened, if that was before a request asked for it, until one has.
    ahead: Option<Moment>,
    /// The same, while that request has it.
    pub(crate) first_use: Option<Moment>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(Lease),
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
        self.first_use = self.ahead.take();
        let dial = self.dial.take();
        ConnectionFacts { ordinal: self.ordinal, reused: dial.is_none(), dial }
    }

    /// Whoever takes it finds it open: how it was opened is no matter of its first request.
    pub(crate) fn opened_ahead(&mut self) -> Option<Dial> {
        self.ahead = self.dial.map(|dial| dial.secured.unwrap_or(dial.connected));
        self.dial.take()
    }

    /// Called with each part of a body, before it is decoded. What a shared connection reads
    /// belongs to many, so a part counts as read when it is handed to its exchange.
    pub(crate) fn handed(&self, bytes: &[u8]) {
        match &self.sender {
            Sender::Http1(_) => {}
            Sender::Http2(_) => self.wire.handed(bytes.len()),
        }
    }

    /// Whether the server closes the connection that this request shares with others.
    pub(crate) async fn is_going_away(&self) -> bool {
        let Sender::Http2(lease) = &self.sender else { return false };
        // The task of the connection notices it after the streams do.
        for _ in 0..3 {
            if lease.sender.is_closed() {
                return true;
            }
            tokio::task::yield_now().await;
        }
        lease.sender.is_closed()
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
        ahead: None,
        first_use: None,
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

pub(crate) fn is_breakage(kind: io::ErrorKind) -> bool {
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

// HTTP/2: connections that many requests share. Each is polled by a task of its own, so its reads
// belong to no single answer: the times of an answer are those at which its frames were handed over,
// by the client's own clock.

/// The shared connections of one driver.
#[derive(Default)]
pub(crate) struct Links {
    links: RefCell<Vec<Rc<Link>>>,
    /// Held while a link is opened: a waiting request may find a place on the new one.
    opening: tokio::sync::Mutex<()>,
}

struct Link {
    sender: http2::SendRequest<Leaving>,
    /// Requests that are on it now.
    requests: Cell<u32>,
    ordinal: u32,
    /// Requests that the server allows at once; zero before it has reported it.
    allowed: watch::Receiver<usize>,
    /// How the connection as a whole broke.
    broke: Rc<RefCell<Option<Failure>>>,
}

/// One request's place on a link.
pub(super) struct Lease {
    link: Rc<Link>,
    sender: http2::SendRequest<Leaving>,
}

/// What most servers allow at least; beyond it another connection is opened.
const REQUESTS_PER_LINK: u32 = 100;
/// How soon the number of streams that a server allows is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Wide enough that the server never waits for us: its pace is what is measured.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

impl Links {
    /// A place on a link that has one, or `None`.
    pub(crate) fn place(&self, clock: &Rc<DriverClock>) -> Option<Box<Connection>> {
        let mut links = self.links.borrow_mut();
        links.retain(|link| !link.sender.is_closed());
        let link = links.iter().find(|link| link.requests.get() < link.places())?;
        Some(Link::lease(link, clock, None))
    }

    /// A place on a link, after the one that is being opened. `Err` is the right to open another:
    /// many requests that begin at once must not open a connection each.
    pub(crate) async fn place_or_turn(
        &self,
        clock: &Rc<DriverClock>,
    ) -> Result<Box<Connection>, tokio::sync::MutexGuard<'_, ()>> {
        if let Some(connection) = self.place(clock) {
            return Ok(connection);
        }
        let turn = self.opening.lock().await;
        self.place(clock).ok_or(turn)
    }

    /// Opens another link, and takes a place on it.
    pub(crate) async fn dial(
        &self,
        target: &Target,
        clock: &Rc<DriverClock>,
        ordinal: u32,
        stage: &Cell<Stage>,
    ) -> Result<Box<Connection>, Failure> {
        let wire = Wire::shared(Rc::clone(clock));
        let (socket, dial) = open(target, clock, &wire, stage).await?;
        let (sender, connection) = http2::Builder::new(LocalTasks)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // None before the server has reported how many it allows: it may refuse the others.
            .initial_max_send_streams(0)
            .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| http_failure(&error, Stage::Connect, false))?;
        let broke: Rc<RefCell<Option<Failure>>> = Rc::default();
        let noted = Rc::clone(&broke);
        let (publish_allowed, mut allowed) = watch::channel(0);
        let system = clock.system;
        // Its errors reach every request that is on it, but not those that wait for a stream.
        tokio::task::spawn_local(async move {
            if let Err(error) = pumped(connection, &publish_allowed, system).await {
                *noted.borrow_mut() = Some(http_failure(&error, Stage::Connect, false));
            }
        });
        // Streams that the server does not allow would wait unseen.
        let known = allowed.wait_for(|allowed| 0 < *allowed).await.is_ok();
        if !known {
            let broken = || Failure::new(Outcome::TransportError, Cause::Reset);
            return Err(broke.take().unwrap_or_else(broken));
        }
        let link = Rc::new(Link { sender, requests: Cell::new(0), ordinal, allowed, broke });
        let leased = Link::lease(&link, clock, Some(dial));
        self.links.borrow_mut().push(link);
        Ok(leased)
    }

    /// Requests that fit on the connections that are open.
    pub(crate) fn places(&self) -> usize {
        let links = self.links.borrow();
        let open = links.iter().filter(|link| !link.sender.is_closed());
        open.map(|link| link.places() as usize).sum()
    }

    /// Whether the server leaves the connections open.
    pub(crate) fn are_open(&self) -> bool {
        self.links.borrow().iter().any(|link| !link.sender.is_closed())
    }

    /// Forgets the connections, so that the next request opens one.
    pub(crate) fn clear(&self) {
        self.links.borrow_mut().clear();
    }
}

/// Drives the connection, and publishes how many streams the server allows whenever that changes.
async fn pumped(
    mut connection: http2::Connection<TokioIo<Socket>, Leaving, LocalTasks>,
    publish_allowed: &watch::Sender<usize>,
    clock: SystemClock,
) -> Result<(), hyper::Error> {
    // hyper reads the socket in a task of its own and wakes no task when the server reports it.
    while connection.current_max_send_streams() == 0 {
        if let Some(ended) = before(clock, clock.now() + LOOK_EVERY, &mut connection).await {
            return ended;
        }
    }
    std::future::poll_fn(|cx| {
        let polled = Pin::new(&mut connection).poll(cx);
        let allowed = connection.current_max_send_streams();
        publish_allowed.send_if_modified(|known| std::mem::replace(known, allowed) != allowed);
        polled
    })
    .await
}

impl Link {
    /// Requests that may be on it at once: beyond them another connection is opened, so that the
    /// load is the one that was asked for.
    fn places(&self) -> u32 {
        u32::try_from(*self.allowed.borrow()).unwrap_or(u32::MAX).min(REQUESTS_PER_LINK)
    }

    fn lease(link: &Rc<Self>, clock: &Rc<DriverClock>, dial: Option<Dial>) -> Box<Connection> {
        link.requests.set(link.requests.get() + 1);
        let lease = Lease { link: Rc::clone(link), sender: link.sender.clone() };
        Box::new(Connection {
            sender: Sender::Http2(lease),
            pump: Pump::ELSEWHERE,
            wire: Wire::new(Rc::clone(clock)),
            ordinal: link.ordinal,
            dial,
            ahead: None,
            first_use: None,
        })
    }
}

impl Lease {
    pub(super) async fn send(
        &mut self,
        request: Request,
        wire: &Wire,
    ) -> Result<Response, NotAnswered> {
        let request = request.map(|body| Leaving { body, wire: wire.clone() });
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                wire.handed(0);
                Ok(response)
            }
            Err(mut error) => Err(match error.take_message() {
                Some(request) => NotAnswered::Unsent(Box::new(request.map(|leaving| leaving.body))),
                None => NotAnswered::Ended(self.failure(&error.into_error())),
            }),
        }
    }

    /// What a request's own error means, or the connection's where it only followed from that.
    fn failure(&self, error: &hyper::Error) -> Failure {
        match &*self.link.broke.borrow() {
            Some(broke) if error.source().is_none_or(|source| !source.is::<h2::Error>()) => {
                broke.clone()
            }
            _ => http_failure(error, Stage::Headers, false),
        }
    }
}

/// A request's body, which notes when it leaves: hyper asks for it once the server has allowed the
/// stream. Waiting for that is not yet sending.
struct Leaving {
    body: Full<Bytes>,
    wire: Wire,
}

impl Body for Leaving {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.wire.writing();
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.link.requests.set(self.link.requests.get() - 1);
    }
}

/// hyper's inner tasks run on the driver's thread, as everything does.
#[derive(Clone, Copy)]
struct LocalTasks;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for LocalTasks {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
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
