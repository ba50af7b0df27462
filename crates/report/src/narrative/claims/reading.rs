//! A sentence as terms: numbers with their units, locations, and words with a meaning; and the facts
//! that they may mean.

use inferometer_analysis::Unit;

use super::vocabulary::{
    Meaning, NumberUnit, PERCENT, PHRASES, QUALIFIERS, Qualifier, Relation, SHORT_NAMES, UNITS,
    USERS, longest,
};
use crate::document::distinct;
use crate::narrative::facts::family;
use crate::narrative::{Fact, FactUnit, Facts};

/// A word in lower case, a number, or a mark such as `(`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) spelling: String,
    pub(super) digits: Option<Digits>,
}

/// A number as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Digits {
    pub(super) value: f64,
    /// What one step of its last digit is worth.
    pub(super) step: f64,
    /// The same, but zeros at the end of a whole number count as rounding: 10 for `40`.
    pub(super) coarse_step: f64,
}

const DIGITS_MAX: usize = 15;

pub(super) fn tokens(sentence: &str) -> Vec<Token> {
    let characters: Vec<char> = sentence.chars().map(plain).collect();
    let digit = |at: usize| characters.get(at).is_some_and(char::is_ascii_digit);
    let end_of = |from: usize, belongs: &dyn Fn(usize) -> bool| {
        (from..characters.len()).find(|at| !belongs(*at)).unwrap_or(characters.len())
    };
    let in_number = |at: usize| match characters[at] {
        '.' => digit(at + 1),
        // A comma within a number has three digits behind it, and no fourth.
        ',' => (1..=3).all(|more| digit(at + more)) && !digit(at + 4),
        other => other.is_ascii_digit(),
    };
    let in_word = |at: usize| characters[at].is_alphanumeric() || characters[at] == '\'';
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let from = at;
        if digit(at) {
            at = end_of(from, &in_number);
            let digits = Digits::parse(&characters[from..at].iter().collect::<String>());
            // What is no number becomes a mark, which is not known.
            let spelling = digits.map_or_else(|| "#".to_owned(), |digits| digits.value.to_string());
            tokens.push(Token { spelling, digits });
            continue;
        }
        at = if characters[at].is_alphabetic() { end_of(from, &in_word) } else { at + 1 };
        if !is_space(&characters, from) {
            let spelling = characters[from..at].iter().collect::<String>().to_lowercase();
            tokens.push(Token { spelling, digits: None });
        }
    }
    tokens
}

/// One sign for each of the many that look alike.
fn plain(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{2248}' | '\u{223c}' => '~',
        '\u{d7}' => 'x',
        '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
        other => other,
    }
}

/// Marks of print, and hyphens within a word. A hyphen before a digit is a sign or a range, and
/// must not be lost; so must a dot that ends nothing.
fn is_space(characters: &[char], at: usize) -> bool {
    match characters[at] {
        '*' | '_' | '`' | '"' | '\u{201c}' | '\u{201d}' => true,
        '-' => !characters.get(at + 1).is_some_and(char::is_ascii_digit),
        '.' | '!' => characters[at + 1..].iter().all(|c| !c.is_alphanumeric()),
        other => other.is_whitespace(),
    }
}

impl Digits {
    /// Reads `1,082.20`.
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let groups: Vec<&str> = whole.split(',').collect();
        let grouped = groups.len() == 1 || (1..=3).contains(&groups[0].len());
        if !grouped || DIGITS_MAX < text.len() || fraction.contains(['.', ',']) {
            return None;
        }
        let whole = groups.concat();
        let value: f64 = format!("{whole}.{fraction}0").parse().ok()?;
        let step = (0..fraction.len()).fold(1.0, |step, _| step / 10.0);
        let zeros = whole.len() - whole.trim_end_matches('0').len();
        let is_round = fraction.is_empty() && value != 0.0;
        let coarse_step = if is_round { (0..zeros).fold(1.0, |step, _| step * 10.0) } else { step };
        Some(Self { value, step, coarse_step })
    }
}

