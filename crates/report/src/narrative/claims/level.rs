//! `High`, `low`: against the other scenarios of the page, because nothing else is known.

use inferometer_analysis::Better;

use super::Reason;
use super::clause::{Clause, metric, optional, or};
use super::comparing::strength;
use super::findings::Findings;
use super::known::{Place, Subject};
use super::reading::Term;
use super::vocabulary::{Level, Meaning, Strength};

/// With fewer scenarios nothing is high or low.
const SCENARIOS_MIN: usize = 4;

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    for (at, term) in clause.terms.iter().enumerate() {
        let Term::Word(Meaning::Level(level)) = term else { continue };
        let Some(metric) = metric_of(clause, at) else {
            findings.unchecked("high or low of nothing named");
            continue;
        };
        let very = at
            .checked_sub(1)
            .is_some_and(|before| strength(&clause.terms[before..at]) == Some(Strength::Much));
        let statistics =
            if metric == "concurrency" { vec![None] } else { optional(clause.statistics()) };
        for statistic in statistics {
            for place in or(clause.places(), Some(clause.defaults.place)) {
                let subject = Subject { metric, statistic, place };
                check_one(clause, (*level, very), subject, findings);
            }
        }
    }
}

/// `High TTFT`: the metric behind it; `TTFT is high`: the one before it.
fn metric_of(clause: &Clause<'_, '_>, at: usize) -> Option<&'static str> {
    let behind = clause.terms[at + 1..]
        .iter()
        .find(|term| !matches!(term, Term::Word(Meaning::Statistic(_))))
        .and_then(metric);
    let before = clause.terms[..at].iter().rev().find_map(metric);
    behind.or(before).or(clause.defaults.metric)
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
