//! How many slots of a closed loop were in use.

use inferometer_model::RequestRecord;
use serde::{Deserialize, Serialize};

use crate::concurrency::{Concurrency, Flight};
use crate::ruler::ns_to_ms;

/// A slot is in use from when it takes a request to when that ends: dialling is part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotsDelivered {
    pub asked: u32,
    /// On average over the stretch.
    pub in_use_mean: f64,
    /// Of those asked for.
    pub share: f64,
    /// From when most were first in use to when they last were.
    pub from_ms: f64,
    pub to_ms: f64,
    pub requests: u64,
}

/// Below this share, fewer users were there than asked for.
pub(crate) const SLOTS_SHARE: f64 = 0.95;
/// Requests, and requests for each slot, that it takes to tell.
const FEWEST: usize = 100;
const FEWEST_OF_A_SLOT: usize = 10;

impl SlotsDelivered {
    pub(super) fn of(records: &[RequestRecord], asked: u32) -> Result<Self, &'static str> {
        let slots = usize::try_from(asked).unwrap_or(usize::MAX);
        let uses: Vec<Flight> = records.iter().filter_map(slot_use).collect();
        if uses.len() < FEWEST.max(FEWEST_OF_A_SLOT.saturating_mul(slots)) {
            return Err("too few requests for the slots to tell");
        }
        let full = Concurrency::at_peak(&uses).ok_or("no slot was in use")?;
        let length_ns = full.to_ns - full.from_ns;
        if length_ns == 0 {
            return Err("the slots were in use for no time");
        }
        let inside: Vec<Flight> = uses.iter().filter_map(|used| used.within(full)).collect();
        let swept = Concurrency::sweep(&inside).ok_or("no slot was in use")?;
        let in_use_mean = swept.request_ns as f64 / length_ns as f64;
        Ok(Self {
            asked,
            in_use_mean,
            share: in_use_mean / f64::from(asked),
            from_ms: ns_to_ms(full.from_ns),
            to_ms: ns_to_ms(full.to_ns),
            requests: uses.len() as u64,
        })
    }

    /// The share in use, where too many were empty.
    pub(crate) fn missed(&self) -> Option<f64> {
        Some(self.share).filter(|share| *share < SLOTS_SHARE)
    }
}

fn slot_use(record: &RequestRecord) -> Option<Flight> {
    let (from_ns, to_ns) = (record.admitted.as_nanos(), record.ending.at.as_nanos());
    (from_ns <= to_ns).then_some(Flight { from_ns, to_ns })
}
