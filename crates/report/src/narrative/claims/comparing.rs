//! `A is higher than B`, and by how much.

use super::Reason;
use super::binding::{check_numbers, words};
use super::clause::{Clause, Defaults, optional, or};
use super::findings::Findings;
use super::known::Subject;
use super::number::Number;
use super::reading::Term;
use super::vocabulary::{Meaning, Sense, Strength, UnitWord};
use crate::narrative::FactUnit;

/// `Much higher` is at least this many times as much.
pub(super) const MUCH: f64 = 1.25;
/// `Slightly higher` is at most this many times as much.
pub(super) const SLIGHT: f64 = 1.10;

/// What a statement says about two numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claim {
    pub(super) sense: Option<Sense>,
    pub(super) strength: Option<Strength>,
    /// A ratio, a percentage or a difference.
    pub(super) size: Option<Number>,
}

pub(super) fn check(clause: &Clause<'_, '_>, findings: &mut Findings) {
    let Some((left, right)) = sides(clause) else {
        return findings.unchecked("a comparison with nothing");
    };
    let Some(claim) = claim(clause, left) else {
        return findings.unchecked("two comparisons in one statement");
    };
    let left_clause = Clause { terms: left, ..*clause };
    let right_clause = Clause { terms: right, ..*clause };
    let names_nothing = right_clause.metrics().is_empty()
        && right_clause.statistics().is_empty()
        && right_clause.places().is_empty();
    let values: Vec<Number> = right_clause.numbers().into_iter().filter(|n| !n.is_size).collect();
    match values.as_slice() {
        [threshold] if names_nothing => check_threshold(&left_clause, claim, threshold, findings),
        _ if names_nothing => findings.unchecked("a comparison with nothing"),
        _ => check_sides(&left_clause, &right_clause, claim, findings),
    }
}

fn check_sides(
    left: &Clause<'_, '_>,
    right: &Clause<'_, '_>,
    claim: Claim,
    findings: &mut Findings,
) {
    let left = Clause { defaults: defaults_of(left, right), ..*left };
    // The right side is of the same statistic where it names none.
    let mut terms = right.terms.to_vec();
    if right.statistics().is_empty() {
        match left.statistics_asked().as_slice() {
            [Some(statistic)] => terms.push(Term::Word(Meaning::Statistic(statistic))),
            [_] => {}
            _ if right.numbers().iter().all(|number| number.is_size) => {}
            _ => findings.unchecked("a number of one of several statistics"),
        }
    }
    let defaults = Defaults {
        metric: left.metrics().first().copied().or(left.defaults.metric),
        place: left.places().first().copied().unwrap_or(left.defaults.place),
        ..left.defaults
    };
    let right = Clause { terms: &terms, defaults, ..left };
    check_numbers(&left, findings);
    check_numbers(&right, findings);
    let subjects = left.subjects();
    if subjects.is_empty() {
        return findings.unchecked("a comparison of nothing named");
    }
    for a in subjects {
        for b in right_subjects(&right, a) {
            check_pair(&left, claim, a, b, findings);
        }
    }
}

/// Holds one comparison against the facts of two subjects.
pub(super) fn check_pair(
    clause: &Clause<'_, '_>,
    claim: Claim,
    a: Subject,
    b: Subject,
    findings: &mut Findings,
) {
    if a == b {
        return findings.unchecked("a comparison of a number with itself");
    }
    // Where no statistic is named, the mean and the median must both agree.
    let (ones, others) = (clause.known.readings(a), clause.known.readings(b));
    let pairs: Vec<(Subject, Subject)> = if a.statistic == b.statistic && ones.len() == others.len()
    {
        ones.into_iter().zip(others).collect()
    } else {
        ones.iter().flat_map(|one| others.iter().map(|other| (*one, *other))).collect()
    };
    for (a, b) in pairs {
        let (Some(left), Some(right)) = (clause.value(a, findings), clause.value(b, findings))
        else {
            continue;
        };
        match claim.holds(clause, left, right) {
            Ok(()) => findings.holds([left, right]),
            Err(reason) => {
                findings.fails(reason(format!("{} against {}", clause.words(a), clause.words(b))));
            }
        }
    }
}

