//! Whether a sentence says only what the facts say.
//!
//! A sentence is read by a closed vocabulary: a word that is not in it may carry a claim that
//! is not checked, and spoils the sentence. What can be read is bound to facts by stated rules
//! (docs/narrative.md) and then recomputed. Precision comes before recall: a true sentence that is
//! dropped is a pity, a false one that is printed is a lie.

mod reading;
mod relations;
mod vocabulary;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use inferometer_analysis::metric;

use self::reading::{Known, Location, Number, Subject, Term, terms};
use self::vocabulary::{Meaning, PHRASES, Qualifier, Relation};
use super::Facts;
use crate::document::distinct;
use crate::fmt::Join;

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
            Self::FalseEquality => "a similarity that does not hold",
            Self::FalseLevel => "high or low for a value that is not",
            Self::UnknownExpansion => "a short name explained wrongly",
            Self::UncheckedClause => "words that the data does not support",
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
    /// Words and relations that are not checked.
    unchecked: Vec<String>,
    /// What was not measured.
    missing: Vec<String>,
    /// How many claims were tied to facts, or could not be.
    claims: u32,
}

impl Findings {
    /// What is false wins over what is unknown, and that over what was not understood.
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
    let is_meant = |meaning: &Meaning| matches!(meaning, Meaning::Metric(name) | Meaning::SweetSpot(name) if *name == quantity);
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

/// What a statement takes over where it names nothing itself.
#[derive(Clone, Copy, Debug)]
struct Defaults {
    metric: Option<&'static str>,
    /// Goes with the metric.
    statistic: Option<&'static str>,
    place: Location,
    /// Which of several would be taken over is not clear.
    several_subjects: bool,
    several_places: bool,
}

#[derive(Clone, Copy, Debug)]
struct Clause<'c> {
    terms: &'c [Term],
    defaults: Defaults,
    known: &'c Known<'c>,
    findings: &'c RefCell<Findings>,
}

