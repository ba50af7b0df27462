//! One attempt at one request: a connection, the request, the answer, and exactly one ending.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use inferometer_model::observations::Connections;
use inferometer_model::outcome::{Cause, Ending, Outcome, Stage};
use inferometer_model::record::{ConnectionFacts, Finish, FinishReason, ResponseHead};
use inferometer_model::{Clock, Moment, PlannedRequest, RequestRecord};
use tokio::sync::watch;

use crate::answer::{Answer, AnswerReader, Failure, Framing};
use crate::connection::{Connection, dial, http_failure};
use crate::deadline::{Deadline, Standing, before};
use crate::dialect::openai::error_body_text;
use crate::target::Target;
use crate::wire::{DriverClock, Wire};

/// What the exchanges of one driver share. Nothing of it is touched per token.
pub(crate) struct Exchanges {
    pub(crate) target: Arc<Target>,
    pub(crate) clock: Rc<DriverClock>,
    /// Idle connections, the most recently used last.
    pool: RefCell<Vec<Connection>>,
    opened: Cell<u32>,
    /// Turns true when everything in flight must end at once.
    pub(crate) cut: watch::Receiver<bool>,
}

/// A request on its way, with its moments so far.
pub(crate) struct Departure {
    pub(crate) request: PlannedRequest,
    pub(crate) body: Bytes,
    pub(crate) intended: Moment,
    pub(crate) admitted: Moment,
}

/// How an attempt came out: with a record, or without having been one.
pub(crate) enum Attempt {
    Ended(Box<RequestRecord>),
    /// This machine could not even dial: no fault of the server's, so no failure of a request.
    NotSent(Cause),
}

/// What is known of an attempt while it goes on; a time-out takes it as it is.
struct Progress {
    stage: Cell<Stage>,
    facts: Cell<Option<ConnectionFacts>>,
    wire: RefCell<Option<Wire>>,
    head: Cell<Option<ResponseHead>>,
    reader: RefCell<Option<AnswerReader>>,
}

const ERROR_BODY_BYTES_MAX: usize = 4 << 10;
/// Read before redacting and cutting: half a key is still half a key.
const ERROR_BODY_BYTES_READ: usize = 64 << 10;
/// A status is known at once; its words are not worth waiting longer for.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(2);
const NAME_BYTES_MAX: usize = 256;
const STALE_WITHIN: Duration = Duration::from_millis(20);

impl Exchanges {
    pub(crate) fn new(
        target: Arc<Target>,
        clock: Rc<DriverClock>,
        cut: watch::Receiver<bool>,
    ) -> Self {
        Self { target, clock, pool: RefCell::default(), opened: Cell::new(0), cut }
    }

    /// Makes the attempt. Ends by itself within the limits, whatever the server does.
    pub(crate) async fn attempt(&self, departure: Departure) -> Attempt {
        let progress = Progress {
            stage: Cell::new(Stage::Connect),
            facts: Cell::new(None),
            wire: RefCell::default(),
            head: Cell::new(None),
            reader: RefCell::default(),
        };
        let ended = self.guarded(&departure, &progress).await;
        if let Ok(mut connection) = ended.result
            && self.target.connections == Connections::Reuse
            && connection.is_reusable().await
        {
            self.pool.borrow_mut().push(connection);
        }
        match ended.failure {
            Some(Failure { cause: Some(cause @ Cause::ClientResource), .. })
                if progress.stage.get() == Stage::Connect =>
            {
                Attempt::NotSent(cause)
            }
            failure => Attempt::Ended(Box::new(self.record(&departure, progress, failure))),
        }
    }

    /// Whether the server leaves an idle connection open for `length`. Some announce keep-alive
    /// and close all the same, so that the next request runs into a closed door.
    pub(crate) async fn keeps_open(&self, length: Duration) -> bool {
        let pooled = self.pool.borrow_mut().pop();
        let Some(mut connection) = pooled else { return false };
        let clock = self.clock.system;
        before(clock, clock.now() + length, connection.pump.closed()).await.is_none()
    }

