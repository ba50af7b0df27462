//! The laws of scaling, held against curves whose coefficients are known.

mod fit;

use super::*;
use crate::set::fixture::{Series, series};

fn law(sigma: f64, kappa: f64) -> impl Fn(f64) -> f64 {
    move |n| 50.0 * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

const LEVELS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

#[test]
fn a_peak_is_found_with_an_interval_that_holds_it() {
    let levels = series(law(0.05, 0.001), &LEVELS, 0.02);
    let found = Series(&levels).scalability();
    let found = found.found().unwrap();
    assert_eq!(found.chosen, Finding::Found(Model::Universal));
    assert!(found.fits && 0.99 < found.universal.quality.r_squared);
    let peak = found.universal.peak.found().unwrap();
    let interval = peak.interval.unwrap();
    assert!(interval.contains((0.95_f64 / 0.001).sqrt()), "{peak:?}");
    assert!(interval.half_width() < 5.0, "{peak:?}");
    assert!(found.universal.lambda.interval.unwrap().contains(50.0));
    assert!(found.universal.sigma.interval.unwrap().contains(0.05));
}

#[test]
fn what_only_saturates_has_no_peak_and_a_ceiling() {
    let levels = series(|n| 800.0 * n / (n + 12.0), &LEVELS, 0.02);
    let found = Series(&levels).scalability();
    let found = found.found().unwrap();
    assert_eq!(found.chosen, Finding::Found(Model::Saturating));
    assert!(matches!(&found.universal.peak, Finding::Unknown(why) if why.contains("no peak")));
    let ceiling = found.saturating.ceiling.found().unwrap();
    assert!(ceiling.interval.unwrap().contains(800.0), "{ceiling:?}");
    let half_at = found.saturating.half_at.found().unwrap();
    assert!(half_at.interval.unwrap().contains(12.0), "{half_at:?}");
}

#[test]
fn what_neither_explains_is_said() {
    let jagged = |n: f64| if n < 10.0 { 100.0 } else { 30.0 * n };
    let levels = series(jagged, &LEVELS, 0.01);
    assert!(!Series(&levels).scalability().found().unwrap().fits);
}

#[test]
fn single_runs_without_intervals_have_a_curve_and_no_peak() {
    let mut levels = series(law(0.05, 0.001), &LEVELS, 0.0);
    for level in &mut levels {
        let throughput = level.quantities.get_mut("output_throughput").unwrap();
        *throughput = crate::set::fixture::across(&[throughput.mean.unwrap()]);
    }
    let found = Series(&levels).scalability();
    let found = found.found().unwrap();
    assert_eq!(found.universal.kappa.interval, None);
    assert!(matches!(&found.universal.peak, Finding::Unknown(why) if why.contains("intervals")));
}

#[test]
fn too_few_levels_and_rates_say_why() {
    let few = series(law(0.05, 0.001), &[1, 2, 4], 0.01);
    let found = Series(&few).scalability();
    assert!(matches!(found, Finding::Unknown(why) if why.contains("needs 4 levels")));
    let curve = Curve::new(&few);
    let found = Scalability::find(&curve, false);
    assert!(matches!(found, Finding::Unknown(why) if why.contains("concurrency")));
}

#[test]
fn few_levels_choose_by_the_doubt_of_kappa_or_not_at_all() {
    let falling = series(law(0.05, 0.01), &[1, 4, 16, 64], 0.01);
    let found = Series(&falling).scalability();
    assert_eq!(found.found().unwrap().chosen, Finding::Found(Model::Universal));
    let levelling = series(|n| 800.0 * n / (n + 12.0), &[1, 4, 16, 64, 128], 0.05);
    let found = Series(&levelling).scalability();
    let found = found.found().unwrap();
    assert!(
        matches!(&found.chosen, Finding::Unknown(why) if why.contains("5 levels")),
        "{found:?}"
    );
    assert!(!found.fits);
}

#[test]
fn half_of_a_ceiling_that_one_alone_reaches_is_at_no_concurrency() {
    let levels = series(|n| 100.0 - n / 10.0, &LEVELS, 0.001);
    let found = Series(&levels).scalability();
    let curve = &found.found().unwrap().saturating;
    assert!(curve.ceiling.found().is_some());
    assert!(
        matches!(&curve.half_at, Finding::Unknown(why) if why.contains("one alone")),
        "{curve:?}"
    );
}
