//! Where throughput stops rising with the load.

use super::*;
use crate::set::fixture::{Series, series};
use crate::statistics::draws::Draws;

#[test]
fn quiet_runs_know_their_knee_to_the_level() {
    let levels = series(|n| 100.0 * n.min(16.0), &[1, 2, 4, 8, 16, 32, 64], 0.01);
    let found = Series(&levels).knee();
    let knee = found.found().unwrap();
    let sixteen = Level::Concurrency(16.try_into().unwrap());
    assert_eq!(knee.level, sixteen);
    assert_eq!(knee.interval, Some(LevelRange { low: sixteen, high: sixteen }));
    assert_eq!(knee.found_share, Some(1.0));
    assert!((knee.throughput.value - 1_600.0).abs() < 20.0);
}

/// Means of five runs that differ by one per cent.
#[test]
fn limits_drawn_at_random_are_found_within_a_step() {
    let mut draws = Draws::new(3, 0);
    for _ in 0..300 {
        let limit = 4.0 + 12.0 * draws.unit();
        let levels: Vec<u32> = (1..=20).collect();
        let mut noise = || 1.0 + 0.01 / 5.0_f64.sqrt() * draws.normal();
        let points: Vec<(f64, f64)> =
            levels.iter().map(|n| f64::from(*n)).map(|n| (n, n.min(limit) * noise())).collect();
        let knee = points[kneedle(&points).unwrap()].0;
        assert!((knee - limit).abs() <= 1.0, "{knee} and not {limit}");
    }
}

#[test]
fn loud_runs_know_it_less_well() {
    let curve = |n: f64| 1_000.0 * n / (n + 8.0);
    let levels = series(curve, &[1, 2, 4, 8, 16, 24, 32, 48, 64], 0.15);
    let found = Series(&levels).knee();
    let range = found.found().unwrap().interval.unwrap();
    assert!(range.low.place() < range.high.place(), "{range:?}");
}

#[test]
fn single_runs_without_intervals_give_a_knee_without_one() {
    let mut levels = series(|n| 100.0 * n.min(16.0), &[1, 4, 16, 32, 64], 0.0);
    for level in &mut levels {
        let throughput = level.quantities.get_mut("output_throughput").unwrap();
        *throughput = crate::set::fixture::across(&[throughput.mean.unwrap()]);
    }
    let found = Series(&levels).knee();
    let knee = found.found().unwrap();
    assert_eq!((knee.interval, knee.found_share), (None, None));
}

#[test]
fn too_few_levels_or_no_bend_say_so() {
    let few = series(|n| n.min(4.0), &[1, 4, 8], 0.01);
    assert!(matches!(Series(&few).knee(), Finding::Unknown(why) if why.contains("needs 4")));
    let straight = series(|n| 10.0 * n, &[1, 2, 3, 4, 5], 0.0);
    assert!(matches!(Series(&straight).knee(), Finding::Unknown(why) if why.contains("no knee")));
}
