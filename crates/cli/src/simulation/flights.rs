//! Requests in flight, each in a place of its own; places are used again.

use inferometer_engine::scheduler::SchedulerRequest;
use inferometer_load::dispatcher::Departure;
use inferometer_load::limits::Standing;
use inferometer_model::{Moment, Segment, StartedRequest};

/// A request between its departure and its end.
#[derive(Debug)]
pub(crate) struct Flight<N> {
    pub(crate) departure: Departure,
    pub(crate) sent: Moment,
    pub(crate) prompt_tokens: u32,
    pub(crate) tokens: u32,
    pub(crate) first: Option<Moment>,
    pub(crate) last: Option<Moment>,
    pub(crate) notes: N,
    /// All that the conversation holds so far, where it goes on.
    pub(super) said: Vec<Segment>,
    pub(super) answer_seed: u64,
    /// Until the API process has handed it to the scheduler.
    pub(super) in_front: Option<SchedulerRequest>,
}

impl<N> Flight<N> {
    pub(crate) fn started(&self) -> StartedRequest {
        let Departure { request, intended, admitted, slot: _ } = self.departure;
        StartedRequest { id: request.id, intended, admitted, asked: request.asked() }
    }

    pub(super) fn standing(&self, streaming: bool) -> Standing {
        Standing {
            admitted: self.departure.admitted,
            connected: true,
            sent: Some(self.sent),
            last_read: self.last,
            has_output: 0 < self.tokens,
            streaming,
        }
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
