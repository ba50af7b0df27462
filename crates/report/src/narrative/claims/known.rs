//! The facts by what they are about.

use super::reading::tokens;
use crate::narrative::facts::family;
use crate::narrative::{Fact, Facts};

#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) facts: &'a [Fact],
    pub(super) scenarios: Vec<Scenario<'a>>,
}

#[derive(Debug)]
pub(super) struct Scenario<'a> {
    pub(super) name: &'a str,
    pub(super) concurrency: Option<u32>,
    /// Its name as words.
    pub(super) words: Vec<String>,
    /// The words before its level, such as `concurrency scaling`: what the levels of one scenario
    /// share. `None` where it has one level.
    pub(super) family: Option<Vec<String>>,
}

/// Where a number was measured: a scenario by its place, or the page as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Page,
    Scenario(usize),
}

/// What a sentence asks the facts for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Subject {
    pub(super) metric: &'static str,
    /// `None` where the sentence names none: the mean, the median, or the only number there is.
    pub(super) statistic: Option<&'static str>,
    pub(super) place: Location,
}

impl Subject {
    pub(super) fn at(self, scenario: usize) -> Self {
        Self { place: Location::Scenario(scenario), ..self }
    }
}

impl<'a> Known<'a> {
    pub(super) fn new(facts: &'a Facts) -> Self {
        let words = |text: &str| tokens(text).into_iter().map(|token| token.spelling).collect();
        let scenarios = facts.scenarios().into_iter().filter_map(|(name, concurrency)| {
            let name = name?;
            let family = family(name, concurrency).map(words);
            Some(Scenario { name, concurrency, words: words(name), family })
        });
        Self { facts: &facts.facts, scenarios: scenarios.collect() }
    }

    pub(super) fn page_concurrency(&self) -> Option<f64> {
        let subject = Subject { metric: "concurrency", statistic: None, place: Location::Page };
        self.about(subject).first().map(|fact| self.facts[*fact].value)
    }

    /// The facts that a subject may mean.
    pub(super) fn about(&self, subject: Subject) -> Vec<usize> {
        let scenario = match subject.place {
            Location::Page => None,
            Location::Scenario(place) => Some(self.scenarios[place].name),
        };
        let is_about = |fact: &usize| {
            let about = &self.facts[*fact].about;
            let statistic_fits = match (subject.statistic, about.statistic.as_deref()) {
                // A rate over the whole run is its own mean.
                (None, None | Some("mean" | "p50")) | (Some("mean"), None) => true,
                (asked, has) => asked == has,
            };
            about.scenario.as_deref() == scenario
                && is_named(&about.quantity, subject.metric)
                && statistic_fits
        };
        (0..self.facts.len()).filter(is_about).collect()
    }

    /// The one number that a comparison takes: what was asked for, else the mean, else the median.
    pub(super) fn value(&self, subject: Subject) -> Option<usize> {
        let order = |fact: &usize| match self.facts[*fact].about.statistic.as_deref() {
            None => 0,
            Some("mean") => 1,
            Some(_) => 2,
        };
        self.about(subject).into_iter().min_by_key(order)
    }

    /// Whether any fact has this metric, wherever it was measured.
    pub(super) fn has_metric(&self, metric: &str) -> bool {
        self.facts.iter().any(|fact| is_named(&fact.about.quantity, metric))
    }

    /// Whether the metric has a statistic to name.
    pub(super) fn is_distribution(&self, metric: &str) -> bool {
        let mut abouts = self.facts.iter().map(|fact| &fact.about);
        abouts.any(|about| about.quantity == metric && about.statistic.is_some())
    }

    /// Scenarios that differ from this one in their level alone, itself among them, from the lowest
    /// level up.
    pub(super) fn levels_beside(&self, place: usize) -> Vec<usize> {
        let family = &self.scenarios[place].family;
        let mut levels: Vec<usize> = (0..self.scenarios.len())
            .filter(|other| family.is_some() && self.scenarios[*other].family == *family)
            .collect();
        levels.sort_by_key(|level| self.scenarios[*level].concurrency);
        levels
    }

    /// The levels of the one scenario that has several; none where two have.
    pub(super) fn only_family(&self) -> Option<Vec<usize>> {
        let all = (0..self.scenarios.len()).map(|place| self.levels_beside(place));
        let mut families = all.filter(|levels| 1 < levels.len());
        let first = families.next()?;
        families.all(|other| other == first).then_some(first)
    }

    /// What a relation must hold for: the mean and the median where no statistic is named.
    pub(super) fn readings(&self, subject: Subject) -> Vec<Subject> {
        let both = ["mean", "p50"].map(|name| Subject { statistic: Some(name), ..subject });
        if subject.statistic.is_none() && both.iter().all(|one| self.value(*one).is_some()) {
            both.to_vec()
        } else {
            vec![subject]
        }
    }
}

/// `Peak throughput` may be that of one moment, or the best of all levels (`Clause::best_level`).
fn is_named(quantity: &str, metric: &str) -> bool {
    quantity == metric || metric == "peak_throughput" && quantity == "peak_output_throughput"
}
