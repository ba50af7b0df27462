//! Requirements, kept, broken, and left open.

mod imported;

use proptest::prelude::*;

use crate::fixture::calm;
use crate::judge::threshold::*;
use crate::judge::{Undecided, Warning};
use crate::metric::{Distribution, MetricValue, Scalar};
use crate::statistics::Percentile;
use crate::summary::{Summary, summarize};

fn slo(text: &str) -> Slo {
    text.parse().unwrap()
}

fn requirement(text: &str) -> Requirement {
    Requirement::from_slo(&slo(text), LatencyOrigin::Sent).unwrap()
}

fn problem(text: &str) -> String {
    check_requirements(&[slo(text)], &[], true).unwrap_err().to_string()
}

/// A valid run in which one metric is this.
fn run_with(name: &str, change: impl Fn(&mut MetricValue)) -> Summary {
    let mut summary = summarize(&calm());
    summary.verdict = Verdict::Valid;
    let values = summary.metrics.iter().map(|(metric, value)| {
        let mut value = value.clone();
        if metric.name == name {
            change(&mut value);
        }
        (metric, value)
    });
    summary.metrics = values.collect();
    summary
}

/// A run with a certified p99 of TTFT, and an interval around it.
fn run_with_p99(value: f64, interval: Option<(f64, f64)>) -> Summary {
    run_with("ttft", |found| {
        let MetricValue::Distribution(found) = found else { panic!("a distribution") };
        (found.n, found.p99, found.not_certified) = (1_000, Some(value), Vec::new());
        found.max = Some(10_000.0);
        found.intervals.p99 = interval.and_then(|(low, high)| Interval::new(low, high));
    })
}

fn run_with_scalar(name: &str, value: f64, interval: Option<(f64, f64)>) -> Summary {
    run_with(name, |found| {
        let MetricValue::Scalar(Scalar { value: slot, interval: around, .. }) = found else {
            panic!("a single number")
        };
        *slot = Some(value);
        *around = interval.and_then(|(low, high)| Interval::new(low, high));
    })
}

#[test]
fn the_whole_interval_must_keep_the_limit() {
    use ThresholdVerdict::{Met, Missed, Undecided};
    for (interval, expected) in [
        ((400.0, 499.0), Met),
        ((400.0, 500.0), Met),
        ((400.0, 500.1), Undecided),
        ((500.0, 600.0), Undecided),
        ((500.1, 600.0), Missed),
    ] {
        let run = run_with_p99(interval.0, Some(interval));
        let found = requirement("ttft.p99<500ms").judge(&run);
        assert_eq!(found.verdict, expected, "{interval:?}");
        assert_eq!(found.reason.is_some(), expected == Undecided);
    }
    for (interval, expected) in [
        ((0.95, 0.99), Met),
        ((0.94, 0.99), Undecided),
        ((0.90, 0.95), Undecided),
        ((0.90, 0.949), Missed),
    ] {
        let run = run_with_scalar("attainment", interval.0, Some(interval));
        assert_eq!(requirement("attainment>=95%").judge(&run).verdict, expected, "{interval:?}");
    }
}

#[test]
fn an_outcome_says_what_was_compared() {
    let found = requirement("ttft.p99<0.5s").judge(&run_with_p99(450.0, Some((440.0, 470.0))));
    assert_eq!(
        found,
        RequirementOutcome {
            requirement: "ttft.p99<0.5s".to_owned(),
            quantity: "ttft.p99".to_owned(),
            unit: "ms".to_owned(),
            bound: Relation::Below,
            limit: 500.0,
            verdict: ThresholdVerdict::Met,
            value: Some(450.0),
            interval: Interval::new(440.0, 470.0),
            n: Some(1_000),
            runs: 1,
            reason: None,
        }
    );
}

#[test]
fn a_single_number_without_an_interval_decides_by_its_value() {
    for (value, expected) in [(9.0, ThresholdVerdict::Missed), (10.0, ThresholdVerdict::Met)] {
        let run = run_with_scalar("output_throughput", value, None);
        let found = requirement("output_throughput>10").judge(&run);
        assert_eq!(found.verdict, expected);
        assert!(found.reason.unwrap().contains("no confidence interval"));
    }
    let found = requirement("ttft.max<10s").judge(&run_with_p99(1.0, None));
    assert_eq!(found.verdict, ThresholdVerdict::Met, "nothing bounds a maximum but itself");
}

