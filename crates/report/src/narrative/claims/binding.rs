//! Which metric, statistic and place each number of a statement belongs to.
//!
//! The names and the numbers of a statement stand in runs: `mean, median and p99 are 1, 2 and 3`,
//! or `1 ms mean, 2 ms p99`. A run of names and the run of numbers behind it belong together, or
//! before it where the statement begins with numbers. One name goes with all numbers of its run,
//! one number with all its names, and equally many pair up in order. Anything else is not read.

use super::Reason;
use super::clause::{Clause, metric, or, place, statistic};
use super::findings::Findings;
use super::known::{Place, Subject};
use super::number::Number;
use super::reading::Term;
use super::vocabulary::{Qualifier, UnitWord};

/// Holds every number of the statement that is no size against the facts.
pub(super) fn check_numbers(clause: &Clause<'_, '_>, findings: &mut Findings) {
    let numbers: Vec<Number> =
        clause.numbers().into_iter().filter(|number| !number.is_size).collect();
    if numbers.is_empty() {
        return;
    }
    let measured = |number: &Number| !number.is_size && number.metric.is_none();
    let metrics = align(clause.terms, metric, measured);
    let statistics = align(clause.terms, statistic, measured);
    let places = align(clause.terms, place, |number| !number.is_size);
    let (Some(metrics), Some(statistics), Some(places)) = (metrics, statistics, places) else {
        let all = numbers.iter().map(words).collect::<Vec<_>>().join(", ");
        return findings.fails(Reason::WrongSubject(format!("it is not clear what {all} are of")));
    };
    let mut measured_so_far = 0;
    for (index, number) in numbers.iter().enumerate() {
        let places = or(places[index].clone(), Some(clause.defaults.place));
        let (metrics, statistics) = if let Some(metric) = number.metric {
            (vec![metric], vec![None])
        } else {
            let at = measured_so_far;
            measured_so_far += 1;
            let metrics = or(metrics[at].clone(), clause.defaults.metric);
            (metrics, clause.or_carried(statistics[at].clone()))
        };
        if metrics.is_empty() {
            findings.unchecked(format!("{} of nothing named", words(number)));
        }
        for metric in metrics {
            for statistic in &statistics {
                for place in &places {
                    let subject = Subject { metric, statistic: *statistic, place: *place };
                    check_number(clause, number, subject, findings);
                }
            }
        }
    }
}

/// Holds one number against one subject.
pub(super) fn check_number(
    clause: &Clause<'_, '_>,
    number: &Number,
    subject: Subject,
    findings: &mut Findings,
) {
    let known = clause.known;
    if !known.has_metric(subject.metric) {
        return findings.missing(subject.metric);
    }
    let mut candidates = known.about(subject);
    candidates.extend(best_of_levels(clause, subject));
    if candidates.is_empty() {
        return match subject.place {
            Place::Page => findings
                .fails(Reason::WrongSubject(format!("{} without its scenario", words(number)))),
            Place::Scenario(_) => findings.missing(clause.words(subject)),
        };
    }
    let said = |fact: &usize| {
        let fact = &known.facts[*fact];
        number.in_its_unit(fact.value, fact.unit).map(|value| number.says(value))
    };
    if candidates.iter().all(|fact| said(fact).is_none()) {
        return findings.fails(Reason::WrongUnit(words(number)));
    }
    // A bound must hold for the mean and the median, where either may be meant.
    let is_bound = matches!(number.qualifier, Some(Qualifier::Over | Qualifier::Under));
    let readings = known.readings(subject).into_iter().filter_map(|one| known.value(one));
    if is_bound && readings.into_iter().any(|fact| said(&fact) == Some(false)) {
        findings.unchecked(format!("{} without its statistic", words(number)));
    }
    match candidates.iter().find(|fact| said(fact) == Some(true)) {
        Some(fact) => findings.holds([*fact]),
        None if (0..known.facts.len()).any(|fact| said(&fact) == Some(true)) => {
            findings.fails(Reason::WrongSubject(format!(
                "{} is not {}",
                words(number),
                clause.words(subject)
            )));
        }
        None => findings.fails(Reason::UnknownNumber(words(number))),
    }
}

