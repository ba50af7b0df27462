//! What the levels of one server show: peak, knee, sweet spot, saturation and scalability.
//!
//! How certain a finding is comes from drawing the set again: each level is drawn within its interval,
//! and a finding that changes from one draw to the next is not one. The knee is found by the Kneedle
//! algorithm (Satopää, Albrecht, Irwin and Raghavan, 2011), for a rising curve that bends down.

use inferometer_model::study::Level;
use serde::{Deserialize, Serialize};

use super::level::{AcrossRuns, LevelSummary, Served, falls_behind};
use super::scalability::Scalability;
use crate::metric::{self, Metric};
use crate::statistics::{Interval, UPPER, draws::Draws, normal};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding<T> {
    Found(T),
    /// A fragment that says why.
    Unknown(String),
}

/// A number of a level with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub value: f64,
    pub interval: Option<Interval>,
}

/// From the one level to the other, both included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelRange {
    pub low: Level,
    pub high: Level,
}

impl<T> Finding<T> {
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }

    pub const fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Unknown(_) => None,
        }
    }
}

impl Figure {
    fn from_across(across: &AcrossRuns) -> Option<Self> {
        across.mean.map(|value| Self { value, interval: across.doubt() })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub peak: Finding<Peak>,
    pub knee: Finding<Knee>,
    pub sweet_spot: Finding<SweetSpot>,
    pub saturation: Finding<Saturation>,
    pub scalability: Finding<Scalability>,
    /// Levels that have no part in peak, knee, sweet spot and scalability: a limit of time cut them, so
    /// that their figures are of the quick requests, or they were never reached.
    #[serde(default)]
    pub left_out: Vec<Level>,
    /// Those of `left_out` that never had as many requests in flight as they ask for: what they say of
    /// a user is of users who were not there.
    #[serde(default)]
    pub not_reached: Vec<Level>,
}

impl Findings {
    /// Levels without a run that counts have no numbers, and so no part in them.
    pub fn find(levels: &[LevelSummary]) -> Self {
        let curve = Curve::new(levels);
        let is_concurrency =
            curve.points.iter().all(|point| matches!(point.level, Level::Concurrency(_)));
        Self {
            peak: Peak::find(levels),
            knee: Knee::find(&curve),
            sweet_spot: SweetSpot::find(levels),
            saturation: Saturation::find(levels),
            scalability: Scalability::find(&curve, is_concurrency),
            left_out: those(levels, |level| !level.is_comparable()),
            not_reached: those(levels, |level| !level.is_reached()),
        }
    }
}

fn those(levels: &[LevelSummary], is_wanted: impl Fn(&LevelSummary) -> bool) -> Vec<Level> {
    levels.iter().filter(|level| is_wanted(level)).map(|level| level.level).collect()
}

/// From which rate on a server no longer keeps up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// The highest rate below all that were not served; null when none was.
    pub highest_served: Option<f64>,
    /// The lowest rate that was not; null when all were.
    pub lowest_missed: Option<f64>,
    /// What was served of that, as a share.
    pub missed_share: Option<f64>,
    /// Whether it was not served only in that requests pile up: its answers came fast enough for now.
    #[serde(default)]
    pub missed_piling_up: bool,
    /// A higher rate that was served all the same: the levels contradict each other.
    #[serde(default)]
    pub served_above: Option<f64>,
}

impl Saturation {
    pub(super) fn find(levels: &[LevelSummary]) -> Finding<Self> {
        let rates: Vec<&Served> = levels.iter().filter_map(|level| level.served.as_ref()).collect();
        if rates.is_empty() {
            return Finding::unknown("it is a question about rates, and no level is a rate");
        }
        let missed = rates.iter().find(|served| served.saturated);
        let lowest_missed = missed.map(|served| served.asked_per_s);
        let kept = |is_wanted: &dyn Fn(f64) -> bool| {
            let kept = rates.iter().filter(|served| !served.saturated);
            kept.map(|served| served.asked_per_s).rfind(|rate| is_wanted(*rate))
        };
        Finding::Found(Self {
            highest_served: kept(&|rate| lowest_missed.is_none_or(|missed| rate < missed)),
            lowest_missed,
            missed_share: missed.map(|served| served.share),
            missed_piling_up: missed
                .is_some_and(|served| !falls_behind(served.share, served.chance)),
            served_above: kept(&|rate| lowest_missed.is_some_and(|missed| missed < rate)),
        })
    }
}

