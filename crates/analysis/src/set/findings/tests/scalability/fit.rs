//! The fit itself.

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
        let found = fit(&observed(law(lambda, sigma, kappa)), UNIVERSAL).unwrap();
        assert!((found.lambda() / lambda - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.sigma() - sigma).abs() < 1e-6, "{found:?}");
        assert!((found.kappa() - kappa).abs() < 1e-7, "{found:?}");
    }
}

#[test]
fn the_peak_is_where_the_law_has_it() {
    let found = fit(&observed(law(50.0, 0.05, 0.001)), UNIVERSAL).unwrap();
    assert!((found.peak().unwrap() - (0.95_f64 / 0.001).sqrt()).abs() < 1e-3);
    assert_eq!(fit(&observed(law(50.0, 0.05, 0.0)), SATURATING).unwrap().peak(), None);
}

#[test]
fn a_ceiling_is_found_with_where_its_half_is() {
    let found = fit(&observed(|n| 800.0 * n / (n + 12.0)), SATURATING).unwrap();
    assert!((found.ceiling().unwrap() - 800.0).abs() < 1e-3);
    assert!((found.half_at().unwrap() - 12.0).abs() < 1e-4);
    assert_eq!(fit(&observed(|n| 3.0 * n), SATURATING).unwrap().ceiling(), None);
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
    let found = fit(&rows, UNIVERSAL).unwrap();
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
