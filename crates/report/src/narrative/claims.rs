//! Whether a sentence says only what the facts say.
//!
//! A sentence is read by a closed vocabulary: a word that is not in it may carry a claim that
//! nobody checks, and spoils the sentence. What can be read is bound to facts by stated rules
//! (docs/narrative.md) and then recomputed. Precision comes before recall: a true sentence that is
//! dropped is a pity, a false one that is printed is a lie.

mod binding;
mod clause;
mod comparing;
mod extreme;
mod findings;
mod gap;
mod grammar;
mod known;
mod level;
mod levels;
mod number;
mod reading;
mod sameness;
mod trend;
mod vocabulary;
mod words;

use std::fmt;

use self::clause::{Clause, Defaults};
use self::findings::Findings;
use self::known::{Known, Place};
use self::reading::{Term, terms};
use self::vocabulary::{Meaning, PHRASES};
use self::words::{SENTENCE_BYTES_MAX, tokens};
use super::Facts;

/// What a sentence is about where it names no scenario itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    Page,
    /// By its name, as the facts have it.
    Scenario(&'a str),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Every claim of it stands in the facts at these places.
    Holds { facts: Vec<usize> },
    /// At least one claim is not what the facts say.
    Fails { reasons: Vec<Reason> },
    /// Nothing in it can be held against a fact.
    Uncheckable { reason: Reason },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No fact has this number.
    UnknownNumber(String),
    /// The number's unit is of another kind than its metric's.
    WrongUnit(String),
    /// The number exists, but for another metric, statistic or scenario than the sentence names.
    WrongSubject(String),
    FalseComparison(String),
    FalseEquality(String),
    FalseLevel(String),
    /// A short name beside words that it does not stand for.
    UnknownExpansion(String),
    /// A word or a relation that cannot be checked stands beside what can.
    UncheckedClause(String),
    /// What it speaks of was not measured.
    NoSuchFact(String),
    NoClaim,
    /// Longer than any sentence that is read.
    TooLong,
}

impl Reason {
    /// What it is counted under.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownNumber(_) => "a number that is not in the data",
            Self::WrongUnit(_) => "a unit that does not fit",
            Self::WrongSubject(_) => "a number of something else",
            Self::FalseComparison(_) => "a comparison that does not hold",
            Self::FalseEquality(_) => "a likeness that does not hold",
            Self::FalseLevel(_) => "high or low said of what is not",
            Self::UnknownExpansion(_) => "a short name explained wrongly",
            Self::UncheckedClause(_) => "words that nothing in the data backs",
            Self::NoSuchFact(_) => "something that was not measured",
            Self::NoClaim => "no claim that can be checked",
            Self::TooLong => "too long",
        }
    }

    fn detail(&self) -> &str {
        match self {
            Self::UnknownNumber(text)
            | Self::WrongUnit(text)
            | Self::WrongSubject(text)
            | Self::FalseComparison(text)
            | Self::FalseEquality(text)
            | Self::FalseLevel(text)
            | Self::UnknownExpansion(text)
            | Self::UncheckedClause(text)
            | Self::NoSuchFact(text) => text,
            Self::NoClaim | Self::TooLong => "",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail() {
            "" => out.write_str(self.name()),
            detail => write!(out, "{}: {detail}", self.name()),
        }
    }
}

impl Ruling {
    /// What a rejected sentence is counted under: the first thing that is wrong with it.
    pub fn rejected(&self) -> Option<&Reason> {
        match self {
            Self::Holds { .. } => None,
            Self::Fails { reasons } => reasons.first(),
            Self::Uncheckable { reason } => Some(reason),
        }
    }
}

/// What the checker calls a quantity of the facts; `None` where it has no word for it.
pub fn name_of(quantity: &str) -> Option<&'static str> {
    let is_meant = |meaning: &Meaning| {
        *meaning == Meaning::SweetSpot && quantity == "sweet_spot"
            || matches!(meaning, Meaning::Metric(metric) if *metric == quantity)
    };
    PHRASES.iter().find(|(_, meaning)| is_meant(meaning)).map(|(phrase, _)| *phrase)
}

/// Reads one sentence and holds it against the facts.
pub fn check(sentence: &str, scope: Scope<'_>, facts: &Facts) -> Ruling {
    if SENTENCE_BYTES_MAX < sentence.len() {
        return Ruling::Uncheckable { reason: Reason::TooLong };
    }
    let known = Known::of(facts);
    let place = match scope {
        Scope::Page => Place::Page,
        Scope::Scenario(name) => match known.place_of(name) {
            Some(place) => place,
            None => return Ruling::Uncheckable { reason: Reason::NoSuchFact(name.to_owned()) },
        },
    };
    let terms = terms(&tokens(sentence), place, &known);
    let mut findings = Findings::default();
    let mut defaults = Defaults::at(place);
    for part in terms.split(|term| *term == Term::Word(Meaning::Break)) {
        let clause = Clause { terms: part, defaults, known: &known };
        clause.check(&mut findings);
        defaults = clause.defaults_after();
    }
    findings.ruling()
}
