//! One quantity over the runs of a level.

use super::*;

fn estimate(value: f64) -> Estimate {
    let interval = Interval::new(value - 1.0, value + 1.0);
    Estimate { value, interval, n: 700, effective_n: None, certified: true }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} and not {expected}");
}

/// By `SciPy`: `stats.t.interval(0.95, n - 1, mean, sem)` and `std(ddof=1)`.
#[test]
fn five_runs_are_as_scipy_has_them() {
    let across = AcrossRuns::from_runs(&[387.1, 391.4, 379.9, 384.2, 390.3].map(estimate).map(Ok));
    close(across.mean.unwrap(), FIVE.mean);
    close(across.std.unwrap(), FIVE.std);
    close(across.interval.unwrap().low, FIVE.low);
    close(across.interval.unwrap().high, FIVE.high);
    close(across.cov.unwrap(), FIVE.cov);
    assert_eq!((across.n, across.within, across.extremes()), (5, None, Some((379.9, 391.4))));
    let across = AcrossRuns::from_runs(&[0.512, 0.498, 0.731].map(estimate).map(Ok));
    close(across.mean.unwrap(), THREE.mean);
    close(across.std.unwrap(), THREE.std);
    close(across.interval.unwrap().low, THREE.low);
    close(across.interval.unwrap().high, THREE.high);
    close(across.cov.unwrap(), THREE.cov);
}

#[test]
fn one_run_has_no_spread_but_its_own_interval() {
    let across = AcrossRuns::from_runs(&[Ok(estimate(10.0))]);
    assert_eq!((across.mean, across.std, across.cov), (Some(10.0), None, None));
    assert_eq!(across.interval, None);
    assert_eq!(across.confidence_interval(), Interval::new(9.0, 11.0));
}

#[test]
fn shares_that_agree_are_as_sure_as_their_requests() {
    let share = |value: f64| {
        Ok(Estimate { value, interval: None, n: 30, effective_n: None, certified: true })
    };
    let none = [0.0, 0.0, 0.0].map(share);
    let across = AcrossRuns::from_runs(&none).possible(Unit::Share, &none);
    let found = across.interval.unwrap();
    // Wilson of none in 90: z² / (90 + z²).
    assert!(found.low == 0.0 && (found.high - 0.040_936).abs() < 1e-5, "{found:?}");
    assert_eq!((across.std, across.cov), (Some(0.0), None));
    let some = [0.0, 0.1, 0.2].map(share);
    let found = AcrossRuns::from_runs(&some).possible(Unit::Share, &some).interval.unwrap();
    assert!(found.low == 0.0 && (found.high - 0.348_4).abs() < 1e-3, "{found:?}");
}

#[test]
fn no_time_is_negative() {
    let lags = [0.02, 0.6, 0.4].map(estimate).map(Ok);
    let wide = AcrossRuns::from_runs(&lags);
    assert!(wide.interval.unwrap().low < 0.0);
    let found = wide.clone().possible(Unit::Milliseconds, &lags);
    assert_eq!(found.interval.unwrap().low.to_bits(), 0.0_f64.to_bits());
    close(found.interval.unwrap().high, wide.interval.unwrap().high);
    let single = [Ok(estimate(0.5))];
    let found = AcrossRuns::from_runs(&single).possible(Unit::Milliseconds, &single);
    assert_eq!(found.within, Interval::new(0.0, 1.5));
}

#[test]
fn a_run_without_a_value_keeps_its_place_and_says_why_when_it_is_alone() {
    let across = AcrossRuns::from_runs(&[
        Ok(estimate(1.0)),
        Err("no promise".to_owned()),
        Ok(estimate(3.0)),
    ]);
    assert_eq!(across.values, [Some(1.0), None, Some(3.0)]);
    assert_eq!((across.n, across.mean, across.reason), (2, Some(2.0), None));
    let across = AcrossRuns::from_runs(&[Err("no promise".to_owned())]);
    assert_eq!((across.n, across.mean, across.certified), (0, None, false));
    assert_eq!(across.reason.as_deref(), Some("no promise"));
    assert!(AcrossRuns::from_runs(&[]).reason.is_some());
}

/// Runs of a known mean, ended as a study ends them: how often the interval holds the mean.
#[test]
fn the_interval_of_runs_that_ended_when_it_was_narrow_still_holds_95_percent() {
    const MEAN: f64 = 100.0;
    const SETS: u64 = 4_000;
    for (noise, target, runs_at_most) in [(3.0, 0.03, 10), (1.0, 0.02, 5), (6.0, 0.03, 30)] {
        let (mut plain, mut raised) = (0, 0);
        for number in 0..SETS {
            let mut draws = crate::statistics::draws::Draws::new(17, number);
            let mut values = Vec::new();
            let is_enough = |values: &[f64]| {
                half_width_over_looks(values, runs_at_most).is_some_and(|half| half <= target)
            };
            while values.len() < runs_at_most as usize && !is_enough(&values) {
                values.push(MEAN + noise * draws.normal());
            }
            let runs: Vec<_> = values.into_iter().map(estimate).map(Ok).collect();
            let across = AcrossRuns::from_runs(&runs);
            plain += u64::from(across.interval.unwrap().contains(MEAN));
            raised += u64::from(across.over_looks(runs_at_most).interval.unwrap().contains(MEAN));
        }
        assert!(raised * 100 >= SETS * 95, "{noise}: {raised} of {SETS}, {plain} without");
        assert!(plain < raised, "{noise}: {plain} and {raised} of {SETS}");
    }
}

const FIVE: Expected = Expected {
    mean: 386.580_000_000_000_04,
    std: 4.680_491_427_190_105,
    low: 380.768_402_300_956_7,
    high: 392.391_597_699_043_36,
    cov: 0.012_107_432_943_220_302,
};
const THREE: Expected = Expected {
    mean: 0.580_333_333_333_333_4,
    std: 0.130_668_792_499_714_05,
    low: 0.255_734_058_135_915,
    high: 0.904_932_608_530_751_7,
    cov: 0.225_161_618_322_310_24,
};

struct Expected {
    mean: f64,
    std: f64,
    low: f64,
    high: f64,
    cov: f64,
}
