//! Whether the server kept up with the rate that was asked of it.

use crate::metric;
use inferometer_model::Outcome;
use inferometer_model::campaign::Level;
use inferometer_model::spec::Arrivals;
use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::level::LevelSummary;
use crate::run::{ExtentFacts, LoadFacts};
use crate::summary::Summary;

/// All runs of a rate together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    pub asked_per_s: f64,
    /// Answers per second while requests came; the mean over runs.
    pub served_per_s: f64,
    /// Of the rate that the schedules came to.
    pub share: f64,
    /// How far chance in the arrivals may push the share, where the schedule's own rate is not known.
    pub chance: f64,
    /// Runs in which requests in flight grew for as long as they came.
    pub piling_up: u32,
    /// Whether less than 95 % was served, chance set aside, or most runs piled up.
    pub saturated: bool,
}

/// From which rate on a server no longer keeps up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// The highest rate below all that were not served; null when none was.
    pub highest_served: Option<f64>,
    /// The lowest rate that was not; null when all were.
    pub lowest_missed: Option<f64>,
    /// What was served of that, as a share.
    pub missed_share: Option<f64>,
    /// Whether it was not served only in that requests pile up: its answers came fast enough for now.
    #[serde(default)]
    pub missed_piling_up: bool,
    /// A higher rate that was served all the same: the levels contradict each other.
    #[serde(default)]
    pub served_above: Option<f64>,
}

/// A server that answers less than this share of a rate falls behind.
const SERVED_SHARE: f64 = 0.95;
/// The key of the warning of a run whose requests in flight only grow.
const PILING_UP: &str = "piling-up";
/// Chance beyond this many standard errors is not called chance.
const STANDARD_ERRORS: f64 = 2.0;

impl Served {
    /// `None` of what is no rate, and of runs without an answer to time.
    pub(crate) fn of<'a>(level: Level, runs: impl Iterator<Item = &'a Summary>) -> Option<Self> {
        let Level::Rate(asked_per_s) = level else { return None };
        let runs: Vec<(&Summary, f64)> =
            runs.filter_map(|run| Some((run, served_per_s(run)?))).collect();
        if runs.is_empty() {
            return None;
        }
        let count = runs.len() as f64;
        let piling_up = runs.iter().filter(|(run, _)| piles_up(run)).count();
        let share = |(run, served): &(&Summary, f64)| served / offered_per_s(run, asked_per_s);
        let variance = |(run, _): &(&Summary, f64)| chance_variance(run);
        let share = runs.iter().map(share).sum::<f64>() / count;
        let chance = STANDARD_ERRORS * runs.iter().map(variance).sum::<f64>().sqrt() / count;
        Some(Self {
            asked_per_s,
            served_per_s: runs.iter().map(|(_, served)| served).sum::<f64>() / count,
            share,
            chance,
            piling_up: u32::try_from(piling_up).unwrap_or(u32::MAX),
            saturated: falls_behind(share, chance) || runs.len() < 2 * piling_up,
        })
    }
}

impl Saturation {
    pub(super) fn find(levels: &[LevelSummary]) -> Finding<Self> {
        let rates: Vec<&Served> = levels.iter().filter_map(|level| level.served.as_ref()).collect();
        if rates.is_empty() {
            return Finding::unknown("it is a question about rates, and no level is a rate");
        }
        let missed = rates.iter().find(|served| served.saturated);
        let lowest_missed = missed.map(|served| served.asked_per_s);
        let kept = |is_wanted: &dyn Fn(f64) -> bool| {
            let kept = rates.iter().filter(|served| !served.saturated);
            kept.map(|served| served.asked_per_s).rfind(|rate| is_wanted(*rate))
        };
        Finding::Found(Self {
            highest_served: kept(&|rate| lowest_missed.is_none_or(|missed| rate < missed)),
            lowest_missed,
            missed_share: missed.map(|served| served.share),
            missed_piling_up: missed
                .is_some_and(|served| !falls_behind(served.share, served.chance)),
            served_above: kept(&|rate| lowest_missed.is_some_and(|missed| missed < rate)),
        })
    }
}

fn falls_behind(share: f64, chance: f64) -> bool {
    share + chance < SERVED_SHARE
}

/// Answers over the time from the first request to the last answer, less what an answer takes by
/// itself: the last requests of a server that keeps up still need that long. Waiting shows in the
/// time to the first token, so the shortest of these stands for a request that did not wait.
fn served_per_s(summary: &Summary) -> Option<f64> {
    let window_s = summary.window.duration_s?;
    let of = |metric| summary.metrics.distribution(metric);
    let own_ms = match (of(&metric::E2E_SCHEDULE), of(&metric::TTFT_SCHEDULE)) {
        (Some(whole), Some(first)) => whole.mean? - first.mean? + first.min?,
        _ => 0.0,
    };
    let coming_s = window_s - own_ms / 1e3;
    let ok = summary.count(Outcome::Ok);
    (0 < ok && 0.0 < coming_s).then(|| ok as f64 / coming_s)
}

/// Whether requests in flight only grow, as the run itself found when it looked for its steady state.
pub fn piles_up(summary: &Summary) -> bool {
    summary.warnings.iter().any(|notice| notice.key == PILING_UP)
}

/// The rate that the schedule came to, where its length is known; else the one that was asked for.
fn offered_per_s(summary: &Summary, asked_per_s: f64) -> f64 {
    match summary.run.extent {
        ExtentFacts::DurationS(seconds) if 0.0 < seconds && 0 < summary.scheduled => {
            summary.scheduled as f64 / seconds
        }
        ExtentFacts::DurationS(_)
        | ExtentFacts::Whole
        | ExtentFacts::Requests(_)
        | ExtentFacts::UntilBoth { .. }
        | ExtentFacts::UntilFirst { .. } => asked_per_s,
    }
}

