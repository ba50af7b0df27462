//! Where runs are made until enough is known: whether it is.

use inferometer_model::campaign::StopAt;
use serde::{Deserialize, Serialize};

use crate::quantity::{LatencyOrigin, Quantity};
use crate::statistics::runs::half_width_over_looks;
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enough {
    pub quantity: String,
    /// The half-width that was asked for, as a share of the mean.
    pub target: f64,
    /// The one that there is, at the level raised for the looks at it; null of fewer than three runs.
    pub half_width: Option<f64>,
    pub reached: bool,
}

impl Enough {
    /// Of runs of which there were to be this many at most.
    pub(super) fn of(target: &StopAt, runs_at_most: u32, runs: &[&Summary]) -> Self {
        let half_width = half_width(target, runs_at_most, runs);
        Self {
            quantity: target.quantity.clone(),
            target: target.half_width,
            half_width,
            reached: half_width.is_some_and(|half_width| half_width <= target.half_width),
        }
    }
}

/// What the target is about: a bare latency begins where the load of the runs says.
pub(super) fn quantity(target: &StopAt, runs: &[&Summary]) -> Option<Quantity> {
    let open = runs.first()?.run.load.is_open();
    Quantity::named(&target.quantity, LatencyOrigin::for_load(open)).ok()
}

fn half_width(target: &StopAt, runs_at_most: u32, runs: &[&Summary]) -> Option<f64> {
    let quantity = quantity(target, runs)?;
    let values: Vec<f64> = runs
        .iter()
        .filter_map(|run| quantity.value_in(run).ok())
        .map(|found| found.value)
        .collect();
    half_width_over_looks(&values, runs_at_most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::fixture::{summary, with_throughput};

    #[test]
    fn the_half_width_is_compared_with_its_target() {
        let runs: Vec<Summary> =
            [100.0, 101.0, 99.0].map(|value| with_throughput(&summary(), value)).to_vec();
        let all: Vec<&Summary> = runs.iter().collect();
        let target = |half_width| StopAt { quantity: "output_throughput".to_owned(), half_width };
        // By `SciPy`: t(0.975, 2) · 1 / √3 = 2.484 of 100.
        let found = Enough::of(&target(0.025), 3, &all);
        assert!((found.half_width.unwrap() - 0.024_841_377).abs() < 1e-8, "{found:?}");
        assert!(found.reached && !Enough::of(&target(0.024), 3, &all).reached);
        let single = Enough::of(&target(0.5), 3, &all[..1]);
        assert_eq!((single.half_width, single.reached), (None, false));
    }
}
