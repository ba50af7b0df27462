//! Requests under way: what the scheduler has made of them and their clients do not have yet.

use std::collections::{HashMap, VecDeque};

use super::api::OwnTimes;
use crate::clock::Moment;
use crate::scheduler::{RequestEnd, RequestFacts};

/// All requests under way.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    /// Empty ones are used again.
    places: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// Which choice of which flight a request of the scheduler is.
    by_id: HashMap<u64, (FlightKey, u16)>,
}

/// Names a flight while it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlightKey(usize);

/// One request of a client, which is one request of the scheduler for each choice.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Where the client's connection is to be found.
    slot: usize,
    /// Whether the client sees tokens as they come.
    streamed: bool,
    choices: Vec<Choice>,
    running: usize,
    /// Tokens and ends that were not put into bytes yet; only of a streamed answer.
    pending: VecDeque<Pending>,
    /// When the last token of any choice was there.
    last_at: Option<Moment>,
}

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) id: u64,
    pub(crate) tokens: u32,
    pub(crate) cached_tokens: u32,
    pub(crate) times: Option<OwnTimes>,
    pub(crate) end: Option<RequestEnd>,
    /// Tokens that have been put into `pending`; more than that are only where it was full.
    queued: u32,
    /// Tokens that have been taken out of it.
    sent: u32,
}

impl Choice {
    fn new(id: u64) -> Self {
        Self { id, tokens: 0, cached_tokens: 0, times: None, end: None, queued: 0, sent: 0 }
    }

    fn has_backlog(&self) -> bool {
        self.queued < self.tokens
    }
}

/// Something that is to be sent to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) choice: u16,
    /// The place of the last token in its answer; an end that brings no token has none.
    pub(crate) index: Option<u32>,
    /// How many tokens there are, up to that one.
    pub(crate) tokens: u32,
    pub(crate) at: Moment,
    pub(crate) end: Option<RequestEnd>,
}

/// What a flight has for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientEvent {
    Nothing,
    One(Pending),
    /// Every choice is over, and all was sent; the moment of the last token.
    Over(Option<Moment>),
}

impl Flights {
    /// Opens a flight for requests of the scheduler that have these ids.
    pub(crate) fn open(&mut self, slot: usize, streamed: bool, ids: &[u64]) -> FlightKey {
        let choices: Vec<Choice> = ids.iter().copied().map(Choice::new).collect();
        let running = choices.len();
        let flight =
            Flight { slot, streamed, choices, running, pending: VecDeque::new(), last_at: None };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(flight);
        let key = FlightKey(place);
        for (choice, &id) in (0..).zip(ids) {
            self.by_id.insert(id, (key, choice));
        }
        key
    }

    /// Ends a flight; what is left of it in the scheduler is to be taken back.
    pub(crate) fn close(&mut self, key: FlightKey) -> Option<Flight> {
        let flight = self.places.get_mut(key.0)?.take()?;
        self.free.push(key.0);
        for choice in &flight.choices {
            self.by_id.remove(&choice.id);
        }
        Some(flight)
    }

    /// A token is there. Returns the slot to visit if something is to be sent to the client.
    pub(crate) fn token(&mut self, id: u64, index: u32, at: Moment) -> Option<usize> {
        let (flight, choice) = self.find(id)?;
        let grown = &mut flight.choices[usize::from(choice)];
        let had_backlog = grown.has_backlog();
        grown.tokens = index + 1;
        let at = flight.last_at.map_or(at, |last| last.max(at));
        flight.last_at = Some(at);
        if !flight.streamed {
            return None;
        }
        // Of each choice with something to tell at least one token is pending: the next follows it.
        let has_room = flight.pending.len() < PENDING_MAX || grown.sent == grown.queued;
        if has_room && !had_backlog {
            grown.queued = index + 1;
            let index = Some(index);
            flight.pending.push_back(Pending { choice, index, tokens: 1, at, end: None });
        }
        Some(flight.slot)
    }

    /// One more token is there together with the one before it. Returns whether it goes out with that.
    pub(crate) fn joins(&mut self, id: u64, index: u32) -> bool {
        let Some((flight, choice)) = self.find(id) else { return false };
        let before = index.checked_sub(1);
        let last = flight.pending.back_mut();
        let last = last.filter(|it| it.choice == choice && it.index == before && it.end.is_none());
        let grown = &mut flight.choices[usize::from(choice)];
        if flight.streamed && (last.is_none() || grown.has_backlog()) {
            return false;
        }
        grown.tokens = index + 1;
        if let Some(last) = last {
            (last.index, last.tokens) = (Some(index), last.tokens + 1);
            grown.queued = index + 1;
        }
        true
    }