impl Claim {
    fn holds(
        self,
        clause: &Clause<'_, '_>,
        left: usize,
        right: usize,
    ) -> Result<(), fn(String) -> Reason> {
        let (a, b) = (&clause.known.facts[left], &clause.known.facts[right]);
        if a.unit != b.unit {
            return Err(Reason::WrongUnit);
        }
        let greater = match self.sense {
            Some(sense) => sense.wants_greater(a.better),
            None => Some(b.value < a.value),
        };
        let Some(greater) = greater else { return Err(Reason::FalseComparison) };
        let (high, low) = if greater { (a, b) } else { (b, a) };
        let apart = match (high.interval, low.interval) {
            (Some(high), Some(low)) => low.1 < high.0,
            _ => true,
        };
        let ordered = low.value < high.value && apart;
        let ratio = high.value / low.value;
        let strong_enough = match self.strength {
            None => true,
            Some(Strength::Much) => MUCH <= ratio,
            Some(Strength::Slightly) => ratio <= SLIGHT,
        };
        let sized = self.size.is_none_or(|size| match size.unit {
            // Points or parts of it: nobody knows.
            Some(UnitWord::Percent) if a.unit == FactUnit::Share => false,
            Some(UnitWord::Times) if self.sense.is_some() => size.says(ratio),
            Some(UnitWord::Times) => size.says(a.value / b.value),
            Some(UnitWord::Percent) => size.says((a.value - b.value).abs() / b.value * 100.0),
            _ => size
                .in_its_unit((a.value - b.value).abs(), a.unit)
                .is_some_and(|value| size.says(value)),
        });
        if ordered && strong_enough && sized { Ok(()) } else { Err(Reason::FalseComparison) }
    }
}

/// What stands before and after `than`, or around the factor where no `than` is.
fn sides<'c>(clause: &Clause<'c, '_>) -> Option<(&'c [Term], &'c [Term])> {
    let terms = clause.terms;
    let than = |term: &Term| matches!(term, Term::Word(Meaning::Than | Meaning::Exceed(_)));
    let factor = |term: &Term| matches!(term, Term::Number(n) if n.unit == Some(UnitWord::Times));
    let at = terms.iter().position(than).or_else(|| terms.iter().position(factor))?;
    // The sense of `exceeds` and the factor itself are read from the left side.
    Some((&terms[..=at], &terms[at + 1..]))
}

/// `None` where there is more than one.
fn claim(clause: &Clause<'_, '_>, left: &[Term]) -> Option<Claim> {
    let size = clause.size().ok()?;
    let mut claim = Claim { sense: None, strength: strength(clause.terms), size };
    for (at, term) in clause.terms.iter().enumerate() {
        if let Term::Word(Meaning::Compare(sense) | Meaning::Exceed(sense)) = term
            && (claim.sense.replace(*sense).is_some() || left.len() <= at)
        {
            return None;
        }
    }
    let is_factor = claim.size.is_some_and(|size| size.unit == Some(UnitWord::Times));
    (claim.sense.is_some() || is_factor).then_some(claim)
}

pub(super) fn strength(terms: &[Term]) -> Option<Strength> {
    terms.iter().find_map(|term| {
        if let Term::Word(Meaning::Strength(strength)) = term { Some(*strength) } else { None }
    })
}

/// Where the right side names a metric or a statistic of its own, its place is that of both; where
/// it names a place alone, the left side is at the place at hand.
fn defaults_of(left: &Clause<'_, '_>, right: &Clause<'_, '_>) -> Defaults {
    let own_subject = !right.metrics().is_empty() || !right.statistics().is_empty();
    let place = match right.places().as_slice() {
        [place] if own_subject => *place,
        _ => left.defaults.place,
    };
    let metric = right.metrics().first().copied().or(left.defaults.metric);
    Defaults { metric, place, ..left.defaults }
}

fn right_subjects(right: &Clause<'_, '_>, left: Subject) -> Vec<Subject> {
    let metrics = or(right.metrics(), Some(left.metric));
    let statistics = match right.statistics() {
        found if found.is_empty() => vec![left.statistic],
        found => optional(found),
    };
    let places = or(right.places(), Some(left.place));
    let mut subjects = Vec::new();
    for metric in metrics {
        for statistic in &statistics {
            for place in &places {
                subjects.push(Subject { metric, statistic: *statistic, place: *place });
            }
        }
    }
    subjects
}

/// `TTFT is higher than 40 ms`.
fn check_threshold(
    left: &Clause<'_, '_>,
    claim: Claim,
    threshold: &Number,
    findings: &mut Findings,
) {
    check_numbers(left, findings);
    for subject in left.subjects().into_iter().flat_map(|one| left.known.readings(one)) {
        let Some(fact) = left.value(subject, findings) else { continue };
        let known = &left.known.facts[fact];
        let Some(value) = threshold.in_its_unit(known.value, known.unit) else {
            findings.fails(Reason::WrongUnit(words(threshold)));
            continue;
        };
        let greater = claim.sense.and_then(|sense| sense.wants_greater(known.better));
        let bare = claim.size.is_none() && claim.strength.is_none();
        let holds = match greater {
            Some(true) => threshold.digits.value < value,
            Some(false) => value < threshold.digits.value,
            None => false,
        };
        if holds && bare {
            findings.holds([fact]);
        } else {
            findings.fails(Reason::FalseComparison(format!(
                "{} against {}",
                left.words(subject),
                words(threshold)
            )));
        }
    }
}
