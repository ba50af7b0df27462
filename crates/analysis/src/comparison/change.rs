//! How much a quantity changed between the runs of two sides, what that is known from, and what it is
//! called. A run counts once, whatever its length: values of several runs are never pooled.
//!
//! The rule for a change with its 95 % interval and a margin within which a change does not matter:
//!
//! 1. the interval lies wholly within the margin: **same**;
//! 2. otherwise it lies wholly on the good side of no change: **better**;
//! 3. otherwise it lies wholly on the bad side of no change: **worse**;
//! 4. otherwise: **undecided**, which says something about the runs and nothing about the servers.
//!
//! The margin of a ratio is `1/(1 + m)` to `1 + m`, so that the answer is mirrored when the sides
//! change places. Identical servers are called worse in at most one comparison of forty: the interval
//! misses the truth on that side no more often.

use serde::{Deserialize, Serialize};

use crate::metric::{Better, Quantity, Statistic, Unit};
use crate::statistics::ratio::{self, RatioEstimate};
use crate::statistics::welch::{self, MeanSpread};
use crate::statistics::{
    Estimate, Interval, Percentile, UPPER, normal, runs::RunStatistics, share_across, share_pooled,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    Better,
    Worse,
    Same,
    Undecided,
    /// The values differ by so much, and nothing says how sure that is.
    NotJudged,
    /// There is no change to judge; the reason says why.
    NotCompared,
}

/// What became of a quantity from the base to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// The other side over the base; 1 is no change.
    Ratio { value: f64, interval: Interval },
    /// Of a share, which may be zero: the other side less the base; 0.01 is one point of a hundred.
    Difference { value: f64, interval: Interval },
}

/// Changes that are too small to matter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margins {
    /// Of throughputs, means and medians, as a share: 0.02 is 2 %.
    pub centre: f64,
    /// Of p90 and beyond, which runs repeat less well.
    pub tail: f64,
    /// Of shares, in parts of one: 0.01 is one point of a hundred.
    pub share: f64,
}

impl Margins {
    /// The half-widths that repeated runs commonly reach.
    pub const DEFAULT: Self = Self { centre: 0.02, tail: 0.05, share: 0.01 };

    /// The same margin for all that is compared by its ratio.
    pub const fn all(margin: f64) -> Self {
        Self { centre: margin, tail: margin, ..Self::DEFAULT }
    }

    pub fn margin_for(&self, quantity: &Quantity) -> f64 {
        match (quantity.metric().unit, quantity.statistic()) {
            (Unit::Share, _) => self.share,
            (_, Some(Statistic::Percentile(percentile))) if Percentile::P90 <= percentile => {
                self.tail
            }
            (_, Some(Statistic::Max)) => self.tail,
            _ => self.centre,
        }
    }
}

impl Change {
    const fn from_ratio(found: RatioEstimate) -> Self {
        Self::Ratio { value: found.ratio, interval: found.interval }
    }

    pub const fn value(&self) -> f64 {
        match self {
            Self::Ratio { value, .. } | Self::Difference { value, .. } => *value,
        }
    }

    pub const fn interval(&self) -> Interval {
        match self {
            Self::Ratio { interval, .. } | Self::Difference { interval, .. } => *interval,
        }
    }

    /// As wide as this one and another of the same quantity together.
    fn reaching(self, other: Option<Self>) -> Self {
        let wider = |interval: Interval| {
            let other = other.map_or(interval, |other| other.interval());
            Interval { low: interval.low.min(other.low), high: interval.high.max(other.high) }
        };
        match self {
            Self::Ratio { value, interval } => Self::Ratio { value, interval: wider(interval) },
            Self::Difference { value, interval } => {
                Self::Difference { value, interval: wider(interval) }
            }
        }
    }

    pub fn judged(&self, margin: f64, better: Better) -> Judgement {
        let (least, none, most) = match self {
            Self::Ratio { .. } => (1.0 / (1.0 + margin), 1.0, 1.0 + margin),
            Self::Difference { .. } => (-margin, 0.0, margin),
        };
        let Interval { low, high } = self.interval();
        let (is_more, is_less) = (none < low, high < none);
        if least <= low && high <= most {
            return Judgement::Same;
        }
        match better {
            Better::Higher if is_more => Judgement::Better,
            Better::Higher if is_less => Judgement::Worse,
            Better::Lower if is_less => Judgement::Better,
            Better::Lower if is_more => Judgement::Worse,
            Better::Higher | Better::Lower => Judgement::Undecided,
            Better::Neither => Judgement::NotCompared,
        }
    }
}