    /// An answer is over. Returns the slot to visit if something is to be sent to the client.
    pub(crate) fn ended(&mut self, facts: &RequestFacts, at: Moment) -> Option<usize> {
        if let Some((flight, choice)) = self.find(facts.id) {
            flight.choices[usize::from(choice)].times = OwnTimes::from_facts(facts);
        }
        self.end(facts.id, facts.end, facts.cached_tokens, at)
    }

    /// An answer will never begin.
    pub(crate) fn refused(&mut self, id: u64, at: Moment) -> Option<usize> {
        self.end(id, RequestEnd::Abort, 0, at)
    }

    fn end(&mut self, id: u64, end: RequestEnd, cached_tokens: u32, at: Moment) -> Option<usize> {
        let (flight, choice) = self.find(id)?;
        let over = &mut flight.choices[usize::from(choice)];
        over.end = Some(end);
        over.cached_tokens = cached_tokens;
        flight.running -= 1;
        if !flight.streamed {
            return (flight.running == 0).then_some(flight.slot);
        }
        if over.has_backlog() {
            // It comes with the last token of it.
            return Some(flight.slot);
        }
        // The end belongs to the last token, which is there in the same step.
        let last = flight.pending.iter_mut().rev().find(|pending| pending.choice == choice);
        if let Some(pending) = last {
            pending.end = Some(end);
        } else {
            let (index, tokens, end) = (None, 0, Some(end));
            flight.pending.push_back(Pending { choice, index, tokens, at, end });
        }
        Some(flight.slot)
    }

    /// The next event of a flight. The first token of its only choice has one of its own, and then each
    /// has so many as `per_event`, as with `--stream-interval` of vLLM.
    pub(crate) fn next(&mut self, key: FlightKey, per_event: u32) -> ClientEvent {
        let Some(flight) = self.places.get_mut(key.0).and_then(Option::as_mut) else {
            return ClientEvent::Over(None);
        };
        let has_several = 1 < flight.choices.len();
        let completes = |pending: &Pending| {
            has_several
                || pending.end.is_some()
                // A multiple is among its tokens.
                || pending.index.is_none_or(|index| index % per_event < pending.tokens)
        };
        let Some(last) = flight.pending.iter().position(completes) else {
            let is_over = flight.pending.is_empty() && flight.running == 0;
            return if is_over { ClientEvent::Over(flight.last_at) } else { ClientEvent::Nothing };
        };
        let mut taken = None;
        for pending in flight.pending.drain(..=last).collect::<Vec<_>>() {
            flight.took(&pending);
            let before = taken.map_or(0, |before: Pending| before.tokens);
            taken = Some(Pending { tokens: before + pending.tokens, ..pending });
        }
        taken.map_or(ClientEvent::Nothing, ClientEvent::One)
    }

    /// Whether nothing more will come of a flight.
    pub(crate) fn is_over(&self, key: FlightKey) -> bool {
        self.get(key).is_none_or(|flight| flight.running == 0 && flight.pending.is_empty())
    }

    pub(crate) fn choices(&self, key: FlightKey) -> &[Choice] {
        self.get(key).map_or(&[], |flight| &flight.choices)
    }

    fn get(&self, key: FlightKey) -> Option<&Flight> {
        self.places.get(key.0).and_then(Option::as_ref)
    }

    fn find(&mut self, id: u64) -> Option<(&mut Flight, u16)> {
        let (key, choice) = *self.by_id.get(&id)?;
        let flight = self.places.get_mut(key.0)?.as_mut()?;
        Some((flight, choice))
    }
}

impl Flight {
    /// Makes up for a pending token that was taken out, where its choice has one that found no
    /// room. When that one was there is forgotten; it was held up by its client in any case.
    fn took(&mut self, taken: &Pending) {
        let (Some(index), Some(at)) = (taken.index, self.last_at) else { return };
        let choice = &mut self.choices[usize::from(taken.choice)];
        choice.sent = index + 1;
        if !choice.has_backlog() {
            return;
        }
        let (index, tokens) = (Some(choice.queued), 1);
        choice.queued += 1;
        let end = choice.end.filter(|_| !choice.has_backlog());
        self.pending.push_back(Pending { choice: taken.choice, index, tokens, at, end });
    }

    /// Requests of the scheduler that are not over.
    pub(crate) fn running_ids(&self) -> impl Iterator<Item = u64> {
        self.choices.iter().filter(|choice| choice.end.is_none()).map(|choice| choice.id)
    }

    /// Tokens of all answers so far.
    pub(crate) fn tokens(&self) -> u32 {
        self.choices.iter().map(|choice| choice.tokens).fold(0, u32::saturating_add)
    }
}

