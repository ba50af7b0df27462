//! A sentence as terms: numbers with their units, places, and words with a meaning.

use super::known::{Known, Place, spelling};
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
    /// A level that no scenario has.
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
    let reader = Reader { tokens, family: family_named(&words, known), words, scope, known };
    let mut terms = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (read, taken) = reader.term(at);
        terms.extend(read);
        at += taken;
    }
    carry_units_back(&mut terms);
    mark_misread_names(&mut terms);
    terms
}

struct Reader<'r, 'a> {
    tokens: &'r [Token],
    words: Vec<&'r str>,
    scope: Place,
    /// The levels that `c=4` is looked for among first.
    family: Vec<usize>,
    known: &'r Known<'a>,
}

impl Reader<'_, '_> {
    /// What begins here, and how many tokens it takes.
    fn term(&self, at: usize) -> (Option<Term>, usize) {
        if let Some((place, taken)) = self.scenario(at) {
            return (place, taken);
        }
        if let Some((digits, taken)) = self.level(at) {
            return (Some(self.place_of_level(digits)), taken);
        }
        if let Some((term, taken)) = self.number(at) {
            return (Some(term), taken);
        }
        match longest(PHRASES, &self.words[at..]) {
            Some((Meaning::Times(times), taken)) => (Some(factor(times, Qualifier::About)), taken),
            Some((meaning, taken)) => (Some(Term::Word(meaning)), taken),
            None => (Some(Term::Unknown(self.words[at].to_owned())), 1),
        }
    }

    /// A scenario by its name, or by the words before its bracket where no other begins so. The
    /// name of a family says only among which levels to look, and is no term.
    fn scenario(&self, at: usize) -> Option<(Option<Term>, usize)> {
        let begins = |name: &[String]| {
            !name.is_empty()
                && name.len() <= self.words.len() - at
                && name.iter().zip(&self.words[at..]).all(|(part, word)| part == word)
        };
        let scenarios = &self.known.scenarios;
        let named = (0..scenarios.len())
            .filter(|place| begins(&scenarios[*place].words))
            .max_by_key(|place| scenarios[*place].words.len());
        if let Some(place) = named {
            let term = Term::Place(Place::Scenario(place));
            return Some((Some(term), scenarios[place].words.len()));
        }
        if let Some(member) = scenarios.iter().filter_map(|s| s.family.as_ref()).find(|f| begins(f))
        {
            return Some((None, member.len()));
        }
        let short = |place: &usize| {
            let words = &scenarios[*place].words;
            let end = words.iter().position(|word| word == "(").unwrap_or(0);
            1 < end && begins(&words[..end])
        };
        let mut candidates = (0..scenarios.len()).filter(short);
        let place = candidates.next().filter(|_| candidates.next().is_none())?;
        let taken = scenarios[place].words.iter().position(|word| word == "(")?;
        Some((Some(Term::Place(Place::Scenario(place))), taken))
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

    /// The scenario at hand where it has that level, else that level of the scaling scenario, else
    /// the only scenario that has it.
    fn place_of_level(&self, digits: Digits) -> Term {
        let has_level = |place: &usize| {
            self.known.scenarios[*place].concurrency.map(f64::from) == Some(digits.value)
        };
        if let Place::Scenario(place) = self.scope
            && self.family.is_empty()
            && has_level(&place)
        {
            return Term::Level(self.scope);
        }
        let family =
            if self.family.is_empty() { self.known.scaling() } else { self.family.clone() };
        let mut everywhere = (0..self.known.scenarios.len()).filter(has_level);
        let only = everywhere.next().filter(|_| everywhere.next().is_none());
        match family.into_iter().find(has_level).or(only) {
            Some(place) => Term::Level(Place::Scenario(place)),
            // The page of a single run has no scenarios.
            None if self.known.page_concurrency() == Some(digits.value) => Term::Level(Place::Page),
            None => Term::NoSuchLevel(digits.value),
        }
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

/// The levels of the family that the sentence names.
fn family_named(words: &[&str], known: &Known<'_>) -> Vec<usize> {
    let named = |family: &[String]| {
        !family.is_empty()
            && words
                .windows(family.len())
                .any(|window| window.iter().zip(family).all(|(word, part)| word == part))
    };
    (0..known.scenarios.len())
        .find(|place| known.scenarios[*place].family.as_ref().is_some_and(|family| named(family)))
        .map(|place| known.levels_beside(place))
        .unwrap_or_default()
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
            Term::Word(Meaning::Filler | Meaning::To) => {}
            Term::Word(_)
            | Term::Place(_)
            | Term::Level(_)
            | Term::NoSuchLevel(_)
            | Term::Unknown(_)
            | Term::Misread(_) => unit_behind = None,
        }
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
