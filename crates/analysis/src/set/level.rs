//! All runs of one level of one server: each quantity across the runs, whether a time limit cut them,
//! whether the level was reached, and whether the server kept up with it.

use std::collections::BTreeMap;

use inferometer_model::Outcome;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::Arrivals;
use inferometer_model::study::{Level, Repetition, StopAt};
use inferometer_model::whole::to_u32;
use serde::{Deserialize, Serialize};

use super::{Figure, PointResult};
use crate::judge::Verdict;
use crate::metric::{self, LatencyOrigin, METRICS, Metric, Quantity, Statistic, Unit};
use crate::run::{ExtentFacts, LoadFacts, ThinkFacts};
use crate::statistics::runs::{RunStatistics, half_width_over_looks};
use crate::statistics::{Estimate, Interval, Percentile, share_pooled};
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSummary {
    pub level: Level,
    /// The worst of its runs.
    pub verdict: Verdict,
    /// The runs that count, by their numbers.
    pub points: Vec<u32>,
    /// Runs that are invalid: they are in no mean and in no finding.
    pub left_out: Vec<u32>,
    /// How requests ended, all runs of the level added up.
    pub requests: Tally,
    /// Failed requests as a share of those that were not cancelled; null without any.
    pub failed_share: Option<f64>,
    /// Whether a time limit ended a run that counts before its requests had ended.
    pub cut: Option<Cut>,
    /// The concurrency that a closed loop without think time reached.
    pub reached: Option<Reached>,
    /// Runs that did not complete.
    pub partial: u32,
    /// Whether the server kept up with a rate, by the runs that count.
    pub served: Option<Served>,
    /// Where runs are repeated until an interval is narrow enough.
    pub enough: Option<Enough>,
    /// By the name of the quantity, such as `ttft.p99`.
    pub quantities: BTreeMap<String, AcrossRuns>,
}

/// Counts, never a statistic: requests of different runs are not one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub scheduled: u64,
    pub ok: u64,
    pub failed: u64,
    /// Ended by us.
    pub cancelled: u64,
    pub not_sent: u64,
}

/// What is published of a distribution.
pub const STATISTICS: [Statistic; 7] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P90),
    Statistic::Percentile(Percentile::P95),
    Statistic::Percentile(Percentile::P99),
    Statistic::Percentile(Percentile::P999),
    Statistic::Max,
];

/// What a cell of a matrix keeps of them.
static KEPT_OF_CELL: [&Metric; 6] = [
    &metric::TTFT,
    &metric::TTFT_SCHEDULE,
    &metric::TPOT,
    &metric::ITL,
    &metric::E2E,
    &metric::E2E_SCHEDULE,
];
const KEPT_STATISTICS: [&str; 3] = ["mean", "p50", "p99"];

impl LevelSummary {
    /// Summarizes the results of one level, in the order of the set.
    pub(super) fn summarize(
        level: Level,
        results: &[&PointResult],
        repetition: &Repetition,
    ) -> Self {
        let (counted, invalid): (Vec<&PointResult>, Vec<&PointResult>) =
            results.iter().partition(|result| result.summary.verdict != Verdict::Invalid);
        let numbers =
            |results: &[&PointResult]| results.iter().map(|run| run.point.number).collect();
        let summaries: Vec<&Summary> = counted.iter().map(|result| &result.summary).collect();
        let all = || results.iter().map(|result| &result.summary);
        let requests = all().map(Tally::from_summary).fold(Tally::default(), Tally::plus);
        let ended = requests.ok + requests.failed;
        Self {
            level,
            verdict: all().map(|summary| summary.verdict).max().unwrap_or(Verdict::Invalid),
            points: numbers(&counted),
            left_out: numbers(&invalid),
            requests,
            failed_share: (0 < ended).then(|| requests.failed as f64 / ended as f64),
            cut: Cut::from_runs(summaries.iter().copied()),
            reached: Reached::from_runs(summaries.iter().copied()),
            partial: count(all().filter(|summary| summary.run.partial)),
            served: Served::from_runs(level, summaries.iter().copied()),
            enough: repetition
                .stop_at
                .as_ref()
                .map(|target| Enough::from_runs(target, repetition.runs.get(), &summaries)),
            quantities: across_all(&summaries, repetition),
        }
    }

