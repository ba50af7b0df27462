//! One attempt at one request: a connection, the request, the answer.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use inferometer_model::answer::{AnswerText, Demand};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::outcome::{Cause, Ending, Outcome, Stage};
use inferometer_model::record::{ConnectionFacts, Finish, FinishReason, ResponseHead};
use inferometer_model::{Clock, Moment, PlannedRequest, RequestRecord, StartedRequest};

use crate::answer::{Answer, AnswerReader, Failure, Framing, Texts};
use crate::connection::{Connection, NotAnswered, dial};
use crate::dialect::openai::error_body_text;
use crate::dispatcher::{Departure, SlotId};
use crate::drive::Finished;
use crate::http1::Head;
use crate::http2::Links;
use crate::limits::{RequestState, before};
use crate::socket::{DriverClock, Wire};
use crate::target::{RequestTemplate, Target};

/// What the exchanges of one driver share. Nothing of it is touched per token.
pub(crate) struct Exchanges {
    pub(crate) target: Arc<Target>,
    pub(crate) clock: Rc<DriverClock>,
    template: RequestTemplate,
    /// Idle connections, the most recently used last.
    #[expect(clippy::vec_box, reason = "a connection is large, and moves with every request")]
    pool: RefCell<Vec<Box<Connection>>>,
    /// Idle connections that belong to one user each.
    own: RefCell<HashMap<SlotId, Box<Connection>>>,
    /// Connections that requests share, with HTTP/2.
    pub(crate) links: Links,
    /// The next connection's place in the run's order: drivers take turns.
    ordinal: Cell<u32>,
    ordinal_step: u32,
}

/// Read before redacting and cutting: half a key is still half a key.
const ERROR_BODY_BYTES_READ: usize = 64 << 10;
/// A status is known at once; its words are not worth waiting longer for.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(2);

