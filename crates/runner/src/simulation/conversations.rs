//! What was said in conversations, as segments: the engine's answers are history for the next turn.

use std::collections::HashMap;

use inferometer_model::{Plan, PlannedRequest, RequestId, Segment};

use super::flights::Flight;

/// By the first request of each conversation that goes on.
#[derive(Debug, Default)]
pub(super) struct Conversations(HashMap<RequestId, Vec<Segment>>);

impl Conversations {
    /// All that the server is sent: what was said before, and the new turn.
    pub(super) fn prompt(&mut self, plan: &dyn Plan, request: &PlannedRequest) -> Vec<Segment> {
        let new = plan.segments(request);
        if request.turn == 0 {
            return new;
        }
        let mut said = self.0.remove(&request.conversation()).unwrap_or_default();
        said.extend(new);
        said
    }

    /// A turn was answered: what was said and the answer are what the next goes on from.
    pub(super) fn answered<N>(&mut self, flight: &mut Flight<N>) {
        let request = flight.departure.request;
        if request.continues {
            let mut said = std::mem::take(&mut flight.said);
            said.push(Segment { seed: flight.answer_seed, tokens: flight.tokens });
            self.0.insert(request.conversation(), said);
        }
    }

    /// This request will not be sent, and nothing after it in its conversation.
    pub(super) fn forget(&mut self, plan: &dyn Plan, refused: RequestId) {
        if self.0.is_empty() {
            return;
        }
        if let Some(request) = plan.request(refused) {
            self.0.remove(&request.conversation());
        }
    }
}
