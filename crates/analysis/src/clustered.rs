//! The values of one metric, request by request in the order of time, and what they come to with
//! their doubt. The values of one request resemble each other, and so do neighbours in time.

use crate::estimate::Interval;
use crate::figures::curve;
use crate::metric::Missing;
use crate::sample::{Percentile, Sample};
use crate::statistics::series::{Cluster, Judged, mean_interval, quantile_interval, tempered};
use crate::value::{Distribution, Intervals};

/// The requests come in the order of time; those without a value are left out.
#[derive(Debug, Default)]
pub(crate) struct Clustered {
    values: Vec<f64>,
    /// Measurements that each value stands for; empty while each stands for one.
    counts: Vec<u64>,
    /// How many values each request has.
    lengths: Vec<u32>,
    /// Then it has no lengths.
    one_each: bool,
    /// Values whose request has ended.
    ended: usize,
}

/// The distribution of one metric, or why there is none, and the curve that is drawn of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) found: Result<Distribution, Missing>,
    /// Shares and values.
    pub(crate) curve: Vec<(f64, f64)>,
}

impl Clustered {
    /// One value of each request.
    pub(crate) fn one_each(values: Vec<f64>) -> Self {
        Self { values, one_each: true, ..Self::default() }
    }

    /// Many values of each request, at most so many in all.
    pub(crate) fn pooled(at_most: usize) -> Self {
        Self { values: Vec::with_capacity(at_most), ..Self::default() }
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.push_counted(value, 1);
    }

    pub(crate) fn push_counted(&mut self, value: f64, count: u64) {
        if count != 1 && self.counts.is_empty() {
            self.counts.resize(self.values.len(), 1);
        }
        if count != 1 || !self.counts.is_empty() {
            self.counts.push(count);
        }
        self.values.push(value);
    }

    /// What was pushed since the last call belongs to one request.
    pub(crate) fn end_request(&mut self) {
        let length = self.values.len() - self.ended;
        if 0 < length {
            self.lengths.push(u32::try_from(length).unwrap_or(u32::MAX));
            self.ended = self.values.len();
        }
    }

    /// `None` without values.
    pub(crate) fn distribution(self) -> Option<Distribution> {
        self.sample().map(|sample| self.judged(&sample))
    }

    /// The distribution with its curve: the values are sorted once for both. `None` without values.
    pub(crate) fn series(&self) -> Option<Series> {
        let sample = self.sample()?;
        Some(Series { found: Ok(self.judged(&sample)), curve: curve(&sample) })
    }

    /// The values in the order in which they came, and the measurements that each stands for; no
    /// counts where each stands for one.
    pub(crate) fn in_order(&self) -> (&[f64], &[u64]) {
        (&self.values, &self.counts)
    }

    fn judged(&self, sample: &Sample) -> Distribution {
        let mut found = Distribution::of(sample);
        let by_request = self.clusters(|value| value);
        if let Some(judged) = mean_interval(&by_request) {
            let variance = found.std.map_or(0.0, |std| std * std);
            found.effective_n = Some(self.effective_n(&judged, &by_request, variance));
            // No mean lies below what a value cannot.
            let least = sample.min().min(0.0);
            found.intervals.mean =
                judged.interval.map(|interval| interval.clamped(least, f64::INFINITY));
        }
        let mut judged = Percentile::ALL.map(|percentile| self.percentile(percentile, sample));
        tempered(&mut judged);
        for (percentile, judged) in Percentile::ALL.into_iter().zip(judged) {
            let floor = percentile.certified_from();
            let enough = |judged: &Judged| floor as f64 <= judged.effective_n;
            match judged.filter(enough).filter(|_| floor <= found.n) {
                Some(judged) => *found.intervals.of_percentile(percentile) = judged.interval,
                None if found.not_certified.contains(&percentile) => {}
                None => found.not_certified.push(percentile),
            }
        }
        found.not_certified.sort_unstable();
        found
    }

    /// The early-stopping bound takes samples to be independent, so their effective number has to pass
    /// it, and not only their number.
    fn percentile(&self, percentile: Percentile, sample: &Sample) -> Option<Judged> {
        let estimate = sample.percentile(percentile);
        let below = if estimate < sample.max() {
            self.clusters(|value| f64::from(u8::from(value <= estimate)))
        } else {
            // That every value is at most the largest says nothing about how often it is reached.
            self.clusters(|value| f64::from(u8::from(value < estimate)))
        };
        quantile_interval(sample, &below, percentile.probability())
    }

    /// In values. The mean is judged in requests, each of which may bring many: the variance that
    /// single values have by themselves says how many of them its doubt is worth.
    fn effective_n(&self, judged: &Judged, clusters: &[Cluster], variance: f64) -> f64 {
        if self.one_each {
            return judged.effective_n;
        }
        let requests = clusters.len() as f64;
        let count: f64 = clusters.iter().map(|cluster| cluster.count).sum();
        let mean = clusters.iter().map(|cluster| cluster.sum).sum::<f64>() / count;
        let apart = |cluster: &Cluster| cluster.sum - mean * cluster.count;
        let squares: f64 = clusters.iter().map(|cluster| apart(cluster) * apart(cluster)).sum();
        let between = squares / (requests - 1.0).max(1.0);
        if between <= 0.0 {
            return judged.effective_n;
        }
        let values_each = count / requests;
        let worth = values_each * values_each * variance / between;
        (judged.effective_n * worth).clamp(1.0, count.max(1.0))
    }

    fn sample(&self) -> Option<Sample> {
        if self.counts.is_empty() {
            return Sample::new(self.values.clone());
        }
        Sample::counted(self.values.iter().copied().zip(self.counts.iter().copied()).collect())
    }

    /// The sums of a term of each value, by request.
    fn clusters(&self, term: impl Fn(f64) -> f64) -> Vec<Cluster> {
        if self.one_each {
            return self.values.iter().map(|value| Cluster::of(term(*value))).collect();
        }
        let mut from = 0;
        let of_request = |length: &u32| {
            let range = from..from + *length as usize;
            from = range.end;
            let values = &self.values[range.clone()];
            if self.counts.is_empty() {
                let sum = values.iter().map(|value| term(*value)).sum();
                return Cluster { count: f64::from(*length), sum };
            }
            let counts = &self.counts[range];
            let weighed =
                values.iter().zip(counts).map(|(value, count)| term(*value) * *count as f64);
            Cluster { count: counts.iter().map(|count| *count as f64).sum(), sum: weighed.sum() }
        };
        self.lengths.iter().map(of_request).collect()
    }
}

impl Intervals {
    fn of_percentile(&mut self, percentile: Percentile) -> &mut Option<Interval> {
        match percentile {
            Percentile::P50 => &mut self.p50,
            Percentile::P90 => &mut self.p90,
            Percentile::P95 => &mut self.p95,
            Percentile::P99 => &mut self.p99,
            Percentile::P999 => &mut self.p999,
        }
    }
}

#[cfg(test)]
mod tests;
