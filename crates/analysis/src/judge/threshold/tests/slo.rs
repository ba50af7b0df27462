//! SLOs met and missed, on hand-made runs.

mod parsing;

use inferometer_model::journal::NotSent;
use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::{Moment, Outcome, RequestId, RequestRecord};

use crate::fixture::{Given, calm, calm_record, run};
use crate::judge::threshold::*;
use crate::{Summary, summarize};

fn promising(mut observations: Observations, slos: &[&str]) -> Observations {
    observations.manifest.spec.slos = slos.iter().map(|slo| slo.parse().unwrap()).collect();
    observations
}

/// Sent at zero, first token at `ttft`, the third and last at `end`.
fn answer(id: u64, ttft: u64, end: u64) -> RequestRecord {
    Given::ok(id).arrival(ttft, &[Some(1)]).arrival(end, &[Some(2)]).usage(512, 3).record()
}

fn not_sent(first: u64, count: u64, cause: Cause) -> NotSent {
    NotSent { first: RequestId(first), count, cause, at: Moment::ZERO }
}

/// Two seconds: one answer keeps both promises, one is slow to begin, one has a single token and
/// so keeps any TPOT, one failed fast; three were not sent, and two more had no time.
fn mixed(slos: &[&str]) -> Observations {
    let mut observations = run(vec![
        answer(0, 100, 200),
        answer(1, 600, 2_000),
        Given::ok(2).arrival(50, &[Some(1)]).usage(512, 1).record(),
        Given::failed(3, Outcome::Rejected).ends(10).record(),
    ]);
    observations.not_sent =
        vec![not_sent(4, 3, Cause::ConversationBroken), not_sent(7, 2, Cause::TimeOver)];
    promising(observations, slos)
}

fn scalar(summary: &Summary, name: &str) -> (Option<f64>, Option<String>) {
    let scalar = summary.metrics.scalar(crate::metric::Metric::named(name).unwrap()).unwrap();
    (scalar.value, scalar.reason.clone())
}

#[test]
fn goodput_counts_what_kept_every_promise_and_attainment_shares_all_that_was_scheduled() {
    let summary = summarize(&mixed(&["ttft<500ms", "tpot<100ms"]));
    assert_eq!((summary.scheduled, summary.time_over), (9, 2));
    assert_eq!(scalar(&summary, "goodput"), (Some(1.0), None));
    assert_eq!(scalar(&summary, "request_throughput"), (Some(1.5), None));
    assert_eq!(scalar(&summary, "attainment"), (Some(2.0 / 7.0), None));
    let kept = |promise: &str, metric: &str, met| RequestSlo {
        promise: promise.to_owned(),
        metric: metric.to_owned(),
        met,
        reason: None,
    };
    let expected = RequestSlos {
        promises: vec![kept("ttft<500ms", "ttft", 2), kept("tpot<100ms", "tpot", 2)],
        scheduled: 7,
        met: 2,
    };
    assert_eq!(summary.request_slos, Some(expected));
    assert_eq!(summary.slos, []);
}

#[test]
fn attainment_itself_may_be_promised_of_the_run() {
    let summary = summarize(&mixed(&["ttft<500ms", "tpot<100ms", "attainment>1%", "goodput>2"]));
    let verdicts: Vec<ThresholdVerdict> = summary.slos.iter().map(|slo| slo.verdict).collect();
    assert_eq!(verdicts, [ThresholdVerdict::Met, ThresholdVerdict::Missed]);
    assert_eq!(summary.slos[0].value, Some(2.0 / 7.0));
}

#[test]
fn without_a_promise_of_each_request_there_is_no_goodput() {
    for slos in [&[][..], &["error_rate<1%"]] {
        let summary = summarize(&promising(calm(), slos));
        assert_eq!(summary.request_slos, None);
        for name in ["goodput", "attainment"] {
            let expected = (None, Some("no SLO was set for each request".to_owned()));
            assert_eq!(scalar(&summary, name), expected);
        }
    }
}

#[test]
fn a_run_that_kept_nothing_attains_zero_and_one_without_requests_attains_nothing() {
    let failed = promising(run(vec![Given::failed(0, Outcome::HttpError).record()]), &["e2e<1s"]);
    let summary = summarize(&failed);
    assert_eq!(scalar(&summary, "attainment"), (Some(0.0), None));
    assert_eq!(scalar(&summary, "goodput"), (None, Some("no request ended ok".to_owned())));
    let empty = summarize(&promising(run(vec![]), &["e2e<1s"]));
    assert_eq!(scalar(&empty, "attainment"), (None, Some("no request was scheduled".to_owned())));
}

