//! HTTP/2: connections that many requests share.
//!
//! Each is polled by a task of its own, so its reads belong to no single answer: the moments of an
//! answer are those at which its frames were handed over, by the client's own clock.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use inferometer_model::outcome::Stage;
use inferometer_model::record::Dial;

use super::{Connection, HEADER_BYTES_MAX, Pump, Request, Response, Sender, http_failure, open};
use crate::answer::Failure;
use crate::target::Target;
use crate::wire::{DriverClock, Wire};

/// The shared connections of one driver.
#[derive(Default)]
pub(crate) struct Links(RefCell<Vec<Rc<Link>>>);

struct Link {
    sender: http2::SendRequest<Full<Bytes>>,
    /// Requests that are on it now.
    requests: Cell<u32>,
    ordinal: u32,
}

/// One request's place on a link.
pub(super) struct Lease {
    link: Rc<Link>,
    sender: http2::SendRequest<Full<Bytes>>,
}

/// What most servers allow at least; beyond it another connection is opened.
const REQUESTS_PER_LINK: u32 = 100;
/// Wide enough that the server never waits for us: its pace is what is measured.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

impl Links {
    /// A place on a link that has one, or `None`.
    pub(crate) fn place(&self, clock: &Rc<DriverClock>) -> Option<Box<Connection>> {
        let mut links = self.0.borrow_mut();
        links.retain(|link| !link.sender.is_closed());
        let link = links.iter().find(|link| link.requests.get() < REQUESTS_PER_LINK)?;
        Some(Link::lease(link, clock, None))
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
            .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| http_failure(&error, Stage::Connect, false))?;
        // Its errors reach every request that is on it.
        tokio::task::spawn_local(connection);
        let link = Rc::new(Link { sender, requests: Cell::new(0), ordinal });
        let leased = Link::lease(&link, clock, Some(dial));
        self.0.borrow_mut().push(link);
        Ok(leased)
    }

    /// Whether the server leaves the connections open.
    pub(crate) fn are_open(&self) -> bool {
        self.0.borrow().iter().any(|link| !link.sender.is_closed())
    }

    /// Forgets the connections, so that the next request opens one.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Link {
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
    ) -> Result<Response, hyper::Error> {
        // Where the server allows no more streams we wait here: that is not yet sending.
        self.sender.ready().await?;
        wire.writing();
        let response = self.sender.send_request(request).await?;
        wire.handed(0);
        Ok(response)
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