/// A number of a sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) digits: Digits,
    pub(super) qualifier: Option<Qualifier>,
    pub(super) unit: Option<NumberUnit>,
    /// Where its unit says of what it is: `20 prompts`.
    pub(super) metric: Option<&'static str>,
    /// Says how far two others are apart, and is no value itself: `12 ms higher`, `by 25 %`.
    pub(super) is_size: bool,
}

/// No rounding moves a number by more than this share of what is said.
const ROUNDING_MAX: f64 = 0.05;
/// `about 18` may be this share away, or half a step of its last digit that is no zero.
const ABOUT: f64 = 0.025;
/// `over 12` is at most this many times it: one does not say `over 12` of 40.
const OVER: f64 = 1.25;
/// `nearly 20` is at least this share of it.
const NEARLY: f64 = 0.9;

impl Number {
    fn plain(digits: Digits) -> Self {
        Self { digits, qualifier: None, unit: None, metric: None, is_size: false }
    }

    /// `twice`.
    pub(super) fn factor(times: f64, qualifier: Qualifier) -> Self {
        let digits = Digits { value: times, step: 0.1, coarse_step: 0.1 };
        let unit = Some(NumberUnit::Times);
        Self { qualifier: Some(qualifier), unit, ..Self::plain(digits) }
    }

    pub(super) fn is_factor(&self) -> bool {
        self.unit == Some(NumberUnit::Times)
    }

    pub(super) fn is_relative(&self) -> bool {
        self.is_factor() || self.unit == Some(PERCENT)
    }

    /// What the fact's value is in the number's unit; `None` where the unit is of another kind.
    pub(super) fn in_its_unit(&self, value: f64, unit: FactUnit) -> Option<f64> {
        let said = self.unit.unwrap_or(NumberUnit::Times);
        match (said, unit) {
            (_, FactUnit::Tokens | FactUnit::Number | FactUnit::Metric(Unit::Requests))
                if self.unit.is_none() =>
            {
                Some(value)
            }
            (NumberUnit::Seconds, FactUnit::Metric(Unit::Milliseconds)) => Some(value / 1e3),
            (PERCENT, FactUnit::Metric(Unit::Share)) => Some(value * 100.0),
            (said, unit) => (said == NumberUnit::Fact(unit)).then_some(value),
        }
    }

    /// Whether a fact's value is what it says; `None` where its unit is of another kind.
    pub(super) fn says_in(&self, value: f64, unit: FactUnit) -> Option<bool> {
        self.in_its_unit(value, unit).map(|value| self.says(value))
    }

    /// Whether it says how far two values of a unit are apart: their difference, its share of the
    /// second, or the ratio.
    pub(super) fn says_size(
        &self,
        difference: f64,
        second: f64,
        ratio: f64,
        unit: FactUnit,
    ) -> bool {
        match self.unit {
            // Points or parts of it: it is not known which.
            Some(PERCENT) if unit == FactUnit::Metric(Unit::Share) => false,
            Some(PERCENT) => self.says(difference / second * 100.0),
            Some(NumberUnit::Times) => self.says(ratio),
            _ => self.says_in(difference, unit) == Some(true),
        }
    }

    /// Whether a value in the number's own unit is what it says, within the rounding that its
    /// digits show.
    fn says(&self, value: f64) -> bool {
        let Digits { value: said, step, coarse_step } = self.digits;
        // Nothing is rounded to zero: some errors are not none.
        if said == 0.0 || value == 0.0 {
            return said.max(value) <= 0.0
                && matches!(self.qualifier, None | Some(Qualifier::About));
        }
        // A change of 0.64 % is 0.6 %: the tables print a tenth of a per cent, however small.
        let is_fine = self.is_size && self.unit == Some(PERCENT) && step < 1.0;
        let most = if is_fine { step } else { said * ROUNDING_MAX };
        let half = |step: f64| (step / 2.0).min(most) + said.max(value) * 1e-9;
        let distance = (value - said).abs();
        match self.qualifier {
            None => distance <= half(step),
            Some(Qualifier::About) => distance <= half(coarse_step).max(said * ABOUT),
            Some(Qualifier::Over) => said < value && value <= said * OVER,
            Some(Qualifier::Under) => value < said && said <= value * OVER,
            Some(Qualifier::Nearly) => value < said && said * NEARLY <= value,
        }
    }

