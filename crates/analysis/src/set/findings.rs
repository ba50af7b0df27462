//! The findings of the levels of one server: peak, knee, sweet spot, the best level for each user,
//! saturation and scalability.
//!
//! The certainty of a finding comes from resampling the set: each level is drawn within its interval, and
//! a finding that changes from one draw to the next is not one. The knee is found by the Kneedle
//! algorithm (Satopää, Albrecht, Irwin and Raghavan, 2011), for a rising curve that bends down.
//! Scalability is a fit of the universal scalability law, or of a curve that only saturates: both are
//! fits of N / (a + b(N − 1) + cN(N − 1)) by weighted least squares with no coefficient below zero. With
//! λ = 1/a, σ = b/a and κ = c/a it is the universal law; without c it approaches a ceiling.

use inferometer_model::spec::Slo;
use inferometer_model::study::Level;
use inferometer_model::whole::to_usize;
use serde::{Deserialize, Serialize};

use super::level::{AcrossRuns, LevelSummary, Served, falls_behind};
use crate::judge::Threshold;
use crate::metric::{self, LatencyOrigin, Metric, Quantity};
use crate::statistics::{Interval, Probability, Sample, UPPER, draws::Draws, normal};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding<T> {
    Found(T),
    /// The reason, as a fragment of a sentence.
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
    fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }

    pub const fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Unknown(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub peak: Finding<Peak>,
    pub knee: Finding<Knee>,
    pub sweet_spot: Finding<SweetSpot>,
    pub per_user_spot: Finding<PerUserSpot>,
    pub saturation: Finding<Saturation>,
    pub scalability: Finding<Scalability>,
    /// Levels that have no part in peak, knee, both spots and scalability: a limit of time cut them, so
    /// that their figures are of the quick requests, or they were never reached.
    #[serde(default)]
    pub left_out: Vec<Level>,
    /// Those of `left_out` that never had as many requests in flight as they ask for: what they say of
    /// a user is of users who were not there.
    #[serde(default)]
    pub not_reached: Vec<Level>,
}