/// What a client that does not read may have pending, apart from one token of each choice.
const PENDING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Moment = Moment::from_ns(7);

    fn facts(id: u64, end: RequestEnd) -> RequestFacts {
        RequestFacts {
            id,
            arrived_ns: 0,
            scheduled_ns: Some(1),
            first_token_ns: Some(2),
            last_token_ns: Some(2),
            ended_ns: 2,
            prompt_tokens: 4,
            cached_tokens: 3,
            output_tokens: 1,
            max_tokens: 1,
            preemptions: 0,
            drafts: crate::scheduler::Drafts::default(),
            end,
        }
    }

    #[test]
    fn the_end_of_a_choice_comes_with_its_last_token() {
        let mut flights = Flights::default();
        let key = flights.open(5, true, &[10, 11]);
        assert_eq!(flights.token(10, 0, AT), Some(5));
        assert_eq!(flights.token(11, 0, AT), Some(5));
        assert_eq!(flights.ended(&facts(10, RequestEnd::Length), AT), Some(5));
        let first =
            Pending { choice: 0, index: Some(0), tokens: 1, at: AT, end: Some(RequestEnd::Length) };
        assert_eq!(flights.next(key, 1), ClientEvent::One(first));
        let second = Pending { choice: 1, index: Some(0), tokens: 1, at: AT, end: None };
        assert_eq!(flights.next(key, 1), ClientEvent::One(second));
        assert_eq!(flights.next(key, 1), ClientEvent::Nothing);
        flights.ended(&facts(11, RequestEnd::Stop), AT);
        let (index, tokens, end) = (None, 0, Some(RequestEnd::Stop));
        let end = Pending { choice: 1, index, tokens, at: AT, end };
        assert_eq!(flights.next(key, 1), ClientEvent::One(end));
        assert_eq!(flights.next(key, 1), ClientEvent::Over(Some(AT)));
        assert_eq!(flights.choices(key)[0].cached_tokens, 3);
    }

    #[test]
    fn who_does_not_read_keeps_a_bounded_queue_and_misses_nothing() {
        let tokens = 3 * u32::try_from(PENDING_MAX).unwrap();
        let mut flights = Flights::default();
        let key = flights.open(5, true, &[10, 11, 12]);
        for index in 0..tokens {
            flights.token(10, index, AT);
            flights.token(11, index, AT);
        }
        flights.token(12, 0, AT);
        for id in [10, 11, 12] {
            assert_eq!(flights.ended(&facts(id, RequestEnd::Length), AT), Some(5));
        }
        let mut sent = [0_u32; 3];
        let mut ends = [None; 3];
        while let ClientEvent::One(pending) = flights.next(key, 1) {
            let choice = usize::from(pending.choice);
            assert_eq!((pending.index, ends[choice]), (Some(sent[choice]), None));
            sent[choice] += 1;
            ends[choice] = pending.end;
            assert!(flights.get(key).unwrap().pending.len() <= PENDING_MAX + 3);
        }
        assert_eq!(sent, [tokens, tokens, 1]);
        assert_eq!(ends, [Some(RequestEnd::Length); 3]);
        assert!(flights.is_over(key));
    }

    #[test]
    fn tokens_share_an_event_after_the_first() {
        let mut flights = Flights::default();
        let key = flights.open(5, true, &[10]);
        let mut sent = Vec::new();
        for index in 0..10 {
            flights.token(10, index, AT);
            if index == 9 {
                flights.ended(&facts(10, RequestEnd::Length), AT);
            }
            while let ClientEvent::One(pending) = flights.next(key, 4) {
                sent.push((pending.index, pending.tokens, pending.end.is_some()));
            }
        }
        let wanted =
            [(Some(0), 1, false), (Some(4), 4, false), (Some(8), 4, false), (Some(9), 1, true)];
        assert_eq!(sent, wanted);
        assert_eq!(flights.next(key, 4), ClientEvent::Over(Some(AT)));
    }

    #[test]
    fn an_answer_in_one_piece_calls_for_a_visit_when_all_of_it_is_there() {
        let mut flights = Flights::default();
        let key = flights.open(5, false, &[10, 11]);
        assert_eq!(flights.token(10, 0, AT), None);
        assert_eq!(flights.ended(&facts(10, RequestEnd::Length), AT), None);
        assert_eq!(flights.next(key, 1), ClientEvent::Nothing);
        flights.token(11, 0, AT);
        assert_eq!(flights.ended(&facts(11, RequestEnd::Length), AT), Some(5));
        assert_eq!(flights.next(key, 1), ClientEvent::Over(Some(AT)));
    }

    #[test]
    fn what_was_closed_hears_nothing_more_and_its_place_is_used_again() {
        let mut flights = Flights::default();
        let key = flights.open(5, true, &[10, 11]);
        flights.token(10, 0, AT);
        flights.ended(&facts(10, RequestEnd::Length), AT);
        let flight = flights.close(key).unwrap();
        assert_eq!((flight.running_ids().collect::<Vec<_>>(), flight.tokens()), (vec![11], 1));
        assert_eq!(flights.token(11, 0, AT), None);
        assert_eq!(flights.open(6, true, &[12]), key);
    }
}
