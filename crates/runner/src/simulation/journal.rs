//! A simulation as a run writes it down: the same entries, with the same facts.

use inferometer_model::record::{
    Carried, DoneMark, Event, Finish, FinishReason, Read, ResponseHead, Usage,
};
use inferometer_model::{JournalEntry, Moment, NotSent, Outcome, RequestRecord, StartedRequest};

use super::flights::Flight;
use super::observer::{End, Observer, Sample};
use crate::failure::Failure;

/// Makes entries of what happens, and hands them on.
pub struct Journal<F, S> {
    streaming: bool,
    write: F,
    watch: S,
}

/// Bytes of a word, and of the event around it: about what a server sends.
const TEXT_BYTES: u32 = 5;
const EVENT_BYTES: u32 = 200;

impl<F, S> Journal<F, S>
where
    F: FnMut(JournalEntry) -> Result<(), Failure>,
    S: FnMut(&Sample),
{
    /// `watch` is shown the engine at times.
    pub fn new(streaming: bool, write: F, watch: S) -> Self {
        Self { streaming, write, watch }
    }
}

impl<F, S> Observer for Journal<F, S>
where
    F: FnMut(JournalEntry) -> Result<(), Failure>,
    S: FnMut(&Sample),
{
    type Notes = Vec<Moment>;

    fn started(&mut self, started: &StartedRequest) -> Result<(), Failure> {
        (self.write)(JournalEntry::Started(*started))
    }

    fn token(&mut self, notes: &mut Vec<Moment>, _before: Option<Moment>, at: Moment) {
        notes.push(at);
    }

    fn ended(&mut self, flight: Flight<Vec<Moment>>, end: End) -> Result<(), Failure> {
        let record = record(&flight, end, self.streaming);
        (self.write)(JournalEntry::Ended(Box::new(record)))
    }

    fn not_sent(&mut self, part: NotSent) -> Result<(), Failure> {
        (self.write)(JournalEntry::NotSent(part))
    }

    fn sampled(&mut self, sample: &Sample) {
        (self.watch)(sample);
    }
}

fn record(flight: &Flight<Vec<Moment>>, end: End, streaming: bool) -> RequestRecord {
    let is_whole = end.ending.outcome == Outcome::Ok;
    let (reads, events) = if streaming {
        (streamed_reads(flight), streamed(flight, is_whole))
    } else {
        whole(flight, &end)
    };
    let read_at_end = Some(read(end.ending.at)).filter(|_| reads.is_empty());
    let usage = end.cached_tokens.map(|cached_tokens| Usage {
        prompt_tokens: Some(flight.prompt_tokens.into()),
        completion_tokens: Some(flight.tokens.into()),
        cached_tokens: Some(cached_tokens.into()),
    });
    let finish = Finish { choice: 0, reason: FinishReason::Length };
    let head = end.status.map(|status| ResponseHead { status, read: 0, streamed: streaming });
    RequestRecord {
        sent: Some(flight.sent),
        // A head without an event came in a read of its own.
        reads: if head.is_some() { reads.into_iter().chain(read_at_end).collect() } else { reads },
        head,
        events,
        usage,
        finishes: is_whole.then_some(finish).into_iter().collect(),
        done: DoneMark { seen: is_whole && streaming, events_after: 0 },
        ..RequestRecord::without_answer(&flight.started(), end.ending)
    }
}

/// No kernel had a hand in it, and nobody came late to read it.
fn read(at: Moment) -> Read {
    Read { kernel: None, user: at, turn: at, bytes: EVENT_BYTES, drained: true }
}

/// One read for each token that came before the client left.
fn streamed_reads(flight: &Flight<Vec<Moment>>) -> Vec<Read> {
    let seen = usize::try_from(flight.tokens).unwrap_or(usize::MAX);
    flight.notes.iter().copied().take(seen).map(read).collect()
}

/// One event for each token; the last says that it is the last, and usage and the mark of the end
/// come right behind it, as a server sends them.
fn streamed(flight: &Flight<Vec<Moment>>, is_whole: bool) -> Vec<Event> {
    let last = flight.tokens.saturating_sub(1);
    let token = |read: u32| {
        let mut carried = Carried::CHOICE | Carried::CONTENT;
        if is_whole && read == last {
            carried |= Carried::FINISH;
        }
        Event { read, choice: 0, carried, tokens: Some(1), text_bytes: TEXT_BYTES }
    };
    let closing = [Carried::USAGE, Carried::DONE].map(|carried| Event {
        read: last,
        choice: 0,
        carried,
        tokens: None,
        text_bytes: 0,
    });
    let closing = closing.into_iter().filter(|_| is_whole && 0 < flight.tokens);
    (0..flight.tokens).map(token).chain(closing).collect()
}

/// Nothing is seen of an answer before its end.
fn whole(flight: &Flight<Vec<Moment>>, end: &End) -> (Vec<Read>, Vec<Event>) {
    if end.ending.outcome != Outcome::Ok {
        return (Vec::new(), Vec::new());
    }
    let carried = Carried::CHOICE | Carried::CONTENT | Carried::FINISH | Carried::USAGE;
    let (tokens, text_bytes) = (Some(flight.tokens), TEXT_BYTES * flight.tokens);
    let event = Event { read: 0, choice: 0, carried, tokens, text_bytes };
    (vec![read(end.ending.at)], vec![event])
}
