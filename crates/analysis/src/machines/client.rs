//! The client's machine over a run.

use inferometer_model::telemetry::ClientSample;
use inferometer_model::{Moment, Observations};
use serde::{Deserialize, Serialize};

use super::is_inside;
use crate::even_steps::EvenSteps;
use crate::server::GaugeFigures;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Inside the run.
    pub looks: u64,
    pub cpu_share: Option<GaugeFigures>,
    pub steal_share: Option<GaugeFigures>,
    pub own_cpus: Option<GaugeFigures>,
    /// Of all interfaces, loopback included, between the first look and the last; null where a total
    /// fell.
    pub received_bytes_per_s: Option<f64>,
    pub sent_bytes_per_s: Option<f64>,
    pub memory_available_bytes_min: Option<u64>,
    #[serde(default)]
    pub timeline: ClientTimeline,
}

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientTimeline {
    /// Of the first step's beginning, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    pub cpu_share: Vec<Option<f64>>,
    pub own_cpus: Vec<Option<f64>>,
    /// Over the time since the look before; the step of the later one has it.
    pub received_bytes_per_s: Vec<Option<f64>>,
    pub sent_bytes_per_s: Vec<Option<f64>>,
}

impl ClientFigures {
    /// `None` where nobody looked.
    pub(super) fn of(observations: &Observations) -> Option<Self> {
        let samples = &observations.machines.client;
        samples.first()?;
        let inside: Vec<ClientSample> =
            samples.iter().filter(|it| is_inside(observations, it.at)).copied().collect();
        let gauge = |of: fn(&ClientSample) -> Option<f64>| {
            GaugeFigures::of_values(inside.iter().filter_map(of))
        };
        Some(Self {
            looks: inside.len() as u64,
            cpu_share: gauge(|sample| sample.cpu_share),
            steal_share: gauge(|sample| sample.steal_share),
            own_cpus: gauge(|sample| sample.own_cpus),
            received_bytes_per_s: growth(&inside, |sample| sample.received_bytes),
            sent_bytes_per_s: growth(&inside, |sample| sample.sent_bytes),
            memory_available_bytes_min: inside
                .iter()
                .filter_map(|sample| sample.memory_available_bytes)
                .min(),
            timeline: ClientTimeline::of(samples, observations),
        })
    }
}

impl ClientTimeline {
    fn of(samples: &[ClientSample], observations: &Observations) -> Self {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return Self::default();
        };
        let every = observations.manifest.spec.telemetry.as_ref().map(|spec| spec.every);
        let steps = EvenSteps::between(first.at, last.at, every);
        let gauge = |of: fn(&ClientSample) -> Option<f64>| {
            steps.means(samples.iter().filter_map(|sample| Some((sample.at, of(sample)?))))
        };
        let rate = |of: fn(&ClientSample) -> Option<u64>| {
            let pairs = samples.windows(2);
            steps.means(pairs.filter_map(|pair| Some((pair[1].at, growth(pair, of)?))))
        };
        Self {
            from_ms: steps.first_ms(),
            step_ms: steps.step_ms(),
            cpu_share: gauge(|sample| sample.cpu_share),
            own_cpus: gauge(|sample| sample.own_cpus),
            received_bytes_per_s: rate(|sample| sample.received_bytes),
            sent_bytes_per_s: rate(|sample| sample.sent_bytes),
        }
    }
}

/// What a total grew by in each second, from the first look to the last.
fn growth(samples: &[ClientSample], of: fn(&ClientSample) -> Option<u64>) -> Option<f64> {
    let told: Vec<(Moment, u64)> =
        samples.iter().filter_map(|sample| Some((sample.at, of(sample)?))).collect();
    let ((from, first), (to, last)) = (told.first()?, told.last()?);
    if told.windows(2).any(|pair| pair[1].1 < pair[0].1) {
        return None;
    }
    let seconds = to.since(*from)?.as_secs_f64();
    (0.0 < seconds).then(|| (last - first) as f64 / seconds)
}
