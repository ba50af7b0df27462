//! A sentence as terms: numbers with their units, places, and words with a meaning.

use super::known::{Known, Place, spelling};
use super::levels;
use super::number::Number;
use super::vocabulary::{
    Meaning, PHRASES, QUALIFIERS, Qualifier, SHORT_NAMES, UNITS, UnitWord, longest,
};
use super::words::{Digits, Token};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Number(Number),
    Place(Place),
    /// A place that was named by its concurrency.
    Level(Place),
    /// The name that several levels share, by the place of the first of them.
    Family(usize),
    /// A level that no scenario has, or that is not looked up yet.
    NoSuchLevel(f64),
    Word(Meaning),
    /// A word that is nowhere in the vocabulary.
    Unknown(String),
    /// A short name beside words that it does not stand for.
    Misread(String),
}

pub(super) fn terms(tokens: &[Token], scope: Place, known: &Known<'_>) -> Vec<Term> {
    let words: Vec<String> = tokens.iter().map(spelling).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let reader = Reader { tokens, words, known };
    let mut terms = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (read, taken) = reader.term(at);
        terms.push(read);
        at += taken;
    }
    levels::look_up(&mut terms, scope, known);
    carry_units_back(&mut terms);
    mark_sizes(&mut terms);
    mark_misread_names(&mut terms);
    terms
}

struct Reader<'r, 'a> {
    tokens: &'r [Token],
    words: Vec<&'r str>,
    known: &'r Known<'a>,
}

impl Reader<'_, '_> {
    /// What begins here, and how many tokens it takes.
    fn term(&self, at: usize) -> (Term, usize) {
        if let Some(read) = self.scenario(at) {
            return read;
        }
        if let Some((digits, taken)) = self.level(at) {
            return (Term::NoSuchLevel(digits.value), taken);
        }
        if let Some(read) = self.number(at) {
            return read;
        }
        match longest(PHRASES, &self.words[at..]) {
            Some((Meaning::Times(times), taken)) => (factor(times, Qualifier::About), taken),
            Some((meaning, taken)) => (Term::Word(meaning), taken),
            None => (Term::Unknown(self.words[at].to_owned()), 1),
        }
    }

    /// A scenario by its name, by what its levels share, or by the words before its bracket where
    /// no other begins so; the longest of them.
    fn scenario(&self, at: usize) -> Option<(Term, usize)> {
        let begins = |name: &[String]| {
            !name.is_empty()
                && name.len() <= self.words.len() - at
                && name.iter().zip(&self.words[at..]).all(|(part, word)| part == word)
        };
        let scenarios = &self.known.scenarios;
        let mut found: Vec<(Term, usize)> = Vec::new();
        let mut short: Vec<(Term, usize)> = Vec::new();
        for (place, scenario) in scenarios.iter().enumerate() {
            let term = Term::Place(Place::Scenario(place));
            if begins(&scenario.words) {
                found.push((term, scenario.words.len()));
            } else if let Some(name) = scenario.family.as_ref().filter(|family| begins(family)) {
                found.push((self.family(place), name.len()));
            } else {
                let end = scenario.words.iter().position(|word| word == "(").unwrap_or(0);
                if 1 < end && begins(&scenario.words[..end]) {
                    short.push((term, end));
                }
            }
        }
        if let [_] = short.as_slice() {
            found.append(&mut short);
        }
        // The first of the longest.
        found.into_iter().rev().max_by_key(|(_, taken)| *taken)
    }

    fn family(&self, place: usize) -> Term {
        match self.known.levels_beside(place).as_slice() {
            [] | [_] => Term::Place(Place::Scenario(place)),
            [first, ..] => Term::Family(*first),
        }
    }

    /// `c=4`, `concurrency 4`, `concurrency of 4`, `4 users`.
    fn level(&self, at: usize) -> Option<(Digits, usize)> {
        const BEFORE: &[(&str, ())] = &[
            ("c =", ()),
            ("concurrency", ()),
            ("concurrency =", ()),
            ("concurrency of", ()),
            ("concurrency level", ()),
            ("concurrency level of", ()),
        ];
        if let Some(((), taken)) = longest(BEFORE, &self.words[at..])
            && let Some(Token::Number(digits)) = self.tokens.get(at + taken)
            && longest(UNITS, &self.words[at + taken + 1..]).is_none()
        {
            return Some((*digits, taken + 1));
        }
        if let Token::Number(digits) = &self.tokens[at]
            && let Some(((UnitWord::Users, _), taken)) = longest(UNITS, &self.words[at + 1..])
        {
            return Some((*digits, taken + 1));
        }
        let one = Digits { value: 1.0, step: 1.0, coarse_step: 1.0 };
        self.words[at..].starts_with(&["single", "user"]).then_some((one, 2))
    }

