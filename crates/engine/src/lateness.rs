//! A histogram of the engine's own lateness, in bounded memory.
//!
//! Buckets are linear within each power of two, 64 to each, so a percentile is at most one part in
//! 64 too high. The mean and the maximum are exact.

use crate::truth::LatenessTruth;

/// How late writes were.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    held_up: u64,
    sum_ns: u128,
    max_ns: u64,
    over_1ms: u64,
    over_5ms: u64,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Self {
            buckets: vec![0; BUCKETS],
            count: 0,
            held_up: 0,
            sum_ns: 0,
            max_ns: 0,
            over_1ms: 0,
            over_5ms: 0,
        }
    }

    pub(crate) fn add(&mut self, late_ns: u64) {
        self.buckets[bucket_of(late_ns)] += 1;
        self.count += 1;
        self.over_1ms += u64::from(MS < late_ns);
        self.over_5ms += u64::from(5 * MS < late_ns);
        self.sum_ns += u128::from(late_ns);
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// A write was late because the client had not read what came before it.
    pub(crate) fn add_held_up(&mut self) {
        self.held_up += 1;
    }

    pub(crate) fn summary(&self) -> LatenessTruth {
        let some = 0 < self.count;
        LatenessTruth {
            count: self.count,
            held_up_by_client: self.held_up,
            mean_ns: some.then(|| self.sum_ns as f64 / self.count as f64),
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: some.then_some(self.max_ns),
        }
    }

    pub(crate) fn over_1ms(&self) -> u64 {
        self.over_1ms
    }

    pub(crate) fn over_5ms(&self) -> u64 {
        self.over_5ms
    }

    /// The upper edge of the bucket that holds the sample of rank `percent`, or `None` of none.
    fn quantile(&self, percent: u64) -> Option<u64> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            rank <= seen
        })?;
        Some(upper_edge(bucket).min(self.max_ns))
    }
}

fn bucket_of(ns: u64) -> usize {
    // Octave 0 holds the values below 64, each its own bucket.
    let octave = (ns | (PER_OCTAVE - 1)).ilog2() + 1 - PER_OCTAVE.ilog2();
    let within = (ns >> octave.saturating_sub(1)) & (PER_OCTAVE - 1);
    usize::try_from(u64::from(octave) * PER_OCTAVE + within).unwrap_or(BUCKETS - 1)
}

fn upper_edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = bucket / PER_OCTAVE;
    let within = bucket % PER_OCTAVE;
    match octave.checked_sub(1) {
        None => within,
        Some(shift) => ((PER_OCTAVE + within) << shift) + ((1 << shift) - 1),
    }
}

const MS: u64 = 1_000_000;

const PER_OCTAVE: u64 = 64;

/// One set for the values below 64, one for each of the 58 powers of two above.
const BUCKETS: usize = 64 * 59;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for shift in 0..64 {
            for ns in [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + (1 << shift) / 3] {
                let bucket = bucket_of(ns);
                let edge = upper_edge(bucket);
                assert!(ns <= edge && edge - ns <= ns / 64, "{ns} in {bucket} up to {edge}");
                assert!(bucket == 0 || upper_edge(bucket - 1) < ns, "{ns} in {bucket}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn nothing_is_not_zero() {
        let summary = Lateness::new().summary();
        assert_eq!((summary.count, summary.mean_ns, summary.p99_ns), (0, None, None));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut lateness = Lateness::new();
        (1..=100).for_each(|ns| lateness.add(ns));
        let summary = lateness.summary();
        assert_eq!((summary.p50_ns, summary.max_ns), (Some(50), Some(100)));
        assert_eq!((summary.p99_ns, summary.mean_ns), (Some(99), Some(50.5)));
    }
}