impl Findings {
    /// Levels without a run that counts have no numbers, and so no part in them. The sweet spot is found
    /// by these SLOs, or by those of interactive use where there are none.
    pub fn find(levels: &[LevelSummary], slos: &[Slo]) -> Self {
        let curve = Curve::new(levels);
        let is_concurrency =
            curve.points.iter().all(|point| matches!(point.level, Level::Concurrency(_)));
        Self {
            peak: Peak::find(levels),
            knee: Knee::find(&curve),
            sweet_spot: SweetSpot::find(levels, slos),
            per_user_spot: PerUserSpot::find(levels),
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
    pub served_above: Option<f64>,
}

impl Saturation {
    pub(super) fn find(levels: &[LevelSummary]) -> Finding<Self> {
        let rates: Vec<&Served> = levels.iter().filter_map(|level| level.served.as_ref()).collect();
        if rates.is_empty() {
            return Finding::unknown(
                "saturation is defined for request rates, and no level is a rate",
            );
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

/// The level with the highest throughput among those that meet all SLOs; on a tie the lower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweetSpot {
    pub level: Level,
    pub quantity: String,
    pub throughput: Figure,
    /// The SLOs; that of each request is judged by the p99.
    pub slos: Vec<String>,
    /// Whether they are those of interactive use, because the user has set none.
    pub default_slos: bool,
    /// All levels that meet them, from the lowest to the highest.
    pub eligible: Vec<Level>,
    /// How often a set drawn again chooses the same level; null without intervals.
    pub same_share: Option<f64>,
    /// Whether every value that it was chosen by comes from enough requests.
    pub certified: bool,
}

/// SLOs of interactive use: the answer begins within a second and is written at ten tokens per second,
/// which is faster than people read, for 99 of 100 requests.
const INTERACTIVE: [&str; 2] = ["ttft.p99<1s", "tpot.p99<100ms"];
/// A level with more failures than this serves nobody well.
const FAILED_SHARE: f64 = 0.01;

/// The rule of the reference report: among the concurrency levels whose TTFT p99 and TPOT p99 are both
/// within twice the smallest of each, the one with the highest per-user throughput; on a tie the lower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerUserSpot {
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

/// Levels that have a value of each of some quantities, of which the last shall be as high as possible.
struct Candidates<'a> {
    levels: Vec<(Level, Vec<&'a AcrossRuns>)>,
    /// The means of one level after the other.
    means: Vec<f64>,
    quantities: usize,
}

/// The level that was chosen among candidates.
struct Choice {
    level: Level,
    /// One for each quantity.
    figures: Vec<Figure>,
    eligible: Vec<Level>,
    same_share: Option<f64>,
    certified: bool,
}

impl<'a> Candidates<'a> {
    fn new(levels: impl Iterator<Item = &'a LevelSummary>, quantities: &[Quantity]) -> Self {
        let mut found =
            Self { levels: Vec::new(), means: Vec::new(), quantities: quantities.len() };
        for level in levels.filter(|level| level.is_comparable()) {
            let across = quantities.iter().map(|quantity| level.quantity(*quantity));
            let Some(across) = across.collect::<Option<Vec<_>>>() else { continue };
            let means: Option<Vec<f64>> = across.iter().map(|across| across.mean).collect();
            found.means.extend(means.iter().flatten());
            found.levels.extend(means.map(|_| (level.level, across)));
        }
        found
    }

    /// Chooses among the places that `eligible` finds among the means; on a tie the lower level.
    fn choose(&self, eligible: impl Fn(&[f64]) -> Vec<usize>) -> Option<Choice> {
        let best = |means: &[f64]| {
            let last = |place: &usize| means[(place + 1) * self.quantities - 1];
            // From the highest level down, so that the last of equals is the lowest.
            eligible(means).into_iter().rev().max_by(|a, b| last(a).total_cmp(&last(b)))
        };
        let place = best(&self.means)?;
        let (level, across) = &self.levels[place];
        let all = || self.levels.iter().flat_map(|(_, across)| across.iter().copied());
        Some(Choice {
            level: *level,
            figures: across.iter().filter_map(|across| across.figure()).collect(),
            eligible: eligible(&self.means).into_iter().map(|place| self.levels[place].0).collect(),
            same_share: resampled(all())
                .map(|values| share_of_draws(&values, |drawn| best(drawn) == Some(place))),
            certified: all().all(|across| across.certified),
        })
    }

    /// The places of the levels whose means are so.
    fn places(&self, means: &[f64], is_so: impl Fn(&[f64]) -> bool) -> Vec<usize> {
        let levels = means.chunks(self.quantities).enumerate();
        levels.filter(|(_, own)| is_so(own)).map(|(place, _)| place).collect()
    }
}

impl SweetSpot {
    fn find(levels: &[LevelSummary], slos: &[Slo]) -> Finding<Self> {
        let is_open = levels.iter().any(|it| matches!(it.level, Level::Rate(_) | Level::Unlimited));
        let origin = LatencyOrigin::for_load(is_open);
        let defaults: Vec<Slo> = INTERACTIVE.iter().filter_map(|text| text.parse().ok()).collect();
        let default_slos = slos.is_empty();
        let wanted = (if default_slos { &defaults } else { slos }).iter().filter_map(|slo| {
            let mut threshold = Threshold::from_slo(slo, origin).ok()?;
            if !threshold.is_per_request() {
                return Some((threshold, slo.to_string()));
            }
            threshold.quantity = threshold.quantity.metric().p99();
            Some((threshold, format!("{slo} at p99")))
        });
        let (thresholds, slos): (Vec<Threshold>, Vec<String>) = wanted.unzip();
        let metric = Curve::with_places(levels, |_| true).metric;
        let quantities: Vec<Quantity> =
            thresholds.iter().map(|it| it.quantity).chain([metric.quantity()]).collect();
        let is_served = |level: &&LevelSummary| level.failed_share.unwrap_or(0.0) <= FAILED_SHARE;
        let candidates = Candidates::new(levels.iter().filter(is_served), &quantities);
        let listed = slos.join(" and ");
        if candidates.levels.is_empty() {
            return Finding::unknown(format!("no level has the values to judge {listed} by"));
        }
        let meets = |own: &[f64]| thresholds.iter().zip(own).all(|(it, mean)| it.is_met_by(*mean));
        let Some(choice) = candidates.choose(|means| candidates.places(means, meets)) else {
            return Finding::unknown(format!("no level meets {listed}"));
        };
        Finding::Found(Self {
            level: choice.level,
            quantity: metric.name.to_owned(),
            throughput: choice.figures[thresholds.len()],
            slos,
            default_slos,
            eligible: choice.eligible,
            same_share: choice.same_share,
            certified: choice.certified,
        })
    }
}

impl PerUserSpot {
    fn find(levels: &[LevelSummary]) -> Finding<Self> {
        let is_concurrency = |level: &&LevelSummary| matches!(level.level, Level::Concurrency(_));
        if !levels.iter().any(|level| is_concurrency(&level)) {
            return Finding::unknown("it is a concurrency level, and there are none");
        }
        let (ttft, tpot) = (metric::TTFT.p99(), metric::TPOT.p99());
        let quantities = [ttft, tpot, metric::PER_USER_THROUGHPUT.quantity()];
        let candidates = Candidates::new(levels.iter().filter(is_concurrency), &quantities);
        if candidates.levels.is_empty() {
            return Finding::unknown(
                "no level has a TTFT p99, a TPOT p99 and a throughput per user",
            );
        }
        let near_the_best = |means: &[f64]| {
            let smallest =
                |of: usize| means.chunks(3).map(|own| own[of]).fold(f64::INFINITY, f64::min);
            let limits = [0, 1].map(|of| TIMES_THE_BEST * smallest(of));
            candidates.places(means, |own| own[0] <= limits[0] && own[1] <= limits[1])
        };
        let Some(choice) = candidates.choose(near_the_best) else {
            return Finding::unknown(
                "no level is within twice the best TTFT p99 and the best TPOT p99",
            );
        };
        Finding::Found(Self {
            level: choice.level,
            per_user_throughput: choice.figures[2],
            ttft_ms_p99: choice.figures[0],
            tpot_ms_p99: choice.figures[1],
            eligible: choice.eligible,
            same_share: choice.same_share,
            certified: candidates.levels.iter().all(|(_, it)| it[0].certified && it[1].certified),
        })
    }
}

impl Peak {
    fn find(levels: &[LevelSummary]) -> Finding<Self> {
        let metric = Curve::with_places(levels, |_| true).metric;
        let candidates = Candidates::new(levels.iter(), &[metric.quantity()]);
        let Some(choice) = candidates.choose(|means| (0..means.len()).collect()) else {
            return Finding::unknown("no valid level has a throughput");
        };
        Finding::Found(Self {
            level: choice.level,
            quantity: metric.name.to_owned(),
            throughput: choice.figures[0],
            same_share: choice.same_share,
        })
    }
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
                "throughput has no knee in this range; measure higher levels to find it",
            );
        };
        let (interval, found_share) = interval(curve).unzip();
        let point = &curve.points[place];
        Finding::Found(Self {
            level: point.level,
            interval: interval.flatten(),
            found_share,
            quantity: curve.metric.name.to_owned(),
            throughput: Figure { value: point.mean, interval: point.across.confidence_interval() },
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
    let at =
        |p: f64| last.map(|last| curve.points[knees[to_usize((p * last as f64).round())]].level);
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

/// Levels that have a throughput, were reached and not cut, from the lowest to the highest.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    metric: &'static Metric,
    points: Vec<CurvePoint<'a>>,
}

#[derive(Debug)]
struct CurvePoint<'a> {
    level: Level,
    /// Position on the axis of levels; infinite for an unlimited load.
    place: f64,
    mean: f64,
    across: &'a AcrossRuns,
}

impl<'a> Curve<'a> {
    /// The levels that have a position on an axis.
    pub(super) fn new(levels: &'a [LevelSummary]) -> Self {
        Self::with_places(levels, f64::is_finite)
    }

    /// The throughput of output tokens; where nothing generates any, of requests.
    fn with_places(levels: &'a [LevelSummary], is_wanted: fn(f64) -> bool) -> Self {
        let curve = |metric: &'static Metric| {
            let point = |summary: &'a LevelSummary| {
                let across = summary.quantity(metric)?;
                let place = summary.level.place().unwrap_or(f64::INFINITY);
                let point = CurvePoint { level: summary.level, place, mean: across.mean?, across };
                (summary.is_comparable() && is_wanted(place)).then_some(point)
            };
            Self { metric, points: levels.iter().filter_map(point).collect() }
        };
        let tokens = curve(&metric::OUTPUT_THROUGHPUT);
        if tokens.points.is_empty() { curve(&metric::REQUEST_THROUGHPUT) } else { tokens }
    }

    /// Its places with their means, or with other values.
    fn with_values(&self, values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| point.place).zip(values).collect()
    }

