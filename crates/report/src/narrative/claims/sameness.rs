//! `Nearly equal`, `identical`, `stable`.

use super::Reason;
use super::binding::check_numbers;
use super::clause::Clause;
use super::comparing::strength;
use super::findings::Findings;
use super::known::{Place, Subject};
use super::reading::Term;
use super::vocabulary::{CLOSE, Meaning, SIMILAR, Strength};

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    check_numbers(clause, findings);
    // The strictest word counts.
    let very = strength(clause.terms) == Some(Strength::Much);
    let widest = if very { CLOSE } else { SIMILAR };
    let strictest = clause.terms.iter().filter_map(tolerance).fold(widest, f64::min);
    let subjects = clause.subjects();
    if subjects.is_empty() {
        return findings.unchecked("a likeness of nothing named");
    }
    let mut groups: Vec<Vec<Subject>> = Vec::new();
    let along = clause.has(Meaning::AlongConcurrency);
    if along && clause.runs_along_levels() {
        groups.extend(along_concurrency(clause, &subjects));
    } else if along {
        return findings.unchecked("a likeness along no levels");
    } else if clause.has(Meaning::Steady) {
        // `TTFT and TPOT are stable` is said of each.
        groups.extend(clause.metrics().iter().map(|metric| spread_of(metric, &subjects)));
    }
    if clause.terms.iter().any(|term| tolerance(term).is_some()) && !along {
        groups.push(subjects);
    }
    if groups.is_empty() {
        return findings.unchecked("a likeness of nothing named");
    }
    for group in groups {
        check_group(clause, &group, strictest, findings);
    }
}

fn check_group(
    clause: &Clause<'_, '_>,
    group: &[Subject],
    tolerance: f64,
    findings: &mut Findings,
) {
    if group.len() < 2 {
        return findings.unchecked("a likeness of one number");
    }
    let mut facts = Vec::new();
    for subject in group {
        let Some(fact) = clause.value(*subject, findings) else { return };
        facts.push(fact);
    }
    let known = &clause.known.facts;
    let same_kind = facts.iter().all(|fact| known[*fact].unit == known[facts[0]].unit);
    let values = facts.iter().map(|fact| known[*fact].value);
    let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let names = || group.iter().map(|s| clause.words(*s)).collect::<Vec<_>>().join(", ");
    if !same_kind {
        findings.fails(Reason::WrongUnit(names()));
    } else if most <= least * tolerance {
        findings.holds(facts);
    } else {
        findings.fails(Reason::FalseEquality(names()));
    }
}

/// What `stable` is said along: the statistics or places that are named, else from the median to
/// p99.
fn spread_of(metric: &str, subjects: &[Subject]) -> Vec<Subject> {
    let own: Vec<Subject> = subjects.iter().copied().filter(|s| s.metric == metric).collect();
    match own.as_slice() {
        [one] if one.statistic.is_none() => {
            ["p50", "p99"].map(|statistic| Subject { statistic: Some(statistic), ..*one }).to_vec()
        }
        _ => own,
    }
}

fn along_concurrency(clause: &Clause<'_, '_>, subjects: &[Subject]) -> Vec<Vec<Subject>> {
    let levels = clause.known.scaling();
    subjects
        .iter()
        .map(|subject| {
            levels.iter().map(|l| Subject { place: Place::Scenario(*l), ..*subject }).collect()
        })
        .collect()
}

fn tolerance(term: &Term) -> Option<f64> {
    if let Term::Word(Meaning::Same(tolerance)) = term { Some(*tolerance) } else { None }
}
