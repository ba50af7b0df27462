//! What the rules look at: the rows of a page with their facts, whoever made the page.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

use inferometer_analysis::set::{
    AcrossRuns, Findings, LevelSummary, PointResult, QuestionKind, SetSummary,
};
use inferometer_analysis::{
    Interval, Metric, Percentile, Quantity, Summary, SystemFacts, Verdict, metric,
};
use inferometer_model::Outcome;
use inferometer_model::campaign::{Level, Prompts};
use inferometer_model::spec::SourceKind;

use super::sentence::{Fragment, fragment};
use super::thresholds::PREFILL_TOO_FAST;
use crate::narrative::facts::published::alone;
use crate::narrative::facts::row_name;
use crate::narrative::facts::rows::family;
use crate::narrative::facts::set::{NamedLevel, named_levels};
use crate::narrative::facts::standing::Standing;
use crate::narrative::{Fact, Facts};

pub(super) struct Page<'a> {
    pub(super) facts: &'a Facts,
    /// Rules ask for hundreds of facts of every row.
    places: BTreeMap<Place<'a>, usize>,
    pub(super) subject: Subject,
    pub(super) rows: Vec<Row>,
    pub(super) families: Vec<Family>,
    pub(super) searched: Vec<Searched>,
}

/// Scenario, quantity and statistic.
type Place<'a> = (Option<&'a str>, &'a str, Option<&'a str>);

/// What a search has found.
pub(super) struct Searched {
    /// The place of the row that met every goal.
    pub(super) row: usize,
    pub(super) goals: String,
    pub(super) confirmed: bool,
}

/// The levels of one scenario or one server.
pub(super) struct Family {
    pub(super) name: String,
    /// Places in the rows, from the lowest level to the highest.
    pub(super) rows: Vec<usize>,
    pub(super) findings: Findings,
}

impl<'a> Page<'a> {
    fn new(facts: &'a Facts, subject: Subject, rows: Vec<Row>) -> Self {
        let mut places = BTreeMap::new();
        for (place, fact) in facts.facts.iter().enumerate() {
            let about = &fact.about;
            let key =
                (about.scenario.as_deref(), about.quantity.as_str(), about.statistic.as_deref());
            places.entry(key).or_insert(place);
        }
        Self { facts, places, subject, rows, families: Vec::new(), searched: Vec::new() }
    }

