//! What the rules look at: the rows of a page with their facts, whoever made the page.

mod published;
mod row;
mod subject;

use std::collections::BTreeMap;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{Findings, PointResult, SetSummary};
use inferometer_model::campaign::Level;

pub(super) use self::row::{Overload, Row};
use self::row::{mark_contaminated, suspected};
pub(super) use self::subject::{Drawn, Hardware, MeasuredBy, Subject};
use crate::narrative::facts::row_name;
use crate::narrative::facts::set::{NamedLevel, named_levels};
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

    pub(super) fn of_set(set: &SetSummary, points: &[PointResult], facts: &'a Facts) -> Self {
        let levels = named_levels(set, points);
        let mut rows: Vec<Row> = levels.iter().map(Row::of_level).collect();
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
            ..Self::new(facts, Subject::of_set(set, points), rows)
        }
    }

    pub(super) fn of_run(summary: &Summary, facts: &'a Facts) -> Self {
        let concurrency = facts.facts.first().and_then(|fact| fact.about.concurrency);
        Self::new(facts, Subject::of_run(summary), vec![Row::of_run(summary, concurrency)])
    }

    /// From the facts alone: nothing is known of runs, so nothing is said of them.
    pub(super) fn of_published(facts: &'a Facts) -> Self {
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

    /// The place of a fact of a row.
    pub(super) fn at(&self, row: &Row, quantity: &str, statistic: Option<&str>) -> Option<usize> {
        self.of_row(row.name.as_deref(), quantity, statistic)
    }

    pub(super) fn of_row(
        &self,
        name: Option<&str>,
        quantity: &str,
        statistic: Option<&str>,
    ) -> Option<usize> {
        self.places.get(&(name, quantity, statistic)).copied()
    }

    /// Of the whole page.
    pub(super) fn whole(&self, quantity: &str) -> Option<usize> {
        self.of_row(None, quantity, None)
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

    /// A number of a row, where it is there and as the condition says.
    pub(super) fn when(
        &self,
        row: &Row,
        (quantity, statistic): (&str, Option<&str>),
        is_so: impl Fn(f64) -> bool,
    ) -> Option<usize> {
        self.at(row, quantity, statistic).filter(|place| is_so(self.value(*place)))
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