/// Among the concurrency levels whose TTFT p99 and TPOT p99 are both within twice the smallest of
/// each, the one with the highest per-user throughput; on a tie the lower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweetSpot {
    pub level: Level,
    pub per_user_throughput: Figure,
    pub ttft_ms_p99: Figure,
    pub tpot_ms_p99: Figure,
    /// All levels that passed the rule, from the lowest to the highest.
    pub eligible: Vec<Level>,
    /// How often a set drawn again chooses the same level; null without intervals.
    pub same_share: Option<f64>,
    /// Whether every p99 that it was chosen by comes from enough requests.
    pub certified: bool,
}

/// The level with the highest throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    pub level: Level,
    pub quantity: String,
    pub throughput: Figure,
    /// How often a set drawn again has its highest throughput at the same level.
    pub same_share: Option<f64>,
}

/// How far above the best a latency may lie.
const TIMES_THE_BEST: f64 = 2.0;

/// A level with its TTFT p99, TPOT p99 and throughput per user.
type Candidate<'a> = (Level, [&'a AcrossRuns; 3]);

impl SweetSpot {
    pub(super) fn find(levels: &[LevelSummary]) -> Finding<Self> {
        if !levels.iter().any(|level| matches!(level.level, Level::Concurrency(_))) {
            return Finding::unknown("it is a choice among concurrency levels, and there are none");
        }
        let candidates: Vec<Candidate<'_>> = levels.iter().filter_map(candidate).collect();
        let means = |(_, all): &Candidate<'_>| Some([all[0].mean?, all[1].mean?, all[2].mean?]);
        let numbers: Vec<[f64; 3]> = candidates.iter().filter_map(means).collect();
        if numbers.is_empty() {
            return Finding::unknown(
                "no level has a TTFT p99, a TPOT p99 and a throughput per user",
            );
        }
        let Some(place) = chosen(&numbers) else {
            return Finding::unknown(
                "no level is within twice the best TTFT p99 and TPOT p99 both",
            );
        };
        let (level, across) = candidates[place];
        let [Some(ttft_ms_p99), Some(tpot_ms_p99), Some(per_user_throughput)] =
            across.map(Figure::from_across)
        else {
            return Finding::unknown("its figures are missing");
        };
        let values = resampled(candidates.iter().flat_map(|(_, across)| *across));
        let same_share = values.map(|values| {
            share_of_draws(&values, |drawn| {
                let (numbers, _) = drawn.as_chunks::<3>();
                chosen(numbers) == Some(place)
            })
        });
        Finding::Found(Self {
            level,
            per_user_throughput,
            ttft_ms_p99,
            tpot_ms_p99,
            eligible: eligible(&numbers).into_iter().map(|place| candidates[place].0).collect(),
            same_share,
            certified: candidates.iter().all(|(_, it)| it[0].certified && it[1].certified),
        })
    }
}

impl Peak {
    pub(super) fn find(levels: &[LevelSummary]) -> Finding<Self> {
        let of = |metric: &'static Metric| {
            let levels = levels.iter().filter(|level| level.is_comparable());
            let points = levels.filter_map(|level| Some((level.level, level.quantity(metric)?)));
            let points: Vec<(Level, &AcrossRuns)> =
                points.filter(|(_, across)| across.mean.is_some()).collect();
            let means: Vec<f64> = points.iter().filter_map(|(_, across)| across.mean).collect();
            let place = highest(&means)?;
            let throughput = Figure::from_across(points[place].1)?;
            let same_share = resampled(points.iter().map(|(_, across)| *across))
                .map(|values| share_of_draws(&values, |drawn| highest(drawn) == Some(place)));
            let (level, quantity) = (points[place].0, metric.name.to_owned());
            Some(Self { level, quantity, throughput, same_share })
        };
        of(&metric::OUTPUT_THROUGHPUT).or_else(|| of(&metric::REQUEST_THROUGHPUT)).map_or_else(
            || Finding::unknown("no level that counts has a throughput"),
            Finding::Found,
        )
    }
}

/// A level that has all three figures, and has them of all its requests and all its users.
fn candidate(summary: &LevelSummary) -> Option<Candidate<'_>> {
    let Level::Concurrency(_) = summary.level else { return None };
    let quantities =
        [metric::TTFT.p99(), metric::TPOT.p99(), metric::PER_USER_THROUGHPUT.quantity()];
    let [Some(ttft), Some(tpot), Some(per_user)] = quantities
        .map(|quantity| summary.quantity(quantity).filter(|across| across.mean.is_some()))
    else {
        return None;
    };
    summary.is_comparable().then_some((summary.level, [ttft, tpot, per_user]))
}

fn eligible(numbers: &[[f64; 3]]) -> Vec<usize> {
    let smallest = |of: usize| numbers.iter().map(|one| one[of]).fold(f64::INFINITY, f64::min);
    let limits = [0, 1].map(|of| TIMES_THE_BEST * smallest(of));
    let passes = |one: &[f64; 3]| one[0] <= limits[0] && one[1] <= limits[1];
    (0..numbers.len()).filter(|place| passes(&numbers[*place])).collect()
}