    pub(super) fn describe(&self) -> String {
        let unit = match self.unit {
            None => String::new(),
            Some(PERCENT) => " %".to_owned(),
            Some(USERS) => " users".to_owned(),
            Some(NumberUnit::Fact(unit)) => unit.suffix(),
            Some(NumberUnit::Seconds) => " s".to_owned(),
            Some(NumberUnit::Times) => " times".to_owned(),
        };
        format!("{}{unit}", self.digits.value)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Number(Number),
    Location(Location),
    /// A place that was named by its concurrency.
    Level(Location),
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

impl Term {
    pub(super) fn meaning(&self) -> Option<Meaning> {
        if let Self::Word(meaning) = self { Some(*meaning) } else { None }
    }

    pub(super) fn number(&self) -> Option<Number> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn metric(&self) -> Option<&'static str> {
        if let Self::Word(Meaning::Metric(metric)) = self { Some(metric) } else { None }
    }

    pub(super) fn statistic(&self) -> Option<&'static str> {
        if let Self::Word(Meaning::Statistic(statistic)) = self { Some(statistic) } else { None }
    }

    pub(super) fn location(&self) -> Option<Location> {
        if let Self::Location(place) | Self::Level(place) = self { Some(*place) } else { None }
    }

    pub(super) fn family(&self) -> Option<usize> {
        if let Self::Family(family) = self { Some(*family) } else { None }
    }

    pub(super) fn relation(&self) -> Option<Relation> {
        use Meaning::{Compare, Exceed, Extreme, Gap, Multiply, Same, Steady, Than, Trend};
        match self.meaning() {
            Some(Gap) => Some(Relation::Gap),
            Some(Compare(_) | Exceed(_) | Than) => Some(Relation::Comparison),
            Some(Trend(_) | Multiply(_)) => Some(Relation::Trend),
            Some(Extreme(_)) => Some(Relation::Extreme),
            Some(Same(_) | Steady) => Some(Relation::Sameness),
            _ => self.number().filter(Number::is_factor).map(|_| Relation::Comparison),
        }
    }
}

pub(super) fn terms(sentence: &str, scope: Location, known: &Known<'_>) -> Vec<Term> {
    let tokens = tokens(sentence);
    let mut terms = Vec::new();
    let mut rest = tokens.as_slice();
    while !rest.is_empty() {
        let (read, taken) = first_term(rest, known);
        terms.push(read);
        rest = &rest[taken..];
    }
    look_up_levels(&mut terms, scope, known);
    carry_units_back(&mut terms);
    mark_sizes(&mut terms);
    mark_misread_names(&mut terms);
    terms
}

/// What the tokens begin with, and how many of them it takes.
fn first_term(tokens: &[Token], known: &Known<'_>) -> (Term, usize) {
    if let Some(read) = scenario(tokens, known) {
        return read;
    }
    if let Some((level, taken)) = level(tokens) {
        return (Term::NoSuchLevel(level), taken);
    }
    if let Some((number, taken)) = number(tokens) {
        return (Term::Number(number), taken);
    }
    match longest(&PHRASES, tokens) {
        Some((Meaning::Times(times), taken)) => {
            (Term::Number(Number::factor(times, Qualifier::About)), taken)
        }
        Some((meaning, taken)) => (Term::Word(meaning), taken),
        None => (Term::Unknown(tokens[0].spelling.clone()), 1),
    }
}

