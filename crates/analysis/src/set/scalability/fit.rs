//! Weighted least squares for N / (a + b(N − 1) + cN(N − 1)), nothing of it below zero.
//!
//! With λ = 1/a, σ = b/a and κ = c/a this is the universal scalability law; without c it is the
//! curve that goes towards a ceiling. Both are the same fit with more or fewer terms.

/// One level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) n: f64,
    pub(super) x: f64,
    pub(super) weight: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terms {
    Universal,
    Saturating,
}

/// The three coefficients, and how many of them were asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted {
    coefficients: [f64; 3],
    parameters: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quality {
    pub(super) r_squared: f64,
    pub(super) aicc: Option<f64>,
    pub(super) residual_max: f64,
}

const STEPS_MAX: usize = 50;
/// A step that gains less than this share of what is left ends the descent.
const GAIN_MIN: f64 = 1e-12;

impl Fitted {
    pub(super) fn lambda(&self) -> f64 {
        1.0 / self.coefficients[0]
    }

    pub(super) fn sigma(&self) -> f64 {
        self.coefficients[1] / self.coefficients[0]
    }

    pub(super) fn kappa(&self) -> f64 {
        self.coefficients[2] / self.coefficients[0]
    }

    pub(super) fn peak(&self) -> Option<f64> {
        let (sigma, kappa) = (self.sigma(), self.kappa());
        (0.0 < kappa && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt())
    }

    pub(super) fn ceiling(&self) -> Option<f64> {
        let [_, b, _] = self.coefficients;
        (0.0 < b).then(|| 1.0 / b)
    }

    /// N½ of X∞ N / (N + N½): the curve is N / ((a − b) + bN). `None` where it would not be above zero.
    pub(super) fn half_at(&self) -> Option<f64> {
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
pub(super) fn fit(observed: &[Observed], terms: Terms) -> Option<Fitted> {
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

pub(super) fn quality(fitted: &Fitted, observed: &[Observed]) -> Quality {
    let weights: f64 = observed.iter().map(|one| one.weight).sum();
    let mean = observed.iter().map(|one| one.weight * one.x).sum::<f64>() / weights;
    let total: f64 = observed.iter().map(|one| one.weight * (one.x - mean).powi(2)).sum();
    let loss = fitted.loss(observed);
    let residual = |one: &Observed| ((one.x - fitted.at(one.n)) / one.x).abs();
    Quality {
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
mod tests {
    use super::*;

    fn observed(curve: impl Fn(f64) -> f64) -> Vec<Observed> {
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
            .map(|n| Observed { n, x: curve(n), weight: 1.0 / curve(n).powi(2) })
            .to_vec()
    }

    fn law(lambda: f64, sigma: f64, kappa: f64) -> impl Fn(f64) -> f64 {
        move |n| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }

    #[test]
    fn exact_laws_are_found_exactly() {
        for (lambda, sigma, kappa) in
            [(50.0, 0.05, 0.001), (50.0, 0.0, 0.002), (995.0, 0.3, 0.0), (7.0, 0.0, 0.0)]
        {
            let found = fit(&observed(law(lambda, sigma, kappa)), Terms::Universal).unwrap();
            assert!((found.lambda() / lambda - 1.0).abs() < 1e-6, "{found:?}");
            assert!((found.sigma() - sigma).abs() < 1e-6, "{found:?}");
            assert!((found.kappa() - kappa).abs() < 1e-7, "{found:?}");
        }
    }

    #[test]
    fn the_peak_is_where_the_law_has_it() {
        let found = fit(&observed(law(50.0, 0.05, 0.001)), Terms::Universal).unwrap();
        assert!((found.peak().unwrap() - (0.95_f64 / 0.001).sqrt()).abs() < 1e-3);
        assert_eq!(fit(&observed(law(50.0, 0.05, 0.0)), Terms::Saturating).unwrap().peak(), None);
    }

    #[test]
    fn a_ceiling_is_found_with_where_its_half_is() {
        let found = fit(&observed(|n| 800.0 * n / (n + 12.0)), Terms::Saturating).unwrap();
        assert!((found.ceiling().unwrap() - 800.0).abs() < 1e-3);
        assert!((found.half_at().unwrap() - 12.0).abs() < 1e-4);
        assert_eq!(fit(&observed(|n| 3.0 * n), Terms::Saturating).unwrap().ceiling(), None);
    }

    /// By `SciPy`: `optimize.least_squares` of the relative residuals, bounded at zero.
    #[test]
    fn noisy_levels_are_fitted_as_scipy_fits_them() {
        let measured = [97.72, 167.97, 255.92, 384.74, 387.10];
        let rows: Vec<Observed> = [2.0, 4.0, 8.0, 16.0, 32.0]
            .into_iter()
            .zip(measured)
            .map(|(n, x)| Observed { n, x, weight: 1.0 / (x * x) })
            .collect();
        let found = fit(&rows, Terms::Universal).unwrap();
        for (found, expected) in [
            (found.lambda(), 51.012_696),
            (found.sigma(), 0.064_722_1),
            (found.kappa(), 0.001_156_382_8),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-5, "{found} and not {expected}");
        }
    }

    #[test]
    fn too_few_levels_have_no_criterion() {
        assert_eq!(aicc(1.0, 4, 3), None);
        assert!(aicc(1.0, 5, 3).is_some());
        assert_eq!(aicc(1.0, 5, 4), None);
    }
}