/// Of the rate of a random schedule around the rate that was asked for, relative to it.
fn chance_variance(summary: &Summary) -> f64 {
    if let ExtentFacts::DurationS(_) = summary.run.extent {
        return 0.0;
    }
    let LoadFacts::Open { arrivals, .. } = &summary.run.load else { return 0.0 };
    let of_one_gap = match arrivals {
        // The rate of a stretched schedule is the one that was asked for.
        Arrivals::Constant | Arrivals::Stretched { .. } => 0.0,
        Arrivals::Poisson => 1.0,
        Arrivals::Gamma { burstiness } => 1.0 / burstiness,
    };
    of_one_gap / summary.scheduled.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RateFacts;
    use crate::set::fixture::summary;

    /// So many requests at ten a second, the last answered so many seconds after the first left.
    fn run(requests: u64, window_s: f64, extent: ExtentFacts) -> Summary {
        let mut run = summary();
        (run.scheduled, run.attempted) = (requests, requests);
        run.outcomes.insert(Outcome::Ok, requests);
        run.window.duration_s = Some(window_s);
        run.run.extent = extent;
        run.run.load = LoadFacts::Open {
            rate: RateFacts::Steady { per_s: 10.0 },
            arrivals: Arrivals::Poisson,
            max_concurrency: None,
        };
        run
    }

    fn served(runs: &[Summary]) -> Served {
        Served::of(Level::Rate(10.0), runs.iter()).unwrap()
    }

    #[test]
    fn a_rate_over_a_time_is_compared_with_what_left_in_it() {
        let whole = ExtentFacts::DurationS(100.0);
        let kept = served(&[run(1_040, 100.3, whole)]);
        assert!(!kept.saturated && 0.98 < kept.share && kept.chance == 0.0, "{kept:?}");
        let behind = served(&[run(1_040, 125.0, whole)]);
        assert!(behind.saturated && behind.share < 0.85, "{behind:?}");
    }

    #[test]
    fn few_requests_of_a_random_schedule_are_given_the_doubt() {
        let count = ExtentFacts::Requests(100);
        assert!(!served(&[run(100, 11.5, count)]).saturated, "it may have come slower");
        assert!(served(&[run(100, 20.0, count)]).saturated);
        let many = ExtentFacts::Requests(10_000);
        assert!(served(&[run(10_000, 1_150.0, many)]).saturated);
    }

    #[test]
    fn a_stretched_schedule_leaves_nothing_to_chance() {
        let mut late = run(100, 11.5, ExtentFacts::Requests(100));
        let LoadFacts::Open { arrivals, .. } = &mut late.run.load else { panic!("an open loop") };
        *arrivals = Arrivals::Stretched { burstiness: 1.0 };
        let found = served(&[late]);
        assert!(found.saturated && found.chance == 0.0, "{found:?}");
    }

    #[test]
    fn the_last_answers_need_their_own_time() {
        let mut slow = run(100, 16.0, ExtentFacts::DurationS(10.0));
        assert!(served(&[slow.clone()]).saturated);
        let metrics = crate::set::fixture::with_latencies(&slow, 100.0, 6_000.0);
        slow.metrics = metrics;
        assert!(!served(&[slow]).saturated);
    }

    #[test]
    fn most_runs_that_pile_up_are_saturated_whatever_their_share() {
        let calm = run(1_000, 100.0, ExtentFacts::DurationS(100.0));
        let mut piling = calm.clone();
        piling.warnings = vec![crate::judge::Warning {
            key: PILING_UP.to_owned(),
            check: None,
            severity: crate::judge::Severity::Degraded,
            text: String::new(),
            remedy: String::new(),
        }];
        assert!(!served(&[calm.clone(), piling.clone()]).saturated);
        let most: Vec<Summary> = [&calm, &piling, &piling].into_iter().cloned().collect();
        assert!(served(&most).saturated);
    }

    #[test]
    fn the_last_rate_kept_and_the_first_missed_are_told() {
        let level = |per_s: f64, share: f64| {
            let mut level = crate::set::fixture::level(1, []);
            level.level = Level::Rate(per_s);
            level.served = Some(Served {
                asked_per_s: per_s,
                served_per_s: per_s * share,
                share,
                chance: 0.0,
                piling_up: 0,
                saturated: share < 0.95,
            });
            level
        };
        let found = Saturation::find(&[level(1.0, 1.0), level(3.0, 0.97), level(5.0, 0.8)]);
        let found = *found.found().unwrap();
        assert_eq!((found.highest_served, found.lowest_missed), (Some(3.0), Some(5.0)));
        assert_eq!(found.missed_share, Some(0.8));
        assert!(!found.missed_piling_up && found.served_above.is_none());
        let all = Saturation::find(&[level(1.0, 1.0)]);
        assert_eq!(all.found().unwrap().lowest_missed, None);
        assert!(Saturation::find(&[crate::set::fixture::level(4, [])]).found().is_none());
        let torn = Saturation::find(&[level(1.0, 1.0), level(3.0, 0.8), level(5.0, 1.0)]);
        let torn = *torn.found().unwrap();
        assert_eq!((torn.highest_served, torn.lowest_missed), (Some(1.0), Some(3.0)));
        assert_eq!(torn.served_above, Some(5.0));
        let mut piling = level(7.0, 1.07);
        piling.served.as_mut().unwrap().saturated = true;
        let piling = *Saturation::find(&[piling]).found().unwrap();
        assert!(piling.missed_piling_up && piling.highest_served.is_none());
    }
}