    fn means(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|point| point.mean)
    }

    /// `None` when a level has no interval to draw from.
    fn resampled(&self) -> Option<Vec<Resampled>> {
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
struct Resampled {
    mean: f64,
    scale: f64,
    /// Degrees of freedom of Student's t; `None` is the normal distribution.
    degrees: Option<u32>,
}

impl Resampled {
    /// From the spread between runs, or of a single run from the interval within it. `None` when
    /// there is neither.
    fn from_across(across: &AcrossRuns) -> Option<Self> {
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
fn replicates(values: &[Resampled]) -> impl Iterator<Item = Vec<f64>> + '_ {
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
fn resampled<'a>(all: impl IntoIterator<Item = &'a AcrossRuns>) -> Option<Vec<Resampled>> {
    all.into_iter().map(Resampled::from_across).collect()
}

/// Both models with their results, and which of them is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalability {
    pub quantity: String,
    /// The one with the lower `AICc`; with too few levels for that, the universal law where κ is above
    /// zero beyond its interval.
    pub chosen: Finding<Model>,
    pub universal: Universal,
    pub saturating: Saturating,
    /// Whether one is chosen and explains the levels.
    pub fits: bool,
    pub levels: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    Universal,
    Saturating,
}

/// X = λN / (1 + σ(N − 1) + κN(N − 1)), with σ and κ not below zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Universal {
    /// Throughput of one alone.
    pub lambda: Figure,
    /// What they wait for each other.
    pub sigma: Figure,
    /// What they cost each other.
    pub kappa: Figure,
    /// Where throughput would begin to fall, √((1 − σ)/κ).
    pub peak: Finding<Figure>,
    #[serde(flatten)]
    pub quality: FitQuality,
}