/// A scenario by its name, by what its levels share, or by the words before its bracket where no
/// other begins so; the longest of them.
fn scenario(tokens: &[Token], known: &Known<'_>) -> Option<(Term, usize)> {
    let begins = |name: &[String]| {
        let words = tokens.iter().take(name.len()).map(|token| &token.spelling);
        !name.is_empty() && words.eq(name)
    };
    let mut found: Vec<(Term, usize)> = Vec::new();
    let mut short: Vec<(Term, usize)> = Vec::new();
    for (place, scenario) in known.scenarios.iter().enumerate() {
        let term = Term::Location(Location::Scenario(place));
        let end = scenario.words.iter().position(|word| word == "(").unwrap_or(0);
        if begins(&scenario.words) {
            found.push((term, scenario.words.len()));
        } else if let Some(name) = scenario.family.as_ref().filter(|family| begins(family)) {
            let term = match known.levels_beside(place).as_slice() {
                [] | [_] => term,
                [first, ..] => Term::Family(*first),
            };
            found.push((term, name.len()));
        } else if 1 < end && begins(&scenario.words[..end]) {
            short.push((term, end));
        }
    }
    if let [_] = short.as_slice() {
        found.append(&mut short);
    }
    // The first of the longest.
    found.into_iter().rev().max_by_key(|(_, taken)| *taken)
}

/// `c=4`, `concurrency 4`, `concurrency of 4`, `4 users`.
fn level(tokens: &[Token]) -> Option<(f64, usize)> {
    const BEFORE: &[((), &str)] = &[(
        (),
        "c = | concurrency | concurrency = | concurrency of | concurrency level | \
         concurrency level of",
    )];
    let digits_at = |at: usize| tokens.get(at).and_then(|token| token.digits);
    if let Some(((), taken)) = longest(BEFORE, tokens)
        && let Some(digits) = digits_at(taken)
        && longest(&UNITS, &tokens[taken + 1..]).is_none()
    {
        return Some((digits.value, taken + 1));
    }
    if let Some(digits) = digits_at(0)
        && let Some(((USERS, _), taken)) = longest(&UNITS, &tokens[1..])
    {
        return Some((digits.value, taken + 1));
    }
    longest(&[(1.0, "single user")], tokens)
}

/// A number with the word before it and the unit after it.
fn number(tokens: &[Token]) -> Option<(Number, usize)> {
    let qualifier = longest(QUALIFIERS, tokens);
    let mut taken = qualifier.map_or(0, |(_, taken)| taken);
    if let Some((qualifier, _)) = qualifier
        && let Some((Meaning::Times(times), more)) = longest(&PHRASES, &tokens[taken..])
    {
        return Some((Number::factor(times, qualifier), taken + more));
    }
    let mut number = Number::plain(tokens.get(taken)?.digits?);
    number.qualifier = qualifier.map(|(qualifier, _)| qualifier);
    taken += 1;
    if tokens.get(taken).is_some_and(|token| token.spelling == "k") {
        let Digits { value, step, .. } = number.digits;
        let step = step * 1e3;
        number.digits = Digits { value: value * 1e3, step, coarse_step: step };
        taken += 1;
    }
    if let Some(((unit, metric), more)) = longest(&UNITS, &tokens[taken..]) {
        (number.unit, number.metric) = (Some(unit), metric);
        taken += more;
    }
    Some((number, taken))
}

