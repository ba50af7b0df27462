//! Named streams of random numbers. Each use has its own, so that changing one does not move the
//! others: another arrival process keeps the same prompts.

use rand_core::Rng;
use rand_pcg::Pcg64;
use sha2::{Digest, Sha256};

/// A generator fixed by name (PCG XSL 128/64), seeded from the run's seed, a name and an index.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    pub fn new(seed: u64, name: &str, index: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(index.to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let (state, stream) = digest.split_at(16);
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0_u128, |n, byte| n << 8 | u128::from(*byte));
        Self(Pcg64::new(number(state), number(stream)))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in (0, 1]: never zero, so its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        ((self.bits() >> 11) + 1) as f64 * STEP
    }

    /// Exponential with mean one, by inverting its distribution with a logarithm that is the same
    /// on every machine.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_fixed_by_its_seed_name_and_index() {
        let first = |seed, name, index| Stream::new(seed, name, index).bits();
        // Golden, and equal to what an independent program computes from the definition of the
        // generator: a change here changes every plan ever published.
        assert_eq!(first(1, "arrivals", 0), 4_288_365_394_821_115_512);
        assert_ne!(first(1, "arrivals", 0), first(2, "arrivals", 0));
        assert_ne!(first(1, "arrivals", 0), first(1, "prompts", 0));
        assert_ne!(first(1, "arrivals", 0), first(1, "arrivals", 1));
    }

    #[test]
    fn exponential_draws_have_mean_and_deviation_one() {
        let mut stream = Stream::new(7, "test", 0);
        let draws: Vec<f64> = (0..100_000).map(|_| stream.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance =
            draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "coefficient of variation");
    }
}
