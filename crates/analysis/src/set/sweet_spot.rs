//! The level at which each user is served best, and the one at which all of them together are.

use crate::metric::{self, Metric};
use crate::quantity::Quantity;
use inferometer_model::campaign::Level;
use serde::{Deserialize, Serialize};

use super::across::Across;
use super::finding::{Figure, Finding};
use super::level::LevelSummary;
use super::replicates::{REPLICATES, doubtful, replicates};

/// Among the concurrency levels whose TTFT p99 and TPOT p99 are both within twice the smallest of
/// each, the one with the highest per-user throughput; on a tie the lower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweetSpot {
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

/// What the rule looks at.
struct Candidate<'a> {
    level: Level,
    ttft: &'a Across,
    tpot: &'a Across,
    per_user: &'a Across,
}

/// The same as plain numbers.
#[derive(Clone, Copy)]
struct Numbers {
    ttft: f64,
    tpot: f64,
    per_user: f64,
}

impl SweetSpot {
    pub(super) fn find(levels: &[LevelSummary]) -> Finding<Self> {
        if !levels.iter().any(|level| matches!(level.level, Level::Concurrency(_))) {
            return Finding::unknown("it is a choice among concurrency levels, and there are none");
        }
        let candidates: Vec<Candidate<'_>> = levels.iter().filter_map(candidate).collect();
        let numbers: Vec<Numbers> = candidates.iter().filter_map(Candidate::numbers).collect();
        if numbers.is_empty() {
            return Finding::unknown(
                "no level has a TTFT p99, a TPOT p99 and a throughput per user",
            );
        }
        let Some(place) = chosen(&numbers) else {
            return Finding::unknown(
                "no level is within twice the best TTFT p99 and TPOT p99 both",
            );
        };
        let spot = &candidates[place];
        let figures = (Figure::of(spot.per_user), Figure::of(spot.ttft), Figure::of(spot.tpot));
        let (Some(per_user_throughput), Some(ttft_ms_p99), Some(tpot_ms_p99)) = figures else {
            return Finding::unknown("its figures are missing");
        };
        let eligible = eligible(&numbers);
        Finding::Found(Self {
            level: spot.level,
            per_user_throughput,
            ttft_ms_p99,
            tpot_ms_p99,
            eligible: eligible.into_iter().map(|place| candidates[place].level).collect(),
            same_share: same_spot(&candidates, place),
            certified: candidates.iter().all(|one| one.ttft.certified && one.tpot.certified),
        })
    }
}

impl Peak {
    pub(super) fn find(levels: &[LevelSummary]) -> Finding<Self> {
        let of = |quantity: &'static Metric| {
            let points: Vec<(Level, &Across)> = levels
                .iter()
                .filter(|level| level.is_comparable())
                .filter_map(|level| Some((level.level, level.quantity(quantity)?)))
                .filter(|(_, across)| across.mean.is_some())
                .collect();
            (!points.is_empty()).then_some((quantity, points))
        };
        let found = of(&metric::OUTPUT_THROUGHPUT).or_else(|| of(&metric::REQUEST_THROUGHPUT));
        let Some((quantity, points)) = found else {
            return Finding::unknown("no level that counts has a throughput");
        };
        let means: Vec<f64> = points.iter().filter_map(|(_, across)| across.mean).collect();
        let best = highest(&means).and_then(|place| Some((place, Figure::of(points[place].1)?)));
        let Some((place, throughput)) = best else {
            return Finding::unknown("no level that counts has a throughput");
        };
        let same_share = doubtful(points.iter().map(|(_, across)| *across)).map(|values| {
            let same = replicates(&values).filter(|drawn| highest(drawn) == Some(place)).count();
            same as f64 / REPLICATES as f64
        });
        let quantity = quantity.name.to_owned();
        Finding::Found(Self { level: points[place].0, quantity, throughput, same_share })
    }
}

impl Candidate<'_> {
    fn numbers(&self) -> Option<Numbers> {
        let (ttft, tpot, per_user) = (self.ttft.mean?, self.tpot.mean?, self.per_user.mean?);
        Some(Numbers { ttft, tpot, per_user })
    }
}

/// A level that has all three figures, and has them of all its requests and all its users.
fn candidate(summary: &LevelSummary) -> Option<Candidate<'_>> {
    let Level::Concurrency(_) = summary.level else { return None };
    if !summary.is_comparable() {
        return None;
    }
    let of = |quantity: Quantity| summary.quantity(quantity);
    let candidate = Candidate {
        level: summary.level,
        ttft: of(metric::TTFT.p99())?,
        tpot: of(metric::TPOT.p99())?,
        per_user: of((&metric::PER_USER_THROUGHPUT).into())?,
    };
    candidate.numbers().map(|_| candidate)
}

