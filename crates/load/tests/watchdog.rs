//! A run that brings no output any more is ended; one that does is left alone, however long.

use crate::support;

use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::journal::RunStop;
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::spec::Limits;

use support::noting::{Manners, NotingServer};
use support::{Closed, Scripted, Step, drive_within, target_with};

const GRACE: Duration = Duration::from_millis(200);

/// Comments for ever, or for as long as anybody listens.
fn pinging() -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let ping = ": ping\n\n";
    let ping = format!("{:x}\r\n{ping}\r\n", ping.len()).into_bytes();
    let mut steps = vec![Step::Write(head.as_bytes().to_vec())];
    for _ in 0..1_000 {
        steps.extend([Step::Write(ping.clone()), Step::Pause(20)]);
    }
    steps
}

/// Faults: 8, 45.
#[test]
fn a_run_without_output_is_ended_and_its_sums_hold() {
    let limits = Limits {
        connect: Duration::from_secs(1),
        first_token: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        ..Limits::default()
    };
    for drivers in [1, 2] {
        let server = Scripted::serve(vec![pinging()]);
        let target = target_with(server.address, Api::Chat, true, limits);
        let plan = Closed { requests: 1_000, slots: 4 };
        let driven = drive_within(plan, &target, drivers, GRACE).unwrap();
        assert_eq!(driven.ending.stop, RunStop::Stalled);
        assert_eq!(driven.records.len() as u64 + driven.not_sent, 1_000);
        let cut: Vec<_> = driven
            .records
            .iter()
            .filter(|record| record.ending.outcome == Outcome::Cancelled)
            .collect();
        assert!((1..=4).contains(&cut.len()), "what was in flight: {}", cut.len());
        assert!(cut.iter().all(|record| record.ending.cause == Some(Cause::RunStopped)));
        let others = driven.records.len() - cut.len();
        let timed_out = driven
            .records
            .iter()
            .filter(|record| record.ending.outcome == Outcome::TimeoutFirstToken);
        assert_eq!(timed_out.count(), others, "until then each met its own limit");
        let took = driven.ending.at.since(driven.ending.began.unwrap()).unwrap();
        assert!(limits.connect + limits.first_token + GRACE <= took, "{took:?} is too soon");
    }
}

/// Twice as long as nothing may come.
#[test]
fn output_keeps_a_run_alive_streamed_or_not() {
    let limit = Duration::from_millis(800);
    let limits = Limits { total: limit, ..Limits::default() };
    let service = Duration::from_millis(20);
    for streaming in [true, false] {
        let server = NotingServer::serve(Manners { answers: usize::MAX, service });
        let target = target_with(server.address, Api::Chat, streaming, limits);
        let driven = drive_within(Closed { requests: 200, slots: 2 }, &target, 1, GRACE).unwrap();
        assert_eq!(driven.ending.stop, RunStop::PlanDone, "streaming: {streaming}");
        assert_eq!(driven.records.len(), 200);
        let took = driven.ending.at.since(driven.ending.began.unwrap()).unwrap();
        assert!(limit + GRACE < took, "too short to prove anything: {took:?}");
    }
}

/// Faults: 8.
#[test]
fn each_limit_is_kept_by_the_drivers_whichever_is_the_shortest() {
    let brief = Duration::from_millis(250);
    let default = Limits::default();
    let cases = [
        (Limits { total: brief, ..default }, Outcome::TimeoutTotal),
        (Limits { first_token: brief, ..default }, Outcome::TimeoutFirstToken),
        (Limits { idle: brief, ..default }, Outcome::TimeoutIdle),
    ];
    for (limits, outcome) in cases {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
        let event = format!("{:x}\r\n{event}\r\n", event.len());
        let said =
            if outcome == Outcome::TimeoutIdle { head.to_owned() + &event } else { head.into() };
        let server = Scripted::serve(vec![vec![Step::Write(said.into_bytes()), Step::Stall]]);
        let target = target_with(server.address, Api::Chat, true, limits);
        let plan = Closed { requests: 2, slots: 2 };
        let driven = drive_within(plan, &target, 1, GRACE).unwrap();
        for record in &driven.records {
            assert_eq!(record.ending.outcome, outcome);
            let took = record.ending.at.since(record.admitted).unwrap();
            assert!(brief <= took && took < brief * 8, "{outcome} after {took:?}");
        }
        assert_eq!(driven.records.len(), 2);
    }
}
