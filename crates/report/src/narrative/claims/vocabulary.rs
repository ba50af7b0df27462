//! The words that a checked sentence may be made of. A word that stands nowhere here may carry a
//! claim that is not checked, so it spoils the sentence.

use std::sync::LazyLock;

use inferometer_analysis::{Better, Unit};

use super::reading::Token;
use crate::narrative::FactUnit;

/// What a word or a phrase does in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Meaning {
    /// By its name in the facts.
    Metric(&'static str),
    Statistic(&'static str),
    /// `higher`; wants `than`.
    Compare(Sense),
    /// `exceeds`, `above`: a comparison with its `than`.
    Exceed(Sense),
    Than,
    Trend(Sense),
    /// `doubles`.
    Multiply(f64),
    /// `twice`.
    Times(f64),
    Extreme(Sense),
    /// The largest ratio of the greatest to the least.
    Same(f64),
    /// `stable`: the same along whatever the sentence names, or from median to p99.
    Steady,
    Level(Level),
    Strength(Strength),
    Gap,
    /// The ends of a gap; a range is not read.
    Between,
    /// Before a size: `higher by 12 ms`.
    By,
    From,
    To,
    /// `with concurrency`.
    AlongConcurrency,
    AcrossPercentiles,
    /// `far from`: says that something is not so, which is not read.
    Denial,
    /// By the name of its fact: the highest throughput within the SLOs, or what the reference report
    /// calls the interactive sweet spot.
    SweetSpot(&'static str),
    /// `use`: asks for a reason that is checked.
    Advice,
    /// Begins another statement.
    Break,
    Open,
    Close,
    /// Parts what is listed.
    And,
    Filler,
}

/// The kind of claim that a statement makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relation {
    Gap,
    Comparison,
    Trend,
    Extreme,
    Sameness,
}

impl Meaning {
    /// A meaning of `vocabulary.txt`: its kind, and of what it is.
    fn parse(text: &'static str) -> Option<Self> {
        let (kind, of) = text.split_once(' ').unwrap_or((text, ""));
        let sense = || of.parse().ok();
        let number = || of.parse().ok();
        Some(match kind {
            "metric" => Self::Metric(of),
            "statistic" => Self::Statistic(of),
            "sweet-spot" => Self::SweetSpot(of),
            "compare" => Self::Compare(sense()?),
            "exceed" => Self::Exceed(sense()?),
            "trend" => Self::Trend(sense()?),
            "extreme" => Self::Extreme(sense()?),
            "multiply" => Self::Multiply(number()?),
            "times" => Self::Times(number()?),
            "same" => Self::Same(number()?),
            "level" => Self::Level(of.parse().ok()?),
            "strength" => Self::Strength(of.parse().ok()?),
            plain => plain.parse().ok()?,
        })
    }

    /// The relations whose rules read the word; `None` where any statement may have it. Words that
    /// no relation reads are read with the number that they stand beside.
    pub(super) const fn readers(self) -> Option<&'static [Relation]> {
        match self {
            Self::Metric(_)
            | Self::Statistic(_)
            | Self::Level(_)
            | Self::SweetSpot(_)
            | Self::Advice
            | Self::Break
            | Self::Open
            | Self::Close
            | Self::And
            | Self::Filler => None,
            Self::Compare(_) | Self::Exceed(_) | Self::Than => Some(&[Relation::Comparison]),
            Self::Trend(_) | Self::Multiply(_) | Self::From => Some(&[Relation::Trend]),
            Self::To | Self::AlongConcurrency => Some(&[Relation::Trend, Relation::Sameness]),
            Self::Extreme(_) => Some(&[Relation::Extreme]),
            Self::Same(_) | Self::Steady | Self::AcrossPercentiles => Some(&[Relation::Sameness]),
            Self::Gap | Self::Between => Some(&[Relation::Gap]),
            Self::Denial | Self::By | Self::Strength(_) | Self::Times(_) => Some(&[]),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Sense {
    #[default]
    More,
    Less,
    Better,
    Worse,
}

impl Sense {
    /// Whether the sentence wants the greater one; `None` where it is not known which is better.
    pub(super) fn wants_greater(self, better: Better) -> Option<bool> {
        match (self, better) {
            (Self::More, _) | (Self::Better, Better::Higher) | (Self::Worse, Better::Lower) => {
                Some(true)
            }
            (Self::Less, _) | (Self::Better, Better::Lower) | (Self::Worse, Better::Higher) => {
                Some(false)
            }
            (Self::Better | Self::Worse, Better::Neither) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Level {
    #[default]
    High,
    Middle,
    Low,
    /// Low where less is better, else high.
    Good,
    Bad,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Strength {
    #[default]
    Much,
    Slightly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Qualifier {
    About,
    Over,
    Under,
    Nearly,
}

/// The unit behind a number. A per cent is a share, and users in flight are a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberUnit {
    Fact(FactUnit),
    Seconds,
    Times,
}

pub(super) const PERCENT: NumberUnit = metric_unit(Unit::Share);
/// In flight at once: the number is a level.
pub(super) const USERS: NumberUnit = NumberUnit::Fact(FactUnit::Number);

pub(super) const fn metric_unit(unit: Unit) -> NumberUnit {
    NumberUnit::Fact(FactUnit::Metric(unit))
}

/// The longest phrase of a table that the tokens begin with, and how many tokens it takes.
pub(super) fn longest<T: Copy>(table: &[(T, &str)], tokens: &[Token]) -> Option<(T, usize)> {
    let fits = |phrase: &&str| {
        let mut words = tokens.iter().map(|token| token.spelling.as_str());
        phrase.split(' ').all(|part| words.next() == Some(part))
    };
    table
        .iter()
        .flat_map(|(meaning, phrases)| phrases.split(" | ").map(move |phrase| (*meaning, phrase)))
        .filter(|(_, phrase)| fits(phrase))
        .map(|(meaning, phrase)| (meaning, phrase.split(' ').count()))
        .max_by_key(|(_, count)| *count)
}

/// As the tables print it.
pub(super) const EXACT: f64 = 1.0;
pub(super) const CLOSE: f64 = 1.05;
pub(super) const SIMILAR: f64 = 1.10;

/// Words and phrases by what they do in a sentence, from `vocabulary.txt`. The first phrase of a metric
/// is its name.
///
/// # Panics
///
/// Never: a test reads the embedded table.
pub(super) static PHRASES: LazyLock<Vec<(Meaning, &str)>> = LazyLock::new(|| {
    let phrase = |line: &'static str| {
        let (meaning, phrases) = line.split_once(": ")?;
        Some((Meaning::parse(meaning)?, phrases))
    };
    let phrases = include_str!("vocabulary.txt").lines().map(phrase);
    phrases.collect::<Option<_>>().expect("a test reads the embedded table")
});

/// A unit, and the metric that it is of, where it says so.
type NamedUnit = (NumberUnit, Option<&'static str>);

/// What follows a number, from `units.txt`.
pub(super) static UNITS: LazyLock<Vec<(NamedUnit, &str)>> = LazyLock::new(|| {
    let unit = |line: &'static str| {
        let (names, phrases) = line.split_once(": ")?;
        let (name, metric) = names.split_once(' ').unwrap_or((names, ""));
        let unit = match name {
            "milliseconds" => metric_unit(Unit::Milliseconds),
            "seconds" => NumberUnit::Seconds,
            "tokens-per-second" => metric_unit(Unit::TokensPerSecond),
            "requests-per-second" => metric_unit(Unit::RequestsPerSecond),
            "percent" => PERCENT,
            "times" => NumberUnit::Times,
            "tokens" => NumberUnit::Fact(FactUnit::Tokens),
            "requests" => metric_unit(Unit::Requests),
            _ => USERS,
        };
        Some(((unit, Some(metric).filter(|metric| !metric.is_empty())), phrases))
    };
    include_str!("units.txt").lines().filter_map(unit).collect()
});

/// Before a number.
pub(super) const QUALIFIERS: &[(Qualifier, &str)] = &[
    (Qualifier::About, "~ | about | around | approximately | roughly | close to"),
    (Qualifier::Over, "over | more than | above"),
    (Qualifier::Under, "under | below | less than"),
    (Qualifier::Nearly, "nearly | almost"),
];

/// What a short name stands for is in [`PHRASES`]: the phrases with the same metric.
pub(super) const SHORT_NAMES: &[&str] = &["ttft", "tpot", "itl", "icl", "ttfc", "e2e", "pp", "tg"];
