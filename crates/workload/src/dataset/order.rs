//! In which order items are asked: every item once in a pass, and each pass in an order of its own.

use crate::stream::Stream;

/// A permutation of the items for every pass, computed and not stored: a Feistel network over the
/// next power of four, walked until it lands on an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    seed: u64,
    items: u64,
    half_bits: u32,
}

const ROUNDS: usize = 8;

impl Order {
    /// Of at least one item.
    pub(crate) fn new(items: u64, seed: u64) -> Self {
        let bits = u64::BITS - items.saturating_sub(1).leading_zeros();
        Self { seed, items: items.max(1), half_bits: bits.div_ceil(2).max(1) }
    }

    /// The item of a request, by its number.
    pub(crate) fn item(&self, request: u64) -> u64 {
        let (pass, place) = (request / self.items, request % self.items);
        let mut stream = Stream::new(self.seed, "order", pass);
        let keys: [u64; ROUNDS] = std::array::from_fn(|_| stream.bits());
        let mut item = place;
        loop {
            item = self.shuffle(item, &keys);
            if item < self.items {
                return item;
            }
        }
    }

    fn shuffle(&self, number: u64, keys: &[u64; ROUNDS]) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in keys {
            (left, right) = (right, left ^ (mix(right.wrapping_add(*key)) & mask));
        }
        left << self.half_bits | right
    }
}

/// Spreads every bit over all others (the finalizer of `SplitMix64`).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_item_comes_once_in_a_pass_and_passes_differ() {
        for items in [1, 2, 3, 4, 5, 17, 64, 100, 1_000] {
            let order = Order::new(items, 7);
            for pass in 0..3 {
                let seen: BTreeSet<u64> =
                    (0..items).map(|place| order.item(pass * items + place)).collect();
                assert_eq!(seen.len() as u64, items);
                assert_eq!(seen.last(), Some(&(items - 1)));
            }
        }
        let order = Order::new(100, 7);
        let pass = |number: u64| (0..100).map(move |place| order.item(number * 100 + place));
        assert!(pass(0).ne(pass(1)) && pass(0).ne(0..100));
        assert!((0..100).map(|place| Order::new(100, 8).item(place)).ne(pass(0)));
    }

    #[test]
    fn every_item_is_as_likely_to_come_first() {
        let order = Order::new(5, 3);
        let mut firsts = [0_u32; 5];
        for pass in 0..10_000 {
            firsts[usize::try_from(order.item(pass * 5)).unwrap()] += 1;
        }
        // Four standard deviations of a binomial count of 2,000.
        assert!(firsts.iter().all(|count| count.abs_diff(2_000) < 160), "{firsts:?}");
    }
}