/// How well a curve explains the levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitQuality {
    /// Weighted, as the fit is.
    pub r_squared: f64,
    /// Null with too few levels for its parameters.
    pub aicc: Option<f64>,
    /// The largest residual, as a share of the value that was measured.
    pub residual_max: f64,
}

/// X = X∞ N / (N + N½).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturating {
    /// The throughput that it goes towards; unknown when it rises evenly.
    pub ceiling: Finding<Figure>,
    /// The concurrency at which half of it is reached.
    pub half_at: Finding<Figure>,
    #[serde(flatten)]
    pub quality: FitQuality,
}

/// From here on both models have an `AICc`.
const LEVELS_TO_CHOOSE: usize = 6;
/// Below this share of explained variance a curve is not reported as an explanation.
const R_SQUARED_MIN: f64 = 0.95;

impl Scalability {
    /// The levels must be concurrencies: a request rate is not a number of users who share the server.
    pub(super) fn find(curve: &Curve<'_>, is_concurrency: bool) -> Finding<Self> {
        if !is_concurrency {
            return Finding::unknown(
                "scalability is defined for concurrency, and the levels are not concurrencies",
            );
        }
        let count = curve.points.len();
        if count < LEVELS_MIN {
            return Finding::unknown(format!(
                "it needs {LEVELS_MIN} levels, and {count} are valid"
            ));
        }
        let observed = observed(curve, curve.means());
        let fits = (fit(&observed, UNIVERSAL), fit(&observed, SATURATING));
        let (Some(three), Some(two)) = fits else {
            return Finding::unknown("no such curve can be fitted to the levels");
        };
        // The same fits of the resampled sets.
        let drawn: Option<Vec<Vec<Observed>>> = curve
            .resampled()
            .map(|values| replicates(&values).map(|drawn| self::observed(curve, drawn)).collect());
        let refits = |ways| -> Option<Vec<Fitted>> {
            Some(drawn.as_ref()?.iter().filter_map(|drawn| fit(drawn, ways)).collect())
        };
        let universal = universal(&three, &observed, refits(UNIVERSAL).as_deref());
        let saturating = saturating(&two, &observed, refits(SATURATING).as_deref());
        let chosen = match (universal.quality.aicc, saturating.quality.aicc) {
            (Some(universal), Some(saturating)) if universal < saturating => {
                Finding::Found(Model::Universal)
            }
            (Some(_), Some(_)) => Finding::Found(Model::Saturating),
            _ if universal.kappa.interval.is_some_and(|kappa| 0.0 < kappa.low) => {
                Finding::Found(Model::Universal)
            }
            _ => Finding::unknown(format!(
                "{count} levels are too few to tell whether throughput falls or only saturates; \
                 measure {LEVELS_TO_CHOOSE}"
            )),
        };
        let r_squared = chosen.found().map(|chosen| match chosen {
            Model::Universal => universal.quality.r_squared,
            Model::Saturating => saturating.quality.r_squared,
        });
        Finding::Found(Self {
            quantity: curve.metric.name.to_owned(),
            chosen,
            universal,
            saturating,
            fits: r_squared.is_some_and(|r_squared| R_SQUARED_MIN <= r_squared),
            levels: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }
}

/// A level weighs by its runs and by the relative spread that all levels share: a spread of its
/// own, out of a few runs, would let chance choose the weights.
fn observed(curve: &Curve<'_>, values: impl IntoIterator<Item = f64>) -> Vec<Observed> {
    let points = curve.points.iter().zip(values);
    points
        .map(|(point, x)| Observed {
            n: point.place,
            x,
            weight: f64::from(point.across.n.max(1)) / (point.mean * point.mean),
        })
        .collect()
}

fn universal(fitted: &Fitted, observed: &[Observed], again: Option<&[Fitted]>) -> Universal {
    let figure = |of: fn(&Fitted) -> f64| Figure {
        value: of(fitted),
        interval: again.and_then(|again| central(again.iter().map(of).collect())),
    };
    let kappa = figure(Fitted::kappa);
    let peak = match (fitted.peak(), kappa.interval) {
        (None, _) => Finding::unknown("no peak: throughput saturates"),
        (Some(_), None) => Finding::unknown(
            "without intervals it is not known whether κ is above zero, so there may be no peak",
        ),
        // κ cannot be below zero, so an interval that includes it begins there.
        (Some(_), Some(interval)) if interval.low <= 0.0 => {
            Finding::unknown("no peak: the interval of κ includes zero, so throughput saturates")
        }
        (Some(value), Some(_)) => {
            let peaks = again.map(|again| again.iter().filter_map(Fitted::peak).collect());
            Finding::Found(Figure { value, interval: peaks.and_then(central) })
        }
    };
    Universal {
        lambda: figure(Fitted::lambda),
        sigma: figure(Fitted::sigma),
        kappa,
        peak,
        quality: fit_quality(fitted, observed),
    }
}

fn saturating(fitted: &Fitted, observed: &[Observed], again: Option<&[Fitted]>) -> Saturating {
    let figure = |of: fn(&Fitted) -> Option<f64>, absent: &str| match of(fitted) {
        None => Finding::unknown(absent),
        Some(value) => {
            let drawn = again.map(|again| again.iter().filter_map(of).collect::<Vec<f64>>());
            // Where some of them have no ceiling, none bounds it from above.
            let all = drawn.filter(|drawn| again.is_some_and(|again| again.len() == drawn.len()));
            Finding::Found(Figure { value, interval: all.and_then(central) })
        }
    };
    Saturating {
        ceiling: figure(Fitted::ceiling, EVENLY),
        half_at: figure(
            Fitted::half_at,
            fitted.ceiling().map_or(EVENLY, |_| "one alone reaches more than half of the ceiling"),
        ),
        quality: fit_quality(fitted, observed),
    }
}

const EVENLY: &str = "throughput rises in proportion to concurrency: no ceiling is visible";

/// The middle 95 % of what was drawn.
fn central(drawn: Vec<f64>) -> Option<Interval> {
    let sample = Sample::new(drawn)?;
    let at = |p| Probability::new(p).map(|p| sample.quantile(p));
    Interval::new(at(1.0 - UPPER)?, at(UPPER)?)
}

/// One level.
#[derive(Clone, Copy, Debug)]
struct Observed {
    n: f64,
    x: f64,
    weight: f64,
}

/// The sets of coefficients that a fit may use; it holds the others at zero.
type Ways = &'static [[bool; 3]];

const UNIVERSAL: Ways =
    &[[true; 3], [true, false, true], [true, true, false], [true, false, false]];
const SATURATING: Ways = &[[true, true, false], [true, false, false]];

/// The three coefficients, and how many of them the model has.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fitted {
    coefficients: [f64; 3],
    parameters: usize,
}

/// Steps of a descent.
const STEPS_MAX: usize = 50;
/// A step that gains less than this share of what is left ends the descent.
const GAIN_MIN: f64 = 1e-12;

impl Fitted {
    fn lambda(&self) -> f64 {
        1.0 / self.coefficients[0]
    }

