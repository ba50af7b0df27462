//! The engine knows what it sent and when. Here every event that the client recorded is compared
//! with what the engine wrote: same order, same tokens, same moments.
//!
//! The stated bound has two parts.
//!
//! Never hidden: an event's moment never lies before its write began (less the error of the clock
//! mapping), and never later than its write returned by more than what the record itself admits:
//! the width of its arrival, or 3.5 ms, the longest absence of the driver that may go unnoticed.
//!
//! Exact: at most one event in fifty lies more than one millisecond after its write. A client that
//! was not there when the bytes came does not pass; one whose machine is busy may try again. So may
//! one that seems to hide: a starved kernel delivers late, which neither side can tell. A client that
//! hides of itself does so every time, and an early stamp or a wrong count is never forgiven.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;

use inferometer_analysis::{Percentile, Verdict, metric, summarize};
use inferometer_engine::truth::{Ended, RequestTruth, Truth};
use inferometer_model::record::Read;
use inferometer_model::{Observations, RequestRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::{Engine, inferometer, observations, output, text};

const LATE_NS_MAX: i64 = 1_000_000;
const UNNOTICED_NS_MAX: i64 = 3_500_000;
const LATE_SHARE_MAX: f64 = 0.02;
/// A shared machine may take the core away from a client that does nothing wrong. One that is
/// wrong is wrong every time.
const ATTEMPTS: u32 = 8;

/// One at a time: two clients on two cores would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

#[derive(Debug, PartialEq)]
enum Mismatch {
    Missing(u64),
    Events { request: u64, sent: usize, recorded: usize },
    Tokens { request: u64, event: usize },
    Early { request: u64, event: usize, by_ns: i64 },
    Hidden { request: u64, event: usize, late_ns: i64, width_ns: i64 },
    SentAfterReceived { request: u64, by_ns: i64 },
    Late { events: usize, of: usize, worst_ns: i64 },
}

#[derive(Debug, Default)]
struct Agreement {
    events: usize,
    late: usize,
    worst_ns: i64,
}

fn compare(observations: &Observations, truth: &Truth) -> Result<Agreement, Mismatch> {
    let by_id: HashMap<&str, &RequestTruth> = truth
        .requests
        .iter()
        .filter_map(|request| Some((request.request_id.as_deref()?, request)))
        .collect();
    let prefix = format!("inferometer-{}", observations.manifest.run);
    let mut agreement = Agreement::default();
    for record in &observations.records {
        let id = record.id.0;
        let truth = by_id.get(format!("{prefix}-{id}").as_str()).ok_or(Mismatch::Missing(id))?;
        compare_request(observations, &record, truth, &mut agreement)?;
    }
    if LATE_SHARE_MAX * (agreement.events as f64) < agreement.late as f64 {
        let Agreement { events, late, worst_ns } = agreement;
        return Err(Mismatch::Late { events: late, of: events, worst_ns });
    }
    Ok(agreement)
}

fn compare_request(
    observations: &Observations,
    record: &RequestRecord,
    truth: &RequestTruth,
    agreement: &mut Agreement,
) -> Result<(), Mismatch> {
    let request = record.id.0;
    let zero = observations.manifest.clock.monotonic_ns;
    let error = observations.ending.client.mapping.unwrap().error_ns_max.cast_signed();
    let on_engine_clock =
        |moment: inferometer_model::Moment| (zero + moment.as_nanos()).cast_signed();
    let received = truth.received_kernel_ns.unwrap().cast_signed();
    let sent_late = on_engine_clock(record.sent.unwrap()) - received;
    let engine_error = truth.received_mapping_error_ns.unwrap().cast_signed();
    if engine_error < sent_late {
        return Err(Mismatch::SentAfterReceived { request, by_ns: sent_late });
    }
    // One entry per event: the write that completed it, and the tokens written up to there.
    let mut tokens = 0;
    let written: Vec<_> = truth
        .writes
        .iter()
        .flat_map(|write| {
            tokens += write.tokens;
            std::iter::repeat_n((*write, tokens), write.events as usize)
        })
        .collect();
    if written.len() != record.events.len() {
        let (sent, recorded) = (written.len(), record.events.len());
        return Err(Mismatch::Events { request, sent, recorded });
    }
    let mut counted = 0;
    for (event, (found, (write, tokens))) in record.events.iter().zip(&written).enumerate() {
        counted += found.tokens.unwrap_or(0);
        // Events of one write share its token count, which holds from its last event on.
        let is_last_of_write =
            written.get(event + 1).is_none_or(|(next, _)| next.before_ns != write.before_ns);
        if is_last_of_write && counted != *tokens {
            return Err(Mismatch::Tokens { request, event });
        }
        let read = found.read as usize;
        let moment = on_engine_clock(record.reads[read].at());
        let early = write.before_ns.cast_signed() - moment;
        if error < early {
            return Err(Mismatch::Early { request, event, by_ns: early });
        }
        let late = moment - write.after_ns.cast_signed();
        agreement.events += 1;
        agreement.worst_ns = agreement.worst_ns.max(late);
        if LATE_NS_MAX < late {
            agreement.late += 1;
            let width_ns = admitted_width_ns(record, read);
            if UNNOTICED_NS_MAX.max(width_ns + LATE_NS_MAX) < late {
                return Err(Mismatch::Hidden { request, event, late_ns: late, width_ns });
            }
        }
    }
    Ok(())
}

/// How far back the record admits that the bytes of a read may lie.
fn admitted_width_ns(record: &RequestRecord, read: usize) -> i64 {
    let found = &record.reads[read];
    let emptied = record.reads[..read].iter().rev().find(|read| read.drained).map(Read::at);
    let earliest = emptied.or(record.sent).unwrap().max(found.turn);
    found.at().nanos_after(earliest).max(0)
}

fn measure(engine: &Engine, folder: &Path, arguments: &[&str]) -> Observations {
    let url = engine.url();
    let mut all = vec!["run", &url, "-q", "--telemetry", "off"];
    all.extend(arguments);
    let ran = output(&all, folder);
    // A busy machine may make a run invalid, and it says so; what it recorded is compared anyway.
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    observations(folder)
}

/// The medians of TTFT and, of a stream whose writes are its tokens, of TTST as reported, against
/// the same numbers made of the engine's writes.
fn check_summary(
    observations: &Observations,
    truth: &Truth,
    writes_are_tokens: bool,
) -> Result<(), String> {
    let mut first_tokens = Vec::new();
    let mut second_tokens = Vec::new();
    let is_probe = |id: &Option<String>| id.as_deref() == Some("inferometer-probe-0");
    for request in truth.requests.iter().filter(|request| !is_probe(&request.request_id)) {
        let mut writes = request.writes.iter().filter(|write| 0 < write.tokens);
        let [first, second] = [(); 2].map(|()| writes.next().unwrap().before_ns);
        first_tokens.push((first - request.received_kernel_ns.unwrap()) as f64 / 1e6);
        second_tokens.push((second - first) as f64 / 1e6);
    }
    let summary = summarize(observations);
    let compared = [(&metric::TTFT, first_tokens), (&metric::TTST, second_tokens)];
    for (metric, mut values) in compared.into_iter().take(1 + usize::from(writes_are_tokens)) {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let truth = f64::midpoint(values[(values.len() - 1) / 2], values[middle]);
        let reported = summary.metrics.distribution(metric).unwrap();
        let reported = reported.percentile(Percentile::P50).unwrap();
        if 1.0 <= (reported - truth).abs() {
            return Err(format!("{} p50 {reported} ms, in truth {truth} ms", metric.title));
        }
    }
    Ok(())
}

/// Measures a fresh engine and compares, up to a few times.
fn agrees(faults: &[&str], arguments: &[&str]) {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut engine = vec!["--ttft", "30ms", "--gap", "12ms", "--jitter", "0.3"];
    engine.extend(faults.iter().flat_map(|fault| ["--fault", *fault]));
    let mut all = vec!["--requests", "8", "--output-tokens", "24"];
    all.extend(arguments);
    let mut late = None;
    for _ in 0..ATTEMPTS {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(&engine);
        let observations = measure(&engine, folder.path(), &all);
        let truth = engine.truth();
        assert!(truth.requests.iter().all(|request| request.ended == Ended::Complete));
        match compare(&observations, &truth) {
            Ok(agreement) => {
                assert!(8 * 24 <= agreement.events, "{faults:?}: {agreement:?}");
                match check_summary(&observations, &truth, faults.is_empty()) {
                    Ok(()) => return,
                    Err(apart) => late = Some(apart),
                }
            }
            // On a starved core the kernel itself delivers late, and no client can know.
            Err(mismatch @ (Mismatch::Late { .. } | Mismatch::Hidden { .. })) => {
                late = Some(format!("{mismatch:?}"));
            }
            Err(mismatch) => panic!("{faults:?} {arguments:?}: {mismatch:?}"),
        }
    }
    panic!("{faults:?} {arguments:?}: {ATTEMPTS} times {late:?}");
}

#[test]
fn a_clean_stream_is_recorded_as_it_was_sent() {
    agrees(&[], &["--concurrency", "4"]);
    agrees(&[], &["--concurrency", "4", "--api", "completions"]);
    agrees(&[], &["--rate", "20"]);
}

/// Faults: 41, 42, 43, 44, 46.
#[test]
fn every_framing_fault_is_recorded_as_it_was_sent() {
    for fault in
        ["several-events", "crlf", "cr", "comments", "role-first", "no-done", "multi-line", "bom"]
    {
        agrees(&[fault], &["--concurrency", "4"]);
    }
    agrees(&["several-events", "cr", "multi-line", "role-first"], &["--concurrency", "4"]);
}

/// Three hundred writes for a token: two streams of them are load enough.
/// Faults: 11.
#[test]
fn a_stream_of_single_bytes_is_recorded_as_it_was_sent() {
    agrees(&["byte-wise"], &["--concurrency", "2"]);
    agrees(&["byte-wise", "crlf", "comments", "bom"], &["--concurrency", "2"]);
}

#[test]
fn usage_on_the_last_choice_is_recorded_as_it_was_sent() {
    agrees(&["usage-on-last-choice"], &["--concurrency", "4"]);
}

/// The p99 of how far the reported TTFT lies from what the engine did, in milliseconds.
fn ttft_error_ms_p99(observations: &Observations, truth: &Truth) -> f64 {
    let prefix = format!("inferometer-{}-", observations.manifest.run);
    let mut errors: Vec<f64> = Vec::new();
    for request in &truth.requests {
        let id = request.request_id.as_deref().and_then(|id| id.strip_prefix(&prefix));
        let Some(id) = id.and_then(|id| id.parse::<u64>().ok()) else { continue };
        let record = observations.records.iter().find(|record| record.id.0 == id).unwrap();
        let first = record.events.iter().find(|event| event.is_output()).unwrap();
        let reported = record.reads[first.read as usize].at().nanos_after(record.sent.unwrap());
        let written = request.writes.iter().find(|write| 0 < write.tokens).unwrap().before_ns;
        let true_ns = written - request.received_kernel_ns.unwrap();
        errors.push((reported as f64 - true_ns as f64).abs() / 1e6);
    }
    assert_eq!(errors.len(), observations.records.len());
    errors.sort_by(f64::total_cmp);
    errors[errors.len() * 99 / 100]
}

/// All requests of this run leave at once, over connections that were open before the first left.
#[test]
fn the_first_requests_of_a_closed_loop_are_as_exact_as_any() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut found = Vec::new();
    for _ in 0..ATTEMPTS {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(&["--ttft", "100ms", "--gap", "10ms"]);
        let load = ["--concurrency", "200", "--requests", "200", "--output-tokens", "4"];
        let observations = measure(&engine, folder.path(), &load);
        let dialling = observations.ending.client.dialling.as_ref().unwrap();
        assert_eq!((dialling.connect_ns.len(), dialling.failed()), (200, 0));
        assert!(observations.records.iter().all(|record| record.connection.unwrap().reused));
        let error_ms = ttft_error_ms_p99(&observations, &engine.truth());
        if error_ms < 2.0 {
            return;
        }
        found.push(error_ms);
    }
    panic!("TTFT p99 errors in ms: {found:?}");
}

