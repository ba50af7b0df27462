//! Tests of `curve`.

use proptest::prelude::*;

use crate::figures::*;

#[test]
fn one_value_is_a_curve_of_two_ends() {
    assert_eq!(curve(&Sample::new(vec![4.0]).unwrap()), [(0.0, 4.0), (1.0, 4.0)]);
}

#[test]
fn a_small_sample_is_drawn_whole() {
    let points = curve(&Sample::new(vec![1.0, 9.0, 2.0]).unwrap());
    assert_eq!(points, [(0.0, 1.0), (0.5, 2.0), (1.0, 9.0)]);
    let whole = Sample::new((0..64).map(f64::from).collect()).unwrap();
    let points = curve(&whole);
    for value in 0..64 {
        let near = |(_, at): &(f64, f64)| (at - f64::from(value)).abs() < 1e-9;
        assert!(points.iter().any(near), "{value}");
    }
}

#[test]
fn the_tail_is_as_long_as_the_sample_is_large() {
    let last = |n: u64| tail(n).last().unwrap();
    assert_eq!((last(100), last(1_000), last(1_333)), (0.99, 0.999, 0.999));
    assert_eq!((last(1_334), last(10_000_000)), (0.999_25, 0.999_999_9));
    assert!(shares(u64::MAX).len() <= 90, "{}", shares(u64::MAX).len());
}

#[test]
fn every_value_is_in_one_step_of_the_histogram() {
    let counted = |values: &[f64]| {
        let sample = Sample::new(values.to_vec()).unwrap();
        let Curve { points, counts } = Curve::new(&sample);
        let figure = DistributionFigure {
            points,
            counts,
            n: sample.count(),
            ..DistributionFigure::default()
        };
        (figure.edges_ms(), figure.counts)
    };
    let (edges, counts) = counted(&[1.0, 1.0, 10.0, 99.0, 100.0]);
    assert_eq!((edges.len(), counts.len()), (41, 40));
    assert!((edges[20] - 10.0).abs() < 1e-9, "the middle of the axis: {}", edges[20]);
    assert_eq!((counts[0], counts[39], counts.iter().sum::<u64>()), (2, 2, 5));
    let (edges, counts) = counted(&[0.0, 1.0, 4.0]);
    assert_eq!((edges[10], counts[0], counts[9], counts[39]), (1.0, 1, 1, 1));
    let (_, counts) = counted(&[3.0; 7]);
    assert_eq!(counts.iter().sum::<u64>(), 7, "equal values are in one step");
    let copies = Sample::counted(vec![(1.0, 5), (2.0, 3)]).unwrap();
    assert_eq!(Curve::new(&copies).counts.iter().sum::<u64>(), 8);
}

proptest! {
    #[test]
    fn points_rise_are_few_and_hold_the_percentiles(
        values in prop::collection::vec(0.0_f64..1e4, 1..3_000),
    ) {
        let sample = Sample::new(values).unwrap();
        let points = curve(&sample);
        prop_assert!(points.len() <= 90, "{} points", points.len());
        prop_assert!(points.is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1));
        prop_assert_eq!(points[0], (0.0, sample.min()));
        prop_assert_eq!(points[points.len() - 1], (1.0, sample.max()));
        for percentile in Percentile::ALL {
            let on = points.contains(&(percentile.probability().share(), sample.percentile(percentile)));
            prop_assert!(on || sample.count() < percentile.fewest(), "{:?}", percentile);
        }
    }
}
