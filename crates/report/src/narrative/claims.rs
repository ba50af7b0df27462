//! Whether a sentence says only what the facts say.
//!
//! A sentence is read by a closed vocabulary: a word that is not in it may carry a claim that
//! nobody checks, and spoils the sentence. What can be read is bound to facts by stated rules
//! (docs/narrative.md) and then recomputed. Precision comes before recall: a true sentence that is
//! dropped is a pity, a false one that is printed is a lie.

mod clause;
mod known;
mod reading;
mod relations;
mod vocabulary;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use self::clause::{Clause, Defaults};
use self::known::{Known, Location};
use self::reading::{Term, terms};
use self::vocabulary::{Meaning, PHRASES};
use super::Facts;

/// The most bytes of one sentence that are read; longer ones are refused whole.
const SENTENCE_BYTES_MAX: usize = 600;

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

/// Why a sentence is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub kind: ReasonKind,
    /// What of the sentence it is about; may be empty.
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonKind {
    /// No fact has this number.
    UnknownNumber,
    /// The number's unit is of another kind than its metric's.
    WrongUnit,
    /// The number exists, but for another metric, statistic or scenario than the sentence names.
    WrongSubject,
    FalseComparison,
    FalseEquality,
    FalseLevel,
    /// A short name beside words that it does not stand for.
    UnknownExpansion,
    /// A word or a relation that cannot be checked stands beside what can.
    UncheckedClause,
    /// What it speaks of was not measured.
    NoSuchFact,
    NoClaim,
    /// Longer than any sentence that is read.
    TooLong,
}

impl ReasonKind {
    /// What it is counted under.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownNumber => "a number that is not in the data",
            Self::WrongUnit => "a unit that does not fit",
            Self::WrongSubject => "a number of something else",
            Self::FalseComparison => "a comparison that does not hold",
            Self::FalseEquality => "a likeness that does not hold",
            Self::FalseLevel => "high or low said of what is not",
            Self::UnknownExpansion => "a short name explained wrongly",
            Self::UncheckedClause => "words that nothing in the data backs",
            Self::NoSuchFact => "something that was not measured",
            Self::NoClaim => "no claim that can be checked",
            Self::TooLong => "too long",
        }
    }

    fn with(self, detail: impl Into<String>) -> Reason {
        Reason { kind: self, detail: detail.into() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_str() {
            "" => out.write_str(self.kind.name()),
            detail => write!(out, "{}: {detail}", self.kind.name()),
        }
    }
}

/// What was found in the clauses of one sentence.
#[derive(Debug, Default)]
struct Findings {
    facts: BTreeSet<usize>,
    reasons: Vec<Reason>,
    /// Words and relations that nobody checks.
    unchecked: Vec<String>,
    /// What was not measured.
    missing: Vec<String>,
    /// How many claims were tied to facts, or could not be.
    claims: u32,
}

impl Findings {
    /// What is false wins over what is unknown, and that over what nobody understood.
    fn ruling(self) -> Ruling {
        let unchecked = (!self.unchecked.is_empty())
            .then(|| ReasonKind::UncheckedClause.with(self.unchecked.join(" ")));
        if !self.reasons.is_empty() {
            return Ruling::Fails { reasons: self.reasons.into_iter().chain(unchecked).collect() };
        }
        if let Some(missing) = self.missing.into_iter().next() {
            return Ruling::Uncheckable { reason: ReasonKind::NoSuchFact.with(missing) };
        }
        match (self.claims, unchecked) {
            (0, _) => Ruling::Uncheckable { reason: ReasonKind::NoClaim.with("") },
            (_, Some(reason)) => Ruling::Fails { reasons: vec![reason] },
            (_, None) => Ruling::Holds { facts: self.facts.into_iter().collect() },
        }
    }
}

/// What the checker calls a quantity of the facts; `None` where it has no word for it.
pub fn quantity_name(quantity: &str) -> Option<&'static str> {
    let is_meant = |meaning: &Meaning| {
        *meaning == Meaning::SweetSpot && quantity == "sweet_spot"
            || matches!(meaning, Meaning::Metric(metric) if *metric == quantity)
    };
    let (_, phrases) = PHRASES.iter().find(|(meaning, _)| is_meant(meaning))?;
    phrases.split(" | ").next()
}

/// Reads one sentence and holds it against the facts.
pub fn check(sentence: &str, scope: Scope<'_>, facts: &Facts) -> Ruling {
    if SENTENCE_BYTES_MAX < sentence.len() {
        return Ruling::Uncheckable { reason: ReasonKind::TooLong.with("") };
    }
    let known = Known::new(facts);
    let place = match scope {
        Scope::Page => Location::Page,
        Scope::Scenario(name) => match known.scenarios.iter().position(|it| it.name == name) {
            Some(place) => Location::Scenario(place),
            None => return Ruling::Uncheckable { reason: ReasonKind::NoSuchFact.with(name) },
        },
    };
    let terms = terms(sentence, place, &known);
    let findings = RefCell::new(Findings::default());
    let (several_subjects, several_places) = (false, false);
    let mut defaults =
        Defaults { metric: None, statistic: None, place, several_subjects, several_places };
    for part in terms.split(|term| *term == Term::Word(Meaning::Break)) {
        let clause = Clause { terms: part, defaults, known: &known, findings: &findings };
        clause.check();
        defaults = clause.defaults_after();
    }
    findings.into_inner().ruling()
}
