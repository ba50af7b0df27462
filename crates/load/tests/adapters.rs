//! Adapters: a record judges the answered model by the one that its body asked for.

use crate::support;

use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::plan::Bounds;
use inferometer_model::{Content, Outcome, Plan, PlannedRequest, RequestId};

use support::noting::{Manners, NotingServer};
use support::{Closed, Scripted, Step, drive_plan, target};

/// Requests that ask for two adapters in turn.
struct Adapted(Closed);

impl Plan for Adapted {
    fn bounds(&self) -> Bounds {
        self.0.bounds()
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        self.0.request(id)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let model = Some(format!("lora-{}", request.id.0 % 2));
        Content { model, ..self.0.content(request) }
    }
}

#[test]
fn a_server_that_answers_with_the_adapter_it_was_asked_for_is_right() {
    let server = NotingServer::serve(Manners { answers: usize::MAX, service: Duration::ZERO });
    let plan = Adapted(Closed { requests: 4, slots: 1 });
    let driven = drive_plan(plan, &target(server.address, Api::Chat, true), 1);
    assert_eq!(driven.records.len(), 4);
    for record in driven.records {
        assert_eq!((record.ending.outcome, record.other_model), (Outcome::Ok, None));
    }
}

#[test]
fn a_server_that_answers_with_its_own_model_instead_is_noted() {
    let body =
        r#"{"model":"tiny","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let server = Scripted::serve(vec![vec![Step::Write(answer.into_bytes())]]);
    let plan = Adapted(Closed { requests: 1, slots: 1 });
    let driven = drive_plan(plan, &target(server.address, Api::Chat, false), 1);
    assert_eq!(driven.records[0].other_model.as_deref(), Some("tiny"));
}
