//! What was found in the clauses of one sentence, and the ruling that follows.

use std::collections::BTreeSet;

use super::{Reason, Ruling};

#[derive(Debug, Default)]
pub(super) struct Findings {
    facts: BTreeSet<usize>,
    reasons: Vec<Reason>,
    /// Words and relations that nobody checks.
    unchecked: Vec<String>,
    /// What was not measured.
    missing: Vec<String>,
    claims: u32,
}

impl Findings {
    pub(super) fn holds(&mut self, facts: impl IntoIterator<Item = usize>) {
        self.claims += 1;
        self.facts.extend(facts);
    }

    pub(super) fn fails(&mut self, reason: Reason) {
        self.claims += 1;
        self.reasons.push(reason);
    }

    pub(super) fn unchecked(&mut self, what: impl Into<String>) {
        self.unchecked.push(what.into());
    }

    pub(super) fn missing(&mut self, what: impl Into<String>) {
        self.missing.push(what.into());
    }

    /// How many claims were tied to facts, or could not be.
    pub(super) const fn claims(&self) -> u32 {
        self.claims
    }

    /// What is false wins over what is unknown, and that over what nobody understood.
    pub(super) fn ruling(self) -> Ruling {
        let unchecked =
            (!self.unchecked.is_empty()).then(|| Reason::UncheckedClause(self.unchecked.join(" ")));
        if !self.reasons.is_empty() {
            return Ruling::Fails { reasons: self.reasons.into_iter().chain(unchecked).collect() };
        }
        if let Some(missing) = self.missing.into_iter().next() {
            return Ruling::Uncheckable { reason: Reason::NoSuchFact(missing) };
        }
        match (self.claims, unchecked) {
            (0, _) => Ruling::Uncheckable { reason: Reason::NoClaim },
            (_, Some(reason)) => Ruling::Fails { reasons: vec![reason] },
            (_, None) => Ruling::Holds { facts: self.facts.into_iter().collect() },
        }
    }
}
