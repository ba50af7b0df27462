//! Where the engine's answers come in: each token to its flight, and ends to be seen to.

use inferometer_engine::scheduler::{RequestEnd, RequestFacts};
use inferometer_model::Moment;

use super::engine::Client;
use super::flights::{Flights, place_of};
use super::observer::Observer;

pub(super) struct Desk<'a, O: Observer> {
    pub(super) now: Moment,
    pub(super) flights: &'a mut Flights<O::Notes>,
    pub(super) observer: &'a mut O,
    pub(super) landed: &'a mut Vec<RequestFacts>,
}

impl<O: Observer> Client for Desk<'_, O> {
    fn token(&mut self, id: u64, at: Moment) {
        let Some(flight) = self.flights.get_mut(place_of(id)) else { return };
        self.observer.token(&mut flight.notes, flight.last, at);
        flight.add_token(self.now, at);
    }

    fn ended(&mut self, facts: &RequestFacts) {
        // Who takes a request back knows it.
        if facts.end != RequestEnd::Abort {
            self.landed.push(*facts);
        }
    }
}