impl Judgement {
    pub const fn key(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Undecided => "undecided",
            Self::NotJudged => "not judged",
            Self::NotCompared => "not compared",
        }
    }
}

/// Where the interval of a change comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Runs of the same stimulus, pair by pair.
    Paired,
    /// The spread between the runs of each side.
    Unpaired,
    /// A side has a single run: its own interval, which knows nothing of other runs.
    WithinRun,
}

/// How values are set against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Ratio,
    /// Of shares: zero is an ordinary value of theirs.
    Difference,
}

/// What each run of two sides says of one quantity; `None` of a run that does not have it.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) base: Vec<Option<Estimate>>,
    pub(crate) other: Vec<Option<Estimate>>,
    /// Whether runs at the same place had the same stimulus.
    pub(crate) in_pairs: bool,
    /// The fewest samples of a run that the statistic makes sense of.
    pub(crate) floor: u64,
    /// The share of chances below the upper end of the interval: [`UPPER`], or [`upper_among`].
    pub(crate) upper: f64,
}

/// What decides is asked of every side, and one that is worse fails them all: the error that one
/// interval allows is divided among them (Bonferroni).
pub(crate) fn upper_among(sides: usize) -> f64 {
    1.0 - (1.0 - UPPER) / sides.max(1) as f64
}

impl Values {
    pub(crate) fn basis(&self) -> Basis {
        let count = |side: &[Option<Estimate>]| side.iter().flatten().count();
        let (base, other) = (count(&self.base), count(&self.other));
        if base < 2 || other < 2 {
            Basis::WithinRun
        } else if self.in_pairs && base == self.base.len() && other == self.other.len() {
            Basis::Paired
        } else {
            Basis::Unpaired
        }
    }

    /// The change, or why there is none.
    pub(crate) fn change(&self, scale: Scale) -> Result<Change, String> {
        let known = |side: &[Option<Estimate>]| side.iter().copied().flatten().collect::<Vec<_>>();
        let (base, other) = (known(&self.base), known(&self.other));
        if base.is_empty() || other.is_empty() {
            return Err("no run of one side has it".to_owned());
        }
        if let Some(few) = base.iter().chain(&other).find(|run| self.is_too_few(run)) {
            return Err(format!(
                "not judged: too few independent samples in a run of {}; send more requests",
                few.n
            ));
        }
        let has_no_ratio = |estimate: &Estimate| estimate.value <= 0.0;
        if scale == Scale::Ratio && base.iter().chain(&other).any(has_no_ratio) {
            return Err("a run has zero, and nothing is a multiple of it".to_owned());
        }
        let found = match self.basis() {
            Basis::WithinRun => {
                within_run(&side_of(&base, scale), &side_of(&other, scale), scale, self.upper)
            }
            Basis::Paired => paired(&values(&base), &values(&other), scale, self.upper),
            Basis::Unpaired => unpaired(&values(&base), &values(&other), scale, self.upper),
        };
        let found = found.ok_or_else(|| "a single run has no interval of it".to_owned())?;
        Ok(match self.basis() {
            Basis::Paired | Basis::Unpaired if scale == Scale::Difference => {
                found.reaching(shares_within(&base, &other, self.upper))
            }
            Basis::Paired | Basis::Unpaired | Basis::WithinRun => found,
        })
    }

    /// Whether a run judges nothing. Alone it must have enough independent samples; where the spread
    /// between runs is known, that tells what their likeness does, and their number suffices.
    fn is_too_few(&self, run: &Estimate) -> bool {
        match self.basis() {
            Basis::WithinRun => !run.certified,
            Basis::Paired | Basis::Unpaired => run.n < self.floor,
        }
    }

    /// The values of both sides, without runs that have none.
    pub(super) fn known(&self) -> (Vec<f64>, Vec<f64>) {
        let known = |side: &[Option<Estimate>]| {
            side.iter().flatten().map(|estimate| estimate.value).collect::<Vec<_>>()
        };
        (known(&self.base), known(&self.other))
    }
}

/// The mean of a side with its interval: between its runs, or within its only one.
pub(super) fn side_of(runs: &[Estimate], scale: Scale) -> SideMean {
    if let [only] = runs {
        return SideMean { mean: only.value, interval: only.interval };
    }
    RunStatistics::from_values(&values(runs)).map_or(
        SideMean { mean: f64::NAN, interval: None },
        |found| {
            let interval = match scale {
                Scale::Ratio => found.interval,
                Scale::Difference => share_across(runs),
            };
            SideMean { mean: found.mean, interval }
        },
    )
}

