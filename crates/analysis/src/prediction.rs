//! The intervals of predictions: a simulation with a learned profile knows how far it was from loads
//! that it had not seen, and its intervals say so.

use inferometer_model::observations::{ModelError, Prediction};

use crate::metric::{self, Distribution, Metric, MetricValue, MetricValues};
use crate::statistics::Interval;
use crate::steady::SteadyState;

/// Widens every interval by the model's error, and gives one to every value that has none.
pub(crate) fn widen(prediction: &Prediction, metrics: &mut MetricValues, steady: &mut SteadyState) {
    let half_width = |metric: &Metric| half_width(&prediction.half_width, metric);
    for (metric, value) in metrics.iter_mut() {
        let Some(share) = half_width(metric) else { continue };
        match value {
            MetricValue::Distribution(distribution) => widen_all(distribution, share),
            MetricValue::Scalar(scalar) => {
                scalar.interval = around(scalar.value, scalar.interval, share);
            }
        }
    }
    let Some(figures) = steady.figures.as_deref_mut() else { return };
    for (metric, distribution) in figures.latencies.iter_mut() {
        if let Some(share) = half_width(metric) {
            widen_all(distribution, share);
        }
    }
    let Some(share) = half_width(&metric::OUTPUT_THROUGHPUT) else { return };
    let intervals = &mut figures.intervals;
    for (value, interval) in [
        (figures.request_throughput, &mut intervals.request_throughput),
        (figures.output_throughput, &mut intervals.output_throughput),
        (figures.total_throughput, &mut intervals.total_throughput),
    ] {
        *interval = around(value, *interval, share);
    }
}

/// How far off a metric may be: as the figure that it follows. E2E is the number in flight over the
/// throughput, and a cost is a price over it.
fn half_width(of: &ModelError, metric: &Metric) -> Option<f64> {
    match metric.predicted_as()? {
        followed if followed == metric::TTFT.name => of.ttft,
        followed if followed == metric::TPOT.name => of.tpot,
        _ => of.output_throughput,
    }
}

fn widen_all(distribution: &mut Distribution, share: f64) {
    distribution.set_intervals(|own, statistic| {
        around(statistic.stored(own), own.intervals.get(statistic), share)
    });
}

/// Chance and the model's error are independent, so the squares of their logarithms add up.
fn around(value: Option<f64>, chance: Option<Interval>, share: f64) -> Option<Interval> {
    let value = value.filter(|value| 0.0 < *value)?;
    let model = libm::log(1.0 + share);
    let distance = |end: Option<f64>| {
        let end = end.filter(|end| 0.0 < *end).unwrap_or(value);
        libm::hypot(model, libm::log(end / value))
    };
    let (low, high) = (chance.map(|it| it.low), chance.map(|it| it.high));
    Interval::new(value * libm::exp(-distance(low)), value * libm::exp(distance(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_and_the_error_of_the_model_add_up_as_squares() {
        let of = |chance, share| around(Some(100.0), chance, share).unwrap();
        let model = of(None, 0.1);
        assert!((model.low - 100.0 / 1.1).abs() < 1e-9 && (model.high - 110.0).abs() < 1e-9);
        let both = of(Interval::new(90.0, 110.0), 0.1);
        let wanted = 100.0 * libm::exp(libm::log(1.1) * core::f64::consts::SQRT_2);
        assert!((both.high - wanted).abs() < 1e-9, "{both:?}");
        assert!(both.low < 90.0);
        assert_eq!(around(None, None, 0.1), None);
        assert_eq!(around(Some(0.0), None, 0.1), None, "no share of nothing");
    }

    #[test]
    fn each_metric_follows_its_figure_and_counts_follow_none() {
        let error = ModelError { output_throughput: Some(0.1), ttft: Some(0.3), tpot: Some(0.2) };
        let of = |metric| half_width(&error, metric);
        assert_eq!(of(&metric::TTFT), Some(0.3));
        assert_eq!(of(&metric::ITL), Some(0.2));
        assert_eq!(of(&metric::E2E), Some(0.1));
        assert_eq!(of(&metric::ERROR_RATE), None);
    }
}