    /// Runs the exchange under its time-outs and the run's cut.
    async fn guarded(&self, departure: &Departure, progress: &Progress) -> Ended {
        let limits = &self.target.limits;
        let next_limit = || progress.standing(departure, self.target.streaming).next_limit(limits);
        let mut deadline = Deadline::new(self.clock.system, next_limit().0);
        let mut cut = self.cut.clone();
        let mut cut_off = std::pin::pin!(async move { cut.wait_for(|cut| *cut).await.is_ok() });
        let mut exchange = std::pin::pin!(self.exchange(departure, progress));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(result) = exchange.as_mut().poll(cx) {
                return Poll::Ready(Ended::from(result));
            }
            if let Poll::Ready(true) = cut_off.as_mut().poll(cx) {
                let failure = Failure::new(Outcome::Cancelled, Cause::RunStopped);
                return Poll::Ready(Ended::from(Err(failure)));
            }
            deadline
                .poll_passed(cx, next_limit)
                .map(|outcome| Ended::from(Err(Failure { outcome, cause: None, message: None })))
        })
        .await
    }

    async fn exchange(
        &self,
        departure: &Departure,
        progress: &Progress,
    ) -> Result<(Connection, Option<Failure>), Failure> {
        let mut connection = self.connection(progress).await?;
        let request_id = format!("{}-{}", self.target.request_id_prefix, departure.request.id.0);
        let request = self.target.request(departure.body.clone(), &request_id);
        connection.wire.begin();
        *progress.wire.borrow_mut() = Some(connection.wire.clone());
        progress.stage.set(Stage::Headers);
        let Connection { sender, pump, wire, .. } = &mut connection;
        let response = pump.with(sender.send_request(request)).await.map_err(|error| {
            http_failure(&error, Stage::Headers, progress.is_stale(wire, self.clock.system.now()))
        })?;
        let head = ResponseHead {
            status: response.status().as_u16(),
            read: wire.current_read(),
            streamed: false,
        };
        progress.head.set(Some(head));
        progress.stage.set(Stage::FirstToken);
        if !response.status().is_success() {
            let failure = self.error_answer(&mut connection, response).await;
            return Ok((connection, Some(failure)));
        }
        let framing = match framing(&response, self.target.streaming) {
            Ok(framing) => framing,
            Err(failure) => return Err(self.with_title(&mut connection, response, failure).await),
        };
        let streamed = framing == Framing::EventStream;
        progress.head.set(Some(ResponseHead { streamed, ..head }));
        *progress.reader.borrow_mut() = Some(AnswerReader::new(self.target.api, framing));
        read_body(&mut connection, response.into_body(), progress).await?;
        progress.stage.set(Stage::End);
        Ok((connection, None))
    }

    /// An idle connection that the server has not closed, or a new one.
    async fn connection(&self, progress: &Progress) -> Result<Connection, Failure> {
        loop {
            let pooled = self.pool.borrow_mut().pop();
            let Some(mut connection) = pooled else { break };
            if connection.is_reusable().await {
                let facts =
                    ConnectionFacts { ordinal: connection.ordinal, reused: true, dial: None };
                progress.facts.set(Some(facts));
                return Ok(connection);
            }
        }
        let ordinal = self.opened.get();
        self.opened.set(ordinal + 1);
        let mut connection = dial(&self.target, &self.clock, ordinal, &progress.stage).await?;
        let dial = connection.dial.take();
        progress.facts.set(Some(ConnectionFacts { ordinal, reused: false, dial }));
        Ok(connection)
    }

    fn record(
        &self,
        departure: &Departure,
        progress: Progress,
        failure: Option<Failure>,
    ) -> RequestRecord {
        let wire = progress.wire.into_inner();
        let answer = progress.reader.into_inner().map(AnswerReader::into_answer);
        let Answer { events, comments, usage, finishes, done, model, texts: _ } =
            answer.unwrap_or_default();
        let now = self.clock.system.now();
        let ending = match failure {
            None => Ending::ok(wire.as_ref().and_then(Wire::last_arrival).unwrap_or(now)),
            Some(failure) => Ending {
                outcome: failure.outcome,
                at: now,
                stage: progress.stage.get(),
                cause: failure.cause,
                message: failure
                    .message
                    .map(|message| self.bounded(&message, ERROR_BODY_BYTES_MAX)),
            },
        };
        RequestRecord {
            id: departure.request.id,
            attempt: 1,
            intended: departure.intended,
            admitted: departure.admitted,
            sent: wire.as_ref().and_then(Wire::sent),
            asked: departure.request.asked(),
            connection: progress.facts.get(),
            head: progress.head.get(),
            reads: wire.as_ref().map(Wire::take_reads).unwrap_or_default(),
            events,
            comments,
            usage,
            finishes: finishes.into_iter().map(|finish| self.harmless(finish)).collect(),
            done,
            other_model: model
                .filter(|model| !is_same_model(&self.target.model, model))
                .map(|model| self.bounded(&model, NAME_BYTES_MAX)),
            ending,
        }
    }

    /// A reason that we do not know is text of the server's.
    fn harmless(&self, finish: Finish) -> Finish {
        match finish.reason {
            FinishReason::Other(words) => {
                let reason = FinishReason::Other(self.bounded(&words, NAME_BYTES_MAX));
                Finish { reason, ..finish }
            }
            FinishReason::Stop
            | FinishReason::Length
            | FinishReason::ToolCalls
            | FinishReason::ContentFilter => finish,
        }
    }

    /// Redacted before it is cut.
    fn bounded(&self, text: &str, bytes_max: usize) -> String {
        let mut redacted = self.target.credentials.redactor().redact(text);
        redacted.truncate(redacted.floor_char_boundary(bytes_max));
        redacted
    }

    /// An error status is an answer too: its words are kept.
    async fn error_answer(
        &self,
        connection: &mut Connection,
        response: http::Response<Incoming>,
    ) -> Failure {
        let status = response.status();
        let (outcome, cause) = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                (Outcome::Rejected, None)
            }
            status if status.is_redirection() => (Outcome::HttpError, Some(Cause::Redirect)),
            _ => (Outcome::HttpError, None),
        };
        let text = error_body_text(&self.beginning(connection, response.into_body()).await);
        let message =
            if text.is_empty() { status.to_string() } else { format!("{status}: {text}") };
        Failure { outcome, cause, message: Some(message) }
    }

    /// A page instead of an answer often says in its title what it is.
    async fn with_title(
        &self,
        connection: &mut Connection,
        response: http::Response<Incoming>,
        failure: Failure,
    ) -> Failure {
        let page = self.beginning(connection, response.into_body()).await;
        let page = String::from_utf8_lossy(&page);
        let title = title(&page);
        let message = failure.message.map(|message| match title {
            Some(title) => format!("{message}, titled “{title}”"),
            None => message,
        });
        Failure { message, ..failure }
    }

    /// What comes of a body within a short time, bounded.
    async fn beginning(&self, connection: &mut Connection, mut body: Incoming) -> Vec<u8> {
        let mut bytes = Vec::new();
        let clock = self.clock.system;
        let reading = async {
            while bytes.len() < ERROR_BODY_BYTES_READ
                && let Some(Ok(frame)) = connection.pump.with(body.frame()).await
            {
                bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            }
        };
        before(clock, clock.now() + ERROR_BODY_WAIT, reading).await;
        bytes.truncate(ERROR_BODY_BYTES_READ);
        bytes
    }
}

