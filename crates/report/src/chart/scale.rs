//! From values to places.

/// What lies at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// Equal differences.
    Even,
    /// Equal ratios.
    Log,
    /// Shares, each further nine as far away as the one before: 90 %, 99 %, 99.9 %.
    Tail,
}

/// From values to pixels. What lies beyond its ends is drawn at them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    spacing: Spacing,
    /// Of the axis, as the spacing sees them.
    ends: (f64, f64),
    places: (f64, f64),
}

/// Shares nearer to one than this are all of it.
const REST_LEAST: f64 = 1e-9;

impl Spacing {
    /// Where a value is, in a measure of equal distances.
    pub(super) fn position(self, value: f64) -> f64 {
        match self {
            Self::Even => value,
            Self::Log => libm::log10(value.max(f64::MIN_POSITIVE)),
            Self::Tail => -libm::log10((1.0 - value).clamp(REST_LEAST, 1.0)),
        }
    }
}

impl Scale {
    /// From the values at the ends of an axis to their places. Equal values are spread, so that
    /// nothing divides by zero.
    pub(super) fn new(spacing: Spacing, ends: (f64, f64), places: (f64, f64)) -> Self {
        let (low, high) = (spacing.position(ends.0), spacing.position(ends.1));
        let high = if low < high { high } else { low + 1.0 };
        Self { spacing, ends: (low, high), places }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high) = self.ends;
        let share = (self.spacing.position(value) - low) / (high - low);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.places.0 + share * (self.places.1 - self.places.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(spacing: Spacing, ends: (f64, f64), values: &[f64]) -> Vec<f64> {
        let scale = Scale::new(spacing, ends, (100.0, 400.0));
        values.iter().map(|value| (scale.place(*value) * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn even_places_are_in_proportion() {
        assert_eq!(places(Spacing::Even, (0.0, 10.0), &[0.0, 2.5, 10.0]), [100.0, 175.0, 400.0]);
        let upside_down = Scale::new(Spacing::Even, (0.0, 10.0), (200.0, 100.0));
        assert!((upside_down.place(10.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn equal_ratios_are_equally_far() {
        let found = places(Spacing::Log, (1.0, 1_000.0), &[1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(found, [100.0, 200.0, 300.0, 400.0]);
    }

    #[test]
    fn each_nine_of_the_tail_is_equally_far() {
        let found = places(Spacing::Tail, (0.0, 0.999), &[0.0, 0.9, 0.99, 0.999, 1.0]);
        assert_eq!(found, [100.0, 200.0, 300.0, 400.0, 400.0]);
    }

    #[test]
    fn nothing_leaves_the_axis() {
        let beyond = [-5.0, 0.0, 1e300, f64::INFINITY, f64::NAN];
        for spacing in [Spacing::Even, Spacing::Log, Spacing::Tail] {
            for ends in [(0.1, 0.9), (0.5, 0.5), (0.0, 0.0)] {
                let found = places(spacing, ends, &beyond);
                assert!(found.iter().all(|at| (100.0..=400.0).contains(at)), "{found:?}");
            }
        }
    }
}
