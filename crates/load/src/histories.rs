//! What was said in the conversations of one driver. A conversation never changes its driver.

use std::collections::HashMap;

use inferometer_model::{Message, Plan, PlannedRequest, Prompt, RequestId};

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

    /// A request has ended: its words and the answer are history, as long as the talk goes on.
    pub(crate) fn landed(&mut self, plan: &dyn Plan, flight: &Flight, ok: bool) {
        let request = flight.request();
        if !request.continues {
            if 0 < request.turn {
                self.0.remove(&request.conversation());
            }
            return;
        }
        if !ok {
            self.0.remove(&request.conversation());
            return;
        }
        let said = match plan.content(request).prompt {
            Prompt::Text(text) => vec![Message::new("user", text)],
            Prompt::Messages(messages) => messages,
        };
        let history = self.0.entry(request.conversation()).or_default();
        history.extend(said);
        history.push(Message::new("assistant", flight.reply.take()));
    }
}
