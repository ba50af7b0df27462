//! A point on the run's one clock. A point is not a length: lengths are [`Duration`]s.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on the run's one monotonic clock, in nanoseconds since the run's zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment(u64);

impl Moment {
    pub const ZERO: Self = Self(0);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`, or `None` when the two are out of order.
    ///
    /// Out-of-order moments are a bug in the recorder, never a zero in the report.
    pub fn since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// The signed distance in nanoseconds, for errors that may lie on either side.
    pub fn nanos_after(self, other: Self) -> i64 {
        let distance = i128::from(self.0) - i128::from(other.0);
        let limit = if distance < 0 { i64::MIN } else { i64::MAX };
        i64::try_from(distance).unwrap_or(limit)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    /// Saturates at the end of the clock, some 584 years after the run's zero.
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The run's one clock. Only the clock module of a process implements it over a real clock.
pub trait Clock {
    fn now(&self) -> Moment;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_order_moments_have_no_distance() {
        let early = Moment::from_nanos(10);
        let late = early + Duration::from_nanos(5);
        assert_eq!(late.since(early), Some(Duration::from_nanos(5)));
        assert_eq!(early.since(late), None);
        assert_eq!(early.nanos_after(late), -5);
    }
}
