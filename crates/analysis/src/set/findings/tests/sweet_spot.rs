//! The level at which each user is served best, and the one at which all of them together are.

use super::*;
use crate::set::fixture::{across, level};

/// Concurrency, output throughput, per-user throughput, TTFT p99 and TPOT p99 of the scaling
/// table of the published suite report.
const SUITE: [(u32, [f64; 4]); 5] = [
    (2, [97.72, 48.86, 645.93, 20.83]),
    (4, [167.97, 41.99, 146.19, 22.61]),
    (8, [255.92, 31.99, 186.29, 29.42]),
    (16, [384.74, 24.05, 302.73, 38.76]),
    (32, [387.10, 12.10, 376.30, 76.97]),
];

fn table(rows: &[(u32, [f64; 4])]) -> Vec<LevelSummary> {
    let names = ["output_throughput", "per_user_throughput", "ttft.p99", "tpot.p99"];
    let row = |(concurrency, values): &(u32, [f64; 4])| {
        let quantities = names.iter().zip(values).map(|(name, value)| (*name, across(&[*value])));
        level(*concurrency, quantities)
    };
    rows.iter().map(row).collect()
}

fn concurrency(level: Level) -> f64 {
    level.place().unwrap()
}

#[test]
fn the_published_suite_serves_each_user_best_at_four_and_has_its_peak_at_thirty_two() {
    let levels = table(&SUITE);
    let spot = PerUserSpot::find(&levels);
    let spot = spot.found().unwrap();
    assert!((concurrency(spot.level) - 4.0).abs() < 1e-9);
    assert_eq!(format!("{:.1}", spot.per_user_throughput.value), "42.0");
    let eligible: Vec<f64> = spot.eligible.iter().copied().map(concurrency).collect();
    assert_eq!(eligible, [4.0, 8.0]);
    assert_eq!((spot.same_share, spot.certified), (None, true));
    let peak = Peak::find(&levels);
    let peak = peak.found().unwrap();
    assert!((concurrency(peak.level) - 32.0).abs() < 1e-9);
    assert_eq!(format!("{:.1}", peak.throughput.value), "387.1");
}

#[test]
fn the_limit_of_twice_the_best_is_inside_and_a_tie_takes_the_lower() {
    let levels = table(&[
        (1, [10.0, 5.0, 100.0, 10.0]),
        (2, [20.0, 9.0, 200.0, 20.0]),
        (4, [40.0, 9.0, 150.0, 15.0]),
        (8, [80.0, 99.0, 200.1, 15.0]),
    ]);
    let spot = PerUserSpot::find(&levels);
    assert!((concurrency(spot.found().unwrap().level) - 2.0).abs() < 1e-9);
    assert_eq!(spot.found().unwrap().eligible.len(), 3);
}

#[test]
fn the_best_of_each_latency_may_be_at_levels_that_no_one_passes() {
    let levels = table(&[(1, [10.0, 5.0, 100.0, 50.0]), (2, [20.0, 9.0, 500.0, 10.0])]);
    assert!(PerUserSpot::find(&levels).found().is_none());
}

#[test]
fn a_level_that_was_cut_is_neither_a_spot_nor_a_measure_for_others() {
    let mut levels = table(&SUITE);
    let cut = |levels: &mut [LevelSummary], place: usize| {
        let limits = vec!["the drain timeout expired".to_owned()];
        levels[place].cut = Some(crate::set::Cut {
            runs: 1,
            ended: 5,
            scheduled: 10,
            answers_missing: true,
            limits,
        });
    };
    cut(&mut levels, 4);
    assert!((concurrency(Peak::find(&levels).found().unwrap().level) - 16.0).abs() < 1e-9);
    cut(&mut levels, 1);
    let spot = PerUserSpot::find(&levels);
    // Without the best TTFT, which was of the quick half, 16 at once is within twice the best.
    let spot = spot.found().unwrap();
    assert!((concurrency(spot.level) - 8.0).abs() < 1e-9, "{spot:?}");
    assert_eq!(spot.eligible.len(), 2, "{spot:?}");
    let found = crate::set::findings::Findings::find(&levels, &[]);
    assert_eq!(found.left_out, [levels[1].level, levels[4].level]);
}

