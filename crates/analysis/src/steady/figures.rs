//! The figures of the steady window, to stand beside those of the whole run.

use serde::{Deserialize, Serialize};

use super::series::{Course, SentAnswer};
use crate::clustered::Clustered;
use crate::concurrency::{Concurrency, Flight};
use crate::estimate::Interval;
use crate::metric::{METRICS, Metric};
use crate::value::{ByMetric, Distribution};

/// Throughputs are of what came inside the window, latencies of the `ok` requests that were sent
/// inside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyFigures {
    /// Sent inside, and ended ok.
    pub requests: u64,
    /// Requests that ended ok inside.
    pub request_throughput: Option<f64>,
    /// Tokens that came inside; null where answers have none.
    pub output_throughput: Option<f64>,
    /// With the input of the answers that began inside.
    pub total_throughput: Option<f64>,
    /// Where the true throughputs lie; null where the window is too short to tell.
    #[serde(default)]
    pub intervals: ThroughputIntervals,
    pub concurrency_mean: Option<f64>,
    #[serde(flatten)]
    pub latencies: ByMetric<Distribution>,
}

/// With 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputIntervals {
    pub request_throughput: Option<Interval>,
    pub output_throughput: Option<Interval>,
    pub total_throughput: Option<Interval>,
}

impl SteadyFigures {
    pub(super) fn over(window: Flight, course: &Course<'_>) -> Self {
        let inside = |at_ns: u64| (window.from_ns..window.to_ns).contains(&at_ns);
        let length_ns = window.to_ns.saturating_sub(window.from_ns);
        let per_s = |count: f64| (0 < length_ns).then(|| count / (length_ns as f64 / 1e9));
        let sent: Vec<&SentAnswer> =
            course.answers.iter().filter(|answer| inside(answer.sent_ns)).collect();
        let latency = |metric: &'static Metric| {
            metric.per_request().filter(|latency| latency.in_steady_window)?;
            let values = sent.iter().filter_map(|answer| answer.latencies.get(metric)).collect();
            let nothing =
                || Distribution::nothing("no ok answer to a request sent inside shows it");
            let found = Clustered::one_each(values).distribution().unwrap_or_else(nothing);
            Some((metric, found))
        };
        let ended = course.answers.iter().filter(|answer| inside(answer.ended_ns)).count();
        let came = course.deliveries.iter().filter(|(at_ns, _)| inside(*at_ns));
        let output: f64 = came.map(|(_, tokens)| tokens as f64).sum();
        let begun = course.answers.iter().filter(|answer| answer.first_ns.is_some_and(inside));
        let input: f64 = begun.map(|answer| answer.input_tokens as f64).sum();
        let flown: Vec<Flight> =
            course.flights.iter().filter_map(|flight| flight.within(window)).collect();
        let swept = Concurrency::sweep(&flown);
        let request_throughput = per_s(ended as f64);
        let output_throughput = per_s(output).filter(|_| course.generates);
        let total_throughput = per_s(input + output).filter(|_| course.generates);
        let part = course.evidence.within(window);
        Self {
            requests: sent.len() as u64,
            request_throughput,
            output_throughput,
            total_throughput,
            intervals: ThroughputIntervals {
                request_throughput: part.requests(request_throughput),
                output_throughput: part.output(output_throughput),
                total_throughput: part.total(total_throughput),
            },
            concurrency_mean: swept.and_then(|swept| per_s(swept.request_ns as f64 / 1e9)),
            latencies: METRICS.iter().copied().filter_map(latency).collect(),
        }
    }
}
