//! Intervals of what one run measured. Neighbours in time resemble each other, and the values of one
//! request do too; an interval that takes them for independent is too narrow, often by far.

use std::borrow::Borrow;

use super::blocks::LongRun;
use super::proportion::wilson_at;
use super::{UPPER, runs, student};
use crate::statistics::{Interval, Probability, Sample};

/// The values of one request. A series of them is in the order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    pub count: f64,
    pub sum: f64,
}

/// Clusters in a list, or computed each time that they are needed.
pub trait Clusters: IntoIterator<Item: Borrow<Cluster>> + Clone {}

impl<C: IntoIterator<Item: Borrow<Cluster>> + Clone> Clusters for C {}

/// What a series says about a statistic of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// 95 %; `None` where the series is too short to bound both sides.
    pub interval: Option<Interval>,
    /// Independent values that would tell as much.
    pub effective_n: f64,
}

impl Cluster {
    /// A request that has one value.
    pub const fn single(value: f64) -> Self {
        Self { count: 1.0, sum: value }
    }
}

/// The mean of all values: Σ sum over Σ count; `batches` as in [`quantile_interval`]. Its effective
/// number counts requests, of which at most all are independent, since sums do not say how values differ
/// inside a request. Returns `None` without two requests that have values.
pub fn mean_interval(clusters: impl Clusters, batches: usize) -> Option<Judged> {
    let ratio = Ratio::from_clusters(clusters)?;
    let half = ratio.half_width(batches);
    Some(Judged {
        interval: Interval::new(ratio.value - half, ratio.value + half),
        effective_n: ratio.effective(ratio.naive_variance, ratio.clusters),
    })
}

/// The same of a share, where a cluster's sum is how many of its values succeeded: inside 0 to 1, and
/// of some width even where all succeeded. Its effective number counts values.
pub fn share_interval(clusters: impl Clusters) -> Option<Judged> {
    let ratio = Ratio::from_clusters(clusters)?;
    let share = ratio.value.clamp(0.0, 1.0);
    let effective_n = match share * (1.0 - share) {
        // Where nothing varies, nothing is known of the values of one request either.
        0.0 => ratio.clusters,
        alone => ratio.effective(alone / ratio.count, ratio.count),
    };
    let interval = wilson_at(share * effective_n, effective_n, ratio.reach());
    Some(Judged { interval, effective_n })
}

/// The quantile of `sorted` at `p`. `below` has, for each request, how many values it has and how many
/// of them are not above that quantile: the share of these is uncertain, and the sorted values
/// translate that into the quantile's own unit (Woodruff's interval). Its effective number counts
/// values; see [`tempered`].
///
/// The interval is the widest of three: by blocks as long as the memory that the series shows, as if
/// all requests were independent, and by the means of a few `batches`. A short series hides a long
/// memory, and only the last of these does not depend on seeing it.
pub fn quantile_interval(
    sorted: &Sample,
    below: impl Clusters,
    p: Probability,
    batches: usize,
) -> Option<Judged> {
    let ratio = Ratio::from_clusters(below)?;
    let share = p.share();
    let alone = share * (1.0 - share) / ratio.count;
    let effective_n = ratio.effective(alone, ratio.count);
    let half = ratio.half_width(batches);
    let at = |share: f64| Probability::new(share).map(|p| sorted.quantile(p));
    let ends = at(share - half).zip(at(share + half));
    let interval = ends.and_then(|(low, high)| Interval::new(low, high));
    Some(Judged { interval, effective_n })
}

/// The effective numbers of rising percentiles of one sample, each no larger than that of the one
/// before. A tail is seen through few values, and in a run that met few of its bursts they look more
/// independent than the body shows them to be.
pub fn tempered(rising: &mut [Option<Judged>]) {
    let mut least = f64::INFINITY;
    for judged in rising.iter_mut().flatten() {
        least = least.min(judged.effective_n);
        judged.effective_n = least;
    }
}

/// A ratio of two sums over requests.
struct Ratio {
    value: f64,
    error: f64,
    degrees: f64,
    /// What each request adds to the difference between the two sums.
    apart: Vec<f64>,
    /// Variance of the ratio if requests were independent.
    naive_variance: f64,
    clusters: f64,
    count: f64,
}

/// Requests without values say nothing.
fn used(clusters: impl Clusters) -> impl Iterator<Item = Cluster> {
    let clusters = clusters.into_iter().map(|cluster| *cluster.borrow());
    clusters.filter(|cluster| cluster.count > 0.0)
}

impl Ratio {
    fn from_clusters(clusters: impl Clusters) -> Option<Self> {
        let count: f64 = used(clusters.clone()).map(|cluster| cluster.count).sum();
        let sum: f64 = used(clusters.clone()).map(|cluster| cluster.sum).sum();
        if !(count > 0.0 && count.is_finite() && sum.is_finite()) {
            return None;
        }
        let value = sum / count;
        let differences = used(clusters).map(|cluster| cluster.sum - value * cluster.count);
        // A list that grows is copied, and for that moment there are two of it.
        let mut apart = Vec::with_capacity(differences.size_hint().1.unwrap_or(0));
        apart.extend(differences);
        let long_run = LongRun::estimate(&apart)?;
        Some(Self {
            value,
            error: long_run.variance.sqrt() / count,
            degrees: long_run.degrees,
            naive_variance: long_run.naive / (count * count),
            clusters: apart.len() as f64,
            count,
            apart,
        })
    }

