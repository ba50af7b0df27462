//! A connection of our own: dialled by us, secured by us, and never retried. HTTP/1.1 is framed by us, HTTP/2 by hyper.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http2;
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
use crate::http1::{HEADER_BYTES_MAX, Head, Http1};
use crate::limits::before;
use crate::socket::{DriverClock, StampedSocket, Wire};
use crate::target::Target;

/// A request as HTTP/2 takes it.
pub(crate) type Request = http::Request<Full<Bytes>>;

/// Why a request that was to be sent has no answer.
pub(crate) enum NotAnswered {
    Ended(Failure),
    /// The connection broke before an answer came.
    Broken(Failure),
    /// The connection was found closed before a byte of the request had left.
    Unsent(Box<Request>),
}

impl NotAnswered {
    /// What it means, where the request is not sent another way. `was_closed` is a reused connection that broke at
    /// once, without a byte for this request: the server had closed it before.
    pub(crate) fn failure(self, was_closed: bool) -> Failure {
        match self {
            Self::Broken(failure) if !was_closed => failure,
            Self::Ended(failure) => failure,
            Self::Broken(_) | Self::Unsent(_) => {
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
    pub(crate) async fn send_shared(&mut self, request: Request) -> Result<Head, NotAnswered> {
        self.wire.begin();
        match &mut self.carrier {
            Carrier::Own(_) => Err(NotAnswered::Ended(reset())),
            Carrier::Shared(lease) => lease.send(request, &self.wire).await,
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

/// What an error of hyper's means, in our words.
fn http_failure(error: &hyper::Error, in_body: bool) -> Failure {
    // A frame that ends one stream of a shared connection says so itself.
    if let Some(h2) = error.source().and_then(|source| source.downcast_ref::<h2::Error>()) {
        return http2_failure(h2);
    }
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(io) => io_failure_at(io, in_body),
        None => Failure::with_message(Outcome::TransportError, Cause::Reset, error.to_string()),
    }
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

fn reset() -> Failure {
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
    /// What follows the head of its answer.
    body: Option<Incoming>,
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
            .map_err(|error| http_failure(&error, false))?;
        let broke: Rc<RefCell<Option<Failure>>> = Rc::default();
        let noted = Rc::clone(&broke);
        let (publish_allowed, mut allowed) = watch::channel(0);
        let system = clock.system;
        // Its errors reach every request that is on it, but not those that wait for a stream.
        tokio::task::spawn_local(async move {
            if let Err(error) = pumped(connection, &publish_allowed, system).await {
                *noted.borrow_mut() = Some(http_failure(&error, false));
            }
        });
        // Streams that the server does not allow would wait unseen.
        let known = allowed.wait_for(|allowed| 0 < *allowed).await.is_ok();
        if !known {
            return Err(broke.take().unwrap_or_else(reset));
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
        let lease = Lease { link: Rc::clone(link), sender: link.sender.clone(), body: None };
        Connection::new(Carrier::Shared(lease), Wire::new(Rc::clone(clock)), link.ordinal, dial)
    }
}

impl Lease {
    async fn send(&mut self, request: Request, wire: &Wire) -> Result<Head, NotAnswered> {
        let request = request.map(|body| Leaving { body, wire: wire.clone() });
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                wire.handed(0);
                let text = |name: HeaderName| response.headers().get(name)?.to_str().ok();
                let head = Head::new(response.status(), text);
                self.body = Some(response.into_body());
                Ok(head)
            }
            Err(mut error) => Err(match error.take_message() {
                Some(request) => NotAnswered::Unsent(Box::new(request.map(|leaving| leaving.body))),
                None => NotAnswered::Ended(self.failure(&error.into_error())),
            }),
        }
    }

    /// What the connection reads belongs to many, so a part counts as read when it is handed to its exchange.
    async fn read_body(
        &mut self,
        wire: &Wire,
        mut on_part: impl FnMut(&Wire, &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(body) = &mut self.body else { return Ok(()) };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| http_failure(&error, true))?;
            let Some(bytes) = frame.data_ref() else { continue };
            wire.handed(bytes.len());
            on_part(wire, bytes)?;
        }
        // hyper takes a stream that the server gave up without an error for one that ended.
        if body.is_end_stream() {
            return Ok(());
        }
        Err(if self.is_going_away().await {
            Failure::new(Outcome::TransportError, Cause::GoAway)
        } else {
            Failure::new(Outcome::Truncated, Cause::NoFinalChunk)
        })
    }

    /// Whether the server closes the connection that this request shares with others.
    async fn is_going_away(&self) -> bool {
        // The task of the connection notices it after the streams do.
        for _ in 0..3 {
            if self.sender.is_closed() {
                return true;
            }
            tokio::task::yield_now().await;
        }
        self.sender.is_closed()
    }

    /// What a request's own error means, or the connection's where it only followed from that.
    fn failure(&self, error: &hyper::Error) -> Failure {
        match &*self.link.broke.borrow() {
            Some(broke) if error.source().is_none_or(|source| !source.is::<h2::Error>()) => {
                broke.clone()
            }
            _ => http_failure(error, false),
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