#[test]
fn what_is_doubtful_is_undecided_and_says_why() {
    let judged = |text: &str, summary: &Summary| {
        let found = requirement(text).judge(summary);
        assert_eq!(found.verdict, ThresholdVerdict::Undecided, "{text}");
        found.reason.unwrap()
    };
    let calm = run_with("e2e", |_| ());
    assert_eq!(
        judged("ttft.p99<500ms", &calm),
        "p99 needs 662 samples and there are 40: send about 670 requests (--requests 670), or use \
         a lower percentile"
    );
    assert_eq!(judged("attainment>95%", &calm), "no SLO was set for each request");
    assert!(judged("ttft.p99<500ms", &run_with_p99(1.0, None)).contains("too few samples"));
    let dependent = run_with("ttft", |found| {
        let MetricValue::Distribution(found) = found else { panic!("a distribution") };
        (found.n, found.effective_n, found.max) = (700, Some(88.0), Some(10_000.0));
        found.not_certified = vec![Percentile::P99];
    });
    assert!(judged("ttft.p99<1s", &dependent).contains("these 700 are correlated"));
    let nothing =
        run_with("ttft", |found| *found = MetricValue::Distribution(Distribution::nothing("mute")));
    assert_eq!(judged("ttft.p50<500ms", &nothing), "mute");
}

#[test]
fn an_invalid_run_passes_nothing() {
    let mut invalid = run_with_p99(1.0, Some((1.0, 1.0)));
    invalid.verdict = Verdict::Invalid;
    invalid.warnings = vec![Warning {
        key: "late".to_owned(),
        check: None,
        severity: Severity::Invalid,
        text: "requests left late".to_owned(),
        remedy: "use more cores".to_owned(),
    }];
    let found = requirement("ttft.p99<500ms").judge(&invalid);
    assert_eq!(found.verdict, ThresholdVerdict::Undecided);
    assert_eq!(found.reason.as_deref(), Some("the run is invalid: requests left late"));
    assert_eq!(found.value, Some(1.0), "it is shown all the same");
    let fine = run_with_p99(1.0, Some((1.0, 1.0)));
    let runs: Vec<Summary> = [&fine, &fine, &invalid].into_iter().cloned().collect();
    let across = requirement("ttft.p99<500ms").judge_across(&runs);
    assert_eq!(across.verdict, ThresholdVerdict::Undecided);
    assert!(across.reason.unwrap().contains("the run is invalid"));
}

/// More than half of the requests failed.
fn run_of_errors(other: Option<CheckKind>) -> Summary {
    let mut run = run_with_scalar("error_rate", 0.6, Some((0.44, 0.74)));
    run.verdict = Verdict::Invalid;
    for check in &mut run.checks {
        let spoilt = Some(check.key.as_str()) == other.map(CheckKind::key);
        if spoilt || check.key == CheckKind::Errors.key() {
            check.state = CheckState::Invalid;
        }
    }
    run
}

#[test]
fn a_run_that_only_its_errors_spoil_fails_what_is_required_of_them() {
    let errors = run_of_errors(None);
    let found = requirement("error_rate<1%").judge(&errors);
    assert_eq!(found.verdict, ThresholdVerdict::Missed);
    assert_eq!(found.reason.as_deref(), Some("the run is invalid, and that misses the limit"));
    let across = requirement("error_rate<1%").judge_across(&vec![errors.clone(); 3]);
    assert_eq!(across.verdict, ThresholdVerdict::Missed);
    let lax = requirement("error_rate<90%").judge(&errors);
    assert_eq!(lax.verdict, ThresholdVerdict::Undecided, "an invalid run keeps nothing");
    let latency = requirement("ttft.p50<1ms").judge(&errors);
    assert_eq!(latency.verdict, ThresholdVerdict::Undecided, "it is of those that succeeded");
    let worse = run_of_errors(Some(CheckKind::CompleteRun));
    assert_eq!(requirement("error_rate<1%").judge(&worse).verdict, ThresholdVerdict::Undecided);
}

