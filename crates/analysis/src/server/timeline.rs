//! The server over time, as a figure draws it: a bounded number of even steps, null where no
//! scrape says anything.

use inferometer_model::Observations;
use inferometer_model::telemetry::TelemetrySample;
use serde::{Deserialize, Serialize};

use super::counters::Segments;
use crate::even_steps::EvenSteps;

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
        let steps = EvenSteps::between(first.at, last.at, every);
        let gauge = |of: fn(&TelemetrySample) -> Option<f64>| {
            steps.means(samples.iter().filter_map(|sample| Some((sample.at, of(sample)?))))
        };
        let rate = |of: fn(&TelemetrySample) -> Option<f64>| {
            let rates = segments.pairs().filter_map(|(before, sample)| {
                let seconds = sample.at.since(before.at)?.as_secs_f64();
                let grown = of(sample)? - of(before)?;
                (0.0 < seconds).then(|| (sample.at, grown / seconds))
            });
            steps.means(rates)
        };
        Self {
            from_ms: steps.first_ms(),
            step_ms: steps.step_ms(),
            running: gauge(|sample| sample.gauges.running),
            waiting: gauge(|sample| sample.gauges.waiting),
            kv_usage: gauge(|sample| sample.gauges.kv_usage),
            prompt_tokens_per_s: rate(|sample| sample.counters.prompt_tokens),
            generation_tokens_per_s: rate(|sample| sample.counters.generation_tokens),
        }
    }
}
