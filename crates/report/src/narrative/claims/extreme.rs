//! `Highest at c=32`, `the lowest of all scenarios`.

use super::binding::check_numbers;
use super::clause::{Clause, optional};
use super::comparing::{Claim, check_pair};
use super::findings::Findings;
use super::known::{Place, Subject};
use super::reading::Term;
use super::vocabulary::{Meaning, Sense};

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    let senses: Vec<Sense> = clause
        .terms
        .iter()
        .filter_map(|term| match term {
            Term::Word(Meaning::Extreme(sense)) => Some(*sense),
            _ => None,
        })
        .collect();
    let metrics = clause.metrics();
    let (&[sense], false) = (senses.as_slice(), metrics.is_empty()) else {
        return findings.unchecked("two extremes in one statement, or of nothing named");
    };
    let Some((place, domain)) = domain(clause) else {
        return findings.unchecked("an extreme at no one place");
    };
    for metric in metrics {
        for statistic in optional(clause.statistics()) {
            let at = |place| Subject { metric, statistic, place: Place::Scenario(place) };
            let others: Vec<usize> = domain
                .iter()
                .copied()
                .filter(|other| *other != place && clause.known.value(at(*other)).is_some())
                .collect();
            if others.is_empty() {
                findings.missing(format!("{metric} anywhere else"));
            }
            let claim = Claim { sense: Some(sense), ..Claim::default() };
            for other in others {
                check_pair(clause, claim, at(place), at(other), findings);
            }
        }
    }
    let here = Clause {
        defaults: super::clause::Defaults { place: Place::Scenario(place), ..clause.defaults },
        ..*clause
    };
    check_numbers(&here, findings);
}

/// The place that is said to stand out, and among which: a level among the levels of its scenario,
/// a scenario by its name among all.
fn domain(clause: &Clause<'_, '_>) -> Option<(usize, Vec<usize>)> {
    let all: Vec<usize> = (0..clause.known.scenarios.len()).collect();
    let by_level = clause.terms.iter().any(|term| matches!(term, Term::Level(_)));
    match clause.places().as_slice() {
        [Place::Scenario(place)] if by_level => {
            let levels = clause.known.levels_beside(*place);
            Some((*place, if levels.len() < 2 { all } else { levels }))
        }
        [Place::Scenario(place)] => Some((*place, all)),
        [] => match clause.defaults.place {
            Place::Scenario(place) => Some((place, all)),
            Place::Page => None,
        },
        _ => None,
    }
}
