//! `Rises from A to B`, `falls with concurrency`, `doubles`.

use super::Reason;
use super::binding::{check_number, check_numbers};
use super::clause::{Clause, or};
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
        for statistic in clause.statistics_asked() {
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
    for reading in clause.known.readings(subject(*first)) {
        if !goes_on(clause, claim.sense, reading, &levels) {
            findings.fails(Reason::FalseComparison(format!("{metric} turns on the way")));
        }
    }
}

fn goes_on(
    clause: &Clause<'_, '_>,
    sense: Option<Sense>,
    subject: Subject,
    levels: &[usize],
) -> bool {
    let facts: Option<Vec<usize>> = levels
        .iter()
        .map(|level| clause.known.value(Subject { place: Place::Scenario(*level), ..subject }))
        .collect();
    let (Some(facts), Some(sense)) = (facts, sense) else { return false };
    facts.windows(2).all(|pair| {
        let (a, b) = (&clause.known.facts[pair[0]], &clause.known.facts[pair[1]]);
        match sense.wants_greater(a.better) {
            Some(true) => a.value < b.value,
            Some(false) => b.value < a.value,
            None => false,
        }
    })
}

/// `None` where there is more than one.
fn claim(clause: &Clause<'_, '_>) -> Option<Claim> {
    let size = clause.size().ok()?;
    let mut claim = Claim { sense: None, strength: strength(clause.terms), size };
    for term in clause.terms {
        let (sense, times) = match term {
            Term::Word(Meaning::Trend(sense)) => (*sense, None),
            Term::Word(Meaning::Multiply(times)) if *times < 1.0 => {
                (Sense::Less, Some(1.0 / times))
            }
            Term::Word(Meaning::Multiply(times)) => (Sense::More, Some(*times)),
            Term::Word(_)
            | Term::Number(_)
            | Term::Place(_)
            | Term::Level(_)
            | Term::Family(_)
            | Term::NoSuchLevel(_)
            | Term::Unknown(_)
            | Term::Misread(_) => continue,
        };
        let has_size = claim.size.is_some() && times.is_some();
        if claim.sense.replace(sense).is_some() || has_size {
            return None;
        }
        claim.size = claim.size.or(times.map(times_of));
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
    let along = clause.has(Meaning::AlongConcurrency);
    if along && !clause.has(Meaning::From) {
        check_numbers(clause, findings);
        return clause.levels_at_hand().filter(|_| clause.places().is_empty());
    }
    let at = |word| clause.terms.iter().position(|term| *term == Term::Word(word));
    let (from, to) = (at(Meaning::From)?, at(Meaning::To)?);
    let before = Clause { terms: &clause.terms[..from], ..*clause };
    let says_more =
        !before.places().is_empty() || before.numbers().iter().any(|number| !number.is_size);
    if to < from || says_more {
        return None;
    }
    let first = end(clause, &clause.terms[from..to], subject, findings)?;
    let last = end(clause, &clause.terms[to..], subject, findings)?;
    let between = clause.known.levels_beside(first);
    let place = |level| between.iter().position(|other| *other == level);
    match (place(first), place(last)) {
        (Some(a), Some(b)) if a < b => Some(between[a..=b].to_vec()),
        _ if along => None,
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
        part.numbers().into_iter().filter(|number| !number.is_size).collect();
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
            let mut found = clause.levels_at_hand()?.into_iter().filter(says);
            let Some(place) = found.next() else {
                findings.fails(Reason::UnknownNumber(super::binding::words(number)));
                return None;
            };
            found.next().is_none().then_some(place)
        }
        _ => None,
    }
}