    fn sigma(&self) -> f64 {
        self.coefficients[1] / self.coefficients[0]
    }

    fn kappa(&self) -> f64 {
        self.coefficients[2] / self.coefficients[0]
    }

    fn peak(&self) -> Option<f64> {
        let (sigma, kappa) = (self.sigma(), self.kappa());
        (0.0 < kappa && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt())
    }

    fn ceiling(&self) -> Option<f64> {
        let [_, b, _] = self.coefficients;
        (0.0 < b).then(|| 1.0 / b)
    }

    /// N½ of X∞ N / (N + N½): the curve is N / ((a − b) + bN). `None` where it would not be above zero.
    fn half_at(&self) -> Option<f64> {
        let [a, b, _] = self.coefficients;
        (0.0 < b && b < a).then(|| (a - b) / b)
    }

    fn at(&self, n: f64) -> f64 {
        n / self.coefficients.iter().zip(terms(n)).map(|(a, b)| a * b).sum::<f64>()
    }

    fn loss(&self, observed: &[Observed]) -> f64 {
        let square = |one: &Observed| one.weight * (one.x - self.at(one.n)).powi(2);
        observed.iter().map(square).sum()
    }
}

/// The best of all ways to hold some coefficients at zero. `None` when no way has a throughput
/// above zero at one alone.
fn fit(observed: &[Observed], ways: Ways) -> Option<Fitted> {
    let parameters = ways[0].iter().filter(|is_free| **is_free).count();
    ways.iter()
        .filter_map(|free| descend(observed, *free, parameters))
        .map(|fitted| (fitted.loss(observed), fitted))
        .filter(|(loss, _)| loss.is_finite())
        // The first of equals has the most terms, and they are then zero by themselves.
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, fitted)| fitted)
}