#[test]
fn runs_without_a_failure_are_as_doubtful_as_all_their_requests() {
    let clean = run_with_scalar("error_rate", 0.0, Some((0.0, 0.088)));
    let found = requirement("error_rate<1%").judge_across(&[clean.clone(), clean.clone()]);
    assert_eq!(found.verdict, ThresholdVerdict::Undecided);
    let high = found.interval.unwrap().high;
    assert!((0.04..0.05).contains(&high), "80 requests leave {high}");
    assert!(
        found.reason.unwrap().starts_with("0 of 80 failed, so the error rate may be 4.6 %; about ")
    );
    let lax = requirement("error_rate<5%").judge_across(&[clean.clone(), clean]);
    assert_eq!(lax.verdict, ThresholdVerdict::Met);
}

/// Samples that resemble each other, and a p99 without its certificate.
fn dependent_run(p99: f64, n: u64) -> Summary {
    run_with("ttft", |found| {
        let MetricValue::Distribution(found) = found else { panic!("a distribution") };
        (found.n, found.p99, found.effective_n) = (n, Some(p99), Some(88.0));
        found.max = Some(10_000.0);
        found.not_certified = vec![Percentile::P99, Percentile::P999];
    })
}

#[test]
fn between_runs_the_spread_shows_the_dependence_and_the_samples_of_each_must_be_enough() {
    let across = |n: u64, text: &str| {
        let runs = [440.0, 450.0, 460.0].map(|p99| dependent_run(p99, n));
        requirement(text).judge_across(&runs)
    };
    assert_eq!(across(662, "ttft.p99<500ms").verdict, ThresholdVerdict::Met);
    let few = across(661, "ttft.p99<500ms");
    assert_eq!(few.verdict, ThresholdVerdict::Undecided);
    assert!(few.reason.unwrap().starts_with("p99 needs 662 samples and there are 661 in a run"));
    assert_eq!(across(661, "ttft.p99<400ms").verdict, ThresholdVerdict::Missed);
    let alone = requirement("ttft.p99<500ms").judge(&dependent_run(440.0, 662));
    assert_eq!(alone.verdict, ThresholdVerdict::Undecided);
}

#[test]
fn a_slow_median_fails_a_percentile_that_has_too_few_samples() {
    let run = run_with("ttft", |found| {
        let MetricValue::Distribution(found) = found else { panic!("a distribution") };
        (found.p50, found.p99) = (Some(1_000.0), Some(1_200.0));
        found.intervals.p50 = Interval::new(900.0, 1_100.0);
        found.not_certified = vec![Percentile::P95, Percentile::P99, Percentile::P999];
    });
    let found = requirement("ttft.p99<500ms").judge(&run);
    assert_eq!(found.verdict, ThresholdVerdict::Missed);
    assert_eq!(found.reason.as_deref(), Some("p50 is already 900 to 1,100 ms"));
}

#[test]
fn several_runs_are_judged_by_what_differs_between_them() {
    let across = |values: &[f64], text: &str| {
        let runs: Vec<Summary> =
            values.iter().map(|value| run_with_p99(*value, Some((*value, *value)))).collect();
        requirement(text).judge_across(&runs)
    };
    // t(0.975; 2) = 4.303, s = 10, so ± 24.84.
    let found = across(&[440.0, 450.0, 460.0], "ttft.p99<500ms");
    assert_eq!((found.verdict, found.runs), (ThresholdVerdict::Met, 3));
    let interval = found.interval.unwrap();
    assert!((interval.low - 425.158).abs() < 1e-3 && (interval.high - 474.841).abs() < 1e-3);
    let near = across(&[440.0, 450.0, 460.0], "ttft.p99<470ms");
    assert_eq!(near.verdict, ThresholdVerdict::Undecided);
    assert!(near.reason.unwrap().contains("runs like these would decide it (--repeat "));
    // With two runs t is 12.706, and little can be said.
    assert_eq!(across(&[440.0, 450.0], "ttft.p99<500ms").verdict, ThresholdVerdict::Undecided);
    let wide = across(&[440.0, 900.0], "ttft.p99<500ms").interval.unwrap();
    assert!((0.0..1e-9).contains(&wide.low), "no time is less than none");
    let broken = across(&[440.0, 450.0, 460.0], "ttft.p99<100ms");
    assert_eq!(broken.verdict, ThresholdVerdict::Missed);
    assert_eq!(across(&[1.0], "ttft.p99<2ms").interval, Interval::new(1.0, 1.0), "from within");
    assert_eq!(across(&[], "ttft.p99<2ms").verdict, ThresholdVerdict::Undecided);
}

