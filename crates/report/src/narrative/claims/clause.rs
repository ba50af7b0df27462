//! One statement of a sentence: which kind of claim it makes, and what it names.

use super::Reason;
use super::binding;
use super::comparing;
use super::extreme;
use super::findings::Findings;
use super::gap;
use super::grammar::{Relation, relation, unread};
use super::known::{Known, Place, Subject};
use super::level;
use super::number::Number;
use super::reading::Term;
use super::sameness;
use super::trend;
use super::vocabulary::Meaning;

/// What a statement takes over where it names nothing itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) metric: Option<&'static str>,
    /// Goes with the metric.
    pub(super) statistic: Option<&'static str>,
    pub(super) place: Place,
    /// Which of several would be taken over is not clear.
    pub(super) several_subjects: bool,
    pub(super) several_places: bool,
}

impl Defaults {
    pub(super) const fn at(place: Place) -> Self {
        let (several_subjects, several_places) = (false, false);
        Self { metric: None, statistic: None, place, several_subjects, several_places }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clause<'c, 'a> {
    pub(super) terms: &'c [Term],
    pub(super) defaults: Defaults,
    pub(super) known: &'c Known<'a>,
}

impl Clause<'_, '_> {
    pub(super) fn check(&self, findings: &mut Findings) {
        self.note_strange_terms(findings);
        self.note_what_is_lost(findings);
        let claims_before = findings.claims();
        let mut relations: Vec<Relation> = self.terms.iter().filter_map(relation).collect();
        relations.sort_by_key(|relation| *relation as u8);
        relations.dedup();
        // `rises to twice …` and `doubles` say by how much.
        if relations.contains(&Relation::Trend) {
            relations.retain(|relation| *relation != Relation::Comparison || self.compares());
        }
        if let Some(word) = unread(self.terms, relations.first().copied()) {
            findings.unchecked(word);
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
        let (metrics, statistics, places) = (self.metrics(), self.statistics(), self.places());
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

    /// What a statement takes over must be one thing, and said of it without doubt.
    fn note_what_is_lost(&self, findings: &mut Findings) {
        let (metrics, statistics) = (self.metrics(), self.statistics());
        let names_no_subject = metrics.is_empty() && statistics.is_empty();
        if self.defaults.several_subjects && names_no_subject
            || self.defaults.several_places
                && self.places().is_empty()
                && !self.has(Meaning::AlongConcurrency)
        {
            findings.unchecked("which of several it goes on with");
        }
        // After `TTFT p99 is …` a bare `TPOT is …` may be p99 or not.
        let is_tail = !matches!(self.defaults.statistic, None | Some("mean" | "p50"));
        let is_open = |metric: &&str| self.known.is_distribution(metric);
        if is_tail && statistics.is_empty() && metrics.iter().any(is_open) {
            findings.unchecked("a metric without its statistic");
        }
        let families = distinct(self.terms.iter().filter_map(family));
        let along = self.terms.iter().any(|term| relation(term) == Some(Relation::Trend))
            || self.has(Meaning::AlongConcurrency);
        for family in families {
            let levels = self.known.levels_beside(family);
            let is_its = |place: &Place| matches!(place, Place::Scenario(p) if levels.contains(p));
            if !along && !self.places().iter().any(is_its) {
                findings.unchecked("a scenario without its level");
            }
        }
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

    /// How far what is compared is apart; `Err` where that is said twice.
    pub(super) fn size(&self) -> Result<Option<Number>, ()> {
        let sizes: Vec<Number> = self.numbers().into_iter().filter(|n| n.is_size).collect();
        match sizes.as_slice() {
            [] => Ok(None),
            [size] => Ok(Some(*size)),
            _ => Err(()),
        }
    }

    /// The statistics that the statement names, else the one that it goes on with.
    pub(super) fn statistics_asked(&self) -> Vec<Option<&'static str>> {
        self.or_carried(self.statistics())
    }

    pub(super) fn or_carried(&self, found: Vec<&'static str>) -> Vec<Option<&'static str>> {
        if found.is_empty() && self.metrics().is_empty() {
            vec![self.defaults.statistic]
        } else {
            optional(found)
        }
    }

    /// The levels that a trend runs along: of the scenario that is named or at hand, else of the
    /// only one that has several.
    pub(super) fn levels_at_hand(&self) -> Option<Vec<usize>> {
        let levels = match distinct(self.terms.iter().filter_map(family)).as_slice() {
            [family] => self.known.levels_beside(*family),
            [] => match self.defaults.place {
                Place::Scenario(place) => self.known.levels_beside(place),
                Place::Page => self.known.only_family()?,
            },
            _ => return None,
        };
        (1 < levels.len()).then_some(levels)
    }

    pub(super) fn has(&self, meaning: Meaning) -> bool {
        self.terms.contains(&Term::Word(meaning))
    }

    /// All that the statement speaks of: each metric with each statistic at each place that it
    /// names.
    pub(super) fn subjects(&self) -> Vec<Subject> {
        let metrics = or(self.metrics(), self.defaults.metric);
        let statistics = self.statistics_asked();
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
                Term::Word(_)
                | Term::Number(_)
                | Term::Place(_)
                | Term::Level(_)
                | Term::Family(_) => {}
            }
        }
    }

    /// Advice stands on the sweet spot or on a best value, which are checked.
    fn gives_a_reason(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term, Term::Word(Meaning::SweetSpot | Meaning::Extreme(_))))
    }

    /// Each place that the statement names must be the sweet spot of its own levels.
    fn check_sweet_spot(&self, findings: &mut Findings) {
        if !self.has(Meaning::SweetSpot) {
            return;
        }
        if self.places().is_empty() {
            findings.unchecked("a sweet spot at no level");
        }
        for place in self.places() {
            let Place::Scenario(place) = place else {
                findings.missing("a sweet spot");
                continue;
            };
            let spot = |place: usize| {
                let place = Place::Scenario(place);
                self.known.value(Subject { metric: "sweet_spot", statistic: None, place })
            };
            let levels = self.known.levels_beside(place);
            match (spot(place), levels.into_iter().find_map(spot)) {
                (Some(here), _) => findings.holds([here]),
                (None, Some(other)) => findings.fails(Reason::WrongSubject(format!(
                    "the sweet spot is c={}",
                    self.known.facts[other].value
                ))),
                (None, None) => findings.missing("a sweet spot"),
            }
        }
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

fn family(term: &Term) -> Option<usize> {
    if let Term::Family(family) = term { Some(*family) } else { None }
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
