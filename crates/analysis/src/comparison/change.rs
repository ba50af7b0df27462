//! How much a quantity changed between the runs of two sides, the basis of its interval, and its
//! verdict. A run counts once, whatever its length: values of several runs are never pooled.
//!
//! The rule for a change with its 95 % interval and a margin within which a change does not matter:
//!
//! 1. the interval lies wholly within the margin: **same**;
//! 2. otherwise it lies wholly on the good side of no change: **better**;
//! 3. otherwise it lies wholly on the bad side of no change: **worse**;
//! 4. otherwise: **undecided**: there are too few runs, or they vary too much.
//!
//! The margin of a ratio is `1/(1 + m)` to `1 + m`, so that the answer is mirrored when the sides
//! change places. Identical servers are called worse in at most one comparison of forty: the interval
//! misses the truth on that side no more often.

use serde::{Deserialize, Serialize};

use crate::metric::{Better, Quantity, Statistic, Unit};
use crate::set::Figure;
use crate::statistics::{
    Estimate, Interval, Percentile, UPPER, normal, ratio, runs::RunStatistics, share_across,
    share_pooled, welch,
};

/// The verdict on a change; pages write it as its `&str`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum Judgement {
    Better,
    Worse,
    Same,
    Undecided,
    /// The values differ, and the uncertainty of the difference is not known.
    #[strum(serialize = "not judged")]
    NotJudged,
    /// There is no change to judge; then there is a reason.
    #[strum(serialize = "not compared")]
    NotCompared,
}

/// The change of a quantity from the base to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub kind: Scale,
    pub value: f64,
    pub interval: Interval,
}

/// How values of two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The other side over the base; 1 is no change.
    Ratio,
    /// Shares, which may be zero: the other side less the base; 0.01 is one point of a hundred.
    Difference,
}

/// Changes that are too small to matter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margins {
    /// Margin of throughputs, means and medians, as a share: 0.02 is 2 %.
    pub centre: f64,
    /// Margin of p90 and beyond, which vary more between runs.
    pub tail: f64,
    /// Margin of shares, in parts of one: 0.01 is one point of a hundred.
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

impl Scale {
    /// The value of no change.
    pub const fn unchanged(self) -> f64 {
        match self {
            Self::Ratio => 1.0,
            Self::Difference => 0.0,
        }
    }
}

impl Change {
    pub fn judged(&self, margin: f64, better: Better) -> Judgement {
        let none = self.kind.unchanged();
        let (least, most) = match self.kind {
            Scale::Ratio => (1.0 / (1.0 + margin), 1.0 + margin),
            Scale::Difference => (-margin, margin),
        };
        let Interval { low, high } = self.interval;
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

/// Where the interval of a change comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Runs of the same stimulus, pair by pair.
    Paired,
    /// The spread between the runs of each side.
    Unpaired,
    /// A side has a single run: the interval within it, without the variation between runs.
    WithinRun,
}

/// The values of one quantity in the runs of two sides; `None` of a run that does not have it.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) base: Vec<Option<Estimate>>,
    pub(crate) other: Vec<Option<Estimate>>,
    /// Whether runs at the same place had the same stimulus.
    pub(crate) in_pairs: bool,
    /// The fewest samples of a run that the statistic needs.
    pub(crate) floor: u64,
    /// The share of chances below the upper end of the interval: [`UPPER`], or [`upper_among`].
    pub(crate) upper: f64,
}

/// The primary quantity is judged for every side, and one side that is worse fails the comparison: the
/// error that one interval allows is divided among them (Bonferroni).
pub(crate) fn upper_among(sides: usize) -> f64 {
    1.0 - (1.0 - UPPER) / sides.max(1) as f64
}

impl Values {
    pub(crate) fn basis(&self) -> Basis {
        let [base, other] = [&self.base, &self.other].map(|side| side.iter().flatten().count());
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
        let [base, other] = [&self.base, &self.other]
            .map(|side| side.iter().copied().flatten().collect::<Vec<_>>());
        let all = || base.iter().chain(&other);
        if base.is_empty() || other.is_empty() {
            return Err("no run of one side has it".to_owned());
        }
        // A run alone must have enough independent samples; the spread between several shows how alike
        // their samples are, and their number suffices.
        let basis = self.basis();
        let is_too_few = |run: &&Estimate| match basis {
            Basis::WithinRun => !run.certified,
            Basis::Paired | Basis::Unpaired => run.n < self.floor,
        };
        if let Some(few) = all().find(is_too_few) {
            return Err(format!(
                "not judged: too few independent samples in a run of {}; send more requests",
                inferometer_model::fmt::count(few.n)
            ));
        }
        if scale == Scale::Ratio && all().any(|estimate| estimate.value <= 0.0) {
            return Err("a run has the value zero, so there is no ratio".to_owned());
        }
        let found = match basis {
            Basis::WithinRun => {
                within_run(side_figure(&base, scale), side_figure(&other, scale), scale, self.upper)
            }
            Basis::Paired | Basis::Unpaired => self.between_runs(basis, scale),
        };
        let mut found = found.ok_or_else(|| "a single run has no interval for it".to_owned())?;
        if basis != Basis::WithinRun
            && scale == Scale::Difference
            && let Some(pooled) = shares_within(&base, &other, self.upper)
        {
            found.interval.low = found.interval.low.min(pooled.interval.low);
            found.interval.high = found.interval.high.max(pooled.interval.high);
        }
        Ok(found)
    }