fn chosen(numbers: &[[f64; 3]]) -> Option<usize> {
    let passed = eligible(numbers).into_iter();
    // From the highest level down, so that the last of equals is the lowest.
    passed.rev().max_by(|a, b| numbers[*a][2].total_cmp(&numbers[*b][2]))
}

/// On a tie the lower level.
fn highest(values: &[f64]) -> Option<usize> {
    (0..values.len()).rev().max_by(|a, b| values[*a].total_cmp(&values[*b]))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    pub level: Level,
    /// Between which levels it lies in 95 % of the sets drawn again; null without intervals.
    pub interval: Option<LevelRange>,
    /// The share of the sets drawn again that have a knee at all.
    pub found_share: Option<f64>,
    /// The quantity that was looked at, such as `output_throughput`.
    pub quantity: String,
    pub throughput: Figure,
}

const LEVELS_MIN: usize = 4;

impl Knee {
    pub(super) fn find(curve: &Curve<'_>) -> Finding<Self> {
        if curve.points.len() < LEVELS_MIN {
            let found = curve.points.len();
            return Finding::unknown(format!(
                "a knee needs {LEVELS_MIN} levels, and {found} count"
            ));
        }
        let Some(place) = kneedle(&curve.with_values(curve.means())) else {
            return Finding::unknown(
                "throughput has no bend in this range; go on to higher levels to find it",
            );
        };
        let (interval, found_share) = interval(curve).unzip();
        let point = &curve.points[place];
        Finding::Found(Self {
            level: point.level,
            interval: interval.flatten(),
            found_share,
            quantity: curve.metric.name.to_owned(),
            throughput: Figure { value: point.mean, interval: point.across.doubt() },
        })
    }
}

/// The range of the knees of the sets drawn again, and the share of them that have one.
fn interval(curve: &Curve<'_>) -> Option<(Option<LevelRange>, f64)> {
    let values = curve.resampled()?;
    let drawn = replicates(&values);
    let mut knees: Vec<usize> =
        drawn.filter_map(|drawn| kneedle(&curve.with_values(drawn))).collect();
    knees.sort_unstable();
    let share = knees.len() as f64 / REPLICATES as f64;
    let last = knees.len().checked_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a place is a place"
    )]
    let at =
        |p: f64| last.map(|last| curve.points[knees[(p * last as f64).round() as usize]].level);
    let range = at(1.0 - UPPER).zip(at(UPPER)).map(|(low, high)| LevelRange { low, high });
    Some((range, share))
}

/// The sensitivity that its authors recommend.
const SENSITIVITY: f64 = 1.0;
const POINTS_MIN: usize = 3;

/// The place of the knee among points of rising x, or `None` where the curve has none.
///
/// Both axes are brought to 0…1. The difference of the two is largest where the curve leaves the
/// diagonal behind; a local maximum of it is a knee when the difference falls below
/// `maximum − S · mean Δx` before it rises to a higher one. Of several the most pronounced is taken.
/// Nothing is smoothed: points are means of runs, and what their noise does is seen by resampling.
pub fn kneedle(points: &[(f64, f64)]) -> Option<usize> {
    let differences = differences(points)?;
    let spacing = 1.0 / (points.len() - 1) as f64;
    let is_knee = |place: &usize| {
        let threshold = differences[*place] - SENSITIVITY * spacing;
        let after = &differences[*place + 1..];
        let next = (*place + 1..points.len()).find(|later| {
            // A lower bump on the way down is noise, and takes nothing back.
            is_maximum(&differences, *later) && differences[*place] < differences[*later]
        });
        let until = next.map_or(after.len(), |next| next - place - 1);
        after[..until].iter().any(|difference| *difference < threshold)
    };
    (1..points.len() - 1)
        .filter(|place| is_maximum(&differences, *place))
        .filter(is_knee)
        // The first of equals.
        .rev()
        .max_by(|a, b| differences[*a].total_cmp(&differences[*b]))
}

fn is_maximum(differences: &[f64], place: usize) -> bool {
    place + 1 < differences.len()
        && differences[place - 1] < differences[place]
        && differences[place + 1] <= differences[place]
}

