//! The rule, on made-up evidence.

use inferometer_model::spec::Relation;

use crate::judge::threshold::*;
use crate::metric::LatencyOrigin;
use crate::statistics::proportion::wilson;

fn threshold(name: &str, relation: Relation, limit: f64) -> Threshold {
    Threshold { quantity: Quantity::named(name, LatencyOrigin::Sent).unwrap(), relation, limit }
}

fn evidence(value: f64, interval: Option<(f64, f64)>, n: u64) -> Evidence {
    let interval = interval.and_then(|(low, high)| Interval::new(low, high));
    let estimate = Estimate { value, interval, n, effective_n: None, certified: true };
    Evidence { estimate, certified: Vec::new(), highest: None, requests: n, runs: 1 }
}

/// A p99 of too few samples, beside percentiles that have enough.
fn uncertified(n: u64, certified: &[(Percentile, f64, f64)]) -> Evidence {
    let mut found = evidence(400.0, None, n);
    found.estimate.certified = false;
    let interval =
        |(it, low, high): &(Percentile, f64, f64)| (*it, Interval::new(*low, *high).unwrap());
    found.certified = certified.iter().map(interval).collect();
    found
}

fn reason(threshold: Threshold, found: &Evidence) -> String {
    let ruling = threshold.judge(found);
    assert_eq!(ruling.verdict, ThresholdVerdict::Undecided);
    ruling.reason.unwrap()
}

#[test]
fn a_lower_percentile_that_breaks_the_limit_takes_the_higher_ones_with_it() {
    let slow = [(Percentile::P50, 900.0, 1_100.0), (Percentile::P90, 950.0, 1_300.0)];
    let found = threshold("ttft.p99", Relation::Below, 500.0).judge(&uncertified(40, &slow));
    assert_eq!(found.verdict, ThresholdVerdict::Missed);
    assert_eq!(found.reason.as_deref(), Some("p50 is already 900 to 1,100 ms"));
    let near = [(Percentile::P50, 450.0, 1_100.0)];
    let found = threshold("ttft.p99", Relation::Below, 500.0).judge(&uncertified(40, &near));
    assert_eq!(found.verdict, ThresholdVerdict::Undecided);
    let quick = [(Percentile::P50, 10.0, 20.0)];
    let found = threshold("ttft.p99", Relation::Below, 500.0).judge(&uncertified(40, &quick));
    assert_eq!(found.verdict, ThresholdVerdict::Undecided, "a quick median promises nothing");
}

#[test]
fn a_certified_percentile_without_an_interval_may_be_missed_already() {
    let mut found = uncertified(1_000, &[(Percentile::P90, 600.0, 700.0)]);
    found.estimate.certified = true;
    let ruling = threshold("ttft.p99", Relation::Below, 500.0).judge(&found);
    assert_eq!(ruling.verdict, ThresholdVerdict::Missed);
    let ruling = threshold("ttft.p99", Relation::Below, 650.0).judge(&found);
    assert_eq!(ruling.verdict, ThresholdVerdict::Undecided);
}

#[test]
fn a_limit_from_below_is_missed_by_a_higher_percentile() {
    let found = uncertified(40, &[(Percentile::P50, 1.0, 2.0), (Percentile::P999, 3.0, 4.0)]);
    let limit = |limit| threshold("ttft.p99", Relation::Above, limit).judge(&found).verdict;
    assert_eq!(limit(5.0), ThresholdVerdict::Missed);
    assert_eq!(limit(3.5), ThresholdVerdict::Undecided);
}

#[test]
fn runs_that_agree_on_a_slow_percentile_miss_it_and_never_meet_it_with_too_few_samples() {
    let mut found = uncertified(40, &[]);
    (found.runs, found.estimate.interval) = (3, Interval::new(380.0, 420.0));
    let at = |limit| threshold("ttft.p99", Relation::Below, limit).judge(&found).verdict;
    assert_eq!(
        (at(300.0), at(400.0), at(500.0)),
        (ThresholdVerdict::Missed, ThresholdVerdict::Undecided, ThresholdVerdict::Undecided)
    );
}

#[test]
fn a_number_without_an_interval_decides_only_where_nothing_else_can() {
    let bare = evidence(10.0, None, 40);
    let standing = |name, relation| threshold(name, relation, 9.0).judge(&bare).verdict;
    assert_eq!(standing("concurrency_peak", Relation::Above), ThresholdVerdict::Met);
    assert_eq!(standing("ttft.max", Relation::Below), ThresholdVerdict::Missed);
    assert_eq!(standing("ttft.mean", Relation::Below), ThresholdVerdict::Undecided);
}