impl Exchanges {
    /// The exchanges of the driver `driver` of `drivers`.
    pub(crate) fn new(
        target: Arc<Target>,
        clock: Rc<DriverClock>,
        driver: usize,
        drivers: usize,
    ) -> Self {
        let place = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            template: target.template(),
            target,
            clock,
            pool: RefCell::default(),
            own: RefCell::default(),
            links: Links::default(),
            ordinal: Cell::new(place(driver)),
            ordinal_step: place(drivers),
        }
    }

    /// Makes the attempt and returns how it failed, if it did. It may be dropped at any point: the
    /// flight then holds what was known.
    pub(crate) async fn attempt(&self, flight: &Flight, body: Bytes) -> Option<Failure> {
        match self.exchange(flight, body).await {
            Ok((connection, failure)) => {
                // The next user checks whether it is fit for use.
                self.put_back(connection, flight.departure.slot);
                failure
            }
            Err(failure) => Some(failure),
        }
    }

    pub(crate) fn put_back(&self, connection: Box<Connection>, slot: Option<SlotId>) {
        if !connection.is_kept() {
            return;
        }
        match (self.target.connections, slot) {
            (Connections::PerUser, Some(slot)) => {
                self.own.borrow_mut().insert(slot, connection);
            }
            // Without a slot there is no user who could come back.
            (Connections::PerUser | Connections::New, _) => {}
            (Connections::Reuse, _) => self.pool.borrow_mut().push(connection),
        }
    }

    fn idle_connection(&self, slot: Option<SlotId>) -> Option<Box<Connection>> {
        match self.target.connections {
            Connections::PerUser => self.own.borrow_mut().remove(&slot?),
            Connections::Reuse => self.pool.borrow_mut().pop(),
            Connections::New => None,
        }
    }

    /// The result of an attempt. Must be asked before another task can run: the connection is back
    /// in the pool, and its notes belong to the next user.
    pub(crate) fn finished(&self, flight: &Flight, failure: Option<Failure>) -> Finished {
        match failure {
            Some(Failure { cause: Some(cause @ Cause::ClientResource), .. })
                if flight.stage.get() == Stage::Connect =>
            {
                Finished::NotSent(cause)
            }
            failure => {
                let record = flight.record(&self.target, failure, self.clock.system.now());
                Finished::Ended(Box::new(record))
            }
        }
    }

    /// Whether the server leaves an idle connection open for `length`. Some announce keep-alive
    /// and close all the same, so that the next request runs into a closed door.
    pub(crate) async fn keeps_open(&self, length: Duration) -> bool {
        let clock = self.clock.system;
        if self.target.http == HttpVersion::Http2 {
            before(clock, clock.now() + length, std::future::pending::<()>()).await;
            return self.links.are_open();
        }
        let pooled = self.pool.borrow_mut().pop();
        let Some(mut connection) = pooled else { return false };
        before(clock, clock.now() + length, connection.closed()).await.is_none()
    }

    /// A failure may still leave the connection fit for use.
    async fn exchange(
        &self,
        flight: &Flight,
        body: Bytes,
    ) -> Result<(Box<Connection>, Option<Failure>), Failure> {
        // What seldom happens is boxed: every request's task has room for it otherwise.
        let (mut connection, answered) = match self.target.http {
            HttpVersion::Http1 => {
                let mut connection = match self.open_connection(flight.departure.slot) {
                    Some(connection) => connection,
                    None => Box::pin(self.dial(&flight.stage)).await?,
                };
                flight.facts.set(Some(connection.facts()));
                let room = self.clock.leaving_room();
                let head = self.template.written(room, flight.request(), body.len());
                flight.departs_over(&connection.wire);
                match connection.send(head, body).await {
                    Ok(answered) => (connection, answered),
                    Err(not_answered) => {
                        return Err(self.failure(flight, &connection, not_answered));
                    }
                }
            }
            HttpVersion::Http2 => Box::pin(self.send_shared(flight, body)).await?,
        };
        let status = answered.status;
        let read = connection.wire.current_read();
        let head = ResponseHead { status: status.as_u16(), read, streamed: false };
        flight.head.set(Some(head));
        flight.stage.set(Stage::FirstToken);
        if !status.is_success() {
            let failure = Box::pin(self.error_answer(&mut connection, status)).await;
            return Ok((connection, Some(failure)));
        }
        let framing = framing(&answered, self.target.api, self.target.streams());
        drop(answered);
        let framing = match framing {
            Ok(framing) => framing,
            Err(failure) => {
                return Err(Box::pin(self.with_title(&mut connection, failure)).await);
            }
        };
        let streamed = framing != Framing::Whole;
        flight.head.set(Some(ResponseHead { streamed, ..head }));
        let reader = AnswerReader::new(self.target.api, framing);
        let keeps_text = flight.request().continues || flight.demand.is_some();
        let reader = if keeps_text { reader.keeping_text() } else { reader };
        *flight.reader.borrow_mut() = Some(reader);
        self.read_body(&mut connection, flight).await?;
        flight.stage.set(Stage::End);
        Ok((connection, None))
    }

    /// Sends the request over a shared connection. It may be found closed before a byte has left,
    /// and then the request goes over another, once: that is no second attempt, as nothing was
    /// tried.
    async fn send_shared(
        &self,
        flight: &Flight,
        body: Bytes,
    ) -> Result<(Box<Connection>, Head), Failure> {
        let mut connections_left = 2;
        loop {
            let mut connection = self.shared_connection(&flight.stage).await?;
            flight.facts.set(Some(connection.facts()));
            connections_left -= 1;
            flight.departs_over(&connection.wire);
            let request = self.template.request(flight.request());
            match connection.send_shared(request, body.clone()).await {
                Ok(answered) => return Ok((connection, answered)),
                Err(NotAnswered::Unsent) if 0 < connections_left => {}
                Err(not_answered) => return Err(self.failure(flight, &connection, not_answered)),
            }
        }
    }

    fn failure(&self, flight: &Flight, connection: &Connection, why: NotAnswered) -> Failure {
        let was_closed = flight.is_stale(connection, self.clock.system.now());
        why.failure(was_closed)
    }

    async fn read_body(&self, connection: &mut Connection, flight: &Flight) -> Result<(), Failure> {
        let cancel_after = self.target.cancel.and_then(|cancel| cancel.after(flight.request()));
        let on_part = |wire: &Wire, bytes: &[u8]| {
            let mut reader = flight.reader.borrow_mut();
            let Some(reader) = reader.as_mut() else { return Ok(()) };
            reader.push(bytes, wire.current_read())?;
            if reader.has_output() {
                flight.stage.set(Stage::Stream);
                self.note_output(wire);
            }
            if cancel_after.is_some_and(|tokens| reader.is_past(tokens)) {
                // The connection is closed with it, which is how the server learns.
                return Err(Failure { outcome: Outcome::Abandoned, cause: None, message: None });
            }
            Ok(())
        };
        connection.read_body(on_part).await?;
        let wire = &connection.wire;
        let mut reader = flight.reader.borrow_mut();
        let Some(reader) = reader.as_mut() else { return Ok(()) };
        reader.end(wire.current_read())?;
        if reader.has_output() {
            self.note_output(wire);
        }
        Ok(())
    }

    /// Output is a sign of life. The turn's own moment would not do: a driver that always has
    /// something to do never begins a new turn.
    fn note_output(&self, wire: &Wire) {
        if let Some(at) = wire.last_read() {
            self.clock.turn.output_came(at);
        }
    }

    pub(crate) async fn dial(&self, stage: &Cell<Stage>) -> Result<Box<Connection>, Failure> {
        dial(&self.target, &self.clock, self.next_ordinal(), stage).await
    }

    /// Drivers of the run, this one included.
    pub(crate) fn drivers(&self) -> usize {
        self.ordinal_step.max(1) as usize
    }

    /// The number of this driver, from zero.
    pub(crate) fn driver(&self) -> usize {
        (self.ordinal.get() % self.ordinal_step.max(1)) as usize
    }

    fn next_ordinal(&self) -> u32 {
        let ordinal = self.ordinal.get();
        self.ordinal.set(ordinal.saturating_add(self.ordinal_step));
        ordinal
    }

    /// An idle connection that the server has not closed.
    fn open_connection(&self, slot: Option<SlotId>) -> Option<Box<Connection>> {
        while let Some(mut connection) = self.idle_connection(slot) {
            if connection.is_reusable() {
                return Some(connection);
            }
        }
        None
    }

    /// A place on a connection that requests share.
    async fn shared_connection(&self, stage: &Cell<Stage>) -> Result<Box<Connection>, Failure> {
        let turn = if self.target.connections == Connections::New {
            self.links.clear();
            None
        } else {
            match self.links.place_or_turn(&self.clock).await {
                Ok(connection) => return Ok(connection),
                Err(turn) => Some(turn),
            }
        };
        let dialled = self.dial_link(stage).await;
        drop(turn);
        dialled
    }

    /// Another connection for requests to share, and a place on it.
    pub(crate) async fn dial_link(&self, stage: &Cell<Stage>) -> Result<Box<Connection>, Failure> {
        self.links.dial(&self.target, &self.clock, self.next_ordinal(), stage).await
    }

    /// An error status is an answer too: its words are kept.
    async fn error_answer(&self, connection: &mut Connection, status: StatusCode) -> Failure {
        let (outcome, cause) = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                (Outcome::Rejected, None)
            }
            status if status.is_redirection() => (Outcome::HttpError, Some(Cause::Redirect)),
            _ => (Outcome::HttpError, None),
        };
        let text = error_body_text(&self.beginning(connection).await);
        let message =
            if text.is_empty() { status.to_string() } else { format!("{status}: {text}") };
        Failure { outcome, cause, message: Some(message) }
    }

    /// The title of a page that came instead of an answer often explains it.
    async fn with_title(&self, connection: &mut Connection, failure: Failure) -> Failure {
        let page = self.beginning(connection).await;
        let page = String::from_utf8_lossy(&page);
        let title = title(&page);
        let message = failure.message.map(|message| match title {
            Some(title) => format!("{message}, titled “{title}”"),
            None => message,
        });
        Failure { message, ..failure }
    }

    /// What comes of a body within a short time, bounded.
    async fn beginning(&self, connection: &mut Connection) -> Vec<u8> {
        let mut bytes = Vec::new();
        let clock = self.clock.system;
        let reading = connection.read_body(|_, part| {
            bytes.extend_from_slice(part);
            let is_enough = ERROR_BODY_BYTES_READ <= bytes.len();
            let enough = Failure::new(Outcome::HttpError, Cause::BodyTooLarge);
            if is_enough { Err(enough) } else { Ok(()) }
        });
        before(clock, clock.now() + ERROR_BODY_WAIT, reading).await;
        bytes.truncate(ERROR_BODY_BYTES_READ);
        bytes
    }
}