#[test]
fn a_level_whose_users_were_never_there_has_no_part_in_anything() {
    let mut levels = table(&SUITE);
    let reached = |asked, most| Some(crate::set::Reached { asked, most });
    // Thirty requests, as published: the last level stays.
    levels[4].reached = reached(32, 30);
    assert!((concurrency(Peak::find(&levels).found().unwrap().level) - 32.0).abs() < 1e-9);
    levels[4].reached = reached(32, 16);
    levels[1].reached = reached(4, 3);
    assert!((concurrency(Peak::find(&levels).found().unwrap().level) - 16.0).abs() < 1e-9);
    let spot = PerUserSpot::find(&levels);
    assert!((concurrency(spot.found().unwrap().level) - 8.0).abs() < 1e-9, "{spot:?}");
    let found = crate::set::findings::Findings::find(&levels, &[]);
    assert_eq!(found.left_out, [levels[1].level, levels[4].level]);
    assert_eq!(found.not_reached, found.left_out);
    assert!(matches!(found.knee, Finding::Unknown(why) if why.contains("3 count")));
}

#[test]
fn a_close_race_is_told() {
    let rows = |second: [f64; 3]| {
        let three = |value: f64| across(&[value, value * 1.01, value * 0.99]);
        let level = |n: u32, throughput: AcrossRuns| level(n, [("output_throughput", throughput)]);
        vec![level(1, three(100.0)), level(2, across(&second))]
    };
    let close = Peak::find(&rows([100.0, 101.5, 99.5])).found().unwrap().same_share.unwrap();
    assert!((0.4..0.9).contains(&close), "{close}");
    let clear = Peak::find(&rows([200.0, 202.0, 198.0])).found().unwrap().same_share.unwrap();
    assert!(0.99 < clear, "{clear}");
}

#[test]
fn a_rate_has_no_best_level_for_each_user() {
    let mut levels = table(&SUITE);
    for level in &mut levels {
        level.level = Level::Rate(3.0);
    }
    assert!(
        matches!(PerUserSpot::find(&levels), Finding::Unknown(why) if why.contains("concurrency"))
    );
    assert!(Peak::find(&[]).found().is_none());
}

fn slos(texts: &[&str]) -> Vec<Slo> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn the_sweet_spot_has_the_highest_throughput_within_the_slos() {
    let mut levels = table(&SUITE);
    let at = |levels: &[LevelSummary], texts: &[&str]| {
        let found = SweetSpot::find(levels, &slos(texts));
        found.found().map(|spot| concurrency(spot.level).round())
    };
    let spot = SweetSpot::find(&levels, &[]);
    let spot = spot.found().unwrap();
    assert!((concurrency(spot.level) - 32.0).abs() < 1e-9, "all are interactive");
    assert!(spot.default_slos && spot.slos == ["ttft.p99<1s", "tpot.p99<100ms"], "{spot:?}");
    assert_eq!((spot.eligible.len(), spot.quantity.as_str()), (5, "output_throughput"));
    assert_eq!(at(&levels, &["tpot.p99<40ms"]), Some(16.0));
    assert_eq!(at(&levels, &["ttft.p99<200ms", "tpot.p99<25ms"]), Some(4.0));
    let each = SweetSpot::find(&levels, &slos(&["ttft<200ms"]));
    assert_eq!(each.found().unwrap().slos, ["ttft<200ms at p99"]);
    let none = SweetSpot::find(&levels, &slos(&["ttft.p99<10ms"]));
    assert!(matches!(none, Finding::Unknown(why) if why == "no level meets ttft.p99<10ms"));
    let unknown = SweetSpot::find(&levels, &slos(&["e2e.p99<1s"]));
    assert!(matches!(unknown, Finding::Unknown(why) if why.contains("e2e.p99<1s")));
    levels[4].failed_share = Some(0.02);
    assert_eq!(at(&levels, &[]), Some(16.0), "failures serve nobody");
}

#[test]
fn a_sweet_spot_that_chance_decides_says_so() {
    let three = |value: f64| across(&[value, value * 1.02, value * 0.98]);
    let row = |n: u32, throughput: f64, ttft: f64| {
        let values = [
            ("output_throughput", three(throughput)),
            ("ttft.p99", three(ttft)),
            ("tpot.p99", three(20.0)),
        ];
        level(n, values)
    };
    let share = |ttft: f64| {
        let found = SweetSpot::find(&[row(1, 100.0, 50.0), row(2, 180.0, ttft)], &[]);
        found.found().unwrap().same_share.unwrap()
    };
    assert!(0.99 < share(500.0));
    assert!((0.4..0.8).contains(&share(995.0)), "{}", share(995.0));
}
