//! Where runs are made until enough is known: whether it is.

use inferometer_model::campaign::StopAt;
use serde::{Deserialize, Serialize};

use super::across::Across;
use crate::quantity::{Quantity, Zero};
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enough {
    pub quantity: String,
    /// The half-width that was asked for, as a share of the mean.
    pub target: f64,
    /// The one that there is; null of fewer than two runs.
    pub half_width: Option<f64>,
    pub reached: bool,
}

impl Enough {
    pub(super) fn of(target: &StopAt, runs: &[&Summary]) -> Self {
        let half_width = half_width(&target.quantity, runs);
        Self {
            quantity: target.quantity.clone(),
            target: target.half_width,
            half_width,
            reached: half_width.is_some_and(|half_width| half_width <= target.half_width),
        }
    }
}

fn half_width(name: &str, runs: &[&Summary]) -> Option<f64> {
    let open = runs.first()?.run.load.is_open();
    let zero = if open { Zero::Schedule } else { Zero::Sent };
    let quantity = Quantity::named(name, zero).ok()?;
    let across = Across::of(&runs.iter().map(|run| quantity.of(run)).collect::<Vec<_>>());
    let mean = across.mean.filter(|mean| *mean != 0.0)?;
    Some(across.interval?.half_width() / mean.abs())
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
        let found = Enough::of(&target(0.025), &all);
        assert!((found.half_width.unwrap() - 0.024_841_377).abs() < 1e-8, "{found:?}");
        assert!(found.reached && !Enough::of(&target(0.024), &all).reached);
        let single = Enough::of(&target(0.5), &all[..1]);
        assert_eq!((single.half_width, single.reached), (None, false));
    }
}
