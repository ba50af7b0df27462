//! The facts by what they are about.

use super::words::{Token, tokens};
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
pub(super) enum Place {
    Page,
    Scenario(usize),
}

/// What a sentence asks the facts for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Subject {
    pub(super) metric: &'static str,
    /// `None` where the sentence names none: the mean, the median, or the only number there is.
    pub(super) statistic: Option<&'static str>,
    pub(super) place: Place,
}

impl<'a> Known<'a> {
    pub(super) fn of(facts: &'a Facts) -> Self {
        let mut scenarios: Vec<Scenario<'a>> = Vec::new();
        for fact in &facts.facts {
            let Some(name) = fact.about.scenario.as_deref() else { continue };
            if !scenarios.iter().any(|scenario| scenario.name == name) {
                scenarios.push(Scenario::named(name, fact.about.concurrency));
            }
        }
        Self { facts: &facts.facts, scenarios }
    }

    pub(super) fn place_of(&self, name: &str) -> Option<Place> {
        self.scenarios.iter().position(|scenario| scenario.name == name).map(Place::Scenario)
    }

    pub(super) fn page_concurrency(&self) -> Option<f64> {
        let subject = Subject { metric: "concurrency", statistic: None, place: Place::Page };
        self.about(subject).first().map(|fact| self.facts[*fact].value)
    }

    /// The facts that a subject may mean.
    pub(super) fn about(&self, subject: Subject) -> Vec<usize> {
        (0..self.facts.len()).filter(|fact| self.is_about(*fact, subject)).collect()
    }

    /// The one number that a comparison takes: what was asked for, else the mean, else the median.
    pub(super) fn value(&self, subject: Subject) -> Option<usize> {
        let order = |fact: &usize| match self.statistic(*fact) {
            None => 0,
            Some("mean") => 1,
            Some(_) => 2,
        };
        self.about(subject).into_iter().min_by_key(order)
    }

    pub(super) fn statistic(&self, fact: usize) -> Option<&'a str> {
        self.facts[fact].about.statistic.as_deref().map(|name| match name {
            "median" => "p50",
            other => other,
        })
    }

    /// Whether any fact has this metric, wherever it was measured.
    pub(super) fn has_metric(&self, metric: &str) -> bool {
        self.facts.iter().any(|fact| is_named(&fact.about.quantity, metric))
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

    /// The levels of each scenario that has several.
    pub(super) fn families(&self) -> Vec<Vec<usize>> {
        let mut families: Vec<Vec<usize>> = Vec::new();
        for place in 0..self.scenarios.len() {
            let levels = self.levels_beside(place);
            if 1 < levels.len() && !families.contains(&levels) {
                families.push(levels);
            }
        }
        families
    }

    /// The levels of the one scenario that has several; none where two have.
    pub(super) fn only_family(&self) -> Option<Vec<usize>> {
        let mut families = self.families();
        families.pop().filter(|_| families.is_empty())
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

    /// Whether it has a statistic to name.
    pub(super) fn is_distribution(&self, metric: &str) -> bool {
        let of_it = |fact: &usize| self.facts[*fact].about.quantity == metric;
        (0..self.facts.len()).filter(of_it).any(|fact| self.statistic(fact).is_some())
    }

    fn is_about(&self, fact: usize, subject: Subject) -> bool {
        let about = &self.facts[fact].about;
        let in_place = match subject.place {
            Place::Page => about.scenario.is_none(),
            Place::Scenario(place) => {
                about.scenario.as_deref() == self.scenarios.get(place).map(|s| s.name)
            }
        };
        let statistic_fits = match (subject.statistic, self.statistic(fact)) {
            // A rate over the whole run is its own mean.
            (None, None | Some("mean" | "p50")) | (Some("mean"), None) => true,
            (asked, has) => asked == has,
        };
        in_place && is_named(&about.quantity, subject.metric) && statistic_fits
    }
}

impl<'a> Scenario<'a> {
    fn named(name: &'a str, concurrency: Option<u32>) -> Self {
        let words: Vec<String> = tokens(name).iter().map(spelling).collect();
        let family =
            family(name, concurrency).map(|name| tokens(name).iter().map(spelling).collect());
        Self { name, concurrency, words, family }
    }
}

/// `Peak throughput` may be that of one moment; `binding` knows what else it may be.
fn is_named(quantity: &str, metric: &str) -> bool {
    quantity == metric || metric == "peak_throughput" && quantity == "peak_output_throughput"
}

/// A token as a word, so that phrases can be looked up.
pub(super) fn spelling(token: &Token) -> String {
    match token {
        Token::Word(word) => word.clone(),
        Token::Number(digits) => digits.value.to_string(),
        Token::Mark(mark) => mark.to_string(),
    }
}