#[test]
fn a_promise_that_no_answer_shows_is_neither_kept_nor_broken() {
    let mut observations = promising(calm(), &["ttft<1s", "attainment>90%", "goodput>0.1"]);
    assert_eq!(summarize(&observations).request_slos.unwrap().met, 40);
    observations.manifest.spec.workload.streaming = false;
    let summary = summarize(&observations);
    let reason = Some("the answers were not streamed, so only their end is seen".to_owned());
    for name in ["goodput", "attainment"] {
        assert_eq!(scalar(&summary, name), (None, reason.clone()), "{name}");
    }
    for slo in &summary.slos {
        assert_eq!((slo.verdict, &slo.reason), (ThresholdVerdict::Undecided, &reason));
    }
    assert_eq!(summary.request_slos.unwrap().promises[0].reason, reason);
    observations.manifest.spec.slos = vec!["e2e<1s".parse().unwrap()];
    assert_eq!(summarize(&observations).request_slos.unwrap().met, 40);
}

#[test]
fn answers_of_one_token_have_no_gap_that_could_break_a_promise() {
    let one = |id| Given::ok(id).arrival(50, &[Some(1)]).usage(512, 1).record();
    let summary = summarize(&promising(run((0..3).map(one).collect()), &["tpot<1ms"]));
    assert_eq!(scalar(&summary, "attainment"), (Some(1.0), None));
    // Many tokens in one arrival do have gaps, and nobody saw them.
    let many = |id| Given::ok(id).asked(512, 9).arrival(50, &[Some(9)]).usage(512, 9).record();
    let summary = summarize(&promising(run((0..3).map(many).collect()), &["tpot<1ms"]));
    let reason = "no ok answer shows how many tokens came after its first arrival".to_owned();
    assert_eq!(scalar(&summary, "attainment"), (None, Some(reason)));
}

#[test]
fn a_bare_latency_counts_from_the_schedule_on_an_open_loop() {
    let record = Given::ok(0).moments(0, 900, 900).arrival(1_000, &[Some(3)]).record();
    let mut observations = promising(run(vec![record]), &["ttft<500ms", "ttft.max<500ms"]);
    let closed = summarize(&observations);
    assert_eq!(closed.request_slos.unwrap().met, 1);
    assert_eq!(
        (closed.slos[0].verdict, closed.slos[0].value),
        (ThresholdVerdict::Met, Some(100.0))
    );
    observations.manifest.spec.load.shape = LoadShape::Open {
        rate: Rate::Steady { per_s: 10.0 },
        arrivals: Arrivals::Constant,
        cap: None,
    };
    let open = summarize(&observations);
    let slos = open.request_slos.unwrap();
    assert_eq!((slos.met, slos.promises[0].metric.as_str()), (0, "ttft_schedule"));
    assert_eq!(open.slos[0].metric.as_deref(), Some("ttft_schedule"));
    assert_eq!(
        (open.slos[0].verdict, open.slos[0].value),
        (ThresholdVerdict::Missed, Some(1_000.0))
    );
}

fn judged_alone(observations: Observations, slo: &str) -> SloOutcome {
    let summary = summarize(&promising(observations, &[slo]));
    let [outcome] = summary.slos.as_slice() else { panic!("one outcome") };
    assert_eq!(outcome.promise, slo);
    outcome.clone()
}

#[test]
fn promises_about_the_run_are_met_or_missed() {
    use ThresholdVerdict::{Met, Missed};
    // Forty answers with a TTFT of 50 ms, an E2E of 120 ms, and no error.
    for (slo, verdict, value) in [
        ("ttft.mean<50ms", Met, 50.0),
        ("ttft.p50<49ms", Missed, 50.0),
        ("e2e.max<120ms", Met, 120.0),
        ("error_rate<10%", Met, 0.0),
        ("concurrency_peak>3", Missed, 2.0),
    ] {
        let found = judged_alone(calm(), slo);
        assert_eq!((found.verdict, found.value), (verdict, Some(value)), "{slo}");
        let bare = slo.contains("max") || slo.contains("peak");
        assert_eq!(
            found.reason.is_some_and(|reason| reason.contains("no confidence interval")),
            bare
        );
    }
}