/// Gives each level of the sentence, such as `c=4`, its place, or says that it has none, or not one.
fn look_up_levels(terms: &mut [Term], scope: Location, known: &Known<'_>) {
    let named = distinct(terms.iter().filter_map(Term::family));
    for at in 0..terms.len() {
        let Term::NoSuchLevel(value) = terms[at] else { continue };
        let is_at =
            |place: &usize| known.scenarios[*place].concurrency.map(f64::from) == Some(value);
        let mut everywhere = (0..known.scenarios.len()).filter(is_at);
        let (first, second) = (everywhere.next(), everywhere.next());
        let unclear = || Term::Unknown(format!("c={value} of which scenario"));
        let elsewhere = || if first.is_some() { unclear() } else { Term::NoSuchLevel(value) };
        let among = |places: Vec<usize>| match places.into_iter().find(is_at) {
            Some(place) => Term::Level(Location::Scenario(place)),
            None => Term::NoSuchLevel(value),
        };
        let before = places_beside(terms[..at].iter().rev(), known);
        let behind = places_beside(terms[at + 1..].iter(), known);
        terms[at] = match (before, behind, named.as_slice(), scope) {
            (Some(before), Some(behind), _, _) if before != behind => unclear(),
            (Some(places), _, _, _) | (None, Some(places), _, _) => among(places),
            (None, None, [family], _) => among(known.levels_beside(*family)),
            (None, None, [_, _, ..], _) => unclear(),
            // The scenario at hand or a level of it.
            (None, None, [], Location::Scenario(place)) if is_at(&place) => Term::Level(scope),
            (None, None, [], Location::Scenario(place)) => {
                let levels = known.levels_beside(place);
                if 1 < levels.len() { among(levels) } else { elsewhere() }
            }
            // That level of the one scenario that has several, else the only scenario that has it.
            (None, None, [], Location::Page) => {
                let own = known.only_family().unwrap_or_default().into_iter().find(is_at);
                match own.or(first.filter(|_| second.is_none())) {
                    Some(place) => Term::Level(Location::Scenario(place)),
                    // The page of a single run has no scenarios.
                    None if known.page_concurrency() == Some(value) => Term::Level(scope),
                    None => elsewhere(),
                }
            }
        };
    }
}

/// The scenario, or the levels of the family, that nothing but grammar parts from the level.
fn places_beside<'t>(
    mut terms: impl Iterator<Item = &'t Term>,
    known: &Known<'_>,
) -> Option<Vec<usize>> {
    match terms.find(|term| !matches!(term, Term::Word(Meaning::Filler | Meaning::Open))) {
        Some(Term::Location(Location::Scenario(place))) => Some(vec![*place]),
        Some(Term::Family(family)) => Some(known.levels_beside(*family)),
        _ => None,
    }
}

/// In `1 / 2 / 3 ms` the unit is of all three.
fn carry_units_back(terms: &mut [Term]) {
    let mut unit_behind = None;
    for term in terms.iter_mut().rev() {
        if let Term::Number(number) = term {
            number.unit = number.unit.or(unit_behind);
            unit_behind = number.unit.filter(|_| number.metric.is_none());
        } else if !matches!(term, Term::Word(Meaning::Filler | Meaning::And | Meaning::To)) {
            unit_behind = None;
        }
    }
}

