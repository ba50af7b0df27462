//! The same figures for each turn of the conversations, and for each part of a mix.

use std::collections::BTreeMap;

use inferometer_model::spec::Source;
use inferometer_model::{Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::metric::{ByMetric, METRICS, Metric};
use crate::record::{InputTokens, RequestLatencies};
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

/// What grows while the records are read; `None` where a run has no such groups.
#[derive(Debug)]
pub(crate) struct Groups {
    turns: Option<BTreeMap<u16, Group>>,
    parts: Option<BTreeMap<u16, Group>>,
    names: Vec<String>,
}

#[derive(Debug, Default)]
struct Group {
    requests: u64,
    ok: u64,
    /// Latencies of the answers.
    answers: Vec<RequestLatencies>,
    input_reported: u64,
    input_tokens: u128,
    cached: Option<u128>,
}

impl Groups {
    pub(crate) fn new(observations: &Observations) -> Self {
        let records = &observations.records;
        let has_turns = records.iter().any(|record| 0 < record.asked.turn);
        // A saved plan does not say what its parts were called.
        let has_parts = records.iter().any(|record| 0 < record.asked.part);
        let source = &observations.manifest.spec.workload.source;
        let (is_mix, names): (bool, Vec<String>) = match source {
            Source::Mix(parts) => (true, parts.iter().map(|part| part.name.clone()).collect()),
            Source::Synthetic(_)
            | Source::VllmRandom(_)
            | Source::Dataset(_)
            | Source::Fixed(_)
            | Source::Trace(_)
            | Source::Conversations(_)
            | Source::Saved { .. } => (false, Vec::new()),
        };
        // A part that got no request at all should be seen.
        let every_part = || (0..).zip(&names).map(|(place, _)| (place, Group::default())).collect();
        Self {
            turns: has_turns.then(BTreeMap::new),
            parts: (is_mix || has_parts).then(every_part),
            names,
        }
    }

    pub(crate) fn add_attempt(&mut self, record: &RequestRecord) {
        for group in self.of(record) {
            group.requests += 1;
            group.ok += u64::from(record.ending.outcome == Outcome::Ok);
        }
    }

    pub(crate) fn add_ok(&mut self, record: &RequestRecord, answer: &RequestLatencies) {
        for group in self.of(record) {
            group.add_ok(record, answer);
        }
    }

    /// The groups that a request belongs to.
    fn of(&mut self, record: &RequestRecord) -> impl Iterator<Item = &mut Group> {
        let turn = record.asked.turn.min(TURNS_LISTED);
        let turns = self.turns.as_mut().map(|turns| turns.entry(turn).or_default());
        let part = record.asked.part;
        let parts = self.parts.as_mut().map(|parts| parts.entry(part).or_default());
        turns.into_iter().chain(parts)
    }

    pub(crate) fn finish(self) -> (Vec<TurnFigures>, Vec<PartFigures>) {
        let turns = self.turns.into_iter().flatten().map(|(turn, group)| TurnFigures {
            turn: u32::from(turn) + 1,
            and_later: turn == TURNS_LISTED,
            figures: group.finish(),
        });
        let names = self.names;
        let parts = self.parts.into_iter().flatten().map(|(part, group)| PartFigures {
            part: names
                .get(usize::from(part))
                .cloned()
                .unwrap_or_else(|| format!("part {}", u32::from(part) + 1)),
            figures: group.finish(),
        });
        (turns.collect(), parts.collect())
    }
}

impl Group {
    fn add_ok(&mut self, record: &RequestRecord, answer: &RequestLatencies) {
        self.answers.push(*answer);
        let input = InputTokens::from_record(record);
        if !input.reported {
            return;
        }
        self.input_reported += 1;
        self.input_tokens += u128::from(input.count);
        if let Some(cached) = record.usage.and_then(|usage| usage.cached_tokens) {
            *self.cached.get_or_insert(0) += u128::from(cached);
        }
    }

    fn finish(self) -> GroupFigures {
        let input_tokens = self.input_tokens as f64;
        let latency = |metric: &'static Metric| {
            metric.per_request().filter(|latency| latency.in_groups)?;
            let values = self.answers.iter().filter_map(|answer| answer.get(metric)).collect();
            Some((metric, Figures::from_values(values)))
        };
        GroupFigures {
            requests: self.requests,
            ok: self.ok,
            latencies: METRICS.iter().copied().filter_map(latency).collect(),
            input_tokens_mean: (0 < self.input_reported)
                .then(|| input_tokens / self.input_reported as f64),
            cached_share: self.cached.map(|cached| cached as f64 / input_tokens),
        }
    }
}

#[cfg(test)]
mod tests;
