//! `A is higher than B`, and by how much.

use super::Reason;
use super::binding::{check_numbers_but, words};
use super::clause::{Clause, Defaults, optional, or};
use super::findings::Findings;
use super::known::Subject;
use super::number::Number;
use super::reading::Term;
use super::vocabulary::{Meaning, Sense, Strength, UnitWord};

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
    let right_clause = Clause { terms: right, ..*clause };
    let names_nothing = right_clause.metrics().is_empty()
        && right_clause.statistics().is_empty()
        && right_clause.places().is_empty();
    let left_clause = Clause { terms: left, ..*clause };
    if names_nothing {
        return match right_clause.numbers().as_slice() {
            [threshold] => check_threshold(&left_clause, claim, threshold, findings),
            _ => findings.unchecked("a comparison with nothing"),
        };
    }
    let left_defaults = defaults_of(&left_clause, &right_clause);
    let left_clause = Clause { defaults: left_defaults, ..left_clause };
    let right_defaults = Defaults {
        metric: left_clause.metrics().first().copied().or(left_defaults.metric),
        place: left_clause.places().first().copied().unwrap_or(left_defaults.place),
    };
    let right_clause = Clause { defaults: right_defaults, ..right_clause };
    let is_size = |number: &Number| Some(*number) == claim.size;
    check_numbers_but(&left_clause, is_size, findings);
    check_numbers_but(&right_clause, is_size, findings);
    let subjects = left_clause.subjects();
    if subjects.is_empty() {
        return findings.unchecked("a comparison of nothing named");
    }
    for a in subjects {
        for b in right_subjects(&right_clause, a) {
            check_pair(clause, claim, a, b, findings);
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
    let mut pairs: Vec<(Subject, Subject)> = vec![(a, b)];
    // Where no statistic is named, the mean and the median must both agree.
    if a.statistic.is_none() && b.statistic.is_none() {
        let median = |subject| Subject { statistic: Some("p50"), ..subject };
        let known = clause.known;
        if known.value(median(a)).is_some() && known.value(median(b)).is_some() {
            pairs.push((median(a), median(b)));
        }
    }
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
    let mut claim = Claim { strength: strength(clause.terms), ..Claim::default() };
    for (at, term) in clause.terms.iter().enumerate() {
        if let Term::Word(Meaning::Compare(sense) | Meaning::Exceed(sense)) = term {
            if claim.sense.replace(*sense).is_some() || left.len() <= at {
                return None;
            }
            if let Some(Term::Number(before)) = at.checked_sub(1).map(|at| &clause.terms[at]) {
                claim.size = Some(*before);
            }
        }
        if let Term::Number(number) = term
            && number.is_relative()
            && claim.size.replace(*number).is_some()
        {
            return None;
        }
    }
    (claim.sense.is_some() || claim.size.is_some()).then_some(claim)
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
    Defaults { metric, place }
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
    check_numbers_but(left, |number| Some(*number) == claim.size, findings);
    for subject in left.subjects() {
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