/// How to read a successful answer, or why not to.
fn framing(answered: &Head, api: Api, streaming: bool) -> Result<Framing, Failure> {
    let (outcome, status) = (Outcome::ProtocolError, answered.status);
    if status == StatusCode::NO_CONTENT {
        return Err(Failure::with_message(outcome, Cause::UnexpectedAnswer, status.to_string()));
    }
    if let Some(coding) = &answered.foreign_coding {
        return Err(Failure::with_message(outcome, Cause::ContentEncoding, coding));
    }
    let content_type = answered.content_type.as_deref().unwrap_or_default();
    let mut essence = Cow::Borrowed(content_type.split(';').next().unwrap_or_default().trim());
    if essence.bytes().any(|byte| byte.is_ascii_uppercase()) {
        essence.to_mut().make_ascii_lowercase();
    }
    framing_of(&essence, api, streaming)
        .ok_or_else(|| Failure::with_message(outcome, Cause::ContentType, content_type))
}

/// The framing that a content type means, if it means one that the API has. Some proxies call
/// JSON lines plain JSON, so that for their APIs what was asked counts.
fn framing_of(essence: &str, api: Api, streaming: bool) -> Option<Framing> {
    let streams_lines = api.facts().streams_lines;
    match essence {
        "text/event-stream" => Some(Framing::EventStream),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" if streams_lines => {
            Some(Framing::JsonLines)
        }
        "application/json" | "" if streams_lines && streaming => Some(Framing::JsonLines),
        "" if streaming => Some(Framing::EventStream),
        "application/json" | "" => Some(Framing::Whole),
        _ => None,
    }
}

