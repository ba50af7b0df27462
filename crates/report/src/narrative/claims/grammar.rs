//! Which kind of claim a statement makes, and which words may stand in it.

use super::reading::Term;
use super::vocabulary::{Meaning, UnitWord};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Gap,
    Comparison,
    Trend,
    Extreme,
    Sameness,
}

pub(super) fn relation(term: &Term) -> Option<Relation> {
    use Meaning::{Compare, Exceed, Extreme, Gap, Multiply, Same, Steady, Than, Trend};
    match term {
        Term::Number(number) => {
            (number.unit == Some(UnitWord::Times)).then_some(Relation::Comparison)
        }
        Term::Word(Gap) => Some(Relation::Gap),
        Term::Word(Compare(_) | Exceed(_) | Than) => Some(Relation::Comparison),
        Term::Word(Trend(_) | Multiply(_)) => Some(Relation::Trend),
        Term::Word(Extreme(_)) => Some(Relation::Extreme),
        Term::Word(Same(_) | Steady) => Some(Relation::Sameness),
        Term::Word(_)
        | Term::Place(_)
        | Term::Level(_)
        | Term::Family(_)
        | Term::NoSuchLevel(_)
        | Term::Unknown(_)
        | Term::Misread(_) => None,
    }
}

/// What stands in the statement and is not read there: a word that no rule of its relation looks at
/// would say something that nobody checks.
pub(super) fn unread(terms: &[Term], relation: Option<Relation>) -> Option<&'static str> {
    let mut strengths = 0;
    for (at, term) in terms.iter().enumerate() {
        let next = terms.get(at + 1);
        let read = match term {
            Term::Word(Meaning::Strength(_)) => {
                strengths += 1;
                is_of_something(terms, at)
            }
            Term::Word(Meaning::By) => {
                is_sized(relation) && matches!(next, Some(Term::Number(number)) if number.is_size)
            }
            Term::Word(meaning) => is_read(*meaning, relation),
            Term::Number(number) => {
                !number.is_size || is_sized(relation) || relation == Some(Relation::Gap)
            }
            Term::Place(_)
            | Term::Level(_)
            | Term::Family(_)
            | Term::NoSuchLevel(_)
            | Term::Unknown(_)
            | Term::Misread(_) => true,
        };
        if !read {
            return Some(words(term));
        }
    }
    (relation.is_some() && 1 < strengths).then_some("two strengths in one statement")
}

fn is_sized(relation: Option<Relation>) -> bool {
    matches!(relation, Some(Relation::Comparison | Relation::Trend))
}

fn is_read(meaning: Meaning, relation: Option<Relation>) -> bool {
    match meaning {
        Meaning::Metric(_)
        | Meaning::Statistic(_)
        | Meaning::Level(_)
        | Meaning::SweetSpot
        | Meaning::Advice
        | Meaning::Break
        | Meaning::Open
        | Meaning::Close
        | Meaning::And
        | Meaning::Filler => true,
        Meaning::Compare(_) | Meaning::Exceed(_) | Meaning::Than => {
            relation == Some(Relation::Comparison)
        }
        Meaning::Trend(_) | Meaning::Multiply(_) | Meaning::From => {
            relation == Some(Relation::Trend)
        }
        Meaning::To | Meaning::AlongConcurrency => {
            matches!(relation, Some(Relation::Trend | Relation::Sameness))
        }
        Meaning::Extreme(_) => relation == Some(Relation::Extreme),
        Meaning::Same(_) | Meaning::Steady | Meaning::AcrossPercentiles => {
            relation == Some(Relation::Sameness)
        }
        Meaning::Gap | Meaning::Between => relation == Some(Relation::Gap),
        // The others are read with the number that they stand beside.
        Meaning::Denial | Meaning::By | Meaning::Strength(_) | Meaning::Times(_) => false,
    }
}

/// `much` stands before what it makes stronger, `slightly` also behind `rises`.
fn is_of_something(terms: &[Term], at: usize) -> bool {
    let behind = terms[at + 1..].iter().find(|term| **term != Term::Word(Meaning::Filler));
    let before = at.checked_sub(1).map(|before| &terms[before]);
    let goes = |term: Option<&Term>| matches!(term, Some(Term::Word(Meaning::Trend(_))));
    goes(before)
        || goes(behind)
        || matches!(
            behind,
            Some(Term::Word(
                Meaning::Compare(_)
                    | Meaning::Exceed(_)
                    | Meaning::Level(_)
                    | Meaning::Same(_)
                    | Meaning::Steady
                    | Meaning::Extreme(_)
            ))
        )
}

fn words(term: &Term) -> &'static str {
    match term {
        Term::Word(Meaning::Denial) => "a denial",
        Term::Word(Meaning::AlongConcurrency) => "with concurrency, of no trend",
        Term::Word(Meaning::From | Meaning::To | Meaning::Between) => "a range",
        Term::Word(Meaning::By) | Term::Number(_) => "a size of nothing compared",
        Term::Word(Meaning::Strength(_)) => "a strength of nothing",
        Term::Word(_)
        | Term::Place(_)
        | Term::Level(_)
        | Term::Family(_)
        | Term::NoSuchLevel(_)
        | Term::Unknown(_)
        | Term::Misread(_) => "a word that is not read here",
    }
}