/// How far the normalised curve lies above the diagonal; `None` where it cannot be normalised.
fn differences(points: &[(f64, f64)]) -> Option<Vec<f64>> {
    let ordered = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    if points.len() < POINTS_MIN || !ordered || !finite {
        return None;
    }
    let (first, last) = (points.first()?.0, points.last()?.0);
    let low = points.iter().map(|point| point.1).min_by(f64::total_cmp)?;
    let high = points.iter().map(|point| point.1).max_by(f64::total_cmp)?;
    // A throughput that does not rise has no knee.
    (low < high && points.first()?.1 < high).then(|| {
        let difference =
            |(x, y): &(f64, f64)| (y - low) / (high - low) - (x - first) / (last - first);
        points.iter().map(difference).collect()
    })
}

/// Levels that have a place and a throughput, were reached and not cut, from the lowest to the highest.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    pub(super) metric: &'static Metric,
    pub(super) points: Vec<CurvePoint<'a>>,
}

#[derive(Debug)]
pub(super) struct CurvePoint<'a> {
    pub(super) level: Level,
    pub(super) place: f64,
    pub(super) mean: f64,
    pub(super) across: &'a AcrossRuns,
}

impl<'a> Curve<'a> {
    /// Of output tokens; where nothing generates any, of requests.
    pub(super) fn new(levels: &'a [LevelSummary]) -> Self {
        let tokens = Self::with_metric(levels, &metric::OUTPUT_THROUGHPUT);
        if tokens.points.is_empty() {
            return Self::with_metric(levels, &metric::REQUEST_THROUGHPUT);
        }
        tokens
    }

    fn with_metric(levels: &'a [LevelSummary], metric: &'static Metric) -> Self {
        let point = |summary: &'a LevelSummary| {
            let across = summary.quantity(metric)?;
            // What is unlimited has no place on an axis.
            let place = summary.level.place().filter(|place| place.is_finite())?;
            Some(CurvePoint { level: summary.level, place, mean: across.mean?, across })
        };
        let comparable = levels.iter().filter(|level| level.is_comparable());
        Self { metric, points: comparable.filter_map(point).collect() }
    }

    /// Its places with their means, or with other values.
    fn with_values(&self, values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| point.place).zip(values).collect()
    }

    pub(super) fn means(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|point| point.mean)
    }

    /// `None` when a level has no interval to draw from.
    pub(super) fn resampled(&self) -> Option<Vec<Resampled>> {
        resampled(self.points.iter().map(|point| point.across))
    }
}

/// How often a set is drawn again. The constant seed keeps the bytes of its summary.
const REPLICATES: u64 = 1_000;
const SEED: u64 = 0x5E75_0F12_0115;
/// From here on Student's t is the normal distribution for what is drawn from it.
const DEGREES_NORMAL: u32 = 60;

/// A mean, and how it would scatter if its runs were made again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Resampled {
    mean: f64,
    scale: f64,
    /// Of Student's t; `None` is the normal distribution.
    degrees: Option<u32>,
}

impl Resampled {
    /// From the spread between runs, or of a single run from the interval within it. `None` when
    /// there is neither.
    pub(super) fn from_across(across: &AcrossRuns) -> Option<Self> {
        let mean = across.mean?;
        if let Some(std) = across.std {
            let scale = std / f64::from(across.n).sqrt();
            let degrees = Some(across.n - 1).filter(|degrees| *degrees < DEGREES_NORMAL);
            return Some(Self { mean, scale, degrees });
        }
        let half = across.within?.half_width();
        Some(Self { mean, scale: half / normal::quantile(UPPER), degrees: None })
    }

    /// Throughputs and latencies are above zero, however wide their interval.
    fn draw(&self, draws: &mut Draws) -> f64 {
        let standard = match self.degrees {
            None => draws.normal(),
            Some(degrees) => {
                let squares: f64 = (0..degrees).map(|_| draws.normal()).map(|z| z * z).sum();
                draws.normal() / (squares / f64::from(degrees)).sqrt()
            }
        };
        (self.mean + self.scale * standard).max(self.mean * 1e-3)
    }
}

/// One draw after the other of all these values at once.
pub(super) fn replicates(values: &[Resampled]) -> impl Iterator<Item = Vec<f64>> + '_ {
    (0..REPLICATES).map(move |number| {
        let mut draws = Draws::new(SEED, number);
        values.iter().map(|value| value.draw(&mut draws)).collect()
    })
}

/// The share of the draws for which something holds.
fn share_of_draws(values: &[Resampled], holds: impl Fn(&[f64]) -> bool) -> f64 {
    replicates(values).filter(|drawn| holds(drawn)).count() as f64 / REPLICATES as f64
}

/// All of them, or `None` when one has no interval to draw from.
pub(super) fn resampled<'a>(
    all: impl IntoIterator<Item = &'a AcrossRuns>,
) -> Option<Vec<Resampled>> {
    all.into_iter().map(Resampled::from_across).collect()
}

#[cfg(test)]
mod tests;