/// The change of a share as the requests of both sides know it, whatever their runs scatter by: runs
/// without a single failure do not scatter, and yet they do not rule failures out.
fn shares_within(base: &[Estimate], other: &[Estimate], upper: f64) -> Option<Change> {
    let pooled = |runs: &[Estimate]| {
        let mean = RunStatistics::from_values(&values(runs))?.mean;
        let Interval { low, high } = share_pooled(runs)?;
        // Runs of unequal length weigh the same in the mean, and not in what is pooled.
        let interval = Some(Interval { low: low.min(mean), high: high.max(mean) });
        Some(SideMean { mean, interval })
    };
    within_run(&pooled(base)?, &pooled(other)?, Scale::Difference, upper)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SideMean {
    pub(super) mean: f64,
    pub(super) interval: Option<Interval>,
}

fn values(runs: &[Estimate]) -> Vec<f64> {
    runs.iter().map(|estimate| estimate.value).collect()
}

fn paired(base: &[f64], other: &[f64], scale: Scale, upper: f64) -> Option<Change> {
    if scale == Scale::Ratio {
        return ratio::paired(base, other, upper).map(Change::from_ratio);
    }
    let differences: Vec<f64> = other.iter().zip(base).map(|(other, base)| other - base).collect();
    let found = MeanSpread::from_values(&differences)?;
    difference(found.mean, welch::reach(found.variance, found.degrees, upper))
}

fn unpaired(base: &[f64], other: &[f64], scale: Scale, upper: f64) -> Option<Change> {
    if scale == Scale::Ratio {
        return ratio::unpaired(base, other, upper).map(Change::from_ratio);
    }
    let (base, other) = (MeanSpread::from_values(base)?, MeanSpread::from_values(other)?);
    difference(other.mean - base.mean, base.reach_to(other, upper))
}

fn difference(value: f64, reach: f64) -> Option<Change> {
    Some(Change::Difference { value, interval: Interval::new(value - reach, value + reach)? })
}

/// Two intervals that know nothing of each other make one of their ratio or difference: distances
/// to the ends add up as the sides of a right angle do, on the scale where the change is a
/// difference. The intervals are of 95 %; another level stretches them as it does a normal one.
fn within_run(base: &SideMean, other: &SideMean, scale: Scale, upper: f64) -> Option<Change> {
    let (a, b) = (base.interval?, other.interval?);
    let stretch = normal::quantile(upper) / normal::quantile(UPPER);
    let diagonal = |one: f64, other: f64| stretch * libm::hypot(one, other);
    match scale {
        Scale::Difference => {
            let value = other.mean - base.mean;
            let down = diagonal(other.mean - b.low, a.high - base.mean);
            let up = diagonal(b.high - other.mean, base.mean - a.low);
            let interval = Interval::new(value - down, value + up)?;
            Some(Change::Difference { value, interval })
        }
        Scale::Ratio if a.low <= 0.0 || b.low <= 0.0 => None,
        Scale::Ratio => {
            let value = other.mean / base.mean;
            let down = diagonal(libm::log(other.mean / b.low), libm::log(a.high / base.mean));
            let up = diagonal(libm::log(b.high / other.mean), libm::log(base.mean / a.low));
            let interval = Interval::new(value * libm::exp(-down), value * libm::exp(up))?;
            Some(Change::Ratio { value, interval })
        }
    }
}

/// The mean change over several levels, each counted once: of ratios the geometric one.
pub(super) fn overall(changes: &[Change]) -> Option<Change> {
    let n = changes.len() as f64;
    let is_ratio = matches!(changes.first()?, Change::Ratio { .. });
    let on_scale = |value: f64| if is_ratio { libm::log(value) } else { value };
    let back = |value: f64| if is_ratio { libm::exp(value) } else { value };
    let centre = changes.iter().map(|change| on_scale(change.value())).sum::<f64>() / n;
    let reach = |end: fn(Interval) -> f64| {
        let squares = changes
            .iter()
            .map(|change| (on_scale(end(change.interval())) - on_scale(change.value())).powi(2));
        squares.sum::<f64>().sqrt() / n
    };
    let (down, up) = (reach(|interval| interval.low), reach(|interval| interval.high));
    let interval = Interval::new(back(centre - down), back(centre + up))?;
    let value = back(centre);
    Some(if is_ratio {
        Change::Ratio { value, interval }
    } else {
        Change::Difference { value, interval }
    })
}

/// The same of ratios that have no interval.
pub(super) fn mean_ratio(ratios: &[f64]) -> Option<f64> {
    match ratios {
        [] => None,
        [only] => Some(*only),
        several => {
            let logs = several.iter().map(|ratio| libm::log(*ratio)).sum::<f64>();
            Some(libm::exp(logs / several.len() as f64))
        }
    }
}

#[cfg(test)]
mod tests;