    pub fn quantity(&self, quantity: impl Into<Quantity>) -> Option<&AcrossRuns> {
        self.quantities.get(&quantity.into().to_string())
    }

    /// Keeps what a cell of a matrix needs, because there are hundreds of them: single numbers, and a few
    /// statistics of latencies, where they have a value. The summaries of its runs have the rest.
    pub(super) fn shorten(&mut self) {
        let is_kept = |name: &str| {
            name.split_once('.').is_none_or(|(metric, statistic)| {
                KEPT_OF_CELL.iter().any(|kept| kept.name == metric)
                    && KEPT_STATISTICS.contains(&statistic)
            })
        };
        self.quantities.retain(|name, across| across.mean.is_some() && is_kept(name));
    }

    /// Whether about the requested number of requests was in flight; true where that is not known.
    pub fn is_reached(&self) -> bool {
        self.reached.is_none_or(Reached::is_reached)
    }

    /// Whether findings may compare it with other levels: it describes all its requests, and not only
    /// those that ended before a time limit.
    pub(super) fn is_comparable(&self) -> bool {
        !self.cut.as_ref().is_some_and(|cut| cut.answers_missing) && self.is_reached()
    }

    pub fn is_saturated(&self) -> bool {
        self.served.is_some_and(|served| served.saturated)
    }
}

