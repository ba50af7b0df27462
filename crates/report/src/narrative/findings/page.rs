//! What the rules look at: the rows of a page with their facts, whoever made the page.

use std::num::NonZeroU32;

use inferometer_analysis::set::{
    Across, Findings, LevelSummary, PointResult, QuestionKind, SetSummary, Tally,
};
use inferometer_analysis::{Interval, Summary, SystemFacts, Verdict};
use inferometer_model::campaign::Level;

use super::thresholds::PREFILL_TOO_FAST;
use crate::narrative::facts::published::alone;
use crate::narrative::facts::row_name;
use crate::narrative::facts::rows::family;
use crate::narrative::facts::set::{NamedLevel, named_levels};
use crate::narrative::{Fact, Facts};

pub(super) struct Page<'a> {
    pub(super) facts: &'a Facts,
    pub(super) subject: Subject,
    pub(super) rows: Vec<Row>,
    pub(super) families: Vec<Family>,
    pub(super) searched: Vec<Searched>,
}

/// What a search has found.
pub(super) struct Searched {
    /// The place of the row that met every goal.
    pub(super) row: usize,
    pub(super) goals: String,
    pub(super) confirmed: bool,
}

/// Who was measured, and by what.
#[derive(Default)]
pub(super) struct Subject {
    pub(super) model: Option<String>,
    pub(super) hardware: Option<Hardware>,
    pub(super) verdict: Option<Verdict>,
    pub(super) simulated: bool,
    pub(super) measured_by: MeasuredBy,
}

pub(super) enum Hardware {
    /// The name that all its GPUs have.
    Gpus(String),
    /// What the embedded engine pretends to be.
    Pretended(String),
}

#[derive(Default)]
pub(super) enum MeasuredBy {
    Suite(String),
    Sweep,
    Repeat,
    Run,
    /// Somebody else.
    #[default]
    Others,
}

/// One level of one scenario, or a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// `None` of a run.
    pub(super) name: Option<String>,
    pub(super) concurrency: Option<u32>,
    pub(super) verdict: Option<Verdict>,
    /// The class of most failures, where requests failed.
    pub(super) failure: Option<String>,
    /// Prompts were to be new, and the cache knew them.
    pub(super) contaminated: bool,
    /// A row that no cache had seen, where prompts were read so much faster that one is suspected.
    pub(super) cold: Option<String>,
    /// Whether its p99 come from enough requests; `None` where nobody counted.
    pub(super) certified: Option<bool>,
    /// Requests leave when others end.
    pub(super) is_closed: bool,
}

/// The levels of one scenario or one server.
pub(super) struct Family {
    pub(super) name: String,
    /// Places in the rows, from the lowest level to the highest.
    pub(super) rows: Vec<usize>,
    pub(super) findings: Findings,
}

