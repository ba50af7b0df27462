//! Load shapes from flag to wire: what the engine saw must be what was asked for.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::time::Duration;

use inferometer_engine::truth::RequestTruth;
use inferometer_model::{Observations, RequestRecord};
use serde_json::Value;

use support::{Engine, observations, output, text};

/// One run, from all sides.
struct Ran {
    document: Value,
    observations: Observations,
    /// The engine's view of the run's requests, by their moment.
    truth: Vec<RequestTruth>,
}

impl Ran {
    fn count(&self) -> usize {
        self.observations.records.len()
    }

    /// How long after the run's beginning a request was to leave.
    fn intended(&self, record: &RequestRecord) -> Duration {
        record.intended.since(self.observations.ending.began.unwrap()).unwrap()
    }

    fn intended_max(&self) -> Duration {
        self.observations.records.iter().map(|record| self.intended(&record)).max().unwrap()
    }
}

fn run(engine: &[&str], arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(engine);
    let url = engine.url();
    let ran = output(
        &[&["run", &url, "--json", "--output-tokens", "4"], arguments].concat(),
        folder.path(),
    );
    // A busy machine may make a run invalid; what was sent is what was asked for all the same.
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let prefix = format!("inferometer-{}-", observations.manifest.run);
    let mut truth = engine.truth().requests;
    truth.retain(|request| request.request_id.as_ref().is_some_and(|id| id.starts_with(&prefix)));
    truth.sort_by_key(|request| request.received_user_ns);
    let document = serde_json::from_slice(&ran.stdout).unwrap();
    Ran { document, observations, truth }
}

const SLOW: [&str; 4] = ["--ttft", "60ms", "--gap", "5ms"];
const QUICK: [&str; 4] = ["--ttft", "5ms", "--gap", "1ms"];

/// When the engine began the last write of an answer: nobody can have read its end before.
fn ended_ns(request: &RequestTruth) -> u64 {
    request.writes.last().unwrap().before_ns
}

fn in_flight_max(truth: &[RequestTruth]) -> usize {
    let in_flight_at = |moment: u64| {
        let flies = |r: &&RequestTruth| r.received_user_ns <= moment && moment < ended_ns(r);
        truth.iter().filter(flies).count()
    };
    truth.iter().map(|request| in_flight_at(request.received_user_ns)).max().unwrap()
}

#[test]
fn a_cap_holds_back_what_is_due_and_says_so() {
    let ran = run(
        &SLOW,
        &["--rate", "50", "--arrivals", "constant", "--max-concurrency", "2", "--requests", "30"],
    );
    assert_eq!((ran.truth.len(), ran.count()), (30, 30));
    assert_eq!(in_flight_max(&ran.truth), 2);
    let document = &ran.document;
    assert!(0.5 < document["held_by_cap"]["share"].as_f64().unwrap());
    let queued_ms = |record: &RequestRecord| {
        record.admitted.since(record.intended).unwrap().as_secs_f64() * 1e3
    };
    let records = ran.observations.records.iter();
    let queued: f64 = records.map(|record| queued_ms(&record)).sum::<f64>() / 30.0;
    let reported = document["metrics"]["client_queue_ms"]["mean"].as_f64().unwrap();
    assert!((queued - reported).abs() < 0.01, "{queued} is reported as {reported}");
    // Thirty in a bit more than half a second, served two at a time in 75 ms each.
    assert!(100.0 < reported, "{reported} ms");
    let late = document["warnings"].as_array().unwrap().iter().any(|w| w["key"] == "sent-late");
    let lag_p99 = document["metrics"]["send_lag_ms"]["p99"].as_f64().unwrap();
    assert_eq!(late, 10.0 < lag_p99, "waiting for the cap is not being late");
    assert!(lag_p99 < reported, "{lag_p99} ms");
}

