//! What was said in the sessions that are going on: messages on the wire, segments in a simulation.
//! A request may be the context of several others, so what was said is a tree.

use std::collections::HashMap;

use inferometer_model::{PlannedRequest, RequestId};

/// By the first request of each session.
#[derive(Debug)]
pub struct Contexts<T>(HashMap<RequestId, OpenSession<T>>);

#[derive(Debug)]
struct OpenSession<T> {
    /// Requests that have not ended yet.
    unfinished: u16,
    /// By turn: the turn that it goes on from, and what it added.
    said: HashMap<u16, (Option<u16>, Vec<T>)>,
}

impl<T> Default for Contexts<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Contexts<T> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that the prompt of a request begins with, in its order.
    pub fn before(&self, request: &PlannedRequest) -> Vec<&T> {
        let session = request.session.context.and_then(|_| self.0.get(&request.conversation()));
        let Some(session) = session else { return Vec::new() };
        let said = |turn: &u16| session.said.get(turn);
        let ancestors: Vec<u16> =
            std::iter::successors(request.session.context, |turn| said(turn)?.0).collect();
        ancestors.iter().rev().filter_map(said).flat_map(|(_, parts)| parts).collect()
    }

    /// A request has ended. What it added is kept as long as its session goes on; `None` where nothing
    /// goes on from it.
    pub fn finished(&mut self, request: &PlannedRequest, added: Option<Vec<T>>) {
        // One that stands alone is no session.
        if request.session.requests < 2 {
            return;
        }
        let first = request.conversation();
        let session = self.0.entry(first).or_insert_with(|| OpenSession {
            unfinished: request.session.requests,
            said: HashMap::new(),
        });
        session.unfinished -= 1;
        if session.unfinished == 0 {
            self.0.remove(&first);
        } else if let Some(added) = added.filter(|_| request.continues) {
            session.said.insert(request.turn, (request.session.context, added));
        }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::Release;
    use inferometer_model::record::SessionPlace;

    use super::*;

    fn turn(turn: u16, context: Option<u16>) -> PlannedRequest {
        let id = RequestId(7 + u64::from(turn));
        let session = SessionPlace { requests: 4, context, ..SessionPlace::default() };
        let alone = PlannedRequest::alone(id, Release::WhenSlotFree);
        PlannedRequest { turn, session, continues: true, ..alone }
    }

    #[test]
    fn a_context_is_shared_by_those_that_go_on_from_it_and_goes_with_its_session() {
        let mut contexts = Contexts::default();
        contexts.finished(&turn(0, None), Some(vec!["a", "b"]));
        contexts.finished(&turn(1, Some(0)), Some(vec!["c"]));
        assert_eq!(contexts.before(&turn(2, Some(0))), [&"a", &"b"]);
        assert_eq!(contexts.before(&turn(3, Some(1))), [&"a", &"b", &"c"]);
        assert!(contexts.before(&turn(3, None)).is_empty());
        contexts.finished(&turn(2, Some(0)), None);
        assert_eq!(contexts.before(&turn(3, Some(1))).len(), 3, "one that failed adds nothing");
        contexts.finished(&turn(3, Some(1)), None);
        assert!(contexts.is_empty());
    }
}
