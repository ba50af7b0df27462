//! Random draws that are the same on every machine, for resampling and for simulated truth.

use super::normal;

/// A generator fixed by its name: `SplitMix64`. What it draws never reaches a plan.
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// Different numbers give streams that have nothing to do with each other.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut scrambled = Self(number);
        Self(seed ^ scrambled.bits())
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in (0, 1): neither end, so that every quantile of it is finite.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        ((self.bits() >> 11) as f64 + 0.5) * STEP
    }

    /// Below `bound`, which is not zero; the bias is beneath 2⁻³² for every bound that fits memory.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.bits()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    pub fn normal(&mut self) -> f64 {
        normal::quantile(self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_the_generator_by_its_name() {
        // The published first values of SplitMix64 from state 1234567.
        let mut draws = Draws(1_234_567);
        assert_eq!(draws.bits(), 6_457_827_717_110_365_317);
        assert_eq!(draws.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn normal_draws_have_mean_zero_and_deviation_one() {
        let mut draws = Draws::new(2, 0);
        let values: Vec<f64> = (0..100_000).map(|_| draws.normal()).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let square = values.iter().map(|value| value * value).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.012 && (square - 1.0).abs() < 0.02, "{mean} {square}");
    }
}
