//! All runs of one level of one server.

use std::collections::BTreeMap;

use inferometer_model::Outcome;
use inferometer_model::campaign::{Level, Repetition};
use serde::{Deserialize, Serialize};

use super::PointResult;
use super::across::Across;
use super::cut::Cut;
use super::enough::{self, Enough};
use super::reached::Reached;
use super::served::Served;
use crate::judge::Verdict;
use crate::metric::{self, METRICS, Metric};
use crate::quantity::Quantity;
use crate::sample::Percentile;
use crate::statistic::Statistic;
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
    /// Failed requests as a share of those that ended by themselves; null when none did.
    pub failed_share: Option<f64>,
    /// Whether a limit of time ended a run that counts before its requests had ended.
    pub cut: Option<Cut>,
    /// Of a closed loop without thinking: how many of its users were there at once.
    #[serde(default)]
    pub reached: Option<Reached>,
    /// Runs that were not played to their end.
    pub partial: u32,
    /// Of a rate: whether the server kept up with it, by the runs that count.
    pub served: Option<Served>,
    /// Where runs were made until enough is known.
    pub enough: Option<Enough>,
    /// By the name of the quantity, such as `ttft.p99`.
    pub quantities: BTreeMap<String, Across>,
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
const STATISTICS: [Statistic; 7] = [
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
    /// Of the results of one level, in the order of the set.
    pub(super) fn of(level: Level, results: &[&PointResult], repetition: &Repetition) -> Self {
        let (counted, invalid): (Vec<&PointResult>, Vec<&PointResult>) =
            results.iter().partition(|result| result.summary.verdict != Verdict::Invalid);
        let numbers =
            |results: &[&PointResult]| results.iter().map(|run| run.point.number).collect();
        let summaries: Vec<&Summary> = counted.iter().map(|result| &result.summary).collect();
        let all = || results.iter().map(|result| &result.summary);
        let requests = all().map(Tally::of).fold(Tally::default(), Tally::plus);
        Self {
            level,
            verdict: all().map(|summary| summary.verdict).max().unwrap_or(Verdict::Invalid),
            points: numbers(&counted),
            left_out: numbers(&invalid),
            requests,
            failed_share: requests.failed_share(),
            cut: Cut::of(summaries.iter().copied()),
            reached: Reached::of(summaries.iter().copied()),
            partial: u32::try_from(all().filter(|summary| summary.run.partial).count())
                .unwrap_or(u32::MAX),
            served: Served::of(level, summaries.iter().copied()),
            enough: repetition
                .stop_at
                .as_ref()
                .map(|target| Enough::of(target, repetition.runs.get(), &summaries)),
            quantities: across_all(&summaries, repetition),
        }
    }

    /// A level of which only figures are known, such as one that others published.
    pub fn of_figures(level: Level, quantities: BTreeMap<String, Across>) -> Self {
        Self {
            level,
            verdict: Verdict::Valid,
            points: Vec::new(),
            left_out: Vec::new(),
            requests: Tally::default(),
            failed_share: None,
            cut: None,
            reached: None,
            partial: 0,
            served: None,
            enough: None,
            quantities,
        }
    }

    pub fn quantity(&self, quantity: impl Into<Quantity>) -> Option<&Across> {
        self.quantities.get(&quantity.into().to_string())
    }

    /// As a cell of a matrix has it, of which there are hundreds: single numbers, and of the times that
    /// a user waits a few statistics, where they have a value. The summaries of its runs have the rest.
    pub(super) fn shorten(&mut self) {
        let is_kept = |name: &str| {
            name.split_once('.').is_none_or(|(metric, statistic)| {
                KEPT_OF_CELL.iter().any(|kept| kept.name == metric)
                    && KEPT_STATISTICS.contains(&statistic)
            })
        };
        self.quantities.retain(|name, across| across.mean.is_some() && is_kept(name));
    }

    /// Whether its figures are of all its requests, and not of those that ended before a limit did.
    pub(super) fn is_whole(&self) -> bool {
        !self.cut.as_ref().is_some_and(|cut| cut.answers_missing)
    }

    /// Whether about as many requests were in flight as it asks for; a level of which that is not
    /// known is taken for one.
    pub fn is_reached(&self) -> bool {
        self.reached.is_none_or(Reached::is_reached)
    }

    /// Whether findings may compare it with other levels.
    pub(super) fn is_comparable(&self) -> bool {
        self.is_whole() && self.is_reached()
    }

    pub fn is_saturated(&self) -> bool {
        self.served.is_some_and(|served| served.saturated)
    }
}

impl Tally {
    pub(crate) fn of(summary: &Summary) -> Self {
        let ok = summary.count(Outcome::Ok);
        let cancelled = summary.count(Outcome::Cancelled);
        Self {
            scheduled: summary.scheduled.saturating_sub(summary.time_over),
            ok,
            failed: summary.attempted.saturating_sub(ok + cancelled),
            cancelled,
            // Turns that the end of the run cut off were never due.
            not_sent: summary.count(Outcome::NotSent).saturating_sub(summary.time_over),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            scheduled: self.scheduled + other.scheduled,
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            cancelled: self.cancelled + other.cancelled,
            not_sent: self.not_sent + other.not_sent,
        }
    }

    fn failed_share(&self) -> Option<f64> {
        let ended = self.ok + self.failed;
        (0 < ended).then(|| self.failed as f64 / ended as f64)
    }
}

fn across_all(summaries: &[&Summary], repetition: &Repetition) -> BTreeMap<String, Across> {
    let target = repetition.stop_at.as_ref();
    let looked_at = target.and_then(|target| enough::quantity(target, summaries));
    let quantities = METRICS.iter().flat_map(|metric| metric.quantities(&STATISTICS));
    quantities
        .map(|quantity| {
            let runs: Vec<_> = summaries.iter().map(|summary| quantity.value_in(summary)).collect();
            let across = Across::of(&runs).possible(quantity.metric().unit, &runs);
            let is_looked_at = looked_at == Some(quantity);
            let across =
                if is_looked_at { across.over_looks(repetition.runs.get()) } else { across };
            (quantity.to_string(), across)
        })
        .collect()
}