    pub(super) fn from_set(set: &SetSummary, points: &[PointResult], facts: &'a Facts) -> Self {
        let levels = named_levels(set, points);
        let mut rows: Vec<Row> = levels.iter().map(Row::from_level).collect();
        mark_contaminated(&mut rows, set);
        let families = (0_u32..).zip(&set.conditions).filter_map(|(place, condition)| {
            let findings = condition.findings.clone()?;
            let own = levels.iter().enumerate().filter(|(_, named)| named.condition == place);
            let rows: Vec<usize> = own.map(|(row, _)| row).collect();
            let name = condition.name.clone();
            (1 < rows.len()).then_some(Family { name, rows, findings })
        });
        let searched = set.limits.iter().filter_map(|limit| {
            let is_it = |named: &NamedLevel<'_>| {
                named.condition == limit.condition && named.level.level.place() == limit.level
            };
            let row = levels.iter().position(is_it).filter(|_| limit.level.is_some())?;
            Some(Searched { row, goals: limit.goals.join(" and "), confirmed: limit.confirmed })
        });
        Self {
            families: families.collect(),
            searched: searched.collect(),
            ..Self::new(facts, Subject::from_set(set, points), rows)
        }
    }

    pub(super) fn from_run(summary: &Summary, facts: &'a Facts) -> Self {
        let concurrency = facts.facts.first().and_then(|fact| fact.about.concurrency);
        Self::new(facts, Subject::from_run(summary), vec![Row::from_run(summary, concurrency)])
    }

    /// From the facts alone: nothing is known of runs, so nothing is said of them.
    pub(super) fn from_published(facts: &'a Facts) -> Self {
        let rows = facts.scenarios().into_iter().filter_map(|(name, concurrency)| {
            Some(Row {
                name: Some(name?.to_owned()),
                concurrency,
                is_closed: concurrency.is_some(),
                cold: suspected(facts, name?),
                ..Row::default()
            })
        });
        let mut page = Self::new(facts, Subject::default(), rows.collect());
        page.families = page.published_families();
        page
    }

    /// The place of a fact of a row: of a quantity, or of a statistic of it, such as `ttft.p99`.
    pub(super) fn at(&self, row: &Row, quantity: &str) -> Option<usize> {
        self.of_row(row.name.as_deref(), quantity)
    }

    pub(super) fn of_row(&self, name: Option<&str>, quantity: &str) -> Option<usize> {
        let (quantity, statistic) = match quantity.split_once('.') {
            Some((quantity, statistic)) => (quantity, Some(statistic)),
            None => (quantity, None),
        };
        self.places.get(&(name, quantity, statistic)).copied()
    }

    /// The place of a fact of the whole page.
    pub(super) fn whole(&self, quantity: &str) -> Option<usize> {
        self.of_row(None, quantity)
    }

    /// The word before a row: one is in a scenario, and at a level.
    pub(super) const fn there(&self) -> &'static str {
        match self.subject.measured_by {
            MeasuredBy::Suite(_) | MeasuredBy::Others => " in ",
            MeasuredBy::Sweep | MeasuredBy::Repeat | MeasuredBy::Run => " at ",
        }
    }

    pub(super) fn fact(&self, place: usize) -> &Fact {
        &self.facts.facts[place]
    }

    pub(super) fn value(&self, place: usize) -> f64 {
        self.facts.facts[place].value
    }

    /// Whether nobody can say which is larger; of numbers without intervals everybody can.
    pub(super) fn overlap(&self, one: usize, other: usize) -> bool {
        let intervals = self.fact(one).interval.zip(self.fact(other).interval);
        intervals.is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }

    /// A number of a row, where it is known and meets the condition.
    pub(super) fn when(
        &self,
        row: &Row,
        quantity: &str,
        condition: impl Fn(f64) -> bool,
    ) -> Option<usize> {
        self.at(row, quantity).filter(|place| condition(self.value(*place)))
    }

    /// The row with the largest number that meets the condition.
    pub(super) fn largest(
        &self,
        quantity: &str,
        condition: impl Fn(f64) -> bool,
    ) -> Option<(&Row, usize)> {
        let found = self.rows.iter().filter_map(|row| Some((row, self.at(row, quantity)?)));
        let met = found.filter(|(_, place)| condition(self.value(*place)));
        met.max_by(|(_, a), (_, b)| self.value(*a).total_cmp(&self.value(*b)))
    }

    /// The row of a level, where it can be compared.
    pub(super) fn row_at(&self, family: &Family, level: Level) -> Option<&Row> {
        self.every_row_at(family, level).filter(|row| row.is_whole())
    }

    pub(super) fn every_row_at(&self, family: &Family, level: Level) -> Option<&Row> {
        let is_it = |row: &&Row| match level {
            Level::Concurrency(requests) => row.concurrency == Some(requests.get()),
            Level::AsAsked | Level::Rate(_) | Level::Unlimited => {
                let name = row.name.as_deref();
                let of = |several| row_name(&family.name, level, several);
                name == Some(&of(false)) || name == Some(&of(true))
            }
        };
        family.rows.iter().map(|place| &self.rows[*place]).find(is_it)
    }

    /// Those that can be compared, from the lowest level to the highest.
    pub(super) fn rows_of<'b>(
        &'b self,
        family: &'b Family,
    ) -> impl DoubleEndedIterator<Item = &'b Row> {
        self.every_row_of(family).filter(|row| row.is_whole())
    }

    pub(super) fn every_row_of<'b>(
        &'b self,
        family: &'b Family,
    ) -> impl DoubleEndedIterator<Item = &'b Row> {
        family.rows.iter().map(|place| &self.rows[*place])
    }
}

/// The row that comes first by a number, and those that cannot be told from it.
pub(super) struct Leading<'p> {
    pub(super) row: &'p Row,
    pub(super) place: usize,
    /// All that may come first as well, the likeliest first.
    pub(super) rivals: Vec<(&'p Row, usize)>,
    /// The next one, rival or not.
    pub(super) next: Option<(&'p Row, usize)>,
}

pub(super) fn highest(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

pub(super) fn lowest(a: f64, b: f64) -> Ordering {
    a.total_cmp(&b)
}

/// The first of the rows that have the number; `None` where none has.
pub(super) fn leading<'p>(
    page: &Page<'_>,
    rows: impl Iterator<Item = &'p Row>,
    quantity: &str,
    order: fn(f64, f64) -> Ordering,
) -> Option<Leading<'p>> {
    let found = rows.filter_map(|row| Some((row, page.at(row, quantity)?)));
    let mut found: Vec<(&Row, usize)> = found.collect();
    found.sort_by(|(_, a), (_, b)| order(page.value(*a), page.value(*b)));
    let ((row, place), others) = found.split_first()?;
    let rivals = others.iter().copied().filter(|(_, other)| is_same(page, *place, *other));
    let (rivals, next) = (rivals.collect(), others.first().copied());
    Some(Leading { row, place: *place, rivals, next })
}

/// Whether two numbers cannot be told apart: their intervals overlap, or a page prints the same.
pub(super) fn is_same(page: &Page<'_>, one: usize, other: usize) -> bool {
    page.overlap(one, other) || page.fact(one).printed == page.fact(other).printed
}

