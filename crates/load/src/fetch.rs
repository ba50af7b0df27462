//! The program's one HTTP client, for everything that is not measured.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use inferometer_model::fetch::{Fetch, FetchError, FetchReply, FetchRequest, Post, PostRequest};
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::{Clock, Content, PlannedRequest, Release, RequestId, RequestRecord};
use tokio::task::LocalSet;

use crate::answer::Failure;
use crate::bodies::body;
use crate::clock::SystemClock;
use crate::connection::dial;
use crate::dispatcher::Departure;
use crate::drive::LoadError;
use crate::drive::{Finished, runtime};
use crate::exchange::Exchanges;
use crate::exchange::Flight;
use crate::http1::{Head, whole_head};
use crate::http2::Links;
use crate::limits::{Deadline, before};
use crate::socket::{DriverClock, Turn};
use crate::target::Target;

/// Fetches over a fresh connection each time. Must be used inside a runtime, and a `LocalSet`.
#[derive(Debug)]
pub struct HttpFetch {
    target: Arc<Target>,
    clock: Rc<DriverClock>,
    opened: RefCell<u32>,
}

const FETCH_LIMIT: Duration = Duration::from_secs(30);

impl HttpFetch {
    pub fn new(target: Arc<Target>, clock: SystemClock) -> Self {
        let clock = Rc::new(DriverClock::new(clock, Turn::default()));
        Self { target, clock, opened: RefCell::new(0) }
    }

    async fn reply(&self, sending: Sending<'_>) -> Result<FetchReply, Failure> {
        let ordinal = self.opened.replace_with(|ordinal| *ordinal + 1);
        let stage = Cell::new(Stage::Connect);
        let links = Links::default();
        let mut connection = match self.target.http {
            HttpVersion::Http1 => dial(&self.target, &self.clock, ordinal, &stage).await?,
            HttpVersion::Http2 => links.dial(&self.target, &self.clock, ordinal, &stage).await?,
        };
        let path = self.target.base.path(sending.path);
        let body = Bytes::copy_from_slice(sending.json.as_bytes());
        let request = self.target.plain_request(sending.method, &path);
        let answered = match self.target.http {
            HttpVersion::Http1 => connection.send(whole_head(request, body.len()), body).await,
            HttpVersion::Http2 => connection.send_shared(request, body).await,
        };
        let Head { status, content_type, .. } =
            answered.map_err(|not_answered| not_answered.failure(false))?;
        let mut body = Vec::new();
        let read = connection.read_body(|_, part| {
            if sending.body_limit < body.len() + part.len() {
                let words = format!("the answer is longer than {} bytes", sending.body_limit);
                let (outcome, cause) = (Outcome::ProtocolError, Cause::BodyTooLarge);
                return Err(Failure::with_message(outcome, cause, words));
            }
            body.extend_from_slice(part);
            Ok(())
        });
        read.await.map_err(|failure| Failure { outcome: Outcome::ProtocolError, ..failure })?;
        Ok(FetchReply { status: status.as_u16(), content_type, body })
    }
}

/// What goes out, whichever trait asked for it.
struct Sending<'a> {
    method: http::Method,
    path: &'a str,
    json: &'a str,
    body_limit: usize,
}

impl HttpFetch {
    async fn within(
        &self,
        length: Duration,
        sending: Sending<'_>,
    ) -> Result<FetchReply, FetchError> {
        let limit = self.clock.system.now() + length;
        let redactor = self.target.credentials.redactor();
        match before(self.clock.system, limit, self.reply(sending)).await {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(failure)) => {
                let message = redactor.redact(&failure.words());
                Err(FetchError { outcome: failure.outcome, message })
            }
            None => Err(FetchError {
                outcome: Outcome::TimeoutTotal,
                message: format!("no whole answer within {length:?}"),
            }),
        }
    }
}

impl Fetch for HttpFetch {
    async fn fetch(&self, request: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
        let FetchRequest { path, body_limit } = request;
        let sending = Sending { method: http::Method::GET, path, json: "", body_limit };
        self.within(FETCH_LIMIT.min(self.target.limits.total), sending).await
    }
}

impl Post for HttpFetch {
    async fn post(&self, request: PostRequest<'_>) -> Result<FetchReply, FetchError> {
        let PostRequest { path, json, body_limit, patience } = request;
        let sending = Sending { method: http::Method::POST, path, json, body_limit };
        self.within(patience, sending).await
    }
}

/// What the request brought.
#[derive(Clone, Debug)]
pub struct Probe {
    pub record: RequestRecord,
    /// How the server treats a connection after its answer.
    pub connections: Connections,
}

/// How long an idle connection is watched before it counts as kept open.
const KEEP_OPEN_WATCH: Duration = Duration::from_millis(200);

pub fn probe(
    target: &Arc<Target>,
    clock: SystemClock,
    content: &Content,
    output_tokens: u32,
) -> Result<Probe, LoadError> {
    let turn = Turn::default();
    let runtime = runtime(clock, turn.clone())?;
    LocalSet::new().block_on(&runtime, async move {
        let clock = Rc::new(DriverClock::new(clock, turn));
        let now = clock.system.now();
        let alone = PlannedRequest::alone(RequestId(0), Release::At(now));
        let request = PlannedRequest { input_tokens: 0, output_tokens, ..alone };
        let body = body(target, content, &[], output_tokens);
        let model = content.model.as_deref().map(Arc::from);
        let exchanges = Exchanges::new(Arc::clone(target), clock, 0, 1);
        let departure = Departure { request, intended: now, admitted: now, slot: None };
        let flight = Flight::new(departure, model);
        let failure = attempt_within_limits(&exchanges, &flight, body).await;
        let record = match exchanges.finished(&flight, failure) {
            Finished::Ended(record) => *record,
            Finished::NotSent(cause) => {
                return Err(LoadError::Start(io::Error::other(cause.text())));
            }
            Finished::Panicked => return Err(LoadError::Task(request.id)),
        };
        let keeps = exchanges.keeps_open(KEEP_OPEN_WATCH).await;
        let connections = if keeps { Connections::Reuse } else { Connections::New };
        Ok(Probe { record, connections })
    })
}

/// The attempt, under the limits that a driver would keep.
async fn attempt_within_limits(
    exchanges: &Exchanges,
    flight: &Flight,
    body: Bytes,
) -> Option<Failure> {
    let target = &exchanges.target;
    let next_limit = || flight.state(target.streams()).next_limit(&target.limits);
    let mut deadline = Deadline::new(exchanges.clock.system, next_limit().0);
    let mut attempt = std::pin::pin!(exchanges.attempt(flight, body));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(failure) = attempt.as_mut().poll(cx) {
            return Poll::Ready(failure);
        }
        deadline
            .poll_passed(cx, next_limit)
            .map(|outcome| Some(Failure { outcome, cause: None, message: None }))
    })
    .await
}
