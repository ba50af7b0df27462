//! A distribution as a curve: exact quantiles, dense where the tail is.

use crate::sample::{Percentile, Probability, Sample};

/// Up to here a curve has every value.
const WHOLE_UP_TO: u64 = 64;
/// A curve stops here short of its largest value, however many values a server claims.
const DECADES_MAX: u32 = 8;
/// Thousandths, evenly apart on a logarithmic axis: shares above a point, repeated in each decade.
const ABOVE: [u64; 8] = [1_000, 750, 562, 422, 316, 237, 178, 133];
/// In twentieths, where the first decade of the shares above leaves the body bare.
const BODY: u32 = 9;

/// Shares and quantiles, from the smallest value to the largest. The quantiles are those of the
/// metrics, so the percentiles that a table shows lie on the curve.
pub(crate) fn curve(sample: &Sample) -> Vec<(f64, f64)> {
    let shares = shares(sample.count()).into_iter().filter_map(Probability::new);
    shares.map(|share| (share.share(), sample.quantile(share))).collect()
}

/// Of a sample of `n` values; rising.
fn shares(n: u64) -> Vec<f64> {
    let mut shares = vec![0.0, 1.0];
    if n <= WHOLE_UP_TO {
        shares.extend((1..n.max(1)).map(|rank| rank as f64 / (n - 1) as f64));
    } else {
        shares.extend((1..=BODY).map(|twentieth| f64::from(twentieth) / 20.0));
        shares.extend(tail(n));
    }
    shares.extend(Percentile::ALL.into_iter().filter(|at| at.fewest() <= n).map(share_of));
    shares.sort_unstable_by(f64::total_cmp);
    shares.dedup();
    shares
}

/// From one half to the last share that leaves a whole value above it.
fn tail(n: u64) -> impl Iterator<Item = f64> {
    let decades = (0..DECADES_MAX).map(|decade| 1_000 * 10_u64.pow(decade));
    let above = decades.flat_map(|whole| ABOVE.map(|part| (part, whole)));
    above
        .take_while(move |(part, whole)| u128::from(*whole) <= u128::from(*part) * u128::from(n))
        .map(|(part, whole)| (whole - part) as f64 / whole as f64)
}

fn share_of(percentile: Percentile) -> f64 {
    percentile.probability().share()
}

impl Percentile {
    /// The fewest values of which one lies above the percentile.
    const fn fewest(self) -> u64 {
        match self {
            Self::P50 => 2,
            Self::P90 => 10,
            Self::P95 => 20,
            Self::P99 => 100,
            Self::P999 => 1_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
                let on = points.contains(&(share_of(percentile), sample.percentile(percentile)));
                prop_assert!(on || sample.count() < percentile.fewest(), "{:?}", percentile);
            }
        }
    }
}
