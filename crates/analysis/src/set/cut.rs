//! A level that a limit of time ended before all of its requests had left, or had ended.

use inferometer_model::Outcome;
use inferometer_model::outcome::Cause;
use serde::{Deserialize, Serialize};

use crate::run::ExtentFacts;
use crate::summary::Summary;

/// Where answers are missing, its figures are of the requests that ended in time: the quick ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Runs that were cut.
    pub runs: u32,
    /// Requests of these runs that ended by themselves.
    pub ended: u64,
    /// Requests that they were meant to have.
    pub scheduled: u64,
    /// Whether requests that were due did not end, and not only fewer were due.
    #[serde(default)]
    pub answers_missing: bool,
    /// What cut them, such as `the drain limit passed`.
    pub limits: Vec<String>,
}

/// One run that was cut.
struct CutRun {
    ended: u64,
    scheduled: u64,
    answers_missing: bool,
    limits: Vec<&'static str>,
}

impl Cut {
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a Summary>) -> Option<Self> {
        runs.filter_map(cut_run).fold(None, |cut, run| {
            let mut cut = cut.unwrap_or(Self {
                runs: 0,
                ended: 0,
                scheduled: 0,
                answers_missing: false,
                limits: Vec::new(),
            });
            cut.runs += 1;
            cut.ended += run.ended;
            cut.scheduled += run.scheduled;
            cut.answers_missing |= run.answers_missing;
            for limit in run.limits {
                if !cut.limits.iter().any(|known| known == limit) {
                    cut.limits.push(limit.to_owned());
                }
            }
            Some(cut)
        })
    }
}

/// Whether a limit of time ended the run while requests that were due had not ended.
pub fn is_cut(summary: &Summary) -> bool {
    cut_run(summary).is_some_and(|run| run.answers_missing)
}

/// A run that somebody stopped is partial, and not cut by a limit.
fn cut_run(summary: &Summary) -> Option<CutRun> {
    if summary.run.partial {
        return None;
    }
    let cancelled = summary.count(Outcome::Cancelled);
    let held = |group: &&crate::FailureGroup| group.cause == Some(Cause::HeldByCap);
    let backlog = summary.failures.iter().any(|group| held(&group));
    let due = summary.scheduled.saturating_sub(summary.time_over);
    let asked = match summary.run.extent {
        ExtentFacts::UntilFirst { requests, .. } if due < requests => Some(requests),
        ExtentFacts::UntilFirst { .. }
        | ExtentFacts::UntilBoth { .. }
        | ExtentFacts::Whole
        | ExtentFacts::Requests(_)
        | ExtentFacts::DurationS(_) => None,
    };
    let limits: Vec<&'static str> = [
        (0 < cancelled, "the drain limit passed while requests were in flight"),
        (backlog, "the time was over while the cap still held requests back"),
        (asked.is_some(), "the time was over before all requests had left"),
    ]
    .into_iter()
    .filter_map(|(is_so, words)| is_so.then_some(words))
    .collect();
    let ended = summary.attempted.saturating_sub(cancelled);
    let answers_missing = 0 < cancelled || backlog;
    let scheduled = asked.unwrap_or(due);
    (!limits.is_empty()).then_some(CutRun { ended, scheduled, answers_missing, limits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::fixture::summary;

    #[test]
    fn a_run_to_its_end_is_not_cut() {
        assert_eq!(Cut::of([&summary()].into_iter()), None);
        assert!(!is_cut(&summary()));
    }

    /// As in a published sweep: 2000 requests at once, 1015 of them ended within the time.
    #[test]
    fn requests_in_flight_at_the_drain_limit_are_counted() {
        let mut cut = summary();
        (cut.scheduled, cut.attempted) = (2_000, 2_000);
        cut.outcomes.insert(Outcome::Ok, 1_015);
        cut.outcomes.insert(Outcome::Cancelled, 985);
        let found = Cut::of([&summary(), &cut].into_iter()).unwrap();
        assert_eq!((found.runs, found.ended, found.scheduled), (1, 1_015, 2_000));
        assert_eq!(found.limits.len(), 1);
        assert!(found.answers_missing && is_cut(&cut));
        cut.run.partial = true;
        assert_eq!(Cut::of([&cut].into_iter()), None, "somebody stopped it");
    }

    #[test]
    fn time_that_ends_before_the_requests_cuts() {
        let mut cut = summary();
        cut.run.extent = ExtentFacts::UntilFirst { requests: 100, duration_s: 4.0 };
        let found = Cut::of([&cut, &cut].into_iter()).unwrap();
        assert_eq!((found.runs, found.ended, found.scheduled), (2, 80, 200));
        assert!(found.limits[0].contains("before all requests"), "{found:?}");
        assert!(!found.answers_missing && !is_cut(&cut), "all that left has ended");
        cut.run.extent = ExtentFacts::UntilFirst { requests: 40, duration_s: 400.0 };
        assert_eq!(Cut::of([&cut].into_iter()), None);
        cut.run.extent = ExtentFacts::DurationS(4.0);
        assert_eq!(Cut::of([&cut].into_iter()), None, "time was all that was asked for");
    }
}
