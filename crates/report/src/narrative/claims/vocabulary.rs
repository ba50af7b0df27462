//! The words that a checked sentence may be made of. A word that stands nowhere here may carry a
//! claim that is not checked, so it spoils the sentence.

use inferometer_analysis::{Better, Unit};

use super::reading::Token;
use crate::narrative::FactUnit;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
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

/// Words and phrases by what they do in a sentence. The first phrase of a metric is its name.
pub(super) const PHRASES: &[(Meaning, &str)] = {
    use Meaning::{
        AcrossPercentiles, Advice, AlongConcurrency, And, Between, Break, By, Close, Compare,
        Denial, Exceed, Extreme, Filler, From, Gap, Level, Metric, Multiply, Open, Same, Statistic,
        Steady, Strength, SweetSpot, Than, Times, To, Trend,
    };
    use Sense::{Better, Less, More, Worse};

    use self::Level as Height;
    use self::Strength as Force;
    &[
        (Metric("ttft"), "ttft | time to first token"),
        (Metric("tpot"), "tpot | time per output token"),
        (Metric("itl"), "itl | inter token latency | inter token latencies"),
        (Metric("icl"), "icl | inter chunk latency"),
        (Metric("ttfc"), "ttfc | time to first content"),
        (Metric("e2e"), "e2e | e2e latency | end to end latency | request latency"),
        (Metric("output_throughput"), "output throughput | output token throughput | throughput"),
        (
            Metric("total_throughput"),
            "total throughput | total token throughput | overall throughput",
        ),
        (Metric("input_throughput"), "input throughput"),
        (Metric("request_throughput"), "request throughput"),
        (
            Metric("per_user_throughput"),
            "per user throughput | per user output throughput | throughput per user | \
             per user rate | per user speed | per user",
        ),
        (Metric("peak_output_throughput"), "peak output throughput | peak"),
        (Metric("peak_throughput"), "peak throughput"),
        (Metric("pp"), "pp | prefill | prefill speed | prefill rate | prefill throughput"),
        (
            Metric("tg"),
            "tg | decode | token generation | token generation speed | decode speed | \
             decode rate | generation speed",
        ),
        (Metric("input_tokens"), "input | inputs | input tokens | input length | prompt length"),
        (Metric("output_tokens"), "output | outputs | answers | output tokens | output length"),
        (Metric("requests"), "requests | prompts"),
        (Metric("concurrency"), "concurrency"),
        (Metric("concurrency_mean"), "mean concurrency"),
        (Metric("concurrency_peak"), "peak concurrency"),
        (Metric("error_rate"), "error rate | errors"),
        (Metric("goodput"), "goodput"),
        (Metric("cached_share"), "cached share"),
        (SweetSpot("sweet_spot"), "sweet spot"),
        (SweetSpot("per_user_spot"), "interactive sweet spot | best level for each user"),
        (Advice, "use | choose | prefer"),
        (Statistic("mean"), "mean | average"),
        (Statistic("p50"), "median | p50"),
        (Statistic("p90"), "p90"),
        (Statistic("p95"), "p95"),
        (Statistic("p99"), "p99"),
        (Statistic("max"), "max | maximum"),
        (Compare(More), "higher | greater | larger | longer"),
        (Compare(Less), "lower | smaller | shorter | less"),
        (Compare(Better), "faster | better"),
        (Compare(Worse), "slower | worse"),
        (Exceed(More), "exceeds | exceed | above"),
        (Exceed(Less), "below"),
        (Than, "than | as high as | as long as | as large as | as much as"),
        (
            Trend(More),
            "rises | rise | rose | grows | grow | increases | increase | increased | scales | \
             climbs",
        ),
        (
            Trend(Less),
            "falls | fall | fell | drops | drop | decreases | decrease | decreased | declines | \
             shrinks",
        ),
        (Trend(Better), "improves"),
        (Trend(Worse), "degrades"),
        (Multiply(2.0), "doubles"),
        (Multiply(3.0), "triples"),
        (Multiply(4.0), "quadruples"),
        (Multiply(0.5), "halves"),
        (Times(2.0), "twice | double"),
        (Times(3.0), "triple"),
        (Times(0.5), "half"),
        (Extreme(More), "highest | largest | longest | peaks"),
        (Extreme(Less), "lowest | smallest | shortest"),
        (Extreme(Better), "best | fastest"),
        (Extreme(Worse), "worst | slowest"),
        (Same(EXACT), "equal | equals | identical | same"),
        (
            Same(CLOSE),
            "nearly equal | nearly identical | almost equal | almost identical | nearly the same | \
             almost the same | close | very close",
        ),
        (Same(SIMILAR), "similar"),
        (Steady, "stable | steady | consistent"),
        (Level(Height::High), "high | large | long | elevated"),
        (Level(Height::Low), "low | small | short | minimal"),
        (Level(Height::Middle), "moderate"),
        (Level(Height::Good), "fast"),
        (Level(Height::Bad), "slow"),
        (
            Strength(Force::Much),
            "much | far | very | extremely | significantly | substantially | considerably | by far",
        ),
        (Strength(Force::Slightly), "slightly | a little"),
        (Denial, "far from | short of"),
        (Gap, "gap | gaps | difference"),
        (Between, "between"),
        (By, "by"),
        (From, "from"),
        (To, "to"),
        (
            AlongConcurrency,
            "with concurrency | with rising concurrency | with increasing concurrency | \
             with higher concurrency | as concurrency rises | as concurrency grows | \
             as concurrency increases | when concurrency rises",
        ),
        (AcrossPercentiles, "across percentiles"),
        (Break, "; | while | whereas | but | although"),
        (Open, "("),
        (Close, ")"),
        (And, ", | and"),
        (
            Filler,
            "/ | : | a | an | the | both | is | are | was | were | be | has | have | had | shows | \
             lies | reaches | reached | achieves | measured | at | in | on | of | for | with | \
             across | there | it | its | this | that | also | relatively | scenario | level | \
             value | values | model | server | system | derived",
        ),
    ]
};

