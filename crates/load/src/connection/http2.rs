//! HTTP/2: connections that many requests share.
//!
//! Each is polled by a task of its own, so its reads belong to no single answer: the moments of an
//! answer are those at which its frames were handed over, by the client's own clock.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::error::Error as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use inferometer_model::Clock;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::Dial;
use tokio::sync::watch;

use super::{
    Connection, HEADER_BYTES_MAX, NotAnswered, Pump, Request, Response, Sender, Socket,
    http_failure, open,
};
use crate::answer::Failure;
use crate::clock::SystemClock;
use crate::limits::before;
use crate::socket::{DriverClock, Wire};
use crate::target::Target;

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
