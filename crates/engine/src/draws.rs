//! Random draws, each from a named stream of the seed.
//!
//! The generator is `SplitMix64` (Steele, Lea, Flood 2014), fixed by name: the same seed gives the
//! same schedule and the same words on every machine and in every release.

/// One stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    state: u64,
}

/// What a stream is for, so that changing one does not change another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Schedule = 1,
    Words = 2,
    AnswerId = 3,
    StepNoise = 4,
    Length = 5,
}

impl Draws {
    pub(crate) fn new(seed: u64, ordinal: u64, purpose: Purpose) -> Self {
        Self { state: mix(mix(mix(seed) ^ ordinal) ^ purpose as u64) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number drawn evenly from `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        // The upper 53 bits fill a mantissa exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A draw of the standard normal distribution (Box and Muller 1958, one of the pair).
    pub(crate) fn normal(&mut self) -> f64 {
        // The even draw is turned around, because zero has no logarithm.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for the state 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut draws = Draws { state: 1_234_567 };
        let first = [draws.next(), draws.next(), draws.next()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn streams_of_other_requests_and_purposes_differ() {
        let first = |seed, ordinal, purpose| Draws::new(seed, ordinal, purpose).next();
        let base = first(7, 3, Purpose::Words);
        assert_eq!(base, first(7, 3, Purpose::Words));
        assert_ne!(base, first(8, 3, Purpose::Words));
        assert_ne!(base, first(7, 4, Purpose::Words));
        assert_ne!(base, first(7, 3, Purpose::Schedule));
    }

    #[test]
    fn a_unit_draw_stays_in_range() {
        let mut draws = Draws::new(0, 0, Purpose::Schedule);
        assert!((0..10_000).map(|_| draws.unit()).all(|x| (0.0..1.0).contains(&x)));
    }
}
