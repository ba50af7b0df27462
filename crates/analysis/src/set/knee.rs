//! Where throughput stops rising with the load.

use inferometer_model::campaign::Level;
use serde::{Deserialize, Serialize};

use super::curve::Curve;
use super::finding::{Figure, Finding, LevelRange};
use super::kneedle::kneedle;
use super::replicates::{REPLICATES, doubtful, replicates};
use crate::statistics::UPPER;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    pub level: Level,
    /// Between which levels it lies in 95 % of the sets drawn again; null without intervals.
    pub interval: Option<LevelRange>,
    /// The share of the sets drawn again that have a knee at all.
    pub found_share: Option<f64>,
    /// The quantity that was looked at, such as `output_throughput`.
    pub quantity: String,
    pub throughput: Figure,
}

const LEVELS_MIN: usize = 4;

impl Knee {
    pub(super) fn find(curve: &Curve<'_>) -> Finding<Self> {
        if curve.points.len() < LEVELS_MIN {
            let found = curve.points.len();
            return Finding::unknown(format!(
                "a knee needs {LEVELS_MIN} levels, and {found} count"
            ));
        }
        let Some(place) = kneedle(&curve.means()) else {
            return Finding::unknown(
                "throughput has no bend in this range; go on to higher levels to find it",
            );
        };
        let (interval, found_share) = match interval(curve) {
            Some((interval, share)) => (interval, Some(share)),
            None => (None, None),
        };
        let point = &curve.points[place];
        Finding::Found(Self {
            level: point.level,
            interval,
            found_share,
            quantity: curve.metric.name.to_owned(),
            throughput: point.figure(),
        })
    }
}

/// The range of the knees of the sets drawn again, and the share of them that have one.
fn interval(curve: &Curve<'_>) -> Option<(Option<LevelRange>, f64)> {
    let values = doubtful(curve.points.iter().map(|point| point.across))?;
    let mut knees: Vec<usize> = replicates(&values)
        .filter_map(|drawn| {
            let points: Vec<(f64, f64)> = curve.places().zip(drawn).collect();
            kneedle(&points)
        })
        .collect();
    knees.sort_unstable();
    let share = knees.len() as f64 / REPLICATES as f64;
    let last = knees.len().checked_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a place is a place"
    )]
    let at =
        |p: f64| last.map(|last| curve.points[knees[(p * last as f64).round() as usize]].level);
    let range = at(1.0 - UPPER).zip(at(UPPER)).map(|(low, high)| LevelRange { low, high });
    Some((range, share))
}

#[cfg(test)]
mod tests {
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
        assert!(matches!(Series(&straight).knee(), Finding::Unknown(why) if why.contains("bend")));
    }
}