impl Clause<'_> {
    fn check(&self) {
        self.note_strange_terms();
        self.note_what_is_lost();
        let claims_before = self.findings.borrow().claims;
        let mut relations: Vec<Relation> = self.terms.iter().filter_map(Term::relation).collect();
        relations.sort();
        relations.dedup();
        // `rises to twice …` and `doubles` say by how much.
        let compares = |term: &Term| {
            matches!(term, Term::Word(Meaning::Than | Meaning::Exceed(_) | Meaning::Compare(_)))
        };
        if relations.contains(&Relation::Trend) && !self.terms.iter().any(compares) {
            relations.retain(|relation| *relation != Relation::Comparison);
        }
        if let Some(word) = self.unread(relations.first().copied()) {
            self.unchecked(word);
        }
        if relations.is_empty() {
            self.check_numbers();
        }
        // What belongs to which of several is not clear; they are read only to say what is wrong.
        if 1 < relations.len() {
            self.unchecked("two relations in one statement");
        }
        for relation in &relations {
            match relation {
                Relation::Gap => self.check_gap(),
                Relation::Comparison => self.check_comparison(),
                Relation::Trend => self.check_trend(),
                Relation::Extreme => self.check_extreme(),
                Relation::Sameness => self.check_sameness(),
            }
        }
        if !relations.contains(&Relation::Gap) {
            self.check_levels();
        }
        self.check_sweet_spot();
        let names_something = !self.metrics().is_empty() || !self.statistics().is_empty();
        if names_something && self.findings.borrow().claims == claims_before {
            self.unchecked("a statement without a number");
        }
    }

    /// What the next statement may leave out.
    fn defaults_after(&self) -> Defaults {
        let (metrics, statistics, places) = (self.metrics(), self.statistics(), self.locations());
        let last = &self.defaults;
        let carried = last.statistic.filter(|_| metrics.is_empty());
        Defaults {
            metric: metrics.last().copied().or(last.metric),
            statistic: statistics.last().copied().or(carried),
            place: places.last().copied().unwrap_or(last.place),
            several_subjects: 1 < metrics.len() || 1 < statistics.len(),
            several_places: 1 < places.len(),
        }
    }

    fn note_strange_terms(&self) {
        // Advice stands on the sweet spot or on a best value, which are checked.
        let is_reason =
            |term: &Term| matches!(term, Term::Word(Meaning::SweetSpot(_) | Meaning::Extreme(_)));
        let is_advice = |term: &Term| *term == Term::Word(Meaning::Advice);
        for term in self.terms {
            if let Term::Unknown(word) = term {
                self.unchecked(word);
            } else if let Term::NoSuchLevel(level) = term {
                self.fails(ReasonKind::UnknownNumber, format!("concurrency {level}"));
            } else if let Term::Misread(name) = term {
                self.fails(ReasonKind::UnknownExpansion, name.clone());
            } else if is_advice(term) && !self.terms.iter().any(is_reason) {
                self.unchecked("advice without a reason");
            }
        }
    }

    /// What a statement takes over must be one thing, and said of it without doubt.
    fn note_what_is_lost(&self) {
        let (metrics, statistics, places) = (self.metrics(), self.statistics(), self.locations());
        let names_no_subject = metrics.is_empty() && statistics.is_empty();
        let along_concurrency = self.has(Meaning::AlongConcurrency);
        if self.defaults.several_subjects && names_no_subject
            || self.defaults.several_places && places.is_empty() && !along_concurrency
        {
            self.unchecked("it does not name which of several it continues");
        }
        // After `TTFT p99 is …` a bare `TPOT is …` may be p99 or not.
        let is_tail = !matches!(self.defaults.statistic, None | Some("mean" | "p50"));
        let is_open = |metric: &&str| self.known.is_distribution(metric);
        if is_tail && statistics.is_empty() && metrics.iter().any(is_open) {
            self.unchecked("a metric without its statistic");
        }
        let is_trend = |term: &Term| term.relation() == Some(Relation::Trend);
        let along = along_concurrency || self.terms.iter().any(is_trend);
        for family in distinct(self.terms.iter().filter_map(Term::family)) {
            let levels = self.known.levels_beside(family);
            let is_its =
                |place: &Location| matches!(place, Location::Scenario(p) if levels.contains(p));
            if !along && !places.iter().any(is_its) {
                self.unchecked("a scenario without its level");
            }
        }
    }

    /// What stands in the statement and is not read there: a word that no rule of its relation
    /// looks at would say something that is not checked.
    fn unread(&self, relation: Option<Relation>) -> Option<&'static str> {
        let is_sized = matches!(relation, Some(Relation::Comparison | Relation::Trend));
        let is_read = |meaning: Meaning| {
            let readers = meaning.readers();
            readers.is_none_or(|readers| relation.is_some_and(|it| readers.contains(&it)))
        };
        let mut strengths = 0;
        for (at, term) in self.terms.iter().enumerate() {
            let (read, what) = match (term.meaning(), term.number()) {
                (Some(Meaning::Strength(_)), _) => {
                    strengths += 1;
                    (self.is_strengthened(at), "an intensifier without a comparison")
                }
                (Some(Meaning::By), _) => {
                    let next = self.terms.get(at + 1).and_then(Term::number);
                    let is_size = next.is_some_and(|number| number.is_size);
                    (is_sized && is_size, "a size without a comparison")
                }
                (Some(Meaning::Denial), _) => (false, "a negation"),
                (Some(along @ Meaning::AlongConcurrency), _) => {
                    (is_read(along), "a course along concurrency without a trend")
                }
                (Some(end @ (Meaning::From | Meaning::To | Meaning::Between)), _) => {
                    (is_read(end), "a range outside of a trend or a gap")
                }
                (Some(other), _) => {
                    (is_read(other), "a word that this kind of statement does not use")
                }
                (None, Some(number)) => (
                    !number.is_size || is_sized || relation == Some(Relation::Gap),
                    "a size without a comparison",
                ),
                (None, None) => (true, ""),
            };
            if !read {
                return Some(what);
            }
        }
        (relation.is_some() && 1 < strengths).then_some("two strengths in one statement")
    }

    /// `much` stands before what it makes stronger, `slightly` also behind `rises`.
    fn is_strengthened(&self, at: usize) -> bool {
        use Meaning::{Compare, Exceed, Extreme, Level, Same, Steady, Trend};
        let behind = self.terms[at + 1..].iter().find(|term| **term != Term::Word(Meaning::Filler));
        let before = at.checked_sub(1).and_then(|before| self.terms[before].meaning());
        matches!(before, Some(Trend(_)))
            || matches!(
                behind.and_then(Term::meaning),
                Some(Trend(_) | Compare(_) | Exceed(_) | Level(_) | Same(_) | Steady | Extreme(_))
            )
    }

    fn metrics(&self) -> Vec<&'static str> {
        distinct(self.terms.iter().filter_map(Term::metric))
    }

    fn metrics_or_default(&self) -> Vec<&'static str> {
        or(self.metrics(), self.defaults.metric)
    }

    fn statistics(&self) -> Vec<&'static str> {
        distinct(self.terms.iter().filter_map(Term::statistic))
    }

    /// The statistics that the statement names, else the one that it goes on with.
    fn statistics_asked(&self) -> Vec<Option<&'static str>> {
        self.or_carried(self.statistics())
    }

    fn or_carried(&self, found: Vec<&'static str>) -> Vec<Option<&'static str>> {
        let carried = self.defaults.statistic.filter(|_| self.metrics().is_empty());
        or(found.into_iter().map(Some).collect(), Some(carried))
    }

    fn locations(&self) -> Vec<Location> {
        distinct(self.terms.iter().filter_map(Term::location))
    }

    fn locations_or_default(&self) -> Vec<Location> {
        or(self.locations(), Some(self.defaults.place))
    }

    fn numbers(&self) -> Vec<Number> {
        self.terms.iter().filter_map(Term::number).collect()
    }

    /// The numbers that are no sizes.
    fn values(&self) -> Vec<Number> {
        self.numbers().into_iter().filter(|number| !number.is_size).collect()
    }

    fn has(&self, meaning: Meaning) -> bool {
        self.terms.contains(&Term::Word(meaning))
    }

    /// The levels that a trend runs along: of the scenario that is named or at hand, else of the
    /// only one that has several.
    fn levels_at_hand(&self) -> Option<Vec<usize>> {
        let families = distinct(self.terms.iter().filter_map(Term::family));
        let levels = match (families.as_slice(), self.defaults.place) {
            ([family], _) => self.known.levels_beside(*family),
            ([], Location::Scenario(place)) => self.known.levels_beside(place),
            ([], Location::Page) => self.known.only_family()?,
            _ => return None,
        };
        (1 < levels.len()).then_some(levels)
    }

    /// All that the statement speaks of: each metric with each statistic at each place that it
    /// names.
    fn subjects(&self) -> Vec<Subject> {
        let (metrics, places) = (self.metrics_or_default(), self.locations_or_default());
        subjects(&metrics, &self.statistics_asked(), &places)
    }

    /// The one fact of a subject; what is not there is noted.
    fn value(&self, subject: Subject) -> Option<usize> {
        let found = self.known.value(subject);
        if found.is_none() {
            self.missing(self.describe(subject));
        }
        found
    }

    fn describe(&self, subject: Subject) -> String {
        let place = match subject.place {
            Location::Page => "the whole page",
            Location::Scenario(place) => self.known.scenarios[place].name,
        };
        match subject.statistic {
            Some(statistic) => format!("{} {statistic} of {place}", subject.metric),
            None => format!("{} of {place}", subject.metric),
        }
    }

    fn holds(&self, facts: impl IntoIterator<Item = usize>) {
        let mut findings = self.findings.borrow_mut();
        findings.claims += 1;
        findings.facts.extend(facts);
    }

    fn fails(&self, kind: ReasonKind, detail: String) {
        let mut findings = self.findings.borrow_mut();
        findings.claims += 1;
        findings.reasons.push(kind.with(detail));
    }

    /// Notes a word or a relation that is not checked.
    fn unchecked(&self, what: impl Into<String>) {
        self.findings.borrow_mut().unchecked.push(what.into());
    }

    /// Notes what was not measured.
    fn missing(&self, what: impl Into<String>) {
        self.findings.borrow_mut().missing.push(what.into());
    }

    /// Holds every number of the statement that is no size against the facts.
    ///
    /// The names and the numbers of a statement stand in runs: `mean, median and p99 are 1, 2 and
    /// 3`, or `1 ms mean, 2 ms p99`. A run of names and the run of numbers behind it belong
    /// together, or before it where the statement begins with numbers. One name goes with all
    /// numbers of its run, one number with all its names, and equally many pair up in order.
    /// Anything else is not read.
    fn check_numbers(&self) {
        let numbers = self.values();
        if numbers.is_empty() {
            return;
        }
        let measured = |number: &Number| !number.is_size && number.metric.is_none();
        let metrics = align(self.terms, Term::metric, measured);
        let statistics = align(self.terms, Term::statistic, measured);
        let places = align(self.terms, Term::location, |number| !number.is_size);
        let (Some(metrics), Some(statistics), Some(places)) = (metrics, statistics, places) else {
            let all = numbers.iter().map(Number::describe).join(", ");
            let what = format!("it is not clear what {all} are of");
            return self.fails(ReasonKind::WrongSubject, what);
        };
        let mut named = metrics.into_iter().zip(statistics);
        for (number, places) in numbers.iter().zip(places) {
            let places = or(places, Some(self.defaults.place));
            let (metrics, statistics) = if let Some(metric) = number.metric {
                (vec![metric], vec![None])
            } else {
                let (metrics, statistics) = named.next().unwrap_or_default();
                (or(metrics, self.defaults.metric), self.or_carried(statistics))
            };
            if metrics.is_empty() {
                self.unchecked(format!("{} of nothing named", number.describe()));
            }
            for subject in subjects(&metrics, &statistics, &places) {
                self.check_number(number, subject);
            }
        }
    }

    /// Holds one number against one subject.
    fn check_number(&self, number: &Number, subject: Subject) {
        let known = self.known;
        if !known.has_metric(subject.metric) {
            return self.missing(subject.metric);
        }
        let mut candidates = known.about(subject);
        candidates.extend(self.best_level(subject));
        if candidates.is_empty() {
            return match subject.place {
                Location::Page => {
                    let what = format!("{} without its scenario", number.describe());
                    self.fails(ReasonKind::WrongSubject, what);
                }
                Location::Scenario(_) => self.missing(self.describe(subject)),
            };
        }
        let said = |fact: &usize| {
            let fact = &known.facts[*fact];
            number.says_in(fact.value, fact.unit)
        };
        if candidates.iter().all(|fact| said(fact).is_none()) {
            return self.fails(ReasonKind::WrongUnit, number.describe());
        }
        // A bound must hold for the mean and the median, where either may be meant.
        let is_bound = matches!(number.qualifier, Some(Qualifier::Over | Qualifier::Under));
        let readings = known.readings(subject).into_iter().filter_map(|one| known.value(one));
        if is_bound && readings.into_iter().any(|fact| said(&fact) == Some(false)) {
            self.unchecked(format!("{} without its statistic", number.describe()));
        }
        match candidates.iter().find(|fact| said(fact) == Some(true)) {
            Some(fact) => self.holds([*fact]),
            None if (0..known.facts.len()).any(|fact| said(&fact) == Some(true)) => {
                let what = format!("{} is not {}", number.describe(), self.describe(subject));
                self.fails(ReasonKind::WrongSubject, what);
            }
            None => self.fails(ReasonKind::UnknownNumber, number.describe()),
        }
    }

    /// `Peak throughput` is also what people call the highest output throughput of all levels.
    fn best_level(&self, subject: Subject) -> Option<usize> {
        if subject.metric != "peak_throughput" {
            return None;
        }
        let known = self.known;
        let levels = match subject.place {
            Location::Scenario(place) => known.levels_beside(place),
            Location::Page => known.only_family()?,
        };
        let output = Subject { metric: metric::OUTPUT_THROUGHPUT.name, statistic: None, ..subject };
        let found = levels.iter().filter_map(|level| {
            let level = output.at(*level);
            Some((level.place, known.value(level)?))
        });
        let value = |fact: usize| known.facts[fact].value;
        let (place, best) = found.max_by(|(_, a), (_, b)| value(*a).total_cmp(&value(*b)))?;
        let is_asked = subject.place == Location::Page || subject.place == place;
        (is_asked && 1 < levels.len()).then_some(best)
    }
}

