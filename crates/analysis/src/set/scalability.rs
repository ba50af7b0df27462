//! How throughput grows with concurrency: the universal scalability law, or a curve that only
//! saturates, whichever the levels speak for.

mod fit;

use serde::{Deserialize, Serialize};

use self::fit::{Fitted, Observed, Terms};
use super::curve::Curve;
use super::finding::{Figure, Finding};
use super::replicates::{doubtful, replicates};
use crate::estimate::Interval;
use crate::sample::{Probability, Sample};
use crate::statistics::UPPER;

/// Both models with what they come to, and which of them is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalability {
    pub quantity: String,
    /// The one with the lower `AICc`; with too few levels for that, the universal law where κ is above
    /// zero beyond its doubt.
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
    pub r_squared: f64,
    pub aicc: Option<f64>,
    pub residual_max: f64,
}

const LEVELS_MIN: usize = 4;
/// From here on both models have an `AICc`.
const LEVELS_TO_CHOOSE: usize = 6;
/// Below this share of explained variance a curve is not told as an explanation.
const R_SQUARED_MIN: f64 = 0.95;

impl Scalability {
    /// Of concurrency; a rate is what comes in, and no number of those who share the server.
    pub(super) fn find(curve: &Curve<'_>, is_concurrency: bool) -> Finding<Self> {
        if !is_concurrency {
            return Finding::unknown("it is a law of concurrency, and the levels are not that");
        }
        let count = curve.points.len();
        if count < LEVELS_MIN {
            return Finding::unknown(format!("it needs {LEVELS_MIN} levels, and {count} count"));
        }
        let observed =
            observed(curve, &curve.points.iter().map(|point| point.mean).collect::<Vec<_>>());
        let fits = (fit::fit(&observed, Terms::Universal), fit::fit(&observed, Terms::Saturating));
        let (Some(three), Some(two)) = fits else {
            return Finding::unknown("no curve of this kind can be laid through the levels");
        };
        let again = Refits::of(curve);
        let universal = universal(&three, &observed, again.as_ref());
        let saturating = saturating(&two, &observed, again.as_ref());
        let chosen = chosen(&universal, &saturating, count);
        let r_squared = chosen.found().map(|chosen| match chosen {
            Model::Universal => universal.r_squared,
            Model::Saturating => saturating.r_squared,
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

fn chosen(universal: &Universal, saturating: &Saturating, levels: usize) -> Finding<Model> {
    match (universal.aicc, saturating.aicc) {
        (Some(universal), Some(saturating)) if universal < saturating => {
            Finding::Found(Model::Universal)
        }
        (Some(_), Some(_)) => Finding::Found(Model::Saturating),
        _ if universal.kappa.interval.is_some_and(|kappa| 0.0 < kappa.low) => {
            Finding::Found(Model::Universal)
        }
        _ => Finding::unknown(format!(
            "{levels} levels are too few to tell whether throughput falls or only saturates; \
             measure {LEVELS_TO_CHOOSE}"
        )),
    }
}

/// A level weighs by its runs and by the relative spread that all levels share: a spread of its
/// own, out of a few runs, would let chance choose the weights.
fn observed(curve: &Curve<'_>, values: &[f64]) -> Vec<Observed> {
    let points = curve.points.iter().zip(values);
    points
        .map(|(point, value)| Observed {
            n: point.place,
            x: *value,
            weight: f64::from(point.across.n.max(1)) / (point.mean * point.mean),
        })
        .collect()
}

/// The same fits of the sets drawn again.
struct Refits {
    universal: Vec<Fitted>,
    saturating: Vec<Fitted>,
}

impl Refits {
    /// `None` when a level has no interval to draw from.
    fn of(curve: &Curve<'_>) -> Option<Self> {
        let values = doubtful(curve.points.iter().map(|point| point.across))?;
        let drawn: Vec<Vec<Observed>> =
            replicates(&values).map(|drawn| observed(curve, &drawn)).collect();
        let of = |terms| drawn.iter().filter_map(|drawn| fit::fit(drawn, terms)).collect();
        Some(Self { universal: of(Terms::Universal), saturating: of(Terms::Saturating) })
    }
}

fn universal(fitted: &Fitted, observed: &[Observed], again: Option<&Refits>) -> Universal {
    let again = again.map(|again| again.universal.as_slice());
    let figure = |of: fn(&Fitted) -> f64| Figure { value: of(fitted), interval: spread(again, of) };
    let kappa = figure(Fitted::kappa);
    let peak = match (fitted.peak(), kappa.interval) {
        (None, _) => Finding::unknown("no peak: it saturates"),
        (Some(_), None) => Finding::unknown(
            "whether κ differs from zero is not known without intervals, and so is a peak",
        ),
        // κ cannot be below zero, so an interval that includes it begins there.
        (Some(_), Some(interval)) if interval.low <= 0.0 => {
            Finding::unknown("no peak: the interval of κ includes zero, so it saturates")
        }
        (Some(value), Some(_)) => {
            let peaks = again.map(|again| again.iter().filter_map(Fitted::peak).collect());
            Finding::Found(Figure { value, interval: peaks.and_then(central) })
        }
    };
    let quality = fit::quality(fitted, observed);
    Universal {
        lambda: figure(Fitted::lambda),
        sigma: figure(Fitted::sigma),
        kappa,
        peak,
        r_squared: quality.r_squared,
        aicc: quality.aicc,
        residual_max: quality.residual_max,
    }
}

fn saturating(fitted: &Fitted, observed: &[Observed], again: Option<&Refits>) -> Saturating {
    let again = again.map(|again| again.saturating.as_slice());
    let figure = |of: fn(&Fitted) -> Option<f64>, absent: &str| match of(fitted) {
        None => Finding::unknown(absent),
        Some(value) => {
            let drawn = again.map(|again| again.iter().filter_map(of).collect::<Vec<f64>>());
            // Where some of them have no ceiling, none bounds it from above.
            let all = drawn.filter(|drawn| again.is_some_and(|again| again.len() == drawn.len()));
            Finding::Found(Figure { value, interval: all.and_then(central) })
        }
    };
    let quality = fit::quality(fitted, observed);
    Saturating {
        ceiling: figure(Fitted::ceiling, EVENLY),
        half_at: figure(
            Fitted::half_at,
            if fitted.ceiling().is_some() {
                "one alone reaches more than half of it"
            } else {
                EVENLY
            },
        ),
        r_squared: quality.r_squared,
        aicc: quality.aicc,
        residual_max: quality.residual_max,
    }
}

const EVENLY: &str = "throughput rises evenly with concurrency: no ceiling in sight";

fn spread(again: Option<&[Fitted]>, of: fn(&Fitted) -> f64) -> Option<Interval> {
    central(again?.iter().map(of).collect())
}

/// The middle 95 % of what was drawn.
fn central(drawn: Vec<f64>) -> Option<Interval> {
    let sample = Sample::new(drawn)?;
    let at = |p| Probability::new(p).map(|p| sample.quantile(p));
    Interval::new(at(1.0 - UPPER)?, at(UPPER)?)
}

#[cfg(test)]
mod tests;
