//! Several drivers, users with connections of their own, and bodies that are made ahead: whoever
//! sends a request, it is the same request, at the same moment, over the right connection.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::{Drive, LoadError, SystemClock, Target};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::Connections;
use inferometer_model::outcome::Outcome;
use inferometer_model::plan::Bounds;
use inferometer_model::spec::Limits;
use inferometer_model::{Clock, Content, Moment, Plan, PlannedRequest, RequestId, RequestRecord};

use support::noting::{Manners, NotingServer};
use support::{Closed, Driven, Open, Scripted, Step, drive_plan, drive_within, target};

const PROMPT: Manners = Manners { answers: usize::MAX, service: Duration::ZERO };

fn per_user(server: &NotingServer) -> Arc<Target> {
    let target = target(server.address, Api::Chat, true);
    Arc::new(Target { connections: Connections::PerUser, ..(*target).clone() })
}

/// The requests of each slot, in order: each is intended when its predecessor's reply ended.
fn users(driven: &Driven) -> Vec<Vec<&RequestRecord>> {
    let began = driven.ending.began.unwrap();
    let by_intended: BTreeMap<Moment, &RequestRecord> =
        driven.records.iter().map(|record| (record.intended, record)).collect();
    let first = driven.records.iter().filter(|record| record.intended == began);
    let chain = |first| {
        let next = |record: &&RequestRecord| by_intended.get(&record.ending.at).copied();
        std::iter::successors(Some(first), next).collect()
    };
    first.map(chain).collect()
}

fn connection_of(record: &RequestRecord) -> u32 {
    record.connection.unwrap().ordinal
}

#[test]
fn each_user_keeps_a_connection() {
    for drivers in [1, 3] {
        let server = NotingServer::serve(PROMPT);
        let plan = Closed { requests: 40, slots: 4 };
        let driven = drive_plan(plan, &per_user(&server), drivers);
        assert!(driven.records.iter().all(|record| record.ending.outcome == Outcome::Ok));
        let users = users(&driven);
        assert_eq!(users.len(), 4);
        assert_eq!(users.iter().map(Vec::len).sum::<usize>(), 40, "each belongs to a user");
        let mut seen = BTreeSet::new();
        for user in &users {
            let ordinals: BTreeSet<u32> = user.iter().map(|r| connection_of(r)).collect();
            assert_eq!(ordinals.len(), 1, "a user changed the connection");
            seen.extend(ordinals);
            assert!(user.iter().skip(1).all(|record| record.connection.unwrap().reused));
        }
        assert_eq!(seen.len(), 4, "users share a connection");
        let notes = server.notes();
        assert_eq!(notes.iter().map(|noted| noted.connection).max(), Some(3));
    }
}

#[test]
fn a_user_whose_connection_was_closed_dials_another() {
    for drivers in [1, 3] {
        let server = NotingServer::serve(Manners { answers: 5, ..PROMPT });
        let plan = Closed { requests: 40, slots: 4 };
        let driven = drive_plan(plan, &per_user(&server), drivers);
        assert!(driven.records.iter().all(|record| record.ending.outcome == Outcome::Ok));
        let mut owners = BTreeMap::new();
        for (user, records) in users(&driven).iter().enumerate() {
            for record in records {
                let owner = *owners.entry(connection_of(record)).or_insert(user);
                assert_eq!(owner, user, "a connection changed its user");
            }
            let fresh = records.iter().filter(|record| !record.connection.unwrap().reused);
            let first = 1;
            assert_eq!(fresh.count(), records.len().div_ceil(5) - first, "a dial for five answers");
        }
        assert_eq!(owners.len(), server.notes().iter().map(|n| n.connection).max().unwrap() + 1);
    }
}

#[test]
fn any_number_of_drivers_plays_the_same_plan() {
    for drivers in [1, 2, 4] {
        let server = NotingServer::serve(PROMPT);
        let plan = Open { requests: 200, gap_us: 500 };
        let driven = drive_plan(plan, &target(server.address, Api::Chat, true), drivers);
        assert_eq!(usize::try_from(driven.ending.client.drivers).unwrap(), drivers);
        let ids: Vec<u64> = driven.records.iter().map(|record| record.id.0).collect();
        assert_eq!(ids, (0..200).collect::<Vec<_>>());
        let began = driven.ending.began.unwrap();
        for record in &driven.records {
            let planned = Duration::from_micros(500 * record.id.0);
            assert_eq!(record.intended, began + planned, "request {}", record.id);
            assert!(record.intended <= record.sent.unwrap());
        }
    }
}

#[test]
fn a_closed_loop_has_no_more_drivers_than_slots() {
    let server = NotingServer::serve(PROMPT);
    let plan = Closed { requests: 30, slots: 2 };
    let driven = drive_plan(plan, &target(server.address, Api::Chat, true), 4);
    assert_eq!(driven.ending.client.drivers, 2);
    assert_eq!(driven.records.len(), 30);
}

#[test]
fn every_request_carries_its_own_prompt() {
    for drivers in [1, 3] {
        let server = NotingServer::serve(PROMPT);
        let plan = Closed { requests: 600, slots: 12 };
        let driven = drive_plan(plan, &target(server.address, Api::Chat, true), drivers);
        assert_eq!(driven.records.len(), 600);
        let notes = server.notes();
        let asked: BTreeSet<u64> = notes.iter().map(|noted| noted.request).collect();
        assert_eq!(asked, (0..600).collect());
        for noted in notes {
            let request = plan.request(RequestId(noted.request)).unwrap();
            assert_eq!(Content::text(noted.prompt), plan.content(&request));
        }
    }
}

/// A plan with a mistake in it.
struct Broken(Closed);

impl Plan for Broken {
    fn bounds(&self) -> Bounds {
        self.0.bounds()
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        self.0.request(id)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        assert!(request.id.0 < 5, "a prompt that cannot be written");
        self.0.content(request)
    }
}

/// The others have requests in flight that nobody will answer, and minutes to wait for them.
/// Faults: 78.
#[test]
fn a_driver_that_panics_ends_the_run_at_once() {
    let clock = SystemClock::new();
    let server = Scripted::serve(vec![vec![Step::Stall]]);
    let plan = Broken(Closed { requests: 100, slots: 8 });
    let target = target(server.address, Api::Chat, true);
    let driven = drive_within(plan, &target, 3, Drive::STALL_GRACE);
    assert!(matches!(driven, Err(LoadError::Driver)));
    let took = clock.now().since(Moment::ZERO).unwrap();
    assert!(took < Limits::default().first_token / 2, "{took:?}");
}
