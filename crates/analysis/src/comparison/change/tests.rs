//! Changes held against values found by hand.

mod judgement;

use super::*;

fn run(value: f64) -> Estimate {
    Estimate { value, interval: None, n: 1_000, effective_n: None, certified: true }
}

fn within(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { interval: Interval::new(low, high), ..run(value) }
}

fn values(base: &[f64], other: &[f64], in_pairs: bool) -> Values {
    let side = |values: &[f64]| values.iter().map(|value| Some(run(*value))).collect();
    Values { base: side(base), other: side(other), in_pairs, floor: 662, upper: UPPER }
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

#[test]
fn pairs_cancel_what_their_runs_share() {
    let base = [100.0, 110.0, 90.0, 105.0];
    let other = base.map(|value| value * 1.04);
    let apart = values(&base, &other, false);
    let paired = values(&base, &other, true);
    assert_eq!((apart.basis(), paired.basis()), (Basis::Unpaired, Basis::Paired));
    let width = |values: &Values| {
        let interval = values.change(Scale::Ratio).unwrap().interval;
        interval.high - interval.low
    };
    assert!(width(&paired) < 1e-9 && 0.1 < width(&apart), "{} {}", width(&paired), width(&apart));
    assert!(close(paired.change(Scale::Ratio).unwrap().value, 1.04));
}

#[test]
fn a_run_without_the_quantity_breaks_the_pairs_and_not_the_comparison() {
    let mut found = values(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], true);
    found.base[1] = None;
    assert_eq!(found.basis(), Basis::Unpaired);
    found.base[0] = None;
    assert_eq!(found.basis(), Basis::WithinRun);
    found.base[2] = None;
    assert_eq!(found.change(Scale::Ratio).unwrap_err(), "no run of one side has it");
}

#[test]
fn single_runs_combine_what_each_knows_of_itself() {
    let found = Values {
        base: vec![Some(within(100.0, 97.0, 103.0))],
        other: vec![Some(within(200.0, 192.0, 208.0))],
        in_pairs: true,
        floor: 662,
        upper: UPPER,
    };
    assert_eq!(found.basis(), Basis::WithinRun);
    let Change { kind: Scale::Difference, value, interval } =
        found.change(Scale::Difference).unwrap()
    else {
        panic!("a difference was asked for");
    };
    assert!(close(value, 100.0));
    // Sides of 8 and 3 make a diagonal of √73.
    assert!(close(interval.low, 100.0 - 73.0_f64.sqrt()), "{interval:?}");
    assert!(close(interval.high, 100.0 + 73.0_f64.sqrt()), "{interval:?}");
    let ratio = found.change(Scale::Ratio).unwrap();
    assert!(close(ratio.value, 2.0));
    let reach = libm::hypot(libm::log(208.0 / 200.0), libm::log(100.0 / 97.0));
    assert!(close(ratio.interval.high, 2.0 * libm::exp(reach)));
}

#[test]
fn a_stricter_level_is_wider_whatever_the_change_is_known_from() {
    let reach = |mut values: Values, upper: f64, scale: Scale| {
        values.upper = upper;
        let change = values.change(scale).unwrap();
        change.interval.high - change.value
    };
    let alone = Values {
        base: vec![Some(within(100.0, 97.0, 103.0))],
        other: vec![Some(within(200.0, 192.0, 208.0))],
        ..values(&[], &[], false)
    };
    let (base, other) = ([100.0, 110.0, 90.0], [103.0, 99.0, 107.0]);
    for values in [alone.clone(), values(&base, &other, false), values(&base, &other, true)] {
        for scale in [Scale::Ratio, Scale::Difference] {
            let (one, three) = (upper_among(1), upper_among(3));
            assert!(reach(values.clone(), one, scale) < reach(values.clone(), three, scale));
        }
    }
    // z(1 − 0.025 / 3) over z(0.975) of the diagonal.
    let stretched = 73.0_f64.sqrt() * 2.393_979_799_818_509 / 1.959_963_984_540_054;
    assert!((reach(alone, upper_among(3), Scale::Difference) - stretched).abs() < 1e-6);
}

#[test]
fn a_single_run_without_doubt_says_nothing() {
    let found = values(&[100.0], &[200.0], false);
    assert!(found.change(Scale::Ratio).unwrap_err().contains("no interval"));
}

#[test]
fn too_few_samples_judge_nothing() {
    let mut found = values(&[1.0, 2.0], &[1.0, 2.0], false);
    found.other[1] = Some(Estimate { certified: false, n: 661, ..run(2.0) });
    assert!(found.change(Scale::Ratio).unwrap_err().contains("in a run of 661"));
    let mut alone = values(&[1.0], &[2.0], false);
    alone.other[0] = Some(Estimate { certified: false, ..within(2.0, 1.9, 2.1) });
    assert!(alone.change(Scale::Ratio).unwrap_err().contains("in a run of 1,000"));
}

#[test]
fn samples_that_resemble_each_other_are_judged_by_the_spread_between_runs() {
    let mut found = values(&[1.0, 1.1], &[1.0, 1.1], false);
    found.other[1] = Some(Estimate { certified: false, n: 662, ..run(1.1) });
    assert!(found.change(Scale::Ratio).is_ok());
}

#[test]
fn zero_has_differences_and_no_ratio() {
    let found = values(&[0.0, 0.0, 0.0], &[0.0, 0.01, 0.02], false);
    assert!(found.change(Scale::Ratio).unwrap_err().contains("zero"));
    let change = found.change(Scale::Difference).unwrap();
    assert!(close(change.value, 0.01));
    // One side does not scatter, so the other's two degrees of freedom are all there are.
    let reach = 4.302_652_729_749_464 * 0.01 / 3.0_f64.sqrt();
    assert!(close(change.interval.low, 0.01 - reach), "{:?}", change.interval);
}

#[test]
fn runs_without_a_failure_do_not_rule_failures_out() {
    for in_pairs in [false, true] {
        let mut found = values(&[0.0, 0.0], &[0.0, 0.0], in_pairs);
        for run in found.base.iter_mut().chain(&mut found.other).flatten() {
            run.n = 10;
        }
        found.floor = 1;
        let interval = found.change(Scale::Difference).unwrap().interval;
        // Nothing out of twenty, of both sides: Wilson's end is 0.161 to either side.
        let reach = 0.161_125_158_052_819_35;
        assert!(close(interval.high, reach) && close(interval.low, -reach), "{interval:?}");
        let judged = found.change(Scale::Difference).unwrap();
        let judged = judged.judged(0.01, crate::metric::Better::Lower);
        assert_eq!(judged, crate::comparison::Judgement::Undecided);
    }
    // Where the runs say more than their requests, pairs keep what they know.
    let base = [0.10, 0.20, 0.30];
    let found = values(&base, &base.map(|share| share + 0.05), true);
    let interval = found.change(Scale::Difference).unwrap().interval;
    assert!(0.0 < interval.low && interval.high - interval.low < 0.1, "{interval:?}");
}

#[test]
fn levels_count_once_each() {
    let ratio = |value: f64, reach: f64| Change {
        kind: Scale::Ratio,
        value,
        interval: Interval::new(value / reach, value * reach).unwrap(),
    };
    let found = mean_change(&[ratio(2.0, 1.1), ratio(0.5, 1.1)]).unwrap();
    assert!(close(found.value, 1.0));
    // Two independent doubts of the same size: √2 / 2 of one.
    let reach = libm::log(1.1) / 2.0_f64.sqrt();
    assert!(close(found.interval.high, libm::exp(reach)), "{found:?}");
    assert!(mean_change(&[]).is_none());
}