#[test]
fn a_slot_rests_after_its_reply() {
    let think = Duration::from_millis(100);
    let arguments = ["--concurrency", "1", "--think-time", "100ms", "--requests", "5"];
    let ran = run(&QUICK, &arguments);
    assert_eq!(ran.truth.len(), 5);
    for pair in ran.truth.windows(2) {
        let rested = Duration::from_nanos(pair[1].received_user_ns - ended_ns(&pair[0]));
        assert!(think <= rested, "{rested:?}");
    }
    for pair in ran.observations.records.into_held().windows(2) {
        assert_eq!(pair[1].intended, pair[0].ending.at + think);
    }
    let arguments = ["--concurrency", "1", "--think-time", "20ms", "--think", "exponential"];
    let ran = run(&QUICK, &[&arguments[..], &["--requests", "6"]].concat());
    let mut rests: Vec<Duration> = ran
        .observations
        .records
        .into_held()
        .windows(2)
        .map(|pair| pair[1].intended.since(pair[0].ending.at).unwrap())
        .collect();
    rests.sort_unstable();
    rests.dedup();
    assert_eq!(rests.len(), 5, "no two are equal");
}

#[test]
fn until_both_goes_on_to_the_later_end() {
    let loops: [&[&str]; 2] =
        [&["--concurrency", "2"], &["--rate", "100", "--arrivals", "constant"]];
    for shape in loops {
        let with = |more: [&str; 4]| run(&QUICK, &[shape, &more, &["--until", "both"]].concat());
        let by_time = with(["--requests", "3", "--duration", "500ms"]);
        assert!(3 < by_time.count(), "{shape:?}: {}", by_time.count());
        assert!(by_time.intended_max() < Duration::from_millis(500));
        assert!(Duration::from_millis(250) < by_time.intended_max(), "{shape:?}");
        let by_number = with(["--requests", "40", "--duration", "20ms"]);
        assert_eq!(by_number.count(), 40, "{shape:?}");
        assert!(Duration::from_millis(20) < by_number.intended_max(), "{shape:?}");
    }
}

#[test]
fn until_first_ends_at_the_sooner_end() {
    let loops: [&[&str]; 2] =
        [&["--concurrency", "2"], &["--rate", "100", "--arrivals", "constant"]];
    for shape in loops {
        let with = |more: [&str; 4]| run(&QUICK, &[shape, &more, &["--until", "first"]].concat());
        let by_number = with(["--requests", "5", "--duration", "10m"]);
        assert_eq!(by_number.count(), 5, "{shape:?}");
        let by_time = with(["--requests", "10000", "--duration", "300ms"]);
        assert!((2..10_000).contains(&by_time.count()), "{shape:?}: {}", by_time.count());
        assert!(by_time.intended_max() < Duration::from_millis(300), "{shape:?}");
        assert_eq!(by_time.document["run"]["partial"], false, "{shape:?}");
    }
}

#[test]
fn an_infinite_rate_sends_all_at_once() {
    let ran = run(&["--ttft", "500ms"], &["--rate", "inf", "--requests", "30"]);
    assert_eq!(ran.truth.len(), 30);
    assert_eq!(ran.intended_max(), Duration::ZERO);
    let first_answer = ran.truth.iter().map(|request| request.writes[0].before_ns).min().unwrap();
    assert!(ran.truth.iter().all(|request| request.received_user_ns < first_answer));
}

#[test]
fn a_ramp_is_played_to_its_end_and_gets_denser() {
    let ran = run(&QUICK, &["--ramp", "5..55:1s", "--arrivals", "constant"]);
    // The area under the rate is thirty.
    assert!((29..=31).contains(&ran.count()), "{}", ran.count());
    assert!(ran.intended_max() < Duration::from_secs(1));
    let intended: Vec<Duration> =
        ran.observations.records.iter().map(|record| ran.intended(&record)).collect();
    let early = intended.iter().filter(|at| **at < Duration::from_millis(500)).count();
    // 8.75 of the area lies before the middle.
    assert!((8..=10).contains(&early), "{early}");
    let gaps: Vec<Duration> =
        intended.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] <= pair[0]), "{gaps:?}");
}
