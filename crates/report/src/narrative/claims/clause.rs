//! One statement of a sentence: what it names, which kind of claim it makes, which words may stand
//! in it, and which metric, statistic and place each of its numbers belongs to.

use std::cell::RefCell;

use super::known::{Known, Location, Subject};
use super::reading::{Number, Term, distinct};
use super::vocabulary::{Meaning, Qualifier, Relation};
use super::{Findings, ReasonKind};

/// What a statement takes over where it names nothing itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) metric: Option<&'static str>,
    /// Goes with the metric.
    pub(super) statistic: Option<&'static str>,
    pub(super) place: Location,
    /// Which of several would be taken over is not clear.
    pub(super) several_subjects: bool,
    pub(super) several_places: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clause<'c> {
    pub(super) terms: &'c [Term],
    pub(super) defaults: Defaults,
    pub(super) known: &'c Known<'c>,
    pub(super) findings: &'c RefCell<Findings>,
}

impl Clause<'_> {
    pub(super) fn check(&self) {
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
    pub(super) fn defaults_after(&self) -> Defaults {
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
            |term: &Term| matches!(term, Term::Word(Meaning::SweetSpot | Meaning::Extreme(_)));
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
            self.unchecked("which of several it goes on with");
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
    /// looks at would say something that nobody checks.
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
                    (self.is_strengthened(at), "a strength of nothing")
                }
                (Some(Meaning::By), _) => {
                    let next = self.terms.get(at + 1).and_then(Term::number);
                    let is_size = next.is_some_and(|number| number.is_size);
                    (is_sized && is_size, "a size of nothing compared")
                }
                (Some(Meaning::Denial), _) => (false, "a denial"),
                (Some(along @ Meaning::AlongConcurrency), _) => {
                    (is_read(along), "with concurrency, of no trend")
                }
                (Some(end @ (Meaning::From | Meaning::To | Meaning::Between)), _) => {
                    (is_read(end), "a range")
                }
                (Some(other), _) => (is_read(other), "a word that is not read here"),
                (None, Some(number)) => (
                    !number.is_size || is_sized || relation == Some(Relation::Gap),
                    "a size of nothing compared",
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

    pub(super) fn metrics(&self) -> Vec<&'static str> {
        distinct(self.terms.iter().filter_map(Term::metric))
    }

    pub(super) fn metrics_or_default(&self) -> Vec<&'static str> {
        or(self.metrics(), self.defaults.metric)
    }

    pub(super) fn statistics(&self) -> Vec<&'static str> {
        distinct(self.terms.iter().filter_map(Term::statistic))
    }

    /// The statistics that the statement names, else the one that it goes on with.
    pub(super) fn statistics_asked(&self) -> Vec<Option<&'static str>> {
        self.or_carried(self.statistics())
    }

    fn or_carried(&self, found: Vec<&'static str>) -> Vec<Option<&'static str>> {
        let carried = self.defaults.statistic.filter(|_| self.metrics().is_empty());
        or(found.into_iter().map(Some).collect(), Some(carried))
    }

    pub(super) fn locations(&self) -> Vec<Location> {
        distinct(self.terms.iter().filter_map(Term::location))
    }

    pub(super) fn locations_or_default(&self) -> Vec<Location> {
        or(self.locations(), Some(self.defaults.place))
    }

    pub(super) fn numbers(&self) -> Vec<Number> {
        self.terms.iter().filter_map(Term::number).collect()
    }

    /// The numbers that are no sizes.
    pub(super) fn values(&self) -> Vec<Number> {
        self.numbers().into_iter().filter(|number| !number.is_size).collect()
    }

    pub(super) fn has(&self, meaning: Meaning) -> bool {
        self.terms.contains(&Term::Word(meaning))
    }

    /// The levels that a trend runs along: of the scenario that is named or at hand, else of the
    /// only one that has several.
    pub(super) fn levels_at_hand(&self) -> Option<Vec<usize>> {
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
    pub(super) fn subjects(&self) -> Vec<Subject> {
        let (metrics, places) = (self.metrics_or_default(), self.locations_or_default());
        subjects(&metrics, &self.statistics_asked(), &places)
    }

    /// The one fact of a subject; what is not there is noted.
    pub(super) fn value(&self, subject: Subject) -> Option<usize> {
        let found = self.known.value(subject);
        if found.is_none() {
            self.missing(self.describe(subject));
        }
        found
    }

    pub(super) fn describe(&self, subject: Subject) -> String {
        let place = match subject.place {
            Location::Page => "the whole page",
            Location::Scenario(place) => self.known.scenarios[place].name,
        };
        match subject.statistic {
            Some(statistic) => format!("{} {statistic} of {place}", subject.metric),
            None => format!("{} of {place}", subject.metric),
        }
    }

    pub(super) fn holds(&self, facts: impl IntoIterator<Item = usize>) {
        let mut findings = self.findings.borrow_mut();
        findings.claims += 1;
        findings.facts.extend(facts);
    }

    pub(super) fn fails(&self, kind: ReasonKind, detail: String) {
        let mut findings = self.findings.borrow_mut();
        findings.claims += 1;
        findings.reasons.push(kind.with(detail));
    }

    /// Notes a word or a relation that nobody checks.
    pub(super) fn unchecked(&self, what: impl Into<String>) {
        self.findings.borrow_mut().unchecked.push(what.into());
    }

    /// Notes what was not measured.
    pub(super) fn missing(&self, what: impl Into<String>) {
        self.findings.borrow_mut().missing.push(what.into());
    }

    /// Holds every number of the statement that is no size against the facts.
    ///
    /// The names and the numbers of a statement stand in runs: `mean, median and p99 are 1, 2 and
    /// 3`, or `1 ms mean, 2 ms p99`. A run of names and the run of numbers behind it belong
    /// together, or before it where the statement begins with numbers. One name goes with all
    /// numbers of its run, one number with all its names, and equally many pair up in order.
    /// Anything else is not read.
    pub(super) fn check_numbers(&self) {
        let numbers = self.values();
        if numbers.is_empty() {
            return;
        }
        let measured = |number: &Number| !number.is_size && number.metric.is_none();
        let metrics = align(self.terms, Term::metric, measured);
        let statistics = align(self.terms, Term::statistic, measured);
        let places = align(self.terms, Term::location, |number| !number.is_size);
        let (Some(metrics), Some(statistics), Some(places)) = (metrics, statistics, places) else {
            let all = numbers.iter().map(Number::describe).collect::<Vec<_>>().join(", ");
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
    pub(super) fn check_number(&self, number: &Number, subject: Subject) {
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
        let output = Subject { metric: "output_throughput", statistic: None, ..subject };
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

pub(super) fn subjects(
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

pub(super) fn or<T>(found: Vec<T>, default: Option<T>) -> Vec<T> {
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
