//! Conversations: each turn carries what was really said before, whoever drives.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::plan::Bounds;
use inferometer_model::record::SessionPlace;
use inferometer_model::{
    Content, Message, Outcome, Plan, PlannedRequest, Prompt, Release, RequestId,
};

use support::noting::{Manners, Noted, NotingServer};
use support::{drive_plan, target};

/// Conversations of three turns; the first begins with a system message.
#[derive(Clone, Copy)]
struct Talks {
    conversations: u64,
    users: u32,
    /// Whether every turn shows a picture.
    pictures: bool,
}

const TURNS: u64 = 3;

impl Plan for Talks {
    fn bounds(&self) -> Bounds {
        Bounds {
            requests: Some(TURNS * self.conversations),
            release_before: None,
            requests_min: 0,
            slots: NonZeroU32::new(self.users),
        }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let turn = u16::try_from(id.0 % TURNS).unwrap();
        let think = Duration::from_millis(1);
        let release = match turn {
            0 => Release::WhenSlotFree,
            _ => Release::After { previous: RequestId(id.0 - 1), think },
        };
        let continues = u64::from(turn) + 1 < TURNS;
        let session = SessionPlace {
            requests: u16::try_from(TURNS).unwrap(),
            context: turn.checked_sub(1),
            ..SessionPlace::default()
        };
        let alone = PlannedRequest::alone(id, release);
        let request = PlannedRequest { turn, continues, session, ..alone };
        (id.0 < TURNS * self.conversations).then_some(request)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let user = format!("prompt {}", request.id);
        let mut content = if request.turn == 0 {
            let messages = vec![Message::new("system", "be brief"), Message::new("user", user)];
            Content::new(Prompt::Messages(messages))
        } else {
            Content::text(user)
        };
        if self.pictures {
            content.images.push(format!("data:image/png;base64,{}", request.id));
        }
        content
    }
}

/// All that must have been said when this request was made.
fn expected(request: u64) -> Vec<(String, String)> {
    let first = request - request % TURNS;
    let mut messages = vec![("system".to_owned(), "be brief".to_owned())];
    for turn in first..=request {
        messages.push(("user".to_owned(), format!("prompt {turn}")));
        if turn < request {
            messages.push(("assistant".to_owned(), format!("answer {turn}")));
        }
    }
    messages
}

#[test]
fn every_turn_carries_the_real_answers_before_it() {
    for drivers in [1, 3] {
        let server = NotingServer::serve(Manners { answers: usize::MAX, service: Duration::ZERO });
        let plan = Talks { conversations: 20, users: 6, pictures: false };
        let driven = drive_plan(plan, &target(server.address, Api::Chat, true), drivers);
        assert_eq!(driven.records.len(), 60);
        for record in &driven.records {
            assert_eq!(record.ending.outcome, Outcome::Ok);
            assert_eq!(u64::from(record.asked.turn), record.id.0 % TURNS);
        }
        let notes = server.notes();
        assert_eq!(notes.len(), 60);
        for Noted { request, messages, .. } in notes {
            assert_eq!(messages, expected(request), "request {request}");
        }
    }
}

#[test]
fn a_turn_begins_with_exactly_what_was_sent_before_pictures_and_all() {
    let server = NotingServer::serve(Manners { answers: usize::MAX, service: Duration::ZERO });
    let plan = Talks { conversations: 4, users: 2, pictures: true };
    drive_plan(plan, &target(server.address, Api::Chat, true), 1);
    let mut notes = server.notes();
    notes.sort_by_key(|noted| noted.request);
    assert_eq!(notes.len(), 12);
    for pair in notes.windows(2).filter(|pair| pair[1].request % TURNS != 0) {
        let (before, after) = (&pair[0].messages, &pair[1].messages);
        assert!(after.starts_with(before), "{after:?} after {before:?}");
        assert!(after[1].1.contains("data:image/png"), "{after:?}");
    }
}
