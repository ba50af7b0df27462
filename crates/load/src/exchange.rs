//! One attempt at one request: a connection, the request, the answer.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use inferometer_model::Clock;
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::ResponseHead;

use crate::answer::{AnswerReader, Failure, Framing};
use crate::connection::{Connection, Links, NotAnswered, Writing, dial, http_failure};
use crate::deadline::before;
use crate::dialect::openai::error_body_text;
use crate::dispatcher::SlotId;
use crate::flight::Flight;
use crate::landings::Landed;
use crate::opening::{Opening, title};
use crate::target::{RequestTemplate, Target};
use crate::wire::DriverClock;

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
    links: Links,
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

    /// Makes the attempt and says how it failed, if it did. It may be dropped at any point: the
    /// flight then holds what was known.
    pub(crate) async fn attempt(&self, flight: &Flight, body: Bytes) -> Option<Failure> {
        match self.exchange(flight, body).await {
            Ok((connection, failure)) => {
                // Whether it is fit for use is looked at by whoever takes it.
                self.put_back(connection, flight.departure.slot);
                failure
            }
            Err(failure) => Some(failure),
        }
    }

    fn put_back(&self, connection: Box<Connection>, slot: Option<SlotId>) {
        if self.target.http == HttpVersion::Http2 {
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

    /// What an attempt came to. Must be asked before another task can run: the connection is back
    /// in the pool, and its notes belong to whoever takes it next.
    pub(crate) fn landed(&self, flight: &Flight, failure: Option<Failure>) -> Landed {
        match failure {
            Some(Failure { cause: Some(cause @ Cause::ClientResource), .. })
                if flight.stage.get() == Stage::Connect =>
            {
                Landed::NotSent(cause)
            }
            failure => {
                let record = flight.record(&self.target, failure, self.clock.system.now());
                Landed::Ended(Box::new(record))
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
        before(clock, clock.now() + length, connection.pump.closed()).await.is_none()
    }

    /// A failure may still leave the connection fit for use.
    async fn exchange(
        &self,
        flight: &Flight,
        body: Bytes,
    ) -> Result<(Box<Connection>, Option<Failure>), Failure> {
        // What seldom happens is boxed: every request's task has room for it otherwise.
        let (mut connection, opening) = match self.target.http {
            HttpVersion::Http1 => {
                let mut connection = match self.open_connection(flight.departure.slot) {
                    Some(connection) => connection,
                    None => Box::pin(self.dial(flight, body.len())).await?,
                };
                flight.facts.set(Some(connection.facts()));
                let request = self.template.request(body, flight.request().id);
                flight.departs_over(&connection.wire);
                let answer = connection.send(request).await;
                match answer.map(|answer| Opening::of(answer, &self.target)) {
                    Ok(opening) => (connection, opening),
                    Err(not_answered) => {
                        return Err(self.failure(flight, &connection, not_answered));
                    }
                }
            }
            HttpVersion::Http2 => Box::pin(self.send_shared(flight, body)).await?,
        };
        let Opening { status, framing, mut body } = opening;
        let read = connection.wire.current_read();
        let head = ResponseHead { status: status.as_u16(), read, streamed: false };
        flight.head.set(Some(head));
        flight.stage.set(Stage::FirstToken);
        if !status.is_success() {
            let failure = Box::pin(self.error_answer(&mut connection, status, body)).await;
            return Ok((connection, Some(failure)));
        }
        let framing = match framing {
            Ok(framing) => framing,
            Err(failure) => {
                return Err(Box::pin(self.with_title(&mut connection, body, failure)).await);
            }
        };
        let streamed = framing != Framing::Whole;
        flight.head.set(Some(ResponseHead { streamed, ..head }));
        let reader = AnswerReader::new(self.target.api, framing);
        let keeps_text = flight.request().continues;
        let reader = if keeps_text { reader.keeping_text() } else { reader };
        *flight.reader.borrow_mut() = Some(reader);
        self.read_body(&mut connection, &mut body, flight).await?;
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
    ) -> Result<(Box<Connection>, Opening), Failure> {
        let mut request = self.template.request(body, flight.request().id);
        let mut connections_left = 2;
        loop {
            let mut connection = self.shared_connection(&flight.stage).await?;
            flight.facts.set(Some(connection.facts()));
            connections_left -= 1;
            flight.departs_over(&connection.wire);
            match connection.send(request).await {
                Ok(answer) => {
                    return Ok((connection, Opening::of(answer, &self.target)));
                }
                Err(NotAnswered::Unsent(unsent)) if 0 < connections_left => request = *unsent,
                Err(not_answered) => return Err(self.failure(flight, &connection, not_answered)),
            }
        }
    }

    fn failure(&self, flight: &Flight, connection: &Connection, why: NotAnswered) -> Failure {
        let was_closed = flight.is_stale(&connection.wire, self.clock.system.now());
        why.failure(Stage::Headers, was_closed)
    }

    async fn read_body(
        &self,
        connection: &mut Connection,
        body: &mut Incoming,
        flight: &Flight,
    ) -> Result<(), Failure> {
        while let Some(frame) = connection.pump.with(pin!(body.frame())).await {
            let frame = frame.map_err(|error| http_failure(&error, flight.stage.get(), false))?;
            let Some(bytes) = frame.data_ref() else { continue };
            connection.handed(bytes);
            let mut reader = flight.reader.borrow_mut();
            let Some(reader) = reader.as_mut() else { continue };
            reader.push(bytes, connection.wire.current_read())?;
            if reader.has_output() {
                flight.stage.set(Stage::Stream);
                self.note_output(connection);
            }
        }
        // hyper takes a stream that the server gave up without an error for one that ended.
        if self.target.http == HttpVersion::Http2 && !body.is_end_stream() {
            return Err(Failure::new(Outcome::Truncated, Cause::NoFinalChunk));
        }
        let mut reader = flight.reader.borrow_mut();
        let Some(reader) = reader.as_mut() else { return Ok(()) };
        reader.end(connection.wire.current_read())?;
        if reader.has_output() {
            self.note_output(connection);
        }
        Ok(())
    }

    /// Output is a sign of life. The turn's own moment would not do: a driver that always has
    /// something to do never begins a new turn.
    fn note_output(&self, connection: &Connection) {
        if let Some(at) = connection.wire.last_read() {
            self.clock.turn.output_came(at);
        }
    }

    async fn dial(&self, flight: &Flight, body_bytes: usize) -> Result<Box<Connection>, Failure> {
        let (ordinal, writing) = (self.next_ordinal(), Writing::of(body_bytes));
        dial(&self.target, &self.clock, ordinal, &flight.stage, writing).await
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
        let ordinal = self.next_ordinal();
        let dialled = self.links.dial(&self.target, &self.clock, ordinal, stage).await;
        drop(turn);
        dialled
    }

    /// An error status is an answer too: its words are kept.
    async fn error_answer(
        &self,
        connection: &mut Connection,
        status: StatusCode,
        body: Incoming,
    ) -> Failure {
        let (outcome, cause) = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                (Outcome::Rejected, None)
            }
            status if status.is_redirection() => (Outcome::HttpError, Some(Cause::Redirect)),
            _ => (Outcome::HttpError, None),
        };
        let text = error_body_text(&self.beginning(connection, body).await);
        let message =
            if text.is_empty() { status.to_string() } else { format!("{status}: {text}") };
        Failure { outcome, cause, message: Some(message) }
    }

    /// A page instead of an answer often says in its title what it is.
    async fn with_title(
        &self,
        connection: &mut Connection,
        body: Incoming,
        failure: Failure,
    ) -> Failure {
        let page = self.beginning(connection, body).await;
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
                && let Some(Ok(frame)) = connection.pump.with(pin!(body.frame())).await
            {
                bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            }
        };
        before(clock, clock.now() + ERROR_BODY_WAIT, reading).await;
        bytes.truncate(ERROR_BODY_BYTES_READ);
        bytes
    }
}