impl<'a> Page<'a> {
    pub(super) fn of_set(set: &SetSummary, points: &[PointResult], facts: &'a Facts) -> Self {
        let levels = named_levels(set, points);
        let rows = levels.iter().map(|named| {
            let runs = named.runs.as_slice();
            let own = Row::of_runs(runs);
            let certified = |name: &str| named.level.quantity(name).map(|across| across.certified);
            Row {
                name: Some(named.name.clone()),
                concurrency: named.concurrency,
                verdict: Some(named.level.verdict),
                certified: certified("ttft.p99").or_else(|| certified("tpot.p99")),
                ..own
            }
        });
        let mut rows: Vec<Row> = rows.collect();
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
            facts,
            subject: Subject::of_set(set, points),
            families: families.collect(),
            searched: searched.collect(),
            rows,
        }
    }

    pub(super) fn of_run(summary: &Summary, facts: &'a Facts) -> Self {
        let ttft = summary.metrics.distribution("ttft").filter(|ttft| 0 < ttft.n);
        let row = Row {
            verdict: Some(summary.verdict),
            certified: ttft.map(|ttft| ttft.is_certified(inferometer_analysis::Percentile::P99)),
            concurrency: facts.facts.first().and_then(|fact| fact.about.concurrency),
            ..Row::of_runs(&[summary])
        };
        let subject = Subject {
            model: Some(summary.run.model.clone()),
            hardware: Hardware::of(&summary.system),
            verdict: Some(summary.verdict),
            simulated: summary.run.simulated.is_some(),
            measured_by: MeasuredBy::Run,
        };
        Self { facts, subject, rows: vec![row], families: Vec::new(), searched: Vec::new() }
    }

    /// From the facts alone: nothing is known of runs, so nothing is said of them.
    pub(super) fn of_published(facts: &'a Facts) -> Self {
        let scenarios = facts.scenarios().into_iter().filter_map(|(name, concurrency)| {
            Some(Row {
                name: Some(name?.to_owned()),
                concurrency,
                is_closed: concurrency.is_some(),
                cold: suspected(facts, name?),
                ..Row::default()
            })
        });
        let rows: Vec<Row> = scenarios.collect();
        let mut page = Self {
            facts,
            subject: Subject::default(),
            families: Vec::new(),
            searched: Vec::new(),
            rows,
        };
        page.families = page.published_families();
        page
    }

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

    /// A published row in the shape that findings are made from.
    fn level(&self, row: &Row) -> Option<LevelSummary> {
        let level = Level::Concurrency(NonZeroU32::new(row.concurrency?)?);
        let quantities = [
            ("ttft.p99", "ttft", Some("p99")),
            ("tpot.p99", "tpot", Some("p99")),
            ("per_user_throughput", "per_user_throughput", None),
            ("output_throughput", "output_throughput", None),
        ];
        let across = quantities.into_iter().filter_map(|(key, quantity, statistic)| {
            Some((key.to_owned(), across(self.fact(self.at(row, quantity, statistic)?))))
        });
        Some(LevelSummary {
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
            quantities: across.collect(),
        })
    }

    /// The place of a fact of a row.
    pub(super) fn at(&self, row: &Row, quantity: &str, statistic: Option<&str>) -> Option<usize> {
        self.facts.find(row.name.as_deref(), quantity, statistic)
    }

    /// The word before a row: one is in a scenario, and at a level.
    pub(super) const fn there(&self) -> &'static str {
        match self.subject.measured_by {
            MeasuredBy::Suite(_) | MeasuredBy::Others => " in ",
            MeasuredBy::Sweep | MeasuredBy::Repeat | MeasuredBy::Run => " at ",
        }
    }

    /// Of the whole page.
    pub(super) fn whole(&self, quantity: &str) -> Option<usize> {
        self.facts.find(None, quantity, None)
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

    /// A number of a row, where it is there and as the condition says.
    pub(super) fn when(
        &self,
        row: &Row,
        (quantity, statistic): (&str, Option<&str>),
        is_so: impl Fn(f64) -> bool,
    ) -> Option<usize> {
        self.at(row, quantity, statistic).filter(|place| is_so(self.value(*place)))
    }

    /// The row of a level.
    pub(super) fn row_at(&self, family: &Family, level: Level) -> Option<&Row> {
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

    pub(super) fn rows_of<'b>(
        &'b self,
        family: &'b Family,
    ) -> impl DoubleEndedIterator<Item = &'b Row> {
        family.rows.iter().map(|place| &self.rows[*place])
    }
}

/// What the suite has found about its prefix cache.
fn mark_contaminated(rows: &mut [Row], set: &SetSummary) {
    let Some(suite) = &set.suite else { return };
    let name = |place: u32| {
        let row = usize::try_from(place).ok().and_then(|place| suite.rows.get(place));
        row.map(|row| row.name.as_str())
    };
    for found in &suite.contaminated {
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

impl Row {
    fn of_runs(runs: &[&Summary]) -> Self {
        let groups = runs.iter().flat_map(|run| &run.failures);
        let failed = groups.filter(|group| group.stage.is_some());
        let most = failed.max_by_key(|group| group.count);
        let warns =
            |run: &&Summary| run.warnings.iter().any(|notice| notice.key == "cache-contamination");
        Self {
            failure: most.map(|group| group.outcome.key().to_owned()),
            contaminated: runs.iter().any(warns),
            is_closed: runs.first().is_some_and(|run| !run.run.load.is_open()),
            ..Self::default()
        }
    }
}

impl Subject {
    fn of_set(set: &SetSummary, points: &[PointResult]) -> Self {
        let first = points.first().map(|point| &point.summary);
        let suite = set.suite.as_ref().map(|suite| suite.name.clone());
        let several = 1 < set.conditions.len() && suite.is_none();
        Self {
            // Several servers may have several models and machines.
            model: first.filter(|_| !several).map(|first| first.run.model.clone()),
            hardware: first.filter(|_| !several).and_then(|first| Hardware::of(&first.system)),
            verdict: Some(set.verdict),
            simulated: set.simulated,
            measured_by: match (suite, set.asked.question) {
                (Some(name), _) => MeasuredBy::Suite(name),
                (None, QuestionKind::Repeat) => MeasuredBy::Repeat,
                (None, QuestionKind::Sweep | QuestionKind::Search | QuestionKind::Suite) => {
                    MeasuredBy::Sweep
                }
            },
        }
    }
}

impl Hardware {
    fn of(system: &SystemFacts) -> Option<Self> {
        let server = system.server.as_ref()?;
        if let Some(pretended) = &server.pretended {
            return Some(Self::Pretended(pretended.clone()));
        }
        let gpus = &server.machine.as_ref()?.gpus;
        let first = gpus.first()?;
        gpus.iter().all(|gpu| gpu.name == first.name).then(|| Self::Gpus(first.name.clone()))
    }
}

fn across(fact: &Fact) -> Across {
    Across {
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
