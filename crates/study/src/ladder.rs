//! Levels that a person can read: whole requests at once, rates of three significant digits; and
//! the steps between them.

use std::num::NonZeroU32;

use inferometer_model::campaign::{Dimension, Level};

/// `None` of a place that is no level.
pub(crate) fn level(dimension: Dimension, place: f64) -> Option<Level> {
    match dimension {
        Dimension::Rate => (place.is_finite() && 0.0 < place).then_some(Level::Rate(place)),
        Dimension::Concurrency => whole(place).map(Level::Concurrency),
    }
}

/// The nearest level to a positive number that reads well.
pub(crate) fn round(dimension: Dimension, place: f64) -> f64 {
    match dimension {
        Dimension::Rate => format!("{place:.2e}").parse().unwrap_or(place),
        Dimension::Concurrency => place.round().max(1.0),
    }
}

fn whole(place: f64) -> Option<NonZeroU32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and zero is refused"
    )]
    NonZeroU32::new(place.round() as u32)
}

/// The steps of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    pub(crate) dimension: Dimension,
    /// The width of the last step, as a share of the level.
    pub(crate) step: f64,
}

impl Ladder {
    pub(crate) fn double(&self, place: f64) -> f64 {
        round(self.dimension, place * 2.0)
    }

    /// `None` below one request at once.
    pub(crate) fn halve(&self, place: f64) -> Option<f64> {
        let half = round(self.dimension, place / 2.0);
        (half < place).then_some(half)
    }

    /// A level in the geometric middle; `None` when they are one step apart.
    pub(crate) fn between(&self, low: f64, high: f64) -> Option<f64> {
        // The ends were rounded, so a step may be wider than asked by what rounding adds.
        const ROUNDING: f64 = 1.000_000_1;
        if high <= low * (1.0 + self.step) * ROUNDING {
            return None;
        }
        let middle = round(self.dimension, (low * high).sqrt());
        (low < middle && middle < high).then_some(middle)
    }

    /// The last step down; `None` below one request at once.
    pub(crate) fn step_down(&self, place: f64) -> Option<f64> {
        let near = round(self.dimension, place / (1.0 + self.step));
        let below = match self.dimension {
            Dimension::Rate => near,
            Dimension::Concurrency => near.min(place - 1.0),
        };
        (0.0 < below && below < place).then_some(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Ladder = Ladder { dimension: Dimension::Rate, step: 0.05 };
    const CONCURRENCIES: Ladder = Ladder { dimension: Dimension::Concurrency, step: 0.05 };

    #[test]
    fn levels_read_well() {
        assert_eq!(round(Dimension::Rate, 12.345).to_string(), "12.3");
        assert_eq!(round(Dimension::Rate, 0.001_239_9).to_string(), "0.00124");
        assert_eq!(round(Dimension::Rate, 98_765.0).to_string(), "98800");
        assert_eq!(round(Dimension::Concurrency, 0.2).to_string(), "1");
        assert_eq!(level(Dimension::Concurrency, 0.2), None);
        assert_eq!(level(Dimension::Rate, f64::INFINITY), None);
    }

    #[test]
    fn bisection_ends_at_the_last_step_or_at_neighbours() {
        assert_eq!(RATES.between(4.0, 9.0), Some(6.0));
        assert_eq!(RATES.between(4.0, 4.2), None);
        assert_eq!(CONCURRENCIES.between(8.0, 32.0), Some(16.0));
        assert_eq!(CONCURRENCIES.between(8.0, 9.0), None);
        assert_eq!(CONCURRENCIES.between(8.0, 10.0), Some(9.0));
    }

    #[test]
    fn a_step_down_is_never_the_same_level() {
        assert_eq!(RATES.step_down(10.5), Some(10.0));
        assert_eq!(CONCURRENCIES.step_down(4.0), Some(3.0));
        assert_eq!(CONCURRENCIES.step_down(1.0), None);
        assert_eq!(CONCURRENCIES.halve(1.0), None);
    }
}
