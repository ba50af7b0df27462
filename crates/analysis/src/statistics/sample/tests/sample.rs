//! Tests of `sample`.

use proptest::prelude::*;

use crate::statistics::sample::*;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
}

#[test]
fn statistics_are_those_of_numpy() {
    // numpy 2.4.6: np.percentile(a, [50, 90, 95, 99]), np.mean(a), np.std(a, ddof=1),
    // np.std(a) of a = [3.1, 0.7, 12.25, 5.5, 5.5, 1.0, 88.8, 2.2]
    let sample = Sample::new(vec![3.1, 0.7, 12.25, 5.5, 5.5, 1.0, 88.8, 2.2]).unwrap();
    close(sample.percentile(Percentile::P50), 4.3);
    close(sample.percentile(Percentile::P90), 35.214_999_999_999_99);
    close(sample.percentile(Percentile::P95), 62.007_499_999_999_96);
    close(sample.percentile(Percentile::P99), 83.441_499_999_999_98);
    close(sample.mean(), 14.881_25);
    close(sample.std_sample().unwrap(), 30.095_869_881_572_977);
    close(sample.std_population(), 28.152_108_463_443_728);
    close(sample.min(), 0.7);
    close(sample.max(), 88.8);
}

#[test]
fn statistics_are_those_of_numpy_on_a_longer_sample() {
    // The same of b = [i * i / 7 for i in range(1, 102)]: 101 values, so that every
    // percentile falls on one of them.
    let values = (1..102).map(|i| f64::from(i) * f64::from(i) / 7.0).collect();
    let sample = Sample::new(values).unwrap();
    close(sample.percentile(Percentile::P50), 371.571_428_571_428_56);
    close(sample.percentile(Percentile::P90), 1183.0);
    close(sample.percentile(Percentile::P95), 1_316.571_428_571_428_7);
    close(sample.percentile(Percentile::P99), 1_428.571_428_571_428_7);
    close(sample.mean(), 492.999_999_999_999_94);
    close(sample.std_sample().unwrap(), 440.673_008_022_955_74);
    close(sample.std_population(), 438.486_031_704_545_84);
}

#[test]
fn nothing_and_nonsense_are_no_sample() {
    assert_eq!(Sample::new(vec![]), None);
    assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
    assert_eq!(Sample::new(vec![f64::INFINITY]), None);
}

#[test]
fn one_value_is_every_quantile_and_has_no_spread() {
    let sample = Sample::new(vec![2.5]).unwrap();
    for percentile in Percentile::ALL {
        close(sample.percentile(percentile), 2.5);
    }
    assert_eq!(sample.std_sample(), None);
    close(sample.std_population(), 0.0);
}

#[test]
fn the_mean_of_equal_values_is_that_value() {
    let sample = Sample::new(vec![0.1; 3]).unwrap();
    assert!(sample.min() <= sample.mean() && sample.mean() <= sample.max());
}

#[test]
fn values_are_sorted_by_total_order() {
    let mut values = vec![3.5, -0.0, 0.0, -7.25, 1e-300, -1e300, 42.0, -1e-300];
    let found: Vec<u64> = sorted(values.clone()).into_iter().map(f64::to_bits).collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(found, values.into_iter().map(f64::to_bits).collect::<Vec<_>>());
}

#[test]
fn a_probability_lies_between_zero_and_one() {
    assert_eq!(Probability::new(-0.1), None);
    assert_eq!(Probability::new(1.1), None);
    assert_eq!(Probability::new(f64::NAN), None);
    assert_eq!(Probability::new(0.99), Some(Percentile::P99.probability()));
}

#[test]
fn percentile_keys_are_their_names_without_the_point() {
    for percentile in Percentile::ALL {
        let written = serde_json::to_string(&percentile).unwrap();
        assert_eq!(written, format!("\"{}\"", percentile.name().replace('.', "")));
    }
}

#[test]
fn a_count_of_zero_is_no_measurement() {
    assert_eq!(Sample::counted(vec![(1.0, 0)]), None);
    assert_eq!(Sample::counted(vec![(f64::NAN, 2)]), None);
    assert_eq!(Sample::counted(vec![(1.0, 1), (2.0, 0)]), Sample::new(vec![1.0]));
}

#[test]
fn an_absurd_count_costs_no_memory() {
    let sample = Sample::counted(vec![(1.0, u64::MAX), (2.0, u64::MAX)]).unwrap();
    assert_eq!(sample.count(), u64::MAX);
    close(sample.percentile(Percentile::P99), 1.0);
}

proptest! {
    #[test]
    fn a_counted_sample_is_the_sample_of_its_copies(
        pairs in prop::collection::vec((-1e3_f64..1e3, 0_u64..5), 1..60),
        share in 0.0_f64..=1.0,
    ) {
        let copies = pairs.iter().flat_map(|&(value, count)| (0..count).map(move |_| value));
        let copied = Sample::new(copies.collect());
        let counted = Sample::counted(pairs);
        prop_assert_eq!(copied.is_some(), counted.is_some());
        let (Some(copied), Some(counted)) = (copied, counted) else { return Ok(()) };
        let p = Probability::new(share).unwrap();
        prop_assert_eq!(copied.count(), counted.count());
        prop_assert_eq!(copied.quantile(p).to_bits(), counted.quantile(p).to_bits());
        prop_assert!((copied.mean() - counted.mean()).abs() < 1e-9);
        prop_assert!((copied.std_population() - counted.std_population()).abs() < 1e-6);
    }

    #[test]
    fn quantiles_never_fall_and_stay_inside_the_range(
        values in prop::collection::vec(-1e9_f64..1e9, 1..200),
        first in 0.0_f64..=1.0,
        second in 0.0_f64..=1.0,
    ) {
        let sample = Sample::new(values).unwrap();
        let low = sample.quantile(Probability::new(first.min(second)).unwrap());
        let high = sample.quantile(Probability::new(first.max(second)).unwrap());
        prop_assert!(low <= high);
        prop_assert!(sample.min() <= low && high <= sample.max());
    }
}
