//! The value of a metric: a distribution or a single number, or the reason why there is none.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::metric::{METRICS, Metric, Statistic};
use crate::statistics::{Interval, Percentile, Sample};

/// The statistics of one latency, in milliseconds. Everything is null when `n` is zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub mean: Option<f64>,
    /// The sample standard deviation (n − 1); null for a single value.
    pub std: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub n: u64,
    /// Independent values that would tell as much about the mean; null when it is not known.
    pub effective_n: Option<f64>,
    /// Where the true values lie, judged from this run alone.
    #[serde(default)]
    pub intervals: Intervals,
    /// Percentiles that `n`, or `effective_n` where it is known, is too small for: they have a number,
    /// and no promise about it.
    pub not_certified: Vec<Percentile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where the statistics of one distribution lie with 95 % confidence; null where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    pub mean: Option<Interval>,
    pub p50: Option<Interval>,
    pub p90: Option<Interval>,
    pub p95: Option<Interval>,
    pub p99: Option<Interval>,
    pub p999: Option<Interval>,
}

/// One number, with its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    pub value: Option<f64>,
    /// Where the true value lies, judged from this run alone; null where it is not known.
    pub interval: Option<Interval>,
    pub unit: String,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An assumption that went into a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// The tokens of the first arrival are not known; one was taken.
    #[serde(rename = "k1_assumed")]
    FirstArrivalAssumed,
}

/// A distribution has statistics and a single number has a unit, so JSON needs no tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a run has a few dozen of them")]
pub enum MetricValue {
    Distribution(Distribution),
    Scalar(Scalar),
}

/// Values of metrics, in the order of [`METRICS`]. In JSON a map from the keys of the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct ByMetric<T>(Vec<(&'static Metric, T)>);

/// The values of a run's metrics.
pub type MetricValues = ByMetric<MetricValue>;

impl Distribution {
    pub fn from_sample(sample: &Sample) -> Self {
        let n = sample.count();
        let [p50, p90, p95, p99, p999] = Percentile::ALL.map(|it| Some(sample.percentile(it)));
        let is_short = |percentile: &Percentile| n < percentile.certified_from();
        Self {
            mean: Some(sample.mean()),
            std: sample.std_sample(),
            p50,
            p90,
            p95,
            p99,
            p999,
            min: Some(sample.min()),
            max: Some(sample.max()),
            n,
            not_certified: Percentile::ALL.into_iter().filter(is_short).collect(),
            ..Self::default()
        }
    }

    pub fn nothing(reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Self::default() }
    }

    pub fn percentile(&self, percentile: Percentile) -> Option<f64> {
        match percentile {
            Percentile::P50 => self.p50,
            Percentile::P90 => self.p90,
            Percentile::P95 => self.p95,
            Percentile::P99 => self.p99,
            Percentile::P999 => self.p999,
        }
    }

    pub fn is_certified(&self, percentile: Percentile) -> bool {
        0 < self.n && !self.not_certified.contains(&percentile)
    }

    /// Takes over the intervals of the same metric over another part of the run. Each is widened to the
    /// value here, which the start and the drain may have moved.
    pub(crate) fn adopt(&mut self, intervals: &Intervals) {
        self.set_intervals(|own, statistic| {
            let is_certified = match statistic {
                Statistic::Percentile(percentile) => own.is_certified(percentile),
                Statistic::Mean | Statistic::Max => true,
            };
            let interval = intervals.get(statistic).filter(|_| is_certified)?;
            Some(interval.including(statistic.stored(own)?))
        });
    }

    pub(crate) fn set_intervals(&mut self, of: impl Fn(&Self, Statistic) -> Option<Interval>) {
        let at = |percentile| of(self, Statistic::Percentile(percentile));
        let [p50, p90, p95, p99, p999] = Percentile::ALL.map(at);
        let mean = of(self, Statistic::Mean);
        self.intervals = Intervals { mean, p50, p90, p95, p99, p999 };
    }
}

impl Intervals {
    pub fn get(&self, statistic: Statistic) -> Option<Interval> {
        match statistic {
            Statistic::Mean => self.mean,
            // Nothing but the largest value bounds the largest value.
            Statistic::Max => None,
            Statistic::Percentile(Percentile::P50) => self.p50,
            Statistic::Percentile(Percentile::P90) => self.p90,
            Statistic::Percentile(Percentile::P95) => self.p95,
            Statistic::Percentile(Percentile::P99) => self.p99,
            Statistic::Percentile(Percentile::P999) => self.p999,
        }
    }
}

impl<T> ByMetric<T> {
    pub fn iter(&self) -> impl Iterator<Item = (&'static Metric, &T)> {
        self.0.iter().map(|(metric, value)| (*metric, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&'static Metric, &mut T)> {
        self.0.iter_mut().map(|(metric, value)| (*metric, value))
    }

    pub fn get(&self, metric: &Metric) -> Option<&T> {
        self.0.iter().find(|(known, _)| *known == metric).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, metric: &Metric) -> Option<&mut T> {
        self.0.iter_mut().find(|(known, _)| *known == metric).map(|(_, value)| value)
    }
}

impl<T> Default for ByMetric<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> IntoIterator for ByMetric<T> {
    type Item = (&'static Metric, T);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> FromIterator<(&'static Metric, T)> for ByMetric<T> {
    fn from_iter<I: IntoIterator<Item = (&'static Metric, T)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl MetricValues {
    /// The distribution of a metric, if it is one.
    pub fn distribution(&self, metric: &Metric) -> Option<&Distribution> {
        match self.get(metric)? {
            MetricValue::Distribution(distribution) => Some(distribution),
            MetricValue::Scalar(_) => None,
        }
    }

    /// The value of a metric, if it is a single number.
    pub fn scalar(&self, metric: &Metric) -> Option<&Scalar> {
        match self.get(metric)? {
            MetricValue::Scalar(scalar) => Some(scalar),
            MetricValue::Distribution(_) => None,
        }
    }
}

impl<T: Serialize> Serialize for ByMetric<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(metric, value)| (metric.key(), value)))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for ByMetric<T> {
    /// A metric that this version does not know is ignored: a newer version may have added it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
        let known =
            METRICS.iter().filter_map(|metric| Some((*metric, found.remove(metric.key())?)));
        let read = |value| T::deserialize(value).map_err(D::Error::custom);
        let values = known.map(|(metric, value)| Ok((metric, read(value)?)));
        values.collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests;
