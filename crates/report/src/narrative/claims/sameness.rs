//! `Nearly equal`, `identical`, `stable`.

use super::Reason;
use super::binding::check_numbers;
use super::clause::Clause;
use super::comparing::strength;
use super::findings::Findings;
use super::known::{Place, Subject};
use super::reading::Term;
use super::vocabulary::{CLOSE, EXACT, Meaning, SIMILAR, Strength};

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    check_numbers(clause, findings);
    // The strictest word counts.
    let strength = strength(clause.terms);
    if strength == Some(Strength::Slightly) {
        findings.unchecked("slightly alike");
    }
    let very = strength == Some(Strength::Much);
    let widest = if very { CLOSE } else { SIMILAR };
    let strictest = clause.terms.iter().filter_map(tolerance).fold(widest, f64::min);
    let subjects = clause.subjects();
    if subjects.is_empty() {
        return findings.unchecked("a likeness of nothing named");
    }
    let mut groups: Vec<Vec<Subject>> = Vec::new();
    let along = clause.has(Meaning::AlongConcurrency);
    if along {
        let Some(levels) = clause.levels_at_hand().filter(|_| clause.places().is_empty()) else {
            return findings.unchecked("a likeness along no levels");
        };
        groups.extend(along_concurrency(&levels, &subjects));
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
        for group in readings(clause, group) {
            check_group(clause, &group, strictest, findings);
        }
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
    let printed_alike = facts.iter().all(|fact| known[*fact].printed == known[facts[0]].printed);
    let values = facts.iter().map(|fact| known[*fact].value);
    let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let names = || group.iter().map(|s| clause.words(*s)).collect::<Vec<_>>().join(", ");
    if !same_kind {
        findings.fails(Reason::WrongUnit(names()));
    } else if if tolerance == EXACT { printed_alike } else { most <= least * tolerance } {
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

/// Where no statistic is named, the means must be alike, and the medians too.
fn readings(clause: &Clause<'_, '_>, group: Vec<Subject>) -> Vec<Vec<Subject>> {
    let both: Vec<Vec<Subject>> = group.iter().map(|one| clause.known.readings(*one)).collect();
    if both.iter().any(|readings| readings.len() != 2) {
        return vec![group];
    }
    [0, 1].map(|which| both.iter().map(|readings| readings[which]).collect()).to_vec()
}

fn along_concurrency(levels: &[usize], subjects: &[Subject]) -> Vec<Vec<Subject>> {
    let at =
        |subject: &Subject, level: &usize| Subject { place: Place::Scenario(*level), ..*subject };
    subjects.iter().map(|one| levels.iter().map(|level| at(one, level)).collect()).collect()
}

fn tolerance(term: &Term) -> Option<f64> {
    if let Term::Word(Meaning::Same(tolerance)) = term { Some(*tolerance) } else { None }
}