/// A sentence that names more rows is a table.
const NAMED_MOST: usize = 3;

impl Leading<'_> {
    /// ` is …`, or where several cannot be told apart, all of them; `None` where they are too many.
    pub(super) fn named(&self, page: &Page<'_>) -> Option<Fragment> {
        let Some(((last, last_place), between)) = self.rivals.split_last() else {
            return fragment!(page, " is {>}{}{*}", self.place, page.there(), self.row);
        };
        if NAMED_MOST <= self.rivals.len() {
            return None;
        }
        let overlap = self.rivals.iter().any(|(_, place)| page.overlap(self.place, *place));
        let (is, joined, end) = if overlap {
            (" is", " or ", ": the intervals overlap")
        } else {
            (" is the same", " and ", "")
        };
        let first = fragment!(page, "{}{}{*} ({>})", is, page.there(), self.row, self.place)?;
        let listed = between.iter().try_fold(first, |listed, (row, place)| {
            fragment!(page, "{}, {*} ({})", listed, *row, *place)
        })?;
        fragment!(page, "{}{}{*} ({}){}", listed, joined, *last, *last_place, end)
    }
}

#[derive(Default)]
pub(super) struct Subject {
    pub(super) model: Option<String>,
    pub(super) hardware: Option<Hardware>,
    pub(super) verdict: Option<Verdict>,
    pub(super) simulated: bool,
    pub(super) measured_by: MeasuredBy,
    /// `None` where nobody knows how prompts were drawn.
    pub(super) prompts: Option<Drawn>,
}

pub(super) enum Hardware {
    /// The name that all its GPUs have.
    Gpus(String),
    /// What the embedded engine pretends to be.
    Pretended(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum MeasuredBy {
    Suite(String),
    Sweep,
    Repeat,
    Run,
    /// Somebody else.
    #[default]
    Others,
}

/// How prompts of one run differ from those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    /// Each run has its own.
    Fresh,
    /// All scenarios of the suite draw from one seed.
    Shared,
    /// The source has no others, whatever the seed.
    SameInEveryRun,
}

impl Drawn {
    fn from_workload(first: &Summary, suite: Option<Prompts>) -> Self {
        match (first.workload.source, suite) {
            (SourceKind::VllmRandom, _) => Self::SameInEveryRun,
            (_, Some(Prompts::Same)) => Self::Shared,
            (_, Some(Prompts::Fresh) | None) => Self::Fresh,
        }
    }
}

impl Subject {
    fn from_set(set: &SetSummary, points: &[PointResult]) -> Self {
        let first = points.first().map(|point| &point.summary);
        let suite = set.suite.as_ref();
        let several = 1 < set.conditions.len() && suite.is_none();
        Self {
            // Several servers may have several models and machines.
            model: first.filter(|_| !several).map(|first| first.run.model.clone()),
            hardware: first
                .filter(|_| !several)
                .and_then(|first| Hardware::from_system(&first.system)),
            verdict: Some(set.verdict),
            simulated: set.simulated,
            prompts: first
                .map(|first| Drawn::from_workload(first, suite.map(|suite| suite.prompts))),
            measured_by: match (suite, set.asked.question) {
                (Some(suite), _) => MeasuredBy::Suite(suite.name.clone()),
                (None, QuestionKind::Repeat) => MeasuredBy::Repeat,
                (
                    None,
                    QuestionKind::Sweep
                    | QuestionKind::Search
                    | QuestionKind::Suite
                    | QuestionKind::Matrix,
                ) => MeasuredBy::Sweep,
            },
        }
    }

    fn from_run(summary: &Summary) -> Self {
        Self {
            model: Some(summary.run.model.clone()),
            hardware: Hardware::from_system(&summary.system),
            verdict: Some(summary.verdict),
            simulated: summary.run.simulated.is_some(),
            measured_by: MeasuredBy::Run,
            prompts: Some(Drawn::from_workload(summary, None)),
        }
    }
}

impl Hardware {
    fn from_system(system: &SystemFacts) -> Option<Self> {
        let server = system.server.as_ref()?;
        if let Some(pretended) = &server.pretended {
            return Some(Self::Pretended(pretended.clone()));
        }
        let gpus = &server.machine.as_ref()?.gpus;
        let first = gpus.first()?;
        gpus.iter().all(|gpu| gpu.name == first.name).then(|| Self::Gpus(first.name.clone()))
    }
}

/// One level of one scenario, or a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// `None` of a run.
    pub(super) name: Option<String>,
    pub(super) concurrency: Option<u32>,
    pub(super) verdict: Option<Verdict>,
    pub(super) standing: Standing,
    /// Where requests failed.
    pub(super) failure: Option<Failure>,
    /// Of requests that come at their own times.
    pub(super) overload: Option<Overload>,
    /// Prompts were to be new, and the cache knew them.
    pub(super) contaminated: bool,
    /// A row that no cache had seen, where prompts were read so much faster that one is suspected.
    pub(super) cold: Option<String>,
    /// Whether its p99 come from enough requests; `None` where nobody counted.
    pub(super) certified: Option<bool>,
    /// The same of TPOT alone.
    pub(super) tpot_certified: Option<bool>,
    /// Requests leave when others end.
    pub(super) is_closed: bool,
}

