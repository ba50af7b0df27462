//! The default generator of NumPy, as far as whole numbers go: another program's prompts can only
//! be made again with its own random numbers.
//!
//! Seeding is NumPy's `SeedSequence` (a hash of the seed into a pool of four words), the generator
//! is PCG XSL RR 128/64, and a range is drawn by Lemire's method on halves of its numbers.

use rand_core::Rng as _;
use rand_pcg::Pcg64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumpyRng {
    numbers: Pcg64,
    /// The upper half of the last number, when only its lower half was used.
    half: Option<u32>,
}

const POOL: usize = 4;

impl NumpyRng {
    /// As `numpy.random.default_rng(seed)`.
    pub(super) fn new(seed: u64) -> Self {
        let words = seed_words(seed);
        let wide = |place: usize| {
            let [low, high] = [words[place], words[place + 1]].map(u128::from);
            high << 32 | low
        };
        let state = wide(0) << 64 | wide(2);
        let stream = wide(4) << 64 | wide(6);
        Self { numbers: Pcg64::new(state, stream), half: None }
    }

    /// As `integers(low, high + 1, size=count)`.
    pub(super) fn integers(&mut self, low: u32, high: u32, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.integer(low, high)).collect()
    }

    fn integer(&mut self, low: u32, high: u32) -> u32 {
        let Some(count) = (high - low).checked_add(1) else { return self.next_u32() };
        if count == 1 {
            // Nothing is drawn where there is no choice.
            return low;
        }
        let unfair = count.wrapping_neg() % count;
        loop {
            let [rest, place] = halves(u64::from(self.next_u32()) * u64::from(count));
            if unfair <= rest {
                return low + place;
            }
        }
    }

    fn next_u32(&mut self) -> u32 {
        self.half.take().unwrap_or_else(|| {
            let [low, high] = halves(self.numbers.next_u64());
            self.half = Some(high);
            low
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// Eight words that a seed is spread over.
fn seed_words(seed: u64) -> [u32; 2 * POOL] {
    let mut hash = Hash { constant: 0x43b0_d7e5, factor: 0x931e_8875 };
    let [low, high] = halves(seed);
    let mut pool = [low, high, 0, 0].map(|word| hash.mix(word));
    for from in 0..POOL {
        for to in (0..POOL).filter(|to| *to != from) {
            let other = hash.mix(pool[from]);
            let joined =
                pool[to].wrapping_mul(0xca01_f9dd).wrapping_sub(other.wrapping_mul(0x4973_f715));
            pool[to] = joined ^ joined >> 16;
        }
    }
    let mut hash = Hash { constant: 0x8b51_f9dd, factor: 0x58f3_8ded };
    std::array::from_fn(|place| hash.mix(pool[place % POOL]))
}

/// A multiplicative hash whose constant changes with every use.
struct Hash {
    constant: u32,
    factor: u32,
}

impl Hash {
    fn mix(&mut self, word: u32) -> u32 {
        let word = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.factor);
        let word = word.wrapping_mul(self.constant);
        word ^ word >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_numpy() {
        // What NumPy 2.3 gave for each seed: integers(0, 32000, 5), integers(819, 1230, 5),
        // integers(0, 7, 3), integers(5, 6, 2), integers(0, 100, 1).
        type Given = (u64, [u32; 5], [u32; 5], [u32; 3], u32);
        let golden: [Given; 5] = [
            (0, [27219, 20382, 16356, 8633, 9850], [835, 849, 825, 891, 1153], [4, 6, 3], 60),
            (1, [15142, 16378, 24165, 30414, 1115], [878, 1157, 1208, 921, 947], [6, 2, 1], 82),
            (42, [2856, 24766, 20946, 14044, 13856], [1171, 854, 1105, 901, 857], [3, 6, 5], 76),
            (
                (1 << 40) + 7,
                [6608, 26554, 19504, 8169, 544],
                [882, 1026, 1096, 1182, 1122],
                [0, 3, 4],
                1,
            ),
            (
                (1 << 63) + 5,
                [26242, 15367, 6013, 28933, 10539],
                [1082, 1062, 844, 913, 889],
                [0, 5, 2],
                71,
            ),
        ];
        for (seed, ids, lengths, few, last) in golden {
            let mut rng = NumpyRng::new(seed);
            assert_eq!(rng.integers(0, 31_999, 5), ids, "seed {seed}");
            assert_eq!(rng.integers(819, 1229, 5), lengths, "seed {seed}");
            assert_eq!(rng.integers(0, 6, 3), few, "seed {seed}");
            assert_eq!(rng.integers(5, 5, 2), [5, 5]);
            assert_eq!(rng.integers(0, 99, 1), [last], "seed {seed}");
        }
    }
}
