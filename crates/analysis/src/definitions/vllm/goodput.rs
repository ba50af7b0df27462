//! That tool's goodput of a run that promised something of each request.

use inferometer_model::Observations;

use crate::promise::Promise;
use crate::quantity::LatencyOrigin;

/// What goodput is judged by, in milliseconds. A request of one token has a TPOT of zero there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) ttft: f64,
    pub(super) tpot: f64,
    pub(super) e2el: f64,
}

/// What a promise is about, in milliseconds.
type Latency = fn(&Answer) -> f64;

/// The promises as limits of that tool, and how many requests kept them.
#[derive(Debug)]
pub(super) struct Goodput {
    limits: Vec<(Promise, Latency)>,
    good: u64,
}

impl Goodput {
    /// `None` where nothing was promised of each request, or something that the tool has no limit
    /// for. Its latencies count from the sending, whatever ours count from.
    pub(super) fn of(observations: &Observations) -> Option<Self> {
        let slos = observations.manifest.spec.slos.iter();
        let promises = slos.filter_map(|slo| Promise::of(slo, LatencyOrigin::Sent).ok());
        let limits: Vec<_> = promises
            .filter(Promise::is_per_request)
            .map(|promise| Some((promise, latency(promise.metric.name)?)))
            .collect::<Option<_>>()?;
        (!limits.is_empty()).then_some(Self { limits, good: 0 })
    }

    pub(super) fn add(&mut self, answer: &Answer) {
        let is_good = self.limits.iter().all(|(promise, of)| promise.is_kept_by(of(answer)));
        self.good += u64::from(is_good);
    }

    pub(super) fn count(&self) -> u64 {
        self.good
    }
}

fn latency(metric: &str) -> Option<fn(&Answer) -> f64> {
    match metric {
        "ttft" => Some(|answer| answer.ttft),
        "tpot" => Some(|answer| answer.tpot),
        "e2e" => Some(|answer| answer.e2el),
        _ => None,
    }
}