/// A number says how far two others are apart where it is a factor, stands behind `by` or before
/// `higher`, or is a percentage behind `rises` or before `above`.
fn mark_sizes(terms: &mut [Term]) {
    for at in 0..terms.len() {
        let before = at.checked_sub(1).and_then(|before| terms[before].meaning());
        let behind = terms.get(at + 1).and_then(Term::meaning);
        let Term::Number(number) = &mut terms[at] else { continue };
        number.is_size = number.is_factor()
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
        let Some(metric) = term.metric().filter(|metric| SHORT_NAMES.contains(metric)) else {
            continue;
        };
        let is_other = |term: &Term| match term.metric() {
            Some(other) => other != metric,
            None => matches!(term, Term::Unknown(_)),
        };
        let is = |place: usize, mark| terms.get(place) == Some(&Term::Word(mark));
        let inside = || terms[at + 2..].iter().take_while(|t| **t != Term::Word(Meaning::Close));
        let expanded = is(at + 1, Meaning::Open)
            && inside().any(is_other)
            && !inside().any(|term| matches!(term, Term::Number(_)));
        let abbreviated = 1 < at
            && is(at - 1, Meaning::Open)
            && is(at + 1, Meaning::Close)
            && is_other(&terms[at - 2]);
        if expanded || abbreviated {
            misread.push(Term::Misread(metric.to_owned()));
        }
    }
    terms.extend(misread);
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn number_in(text: &str) -> Option<(f64, f64, f64)> {
        let digits = tokens(text).into_iter().find_map(|token| token.digits)?;
        Some((digits.value, digits.step, digits.coarse_step))
    }

    fn has_mark(text: &str, mark: &str) -> bool {
        tokens(text).iter().any(|token| token.spelling == mark)
    }

    #[test]
    fn numbers_keep_how_they_were_written() {
        assert_eq!(number_in("40ms"), Some((40.0, 1.0, 10.0)));
        assert_eq!(number_in("6,400 tok/s"), Some((6400.0, 1.0, 100.0)));
        assert_eq!(number_in("1.50 s"), Some((1.5, 0.01, 0.01)));
        assert_eq!(number_in("1.2.3"), None);
        assert_eq!(number_in("12345678901234567890"), None);
    }

    #[test]
    fn a_sign_or_a_range_is_not_lost() {
        assert_eq!(tokens("-5")[0].spelling, "-");
        assert!(has_mark("2\u{2013}4", "-"));
        assert!(!has_mark("time-to-first-token", "-"));
    }

    #[test]
    fn lists_of_numbers_come_apart() {
        let count = |text| tokens(text).iter().filter(|token| token.digits.is_some()).count();
        assert_eq!(count("2, 4, 8"), 3);
        assert_eq!(count("18.22,18.28"), 2);
    }

    fn said(value: f64, step: f64, coarse_step: f64, qualifier: Option<Qualifier>) -> Number {
        let digits = Digits { value, step, coarse_step };
        Number { qualifier, ..Number::plain(digits) }
    }

    #[test]
    fn digits_set_the_tolerance() {
        assert!(said(168.0, 1.0, 1.0, None).says(167.97));
        assert!(!said(62.0, 1.0, 1.0, None).says(62.84));
        assert!(said(42.0, 0.1, 0.1, None).says(41.99));
        assert!(!said(42.1, 0.1, 0.1, None).says(41.99));
        assert!(!said(1000.0, 1000.0, 1000.0, None).says(501.0));
        assert!(!said(3.0, 1.0, 1.0, None).says(3.4));
        assert!(!said(0.0, 1.0, 1.0, None).says(0.4));
        assert!(said(0.0, 1.0, 1.0, None).says(0.0));
    }

    #[test]
    fn words_before_a_number_widen_it_or_set_its_side() {
        assert!(said(40.0, 1.0, 10.0, Some(Qualifier::About)).says(41.71));
        assert!(!said(18.0, 1.0, 1.0, Some(Qualifier::About)).says(43.29));
        assert!(!said(2000.0, 1.0, 1000.0, Some(Qualifier::About)).says(1506.74));
        assert!(!said(10.0, 1.0, 10.0, Some(Qualifier::About)).says(12.518));
        assert!(said(12.0, 1.0, 1.0, Some(Qualifier::Over)).says(12.518));
        assert!(!said(13.0, 1.0, 10.0, Some(Qualifier::Over)).says(12.518));
        assert!(!said(2.0, 1.0, 1.0, Some(Qualifier::Over)).says(12.518));
        assert!(said(390.0, 1.0, 10.0, Some(Qualifier::Nearly)).says(387.1));
        assert!(said(120.0, 1.0, 10.0, Some(Qualifier::Under)).says(115.15));
    }

    #[test]
    fn seconds_and_milliseconds_are_of_one_kind() {
        let unit = Some(NumberUnit::Seconds);
        let number = Number { unit, ..said(1.1, 0.1, 0.1, None) };
        let in_seconds = |value, unit| number.in_its_unit(value, FactUnit::Metric(unit));
        assert_eq!(in_seconds(1082.2, Unit::Milliseconds), Some(1.0822));
        assert_eq!(in_seconds(49.26, Unit::TokensPerSecond), None);
    }
}