/// From the straight form N/X = a + b(N − 1) + cN(N − 1) down to the least squares of X itself.
fn descend(observed: &[Observed], free: [bool; 3], parameters: usize) -> Option<Fitted> {
    // An error of X is an error of N/X times N/X².
    let straight = observed.iter().map(|one| Row {
        slopes: terms(one.n),
        value: one.n / one.x,
        weight: one.weight * (one.x * one.x / one.n).powi(2),
    });
    let start = solve(straight, free, 0.0)?;
    let mut fitted = possible(start, parameters)?;
    let mut loss = fitted.loss(observed);
    let mut damping = 0.0;
    for _ in 0..STEPS_MAX {
        let rows = observed.iter().map(|one| {
            let x = fitted.at(one.n);
            let slopes = terms(one.n).map(|term| -x * x / one.n * term);
            Row { slopes, value: one.x - x, weight: one.weight }
        });
        let step = solve(rows, free, damping)?;
        let moved = std::array::from_fn(|place| fitted.coefficients[place] + step[place]);
        let next = possible(moved, parameters).map(|next| (next.loss(observed), next));
        match next {
            Some((lower, next)) if lower < loss => {
                let gain = loss - lower;
                (fitted, loss, damping) = (next, lower, damping / 10.0);
                if gain <= GAIN_MIN * loss {
                    break;
                }
            }
            _ if 1e9 < damping => break,
            _ => damping = (damping * 10.0).max(1e-3),
        }
    }
    Some(fitted)
}

