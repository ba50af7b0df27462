//! `The gap between A and B is N`, or is small, or large.

use super::Reason;
use super::binding::{check_numbers, words};
use super::clause::{Clause, or};
use super::comparing::strength;
use super::findings::Findings;
use super::known::Subject;
use super::number::Number;
use super::reading::Term;
use super::vocabulary::{CLOSE, Level, Meaning, SIMILAR, Strength, UnitWord};
use crate::narrative::FactUnit;

/// A gap is large where the greater is this many times the less.
const LARGE: f64 = 1.5;
const VERY_LARGE: f64 = 2.0;

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    let pairs = pairs(clause);
    if pairs.is_empty() {
        return findings.unchecked("a gap between nothing named");
    }
    let levels: Vec<Level> = clause.terms.iter().filter_map(level).collect();
    let numbers = clause.numbers();
    let size = match numbers.as_slice() {
        [] if levels.is_empty() => return findings.unchecked("a gap of no size"),
        [] => None,
        [size] => Some(*size),
        // Two numbers are the ends of the gap.
        _ => {
            check_numbers(clause, findings);
            if levels.is_empty() || numbers.iter().any(Number::is_relative) {
                findings.unchecked("a gap of no size");
            }
            None
        }
    };
    for (a, b) in pairs {
        let (Some(left), Some(right)) = (clause.value(a, findings), clause.value(b, findings))
        else {
            continue;
        };
        let (one, other) = (&clause.known.facts[left], &clause.known.facts[right]);
        if one.unit != other.unit {
            findings.fails(Reason::WrongUnit(clause.words(b)));
            continue;
        }
        let difference = (one.value - other.value).abs();
        let least = one.value.min(other.value);
        let is_size = size.is_none_or(|size| match size.unit {
            Some(UnitWord::Percent) if one.unit == FactUnit::Share => false,
            Some(UnitWord::Percent) => size.says(difference / least * 100.0),
            Some(UnitWord::Times) => size.says((least + difference) / least),
            _ => size.in_its_unit(difference, one.unit).is_some_and(|value| size.says(value)),
        });
        let ratio = (least + difference) / least;
        let fits = levels.iter().all(|level| fits(*level, strength(clause.terms), ratio));
        match (is_size, fits) {
            (true, true) => findings.holds([left, right]),
            (false, _) => findings.fails(Reason::FalseComparison(format!(
                "the gap between {} and {} is not {}",
                clause.words(a),
                clause.words(b),
                size.as_ref().map(words).unwrap_or_default()
            ))),
            (true, false) => findings.fails(Reason::FalseLevel(format!(
                "the gap between {} and {}",
                clause.words(a),
                clause.words(b)
            ))),
        }
    }
}

fn fits(level: Level, strength: Option<Strength>, ratio: f64) -> bool {
    let very = strength == Some(Strength::Much);
    match level {
        Level::High => (if very { VERY_LARGE } else { LARGE }) <= ratio,
        Level::Low => ratio <= if very { CLOSE } else { SIMILAR },
        Level::Middle => SIMILAR < ratio && ratio < LARGE,
        Level::Good | Level::Bad => false,
    }
}

/// The two ends: of two statistics, else of two places, else of two metrics, for each of the rest.
fn pairs(clause: &Clause<'_, '_>) -> Vec<(Subject, Subject)> {
    let metrics = or(clause.metrics(), clause.defaults.metric);
    let statistics = clause.statistics_asked();
    let places = or(clause.places(), Some(clause.defaults.place));
    let subject = |metric, statistic, place| Subject { metric, statistic, place };
    match (statistics.as_slice(), places.as_slice(), metrics.as_slice()) {
        (&[a, b], places, metrics) => metrics
            .iter()
            .flat_map(|m| places.iter().map(move |p| (subject(m, a, *p), subject(m, b, *p))))
            .collect(),
        (&[statistic], &[a, b], metrics) => {
            metrics.iter().map(|m| (subject(m, statistic, a), subject(m, statistic, b))).collect()
        }
        (&[statistic], &[place], &[a, b]) => {
            vec![(subject(a, statistic, place), subject(b, statistic, place))]
        }
        _ => Vec::new(),
    }
}

fn level(term: &Term) -> Option<Level> {
    if let Term::Word(Meaning::Level(level)) = term { Some(*level) } else { None }
}
