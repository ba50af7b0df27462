//! A sentence as it is written, with the facts that it names.

use inferometer_analysis::Metric;

use crate::document::{Span, Text};
use crate::narrative::{FactUnit, Facts, Sentence};

pub(super) struct Saying<'a> {
    facts: &'a Facts,
    text: Text,
    used: Vec<usize>,
}

impl<'a> Saying<'a> {
    pub(super) fn on(facts: &'a Facts) -> Self {
        Self { facts, text: Vec::new(), used: Vec::new() }
    }

    #[must_use]
    pub(super) fn say(mut self, words: &str) -> Self {
        match self.text.last_mut() {
            Some(Span::Plain(text)) => text.push_str(words),
            _ => self.text.push(Span::Plain(words.to_owned())),
        }
        self
    }

    /// Of a scenario, a model or a machine: what stands in it is no claim.
    #[must_use]
    pub(super) fn name(mut self, name: &str) -> Self {
        self.text.push(Span::Strong(name.to_owned()));
        self
    }

    #[must_use]
    pub(super) fn code(mut self, code: &str) -> Self {
        self.text.push(Span::Code(code.to_owned()));
        self
    }

    /// The number with its unit, as its table has it.
    #[must_use]
    pub(super) fn number(self, place: usize) -> Self {
        let words = self.words(place);
        self.rests_on(place).say(&words)
    }

    /// Without its unit, where the words around it say it.
    #[must_use]
    pub(super) fn bare(self, place: usize) -> Self {
        let printed = self.facts.facts[place].printed.clone();
        self.rests_on(place).say(&printed)
    }

    /// A number that leads to its table, where a table has it: counts of the whole page, ratios and
    /// what the server said stand in none of their own.
    #[must_use]
    pub(super) fn link(self, place: usize) -> Self {
        if Metric::named(&self.facts.facts[place].about.quantity).is_none() {
            return self.number(place);
        }
        let (text, to) = (self.words(place), self.facts.facts[place].table.clone());
        let mut linked = self.rests_on(place);
        linked.text.push(Span::Link { text, to });
        linked
    }

    /// `c=4`, of a fact that is a concurrency.
    #[must_use]
    pub(super) fn level(self, place: usize) -> Self {
        self.say("c=").bare(place)
    }

    #[must_use]
    pub(super) fn rests_on(mut self, place: usize) -> Self {
        if !self.used.contains(&place) {
            self.used.push(place);
        }
        self
    }

    pub(super) fn done(self) -> Sentence {
        Sentence { text: self.text, facts: self.used }
    }

    fn words(&self, place: usize) -> String {
        let fact = &self.facts.facts[place];
        let unit = match (fact.unit, fact.printed.as_str()) {
            (FactUnit::Requests, "1") => " request",
            (FactUnit::Tokens, "1") => " token",
            (unit, _) => unit.word(),
        };
        format!("{}{unit}", fact.printed.replace("< ", "less than "))
    }
}
