//! Even steps of time over a run, and which of them a moment lies in.

use inferometer_model::{Moment, RequestRecord};

use crate::ruler::ns_to_ms;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) from_ns: u64,
    pub(crate) step_ns: u64,
    pub(crate) count: usize,
}

/// A server answers all its streams in steps of tens of milliseconds. Shorter steps than this would
/// show those, as spikes with nothing between them.
const STEP_NS_MIN: u64 = 50_000_000;

impl Steps {
    /// From the first request that was sent, or let go and never sent, to the last end; `None`
    /// without requests.
    pub(crate) fn over<'run>(
        records: impl Iterator<Item = &'run RequestRecord>,
        at_most: u32,
    ) -> Option<Self> {
        let spans =
            records.map(|record| (record.sent.unwrap_or(record.admitted), record.ending.at));
        let whole = |(from, to): (Moment, Moment), (left, ended): (Moment, Moment)| {
            (from.min(left), to.max(ended))
        };
        let (from, to) = spans.reduce(whole)?;
        Some(Self::between(from.as_nanos(), to.as_nanos(), at_most))
    }

    fn between(from_ns: u64, to_ns: u64, at_most: u32) -> Self {
        let span_ns = to_ns.saturating_sub(from_ns);
        let count = (span_ns / STEP_NS_MIN).clamp(1, u64::from(at_most.max(1)));
        let step_ns = span_ns.div_ceil(count).max(STEP_NS_MIN);
        Self { from_ns, step_ns, count: usize::try_from(count).unwrap_or(1) }
    }

    /// Moments before the first step and after the last belong to them.
    pub(crate) fn place(self, at_ns: u64) -> usize {
        let steps = at_ns.saturating_sub(self.from_ns) / self.step_ns;
        usize::try_from(steps).unwrap_or(usize::MAX).min(self.count - 1)
    }

    /// Where a step begins.
    pub(crate) fn begin_ns(self, step: usize) -> u64 {
        self.from_ns.saturating_add(self.step_ns.saturating_mul(step as u64))
    }

    pub(crate) fn begin_ms(self) -> f64 {
        ns_to_ms(self.from_ns)
    }

    pub(crate) fn step_ms(self) -> f64 {
        ns_to_ms(self.step_ns)
    }
}

/// Finds the steps of moments that mostly follow each other: tokens are many, and a division for
/// each would be felt.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    pub(crate) steps: Steps,
    step: usize,
    begin_ns: u64,
    end_ns: u64,
}

impl Cursor {
    pub(crate) fn new(steps: Steps) -> Self {
        Self { steps, step: 0, begin_ns: steps.begin_ns(0), end_ns: steps.begin_ns(1) }
    }

    pub(crate) fn place(&mut self, at: Moment) -> usize {
        let at_ns = at.as_nanos();
        if at_ns < self.begin_ns || self.end_ns <= at_ns {
            self.step = self.steps.place(at_ns);
            self.begin_ns = self.steps.begin_ns(self.step);
            self.end_ns = self.steps.begin_ns(self.step + 1);
        }
        self.step
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_run_of_no_length_has_one_step() {
        let steps = Steps::between(7, 7, 200);
        assert_eq!(steps, Steps { from_ns: 7, step_ns: STEP_NS_MIN, count: 1 });
        assert_eq!((steps.place(0), steps.place(7), steps.place(u64::MAX)), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn steps_cover_the_run_and_no_more_than_a_step_beyond(
            from in any::<u64>(), span in any::<u64>(), at_most in 1_u32..300,
        ) {
            let to = from.saturating_add(span);
            let steps = Steps::between(from, to, at_most);
            prop_assert!(1 <= steps.count && steps.count <= at_most as usize);
            let covered = u128::from(steps.step_ns) * steps.count as u128;
            let span = u128::from(to - from);
            prop_assert!(span <= covered && covered < span + u128::from(STEP_NS_MIN) + 300);
        }

        #[test]
        fn a_cursor_finds_the_step_that_a_division_finds(
            moments in prop::collection::vec(0_u64..40_000_000_000, 1..60),
        ) {
            let steps = Steps::between(3_000_000_000, 30_000_000_000, 200);
            let mut cursor = Cursor::new(steps);
            for at in moments {
                prop_assert_eq!(cursor.place(Moment::from_nanos(at)), steps.place(at));
            }
        }
    }
}
