//! What is known of a request in flight, and the record that it becomes.
//!
//! The exchange fills it in; what ends the request, the exchange itself, a time-out or the end of
//! the run, takes it as it is.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::outcome::{Ending, Stage};
use inferometer_model::record::{ConnectionFacts, Finish, FinishReason, ResponseHead};
use inferometer_model::{Moment, PlannedRequest, RequestRecord, StartedRequest};

use crate::answer::{Answer, AnswerReader, Failure};
use crate::dispatcher::Departure;
use crate::limits::RequestState;
use crate::target::Target;
use crate::wire::Wire;

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
}

const ERROR_BODY_BYTES_MAX: usize = 4 << 10;
const NAME_BYTES_MAX: usize = 256;
const STALE_WITHIN: Duration = Duration::from_millis(20);

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
    /// that the server must have taken the request, and broke it.
    pub(crate) fn is_stale(&self, wire: &Wire, now: Moment) -> bool {
        let at_once = wire.sent().is_none_or(|sent| now <= sent + STALE_WITHIN);
        self.facts.get().is_some_and(|facts| facts.reused) && !wire.has_reads() && at_once
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
        let Answer { events, comments, usage, finishes, done, model, texts } =
            answer.unwrap_or_default();
        if let Some(first) = texts.first() {
            *self.reply.borrow_mut() = String::from_utf8_lossy(&first.content).into_owned();
        }
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
        RequestRecord {
            sent: wire.as_ref().and_then(Wire::sent),
            connection: self.facts.get(),
            head: self.head.get(),
            reads: wire.as_ref().map(Wire::take_reads).unwrap_or_default(),
            events,
            comments,
            usage,
            finishes: finishes.into_iter().map(|finish| harmless(target, finish)).collect(),
            done,
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

/// A reason that we do not know is text of the server's.
fn harmless(target: &Target, finish: Finish) -> Finish {
    match finish.reason {
        FinishReason::Other(words) => {
            let reason = FinishReason::Other(bounded(target, &words, NAME_BYTES_MAX));
            Finish { reason, ..finish }
        }
        FinishReason::Stop
        | FinishReason::Length
        | FinishReason::ToolCalls
        | FinishReason::ContentFilter => finish,
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
    fn an_extended_model_name_is_the_same_model() {
        assert!(is_same_model("tiny", "tiny"));
        assert!(is_same_model("models/tiny", "models/tiny@main"));
        assert!(is_same_model("gpt-4o", "gpt-4o-2024-08-06"));
        assert!(!is_same_model("tiny", "tinyer"));
        assert!(!is_same_model("tiny", "large"));
    }
}
