//! One statement of a sentence: which kind of claim it makes, and what it names.

use super::Reason;
use super::binding;
use super::comparing;
use super::extreme;
use super::findings::Findings;
use super::gap;
use super::known::{Known, Place, Subject};
use super::level;
use super::number::Number;
use super::reading::Term;
use super::sameness;
use super::trend;
use super::vocabulary::{Meaning, UnitWord};

/// What a statement takes over where it names nothing itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) metric: Option<&'static str>,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clause<'c, 'a> {
    pub(super) terms: &'c [Term],
    pub(super) defaults: Defaults,
    pub(super) known: &'c Known<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Gap,
    Comparison,
    Trend,
    Extreme,
    Sameness,
}

impl Clause<'_, '_> {
    pub(super) fn check(&self, findings: &mut Findings) {
        self.note_strange_terms(findings);
        let claims_before = findings.claims();
        let mut relations: Vec<Relation> = self.terms.iter().filter_map(relation).collect();
        relations.sort_by_key(|relation| *relation as u8);
        relations.dedup();
        // `rises to twice …` and `doubles` say by how much.
        if relations.contains(&Relation::Trend) {
            relations.retain(|relation| *relation != Relation::Comparison || self.compares());
        }
        if relations.is_empty() {
            binding::check_numbers(self, findings);
        }
        // What belongs to which of several is not clear; they are read only to say what is wrong.
        if 1 < relations.len() {
            findings.unchecked("two relations in one statement");
        }
        for relation in &relations {
            match relation {
                Relation::Gap => gap::check(self, findings),
                Relation::Comparison => comparing::check(self, findings),
                Relation::Trend => trend::check(self, findings),
                Relation::Extreme => extreme::check(self, findings),
                Relation::Sameness => sameness::check(self, findings),
            }
        }
        if !relations.contains(&Relation::Gap) {
            level::check(self, findings);
        }
        self.check_sweet_spot(findings);
        let names_something = !self.metrics().is_empty() || !self.statistics().is_empty();
        if names_something && findings.claims() == claims_before {
            findings.unchecked("a statement without a number");
        }
    }

    /// What the next statement may leave out.
    pub(super) fn defaults_after(&self) -> Defaults {
        let place = match self.places().as_slice() {
            [] => self.defaults.place,
            places => places[places.len() - 1],
        };
        Defaults { metric: self.metrics().last().copied().or(self.defaults.metric), place }
    }