    /// A number with the word before it and the unit after it.
    fn number(&self, at: usize) -> Option<(Term, usize)> {
        let (qualifier, before) = match longest(QUALIFIERS, &self.words[at..]) {
            Some((qualifier, taken)) => (Some(qualifier), taken),
            None => (None, 0),
        };
        let from = at + before;
        if let Some(qualifier) = qualifier
            && let Some((Meaning::Times(times), taken)) = longest(PHRASES, self.words.get(from..)?)
        {
            return Some((factor(times, qualifier), before + taken));
        }
        let Some(Token::Number(digits)) = self.tokens.get(from) else { return None };
        let mut number = Number { qualifier, ..Number::plain(*digits) };
        let mut taken = before + 1;
        if self.words.get(at + taken) == Some(&"k") {
            let Digits { value, step, .. } = *digits;
            let step = step * 1e3;
            number.digits = Digits { value: value * 1e3, step, coarse_step: step };
            taken += 1;
        }
        if let Some(((unit, metric), more)) = longest(UNITS, &self.words[at + taken..]) {
            number.unit = Some(unit);
            number.metric = metric;
            taken += more;
        }
        Some((Term::Number(number), taken))
    }
}

fn factor(times: f64, qualifier: Qualifier) -> Term {
    let digits = Digits { value: times, step: 0.1, coarse_step: 0.1 };
    let unit = Some(UnitWord::Times);
    Term::Number(Number { qualifier: Some(qualifier), unit, ..Number::plain(digits) })
}

/// In `1 / 2 / 3 ms` the unit is of all three.
fn carry_units_back(terms: &mut [Term]) {
    let mut unit_behind = None;
    for term in terms.iter_mut().rev() {
        match term {
            Term::Number(number) => {
                if number.unit.is_none() {
                    number.unit = unit_behind;
                }
                unit_behind = number.unit.filter(|_| number.metric.is_none());
            }
            Term::Word(Meaning::Filler | Meaning::And | Meaning::To) => {}
            Term::Word(_)
            | Term::Place(_)
            | Term::Level(_)
            | Term::Family(_)
            | Term::NoSuchLevel(_)
            | Term::Unknown(_)
            | Term::Misread(_) => unit_behind = None,
        }
    }
}

/// A number says how far two others are apart where it is a factor, stands behind `by` or before
/// `higher`, or is a percentage behind `rises` or before `above`.
fn mark_sizes(terms: &mut [Term]) {
    for at in 0..terms.len() {
        let word = |place: Option<usize>| match place.and_then(|place| terms.get(place)) {
            Some(Term::Word(meaning)) => Some(*meaning),
            _ => None,
        };
        let (before, behind) = (word(at.checked_sub(1)), word(Some(at + 1)));
        let Term::Number(number) = &mut terms[at] else { continue };
        number.is_size = number.unit == Some(UnitWord::Times)
            || before == Some(Meaning::By)
            || matches!(behind, Some(Meaning::Compare(_)))
            || number.is_relative()
                && (matches!(before, Some(Meaning::Trend(_)))
                    || matches!(behind, Some(Meaning::Exceed(_))));
    }
}

/// `ITL (…)` and `… (ITL)`: what stands beside the bracket must be the same metric.
fn mark_misread_names(terms: &mut Vec<Term>) {
    let mut misread = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        let Term::Word(Meaning::Metric(metric)) = term else { continue };
        if !SHORT_NAMES.contains(metric) {
            continue;
        }
        let is_other = |term: &Term| match term {
            Term::Unknown(_) => true,
            Term::Word(Meaning::Metric(other)) => other != metric,
            Term::Word(_)
            | Term::Number(_)
            | Term::Place(_)
            | Term::Level(_)
            | Term::Family(_)
            | Term::NoSuchLevel(_)
            | Term::Misread(_) => false,
        };
        let opened = |place: usize| terms.get(place) == Some(&Term::Word(Meaning::Open));
        let closed = |place: usize| terms.get(place) == Some(&Term::Word(Meaning::Close));
        let inside = || terms[at + 2..].iter().take_while(|t| **t != Term::Word(Meaning::Close));
        let expanded = opened(at + 1)
            && inside().any(is_other)
            && !inside().any(|term| matches!(term, Term::Number(_)));
        let abbreviated = 1 < at && opened(at - 1) && closed(at + 1) && is_other(&terms[at - 2]);
        if expanded || abbreviated {
            misread.push(Term::Misread((*metric).to_owned()));
        }
    }
    terms.extend(misread);
}
