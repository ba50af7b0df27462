//! `High`, `low`: against the other scenarios of the page, because nothing else is known.

use inferometer_analysis::Better;

use super::Reason;
use super::clause::{Clause, metric, or};
use super::comparing::strength;
use super::findings::Findings;
use super::grammar::relation;
use super::known::{Place, Subject};
use super::reading::Term;
use super::vocabulary::{Level, Meaning, Strength};

/// With fewer scenarios nothing is high or low.
const SCENARIOS_MIN: usize = 4;

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    let mut covered: Vec<&'static str> = Vec::new();
    for (at, term) in clause.terms.iter().enumerate() {
        let Term::Word(Meaning::Level(level)) = term else { continue };
        let metrics = metrics_of(clause, at, &covered);
        if metrics.is_empty() {
            findings.unchecked("high or low of nothing named");
        }
        let very = at
            .checked_sub(1)
            .is_some_and(|before| strength(&clause.terms[before..at]) == Some(Strength::Much));
        for metric in &metrics {
            let statistics =
                if *metric == "concurrency" { vec![None] } else { clause.statistics_asked() };
            for statistic in statistics {
                for place in or(clause.places(), Some(clause.defaults.place)) {
                    let subject = Subject { metric, statistic, place };
                    for subject in clause.known.readings(subject) {
                        check_one(clause, (*level, very), subject, findings);
                    }
                }
            }
        }
        covered.extend(metrics);
    }
    let is_left_over = |metric: &&str| !covered.contains(metric);
    if !covered.is_empty()
        && clause.numbers().is_empty()
        && !clause.terms.iter().any(|term| relation(term).is_some())
        && clause.metrics().iter().any(is_left_over)
    {
        findings.unchecked("a metric of which nothing is said");
    }
}

/// `High TTFT and TPOT`: those behind it; `TTFT and TPOT are high`: all before it that are not
/// called high or low already.
fn metrics_of(clause: &Clause<'_, '_>, at: usize, covered: &[&str]) -> Vec<&'static str> {
    let is_listed = |term: &&Term| {
        matches!(
            term,
            Term::Word(Meaning::Metric(_) | Meaning::Statistic(_) | Meaning::And | Meaning::Filler)
        )
    };
    let adjacent = clause.terms[at + 1..]
        .iter()
        .find(|term| !matches!(term, Term::Word(Meaning::Statistic(_))))
        .and_then(metric);
    let found: Vec<&'static str> = if adjacent.is_some() {
        clause.terms[at + 1..].iter().take_while(is_listed).filter_map(metric).collect()
    } else {
        let before = clause.terms[..at].iter().filter_map(metric);
        before.filter(|metric| !covered.contains(metric)).collect()
    };
    or(found, clause.defaults.metric.filter(|_| clause.metrics().is_empty()))
}

fn check_one(
    clause: &Clause<'_, '_>,
    (level, very): (Level, bool),
    subject: Subject,
    findings: &mut Findings,
) {
    let known = clause.known;
    let Some(here) = clause.value(subject, findings) else { return };
    let all: Vec<f64> = (0..known.scenarios.len())
        .filter_map(|place| known.value(Subject { place: Place::Scenario(place), ..subject }))
        .map(|fact| known.facts[fact].value)
        .collect();
    if all.len() < SCENARIOS_MIN {
        return findings.unchecked("high or low without others to compare with");
    }
    let fact = &known.facts[here];
    let higher = all.iter().filter(|value| fact.value < **value).count();
    let lower = all.iter().filter(|value| **value < fact.value).count();
    // A third of the scenarios, or the one at the end for `very`.
    let few = |count: usize| if very { count == 0 } else { count * 3 < all.len() };
    let holds = match (level, fact.better) {
        (Level::High, _) | (Level::Good, Better::Higher) | (Level::Bad, Better::Lower) => {
            few(higher) && 0 < lower
        }
        (Level::Low, _) | (Level::Good, Better::Lower) | (Level::Bad, Better::Higher) => {
            few(lower) && 0 < higher
        }
        (Level::Middle, _) => !few(higher) && !few(lower),
        (Level::Good | Level::Bad, Better::Neither) => false,
    };
    if holds {
        findings.holds([here]);
    } else {
        findings.fails(Reason::FalseLevel(clause.words(subject)));
    }
}
