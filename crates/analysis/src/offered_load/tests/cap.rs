//! What a cap held back.

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
    assert_eq!(HeldByCap::from_observations(&observations), None);
    let rate = Rate::Steady { per_s: 100.0 };
    let (arrivals, cap) = (Arrivals::Poisson, NonZeroU32::new(1));
    observations.manifest.spec.load.shape = LoadShape::Open { rate, arrivals, cap };
    let held = HeldByCap::from_observations(&observations).unwrap();
    assert_eq!((held.requests, held.share), (1, Some(0.5)));
}
