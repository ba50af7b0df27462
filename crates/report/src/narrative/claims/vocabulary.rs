//! The words that a checked sentence may be made of. A word that stands nowhere here may carry a
//! claim that nobody checks, so it spoils the sentence.

mod phrases;

use inferometer_analysis::Better;

pub(super) use self::phrases::PHRASES;

/// What a word or a phrase does in a sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    SweetSpot,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    More,
    Less,
    Better,
    Worse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    High,
    Middle,
    Low,
    /// Low where less is better, else high.
    Good,
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitWord {
    Milliseconds,
    Seconds,
    TokensPerSecond,
    RequestsPerSecond,
    Percent,
    Times,
    Tokens,
    Requests,
    /// In flight at once: the number is a level.
    Users,
}

impl Sense {
    /// Whether the sentence wants the greater one; `None` where nobody knows which is better.
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

/// The longest phrase of a table that the words begin with, and how many words it takes.
pub(super) fn longest<T: Copy>(table: &[(&str, T)], words: &[&str]) -> Option<(T, usize)> {
    table
        .iter()
        .filter_map(|(phrase, meaning)| {
            let mut count = 0;
            let fits = phrase.split(' ').all(|part| {
                count += 1;
                words.get(count - 1) == Some(&part)
            });
            fits.then_some((*meaning, count))
        })
        .max_by_key(|(_, count)| *count)
}

/// What follows a number. Where the unit says of what it is, its metric stands beside it.
pub(super) const UNITS: &[(&str, (UnitWord, Option<&str>))] = {
    use UnitWord::{
        Milliseconds, Percent, Requests, RequestsPerSecond, Seconds, Times, Tokens,
        TokensPerSecond, Users,
    };
    &[
        ("ms", (Milliseconds, None)),
        ("millisecond", (Milliseconds, None)),
        ("milliseconds", (Milliseconds, None)),
        ("s", (Seconds, None)),
        ("sec", (Seconds, None)),
        ("second", (Seconds, None)),
        ("seconds", (Seconds, None)),
        ("tok / s", (TokensPerSecond, None)),
        ("tok / sec", (TokensPerSecond, None)),
        ("tokens / s", (TokensPerSecond, None)),
        ("tokens / sec", (TokensPerSecond, None)),
        ("tokens / second", (TokensPerSecond, None)),
        ("tokens per second", (TokensPerSecond, None)),
        ("tokens per sec", (TokensPerSecond, None)),
        ("tok / s per user", (TokensPerSecond, Some("per_user_throughput"))),
        ("tokens / s per user", (TokensPerSecond, Some("per_user_throughput"))),
        ("tokens per second per user", (TokensPerSecond, Some("per_user_throughput"))),
        ("req / s", (RequestsPerSecond, None)),
        ("requests / s", (RequestsPerSecond, None)),
        ("requests per second", (RequestsPerSecond, None)),
        ("%", (Percent, None)),
        ("percent", (Percent, None)),
        ("per cent", (Percent, None)),
        ("x", (Times, None)),
        ("times", (Times, None)),
        ("fold", (Times, None)),
        ("tokens", (Tokens, None)),
        ("tok", (Tokens, None)),
        ("input tokens", (Tokens, Some("input_tokens"))),
        ("prompt tokens", (Tokens, Some("input_tokens"))),
        ("token input", (Tokens, Some("input_tokens"))),
        ("token inputs", (Tokens, Some("input_tokens"))),
        ("token prompt", (Tokens, Some("input_tokens"))),
        ("token prompts", (Tokens, Some("input_tokens"))),
        ("output tokens", (Tokens, Some("output_tokens"))),
        ("token output", (Tokens, Some("output_tokens"))),
        ("token outputs", (Tokens, Some("output_tokens"))),
        ("token answers", (Tokens, Some("output_tokens"))),
        ("requests", (Requests, Some("requests"))),
        ("prompts", (Requests, Some("requests"))),
        ("user", (Users, None)),
        ("users", (Users, None)),
        ("concurrent user", (Users, None)),
        ("concurrent users", (Users, None)),
        ("concurrent requests", (Users, None)),
        ("concurrent prompts", (Users, None)),
    ]
};

/// Before a number.
pub(super) const QUALIFIERS: &[(&str, Qualifier)] = &[
    ("~", Qualifier::About),
    ("about", Qualifier::About),
    ("around", Qualifier::About),
    ("approximately", Qualifier::About),
    ("roughly", Qualifier::About),
    ("close to", Qualifier::About),
    ("over", Qualifier::Over),
    ("more than", Qualifier::Over),
    ("above", Qualifier::Over),
    ("under", Qualifier::Under),
    ("below", Qualifier::Under),
    ("less than", Qualifier::Under),
    ("nearly", Qualifier::Nearly),
    ("almost", Qualifier::Nearly),
];

/// What a short name stands for is in [`PHRASES`]: the phrases with the same metric.
pub(super) const SHORT_NAMES: &[&str] = &["ttft", "tpot", "itl", "icl", "ttfc", "e2e", "pp", "tg"];

/// As the tables print it.
pub(super) const EXACT: f64 = 1.0;
pub(super) const CLOSE: f64 = 1.05;
pub(super) const SIMILAR: f64 = 1.10;
