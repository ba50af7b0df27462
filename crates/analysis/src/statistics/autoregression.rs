//! An autoregression fitted to a series: a rough picture of how long its values remember. It chooses
//! the length of blocks and says what blocks of that length cannot see.

use inferometer_model::whole::to_usize;

use super::runs;

/// Where the memory of a fitted model is cut off; one that is still alive here is too long to judge.
const MOST_LAGS: usize = 4_096;
/// Correlations beneath this add nothing.
const NOTHING: f64 = 1e-6;
/// The model may raise the variance that blocks see, or lower it, by so much.
const SEEN: (f64, f64) = (0.5, 2.0);

#[derive(Clone, Debug)]
pub(crate) struct Autoregression {
    /// Autocorrelations of the model, from lag zero on.
    correlations: Vec<f64>,
    /// Their sum over all lags, both ways in time.
    total: f64,
}

impl Autoregression {
    /// Returns `None` when the values do not vary.
    pub(crate) fn fit(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let most = to_usize(10.0 * libm::log10(n as f64));
        let covariances = covariances(values, most.min(n / 8));
        if covariances[0] <= 0.0 {
            return None;
        }
        let coefficients = coefficients(&covariances, n);
        let known = covariances[..=coefficients.len()].iter();
        let known = known.map(|covariance| covariance / covariances[0]).collect();
        Some(Self::remembering(known, &coefficients))
    }

    fn remembering(mut correlations: Vec<f64>, coefficients: &[f64]) -> Self {
        let order = coefficients.len();
        while correlations.len() < MOST_LAGS {
            let recent = correlations.iter().rev();
            let next = recent.zip(coefficients).map(|(rho, coefficient)| rho * coefficient).sum();
            correlations.push(next);
            let latest = &correlations[correlations.len() - order.max(1)..];
            if latest.iter().all(|rho: &f64| rho.abs() < NOTHING) {
                break;
            }
        }
        let total = 1.0 + 2.0 * correlations[1..].iter().sum::<f64>();
        // Zero would be a series whose sum never strays; a fit to data is not to be believed that far.
        Self { correlations, total: total.max(NOTHING) }
    }

    /// The part of the variance that blocks miss, times their length.
    pub(crate) fn missed(&self) -> f64 {
        let lags = self.correlations.iter().enumerate();
        2.0 * lags.map(|(lag, rho)| lag as f64 * rho).sum::<f64>() / self.total
    }

    /// The part of the variance that blocks of this length see.
    pub(crate) fn share_seen(&self, block: usize) -> f64 {
        let lags = self.correlations.iter().enumerate().take(block).skip(1);
        let weighed = lags.map(|(lag, rho)| (1.0 - lag as f64 / block as f64) * rho);
        ((1.0 + 2.0 * weighed.sum::<f64>()) / self.total).clamp(SEEN.0, SEEN.1)
    }
}

fn covariances(values: &[f64], most: usize) -> Vec<f64> {
    let mean = runs::mean(values);
    let apart: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let at = |lag: usize| {
        let pairs = apart.iter().zip(&apart[lag..]);
        pairs.map(|(one, other)| one * other).sum::<f64>() / values.len() as f64
    };
    (0..=most).map(at).collect()
}

/// Levinson's recursion through all orders; the one that Akaike's criterion prefers.
fn coefficients(covariances: &[f64], n: usize) -> Vec<f64> {
    let (mut current, mut best) = (Vec::new(), Vec::new());
    let mut error = covariances[0];
    let mut least = n as f64 * libm::log(error);
    for order in 1..covariances.len() {
        let before = covariances[1..order].iter().rev().zip(&current);
        let explained: f64 = before.map(|(covariance, phi)| covariance * phi).sum();
        let reflection = (covariances[order] - explained) / error;
        let mirrored = current.iter().rev();
        let mut next: Vec<f64> =
            current.iter().zip(mirrored).map(|(phi, mirror)| phi - reflection * mirror).collect();
        next.push(reflection);
        current = next;
        error *= 1.0 - reflection * reflection;
        if error <= 0.0 {
            break;
        }
        let criterion = n as f64 * libm::log(error) + 2.0 * order as f64;
        if criterion < least {
            least = criterion;
            best.clone_from(&current);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draws;
    use super::*;

    fn series(phi: f64, n: usize) -> Vec<f64> {
        let mut draws = Draws::new(3, 0);
        let mut level = 0.0;
        let step = |_| {
            level = phi * level + draws.normal();
            level
        };
        (0..n).map(step).collect()
    }

    #[test]
    fn the_memory_of_an_autoregression_is_found() {
        let model = Autoregression::fit(&series(0.8, 50_000)).unwrap();
        // Σ ρ = (1 + φ) / (1 − φ) and Σ |k| ρ / Σ ρ = 2 φ / (1 − φ²).
        assert!((model.total - 9.0).abs() < 0.6, "{}", model.total);
        assert!((model.missed() - 4.44).abs() < 0.5, "{}", model.missed());
    }

    #[test]
    fn white_noise_remembers_next_to_nothing() {
        let model = Autoregression::fit(&series(0.0, 50_000)).unwrap();
        assert!((model.total - 1.0).abs() < 0.05, "{}", model.total);
        assert!((model.share_seen(1) - 1.0).abs() < 0.05);
    }

    #[test]
    fn longer_blocks_see_more() {
        let model = Autoregression::fit(&series(0.9, 20_000)).unwrap();
        assert!(model.share_seen(10) < model.share_seen(40));
        assert!(model.share_seen(400) > 0.95);
    }

    #[test]
    fn equal_values_have_no_model() {
        assert!(Autoregression::fit(&[1.5; 40]).is_none());
    }
}
