//! Sessions whose times are known by hand.

use std::path::PathBuf;

use inferometer_model::Outcome;
use inferometer_model::record::SessionPlace;

use super::*;
use crate::fixture::{Given, run};

/// A turn of the session that begins with request `first`.
fn turn(first: u64, turn: u16, place: SessionPlace) -> Given {
    let mut given = Given::ok(first + u64::from(turn)).turn(turn);
    given.place(SessionPlace { requests: 4, ..place });
    given
}

fn after(after: u16) -> SessionPlace {
    SessionPlace { after: Some(after), ..SessionPlace::default() }
}

/// A request, two beside each other, and one that waits for both: the right one is the longer.
fn fan_out(first: u64) -> Vec<RequestRecord> {
    let context = |place: SessionPlace| SessionPlace { context: Some(0), ..place };
    let shared = SessionPlace { shared_tokens: 30, ..after(0) };
    vec![
        turn(first, 0, SessionPlace::default())
            .moments(0, 0, 10)
            .usage(100, 20)
            .cached(0)
            .ends(110)
            .record(),
        turn(first, 1, shared).moments(120, 120, 120).usage(50, 5).cached(16).ends(150).record(),
        turn(first, 2, after(0)).moments(120, 120, 125).usage(60, 5).cached(0).ends(325).record(),
        turn(first, 3, context(after(2)))
            .moments(425, 425, 430)
            .usage(150, 5)
            .cached(112)
            .ends(530)
            .record(),
    ]
}

fn figures(records: Vec<RequestRecord>) -> Option<SessionFigures> {
    let mut observations = run(Vec::new());
    observations.records = records.into();
    let path = PathBuf::new();
    observations.manifest.spec.workload.source = Source::Saved { path, chooses_output: true };
    SessionFigures::from_observations(&observations, Some(60.0))
}

#[test]
fn the_critical_path_leads_through_the_answers_that_released_the_next() {
    let found = figures(fan_out(0)).unwrap();
    assert_eq!((found.begun, found.complete, found.failed), (1, 1, 0));
    // A closed loop counts from the moment the first request was sent.
    assert_eq!(found.e2e_ms.mean, Some(520.0));
    assert_eq!(found.model_ms.mean, Some(100.0 + 200.0 + 100.0));
    assert_eq!(found.tools_ms.mean, Some(10.0 + 100.0));
    assert_eq!(found.waiting_ms.mean, Some(10.0));
    assert_eq!(found.critical_requests_mean, Some(3.0));
    assert_eq!(found.jobs_per_min, Some(1.0));
    assert_eq!(found.model_share, Some(400.0 / 520.0));
    // 430 ms of requests in 405 ms in which one was with the server.
    assert_eq!(found.parallelism, Some(430.0 / 405.0));
}

#[test]
fn what_the_cache_held_is_compared_with_what_it_could_have_held() {
    let reuse = figures(fan_out(0)).unwrap().reuse.unwrap();
    // The shared beginning, and the first prompt with its answer.
    let expected = CacheReuse {
        requests: 4,
        prompt_tokens: 100 + 50 + 60 + 150,
        achievable_tokens: 30 + 120,
        cached_tokens: 16 + 112,
    };
    assert_eq!(reuse, expected);
    assert_eq!(reuse.of_achievable(), Some(128.0 / 150.0));
    let silent = fan_out(0).into_iter().map(|mut record| {
        record.usage.as_mut().unwrap().cached_tokens = None;
        record
    });
    assert_eq!(figures(silent.collect()).unwrap().reuse, None, "unknown is not zero");
}

#[test]
fn a_session_that_failed_or_was_cut_has_no_time() {
    let mut records = fan_out(0);
    records.extend(fan_out(4));
    records.extend(fan_out(8));
    records[3].ending.outcome = Outcome::HttpError;
    records.remove(7);
    let found = figures(records).unwrap();
    assert_eq!((found.begun, found.complete, found.failed), (3, 1, 1));
    assert_eq!((found.e2e_ms.n, found.requests_mean), (1, Some(4.0)));
}

#[test]
fn requests_that_stand_alone_are_no_sessions() {
    assert_eq!(figures(vec![Given::ok(0).record(), Given::ok(1).record()]), None);
    // As runs are read that were stored before places were.
    assert_eq!(figures(vec![Given::ok(0).record(), Given::ok(1).turn(1).record()]), None);
    assert_eq!(figures(Vec::new()), None);
}

#[test]
fn contradictory_places_end() {
    // No dispatcher writes this: two requests that released each other.
    let mut records = fan_out(0);
    records[0].asked.session.after = Some(3);
    let found = figures(records).unwrap();
    assert_eq!((found.complete, found.critical_requests_mean), (1, Some(4.0)));
}
