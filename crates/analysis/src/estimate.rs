//! A number with its doubt.

use serde::{Deserialize, Serialize};

/// Where the true value lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A value, its interval, and what it was found from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    /// `None` when there is too little to say how far off it may be.
    pub interval: Option<Interval>,
    /// Values that it was found from.
    pub n: u64,
    /// Independent values that would tell as much; neighbours in time resemble each other.
    pub effective_n: Option<f64>,
    /// Whether `n`, and `effective_n` where it is known, reach the floor of this statistic.
    pub certified: bool,
}

impl Interval {
    /// Returns `None` when an end is not a number or they are the wrong way round.
    pub fn new(low: f64, high: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite() && low <= high).then_some(Self { low, high })
    }

    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Never outside of what is possible.
    #[must_use]
    pub fn clamped(self, low: f64, high: f64) -> Self {
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_the_right_way_round_and_finite() {
        assert_eq!(Interval::new(2.0, 1.0), None);
        assert_eq!(Interval::new(f64::NAN, 1.0), None);
        assert_eq!(Interval::new(0.0, f64::INFINITY), None);
        let interval = Interval::new(1.0, 3.0).unwrap();
        assert!(interval.contains(1.0) && interval.contains(3.0) && !interval.contains(3.1));
        assert!((interval.half_width() - 1.0).abs() < 1e-12);
        assert_eq!(interval.clamped(0.0, 2.0), Interval { low: 1.0, high: 2.0 });
    }
}