impl Tally {
    pub fn from_summary(summary: &Summary) -> Self {
        let ok = summary.count(Outcome::Ok);
        let cancelled = summary.count(Outcome::Cancelled) + summary.count(Outcome::Abandoned);
        Self {
            scheduled: summary.scheduled.saturating_sub(summary.time_over),
            ok,
            failed: summary.attempted.saturating_sub(ok + cancelled),
            cancelled,
            // Turns that the end of the run cut off were never due.
            not_sent: summary.count(Outcome::NotSent).saturating_sub(summary.time_over),
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            scheduled: self.scheduled + other.scheduled,
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            cancelled: self.cancelled + other.cancelled,
            not_sent: self.not_sent + other.not_sent,
        }
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

fn across_all(summaries: &[&Summary], repetition: &Repetition) -> BTreeMap<String, AcrossRuns> {
    let target = repetition.stop_at.as_ref();
    let looked_at = target.and_then(|target| stop_quantity(target, summaries));
    let quantities = METRICS.iter().flat_map(|metric| metric.quantities(&STATISTICS));
    quantities
        .map(|quantity| {
            let runs: Vec<_> = summaries.iter().map(|summary| quantity.value_in(summary)).collect();
            let mut across = AcrossRuns::in_unit(quantity.metric().unit, &runs);
            if looked_at == Some(quantity) {
                across = across.over_looks(repetition.runs.get());
            }
            (quantity.to_string(), across)
        })
        .collect()
}

/// Mean and spread between runs. A run counts once, whatever its length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcrossRuns {
    /// Null when no run has a value.
    pub mean: Option<f64>,
    /// The sample standard deviation; null of one run.
    pub std: Option<f64>,
    /// 95 %, by Student's t with n − 1 degrees of freedom; null of one run. For the quantity whose
    /// interval ended the runs it is wider, so that it holds with 95 % over all looks at it. Of a share that is
    /// the same in all runs, by Wilson of all their requests. Never below zero.
    pub interval: Option<Interval>,
    /// The standard deviation over the mean; null of one run and of a mean of zero.
    pub cov: Option<f64>,
    /// Runs that have a value.
    pub n: u32,
    /// One for each run that counts, in the order of the runs; null where it has none.
    pub values: Vec<Option<f64>>,
    /// The interval within a single run, which knows nothing of other runs.
    pub within: Option<Interval>,
    /// Whether every run had enough requests for this statistic.
    pub certified: bool,
    /// Why no run has a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AcrossRuns {
    /// Within what the unit allows.
    pub(crate) fn in_unit(unit: Unit, runs: &[Result<Estimate, String>]) -> Self {
        Self::from_runs(runs).possible(unit, runs)
    }

    pub fn from_runs(runs: &[Result<Estimate, String>]) -> Self {
        let estimates: Vec<&Estimate> = runs.iter().flatten().collect();
        let present: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        let found = RunStatistics::from_values(&present);
        Self {
            mean: found.map(|found| found.mean),
            std: found.and_then(|found| found.std),
            interval: found.and_then(|found| found.interval),
            cov: found.and_then(|found| found.cov),
            n: count(present.iter()),
            values: runs.iter().map(|run| run.as_ref().ok().map(|run| run.value)).collect(),
            within: match estimates.as_slice() {
                [single] => single.interval,
                _ => None,
            },
            certified: !estimates.is_empty() && estimates.iter().all(|run| run.certified),
            reason: match (found, runs.first()) {
                (Some(_), _) => None,
                (None, Some(Err(reason))) => Some(reason.clone()),
                (None, Some(Ok(_))) => Some("a run's value is not a finite number".to_owned()),
                (None, None) => Some("no run of this level is valid".to_owned()),
            },
        }
    }

    /// The same where this quantity's interval was looked at after every run to see whether it is small
    /// enough: runs that end when they lie close together by luck lie closer than they are.
    #[must_use]
    fn over_looks(self, runs_at_most: u32) -> Self {
        let present: Vec<f64> = self.values.iter().flatten().copied().collect();
        let raised = self.mean.zip(half_width_over_looks(&present, runs_at_most));
        let raised = raised.and_then(|(mean, share)| {
            let half = share * mean.abs();
            Interval::new((mean - half).max(0.0), mean + half)
        });
        Self { interval: raised.or(self.interval), ..self }
    }

    /// The same within what its unit allows: no quantity is negative and no share above one. A share
    /// that is the same in all runs, such as no failure at all, is as sure as their requests make it:
    /// that runs agree is no certainty.
    #[must_use]
    fn possible(self, unit: Unit, runs: &[Result<Estimate, String>]) -> Self {
        let highest = if unit == Unit::Share { 1.0 } else { f64::INFINITY };
        let clamped = |interval: Interval| interval.clamped(0.0, highest);
        let pooled = || {
            let estimates: Vec<Estimate> = runs.iter().flatten().copied().collect();
            let pooled = share_pooled(&estimates)?;
            // The share itself is possible; by rounding it may lie just outside.
            let reach = |share: f64| Interval::new(pooled.low.min(share), pooled.high.max(share));
            reach(self.mean?)
        };
        let is_same_share = unit == Unit::Share && 1 < self.n && self.is_same_in_all();
        let interval = if is_same_share { pooled() } else { self.interval.map(clamped) };
        Self { interval, within: self.within.map(clamped), ..self }
    }

    /// Whether all runs that have a value have the same, to the last digit.
    pub fn is_same_in_all(&self) -> bool {
        self.extremes().is_none_or(|(low, high)| low.to_bits() == high.to_bits())
    }

    /// Between the runs, or of a single run the one within it.
    pub fn confidence_interval(&self) -> Option<Interval> {
        self.interval.or(self.within)
    }

    /// The mean with that interval.
    pub(crate) fn figure(&self) -> Option<Figure> {
        Some(Figure { value: self.mean?, interval: self.confidence_interval() })
    }

    /// The least and the greatest value, where there are any.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let values = || self.values.iter().flatten().copied();
        Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
    }
}

/// Runs that a time limit cut. Where answers are missing, the level describes only the quick requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Runs that were cut.
    pub runs: u32,
    /// Requests of these runs that were not cancelled.
    pub ended: u64,
    /// Requests that they should have.
    pub scheduled: u64,
    /// Whether requests that were due did not end, and not only fewer were due.
    #[serde(default)]
    pub answers_missing: bool,
    /// What cut them, such as `the drain timeout expired`.
    pub limits: Vec<String>,
}

