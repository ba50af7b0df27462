//! A rate with a cap is neither an open loop nor a closed one: what the cap held back is counted.

use inferometer_model::Observations;
use inferometer_model::spec::LoadShape;
use serde::{Deserialize, Serialize};

use crate::client::share;

/// Attempted requests that had to wait for a slot of the cap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldByCap {
    pub requests: u64,
    /// Of the attempted requests; null when there were none.
    pub share: Option<f64>,
}

impl HeldByCap {
    pub(crate) fn of(observations: &Observations) -> Option<Self> {
        let LoadShape::Open { cap: Some(_), .. } = observations.manifest.spec.load.shape else {
            return None;
        };
        let held = |record: &&inferometer_model::RequestRecord| record.intended < record.admitted;
        let requests = observations.records.iter().filter(held).count() as u64;
        Some(Self { requests, share: share(requests, observations.records.len() as u64) })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use inferometer_model::spec::{Arrivals, Rate};

    use super::*;
    use crate::fixture::{Given, run};

    #[test]
    fn only_a_cap_holds_back_and_only_what_waited_counts() {
        let records = vec![
            Given::ok(0).moments(10, 10, 11).arrival(50, &[Some(1)]).record(),
            Given::ok(1).moments(20, 35, 36).arrival(60, &[Some(1)]).record(),
        ];
        let mut observations = run(records);
        assert_eq!(HeldByCap::of(&observations), None);
        let rate = Rate::Steady { per_s: 100.0 };
        let (arrivals, cap) = (Arrivals::Poisson, NonZeroU32::new(1));
        observations.manifest.spec.load.shape = LoadShape::Open { rate, arrivals, cap };
        let held = HeldByCap::of(&observations).unwrap();
        assert_eq!((held.requests, held.share), (1, Some(0.5)));
    }
}
