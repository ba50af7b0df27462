//! The server over time, as a figure draws it: a bounded number of even steps, null where no
//! scrape says anything.

use std::time::Duration;

use inferometer_model::Observations;
use inferometer_model::telemetry::TelemetrySample;
use serde::{Deserialize, Serialize};

use super::counters::Segments;

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Of the first step's beginning, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    /// Gauges are means of the scrapes in a step.
    pub running: Vec<Option<f64>>,
    pub waiting: Vec<Option<f64>>,
    pub kv_usage: Vec<Option<f64>>,
    /// Rates are over the time since the scrape before; the step of the later one has it.
    pub prompt_tokens_per_s: Vec<Option<f64>>,
    pub generation_tokens_per_s: Vec<Option<f64>>,
}

const STEPS_MAX: u128 = 600;
const STEP_BY_DEFAULT: Duration = Duration::from_secs(1);

impl Timeline {
    pub(super) fn of(
        samples: &[TelemetrySample],
        segments: &Segments<'_>,
        observations: &Observations,
    ) -> Self {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return Self::default();
        };
        let every = observations.manifest.spec.telemetry.as_ref().map(|spec| spec.every);
        let every_ns = every.unwrap_or(STEP_BY_DEFAULT).as_nanos().max(1);
        let span_ns = last.at.since(first.at).unwrap_or_default().as_nanos();
        // A whole number of periods to a step, so that no step is empty for its place alone.
        let periods = (span_ns / every_ns + 1).div_ceil(STEPS_MAX);
        let step_ns = every_ns * periods;
        let steps = usize::try_from(span_ns / step_ns + 1).unwrap_or(0);
        // Scrapes come a little after their tick; the edges of the steps lie half a period apart
        // from the ticks, so that each finds its own.
        let step_of = |sample: &TelemetrySample| {
            let since = sample.at.since(first.at).unwrap_or_default().as_nanos();
            usize::try_from((since + every_ns / 2) / step_ns).unwrap_or(0)
        };
        let column = |values: Vec<(usize, f64)>| means(steps, &values);
        let gauge = |of: fn(&TelemetrySample) -> Option<f64>| {
            column(samples.iter().filter_map(|s| Some((step_of(s), of(s)?))).collect())
        };
        let rate = |of: fn(&TelemetrySample) -> Option<f64>| {
            let rates = segments.pairs().filter_map(|(before, sample)| {
                let seconds = sample.at.since(before.at)?.as_secs_f64();
                let grown = of(sample)? - of(before)?;
                (0.0 < seconds).then(|| (step_of(sample), grown / seconds))
            });
            column(rates.collect())
        };
        Self {
            from_ms: crate::ruler::moment_to_ms(first.at),
            step_ms: Duration::from_nanos(u64::try_from(step_ns).unwrap_or(u64::MAX)).as_secs_f64()
                * 1e3,
            running: gauge(|sample| sample.gauges.running),
            waiting: gauge(|sample| sample.gauges.waiting),
            kv_usage: gauge(|sample| sample.gauges.kv_usage),
            prompt_tokens_per_s: rate(|sample| sample.counters.prompt_tokens),
            generation_tokens_per_s: rate(|sample| sample.counters.generation_tokens),
        }
    }
}

/// The mean of each step's values; null for a step without. The last step takes what rounding put
/// past it.
fn means(steps: usize, values: &[(usize, f64)]) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u32); steps];
    for (step, value) in values {
        let place = (*step).min(steps.saturating_sub(1));
        if let Some((sum, count)) = sums.get_mut(place) {
            *sum += value;
            *count += 1;
        }
    }
    sums.into_iter().map(|(sum, count)| (0 < count).then(|| sum / f64::from(count))).collect()
}
