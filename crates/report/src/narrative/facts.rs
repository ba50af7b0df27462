//! The numbers of a page, as sentences may speak of them.
//!
//! A fact is printed here exactly as its table prints it: tables and sentences share [`printed`].
//! Ratios and shares that sentences need are facts as well (`derived`), so that every number of a
//! sentence can be looked up.

mod derived;
pub(super) mod published;
mod quantities;
pub(super) mod rows;
mod run;
pub(super) mod set;
pub(super) mod standing;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Interval, Summary};

pub use self::published::PublishedFacts;
pub use self::quantities::{printed, unit_of};
pub(in crate::narrative) use self::rows::family;
pub use self::rows::{row_name, slug, table_of_scenario};
use super::{About, Fact, FactUnit, Facts};

/// Of a suite, a sweep or a repetition.
pub fn of_set(set: &SetSummary, points: &[PointResult]) -> Facts {
    let mut facts = Facts::default();
    let left_out = set::add(&mut facts, set, points);
    derived::add(&mut facts, &left_out);
    facts
}

/// Of a single run: its facts have no scenario.
pub fn of_run(summary: &Summary) -> Facts {
    let mut facts = Facts::default();
    run::add(&mut facts, summary);
    derived::add(&mut facts, &[]);
    facts
}

/// Of a table that somebody else has published, in its order.
pub fn of_published(rows: &[PublishedFacts]) -> Facts {
    let mut facts = Facts::default();
    published::add(&mut facts, rows);
    derived::add(&mut facts, &[]);
    for (scenario, concurrency) in super::findings::published_sweet_spots(&facts) {
        let row = Row { scenario: Some(scenario), concurrency: Some(concurrency) };
        let level = Some(f64::from(concurrency));
        row.add(&mut facts, Added::new("sweet_spot", level, "concurrency-scaling"));
    }
    facts
}

impl Facts {
    /// The place of a fact.
    pub fn find(
        &self,
        scenario: Option<&str>,
        quantity: &str,
        statistic: Option<&str>,
    ) -> Option<usize> {
        self.facts.iter().position(|fact| {
            fact.about.scenario.as_deref() == scenario
                && fact.about.quantity == quantity
                && fact.about.statistic.as_deref() == statistic
        })
    }

    /// The scenarios in the order of the page; `None` stands for the whole page.
    pub fn scenarios(&self) -> Vec<(Option<&str>, Option<u32>)> {
        let mut known: Vec<(Option<&str>, Option<u32>)> = Vec::new();
        for fact in &self.facts {
            let scenario = fact.about.scenario.as_deref();
            if !known.iter().any(|(name, _)| *name == scenario) {
                known.push((scenario, fact.about.concurrency));
            }
        }
        known
    }
}

/// Where the facts of one row belong.
#[derive(Clone, Debug)]
struct Row {
    scenario: Option<String>,
    concurrency: Option<u32>,
}

impl Row {
    /// Adds a number where there is one: nothing is not zero, and what is no number is nothing.
    fn add(&self, facts: &mut Facts, added: Added<'_>) {
        let Some(value) = added.value.filter(|value| value.is_finite()) else { return };
        let (unit, better) = unit_of(added.quantity);
        facts.facts.push(Fact {
            about: About {
                scenario: self.scenario.clone(),
                concurrency: self.concurrency,
                quantity: added.quantity.to_owned(),
                statistic: added.statistic.map(str::to_owned),
            },
            value,
            printed: printed(added.quantity, value),
            unit,
            better,
            interval: added.interval.map(|interval| (interval.low, interval.high)),
            table: added.table.to_owned(),
        });
    }
}

/// A number on its way to the facts.
#[derive(Clone, Copy, Debug)]
struct Added<'a> {
    quantity: &'a str,
    statistic: Option<&'a str>,
    value: Option<f64>,
    interval: Option<Interval>,
    table: &'a str,
}

impl<'a> Added<'a> {
    fn new(quantity: &'a str, value: Option<f64>, table: &'a str) -> Self {
        Self { quantity, statistic: None, value, interval: None, table }
    }

    fn of(self, statistic: &'a str) -> Self {
        Self { statistic: Some(statistic), ..self }
    }

    fn within(self, interval: Option<Interval>) -> Self {
        Self { interval, ..self }
    }
}

impl FactUnit {
    /// What stands after the number; empty where nothing does.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Milliseconds => " ms",
            Self::Seconds => " s",
            Self::TokensPerSecond => " tok/s",
            Self::RequestsPerSecond => " requests/s",
            Self::Tokens => " tokens",
            Self::Requests => " requests",
            Self::Watts => " W",
            Self::JoulesPerToken => " J/tok",
            Self::TokensPerJoule => " tok/J",
            // The sign of per cent is printed with the number.
            Self::Share | Self::Number => "",
        }
    }
}
