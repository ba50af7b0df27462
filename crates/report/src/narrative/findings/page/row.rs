//! One row of a page, with what is known of it besides its numbers.

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::{Metric, Percentile, Quantity, Summary, Verdict, metric};
use inferometer_model::Outcome;

use crate::narrative::Facts;
use crate::narrative::facts::published::alone;
use crate::narrative::facts::set::NamedLevel;
use crate::narrative::facts::standing::Standing;
use crate::narrative::findings::thresholds::PREFILL_TOO_FAST;

/// One level of one scenario, or a run.
#[derive(Clone, Debug, Default)]
pub(in crate::narrative::findings) struct Row {
    /// `None` of a run.
    pub(in crate::narrative::findings) name: Option<String>,
    pub(in crate::narrative::findings) concurrency: Option<u32>,
    pub(in crate::narrative::findings) verdict: Option<Verdict>,
    pub(in crate::narrative::findings) standing: Standing,
    /// Where requests failed.
    pub(in crate::narrative::findings) failure: Option<Failure>,
    /// Of requests that come at their own times.
    pub(in crate::narrative::findings) overload: Option<Overload>,
    /// Prompts were to be new, and the cache knew them.
    pub(in crate::narrative::findings) contaminated: bool,
    /// A row that no cache had seen, where prompts were read so much faster that one is suspected.
    pub(in crate::narrative::findings) cold: Option<String>,
    /// Whether its p99 come from enough requests; `None` where nobody counted.
    pub(in crate::narrative::findings) certified: Option<bool>,
    /// The same of TPOT alone.
    pub(in crate::narrative::findings) tpot_certified: Option<bool>,
    /// Requests leave when others end.
    pub(in crate::narrative::findings) is_closed: bool,
}

/// How most of the failed requests ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::narrative::findings) struct Failure {
    pub(in crate::narrative::findings) class: String,
    /// More than half of them, and not only more than any other.
    pub(in crate::narrative::findings) is_most: bool,
}

/// What shows that requests came faster than they were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::narrative::findings) enum Overload {
    PilingUp,
    /// Answers came at a lower rate than requests.
    Behind,
    /// Requests waited in vain for a first token.
    TimedOut,
}

impl Row {
    pub(super) fn of_level(named: &NamedLevel<'_>) -> Self {
        let certified =
            |quantity: Quantity| named.level.quantity(quantity).map(|across| across.certified);
        let every: Vec<&Summary> = named.runs.iter().chain(&named.invalid).copied().collect();
        let behind = named.level.is_saturated().then_some(Overload::Behind);
        let own = Self::of_runs(&every);
        Self {
            name: Some(named.name.clone()),
            concurrency: named.concurrency,
            verdict: Some(named.level.verdict),
            standing: named.standing,
            overload: own.overload.or(behind),
            certified: certified(metric::TTFT.p99()).or_else(|| certified(metric::TPOT.p99())),
            tpot_certified: certified(metric::TPOT.p99()),
            ..own
        }
    }

    pub(super) fn of_run(summary: &Summary, concurrency: Option<u32>) -> Self {
        let certified = |metric: &Metric| {
            let found = summary.metrics.distribution(metric).filter(|found| 0 < found.n)?;
            Some(found.is_certified(Percentile::P99))
        };
        Self {
            verdict: Some(summary.verdict),
            certified: certified(&metric::TTFT),
            tpot_certified: certified(&metric::TPOT),
            concurrency,
            ..Self::of_runs(&[summary])
        }
    }

    fn of_runs(runs: &[&Summary]) -> Self {
        let warns =
            |key: &str| runs.iter().any(|run| run.warnings.iter().any(|notice| notice.key == key));
        let is_closed = runs.first().is_some_and(|run| !run.run.load.is_open());
        let timed_out = runs.iter().any(|run| 0 < run.count(Outcome::TimeoutFirstToken));
        let overload = match (warns("piling-up"), timed_out) {
            (true, _) => Some(Overload::PilingUp),
            (false, true) => Some(Overload::TimedOut),
            (false, false) => None,
        };
        Self {
            failure: Failure::of(runs),
            contaminated: warns("cache-contamination"),
            overload: overload.filter(|_| !is_closed),
            is_closed,
            ..Self::default()
        }
    }

    pub(in crate::narrative::findings) fn is_whole(&self) -> bool {
        self.standing == Standing::Whole
    }
}

impl Failure {
    /// By the outcome alone: one cause may show in several groups of failures.
    fn of(runs: &[&Summary]) -> Option<Self> {
        let is_failure = |outcome: &Outcome| {
            !matches!(outcome, Outcome::Ok | Outcome::Cancelled | Outcome::NotSent)
        };
        let counts = Outcome::ALL
            .into_iter()
            .filter(is_failure)
            .map(|outcome| (outcome, runs.iter().map(|run| run.count(outcome)).sum::<u64>()));
        let counts: Vec<(Outcome, u64)> = counts.filter(|(_, count)| 0 < *count).collect();
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let (outcome, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        Some(Self { class: outcome.key().to_owned(), is_most: all < 2 * most })
    }
}

/// What the suite has found about its prefix cache.
pub(super) fn mark_contaminated(rows: &mut [Row], set: &SetSummary) {
    let Some(suite) = &set.suite else { return };
    let name = |place: u32| {
        let row = usize::try_from(place).ok().and_then(|place| suite.rows.get(place));
        row.map(|row| row.name.as_str())
    };
    for found in suite.contaminated.iter().filter(|found| !found.same_data) {
        let own = rows.iter_mut().find(|row| row.name.as_deref() == name(found.row));
        let Some(own) = own else { continue };
        own.contaminated |= !found.suspected;
        own.cold = found.cold.and_then(name).map(str::to_owned);
    }
}

/// A published scenario whose prefill is faster than it can be next to one that was alone.
pub(super) fn suspected(facts: &Facts, scenario: &str) -> Option<String> {
    let times = facts.find(Some(scenario), "pp_times", None)?;
    let is_too_fast = PREFILL_TOO_FAST <= facts.facts[times].value;
    let alone = alone(facts, scenario).filter(|_| is_too_fast)?;
    facts.facts[alone].about.scenario.clone()
}