fn eligible(numbers: &[Numbers]) -> Vec<usize> {
    let smallest = |of: fn(&Numbers) -> f64| numbers.iter().map(of).fold(f64::INFINITY, f64::min);
    let (ttft, tpot) = (smallest(|one| one.ttft), smallest(|one| one.tpot));
    let passes =
        |one: &Numbers| one.ttft <= TIMES_THE_BEST * ttft && one.tpot <= TIMES_THE_BEST * tpot;
    (0..numbers.len()).filter(|place| passes(&numbers[*place])).collect()
}

fn chosen(numbers: &[Numbers]) -> Option<usize> {
    let passed = eligible(numbers).into_iter();
    // From the highest level down, so that the last of equals is the lowest.
    passed.rev().max_by(|a, b| numbers[*a].per_user.total_cmp(&numbers[*b].per_user))
}

fn same_spot(candidates: &[Candidate<'_>], place: usize) -> Option<f64> {
    let all = candidates.iter().flat_map(|one| [one.ttft, one.tpot, one.per_user]);
    let values = doubtful(all)?;
    let same = replicates(&values).filter(|drawn| {
        let numbers: Vec<Numbers> = drawn
            .chunks_exact(3)
            .map(|three| Numbers { ttft: three[0], tpot: three[1], per_user: three[2] })
            .collect();
        chosen(&numbers) == Some(place)
    });
    Some(same.count() as f64 / REPLICATES as f64)
}

/// On a tie the lower level.
fn highest(values: &[f64]) -> Option<usize> {
    (0..values.len()).rev().max_by(|a, b| values[*a].total_cmp(&values[*b]))
}

#[cfg(test)]
mod tests {
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
            let quantities =
                names.iter().zip(values).map(|(name, value)| (*name, across(&[*value])));
            level(*concurrency, quantities)
        };
        rows.iter().map(row).collect()
    }

    fn concurrency(level: Level) -> f64 {
        level.place().unwrap()
    }

    #[test]
    fn the_published_suite_has_its_sweet_spot_at_four_and_its_peak_at_thirty_two() {
        let levels = table(&SUITE);
        let spot = SweetSpot::find(&levels);
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
        let spot = SweetSpot::find(&levels);
        assert!((concurrency(spot.found().unwrap().level) - 2.0).abs() < 1e-9);
        assert_eq!(spot.found().unwrap().eligible.len(), 3);
    }

    #[test]
    fn the_best_of_each_latency_may_be_at_levels_that_no_one_passes() {
        let levels = table(&[(1, [10.0, 5.0, 100.0, 50.0]), (2, [20.0, 9.0, 500.0, 10.0])]);
        assert!(SweetSpot::find(&levels).found().is_none());
    }

    #[test]
    fn a_level_that_was_cut_is_neither_a_spot_nor_a_measure_for_others() {
        let mut levels = table(&SUITE);
        let cut = |levels: &mut [LevelSummary], place: usize| {
            let limits = vec!["the drain limit passed".to_owned()];
            levels[place].cut = Some(crate::set::cut::Cut {
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
        let spot = SweetSpot::find(&levels);
        // Without the best TTFT, which was of the quick half, 16 at once is within twice the best.
        let spot = spot.found().unwrap();
        assert!((concurrency(spot.level) - 8.0).abs() < 1e-9, "{spot:?}");
        assert_eq!(spot.eligible.len(), 2, "{spot:?}");
        let found = crate::set::findings::Findings::of(&levels);
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
        let spot = SweetSpot::find(&levels);
        assert!((concurrency(spot.found().unwrap().level) - 8.0).abs() < 1e-9, "{spot:?}");
        let found = crate::set::findings::Findings::of(&levels);
        assert_eq!(found.left_out, [levels[1].level, levels[4].level]);
        assert_eq!(found.not_reached, found.left_out);
        assert!(matches!(found.knee, Finding::Unknown(why) if why.contains("3 count")));
    }

    #[test]
    fn a_close_race_is_told() {
        let rows = |second: [f64; 3]| {
            let three = |value: f64| across(&[value, value * 1.01, value * 0.99]);
            let level = |n: u32, throughput: Across| level(n, [("output_throughput", throughput)]);
            vec![level(1, three(100.0)), level(2, across(&second))]
        };
        let close = Peak::find(&rows([100.0, 101.5, 99.5])).found().unwrap().same_share.unwrap();
        assert!((0.4..0.9).contains(&close), "{close}");
        let clear = Peak::find(&rows([200.0, 202.0, 198.0])).found().unwrap().same_share.unwrap();
        assert!(0.99 < clear, "{clear}");
    }

    #[test]
    fn a_rate_has_no_sweet_spot() {
        let mut levels = table(&SUITE);
        for level in &mut levels {
            level.level = Level::Rate(3.0);
        }
        assert!(
            matches!(SweetSpot::find(&levels), Finding::Unknown(why) if why.contains("concurrency"))
        );
        assert!(Peak::find(&[]).found().is_none());
    }
}