    fn reach(&self) -> f64 {
        student::quantile(UPPER, self.degrees)
    }

    fn half_width(&self, batches: usize) -> f64 {
        let seen = self.reach() * self.error.max(self.naive_variance.sqrt());
        let batches = batches.min(self.apart.len());
        if batches < 2 {
            return seen;
        }
        let begin = |batch: usize| batch * self.apart.len() / batches;
        let sum = |batch: usize| self.apart[begin(batch)..begin(batch + 1)].iter().sum();
        let sums: Vec<f64> = (0..batches).map(sum).collect();
        let error = (runs::variance(&sums) * batches as f64).sqrt() / self.count;
        seen.max(student::quantile(UPPER, batches as f64 - 1.0) * error)
    }

    /// How many independent values would leave this error, when `most` of them would leave `alone`.
    fn effective(&self, alone: f64, most: f64) -> f64 {
        if self.error <= 0.0 {
            return self.clusters.min(most);
        }
        // One over an uncertain variance is too large on average, by as much as this takes off.
        let unbiased = (1.0 - 2.0 / self.degrees).max(0.0);
        (most * alone / (self.error * self.error) * unbiased).clamp(1.0, most.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draws;
    use super::*;

    fn singles(n: usize) -> Vec<Cluster> {
        let mut draws = Draws::new(9, 0);
        (0..n).map(|_| Cluster::single(10.0 + draws.normal())).collect()
    }

    fn at(share: f64) -> Probability {
        Probability::new(share).unwrap()
    }

    #[test]
    fn independent_values_count_in_full() {
        let judged = mean_interval(singles(5_000), 8).unwrap();
        assert!(judged.effective_n > 4_500.0, "{judged:?}");
        // 1.96 / √5000
        let half = judged.interval.unwrap().half_width();
        assert!((half - 0.0277).abs() < 0.0015, "{half}");
    }

    #[test]
    fn copies_of_a_request_add_nothing() {
        let once = singles(400);
        let tenfold: Vec<Cluster> =
            once.iter().map(|one| Cluster { count: 10.0, sum: 10.0 * one.sum }).collect();
        let (once, tenfold) =
            (mean_interval(&once, 8).unwrap(), mean_interval(&tenfold, 8).unwrap());
        assert!((once.effective_n - tenfold.effective_n).abs() < 1e-6);
        let (once, tenfold) = (once.interval.unwrap(), tenfold.interval.unwrap());
        assert!((once.low - tenfold.low).abs() < 1e-9 && (once.high - tenfold.high).abs() < 1e-9);
    }

    #[test]
    fn requests_without_values_change_nothing() {
        let some = singles(50);
        let mut more = some.clone();
        more.insert(20, Cluster { count: 0.0, sum: 0.0 });
        assert_eq!(mean_interval(&some, 8), mean_interval(&more, 8));
        assert_eq!(mean_interval([Cluster::single(1.0)], 8), None);
        assert_eq!(mean_interval(Vec::<Cluster>::new(), 8), None);
    }

    #[test]
    fn a_share_stays_inside_its_bounds_and_is_never_certain() {
        let all = vec![Cluster::single(1.0); 60];
        let interval = share_interval(&all).unwrap().interval.unwrap();
        assert!((interval.high - 1.0).abs() < 1e-12 && interval.low < 0.96, "{interval:?}");
        let half: Vec<Cluster> = (0..400_u32)
            .map(|number| Cluster::single(f64::from(number.count_ones() % 2)))
            .collect();
        let judged = share_interval(&half).unwrap();
        assert!(judged.interval.unwrap().contains(0.5) && judged.effective_n <= 400.0);
    }

    #[test]
    fn a_quantile_without_values_beyond_it_has_no_upper_end() {
        let values: Vec<f64> = singles(60).iter().map(|cluster| cluster.sum).collect();
        let sample = Sample::new(values.clone()).unwrap();
        let judged = |share: f64| {
            let found = sample.quantile(at(share));
            let below: Vec<Cluster> = values
                .iter()
                .map(|value| Cluster::single(f64::from(u8::from(*value <= found))))
                .collect();
            quantile_interval(&sample, &below, at(share), 8).unwrap()
        };
        assert_eq!(judged(0.99).interval, None);
        let median = judged(0.5).interval.unwrap();
        assert!(median.contains(sample.quantile(at(0.5))) && median.contains(10.0), "{median:?}");
    }

    #[test]
    fn no_percentile_counts_more_than_the_one_below_it() {
        let judged = |effective_n| Some(Judged { interval: None, effective_n });
        let mut rising = [judged(50.0), None, judged(80.0), judged(20.0)];
        tempered(&mut rising);
        assert_eq!(rising, [judged(50.0), None, judged(50.0), judged(20.0)]);
    }
}