    pub(super) fn metrics(&self) -> Vec<&'static str> {
        distinct(self.terms.iter().filter_map(metric))
    }

    pub(super) fn statistics(&self) -> Vec<&'static str> {
        distinct(self.terms.iter().filter_map(statistic))
    }

    pub(super) fn places(&self) -> Vec<Place> {
        distinct(self.terms.iter().filter_map(place))
    }

    pub(super) fn numbers(&self) -> Vec<Number> {
        self.terms.iter().filter_map(number).collect()
    }

    pub(super) fn has(&self, meaning: Meaning) -> bool {
        self.terms.contains(&Term::Word(meaning))
    }

    /// All that the statement speaks of: each metric with each statistic at each place that it
    /// names.
    pub(super) fn subjects(&self) -> Vec<Subject> {
        let metrics = or(self.metrics(), self.defaults.metric);
        let statistics = optional(self.statistics());
        let places = or(self.places(), Some(self.defaults.place));
        let mut subjects = Vec::new();
        for metric in &metrics {
            for statistic in &statistics {
                for place in &places {
                    subjects.push(Subject { metric, statistic: *statistic, place: *place });
                }
            }
        }
        subjects
    }

    /// The one fact of a subject; what is not there is noted.
    pub(super) fn value(&self, subject: Subject, findings: &mut Findings) -> Option<usize> {
        let found = self.known.value(subject);
        if found.is_none() {
            findings.missing(self.words(subject));
        }
        found
    }

    pub(super) fn words(&self, subject: Subject) -> String {
        let place = match subject.place {
            Place::Page => "the whole page",
            Place::Scenario(place) => self.known.scenarios[place].name,
        };
        match subject.statistic {
            Some(statistic) => format!("{} {statistic} of {place}", subject.metric),
            None => format!("{} of {place}", subject.metric),
        }
    }

    /// Whether `with concurrency` can be said: of the page, or where several levels are, and of no
    /// one place.
    pub(super) fn runs_along_levels(&self) -> bool {
        let has_levels = match self.defaults.place {
            Place::Page => true,
            Place::Scenario(place) => 1 < self.known.levels_beside(place).len(),
        };
        has_levels && self.places().is_empty()
    }

    fn compares(&self) -> bool {
        self.terms.iter().any(|term| {
            matches!(term, Term::Word(Meaning::Than | Meaning::Exceed(_) | Meaning::Compare(_)))
        })
    }

    fn note_strange_terms(&self, findings: &mut Findings) {
        for term in self.terms {
            match term {
                Term::Unknown(word) => findings.unchecked(word.as_str()),
                Term::NoSuchLevel(level) => {
                    findings.fails(Reason::UnknownNumber(format!("concurrency {level}")));
                }
                Term::Misread(name) => {
                    findings.fails(Reason::UnknownExpansion(name.clone()));
                }
                Term::Word(Meaning::Advice) if !self.gives_a_reason() => {
                    findings.unchecked("advice without a reason");
                }
                Term::Word(_) | Term::Number(_) | Term::Place(_) | Term::Level(_) => {}
            }
        }
    }

    /// Advice stands on the sweet spot or on a best value, which are checked.
    fn gives_a_reason(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term, Term::Word(Meaning::SweetSpot | Meaning::Extreme(_))))
    }

    fn check_sweet_spot(&self, findings: &mut Findings) {
        if !self.has(Meaning::SweetSpot) {
            return;
        }
        let spot = (0..self.known.facts.len())
            .find(|fact| self.known.facts[*fact].about.quantity.ends_with("sweet_spot"));
        let Some(spot) = spot else { return findings.missing("a sweet spot") };
        let value = self.known.facts[spot].value;
        if self.places().is_empty() {
            findings.unchecked("a sweet spot at no level");
        }
        for place in self.places() {
            let level = match place {
                Place::Page => None,
                Place::Scenario(place) => self.known.scenarios[place].concurrency,
            };
            if level.map(f64::from) == Some(value) {
                findings.holds([spot]);
            } else {
                findings.fails(Reason::WrongSubject(format!("the sweet spot is c={value}")));
            }
        }
    }
}

fn relation(term: &Term) -> Option<Relation> {
    use Meaning::{Compare, Exceed, Extreme, Gap, Multiply, Same, Steady, Than, Trend};
    match term {
        Term::Number(number) => {
            (number.unit == Some(UnitWord::Times)).then_some(Relation::Comparison)
        }
        Term::Word(Gap) => Some(Relation::Gap),
        Term::Word(Compare(_) | Exceed(_) | Than) => Some(Relation::Comparison),
        Term::Word(Trend(_) | Multiply(_)) => Some(Relation::Trend),
        Term::Word(Extreme(_)) => Some(Relation::Extreme),
        Term::Word(Same(_) | Steady) => Some(Relation::Sameness),
        Term::Word(_)
        | Term::Place(_)
        | Term::Level(_)
        | Term::NoSuchLevel(_)
        | Term::Unknown(_)
        | Term::Misread(_) => None,
    }
}

pub(super) fn metric(term: &Term) -> Option<&'static str> {
    if let Term::Word(Meaning::Metric(metric)) = term { Some(metric) } else { None }
}

pub(super) fn statistic(term: &Term) -> Option<&'static str> {
    if let Term::Word(Meaning::Statistic(statistic)) = term { Some(statistic) } else { None }
}

pub(super) fn place(term: &Term) -> Option<Place> {
    if let Term::Place(place) | Term::Level(place) = term { Some(*place) } else { None }
}

pub(super) fn number(term: &Term) -> Option<Number> {
    if let Term::Number(number) = term { Some(*number) } else { None }
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

pub(super) fn or<T>(found: Vec<T>, default: Option<T>) -> Vec<T> {
    if found.is_empty() { default.into_iter().collect() } else { found }
}

/// The statistics to ask for; none named is one way of asking.
pub(super) fn optional(found: Vec<&'static str>) -> Vec<Option<&'static str>> {
    if found.is_empty() { vec![None] } else { found.into_iter().map(Some).collect() }
}