/// `None` when a coefficient is below zero: another way to hold them at zero is better then.
fn possible(coefficients: [f64; 3], parameters: usize) -> Option<Fitted> {
    let [a, b, c] = coefficients;
    let sound = coefficients.iter().all(|one| one.is_finite()) && 0.0 < a && 0.0 <= b && 0.0 <= c;
    sound.then_some(Fitted { coefficients, parameters })
}

fn terms(n: f64) -> [f64; 3] {
    [1.0, n - 1.0, n * (n - 1.0)]
}

struct Row {
    slopes: [f64; 3],
    value: f64,
    weight: f64,
}

/// Least squares over the free coefficients; the others stay zero. The diagonal is raised by the
/// damping's share of itself.
fn solve(rows: impl Iterator<Item = Row>, free: [bool; 3], damping: f64) -> Option<[f64; 3]> {
    let mut matrix = [[0.0; 4]; 3];
    for row in rows {
        let [a, b, c] = row.slopes;
        for (equation, slope) in matrix.iter_mut().zip(row.slopes) {
            let cells = equation.iter_mut().zip([a, b, c, row.value]);
            cells.for_each(|(cell, other)| *cell += row.weight * slope * other);
        }
    }
    for (place, is_free) in free.iter().enumerate() {
        if *is_free {
            matrix[place][place] *= 1.0 + damping;
        } else {
            for equation in &mut matrix {
                equation[place] = 0.0;
            }
            matrix[place] = [0.0; 4];
            matrix[place][place] = 1.0;
        }
    }
    // Eliminates by the largest pivot of each column; without one there is no solution.
    for column in 0..3 {
        let pivot = (column..3)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        matrix.swap(column, pivot);
        let upper = matrix[column];
        for (place, row) in matrix.iter_mut().enumerate() {
            if place != column {
                let factor = row[column] / upper[column];
                row.iter_mut().zip(upper).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
    }
    Some(std::array::from_fn(|place| matrix[place][3] / matrix[place][place]))
}

fn fit_quality(fitted: &Fitted, observed: &[Observed]) -> FitQuality {
    let weights: f64 = observed.iter().map(|one| one.weight).sum();
    let mean = observed.iter().map(|one| one.weight * one.x).sum::<f64>() / weights;
    let total: f64 = observed.iter().map(|one| one.weight * (one.x - mean).powi(2)).sum();
    let loss = fitted.loss(observed);
    let residual = |one: &Observed| ((one.x - fitted.at(one.n)) / one.x).abs();
    FitQuality {
        r_squared: if 0.0 < total { 1.0 - loss / total } else { 0.0 },
        aicc: aicc(loss.max(f64::EPSILON * total), observed.len(), fitted.parameters + 1),
        residual_max: observed.iter().map(residual).fold(0.0, f64::max),
    }
}

/// The corrected information criterion of least squares; the spread counts as a parameter. `None` when
/// there are too few levels for the correction.
fn aicc(loss: f64, levels: usize, parameters: usize) -> Option<f64> {
    let room = levels.checked_sub(parameters + 1).filter(|room| 0 < *room)? as f64;
    let (levels, parameters) = (levels as f64, parameters as f64);
    let correction = 2.0 * parameters * (parameters + 1.0) / room;
    Some(levels * libm::log(loss / levels) + 2.0 * parameters + correction)
}

#[cfg(test)]
mod tests;
