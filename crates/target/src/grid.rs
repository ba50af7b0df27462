//! When the next look is due.

use std::time::Duration;

use inferometer_model::Moment;

/// Moments at whole periods after the beginning, whatever the looks take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) begin: Moment,
    pub(crate) every: Duration,
}

impl Grid {
    /// The tick to wait for after that of number `last`: never one that has passed, and not before
    /// the server had as much rest as the last look took.
    pub(crate) fn next(self, last: u64, now: Moment, took: Duration) -> u64 {
        let rested = (now + took).since(self.begin).unwrap_or_default();
        let due = rested.as_nanos().div_ceil(self.every.as_nanos().max(1));
        u64::try_from(due).unwrap_or(u64::MAX).max(last + 1)
    }

    pub(crate) fn moment(self, tick: u64) -> Moment {
        let every = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX);
        self.begin + Duration::from_nanos(every.saturating_mul(tick))
    }
}
