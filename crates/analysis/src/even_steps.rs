//! Time in a bounded number of even steps, as figures draw what was looked at every so often: null
//! where no look says anything.

use std::time::Duration;

use inferometer_model::Moment;

use crate::ruler::moment_to_ms;

const STEPS_MAX: u128 = 600;
const EVERY_BY_DEFAULT: Duration = Duration::from_secs(1);

pub(crate) struct EvenSteps {
    first: Moment,
    every_ns: u128,
    step_ns: u128,
    steps: usize,
}

impl EvenSteps {
    /// From the first look to the last; `every` is how often they were to come.
    pub(crate) fn between(first: Moment, last: Moment, every: Option<Duration>) -> Self {
        let every_ns = every.unwrap_or(EVERY_BY_DEFAULT).as_nanos().max(1);
        let span_ns = last.since(first).unwrap_or_default().as_nanos();
        // A whole number of periods to a step, so that no step is empty for its place alone.
        let periods = (span_ns / every_ns + 1).div_ceil(STEPS_MAX);
        let step_ns = every_ns * periods;
        let steps = usize::try_from(span_ns / step_ns + 1).unwrap_or(0);
        Self { first, every_ns, step_ns, steps }
    }

    pub(crate) fn first_ms(&self) -> f64 {
        moment_to_ms(self.first)
    }

    pub(crate) fn step_ms(&self) -> f64 {
        let step_ns = u64::try_from(self.step_ns).unwrap_or(u64::MAX);
        Duration::from_nanos(step_ns).as_secs_f64() * 1e3
    }

    /// The mean of each step's values; null for a step without. The last step takes what rounding
    /// put past it.
    pub(crate) fn means(
        &self,
        values: impl IntoIterator<Item = (Moment, f64)>,
    ) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0_u32); self.steps];
        for (at, value) in values {
            let place = self.step_of(at).min(self.steps.saturating_sub(1));
            if let Some((sum, count)) = sums.get_mut(place) {
                *sum += value;
                *count += 1;
            }
        }
        sums.into_iter().map(|(sum, count)| (0 < count).then(|| sum / f64::from(count))).collect()
    }

    /// Looks come a little after their tick; the edges of the steps lie half a period apart from the
    /// ticks, so that each finds its own.
    fn step_of(&self, at: Moment) -> usize {
        let since = at.since(self.first).unwrap_or_default().as_nanos();
        usize::try_from((since + self.every_ns / 2) / self.step_ns).unwrap_or(0)
    }
}
