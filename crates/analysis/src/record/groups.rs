//! The same figures for each turn of the conversations, and for each part of a mix.

use std::collections::BTreeMap;

use inferometer_model::RequestRecord;
use inferometer_model::spec::Source;
use serde::{Deserialize, Serialize};

use crate::metric::{ByMetric, METRICS, Metric};
use crate::record::Attempt;
use crate::statistics::{Percentile, Sample};

/// One turn of all conversations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnFigures {
    /// From one.
    pub turn: u32,
    /// Whether all later turns are in it, too.
    pub and_later: bool,
    #[serde(flatten)]
    pub figures: GroupFigures,
}

/// One part of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartFigures {
    /// As the workload names it.
    pub part: String,
    #[serde(flatten)]
    pub figures: GroupFigures,
}

/// Latencies and tokens are of `ok` requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupFigures {
    /// Attempted ones.
    pub requests: u64,
    pub ok: u64,
    #[serde(flatten)]
    pub latencies: ByMetric<Figures>,
    /// By the server's count; null when it never says.
    pub input_tokens_mean: Option<f64>,
    /// Of these input tokens, those from the prefix cache; null when the server never says.
    pub cached_share: Option<f64>,
}

/// A distribution in brief. Null without values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub n: u64,
}

/// Turns past this one are counted together with each other.
const TURNS_LISTED: u16 = 10;

impl Figures {
    fn from_values(values: Vec<f64>) -> Self {
        let sample = Sample::new(values);
        let at = |percentile| sample.as_ref().map(|sample| sample.percentile(percentile));
        Self {
            mean: sample.as_ref().map(Sample::mean),
            p50: at(Percentile::P50),
            p99: at(Percentile::P99),
            n: sample.as_ref().map_or(0, Sample::count),
        }
    }

    pub fn is_certified(&self, percentile: Percentile) -> bool {
        percentile.certified_from() <= self.n
    }
}

/// The turns of conversations and the parts of a mix; empty where a run has none.
pub(crate) fn group_figures(
    source: &Source,
    attempts: &[Attempt<'_>],
) -> (Vec<TurnFigures>, Vec<PartFigures>) {
    let grouped = |key: fn(&RequestRecord) -> u16| {
        let mut groups: BTreeMap<u16, Vec<&Attempt<'_>>> = BTreeMap::new();
        for attempt in attempts {
            groups.entry(key(attempt.record)).or_default().push(attempt);
        }
        groups
    };
    let mut turns = grouped(|record| record.asked.turn.min(TURNS_LISTED));
    if turns.keys().all(|turn| *turn == 0) {
        turns.clear();
    }
    // A saved plan does not say what its parts were called.
    let mut parts = grouped(|record| record.asked.part);
    let mut names: Vec<&str> = Vec::new();
    if let Source::Mix(mixed) = source {
        for (part, mixed) in (0..).zip(mixed) {
            names.push(&mixed.name);
            // A part that got no request at all should be seen.
            parts.entry(part).or_default();
        }
    } else if parts.keys().all(|part| *part == 0) {
        parts.clear();
    }
    let turn = |(turn, attempts): (u16, Vec<&Attempt<'_>>)| TurnFigures {
        turn: u32::from(turn) + 1,
        and_later: turn == TURNS_LISTED,
        figures: GroupFigures::from_attempts(&attempts),
    };
    let part = |(part, attempts): (u16, Vec<&Attempt<'_>>)| {
        let name = names.get(usize::from(part));
        PartFigures {
            part: name.map_or_else(|| format!("part {}", u32::from(part) + 1), ToString::to_string),
            figures: GroupFigures::from_attempts(&attempts),
        }
    };
    (turns.into_iter().map(turn).collect(), parts.into_iter().map(part).collect())
}

impl GroupFigures {
    fn from_attempts(attempts: &[&Attempt<'_>]) -> Self {
        let ok = || attempts.iter().filter(|attempt| attempt.is_ok());
        let latency = |metric: &'static Metric| {
            metric.per_request().filter(|latency| latency.in_groups)?;
            let values = ok().filter_map(|attempt| attempt.latencies.get(metric)).collect();
            Some((metric, Figures::from_values(values)))
        };
        let reported = || ok().filter(|attempt| attempt.input.reported);
        let input_tokens: u128 = reported().map(|attempt| u128::from(attempt.input.count)).sum();
        let input_tokens = input_tokens as f64;
        let cached = reported().filter_map(|attempt| attempt.record.usage?.cached_tokens);
        let cached = cached.map(u128::from).reduce(|sum, cached| sum + cached);
        let count = reported().count();
        Self {
            requests: attempts.len() as u64,
            ok: ok().count() as u64,
            latencies: METRICS.iter().copied().filter_map(latency).collect(),
            input_tokens_mean: (0 < count).then(|| input_tokens / count as f64),
            cached_share: cached.map(|cached| cached as f64 / input_tokens),
        }
    }
}

#[cfg(test)]
mod tests;