/// The end of the guarded part. A failure may still leave the connection fit for use.
struct Ended {
    result: Result<Connection, ()>,
    failure: Option<Failure>,
}

impl From<Result<(Connection, Option<Failure>), Failure>> for Ended {
    fn from(result: Result<(Connection, Option<Failure>), Failure>) -> Self {
        match result {
            Ok((connection, failure)) => Self { result: Ok(connection), failure },
            Err(failure) => Self { result: Err(()), failure: Some(failure) },
        }
    }
}

impl Progress {
    fn standing(&self, departure: &Departure, streaming: bool) -> Standing {
        let wire = self.wire.borrow();
        Standing {
            admitted: departure.admitted,
            connected: self.facts.get().is_some(),
            sent: wire.as_ref().and_then(Wire::sent),
            last_read: wire.as_ref().and_then(Wire::last_read),
            has_output: self.reader.borrow().as_ref().is_some_and(AnswerReader::has_output),
            streaming,
        }
    }

    /// A reused connection that breaks at once, without a byte, was closed before. Later than
    /// that the server must have taken the request, and broke it.
    fn is_stale(&self, wire: &Wire, now: Moment) -> bool {
        let at_once = wire.sent().is_none_or(|sent| now <= sent + STALE_WITHIN);
        self.facts.get().is_some_and(|facts| facts.reused) && !wire.has_reads() && at_once
    }
}

async fn read_body(
    connection: &mut Connection,
    mut body: Incoming,
    progress: &Progress,
) -> Result<(), Failure> {
    let Connection { pump, wire, .. } = connection;
    while let Some(frame) = pump.with(body.frame()).await {
        let frame = frame.map_err(|error| http_failure(&error, progress.stage.get(), false))?;
        let Some(bytes) = frame.data_ref() else { continue };
        if let Some(reader) = progress.reader.borrow_mut().as_mut() {
            reader.push(bytes, wire.current_read())?;
            if progress.stage.get() == Stage::FirstToken && reader.has_output() {
                progress.stage.set(Stage::Stream);
            }
        }
    }
    match progress.reader.borrow_mut().as_mut() {
        Some(reader) => reader.end(wire.current_read()),
        None => Ok(()),
    }
}

/// How to read a successful answer, or why not to.
fn framing(response: &http::Response<Incoming>, streaming: bool) -> Result<Framing, Failure> {
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(encoding) = text(header::CONTENT_ENCODING)
        && !encoding.eq_ignore_ascii_case("identity")
    {
        let cause = Cause::ContentEncoding;
        return Err(Failure::saying(Outcome::ProtocolError, cause, encoding));
    }
    let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/event-stream" => Ok(Framing::EventStream),
        "" if streaming => Ok(Framing::EventStream),
        "application/json" | "" => Ok(Framing::Whole),
        _ => Err(Failure::saying(Outcome::ProtocolError, Cause::ContentType, content_type)),
    }
}

fn title(page: &str) -> Option<&str> {
    // ASCII case changes no byte offset.
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let length = lower.get(start..)?.find('<')?;
    page.get(start..start + length).map(str::trim).filter(|title| !title.is_empty())
}

/// Servers extend the name they were asked for: `PATH@main`, `name-2024-08-06`, `name:latest`.
fn is_same_model(asked: &str, answered: &str) -> bool {
    answered
        .strip_prefix(asked)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '-', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_model_name_is_the_same_model() {
        assert!(is_same_model("tiny", "tiny"));
        assert!(is_same_model("models/tiny", "models/tiny@main"));
        assert!(is_same_model("gpt-4o", "gpt-4o-2024-08-06"));
        assert!(!is_same_model("tiny", "tinyer"));
        assert!(!is_same_model("tiny", "large"));
    }
}
