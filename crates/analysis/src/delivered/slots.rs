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
    /// From when each slot could have taken its first request to when there was nothing new to take.
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
        let loaded = loaded(records, &uses, slots).ok_or("no slot was in use")?;
        let length_ns = loaded.to_ns.saturating_sub(loaded.from_ns);
        if length_ns == 0 {
            return Err("no slot was handed on, so the run drains from its beginning");
        }
        let inside: Vec<Flight> = uses.iter().filter_map(|used| used.within(loaded)).collect();
        let swept = Concurrency::sweep(&inside).ok_or("no slot was in use")?;
        let in_use_mean = swept.request_ns as f64 / length_ns as f64;
        Ok(Self {
            asked,
            in_use_mean,
            share: in_use_mean / f64::from(asked),
            from_ms: ns_to_ms(loaded.from_ns),
            to_ms: ns_to_ms(loaded.to_ns),
            requests: uses.len() as u64,
        })
    }

    /// The share in use, where too many were empty.
    pub(crate) fn missed(&self) -> Option<f64> {
        Some(self.share).filter(|share| *share < SLOTS_SHARE)
    }
}

/// From the first request of every slot to the drain. A later turn of a conversation takes no slot of
/// its own.
fn loaded(records: &[RequestRecord], uses: &[Flight], slots: usize) -> Option<Flight> {
    let first_turns = records.iter().filter(|record| record.asked.turn == 0);
    let mut taken_ns: Vec<u64> = first_turns.map(|record| record.admitted.as_nanos()).collect();
    taken_ns.sort_unstable();
    let from_ns = *taken_ns.get(slots.saturating_sub(1)).or(taken_ns.last())?;
    let to_ns = Concurrency::drain_begins_ns(uses, *taken_ns.last()?)?;
    Some(Flight { from_ns, to_ns })
}

fn slot_use(record: &RequestRecord) -> Option<Flight> {
    let (from_ns, to_ns) = (record.admitted.as_nanos(), record.ending.at.as_nanos());
    (from_ns <= to_ns).then_some(Flight { from_ns, to_ns })
}
