//! The values of one metric, request by request in the order of time, and what they come to with
//! their confidence intervals. The values of one request resemble each other, and so do neighbours in time.

use inferometer_model::Outcome;
use inferometer_model::records::TimeOrder;

use crate::figures::{Curve, GapSteps, GapsFigure, Steps};
use crate::metric::{self, Distribution, Intervals, Missing};
use crate::record::{Output, Ruler};
use crate::statistics::series::{Cluster, Judged, mean_interval, quantile_interval, tempered};
use crate::statistics::{Interval, Percentile, Probability, Sample};

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
    pub(crate) curve: Curve,
}

impl Clustered {
    /// One value of each request.
    pub(crate) fn one_each(values: Vec<f64>) -> Self {
        Self { values, one_each: true, ..Self::default() }
    }

    /// Many values of each request, at most so many in all.
    pub(crate) fn pooled(at_most: u64) -> Self {
        let at_most = usize::try_from(at_most).unwrap_or(0);
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

    /// `None` without values. There are intervals only with the number of batches that they come from.
    pub(crate) fn distribution(self, batches: Option<usize>) -> Option<Distribution> {
        self.sample().map(|sample| self.judged(&sample, batches))
    }

    /// The distribution with its curve: the values are sorted once for both. `None` without values.
    pub(crate) fn series(&self, batches: Option<usize>) -> Option<Series> {
        let sample = self.sample()?;
        Some(Series { found: Ok(self.judged(&sample, batches)), curve: Curve::new(&sample) })
    }

    /// The values in the order in which they came, and the measurements that each stands for; no
    /// counts where each stands for one.
    pub(crate) fn in_order(&self) -> (&[f64], &[u64]) {
        (&self.values, &self.counts)
    }

    fn judged(&self, sample: &Sample, batches: Option<usize>) -> Distribution {
        let mut found = Distribution::from_sample(sample);
        let by_request = self.clusters(|value| value);
        let (has_basis, batches) = (batches.is_some(), batches.unwrap_or(0));
        if let Some(judged) = mean_interval(by_request.clone(), batches) {
            let variance = found.std.map_or(0.0, |std| std * std);
            found.effective_n = Some(self.effective_n(&judged, by_request, variance));
            // No mean lies below what a value cannot.
            let least = sample.min().min(0.0);
            let interval = judged.interval.map(|it| stretched(it, sample));
            let interval = interval.map(|it| it.clamped(least, f64::INFINITY));
            found.intervals.mean = interval.filter(|_| has_basis);
        }
        let percentile = |percentile| self.percentile(percentile, sample, batches);
        let mut judged = Percentile::ALL.map(percentile);
        tempered(&mut judged);
        let Intervals { p50, p90, p95, p99, p999, .. } = &mut found.intervals;
        let intervals = [p50, p90, p95, p99, p999];
        for ((percentile, judged), interval) in
            Percentile::ALL.into_iter().zip(judged).zip(intervals)
        {
            let floor = percentile.certified_from();
            let enough = |judged: &Judged| floor as f64 <= judged.effective_n;
            match judged.filter(enough).filter(|_| floor <= found.n) {
                Some(judged) => *interval = judged.interval.filter(|_| has_basis),
                None if found.not_certified.contains(&percentile) => {}
                None => found.not_certified.push(percentile),
            }
        }
        found.not_certified.sort_unstable();
        found
    }

    /// The early-stopping bound takes samples to be independent, so their effective number has to pass
    /// it, and not only their number.
    fn percentile(
        &self,
        percentile: Percentile,
        sample: &Sample,
        batches: usize,
    ) -> Option<Judged> {
        let estimate = sample.percentile(percentile);
        // That every value is at most the largest says nothing about how often it is reached.
        let is_largest = sample.max() <= estimate;
        let is_below = move |value: f64| value < estimate || (value <= estimate && !is_largest);
        let below = self.clusters(move |value| f64::from(u8::from(is_below(value))));
        quantile_interval(sample, below, percentile.probability(), batches)
    }

    /// In values. The mean is judged in requests, each of which may bring many: the variance that
    /// single values have by themselves says how many of them its error is worth.
    fn effective_n(
        &self,
        judged: &Judged,
        clusters: impl Iterator<Item = Cluster> + Clone,
        variance: f64,
    ) -> f64 {
        if self.one_each {
            return judged.effective_n;
        }
        let requests = self.lengths.len() as f64;
        let count: f64 = clusters.clone().map(|cluster| cluster.count).sum();
        let mean = clusters.clone().map(|cluster| cluster.sum).sum::<f64>() / count;
        let apart = |cluster: &Cluster| cluster.sum - mean * cluster.count;
        let squares: f64 = clusters.map(|cluster| apart(&cluster) * apart(&cluster)).sum();
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

    /// The sums of a term of each value, by request. They are computed when they are needed: a list of
    /// them would be longer than that of the values.
    fn clusters(&self, term: impl Fn(f64) -> f64 + Clone) -> impl Iterator<Item = Cluster> + Clone {
        let requests = if self.one_each { self.values.len() } else { self.lengths.len() };
        let mut from = 0;
        let of_request = move |request: usize| {
            if self.one_each {
                return Cluster::single(term(self.values[request]));
            }
            let length = self.lengths[request];
            let range = from..from + length as usize;
            from = range.end;
            let values = &self.values[range.clone()];
            if self.counts.is_empty() {
                let sum = values.iter().map(|value| term(*value)).sum();
                return Cluster { count: f64::from(length), sum };
            }
            let counts = &self.counts[range];
            let weighed =
                values.iter().zip(counts).map(|(value, count)| term(*value) * *count as f64);
            Cluster { count: counts.iter().map(|count| *count as f64).sum(), sum: weighed.sum() }
        };
        (0..requests).map(of_request)
    }
}

/// The interval of a mean with its upper end moved away from the fast requests. The time in a queue grows
/// with one over what the server has to spare, and a run that met few queues shows neither how long they
/// become nor how much they vary. Therefore the upper end is as far away in the inverse of the excess over
/// the first quartile as the lower end is.
fn stretched(interval: Interval, sample: &Sample) -> Interval {
    /// The share of the way to an infinite end that is shown.
    const FURTHEST: f64 = 0.8;
    let fast = sample.quantile(Probability::QUARTER);
    let excess = sample.mean() - fast;
    if excess <= 0.0 {
        return interval;
    }
    let share = (interval.half_width() / excess).min(FURTHEST);
    Interval { high: interval.high.max(fast + excess / (1.0 - share)), ..interval }
}

/// Gaps between the arrivals of one answer.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    pub(crate) icl: Option<Series>,
    pub(crate) itl: Option<Series>,
    /// A gap had no token count, so per-token gaps would be of some requests only.
    pub(crate) itl_unknown: bool,
    /// The gaps between tokens, or between arrivals where tokens are unknown.
    pub(crate) figure: Option<GapsFigure>,
}

/// What the arrivals after the first brought, over all answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TokensEach {
    One,
    Several,
    Unknown,
}