/// A client that is stopped while tokens arrive finds them all at once afterwards, with the stamp
/// of the last. The comparison must see that, and the run must not call itself valid.
#[test]
fn a_client_that_is_delayed_on_purpose_does_not_pass() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "10ms", "--gap", "10ms"]);
    let url = engine.url();
    let mut run = inferometer()
        .args(["run", &url, "-q", "--requests", "2", "--concurrency", "2"])
        .args(["--output-tokens", "300"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = Pid::from_raw(i32::try_from(run.id()).unwrap());
    let last_write = |requests: &[RequestTruth]| {
        requests
            .iter()
            .filter_map(|request| request.writes.last())
            .map(|write| write.before_ns)
            .max()
    };
    let stopped_at = loop {
        let truth = engine.truth();
        let streaming = truth.requests.iter().filter(|request| 20 < request.writes.len()).count();
        if streaming == 2 {
            kill(client, Signal::SIGSTOP).unwrap();
            break last_write(&truth.requests).unwrap();
        }
    };
    // The engine goes on writing; nobody reads until 700 ms of tokens lie in the sockets.
    while last_write(&engine.truth().requests).unwrap() < stopped_at + 700_000_000 {}
    kill(client, Signal::SIGCONT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(4), "the run knows that it is invalid");
    let observations = observations(folder.path());
    let compared = compare(&observations, &engine.truth());
    assert!(matches!(compared, Err(Mismatch::Late { .. })), "{compared:?}");
    let summary = summarize(&observations);
    assert_eq!(summary.verdict, Verdict::Invalid);
    for key in ["loop-paused", "arrival-width"] {
        assert!(summary.warnings.iter().any(|warning| warning.key == key), "{key}");
    }
}