#[test]
fn an_interval_that_straddles_the_limit_decides_nothing() {
    let found = judged_alone(calm(), "error_rate<1%");
    assert_eq!((found.verdict, found.value), (ThresholdVerdict::Undecided, Some(0.0)));
    let reason = found.reason.unwrap();
    assert!(
        reason.starts_with("0 of 40 failed, so the error rate may be ")
            && reason.contains("--requests")
    );
    // First tokens after 40 and 60 ms by turns.
    let by_turns = |id: u64| {
        let from = 100 * id;
        let ttft = if id.is_multiple_of(2) { 40 } else { 60 };
        Given::ok(id).moments(from, from, from).arrival(from + ttft, &[Some(1)]).record()
    };
    let judged = |slo| judged_alone(run((0..40).map(by_turns).collect()), slo);
    assert_eq!(judged("ttft.mean<40ms").verdict, ThresholdVerdict::Missed);
    assert_eq!(judged("ttft.mean<60ms").verdict, ThresholdVerdict::Met);
    let found = judged("ttft.mean<51ms");
    assert_eq!((found.verdict, found.value), (ThresholdVerdict::Undecided, Some(50.0)));
    assert!(found.reason.unwrap().contains(" ms includes the limit; about "));
}

#[test]
fn a_mean_of_one_answer_decides_nothing() {
    let alone = run(vec![answer(0, 100, 200)]);
    assert_eq!(judged_alone(alone, "ttft.mean<500ms").verdict, ThresholdVerdict::Undecided);
}

#[test]
fn samples_that_resemble_each_other_are_too_few() {
    // Slow for a long time, then quick: a thousand samples that say two things.
    let halves = |id: u64| {
        let (from, ttft) = (100 * id, if id < 500 { 40 } else { 20 });
        Given::ok(id).moments(from, from, from).arrival(from + ttft, &[Some(1)]).record()
    };
    let found = judged_alone(run((0..1_000).map(halves).collect()), "ttft.p90<50ms");
    assert_eq!((found.verdict, found.value), (ThresholdVerdict::Undecided, Some(40.0)));
    assert!(found.reason.unwrap().contains("64 independent samples"));
}

#[test]
fn a_percentile_without_its_samples_decides_nothing() {
    let found = judged_alone(calm(), "ttft.p99<60ms");
    assert_eq!((found.verdict, found.value), (ThresholdVerdict::Undecided, Some(50.0)));
    assert!(found.reason.unwrap().starts_with("p99 needs 662 samples and there are 40: send"));
    let missed = judged_alone(calm(), "ttft.p99<1ms");
    assert_eq!(missed.verdict, ThresholdVerdict::Missed, "the median is at 50 ms");
    assert!(missed.reason.unwrap().starts_with("p50 is already 50"));
    // The steady part is judged, which is without the start and the drain. Not one of so many values is
    // above the limit.
    let many = |count| run((0..count).map(calm_record).collect());
    assert_eq!(judged_alone(many(3_000), "ttft.p99<60ms").verdict, ThresholdVerdict::Met);
    assert_eq!(judged_alone(many(3_000), "ttft.p99.9<60ms").verdict, ThresholdVerdict::Undecided);
    assert_eq!(judged_alone(many(4_500), "ttft.p99.9<60ms").verdict, ThresholdVerdict::Met);
}

#[test]
fn what_does_not_exist_is_neither_met_nor_missed() {
    let nothing = || run(vec![Given::failed(0, Outcome::HttpError).record()]);
    for slo in ["itl.mean<50ms", "output_throughput>5"] {
        let found = judged_alone(nothing(), slo);
        assert_eq!((found.verdict, found.value), (ThresholdVerdict::Undecided, None), "{slo}");
        assert_eq!(found.reason.as_deref(), Some("no request ended ok"), "{slo}");
    }
    let found = judged_alone(calm(), "goodput>5");
    assert_eq!(found.reason.as_deref(), Some("no SLO was set for each request"));
}

#[test]
fn a_stored_promise_that_means_nothing_is_named() {
    let found = judged_alone(calm(), "tfft<5ms");
    assert_eq!((found.verdict, found.metric), (ThresholdVerdict::Undecided, None));
    assert!(found.reason.unwrap().contains("nearest is `ttft`"));
}