/// What follows a number. Where the unit says of what it is, its metric stands beside it.
pub(super) const UNITS: &[((NumberUnit, Option<&str>), &str)] = {
    const TOKENS: NumberUnit = NumberUnit::Fact(FactUnit::Tokens);
    const TOKENS_PER_SECOND: NumberUnit = metric_unit(Unit::TokensPerSecond);
    &[
        ((metric_unit(Unit::Milliseconds), None), "ms | millisecond | milliseconds"),
        ((NumberUnit::Seconds, None), "s | sec | second | seconds"),
        (
            (TOKENS_PER_SECOND, None),
            "tok / s | tok / sec | tokens / s | tokens / sec | tokens / second | \
             tokens per second | tokens per sec",
        ),
        (
            (TOKENS_PER_SECOND, Some("per_user_throughput")),
            "tok / s per user | tokens / s per user | tokens per second per user",
        ),
        (
            (metric_unit(Unit::RequestsPerSecond), None),
            "req / s | requests / s | requests per second",
        ),
        ((PERCENT, None), "% | percent | per cent"),
        ((NumberUnit::Times, None), "x | times | fold"),
        ((TOKENS, None), "tokens | tok"),
        (
            (TOKENS, Some("input_tokens")),
            "input tokens | prompt tokens | token input | token inputs | token prompt | \
             token prompts",
        ),
        (
            (TOKENS, Some("output_tokens")),
            "output tokens | token output | token outputs | token answers",
        ),
        ((metric_unit(Unit::Requests), Some("requests")), "requests | prompts"),
        (
            (USERS, None),
            "user | users | concurrent user | concurrent users | concurrent requests | \
             concurrent prompts",
        ),
    ]
};

/// Before a number.
pub(super) const QUALIFIERS: &[(Qualifier, &str)] = &[
    (Qualifier::About, "~ | about | around | approximately | roughly | close to"),
    (Qualifier::Over, "over | more than | above"),
    (Qualifier::Under, "under | below | less than"),
    (Qualifier::Nearly, "nearly | almost"),
];

/// What a short name stands for is in [`PHRASES`]: the phrases with the same metric.
pub(super) const SHORT_NAMES: &[&str] = &["ttft", "tpot", "itl", "icl", "ttfc", "e2e", "pp", "tg"];