/// The title of a page, which often explains what it is.
pub(crate) fn title(page: &str) -> Option<&str> {
    // ASCII case changes no byte offset.
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let length = lower.get(start..)?.find('<')?;
    page.get(start..start + length).map(str::trim).filter(|title| !title.is_empty())
}

/// What is known of a request in flight, and the record that it becomes. The exchange fills it in;
/// whatever ends the request, the exchange, a time-out or the end of the run, takes it as it is.
pub(crate) struct Flight {
    pub(crate) departure: Departure,
    /// The model that its body asks for, where it is not the target's.
    model: Option<Arc<str>>,
    pub(crate) stage: Cell<Stage>,
    pub(crate) facts: Cell<Option<ConnectionFacts>>,
    pub(crate) wire: RefCell<Option<Wire>>,
    pub(crate) head: Cell<Option<ResponseHead>>,
    pub(crate) reader: RefCell<Option<AnswerReader>>,
    /// What was answered, where the conversation goes on.
    pub(crate) reply: RefCell<String>,
    /// Why the text of the answer is wanted, if it is.
    pub(crate) demand: Option<Arc<Demand>>,
}

const ERROR_BODY_BYTES_MAX: usize = 4 << 10;
const NAME_BYTES_MAX: usize = 256;
const STALE_WITHIN: Duration = Duration::from_millis(20);
/// No server closes a connection that is younger for its idleness.
const NEW_WITHIN: Duration = Duration::from_secs(1);

impl Flight {
    pub(crate) fn new(departure: Departure, model: Option<Arc<str>>) -> Self {
        Self {
            departure,
            model,
            stage: Cell::new(Stage::Connect),
            facts: Cell::new(None),
            wire: RefCell::default(),
            head: Cell::new(None),
            reader: RefCell::default(),
            reply: RefCell::default(),
            demand: None,
        }
    }

    pub(crate) fn request(&self) -> &PlannedRequest {
        &self.departure.request
    }

    pub(crate) fn started(&self) -> StartedRequest {
        let Departure { request, intended, admitted, slot: _ } = self.departure;
        StartedRequest { id: request.id, intended, admitted, asked: request.asked() }
    }

    /// From here on its moments are those of this wire.
    pub(crate) fn departs_over(&self, wire: &Wire) {
        *self.wire.borrow_mut() = Some(wire.clone());
        self.stage.set(Stage::Headers);
    }

    pub(crate) fn state(&self, streaming: bool) -> RequestState {
        let wire = self.wire.borrow();
        RequestState {
            admitted: self.departure.admitted,
            connected: self.facts.get().is_some(),
            sent: wire.as_ref().and_then(Wire::sent),
            last_read: wire.as_ref().and_then(Wire::last_read),
            has_output: self.reader.borrow().as_ref().is_some_and(AnswerReader::has_output),
            streaming,
        }
    }

