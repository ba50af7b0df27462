//! The rule by which a change is called better, worse, same or undecided. In full, for a change with
//! its 95 % interval and a margin within which nobody would care:
//!
//! 1. the interval lies wholly within the margin: **same**;
//! 2. otherwise it lies wholly on the good side of no change: **better**;
//! 3. otherwise it lies wholly on the bad side of no change: **worse**;
//! 4. otherwise: **undecided**, which is no word about the servers but about the runs.
//!
//! The margin of a ratio is `1/(1 + m)` to `1 + m`, so that the answer is mirrored when the sides
//! change places. Identical servers are called worse in at most one comparison of forty: the
//! interval misses the truth on that side no more often.

use serde::{Deserialize, Serialize};

use crate::estimate::Interval;
use crate::metric::{Better, Unit};
use crate::quantity::Quantity;
use crate::sample::Percentile;
use crate::statistic::Statistic;
use crate::statistics::ratio::RatioEstimate;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    Better,
    Worse,
    Same,
    Undecided,
    /// The values differ by so much, and nothing says how sure that is.
    NotJudged,
    /// There is no change to judge; the reason stands beside it.
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

/// Changes that nobody would care about.
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

    pub fn of(&self, quantity: &Quantity) -> f64 {
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
    pub(super) const fn of_ratio(found: RatioEstimate) -> Self {
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
    pub(super) fn reaching(self, other: Option<Self>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::LatencyOrigin;

    fn ratio(low: f64, high: f64) -> Change {
        let value = (low * high).sqrt();
        Change::Ratio { value, interval: Interval::new(low, high).unwrap() }
    }

    fn difference(low: f64, high: f64) -> Change {
        let value = f64::midpoint(low, high);
        Change::Difference { value, interval: Interval::new(low, high).unwrap() }
    }

    #[test]
    fn the_rule_is_this_table() {
        use Judgement::{Better as Good, Same, Undecided, Worse};
        for (low, high, more_is_good, less_is_good) in [
            (0.990, 1.010, Same, Same),
            // Surely another, and surely not by enough to care.
            (1.002, 1.015, Same, Same),
            (1.000, 1.020, Same, Same),
            (1.002, 1.030, Good, Worse),
            (1.030, 1.060, Good, Worse),
            (0.940, 0.970, Worse, Good),
            (0.970, 0.999, Worse, Good),
            (0.970, 1.000, Undecided, Undecided),
            (0.990, 1.030, Undecided, Undecided),
            (0.500, 2.000, Undecided, Undecided),
        ] {
            let change = ratio(low, high);
            assert_eq!(change.judged(0.02, Better::Higher), more_is_good, "{low} to {high}");
            assert_eq!(change.judged(0.02, Better::Lower), less_is_good, "{low} to {high}");
        }
        for (low, high, less_is_good) in [
            (-0.004, 0.009, Same),
            (0.0, 0.0, Same),
            (0.002, 0.03, Worse),
            (-0.03, -0.002, Good),
            (-0.03, 0.002, Undecided),
        ] {
            let judged = difference(low, high).judged(0.01, Better::Lower);
            assert_eq!(judged, less_is_good, "{low} to {high}");
        }
        assert_eq!(ratio(2.0, 3.0).judged(0.02, Better::Neither), Judgement::NotCompared);
    }

    #[test]
    fn the_answer_is_mirrored_when_the_sides_change_places() {
        let mirrored = |judgement| match judgement {
            Judgement::Better => Judgement::Worse,
            Judgement::Worse => Judgement::Better,
            Judgement::Same
            | Judgement::Undecided
            | Judgement::NotJudged
            | Judgement::NotCompared => judgement,
        };
        for low in [0.9, 0.97, 0.981, 0.99, 1.001, 1.03] {
            for width in [0.005, 0.0185, 0.04, 0.2] {
                let high = low + width;
                let there = ratio(low, high).judged(0.02, Better::Higher);
                let back = ratio(1.0 / high, 1.0 / low).judged(0.02, Better::Higher);
                assert_eq!(there, mirrored(back), "{low} to {high}");
            }
        }
    }

    #[test]
    fn tails_have_a_wider_margin_and_shares_their_own() {
        let margin = |margins: Margins, name| {
            margins.of(&Quantity::named(name, LatencyOrigin::Sent).unwrap())
        };
        for (name, by_default, of_all) in [
            ("output_throughput", 0.02, 0.1),
            ("ttft.mean", 0.02, 0.1),
            ("ttft.p50", 0.02, 0.1),
            ("ttft.p90", 0.05, 0.1),
            ("itl.p99", 0.05, 0.1),
            ("itl.max", 0.05, 0.1),
            ("error_rate", 0.01, 0.01),
        ] {
            assert_eq!(
                margin(Margins::DEFAULT, name).to_bits(),
                f64::to_bits(by_default),
                "{name}"
            );
            assert_eq!(margin(Margins::all(0.1), name).to_bits(), f64::to_bits(of_all), "{name}");
        }
    }
}
