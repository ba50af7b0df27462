//! The words that a checked sentence may be made of. A word that stands nowhere here may carry a
//! claim that nobody checks, so it spoils the sentence.

use inferometer_analysis::Better;

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
    From,
    To,
    /// `with concurrency`.
    AlongConcurrency,
    SweetSpot,
    /// `use`: asks for a reason that is checked.
    Advice,
    /// Begins another statement.
    Break,
    Open,
    Close,
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
            (Self::More, _) => Some(true),
            (Self::Less, _) => Some(false),
            (Self::Better, Better::Higher) | (Self::Worse, Better::Lower) => Some(true),
            (Self::Better, Better::Lower) | (Self::Worse, Better::Higher) => Some(false),
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

pub(super) const PHRASES: &[(&str, Meaning)] = {
    use self::Level as Lev;
    use self::Sense::{Better, Less, More, Worse};
    use self::Strength as Force;
    use Meaning::{
        Advice, AlongConcurrency, Break, Close, Compare, Exceed, Extreme, Filler, From, Gap, Level,
        Metric, Multiply, Open, Same, Statistic, Steady, Strength, SweetSpot, Than, Times, To,
        Trend,
    };
    &[
        ("ttft", Metric("ttft")),
        ("time to first token", Metric("ttft")),
        ("tpot", Metric("tpot")),
        ("time per output token", Metric("tpot")),
        ("itl", Metric("itl")),
        ("inter token latency", Metric("itl")),
        ("inter token latencies", Metric("itl")),
        ("icl", Metric("icl")),
        ("inter chunk latency", Metric("icl")),
        ("ttfc", Metric("ttfc")),
        ("time to first chunk", Metric("ttfc")),
        ("e2e", Metric("e2e")),
        ("e2e latency", Metric("e2e")),
        ("end to end latency", Metric("e2e")),
        ("request latency", Metric("e2e")),
        ("output throughput", Metric("output_throughput")),
        ("output token throughput", Metric("output_throughput")),
        ("throughput", Metric("output_throughput")),
        ("total throughput", Metric("total_throughput")),
        ("total token throughput", Metric("total_throughput")),
        ("overall throughput", Metric("total_throughput")),
        ("input throughput", Metric("input_throughput")),
        ("request throughput", Metric("request_throughput")),
        ("per user throughput", Metric("per_user_throughput")),
        ("per user output throughput", Metric("per_user_throughput")),
        ("throughput per user", Metric("per_user_throughput")),
        ("per user rate", Metric("per_user_throughput")),
        ("per user speed", Metric("per_user_throughput")),
        ("per user", Metric("per_user_throughput")),
        ("peak output throughput", Metric("peak_output_throughput")),
        ("peak throughput", Metric("peak_output_throughput")),
        ("peak", Metric("peak_output_throughput")),
        ("pp", Metric("pp")),
        ("prefill", Metric("pp")),
        ("prefill speed", Metric("pp")),
        ("prefill rate", Metric("pp")),
        ("prefill throughput", Metric("pp")),
        ("tg", Metric("tg")),
        ("decode", Metric("tg")),
        ("token generation", Metric("tg")),
        ("token generation speed", Metric("tg")),
        ("decode speed", Metric("tg")),
        ("decode rate", Metric("tg")),
        ("generation speed", Metric("tg")),
        ("input", Metric("input_tokens")),
        ("inputs", Metric("input_tokens")),
        ("input tokens", Metric("input_tokens")),
        ("input length", Metric("input_tokens")),
        ("prompt length", Metric("input_tokens")),
        ("output", Metric("output_tokens")),
        ("outputs", Metric("output_tokens")),
        ("answers", Metric("output_tokens")),
        ("output tokens", Metric("output_tokens")),
        ("output length", Metric("output_tokens")),
        ("requests", Metric("requests")),
        ("prompts", Metric("requests")),
        ("concurrency", Metric("concurrency")),
        ("mean concurrency", Metric("concurrency_mean")),
        ("peak concurrency", Metric("concurrency_peak")),
        ("error rate", Metric("error_rate")),
        ("errors", Metric("error_rate")),
        ("goodput", Metric("goodput")),
        ("cached share", Metric("cached_share")),
        ("sweet spot", SweetSpot),
        ("interactive sweet spot", SweetSpot),
        ("use", Advice),
        ("choose", Advice),
        ("prefer", Advice),
        ("mean", Statistic("mean")),
        ("average", Statistic("mean")),
        ("median", Statistic("p50")),
        ("p50", Statistic("p50")),
        ("p90", Statistic("p90")),
        ("p95", Statistic("p95")),
        ("p99", Statistic("p99")),
        ("max", Statistic("max")),
        ("maximum", Statistic("max")),
        ("higher", Compare(More)),
        ("greater", Compare(More)),
        ("larger", Compare(More)),
        ("longer", Compare(More)),
        ("as high as", Than),
        ("as long as", Than),
        ("as large as", Than),
        ("as much as", Than),
        ("lower", Compare(Less)),
        ("smaller", Compare(Less)),
        ("shorter", Compare(Less)),
        ("less", Compare(Less)),
        ("faster", Compare(Better)),
        ("better", Compare(Better)),
        ("slower", Compare(Worse)),
        ("worse", Compare(Worse)),
        ("exceeds", Exceed(More)),
        ("exceed", Exceed(More)),
        ("above", Exceed(More)),
        ("below", Exceed(Less)),
        ("than", Than),
        ("rises", Trend(More)),
        ("rise", Trend(More)),
        ("rose", Trend(More)),
        ("grows", Trend(More)),
        ("grow", Trend(More)),
        ("increases", Trend(More)),
        ("increase", Trend(More)),
        ("increased", Trend(More)),
        ("scales", Trend(More)),
        ("climbs", Trend(More)),
        ("falls", Trend(Less)),
        ("fall", Trend(Less)),
        ("fell", Trend(Less)),
        ("drops", Trend(Less)),
        ("drop", Trend(Less)),
        ("decreases", Trend(Less)),
        ("decrease", Trend(Less)),
        ("decreased", Trend(Less)),
        ("declines", Trend(Less)),
        ("shrinks", Trend(Less)),
        ("improves", Trend(Better)),
        ("degrades", Trend(Worse)),
        ("doubles", Multiply(2.0)),
        ("triples", Multiply(3.0)),
        ("quadruples", Multiply(4.0)),
        ("halves", Multiply(0.5)),
        ("twice", Times(2.0)),
        ("double", Times(2.0)),
        ("triple", Times(3.0)),
        ("half", Times(0.5)),
        ("highest", Extreme(More)),
        ("largest", Extreme(More)),
        ("longest", Extreme(More)),
        ("peaks", Extreme(More)),
        ("lowest", Extreme(Less)),
        ("smallest", Extreme(Less)),
        ("shortest", Extreme(Less)),
        ("best", Extreme(Better)),
        ("fastest", Extreme(Better)),
        ("worst", Extreme(Worse)),
        ("slowest", Extreme(Worse)),
        ("equal", Same(IDENTICAL)),
        ("equals", Same(IDENTICAL)),
        ("identical", Same(IDENTICAL)),
        ("same", Same(IDENTICAL)),
        ("nearly equal", Same(CLOSE)),
        ("nearly identical", Same(CLOSE)),
        ("almost equal", Same(CLOSE)),
        ("almost identical", Same(CLOSE)),
        ("nearly the same", Same(CLOSE)),
        ("almost the same", Same(CLOSE)),
        ("close", Same(CLOSE)),
        ("very close", Same(CLOSE)),
        ("similar", Same(SIMILAR)),
        ("stable", Steady),
        ("steady", Steady),
        ("consistent", Steady),
        ("high", Level(Lev::High)),
        ("large", Level(Lev::High)),
        ("long", Level(Lev::High)),
        ("elevated", Level(Lev::High)),
        ("low", Level(Lev::Low)),
        ("small", Level(Lev::Low)),
        ("short", Level(Lev::Low)),
        ("minimal", Level(Lev::Low)),
        ("moderate", Level(Lev::Middle)),
        ("fast", Level(Lev::Good)),
        ("slow", Level(Lev::Bad)),
        ("much", Strength(Force::Much)),
        ("far", Strength(Force::Much)),
        ("very", Strength(Force::Much)),
        ("extremely", Strength(Force::Much)),
        ("significantly", Strength(Force::Much)),
        ("substantially", Strength(Force::Much)),
        ("considerably", Strength(Force::Much)),
        ("slightly", Strength(Force::Slightly)),
        ("a little", Strength(Force::Slightly)),
        ("gap", Gap),
        ("gaps", Gap),
        ("difference", Gap),
        ("from", From),
        ("to", To),
        ("with concurrency", AlongConcurrency),
        ("with rising concurrency", AlongConcurrency),
        ("with increasing concurrency", AlongConcurrency),
        ("with higher concurrency", AlongConcurrency),
        ("as concurrency rises", AlongConcurrency),
        ("as concurrency grows", AlongConcurrency),
        ("as concurrency increases", AlongConcurrency),
        ("when concurrency rises", AlongConcurrency),
        (";", Break),
        ("while", Break),
        ("whereas", Break),
        ("but", Break),
        ("although", Break),
        ("(", Open),
        (")", Close),
        ("/", Filler),
        (",", Filler),
        (":", Filler),
        ("a", Filler),
        ("an", Filler),
        ("the", Filler),
        ("and", Filler),
        ("both", Filler),
        ("is", Filler),
        ("are", Filler),
        ("was", Filler),
        ("were", Filler),
        ("be", Filler),
        ("has", Filler),
        ("have", Filler),
        ("had", Filler),
        ("shows", Filler),
        ("lies", Filler),
        ("reaches", Filler),
        ("reached", Filler),
        ("achieves", Filler),
        ("stays", Filler),
        ("remains", Filler),
        ("measured", Filler),
        ("at", Filler),
        ("in", Filler),
        ("on", Filler),
        ("of", Filler),
        ("for", Filler),
        ("by", Filler),
        ("with", Filler),
        ("across", Filler),
        ("across percentiles", Filler),
        ("between", Filler),
        ("there", Filler),
        ("it", Filler),
        ("its", Filler),
        ("this", Filler),
        ("that", Filler),
        ("just", Filler),
        ("also", Filler),
        ("relatively", Filler),
        ("scenario", Filler),
        ("level", Filler),
        ("value", Filler),
        ("values", Filler),
        ("model", Filler),
        ("server", Filler),
        ("system", Filler),
        ("derived", Filler),
    ]
};

/// Equal but for what rounding and chance do.
pub(super) const IDENTICAL: f64 = 1.02;
pub(super) const CLOSE: f64 = 1.05;
pub(super) const SIMILAR: f64 = 1.10;
