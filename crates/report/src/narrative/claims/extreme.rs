//! `Highest at c=32`, `the lowest of all scenarios`.

use inferometer_analysis::Better;

use super::binding::check_numbers;
use super::clause::{Clause, Defaults};
use super::comparing::{Claim, check_pair, strength};
use super::findings::Findings;
use super::known::{Place, Subject};
use super::reading::Term;
use super::vocabulary::{Meaning, Sense};

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    let mut senses = clause.terms.iter().filter_map(|term| {
        if let Term::Word(Meaning::Extreme(sense)) = term { Some(*sense) } else { None }
    });
    let metrics = clause.metrics();
    let (Some(sense), None, false) = (senses.next(), senses.next(), metrics.is_empty()) else {
        return findings.unchecked("two extremes in one statement, or of nothing named");
    };
    for metric in metrics {
        for statistic in clause.statistics_asked() {
            check_one(clause, sense, (metric, statistic), findings);
        }
    }
}

fn check_one(
    clause: &Clause<'_, '_>,
    sense: Sense,
    (metric, statistic): (&'static str, Option<&'static str>),
    findings: &mut Findings,
) {
    let at = |place| Subject { metric, statistic, place: Place::Scenario(place) };
    let found = domain(clause).or_else(|| unnamed(clause, sense, at));
    let Some((place, domain)) = found else {
        return findings.unchecked("an extreme at no one place");
    };
    let others: Vec<usize> = domain
        .into_iter()
        .filter(|other| *other != place && clause.known.value(at(*other)).is_some())
        .collect();
    if others.is_empty() {
        findings.missing(format!("{metric} anywhere else"));
    }
    if clause.has(Meaning::Advice) && !is_good(clause, sense, at(place)) {
        findings.unchecked("advice for what is not better");
    }
    let claim = Claim { sense: Some(sense), strength: strength(clause.terms), size: None };
    for other in others {
        check_pair(clause, claim, at(place), at(other), findings);
    }
    let defaults = Defaults { place: Place::Scenario(place), ..clause.defaults };
    check_numbers(&Clause { defaults, ..*clause }, findings);
}

fn is_good(clause: &Clause<'_, '_>, sense: Sense, subject: Subject) -> bool {
    let better = clause.known.value(subject).map(|fact| clause.known.facts[fact].better);
    let greater = better.and_then(|better| sense.wants_greater(better));
    matches!(
        (better, greater),
        (Some(Better::Higher), Some(true)) | (Some(Better::Lower), Some(false))
    )
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

/// `The highest output throughput is 387.1 tok/s`: whichever scenario has it, if a number says so.
fn unnamed(
    clause: &Clause<'_, '_>,
    sense: Sense,
    at: impl Fn(usize) -> Subject,
) -> Option<(usize, Vec<usize>)> {
    if clause.numbers().is_empty() || !clause.places().is_empty() {
        return None;
    }
    let known = clause.known;
    let all: Vec<usize> = (0..known.scenarios.len()).collect();
    let facts = all.iter().filter_map(|place| Some((*place, known.value(at(*place))?)));
    let mut best: Option<(usize, usize)> = None;
    for (place, fact) in facts {
        let (new, greater) = (&known.facts[fact], sense.wants_greater(known.facts[fact].better)?);
        let is_better = best.is_none_or(|(_, old)| {
            let old = known.facts[old].value;
            if greater { old < new.value } else { new.value < old }
        });
        if is_better {
            best = Some((place, fact));
        }
    }
    best.map(|(place, _)| (place, all))
}
