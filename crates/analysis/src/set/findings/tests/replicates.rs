//! What the set might have been: its levels drawn again, each within its doubt. A finding that.

use super::*;
use crate::set::fixture::across;
use crate::statistics::{Percentile, Sample};

#[test]
fn draws_cover_what_the_interval_covers() {
    for values in [vec![98.0, 101.0, 103.0, 99.5, 100.2], vec![50.0, 51.0, 52.0]] {
        let found = across(&values);
        let interval = found.interval.unwrap();
        let values = [Resampled::from_across(&found).unwrap()];
        let drawn: Vec<f64> = replicates(&values).map(|draw| draw[0]).collect();
        let inside = drawn.iter().filter(|value| interval.contains(**value)).count();
        assert!((935..=965).contains(&inside), "{inside} of 1000");
        let median = Sample::new(drawn).unwrap().percentile(Percentile::P50);
        assert!((median - found.mean.unwrap()).abs() < interval.half_width() / 5.0);
    }
}

#[test]
fn one_run_without_an_interval_cannot_be_drawn() {
    assert_eq!(Resampled::from_across(&across(&[5.0])), None);
    assert_eq!(resampled([&across(&[5.0]), &across(&[5.0, 6.0])]), None);
}
