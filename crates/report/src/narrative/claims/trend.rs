//! `Rises from A to B`, `falls with concurrency`, `doubles`.

use super::Reason;
use super::binding::{check_number, check_numbers_but};
use super::clause::{Clause, optional, or};
use super::comparing::{Claim, check_pair, strength};
use super::findings::Findings;
use super::known::{Place, Subject};
use super::number::Number;
use super::reading::Term;
use super::vocabulary::{Meaning, Qualifier, Sense, UnitWord};
use super::words::Digits;

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    let Some(claim) = claim(clause) else {
        return findings.unchecked("two trends in one statement");
    };
    let metrics = or(clause.metrics(), clause.defaults.metric);
    if metrics.is_empty() {
        return findings.unchecked("a trend of nothing named");
    }
    for metric in metrics {
        for statistic in optional(clause.statistics()) {
            check_one(clause, claim, (metric, statistic), findings);
        }
    }
}

fn check_one(
    clause: &Clause<'_, '_>,
    claim: Claim,
    (metric, statistic): (&'static str, Option<&'static str>),
    findings: &mut Findings,
) {
    let subject = |place: usize| Subject { metric, statistic, place: Place::Scenario(place) };
    let Some(levels) = levels(clause, (metric, statistic), findings) else {
        return findings.unchecked("a trend from nowhere to nowhere");
    };
    let (Some(first), Some(last)) = (levels.first(), levels.last()) else { return };
    // From end to end in the size that is said, and never back on the way.
    check_pair(clause, claim, subject(*last), subject(*first), findings);
    let step = Claim { sense: claim.sense, ..Claim::default() };
    if 2 < levels.len() {
        let values: Vec<Option<f64>> = levels
            .iter()
            .map(|level| clause.known.value(subject(*level)))
            .map(|fact| fact.map(|fact| clause.known.facts[fact].value))
            .collect();
        let better = clause.known.value(subject(*first)).map(|f| clause.known.facts[f].better);
        let up = better.zip(step.sense).and_then(|(better, sense)| sense.wants_greater(better));
        let goes_on = values.windows(2).all(|pair| match (pair[0], pair[1], up) {
            (Some(a), Some(b), Some(true)) => a < b,
            (Some(a), Some(b), Some(false)) => b < a,
            _ => false,
        });
        if !goes_on {
            findings.fails(Reason::FalseComparison(format!("{metric} turns on the way")));
        }
    }
}

fn claim(clause: &Clause<'_, '_>) -> Option<Claim> {
    let mut claim = Claim { strength: strength(clause.terms), ..Claim::default() };
    for term in clause.terms {
        let (sense, size) = match term {
            Term::Word(Meaning::Trend(sense)) => (Some(*sense), None),
            Term::Word(Meaning::Multiply(times)) if *times < 1.0 => {
                (Some(Sense::Less), Some(times_of(1.0 / times)))
            }
            Term::Word(Meaning::Multiply(times)) => (Some(Sense::More), Some(times_of(*times))),
            Term::Number(number) if number.is_relative() => (None, Some(*number)),
            Term::Word(_)
            | Term::Number(_)
            | Term::Place(_)
            | Term::Level(_)
            | Term::NoSuchLevel(_)
            | Term::Unknown(_)
            | Term::Misread(_) => continue,
        };
        if sense.is_some() && claim.sense.is_some() || size.is_some() && claim.size.is_some() {
            return None;
        }
        claim.sense = claim.sense.or(sense);
        claim.size = claim.size.or(size);
    }
    Some(claim)
}

fn times_of(times: f64) -> Number {
    let digits = Digits { value: times, step: 0.1, coarse_step: 0.1 };
    let unit = Some(UnitWord::Times);
    Number { qualifier: Some(Qualifier::About), unit, ..Number::plain(digits) }
}

/// The levels that the statement goes through, in its order.
fn levels(
    clause: &Clause<'_, '_>,
    subject: (&'static str, Option<&'static str>),
    findings: &mut Findings,
) -> Option<Vec<usize>> {
    if clause.has(Meaning::AlongConcurrency) && !clause.has(Meaning::From) {
        if !clause.runs_along_levels() {
            return None;
        }
        check_numbers_but(clause, Number::is_relative, findings);
        let here = match clause.defaults.place {
            Place::Page => Vec::new(),
            Place::Scenario(place) => clause.known.levels_beside(place),
        };
        let levels = if 1 < here.len() { here } else { clause.known.scaling() };
        return (1 < levels.len()).then_some(levels);
    }
    let at = |word| clause.terms.iter().position(|term| *term == Term::Word(word));
    let (from, to) = (at(Meaning::From)?, at(Meaning::To)?);
    let before = Clause { terms: &clause.terms[..from], ..*clause };
    let says_more =
        !before.places().is_empty() || before.numbers().iter().any(|number| !number.is_relative());
    if to < from || says_more {
        return None;
    }
    let first = end(clause, &clause.terms[from..to], subject, findings)?;
    let last = end(clause, &clause.terms[to..], subject, findings)?;
    let between = clause.known.levels_beside(first);
    let place = |level| between.iter().position(|other| *other == level);
    match (place(first), place(last)) {
        (Some(a), Some(b)) if a < b => Some(between[a..=b].to_vec()),
        (Some(a), Some(b)) if b < a => Some(between[b..=a].iter().rev().copied().collect()),
        _ => (first != last).then(|| vec![first, last]),
    }
}

/// One end of `from … to …`: the place that it names, or else the one level that has its number.
fn end(
    clause: &Clause<'_, '_>,
    terms: &[Term],
    (metric, statistic): (&'static str, Option<&'static str>),
    findings: &mut Findings,
) -> Option<usize> {
    let part = Clause { terms, ..*clause };
    let measured: Vec<Number> =
        part.numbers().into_iter().filter(|number| !number.is_relative()).collect();
    let subject = |place: usize| Subject { metric, statistic, place: Place::Scenario(place) };
    match (part.places().as_slice(), measured.as_slice()) {
        ([Place::Scenario(place)], numbers) if numbers.len() < 2 => {
            for number in numbers {
                check_number(clause, number, subject(*place), findings);
            }
            Some(*place)
        }
        ([], [number]) => {
            let says = |place: &usize| {
                clause.known.about(subject(*place)).iter().any(|fact| {
                    let fact = &clause.known.facts[*fact];
                    number.in_its_unit(fact.value, fact.unit).is_some_and(|v| number.says(v))
                })
            };
            let mut found = clause.known.scaling().into_iter().filter(says);
            let Some(place) = found.next() else {
                findings.fails(Reason::UnknownNumber(super::binding::words(number)));
                return None;
            };
            found.next().is_none().then_some(place)
        }
        _ => None,
    }
}
