//! When repeated runs are enough: the interval between them is narrow.

use inferometer_analysis::statistics::runs::half_width_over_looks;
use inferometer_model::campaign::{Level, Point, Stage};

use crate::history::History;
use crate::reading::Told;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    /// As a share of the mean.
    pub(crate) half_width: f64,
    pub(crate) runs_at_most: u32,
}

impl Rule {
    /// Whether the runs before this round were enough.
    pub(crate) fn reached_within(
        &self,
        history: &History,
        condition: u32,
        level: Level,
        round: u32,
    ) -> bool {
        let values = values(history, condition, level, round);
        self.share(&values).is_some_and(|share| share <= self.half_width)
    }

    fn share(&self, values: &[f64]) -> Option<f64> {
        half_width_over_looks(values, self.runs_at_most)
    }
}

/// What runs that can be trusted came to.
fn values(history: &History, condition: u32, level: Level, before: u32) -> Vec<f64> {
    let counts = |point: &Point| {
        point.stage == Stage::Planned
            && point.condition == condition
            && point.level == level
            && point.repetition < before
    };
    let value = |told: &Told| told.repeated.filter(|_| told.is_valid);
    history.runs().filter(|(point, _)| counts(point)).filter_map(|(_, told)| value(told)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_often_needs_a_narrower_spread() {
        let values = [100.0, 101.0, 99.0];
        // SciPy: t.ppf(0.975, 2) / sqrt(3) and t.ppf(1 - 0.025 / 8, 2) / sqrt(3), of s = 1.
        let once = Rule { half_width: 0.02, runs_at_most: 3 }.share(&values).unwrap();
        let often = Rule { half_width: 0.02, runs_at_most: 10 }.share(&values).unwrap();
        assert!((once - 0.024_841_377_117_503_15).abs() < 1e-9, "{once}");
        assert!(2.7 < often / once && often / once < 3.0, "{often}");
        assert_eq!(Rule { half_width: 0.02, runs_at_most: 3 }.share(&values[..2]), None);
    }
}
