//! Times counted in steps: bounded however many there are, and off by at most a hundredth.

/// Sixty-four steps to each doubling.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

const STEPS_PER_DOUBLING: u64 = 64;
const STEP_BITS: u32 = STEPS_PER_DOUBLING.ilog2();

impl Histogram {
    pub(super) fn add(&mut self, ns: u64) {
        let step = step_of(ns);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns += u128::from(ns);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Exact.
    pub(super) fn mean_ns(&self) -> Option<f64> {
        (0 < self.count).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// Exact.
    pub(super) fn max_ns(&self) -> Option<u64> {
        (0 < self.count).then_some(self.max_ns)
    }

    /// The middle of the step that holds the share's quantile.
    pub(super) fn quantile_ns(&self, share: f64) -> Option<u64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let step = self.counts.iter().position(|count| {
            seen += count;
            wanted <= seen
        })?;
        Some(middle_of(step as u64).clamp(self.min_ns, self.max_ns))
    }
}

fn step_of(ns: u64) -> usize {
    let step = match ns.checked_ilog2() {
        Some(doubling) if STEP_BITS < doubling => {
            let shift = doubling - STEP_BITS;
            u64::from(shift) * STEPS_PER_DOUBLING + (ns >> shift)
        }
        Some(_) | None => ns,
    };
    usize::try_from(step).unwrap_or(usize::MAX)
}

fn middle_of(step: u64) -> u64 {
    let shift = (step / STEPS_PER_DOUBLING).saturating_sub(1);
    let first = (step - shift * STEPS_PER_DOUBLING) << shift;
    first + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_near_the_middle_of_its_step() {
        let some = (0..5_000).chain((13..63).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 7]));
        let mut last = 0;
        for ns in some {
            let step = step_of(ns);
            assert!(last <= step, "{ns}");
            last = step;
            let off = middle_of(step as u64).abs_diff(ns);
            assert!(off * 100 <= ns, "{ns} is taken for {}", middle_of(step as u64));
        }
    }

    #[test]
    fn quantiles_and_mean_of_a_thousand_times() {
        let mut times = Histogram::default();
        assert_eq!((times.quantile_ns(0.5), times.mean_ns()), (None, None));
        for ns in 1..=1_000 {
            times.add(ns * 1_000_000);
        }
        assert_eq!(times.mean_ns(), Some(500.5e6));
        assert_eq!((times.count(), times.max_ns()), (1_000, Some(1_000_000_000)));
        for (share, ms) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = times.quantile_ns(share).unwrap() as f64 / 1e6;
            assert!((found - ms).abs() <= ms * 0.01, "{share}: {found}");
        }
    }
}