impl Cut {
    fn from_runs<'a>(runs: impl Iterator<Item = &'a Summary>) -> Option<Self> {
        runs.filter_map(Self::from_run).reduce(|mut cut, run| {
            cut.runs += run.runs;
            cut.ended += run.ended;
            cut.scheduled += run.scheduled;
            cut.answers_missing |= run.answers_missing;
            for limit in run.limits {
                if !cut.limits.contains(&limit) {
                    cut.limits.push(limit);
                }
            }
            cut
        })
    }

    /// `None` of a run that was stopped: it is partial, and not cut by a limit.
    fn from_run(summary: &Summary) -> Option<Self> {
        if summary.run.partial {
            return None;
        }
        let cancelled = summary.count(Outcome::Cancelled);
        let backlog = summary.failures.iter().any(|group| group.cause == Some(Cause::HeldByCap));
        let due = summary.scheduled.saturating_sub(summary.time_over);
        let mut asked = None;
        if let ExtentFacts::UntilFirst { requests, .. } = summary.run.extent {
            asked = Some(requests).filter(|requests| due < *requests);
        }
        let limits: Vec<String> = [
            (0 < cancelled, "the drain timeout expired while requests were in flight"),
            (backlog, "the duration ended while the concurrency cap held requests back"),
            (asked.is_some(), "the duration ended before all requests were sent"),
        ]
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, text)| text.to_owned())
        .collect();
        (!limits.is_empty()).then(|| Self {
            runs: 1,
            ended: summary.attempted.saturating_sub(cancelled),
            scheduled: asked.unwrap_or(due),
            answers_missing: 0 < cancelled || backlog,
            limits,
        })
    }
}

/// Whether a time limit ended the run while requests that were due had not ended.
pub fn is_cut(summary: &Summary) -> bool {
    Cut::from_run(summary).is_some_and(|cut| cut.answers_missing)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enough {
    pub quantity: String,
    /// The requested half-width, as a share of the mean.
    pub target: f64,
    /// The one that there is, at the level raised for the looks at it; null of fewer than three runs.
    pub half_width: Option<f64>,
    pub reached: bool,
}

impl Enough {
    /// There are at most `runs_at_most` runs.
    fn from_runs(target: &StopAt, runs_at_most: u32, runs: &[&Summary]) -> Self {
        let half_width = stop_quantity(target, runs).and_then(|quantity| {
            let values = runs.iter().filter_map(|run| Some(quantity.value_in(run).ok()?.value));
            half_width_over_looks(&values.collect::<Vec<_>>(), runs_at_most)
        });
        Self {
            quantity: target.quantity.clone(),
            target: target.half_width,
            half_width,
            reached: half_width.is_some_and(|half_width| half_width <= target.half_width),
        }
    }
}

/// What the target is about: a bare latency begins where the load of the runs says.
fn stop_quantity(target: &StopAt, runs: &[&Summary]) -> Option<Quantity> {
    let open = runs.first()?.run.load.is_open();
    Quantity::named(&target.quantity, LatencyOrigin::for_load(open)).ok()
}

/// The concurrency that a closed loop reached. With fewer requests than users it never reaches all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    pub asked: u32,
    /// The most that were in flight in any run that counts.
    pub most: u32,
}

/// From this share on a level is the one that was asked for.
const SHARE_REACHED: f64 = 0.9;
/// Below this one its figures are those of another level.
const SHARE_GRAVE: f64 = 0.5;

impl Reached {
    /// `None` for an open loop, for users with think time, and where it is not known.
    fn from_runs<'a>(runs: impl Iterator<Item = &'a Summary>) -> Option<Self> {
        let of_run = |run: &Summary| {
            let LoadFacts::Closed { concurrency, think: ThinkFacts::None, .. } = run.run.load
            else {
                return None;
            };
            let peak = run.metrics.scalar(&metric::CONCURRENCY_PEAK)?.value?;
            Some(Self { asked: concurrency, most: to_u32(peak.round()) })
        };
        runs.filter_map(of_run).max_by_key(|found| found.most)
    }

    pub fn is_reached(self) -> bool {
        SHARE_REACHED <= self.share()
    }

    pub(super) fn is_grave(self) -> bool {
        self.share() < SHARE_GRAVE
    }

    fn share(self) -> f64 {
        f64::from(self.most) / f64::from(self.asked.max(1))
    }
}