    /// A reused connection that breaks at once, without a byte, was closed before. Later than
    /// that the server must have taken the request, and broke it. So it did where the connection was
    /// opened just before.
    pub(crate) fn is_stale(&self, connection: &Connection, now: Moment) -> bool {
        let wire = &connection.wire;
        let at_once = wire.sent().is_none_or(|sent| now <= sent + STALE_WITHIN);
        let is_new = connection.first_use.is_some_and(|opened| now <= opened + NEW_WITHIN);
        let reused = self.facts.get().is_some_and(|facts| facts.reused);
        reused && !is_new && !wire.has_reads() && at_once
    }

    /// The record of this flight, which ends here.
    pub(crate) fn record(
        &self,
        target: &Target,
        failure: Option<Failure>,
        now: Moment,
    ) -> RequestRecord {
        let wire = self.wire.take();
        let answer = self.reader.take().map(AnswerReader::into_answer);
        let Answer {
            events,
            comments,
            usage,
            server,
            finishes,
            done,
            model,
            texts,
            call_documents,
        } = answer.unwrap_or_default();
        let Texts { content, reasoning } = texts.into_iter().next().unwrap_or_default();
        if self.request().continues {
            *self.reply.borrow_mut() = String::from_utf8_lossy(&content).into_owned();
        }
        let said = |demand| Box::new(AnswerText { demand, content, reasoning, call_documents });
        let ending = match failure {
            None => Ending::ok(wire.as_ref().and_then(Wire::last_arrival).unwrap_or(now)),
            Some(failure) => Ending {
                outcome: failure.outcome,
                at: now,
                stage: self.stage.get(),
                cause: failure.cause,
                message: failure
                    .message
                    .map(|message| bounded(target, &message, ERROR_BODY_BYTES_MAX)),
            },
        };
        // A reason that we do not know is text of the server's.
        let harmless = |finish: Finish| match finish.reason {
            FinishReason::Other(text) => {
                let reason = FinishReason::Other(bounded(target, &text, NAME_BYTES_MAX));
                Finish { reason, ..finish }
            }
            FinishReason::Stop
            | FinishReason::Length
            | FinishReason::ToolCalls
            | FinishReason::ContentFilter => finish,
        };
        let sent = wire.as_ref().and_then(Wire::sent);
        let elapsed = sent.and_then(|sent| ending.at.since(sent)).unwrap_or_default();
        let output_tokens = usage.and_then(|usage| usage.completion_tokens);
        RequestRecord {
            sent,
            server: server.map(|report| Box::new(report.checked(elapsed, output_tokens))),
            connection: self.facts.get(),
            head: self.head.get(),
            reads: wire.as_ref().map(Wire::take_reads).unwrap_or_default(),
            events,
            comments,
            usage,
            finishes: finishes.into_iter().map(harmless).collect(),
            done,
            answer: self.demand.clone().map(said),
            other_model: model
                .filter(|answered| {
                    let asked = self.model.as_deref().unwrap_or(&target.model);
                    !is_same_model(asked, answered)
                })
                .map(|model| bounded(target, &model, NAME_BYTES_MAX)),
            ..RequestRecord::without_answer(&self.started(), ending)
        }
    }
}

/// Redacted before it is cut.
fn bounded(target: &Target, text: &str, bytes_max: usize) -> String {
    let mut redacted = target.credentials.redactor().redact(text);
    redacted.truncate(redacted.floor_char_boundary(bytes_max));
    redacted
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
    fn lines_are_expected_of_the_api_that_sends_them_and_of_no_other() {
        let lines = Some(Framing::JsonLines);
        for (essence, api, streaming, framing) in [
            ("application/x-ndjson", Api::OllamaChat, true, lines),
            ("application/x-ndjson", Api::OllamaGenerate, false, lines),
            ("application/json", Api::OllamaChat, true, lines),
            ("", Api::OllamaGenerate, true, lines),
            ("application/json", Api::OllamaChat, false, Some(Framing::Whole)),
            ("application/x-ndjson", Api::Chat, true, None),
            ("application/json", Api::Chat, true, Some(Framing::Whole)),
            ("", Api::Chat, true, Some(Framing::EventStream)),
            ("", Api::Embeddings, false, Some(Framing::Whole)),
            ("text/html", Api::OllamaChat, true, None),
        ] {
            assert_eq!(framing_of(essence, api, streaming), framing, "{essence} {api}");
        }
    }
}

#[cfg(test)]
mod flight_tests {
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
