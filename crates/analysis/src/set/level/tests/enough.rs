//! Where runs are made until enough is known: whether it is.

use super::*;
use crate::set::fixture::{summary, with_throughput};

#[test]
fn the_half_width_is_compared_with_its_target() {
    let runs: Vec<Summary> =
        [100.0, 101.0, 99.0].map(|value| with_throughput(&summary(), value)).to_vec();
    let all: Vec<&Summary> = runs.iter().collect();
    let target = |half_width| StopAt { quantity: "output_throughput".to_owned(), half_width };
    // By `SciPy`: t(0.975, 2) · 1 / √3 = 2.484 of 100.
    let found = Enough::from_runs(&target(0.025), 3, &all);
    assert!((found.half_width.unwrap() - 0.024_841_377).abs() < 1e-8, "{found:?}");
    assert!(found.reached && !Enough::from_runs(&target(0.024), 3, &all).reached);
    let single = Enough::from_runs(&target(0.5), 3, &all[..1]);
    assert_eq!((single.half_width, single.reached), (None, false));
}