#[test]
fn what_is_not_about_the_run_is_refused_with_what_to_write() {
    assert_eq!(
        problem("ttft<500ms"),
        "`ttft<500ms` limits each request, and a requirement limits the run; write ttft.p99 instead \
         of ttft, or set it with --slo and require attainment>=95%"
    );
    assert!(problem("ttft.schedule<1s").contains("write ttft.schedule.p99"));
    assert!(problem("itl<50ms").contains("write itl.p99"));
    assert!(problem("send_lag<50ms").contains("write send_lag.p99"));
}

#[test]
fn wrong_requirements_are_refused_as_promises_are() {
    assert!(problem("tfft.p99<500ms").contains("nearest is `ttft`"));
    let message = problem("ttft.p98<1s");
    assert!(message.contains("no statistic `p98`") && !message.contains("each request"));
    assert!(problem("error_rate<0.01").contains("such as 1%"));
    assert!(problem("output_throughput<5").contains("higher is better"));
    assert!(problem("goodput.p99>5").contains("one value"));
}

#[test]
fn goodput_needs_a_promise_and_a_stream_its_metrics() {
    assert!(problem("attainment>=95%").contains("--slo 'ttft<500ms'"));
    let check = |required: &str, promised: &str, streaming| {
        check_requirements(&[slo(required)], &[slo(promised)], streaming)
    };
    assert_eq!(check("attainment>=95%", "ttft<500ms", true), Ok(()));
    let of_run = check("goodput>5", "ttft.p99<500ms", true).unwrap_err().to_string();
    assert!(of_run.contains("goodput counts the requests that meet the SLOs"));
    let whole = check("ttft.p99<1s", "e2e<1s", false).unwrap_err().to_string();
    assert!(whole.contains("the answers are not streamed"), "{whole}");
    assert_eq!(check("e2e.p99<1s", "e2e<1s", false), Ok(()));
}

#[test]
fn a_bare_latency_begins_where_the_load_begins() {
    let named =
        |zero| Requirement::from_slo(&slo("ttft.p99<1s"), zero).unwrap().quantity().to_string();
    assert_eq!(named(LatencyOrigin::Sent), "ttft.p99");
    assert_eq!(named(LatencyOrigin::Schedule), "ttft_schedule.p99");
}

#[test]
fn what_could_not_be_shown_is_not_met_unless_that_is_asked_for() {
    use ThresholdVerdict::{Met, Missed};
    let undecided = ThresholdVerdict::Undecided;
    assert!(Met.is_met(Undecided::Fail) && !Missed.is_met(Undecided::Pass));
    assert!(undecided.is_met(Undecided::Pass) && !undecided.is_met(Undecided::default()));
}

proptest! {
    /// A wider interval may take a verdict back, and never turns it round.
    #[test]
    fn more_doubt_never_decides(
        low in 0.0..1_000.0_f64,
        width in 0.0..500.0_f64,
        more in 0.0..500.0_f64,
        limit in 1.0..1_500.0_f64,
    ) {
        let required = requirement(&format!("ttft.p99<{limit}ms"));
        let judged = |low: f64, high: f64| {
            required.judge(&run_with_p99(low, Some((low, high)))).verdict
        };
        let (narrow, wide) = (judged(low, low + width), judged(low - more, low + width + more));
        prop_assert!(wide == narrow || wide == ThresholdVerdict::Undecided);
        prop_assert_ne!(judged(low, low), ThresholdVerdict::Undecided);
    }

    /// A laxer limit is kept by everything that keeps the stricter one.
    #[test]
    fn a_laxer_limit_is_never_harder(
        low in 0.0..1_000.0_f64,
        width in 0.0..500.0_f64,
        limit in 1.0..1_500.0_f64,
        slack in 0.0..100.0_f64,
    ) {
        let run = run_with_p99(low, Some((low, low + width)));
        let judged = |limit: f64| {
            requirement(&format!("ttft.p99<{limit}ms")).judge(&run).verdict
        };
        let rank = |verdict| match verdict {
            ThresholdVerdict::Missed => 0,
            ThresholdVerdict::Undecided => 1,
            ThresholdVerdict::Met => 2,
        };
        prop_assert!(rank(judged(limit)) <= rank(judged(limit + slack)));
    }
}