/// All runs of a rate together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    pub asked_per_s: f64,
    /// Answers per second while requests came; the mean over runs.
    pub served_per_s: f64,
    /// Share of the rate of the schedules.
    pub share: f64,
    /// How far chance in the arrivals may push the share, where the schedule's own rate is not known.
    pub chance: f64,
    /// Runs in which requests in flight grew for as long as they came.
    pub piling_up: u32,
    /// Whether less than 95 % was served, chance set aside, or most runs piled up.
    pub saturated: bool,
}

/// A server that answers less than this share of a rate falls behind.
const SERVED_SHARE: f64 = 0.95;
/// The key of the warning of a run whose requests in flight only grow.
const PILING_UP: &str = "piling-up";
/// Chance beyond this many standard errors is not called chance.
const STANDARD_ERRORS: f64 = 2.0;

impl Served {
    /// `None` of what is no rate, and of runs without an answer to time.
    pub(crate) fn from_runs<'a>(
        level: Level,
        runs: impl Iterator<Item = &'a Summary>,
    ) -> Option<Self> {
        let Level::Rate(asked_per_s) = level else { return None };
        let runs: Vec<(&Summary, f64)> =
            runs.filter_map(|run| Some((run, served_per_s(run)?))).collect();
        if runs.is_empty() {
            return None;
        }
        let all = runs.len() as f64;
        let piling_up = count(runs.iter().filter(|(run, _)| piles_up(run)));
        let offered = |run| offered_per_s(run, asked_per_s);
        let share = runs.iter().map(|(run, served)| served / offered(run).0).sum::<f64>() / all;
        let variance = runs.iter().map(|(run, _)| offered(run).1).sum::<f64>();
        let chance = STANDARD_ERRORS * variance.sqrt() / all;
        Some(Self {
            asked_per_s,
            served_per_s: runs.iter().map(|(_, served)| served).sum::<f64>() / all,
            share,
            chance,
            piling_up,
            saturated: falls_behind(share, chance) || runs.len() < 2 * piling_up as usize,
        })
    }
}

pub(super) fn falls_behind(share: f64, chance: f64) -> bool {
    share + chance < SERVED_SHARE
}

/// Answers over the time from the first request to the last answer, less the time of one answer without
/// waiting: the last requests of a server that keeps up still need that long. Waiting shows in the time
/// to the first token, so the shortest of these represents a request that did not wait.
fn served_per_s(summary: &Summary) -> Option<f64> {
    let window_s = summary.window.duration_s?;
    let of = |metric| summary.metrics.distribution(metric);
    let origin = summary.latency_origin();
    let own_ms = match (of(origin.e2e()), of(origin.ttft())) {
        (Some(whole), Some(first)) => whole.mean? - first.mean? + first.min?,
        _ => 0.0,
    };
    let coming_s = window_s - own_ms / 1e3;
    let ok = summary.count(Outcome::Ok);
    (0 < ok && 0.0 < coming_s).then(|| ok as f64 / coming_s)
}

/// Whether requests in flight only grow, as the run's own check of its steady state found.
pub fn piles_up(summary: &Summary) -> bool {
    summary.warnings.iter().any(|notice| notice.key == PILING_UP)
}

/// The rate of the schedule, where its length is known; otherwise the requested rate, and the variance of
/// the rate of a random schedule around it, relative to it.
fn offered_per_s(summary: &Summary, asked_per_s: f64) -> (f64, f64) {
    if let ExtentFacts::DurationS(seconds) = summary.run.extent {
        let is_known = 0.0 < seconds && 0 < summary.scheduled;
        return (if is_known { summary.scheduled as f64 / seconds } else { asked_per_s }, 0.0);
    }
    let LoadFacts::Open { arrivals, .. } = &summary.run.load else { return (asked_per_s, 0.0) };
    let of_one_gap = match arrivals {
        // The rate of a stretched schedule is the requested one.
        Arrivals::Constant | Arrivals::Stretched { .. } => 0.0,
        Arrivals::Poisson => 1.0,
        Arrivals::Gamma { burstiness } => 1.0 / burstiness,
    };
    (asked_per_s, of_one_gap / summary.scheduled.max(1) as f64)
}

#[cfg(test)]
mod tests;
