//! Traffic of a known law, put on a grid as recorders do it, and what becomes of it.

use super::super::*;

/// Requests of a Poisson process, in nanoseconds.
fn poisson_traffic(per_second: f64, count: usize) -> Vec<i64> {
    let mut stream = Stream::new(11, "traffic", 0);
    let mut now = 0.0;
    std::iter::repeat_with(|| {
        now += stream.exponential() / per_second;
        i64::try_from(crate::arrivals::nanos(now)).unwrap()
    })
    .take(count)
    .collect()
}

fn recorded(moments: impl IntoIterator<Item = i64>) -> Vec<TraceEntry> {
    let entry = |at| TraceEntry { at_ns: at, input_tokens: 1, output_tokens: 1, blocks: 0..0 };
    let mut entries: Vec<_> = moments.into_iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.at_ns);
    entries
}

const TICK: i64 = 3_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// On a grid of 3 s that is missed by up to 2 ms.
fn on_a_grid() -> Vec<TraceEntry> {
    let mut jitter = Stream::new(12, "jitter", 0);
    let moments = poisson_traffic(3.4, 12_000);
    recorded(moments.into_iter().map(|at| {
        let miss = i64::try_from(jitter.bits() % 5).unwrap() - 2;
        (at / TICK + 1) * TICK + miss * MILLISECOND
    }))
}

fn variation_of(entries: &[TraceEntry]) -> f64 {
    variation(entries.iter().map(|entry| entry.at_ns)).unwrap()
}

#[test]
fn a_grid_is_found_through_its_jitter() {
    let entries = on_a_grid();
    let grid = Grid::find(&entries).unwrap();
    assert!(grid.tick_ns.abs_diff(TICK) < 1_000_000, "{grid:?}");
    assert!(grid.jitter_ns.abs_diff(3_000_000) < 1_000, "{grid:?}");
    assert!(grid.is_artefact() && 0.99 < grid.shared && 0.99 < grid.regular, "{grid:?}");
}

#[test]
fn spreading_brings_back_the_variation_of_the_traffic() {
    let before = on_a_grid();
    for ticks in [Ticks::Auto, Ticks::Uniform, Ticks::Poisson] {
        let mut entries = on_a_grid();
        let notes = spread(&mut entries, Grid::find(&before), ticks, 1);
        assert!(2.5 < variation_of(&before));
        let after = variation_of(&entries);
        assert!((after - 1.0).abs() < 0.05, "{ticks:?}: {after}");
        assert!(entries.is_sorted_by_key(|entry| entry.at_ns));
        for (before, after) in before.iter().zip(&entries) {
            let moved = after.at_ns - before.at_ns;
            assert!((-4 * MILLISECOND..TICK + 4 * MILLISECOND).contains(&moved), "{moved}");
        }
        assert!(notes[0].starts_with("the timestamps lie on a grid of 3 s; 100 % of the requests"));
        assert!(notes[1].ends_with(&format!("as played it is {after:.2}")), "{notes:?}");
    }
}

#[test]
fn traffic_is_left_alone_when_it_lies_on_no_grid_or_when_asked() {
    // Written in milliseconds, sparse and busy; and bursts that are real: requests that come
    // together, at moments of no grid.
    let sparse = poisson_traffic(5.0, 5_000);
    let rounded = sparse.iter().map(|at| at / MILLISECOND * MILLISECOND);
    let bursts = poisson_traffic(0.3, 500).into_iter().flat_map(|at| [at; 6]);
    for moments in [sparse.clone(), rounded.collect(), bursts.collect()] {
        let mut entries = recorded(moments.clone());
        let grid = Grid::find(&entries);
        let notes = spread(&mut entries, grid, Ticks::Auto, 1);
        assert!(entries.iter().map(|entry| entry.at_ns).eq(moments), "{grid:?}");
        assert!(!notes.iter().any(|note| note.contains("spread evenly")), "{notes:?}");
    }
    let before = on_a_grid();
    let mut entries = on_a_grid();
    let notes = spread(&mut entries, Grid::find(&before), Ticks::Keep, 1);
    assert!(entries.iter().map(|entry| entry.at_ns).eq(before.iter().map(|entry| entry.at_ns)));
    assert!(notes[0].contains("played as recorded, each tick at once"), "{notes:?}");
    assert!(!notes[1].contains("as played"), "{notes:?}");
}

#[test]
fn busy_traffic_in_milliseconds_is_spread_within_the_millisecond() {
    let moments = poisson_traffic(3_000.0, 20_000);
    let rounded = || recorded(moments.iter().map(|at| at / MILLISECOND * MILLISECOND));
    let grid = Grid::find(&rounded()).unwrap();
    assert_eq!((grid.tick_ns, grid.jitter_ns), (MILLISECOND, 0));
    let mut entries = rounded();
    spread(&mut entries, Some(grid), Ticks::Auto, 1);
    assert!((variation_of(&entries) - 1.0).abs() < 0.05);
}

#[test]
fn one_moment_has_no_grid() {
    assert_eq!(Grid::find(&recorded([5, 5, 5])), None);
    assert_eq!(Grid::find(&[]), None);
    let mut entries = recorded([5, 5, 5]);
    assert!(spread(&mut entries, None, Ticks::Uniform, 1).is_empty());
    assert!(entries.iter().all(|entry| entry.at_ns == 5));
}

#[test]
fn the_most_common_gap_is_the_middle_of_the_fullest_window() {
    assert_eq!(most_common(&[1, 2, 2, 3, 9], 0), Some(2));
    assert_eq!(most_common(&[1, 5, 6, 7, 20, 21], 2), Some(6));
    assert_eq!(most_common(&[4, 8], 0), Some(4));
    assert_eq!(most_common(&[], 5), None);
}

#[test]
fn lengths_are_said_in_their_unit() {
    let ticks = [3_000_000_000, 2_999_600_000, 40_500_000, 1_000, 7];
    for (tick_ns, length) in ticks.into_iter().zip(["3 s", "3 s", "40.5 ms", "1 µs", "7 ns"]) {
        let said = Grid { tick_ns, jitter_ns: 0, shared: 1.0, regular: 1.0 }.description();
        assert!(said.contains(&format!("a grid of {length}; 100 %")), "{said}");
    }
}
