//! A Prometheus histogram, and the bounds that real servers give theirs.

/// Time to first token, in vLLM.
pub(super) const FIRST_TOKEN_S: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
/// Times between and per token, in vLLM.
pub(super) const PER_TOKEN_S: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
/// Times of whole requests and of their phases, in vLLM.
pub(super) const REQUEST_S: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];
/// Tokens of one step, in vLLM.
pub(super) const STEP_TOKENS: &[f64] =
    &[1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];
/// Answers asked of one request, in vLLM.
pub(super) const CHOICES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0];

/// Time to first token, in SGLang.
pub(super) const SGLANG_FIRST_TOKEN_S: &[f64] = &[
    0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0,
    400.0,
];
/// Times between tokens, in SGLang.
pub(super) const SGLANG_PER_TOKEN_S: &[f64] = &[
    0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2,
    0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0,
];
/// Times of whole requests, in SGLang.
pub(super) const SGLANG_REQUEST_S: &[f64] = &[
    0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0,
    400.0, 600.0, 1200.0, 1800.0, 2400.0,
];
/// Times in the queue, in SGLang.
pub(super) const SGLANG_QUEUE_S: &[f64] = &[
    0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0,
    80.0, 90.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0, 1200.0,
    1400.0, 1600.0, 1800.0, 2000.0, 2500.0, 3000.0,
];

/// One, two and five times each power of ten, up to `most`: vLLM's bounds for counts of tokens.
pub(super) fn one_two_five(most: u32) -> Vec<f64> {
    let powers = std::iter::successors(Some(1.0), |power| Some(power * 10.0));
    powers
        .flat_map(|power| [power, 2.0 * power, 5.0 * power])
        .take_while(|bound| *bound <= f64::from(most))
        .collect()
}

/// Counts of observations up to each bound; all room is taken when it is made.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    /// Rising.
    bounds: Box<[f64]>,
    /// Of each bucket by itself; the last one has no bound.
    counts: Box<[u64]>,
    sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &[f64]) -> Self {
        Self { bounds: bounds.into(), counts: vec![0; bounds.len() + 1].into(), sum: 0.0 }
    }

    /// A value that equals a bound lies below it.
    pub(super) fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    pub(super) fn observe_ns(&mut self, nanoseconds: u64) {
        // One division rounds once, so that 20 ms lies in the bucket up to 0.02.
        self.observe(nanoseconds as f64 / 1e9);
    }

    /// Bounds with the observations up to them, the unbounded bucket last.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = self.counts.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        });
        bounds.zip(counts)
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Histogram, PER_TOKEN_S, one_two_five};

    #[test]
    fn a_value_on_a_bound_is_counted_up_to_it() {
        let mut histogram = Histogram::new(PER_TOKEN_S);
        histogram.observe_ns(25_000_000);
        histogram.observe_ns(25_000_001);
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).take(3).collect();
        assert_eq!(counts, [0, 1, 2]);
    }

    #[test]
    fn token_bounds_end_at_the_models_length() {
        assert!(one_two_five(0).is_empty());
        assert_eq!(one_two_five(2048).last(), Some(&2000.0));
        assert_eq!(one_two_five(100), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(one_two_five(u32::MAX).last(), Some(&2e9));
    }

    proptest! {
        #[test]
        fn buckets_rise_to_the_count_and_each_holds_what_is_below_its_bound(
            values in proptest::collection::vec(0.0..200.0_f64, 0..200),
        ) {
            let mut histogram = Histogram::new(PER_TOKEN_S);
            for value in &values {
                histogram.observe(*value);
            }
            let mut before = 0;
            for (bound, count) in histogram.cumulative() {
                prop_assert!(count >= before);
                prop_assert_eq!(count, values.iter().filter(|value| **value <= bound).count() as u64);
                before = count;
            }
            prop_assert_eq!(before, histogram.count());
            prop_assert_eq!(before, values.len() as u64);
            prop_assert!((histogram.sum() - values.iter().sum::<f64>()).abs() < 1e-9);
        }
    }
}