#[test]
fn a_clean_run_says_how_many_requests_would_show_it() {
    let clean = wilson(0.0, 200.0).unwrap();
    let found = evidence(0.0, Some((clean.low, clean.high)), 200);
    assert_eq!(
        reason(threshold("error_rate", Relation::Below, 0.01), &found),
        "0 of 200 failed, so the error rate may be 1.9 %; about 390 requests without a failure \
         would show it (--requests 390)"
    );
    let shown = wilson(0.0, 390.0).unwrap();
    assert!(shown.high <= 0.01, "and it does: {shown:?}");
    let impossible = reason(threshold("error_rate", Relation::Below, 0.0), &found);
    assert!(impossible.contains("too close to the limit"), "{impossible}");
}

#[test]
fn so_many_values_below_the_limit_meet_a_percentile_that_is_not_certified() {
    use ThresholdVerdict::{Met, Undecided};
    let at = |n, highest, effective_n| {
        let mut found = uncertified(n, &[]);
        (found.highest, found.estimate.effective_n) = (Some(highest), effective_n);
        threshold("ttft.p99", Relation::Below, 500.0).judge(&found)
    };
    let alone = |n: u32| Some(f64::from(n));
    assert_eq!(at(367, 490.0, alone(367)).verdict, Undecided, "0.99^367 is more than 2.5 %");
    let met = at(368, 490.0, alone(368));
    assert_eq!(met.verdict, Met);
    let why = "the highest of all 368 values is 490.0 ms";
    assert_eq!(met.reason.as_deref(), Some(why));
    assert_eq!(at(368, 501.0, alone(368)).verdict, Undecided, "one is above");
    assert_eq!(at(368, 490.0, None).verdict, Undecided, "they may all say the same");
    assert_eq!(at(660, 490.0, Some(300.0)).verdict, Undecided, "worth 300 independent values");
    assert_eq!(at(660, 490.0, Some(400.0)).verdict, Met);
    assert_eq!(at(660, 250.0, Some(80.0)).verdict, Met, "all are far below the limit");
    assert_eq!(at(300, 1.0, None).verdict, Undecided, "so few show nothing, however quick");
}

#[test]
fn a_requirement_says_how_many_requests_can_show_it() {
    let needed = |text: &str| {
        let slo = text.parse().unwrap();
        Requirement::from_slo(&slo, LatencyOrigin::Sent).unwrap().requests_needed()
    };
    assert_eq!(needed("ttft.p99<500ms"), Some(1_000));
    assert_eq!(needed("ttft.p50<500ms"), Some(17));
    assert_eq!(needed("error_rate<1%"), Some(390));
    assert_eq!(needed("attainment>=95%"), Some(73));
    assert_eq!(needed("error_rate<=0%"), None, "no number shows that nothing ever fails");
    assert_eq!((needed("ttft.mean<1s"), needed("output_throughput>5")), (None, None));
}

#[test]
fn too_few_samples_say_how_many_are_needed() {
    let p99 = threshold("ttft.p99", Relation::Below, 500.0);
    assert_eq!(
        reason(p99, &uncertified(40, &[])),
        "p99 needs 662 samples and there are 40: send about 670 requests (--requests 670), or use \
         a lower percentile"
    );
    let mut dependent = uncertified(1_000, &[]);
    dependent.estimate.effective_n = Some(210.0);
    assert_eq!(
        reason(p99, &dependent),
        "p99 needs 662 independent samples and these 1,000 are correlated: send about 3,200 \
         requests (--requests 3200), or repeat the run (--repeat 5)"
    );
    dependent.estimate.effective_n = Some(800.0);
    assert!(reason(p99, &dependent).contains("these 1,000 are correlated"));
}

#[test]
fn an_interval_across_the_limit_says_what_would_narrow_it() {
    // Twice as far to the interval's end as to the limit: four times the requests.
    let mean = threshold("ttft.mean", Relation::Below, 500.0);
    assert_eq!(
        reason(mean, &evidence(480.0, Some((440.0, 520.0)), 1_000)),
        "the 95 % interval 440 to 520 ms includes the limit; about 4,000 requests like these would \
         show it (--requests 4000)"
    );
    // Three runs with s = 10 reach ± 24.84; six reach ± 10.49, seven ± 9.25.
    let mut runs = evidence(450.0, Some((425.16, 474.84)), 1_000);
    runs.runs = 3;
    let nearly = threshold("ttft.mean", Relation::Below, 460.0);
    assert!(
        reason(nearly, &runs).ends_with("about 7 runs like these would decide it (--repeat 7)")
    );
    let edge = threshold("ttft.mean", Relation::Below, 450.0);
    assert!(reason(edge, &runs).ends_with("too close to the limit for more samples to decide it"));
}
