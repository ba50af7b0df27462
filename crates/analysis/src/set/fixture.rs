//! Hand-made levels and runs for the tests of sets.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use inferometer_model::study::Level;

use super::findings::{Curve, Finding, Knee, Scalability};
use super::level::{AcrossRuns, LevelSummary, Tally};
use crate::fixture::calm;
use crate::judge::Verdict;
use crate::metric::{MetricValue, MetricValues};
use crate::run::{LoadFacts, ThinkFacts};
use crate::statistics::{Estimate, draws::Draws};
use crate::summary::{Summary, summarize};

/// Forty requests, all ok, on a closed loop of eight who were all there.
pub(crate) fn summary() -> Summary {
    with_users(8, Some(8.0))
}

/// Each value is that of one run, without an interval of its own.
pub(crate) fn across(values: &[f64]) -> AcrossRuns {
    let run = |value: &f64| {
        Ok(Estimate { value: *value, interval: None, n: 700, effective_n: None, certified: true })
    };
    AcrossRuns::from_runs(&values.iter().map(run).collect::<Vec<_>>())
}

pub(crate) fn level(
    concurrency: u32,
    quantities: impl IntoIterator<Item = (&'static str, AcrossRuns)>,
) -> LevelSummary {
    LevelSummary {
        level: Level::Concurrency(NonZeroU32::new(concurrency).unwrap()),
        verdict: Verdict::Valid,
        points: vec![0],
        left_out: Vec::new(),
        requests: Tally::default(),
        failed_share: None,
        cut: None,
        reached: None,
        partial: 0,
        served: None,
        enough: None,
        quantities: quantities
            .into_iter()
            .map(|(name, across)| (name.to_owned(), across))
            .collect::<BTreeMap<_, _>>(),
    }
}

/// Five runs at each level of a known curve, with a relative noise.
pub(crate) fn series(curve: impl Fn(f64) -> f64, levels: &[u32], noise: f64) -> Vec<LevelSummary> {
    let mut draws = Draws::new(11, 0);
    levels
        .iter()
        .map(|concurrency| {
            let truth = curve(f64::from(*concurrency));
            let values: Vec<f64> = (0..5).map(|_| truth * (1.0 + noise * draws.normal())).collect();
            level(*concurrency, [("output_throughput", across(&values))])
        })
        .collect()
}

/// What is found in a series.
pub(crate) struct Series<'a>(pub(crate) &'a [LevelSummary]);

impl Series<'_> {
    pub(crate) fn knee(&self) -> Finding<Knee> {
        Knee::find(&Curve::new(self.0))
    }

    pub(crate) fn scalability(&self) -> Finding<Scalability> {
        Scalability::find(&Curve::new(self.0), true)
    }
}

/// A closed loop of so many users, of whom so many were there at once.
pub(crate) fn with_users(asked: u32, most: Option<f64>) -> Summary {
    let mut changed = summarize(&calm());
    changed.run.load =
        LoadFacts::Closed { concurrency: asked, think: ThinkFacts::None, ramp_up_s: None };
    changed.metrics = changed_metrics(&changed, |name, found| match found {
        MetricValue::Scalar(scalar) if name == "concurrency_peak" => scalar.value = most,
        MetricValue::Scalar(_) | MetricValue::Distribution(_) => (),
    });
    changed
}

/// The same run with another output throughput.
pub(crate) fn with_throughput(summary: &Summary, value: f64) -> Summary {
    let mut changed = summary.clone();
    changed.metrics = changed_metrics(summary, |name, found| match found {
        MetricValue::Scalar(scalar) if name == "output_throughput" => scalar.value = Some(value),
        MetricValue::Scalar(_) | MetricValue::Distribution(_) => (),
    });
    changed
}

/// The same run with other times from schedule to the first token and to the last.
pub(crate) fn with_latencies(summary: &Summary, ttft_ms: f64, e2e_ms: f64) -> MetricValues {
    changed_metrics(summary, |name, found| {
        let MetricValue::Distribution(distribution) = found else { return };
        let value = match name {
            "ttft_schedule" => ttft_ms,
            "e2e_schedule" => e2e_ms,
            _ => return,
        };
        (distribution.mean, distribution.min) = (Some(value), Some(value));
    })
}

pub(crate) fn changed_metrics(
    summary: &Summary,
    change: impl Fn(&str, &mut MetricValue),
) -> MetricValues {
    let values = summary.metrics.iter().map(|(metric, value)| {
        let mut value = value.clone();
        change(metric.name, &mut value);
        (metric, value)
    });
    values.collect()
}