    fn between_runs(&self, basis: Basis, scale: Scale) -> Option<Change> {
        let (base, other) = self.known();
        let is_paired = basis == Basis::Paired;
        if scale == Scale::Ratio {
            let estimate = if is_paired { ratio::paired } else { ratio::unpaired };
            let found = estimate(&base, &other, self.upper)?;
            return Some(Change { kind: scale, value: found.ratio, interval: found.interval });
        }
        let spread = welch::MeanSpread::from_values;
        let (value, reach) = if is_paired {
            let differences: Vec<f64> =
                other.iter().zip(&base).map(|(other, base)| other - base).collect();
            let found = spread(&differences)?;
            (found.mean, welch::reach(found.variance, found.degrees, self.upper))
        } else {
            let (base, other) = (spread(&base)?, spread(&other)?);
            (other.mean - base.mean, base.reach_to(other, self.upper))
        };
        let interval = Interval::new(value - reach, value + reach)?;
        Some(Change { kind: scale, value, interval })
    }

    /// The values of both sides, without runs that have none.
    pub(super) fn known(&self) -> (Vec<f64>, Vec<f64>) {
        let known = |side: &[Option<Estimate>]| {
            side.iter().flatten().map(|estimate| estimate.value).collect()
        };
        (known(&self.base), known(&self.other))
    }
}

/// The mean of a side with its interval: between its runs, or within its only one.
pub(super) fn side_figure(runs: &[Estimate], scale: Scale) -> Figure {
    if let [only] = runs {
        return Figure { value: only.value, interval: only.interval };
    }
    let Some(found) = RunStatistics::from_values(&values(runs)) else {
        return Figure { value: f64::NAN, interval: None };
    };
    let interval = match scale {
        Scale::Ratio => found.interval,
        Scale::Difference => share_across(runs),
    };
    Figure { value: found.mean, interval }
}

/// The change of a share by the requests of both sides, without the spread between runs: runs without a
/// single failure have no spread, and yet they do not rule failures out.
fn shares_within(base: &[Estimate], other: &[Estimate], upper: f64) -> Option<Change> {
    let pooled = |runs: &[Estimate]| {
        let value = RunStatistics::from_values(&values(runs))?.mean;
        let Interval { low, high } = share_pooled(runs)?;
        // Runs of unequal length weigh the same in the mean, and not in what is pooled.
        let interval = Some(Interval { low: low.min(value), high: high.max(value) });
        Some(Figure { value, interval })
    };
    within_run(pooled(base)?, pooled(other)?, Scale::Difference, upper)
}

fn values(runs: &[Estimate]) -> Vec<f64> {
    runs.iter().map(|estimate| estimate.value).collect()
}

/// The interval of the ratio or difference of two independent values: distances to the ends add up as
/// the sides of a right angle do, on the scale where the change is a
/// difference. The intervals are of 95 %; another level stretches them as it does a normal one.
fn within_run(base: Figure, other: Figure, kind: Scale, upper: f64) -> Option<Change> {
    let (a, b) = (base.interval?, other.interval?);
    let stretch = normal::quantile(upper) / normal::quantile(UPPER);
    let diagonal = |one: f64, other: f64| stretch * libm::hypot(one, other);
    let (value, interval) = match kind {
        Scale::Difference => {
            let value = other.value - base.value;
            let down = diagonal(other.value - b.low, a.high - base.value);
            let up = diagonal(b.high - other.value, base.value - a.low);
            (value, Interval::new(value - down, value + up)?)
        }
        Scale::Ratio if a.low <= 0.0 || b.low <= 0.0 => return None,
        Scale::Ratio => {
            let value = other.value / base.value;
            let down = diagonal(libm::log(other.value / b.low), libm::log(a.high / base.value));
            let up = diagonal(libm::log(b.high / other.value), libm::log(base.value / a.low));
            (value, Interval::new(value * libm::exp(-down), value * libm::exp(up))?)
        }
    };
    Some(Change { kind, value, interval })
}

/// The mean change over several levels, each counted once: of ratios the geometric one.
pub(super) fn mean_change(changes: &[Change]) -> Option<Change> {
    let n = changes.len() as f64;
    let kind = changes.first()?.kind;
    let is_ratio = kind == Scale::Ratio;
    let on_scale = |value: f64| if is_ratio { libm::log(value) } else { value };
    let back = |value: f64| if is_ratio { libm::exp(value) } else { value };
    let centre = changes.iter().map(|change| on_scale(change.value)).sum::<f64>() / n;
    let reach = |end: fn(Interval) -> f64| {
        let squares = changes
            .iter()
            .map(|change| (on_scale(end(change.interval)) - on_scale(change.value)).powi(2));
        squares.sum::<f64>().sqrt() / n
    };
    let (down, up) = (reach(|interval| interval.low), reach(|interval| interval.high));
    let interval = Interval::new(back(centre - down), back(centre + up))?;
    Some(Change { kind, value: back(centre), interval })
}

/// The same of ratios that have no interval.
pub(super) fn mean_ratio(ratios: &[f64]) -> Option<f64> {
    let logs = ratios.iter().map(|ratio| libm::log(*ratio)).sum::<f64>();
    match ratios {
        [] => None,
        [only] => Some(*only),
        several => Some(libm::exp(logs / several.len() as f64)),
    }
}

#[cfg(test)]
mod tests;
