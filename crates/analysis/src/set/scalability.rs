//! How throughput grows with concurrency: the universal scalability law, or a curve that only
//! saturates, whichever the levels speak for.
//!
//! Both are fits of N / (a + b(N − 1) + cN(N − 1)) by weighted least squares with no coefficient below
//! zero: with λ = 1/a, σ = b/a and κ = c/a it is the universal law; without c it goes towards a ceiling.

use serde::{Deserialize, Serialize};

use super::findings::{Curve, Figure, Finding, replicates};
use crate::statistics::{Interval, Probability, Sample, UPPER};

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

const LEVELS_MIN: usize = 4;
/// From here on both models have an `AICc`.
const LEVELS_TO_CHOOSE: usize = 6;
/// Below this share of explained variance a curve is not reported as an explanation.
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
        let observed = observed(curve, curve.means());
        let fits = (fit(&observed, Terms::Universal), fit(&observed, Terms::Saturating));
        let (Some(three), Some(two)) = fits else {
            return Finding::unknown("no curve of this kind can be laid through the levels");
        };
        // The same fits of the sets drawn again.
        let drawn: Option<Vec<Vec<Observed>>> = curve
            .resampled()
            .map(|values| replicates(&values).map(|drawn| self::observed(curve, drawn)).collect());
        let refits = |terms| -> Option<Vec<Fitted>> {
            Some(drawn.as_ref()?.iter().filter_map(|drawn| fit(drawn, terms)).collect())
        };
        let universal = universal(&three, &observed, refits(Terms::Universal).as_deref());
        let saturating = saturating(&two, &observed, refits(Terms::Saturating).as_deref());
        let chosen = chosen(&universal, &saturating, count);
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

fn chosen(universal: &Universal, saturating: &Saturating, levels: usize) -> Finding<Model> {
    match (universal.quality.aicc, saturating.quality.aicc) {
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
            fitted.ceiling().map_or(EVENLY, |_| "one alone reaches more than half of it"),
        ),
        quality: fit_quality(fitted, observed),
    }
}

const EVENLY: &str = "throughput rises evenly with concurrency: no ceiling in sight";

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terms {
    Universal,
    Saturating,
}

/// The three coefficients, and how many of them were asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fitted {
    coefficients: [f64; 3],
    parameters: usize,
}

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
        n / dot(&self.coefficients, &terms(n))
    }

    fn loss(&self, observed: &[Observed]) -> f64 {
        let square = |one: &Observed| one.weight * (one.x - self.at(one.n)).powi(2);
        observed.iter().map(square).sum()
    }
}

/// The best of all ways to hold some coefficients at zero. `None` when no way has a throughput
/// above zero at one alone.
fn fit(observed: &[Observed], terms: Terms) -> Option<Fitted> {
    let (ways, parameters): (&[[bool; 3]], usize) = match terms {
        Terms::Universal => (&[[true; 3], [true, false, true], SATURATING, LINEAR], 3),
        Terms::Saturating => (&[SATURATING, LINEAR], 2),
    };
    ways.iter()
        .filter_map(|free| descend(observed, *free, parameters))
        .map(|fitted| (fitted.loss(observed), fitted))
        .filter(|(loss, _)| loss.is_finite())
        // The first of equals has the most terms, and they are then zero by themselves.
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, fitted)| fitted)
}

const SATURATING: [bool; 3] = [true, true, false];
const LINEAR: [bool; 3] = [true, false, false];

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

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
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
    eliminate(matrix)
}

/// By the largest pivot of a column; `None` when there is none.
fn eliminate(mut matrix: [[f64; 4]; 3]) -> Option<[f64; 3]> {
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

/// The corrected information criterion of least squares; the spread counts as a parameter. `None`
/// when there are too few levels for the correction.
fn aicc(loss: f64, levels: usize, parameters: usize) -> Option<f64> {
    let room = levels.checked_sub(parameters + 1).filter(|room| 0 < *room)? as f64;
    let (levels, parameters) = (levels as f64, parameters as f64);
    let correction = 2.0 * parameters * (parameters + 1.0) / room;
    Some(levels * libm::log(loss / levels) + 2.0 * parameters + correction)
}

#[cfg(test)]
mod tests;
