//! What was said in the conversations of one driver. A conversation never changes its driver.

use std::collections::HashMap;

use inferometer_model::{Message, Plan, PlannedRequest, RequestId};

use crate::flight::Flight;

/// By the first request of each conversation that goes on.
#[derive(Debug, Default)]
pub(crate) struct Histories(HashMap<RequestId, Vec<Message>>);

impl Histories {
    /// What was said before this request.
    pub(crate) fn before(&self, request: &PlannedRequest) -> &[Message] {
        if request.turn == 0 {
            return &[];
        }
        self.0.get(&request.conversation()).map_or(&[], Vec::as_slice)
    }

    /// A request has ended. What it `said`, exactly as it was sent, and the answer are history as
    /// long as the talk goes on; `None` for one that failed, which ends the talk.
    pub(crate) fn landed(&mut self, flight: &Flight, said: Option<Vec<Message>>) {
        let request = flight.request();
        let Some(said) = said.filter(|_| request.continues) else {
            if 0 < request.turn {
                self.0.remove(&request.conversation());
            }
            return;
        };
        let history = self.0.entry(request.conversation()).or_default();
        history.extend(said);
        history.push(Message::new("assistant", flight.reply.take()));
    }

    /// This request will not be sent, and nothing after it in its conversation.
    pub(crate) fn forget(&mut self, plan: &dyn Plan, refused: RequestId) {
        // A load without conversations may be refused at a high rate.
        if self.0.is_empty() {
            return;
        }
        if let Some(request) = plan.request(refused) {
            self.0.remove(&request.conversation());
        }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::plan::Bounds;
    use inferometer_model::{Content, Moment, Release};

    use super::*;
    use crate::dispatcher::Departure;

    /// One conversation without an end.
    struct Talk;

    impl Plan for Talk {
        fn bounds(&self) -> Bounds {
            Bounds { requests: None, release_before: None, requests_min: 0, slots: None }
        }

        fn request(&self, id: RequestId) -> Option<PlannedRequest> {
            let alone = PlannedRequest::alone(id, Release::WhenSlotFree);
            let turn = u16::try_from(id.0).ok()?;
            Some(PlannedRequest { turn, continues: true, ..alone })
        }

        fn content(&self, _: &PlannedRequest) -> Content {
            Content::text("hi")
        }
    }

    fn turn(id: u64) -> Flight {
        let request = Talk.request(RequestId(id)).unwrap();
        let (intended, admitted) = (Moment::ZERO, Moment::ZERO);
        Flight::new(Departure { request, intended, admitted, slot: None }, None)
    }

    #[test]
    fn a_conversation_that_is_refused_leaves_nothing_behind() {
        let mut histories = Histories::default();
        histories.landed(&turn(0), Some(vec![Message::new("user", "hi")]));
        assert_eq!(histories.before(turn(1).request()).len(), 2);
        histories.forget(&Talk, RequestId(1));
        assert!(histories.0.is_empty());
    }
}