fn subjects(
    metrics: &[&'static str],
    statistics: &[Option<&'static str>],
    places: &[Location],
) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for metric in metrics {
        for statistic in statistics {
            for place in places {
                subjects.push(Subject { metric, statistic: *statistic, place: *place });
            }
        }
    }
    subjects
}

fn or<T>(found: Vec<T>, default: Option<T>) -> Vec<T> {
    if found.is_empty() { default.into_iter().collect() } else { found }
}

/// The names of one kind that belong to each number; `None` where that is not clear.
fn align<K: Copy + PartialEq>(
    terms: &[Term],
    name: impl Fn(&Term) -> Option<K>,
    counts: impl Fn(&Number) -> bool,
) -> Option<Vec<Vec<K>>> {
    // A name, or `None` for a number.
    let mut items: Vec<Option<K>> = terms
        .iter()
        .filter_map(|term| match term.number() {
            Some(number) => counts(&number).then_some(None),
            None => name(term).map(Some),
        })
        .collect();
    let names = distinct(items.iter().copied().flatten());
    if names.len() < 2 {
        let numbers = items.iter().filter(|item| item.is_none()).count();
        return Some(vec![names; numbers]);
    }
    let begins_with_numbers = items[0].is_none();
    if begins_with_numbers {
        items.reverse();
    }
    let mut found = Vec::new();
    let mut rest = items.as_slice();
    while !rest.is_empty() {
        // A name that is left over at the end belongs to nothing.
        let split = rest.iter().position(Option::is_none)?;
        let numbers = rest[split..].iter().take_while(|item| item.is_none()).count();
        let mut names: Vec<K> = rest[..split].iter().copied().flatten().collect();
        names.dedup();
        match names.len() {
            0 => return None,
            1 => found.extend(std::iter::repeat_n(names, numbers)),
            _ if numbers == 1 => found.push(names),
            several if several == numbers => {
                found.extend(names.into_iter().map(|name| vec![name]));
            }
            _ => return None,
        }
        rest = &rest[split + numbers..];
    }
    if begins_with_numbers {
        found.reverse();
    }
    Some(found)
}