/// `Peak throughput` is also what people call the highest output throughput of all levels.
fn best_of_levels(clause: &Clause<'_, '_>, subject: Subject) -> Option<usize> {
    if subject.metric != "peak_throughput" {
        return None;
    }
    let known = clause.known;
    let levels = match subject.place {
        Place::Scenario(place) => known.levels_beside(place),
        Place::Page => known.only_family()?,
    };
    let output = |place: &usize| {
        let place = Place::Scenario(*place);
        Some((place, known.value(Subject { metric: "output_throughput", statistic: None, place })?))
    };
    let value = |fact: usize| known.facts[fact].value;
    let found = levels.iter().filter_map(output);
    let best = found.max_by(|(_, a), (_, b)| value(*a).total_cmp(&value(*b)));
    best.filter(|(place, _)| subject.place == Place::Page || subject.place == *place)
        .map(|(_, fact)| fact)
        .filter(|_| 1 < levels.len())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Item<K> {
    Name(K),
    Number,
}

/// The names of one kind that belong to each number; `None` where that is not clear.
fn align<K: Copy + PartialEq>(
    terms: &[Term],
    name: impl Fn(&Term) -> Option<K>,
    counts: impl Fn(&Number) -> bool,
) -> Option<Vec<Vec<K>>> {
    let items: Vec<Item<K>> = terms
        .iter()
        .filter_map(|term| match term {
            Term::Number(number) => counts(number).then_some(Item::Number),
            Term::Place(_)
            | Term::Level(_)
            | Term::Family(_)
            | Term::NoSuchLevel(_)
            | Term::Word(_)
            | Term::Unknown(_)
            | Term::Misread(_) => name(term).map(Item::Name),
        })
        .collect();
    let count = items.iter().filter(|item| matches!(item, Item::Number)).count();
    let mut names: Vec<K> = Vec::new();
    for item in &items {
        if let Item::Name(name) = item
            && !names.contains(name)
        {
            names.push(*name);
        }
    }
    if names.len() < 2 {
        return Some(vec![names; count]);
    }
    if matches!(items.first(), Some(Item::Name(_))) {
        groups(&items)
    } else {
        let reversed: Vec<Item<K>> = items.into_iter().rev().collect();
        let mut found = groups(&reversed)?;
        found.reverse();
        Some(found)
    }
}

/// Runs of names, each with the run of numbers behind it. Begins with a name and must end with a
/// number: a name that is left over belongs to nothing.
fn groups<K: Copy + PartialEq>(items: &[Item<K>]) -> Option<Vec<Vec<K>>> {
    let mut found = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let split = rest.iter().position(|item| matches!(item, Item::Number))?;
        let end = rest[split..]
            .iter()
            .position(|item| matches!(item, Item::Name(_)))
            .map_or(rest.len(), |more| split + more);
        let mut names: Vec<K> = Vec::new();
        for item in &rest[..split] {
            if let Item::Name(name) = item
                && names.last() != Some(name)
            {
                names.push(*name);
            }
        }
        match (names.len(), end - split) {
            (0, _) => return None,
            (1, numbers) => found.extend(std::iter::repeat_n(names, numbers)),
            (_, 1) => found.push(names),
            (several, numbers) if several == numbers => {
                found.extend(names.into_iter().map(|name| vec![name]));
            }
            _ => return None,
        }
        rest = &rest[end..];
    }
    Some(found)
}

pub(super) fn words(number: &Number) -> String {
    let unit = match number.unit {
        None => "",
        Some(UnitWord::Milliseconds) => " ms",
        Some(UnitWord::Seconds) => " s",
        Some(UnitWord::TokensPerSecond) => " tok/s",
        Some(UnitWord::RequestsPerSecond) => " req/s",
        Some(UnitWord::Percent) => " %",
        Some(UnitWord::Times) => " times",
        Some(UnitWord::Tokens) => " tokens",
        Some(UnitWord::Requests) => " requests",
        Some(UnitWord::Users) => " users",
    };
    format!("{}{unit}", number.digits.value)
}