impl Gaps {
    /// `events` is how many the records have in all, and `chart` the steps of the figure. Disorder is
    /// counted elsewhere.
    pub(crate) fn gather(
        records: &TimeOrder<'_>,
        (chart, events): (Option<Steps>, u64),
        ruler: &Ruler,
        batches: Option<usize>,
    ) -> Self {
        let mut own_ruler = ruler.clone();
        let mut icl = Clustered::pooled(events);
        let mut steps = GapSteps::new(chart);
        let mut tokens = TokensEach::One;
        each_answer(records, |output| {
            for (arrival, gap, _) in output.gaps(&mut own_ruler) {
                let Some(gap) = gap else { continue };
                icl.push(gap);
                steps.push(arrival.at);
                tokens = tokens.max(match arrival.tokens {
                    Some(1) => TokensEach::One,
                    Some(_) => TokensEach::Several,
                    None => TokensEach::Unknown,
                });
            }
            icl.end_request();
        });
        let series = icl.series(batches);
        let (itl, figure) = match tokens {
            TokensEach::One => (series.clone(), steps.figure(&metric::ITL, icl.in_order())),
            TokensEach::Several => {
                drop(icl);
                drop(steps);
                per_token(records, (chart, events), ruler.clone(), batches)
            }
            TokensEach::Unknown => (None, steps.figure(&metric::ICL, icl.in_order())),
        };
        Self { icl: series, itl, itl_unknown: tokens == TokensEach::Unknown, figure }
    }
}

/// The same gaps for each token of the later arrival.
fn per_token(
    records: &TimeOrder<'_>,
    (chart, events): (Option<Steps>, u64),
    mut ruler: Ruler,
    batches: Option<usize>,
) -> (Option<Series>, Option<GapsFigure>) {
    let mut steps = GapSteps::new(chart);
    let mut itl = Clustered::pooled(events);
    each_answer(records, |output| {
        for (arrival, _, per_token) in output.gaps(&mut ruler) {
            if let Some((gap, tokens)) = per_token.zip(arrival.tokens) {
                itl.push_counted(gap, tokens);
                steps.push(arrival.at);
            }
        }
        itl.end_request();
    });
    (itl.series(batches), steps.figure(&metric::ITL, itl.in_order()))
}

/// How long each read lay in the kernel, where it carries a stamp.
pub(crate) fn client_lag(
    records: &TimeOrder<'_>,
    reads: u64,
    ruler: &mut Ruler,
    batches: Option<usize>,
) -> Option<Series> {
    let mut lag = Clustered::pooled(reads);
    for record in records {
        for read in &record.reads {
            let Some(kernel) = read.kernel else { continue };
            if let Some(ms) = ruler.ms(kernel, read.user) {
                lag.push(ms);
            }
        }
        lag.end_request();
    }
    lag.series(batches)
}

/// An answer to a request that was never sent contradicts itself, and has no gaps.
fn each_answer(records: &TimeOrder<'_>, mut visit: impl FnMut(&Output)) {
    let mut output = Output::default();
    for record in records {
        if record.ending.outcome == Outcome::Ok && record.sent.is_some() {
            output.read(&record, &mut Ruler::new(0));
            visit(&output);
        }
    }
}

#[cfg(test)]
mod tests;
