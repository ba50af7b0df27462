//! Requests in flight, each in a place of its own; places are used again.

use std::collections::VecDeque;

use inferometer_engine::scheduler::SchedulerRequest;
use inferometer_load::dispatcher::Departure;
use inferometer_load::limits::Standing;
use inferometer_model::{Moment, Segment, StartedRequest};

/// A request between its departure and its end.
#[derive(Debug)]
pub struct Flight<N> {
    pub departure: Departure,
    pub sent: Moment,
    pub prompt_tokens: u32,
    /// Handed out by the API process, some of them perhaps only in a moment.
    pub tokens: u32,
    pub first: Option<Moment>,
    pub last: Option<Moment>,
    pub(super) on_the_way: OnTheWay,
    pub notes: N,
    /// All that the conversation holds so far, where it goes on.
    pub(super) said: Vec<Segment>,
    pub(super) answer_seed: u64,
    /// Until the API process has handed it to the scheduler.
    pub(super) in_front: Option<SchedulerRequest>,
}

impl<N> Flight<N> {
    pub fn started(&self) -> StartedRequest {
        let Departure { request, intended, admitted, slot: _ } = self.departure;
        StartedRequest { id: request.id, intended, admitted, asked: request.asked() }
    }

    /// The engine has made a token at `made`, and the client has it at `seen`.
    pub(super) fn add_token(&mut self, made: Moment, seen: Moment) {
        self.tokens += 1;
        self.first.get_or_insert(seen);
        self.last = Some(seen);
        self.on_the_way.add(made, seen);
    }

    /// As the client sees it.
    pub(super) fn standing(&self, now: Moment, streaming: bool) -> Standing {
        let last_read = self.last_seen(now);
        Standing {
            admitted: self.departure.admitted,
            connected: true,
            sent: Some(self.sent),
            last_read,
            has_output: last_read.is_some(),
            streaming,
        }
    }

    /// The client leaves: what is still on the way reaches nobody.
    pub(super) fn leave(&mut self, now: Moment) {
        self.last = self.last_seen(now);
        self.first = self.first.filter(|_| self.last.is_some());
        self.tokens = self.tokens.saturating_sub(self.on_the_way.after(now));
    }

    fn last_seen(&self, now: Moment) -> Option<Moment> {
        self.last.filter(|last| *last <= now).or_else(|| self.on_the_way.last_by(now))
    }
}

/// Moments of tokens that the engine has made and the client may not have, in their order.
#[derive(Debug, Default)]
pub(super) struct OnTheWay {
    moments: VecDeque<Moment>,
    /// The last that is certain to have arrived.
    arrived: Option<Moment>,
}

impl OnTheWay {
    fn add(&mut self, made: Moment, seen: Moment) {
        while let Some(moment) = self.moments.front().copied().filter(|moment| *moment <= made) {
            self.arrived = Some(moment);
            self.moments.pop_front();
        }
        if seen <= made {
            self.arrived = Some(seen);
        } else {
            self.moments.push_back(seen);
        }
    }

    fn last_by(&self, now: Moment) -> Option<Moment> {
        let seen = self.moments.iter().rev().find(|moment| **moment <= now);
        seen.copied().or(self.arrived)
    }

    fn after(&self, now: Moment) -> u32 {
        let unseen = self.moments.iter().rev().take_while(|moment| now < **moment).count();
        u32::try_from(unseen).unwrap_or(u32::MAX)
    }
}

/// The place of a flight is its name in the scheduler, so that a token finds it without a search.
#[derive(Debug)]
pub(super) struct Flights<N> {
    places: Vec<Option<Flight<N>>>,
    free: Vec<usize>,
}

impl<N> Default for Flights<N> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<N> Flights<N> {
    /// The place that the next flight will have.
    pub(super) fn next_place(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    pub(super) fn add(&mut self, flight: Flight<N>) {
        match self.free.pop() {
            Some(place) => self.places[place] = Some(flight),
            None => self.places.push(Some(flight)),
        }
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Flight<N>> {
        self.places.get_mut(place)?.as_mut()
    }

    pub(super) fn take(&mut self, place: usize) -> Option<Flight<N>> {
        let flight = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        Some(flight)
    }

    /// The places in use, in their order.
    pub(super) fn taken(&self) -> Vec<usize> {
        let is_taken = |place: &usize| self.places[*place].is_some();
        (0..self.places.len()).filter(is_taken).collect()
    }
}

/// The scheduler's name of a place.
pub(super) fn id_of(place: usize) -> u64 {
    place as u64
}

pub(super) fn place_of(id: u64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leaves_has_seen_what_has_arrived_and_no_more() {
        let at = Moment::from_nanos;
        let mut way = OnTheWay::default();
        assert_eq!((way.last_by(at(5)), way.after(at(5))), (None, 0));
        way.add(at(10), at(14));
        way.add(at(11), at(18));
        assert_eq!((way.last_by(at(13)), way.after(at(13))), (None, 2));
        assert_eq!((way.last_by(at(14)), way.after(at(14))), (Some(at(14)), 1));
        way.add(at(20), at(20));
        assert_eq!((way.last_by(at(20)), way.after(at(20))), (Some(at(20)), 0));
        way.add(at(30), at(33));
        assert_eq!((way.last_by(at(31)), way.after(at(31))), (Some(at(20)), 1));
    }
}