/// How most of the failed requests ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) class: String,
    /// More than half of them, and not only more than any other.
    pub(super) is_most: bool,
}

/// What shows that requests came faster than they were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    PilingUp,
    /// Answers came at a lower rate than requests.
    Behind,
    /// Requests waited in vain for a first token.
    TimedOut,
}

impl Row {
    fn from_level(named: &NamedLevel<'_>) -> Self {
        let certified =
            |quantity: Quantity| named.level.quantity(quantity).map(|across| across.certified);
        let every: Vec<&Summary> = named.runs.iter().chain(&named.invalid).copied().collect();
        let behind = named.level.is_saturated().then_some(Overload::Behind);
        let own = Self::from_runs(&every);
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

    fn from_run(summary: &Summary, concurrency: Option<u32>) -> Self {
        let certified = |metric: &Metric| {
            let found = summary.metrics.distribution(metric).filter(|found| 0 < found.n)?;
            Some(found.is_certified(Percentile::P99))
        };
        Self {
            verdict: Some(summary.verdict),
            certified: certified(&metric::TTFT),
            tpot_certified: certified(&metric::TPOT),
            concurrency,
            ..Self::from_runs(&[summary])
        }
    }

    fn from_runs(runs: &[&Summary]) -> Self {
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
            failure: Failure::most_frequent(runs),
            contaminated: warns("cache-contamination"),
            overload: overload.filter(|_| !is_closed),
            is_closed,
            ..Self::default()
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.standing == Standing::Whole
    }
}

impl Failure {
    /// By the outcome alone: one cause may show in several groups of failures.
    fn most_frequent(runs: &[&Summary]) -> Option<Self> {
        let is_failure = |outcome: &Outcome| {
            !matches!(outcome, Outcome::Ok | Outcome::Cancelled | Outcome::NotSent)
        };
        let counts = Outcome::all()
            .filter(is_failure)
            .map(|outcome| (outcome, runs.iter().map(|run| run.count(outcome)).sum::<u64>()));
        let counts: Vec<(Outcome, u64)> = counts.filter(|(_, count)| 0 < *count).collect();
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let (outcome, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        Some(Self { class: outcome.key().to_owned(), is_most: all < 2 * most })
    }
}

/// What the suite has found about its prefix cache.
fn mark_contaminated(rows: &mut [Row], set: &SetSummary) {
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
fn suspected(facts: &Facts, scenario: &str) -> Option<String> {
    let times = facts.find(Some(scenario), "pp_times", None)?;
    let is_too_fast = PREFILL_TOO_FAST <= facts.facts[times].value;
    let alone = alone(facts, scenario).filter(|_| is_too_fast)?;
    facts.facts[alone].about.scenario.clone()
}

impl Page<'_> {
    fn published_families(&self) -> Vec<Family> {
        let mut families: Vec<(String, Vec<usize>)> = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            let Some(name) = row.name.as_deref().and_then(|name| family(name, row.concurrency))
            else {
                continue;
            };
            match families.iter_mut().find(|(known, _)| known == name) {
                Some((_, own)) => own.push(place),
                None => families.push((name.to_owned(), vec![place])),
            }
        }
        let several = families.into_iter().filter(|(_, own)| 1 < own.len());
        let found = several.map(|(name, mut rows)| {
            rows.sort_by_key(|place| self.rows[*place].concurrency);
            let levels = rows.iter().filter_map(|place| self.level(&self.rows[*place]));
            let findings = Findings::of(&levels.collect::<Vec<_>>());
            Family { name, rows, findings }
        });
        found.collect()
    }

    fn level(&self, row: &Row) -> Option<LevelSummary> {
        let level = Level::Concurrency(NonZeroU32::new(row.concurrency?)?);
        let quantities = ["ttft.p99", "tpot.p99", "per_user_throughput", "output_throughput"];
        let across = quantities.into_iter().filter_map(|quantity| {
            Some((quantity.to_owned(), across(self.fact(self.at(row, quantity)?))))
        });
        Some(LevelSummary::of_figures(level, across.collect()))
    }
}

fn across(fact: &Fact) -> AcrossRuns {
    AcrossRuns {
        mean: Some(fact.value),
        std: None,
        interval: fact.interval.and_then(|(low, high)| Interval::new(low, high)),
        cov: None,
        n: 1,
        values: vec![Some(fact.value)],
        within: None,
        certified: false,
        reason: None,
    }
}
