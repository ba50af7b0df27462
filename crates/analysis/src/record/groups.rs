//! Requests in groups: by the turn of their conversation, by the part of a mix, and by how they ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use inferometer_model::journal::NotSent;
use inferometer_model::observations::Manifest;
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::record::{FinishReason, Read};
use inferometer_model::spec::Source;
use inferometer_model::{Moment, Outcome, RequestId, RequestRecord, Spec};
use serde::{Deserialize, Serialize};

use crate::metric::{ByMetric, METRICS, Metric};
use crate::record::{
    Arrival, Attempt, Attempts, Flight, Output, OutputTokens, TokenSource, max_tokens, moment_to_ms,
};
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
    /// Share of these input tokens from the prefix cache; null when the server does not report it.
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
    pub(crate) fn from_values(values: Vec<f64>) -> Self {
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

/// Counts of the turns of conversations and of the parts of a mix, while the records are read.
#[derive(Debug, Default)]
pub(crate) struct GroupTallies {
    turns: BTreeMap<u16, GroupTally>,
    parts: BTreeMap<u16, GroupTally>,
    servers: BTreeMap<u16, GroupTally>,
}

#[derive(Clone, Copy, Debug, Default)]
struct GroupTally {
    requests: u64,
    ok: u64,
    /// Answers whose input the server counted, and its tokens.
    reported: u64,
    input_tokens: u128,
    cached_tokens: Option<u128>,
}

/// By which requests are grouped.
type GroupKey = fn(&Attempt) -> u16;

const TURN: GroupKey = |attempt| attempt.asked.turn.min(TURNS_LISTED);
const PART: GroupKey = |attempt| attempt.asked.part;
const SERVER: GroupKey = |attempt| attempt.server;

impl GroupTallies {
    pub(crate) fn add(&mut self, attempt: &Attempt) {
        self.turns.entry(TURN(attempt)).or_default().add(attempt);
        self.parts.entry(PART(attempt)).or_default().add(attempt);
        self.servers.entry(SERVER(attempt)).or_default().add(attempt);
    }

    /// The servers that requests are balanced over; empty where there is one.
    pub(crate) fn by_url(&mut self, spec: &Spec, attempts: &Attempts<'_>) -> Vec<PartFigures> {
        let urls = spec.balanced_urls();
        let mut tallies: BTreeMap<u16, GroupTally> =
            (0..).zip(&urls).map(|(number, _)| (number, GroupTally::default())).collect();
        tallies.extend(std::mem::take(&mut self.servers).into_iter().filter(|_| !urls.is_empty()));
        let figures = group_figures(&tallies, SERVER, attempts).into_values();
        let named = urls.iter().zip(figures);
        named.map(|(url, figures)| PartFigures { part: url.to_string(), figures }).collect()
    }

    /// The turns of conversations and the parts of a mix; empty where a run has none.
    pub(crate) fn finish(
        mut self,
        source: &Source,
        attempts: &Attempts<'_>,
    ) -> (Vec<TurnFigures>, Vec<PartFigures>) {
        if self.turns.keys().all(|turn| *turn == 0) {
            self.turns.clear();
        }
        // A saved plan does not say what its parts were called.
        let mut names: Vec<&str> = Vec::new();
        if let Source::Mix(mixed) = source {
            for (part, mixed) in (0..).zip(mixed) {
                names.push(&mixed.name);
                // A part that got no request at all should be seen.
                self.parts.entry(part).or_default();
            }
        } else if self.parts.keys().all(|part| *part == 0) {
            self.parts.clear();
        }
        let turn = |(turn, figures): (u16, GroupFigures)| TurnFigures {
            turn: u32::from(turn) + 1,
            and_later: turn == TURNS_LISTED,
            figures,
        };
        let part = |(part, figures): (u16, GroupFigures)| {
            let name = names.get(usize::from(part));
            let unnamed = || format!("part {}", u32::from(part) + 1);
            PartFigures { part: name.map_or_else(unnamed, ToString::to_string), figures }
        };
        let turns = group_figures(&self.turns, TURN, attempts).into_iter().map(turn);
        let parts = group_figures(&self.parts, PART, attempts).into_iter().map(part);
        (turns.collect(), parts.collect())
    }
}

/// The figures of each group. One latency is gathered after the other.
fn group_figures(
    tallies: &BTreeMap<u16, GroupTally>,
    key: GroupKey,
    attempts: &Attempts<'_>,
) -> BTreeMap<u16, GroupFigures> {
    let mut groups: BTreeMap<u16, Vec<(&'static Metric, Figures)>> =
        tallies.keys().map(|key| (*key, Vec::new())).collect();
    let in_groups = |metric: &&Metric| metric.per_request().is_some_and(|it| it.in_groups);
    for metric in METRICS.iter().copied().filter(in_groups).filter(|_| !tallies.is_empty()) {
        let mut values: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
        for attempt in attempts.iter().filter(Attempt::is_ok) {
            let value = attempt.latencies.get(metric);
            values.entry(key(&attempt)).or_default().extend(value);
        }
        for (key, figures) in &mut groups {
            let values = values.remove(key).unwrap_or_default();
            figures.push((metric, Figures::from_values(values)));
        }
    }
    let group = |(key, latencies): (u16, Vec<(&'static Metric, Figures)>)| {
        let tally = tallies.get(&key).copied().unwrap_or_default();
        let input_tokens = tally.input_tokens as f64;
        let figures = GroupFigures {
            requests: tally.requests,
            ok: tally.ok,
            latencies: latencies.into_iter().collect(),
            input_tokens_mean: (0 < tally.reported).then(|| input_tokens / tally.reported as f64),
            cached_share: tally.cached_tokens.map(|cached| cached as f64 / input_tokens),
        };
        (key, figures)
    };
    groups.into_iter().map(group).collect()
}

impl GroupTally {
    fn add(&mut self, attempt: &Attempt) {
        self.requests += 1;
        self.ok += u64::from(attempt.is_ok());
        if attempt.is_ok() && attempt.input.reported {
            self.reported += 1;
            self.input_tokens += u128::from(attempt.input.count);
            if let Some(cached) = attempt.cached {
                *self.cached_tokens.get_or_insert(0) += u128::from(cached);
            }
        }
    }
}

/// Requests that failed in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureGroup {
    pub outcome: Outcome,
    pub cause: Option<Cause>,
    /// How far they had come; null for requests that were never attempted.
    pub stage: Option<Stage>,
    /// The HTTP status, where an answer began.
    pub status: Option<u16>,
    pub count: u64,
    /// The first and the last ending, since the run's zero.
    pub first_ms: f64,
    pub last_ms: f64,
    /// The server's words in the first of them that has any. Untrusted text.
    pub example: Option<String>,
}

/// A server may fail in endless ways; a summary stays readable.
const GROUPS_MAX: usize = 20;
const FINISH_REASONS_MAX: usize = 20;
/// Stands for all finish reasons past the bound.
const OTHER_REASONS: &str = "(other)";

type FailureKey = (Outcome, Option<Cause>, Option<Stage>, Option<u16>);

/// Requests without an `ok` answer, by how they ended; each group with when its example came.
#[derive(Debug, Default)]
pub(crate) struct FailureTally(BTreeMap<FailureKey, (FailureGroup, Option<(Moment, RequestId)>)>);

impl FailureTally {
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let ending = &record.ending;
        // What the client ended itself, as it was asked to, did not fail.
        if matches!(ending.outcome, Outcome::Ok | Outcome::Abandoned) {
            return;
        }
        let status = record.head.map(|head| head.status);
        let key = (ending.outcome, ending.cause, Some(ending.stage), status);
        let (group, earliest) = self.group(key, 1, ending.at);
        // The earliest message; the id settles a tie, so that the order of records does not matter.
        if let Some(message) = &ending.message
            && earliest.is_none_or(|earliest| (ending.at, record.id) < earliest)
        {
            *earliest = Some((ending.at, record.id));
            group.example = Some(message.clone());
        }
    }

    fn group(
        &mut self,
        key: FailureKey,
        count: u64,
        at: Moment,
    ) -> &mut (FailureGroup, Option<(Moment, RequestId)>) {
        let (outcome, cause, stage, status) = key;
        let (first_ms, last_ms, example) = (moment_to_ms(at), moment_to_ms(at), None);
        let entry = self.0.entry(key).or_insert_with(|| {
            let count = 0;
            let group =
                FailureGroup { outcome, cause, stage, status, count, first_ms, last_ms, example };
            (group, None)
        });
        entry.0.count += count;
        entry.0.first_ms = entry.0.first_ms.min(first_ms);
        entry.0.last_ms = entry.0.last_ms.max(last_ms);
        entry
    }

    /// The groups with the most requests, and how many requests are in the groups left out.
    pub(crate) fn finish(mut self, not_sent: &[NotSent]) -> (Vec<FailureGroup>, u64) {
        for part in not_sent {
            let key = (Outcome::NotSent, Some(part.cause), None, None);
            self.group(key, part.count, part.at);
        }
        // The map has sorted them by their keys; the sort is stable.
        let mut groups: Vec<FailureGroup> = self.0.into_values().map(|(group, _)| group).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let not_listed = groups.iter().skip(GROUPS_MAX).map(|group| group.count).sum();
        groups.truncate(GROUPS_MAX);
        (groups, not_listed)
    }
}

pub(crate) fn count_finish_reasons(record: &RequestRecord, counts: &mut BTreeMap<String, u64>) {
    for finish in &record.finishes {
        match counts.get_mut(finish.reason.name()) {
            Some(count) => *count += 1,
            None => drop(counts.insert(finish.reason.name().to_owned(), 1)),
        }
    }
}

/// Finish reasons by how often they came. The names are the server's, so there may be any number of
/// them: past the bound the rarest are counted together.
pub(crate) fn most_frequent(counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest: u64 = counts.iter().skip(FINISH_REASONS_MAX).map(|(_, count)| count).sum();
    counts.truncate(FINISH_REASONS_MAX);
    let mut named: BTreeMap<String, u64> = counts.into_iter().collect();
    if 0 < rest {
        *named.entry(OTHER_REASONS.to_owned()).or_default() += rest;
    }
    named
}

#[derive(Debug, Default)]
pub(crate) struct Anomalies {
    /// Usage said zero tokens although there was output.
    pub(crate) zero_usage: u64,
    /// The marks of the stream do not add up to the usage.
    pub(crate) usage_mismatch: u64,
    /// Streamed answers of two tokens or more, and those of them that came in one arrival.
    pub(crate) streams: u64,
    pub(crate) streams_in_one_arrival: u64,
    /// Arrivals that were read in time, and those of them that brought several output events.
    pub(crate) arrivals: u64,
    pub(crate) arrivals_grouped: u64,
    /// Output events of the streams whose tokens only usage counts, those tokens, and how many of them
    /// the streams explain.
    pub(crate) unmarked_events: u64,
    pub(crate) unmarked_tokens: u64,
    pub(crate) explained_tokens: u64,
    /// Time from the last output of a stream to its end, and from the request to its last output.
    pub(crate) after_output: Duration,
    pub(crate) until_output: Duration,
    /// Answers whose length is off by more than [`LENGTH_TOLERANCE`] of what was asked.
    pub(crate) output_off: u64,
    pub(crate) done_seen: u64,
    pub(crate) done_missing: u64,
    pub(crate) data_after_done: u64,
    pub(crate) other_model: u64,
    /// The first of the other models by name, so that the choice does not hang on the order.
    pub(crate) other_model_name: Option<String>,
    pub(crate) stale_pool: u64,
    pub(crate) client_resource: u64,
    pub(crate) reads: u64,
    pub(crate) reads_stamped: u64,
    pub(crate) events: u64,
    /// The connections that requests had, how many had one, and how many of these found it open.
    pub(crate) connections: BTreeSet<u32>,
    pub(crate) connected: u64,
    pub(crate) reused: u64,
    /// Answers with more tokens by usage than `max_tokens` allows, and the sum of the excesses as shares.
    pub(crate) above_max: u64,
    pub(crate) above_max_by: f64,
}

/// Bytes that waited longer in the kernel may have been joined by later ones there.
const READ_IN_TIME: Duration = Duration::from_millis(1);
/// Beyond this share of the asked length an answer is of another length.
pub(crate) const LENGTH_TOLERANCE: f64 = 0.10;

/// Whether an answer has the length that was asked for. Where the data says how long its answer was, and
/// nobody made the server go on to that length, an answer that comes to its own end before it is as asked.
fn is_length_kept(manifest: &Manifest, record: &RequestRecord, tokens: OutputTokens) -> bool {
    let asked = f64::from(record.asked.output_tokens);
    let off = tokens.count as f64 - asked;
    if off.abs() <= LENGTH_TOLERANCE * asked {
        return true;
    }
    let mut source = Some(&manifest.spec.workload.source);
    if let Some(Source::Mix(parts)) = source {
        source = parts.get(usize::from(record.asked.part)).map(|part| &part.source);
    }
    let pinned = manifest.endpoint.pinned;
    let is_forced =
        source.is_none_or(Source::chooses_output) || pinned.ignore_eos || pinned.min_tokens;
    let is_end =
        |reason: &FinishReason| matches!(reason, FinishReason::Stop | FinishReason::ToolCalls);
    let came_to_its_end =
        !record.finishes.is_empty() && record.finishes.iter().all(|finish| is_end(&finish.reason));
    !is_forced && off < 0.0 && came_to_its_end
}

impl Anomalies {
    /// On a request that ended in any way.
    pub(crate) fn add_attempt(&mut self, record: &RequestRecord) {
        self.reads += record.reads.len() as u64;
        self.events += record.events.len() as u64;
        if let Some(connection) = &record.connection {
            self.connections.insert(connection.ordinal);
            self.connected += 1;
            self.reused += u64::from(connection.reused);
        }
        self.reads_stamped +=
            record.reads.iter().filter(|read| read.kernel.is_some()).count() as u64;
        self.stale_pool += u64::from(record.ending.cause == Some(Cause::StalePool));
        self.client_resource += u64::from(record.ending.cause == Some(Cause::ClientResource));
        self.data_after_done += u64::from(0 < record.done.events_after);
        if let Some(name) = &record.other_model {
            self.other_model += 1;
            if self.other_model_name.as_ref().is_none_or(|least| name < least) {
                self.other_model_name = Some(name.clone());
            }
        }
    }

    /// On an answer that is whole.
    pub(crate) fn add_ok(
        &mut self,
        manifest: &Manifest,
        record: &RequestRecord,
        output: &Output,
        tokens: OutputTokens,
    ) {
        self.zero_usage += u64::from(tokens.zero_usage);
        let limit = max_tokens(record) as f64;
        let reported = record.usage.and_then(|usage| usage.completion_tokens);
        if let Some(reported) = reported.map(|count| count as f64).filter(|it| limit < *it) {
            self.above_max += 1;
            self.above_max_by += reported / limit.max(1.0) - 1.0;
        }
        // An unbelieved zero has been counted already.
        if tokens.source == TokenSource::Usage
            && let Some(marked) = output.marked_tokens()
        {
            self.usage_mismatch += u64::from(tokens.count != marked);
        }
        let has_length = manifest.spec.api.generates();
        self.output_off += u64::from(has_length && !is_length_kept(manifest, record, tokens));
        if manifest.spec.workload.streaming {
            self.done_seen += u64::from(record.done.seen);
            self.done_missing += u64::from(!record.done.seen);
            if 2 <= tokens.count && !output.arrivals.is_empty() {
                self.streams += 1;
                self.streams_in_one_arrival += u64::from(output.arrivals.len() == 1);
            }
            self.add_stream(record, output, tokens);
        }
    }

    fn add_stream(&mut self, record: &RequestRecord, output: &Output, tokens: OutputTokens) {
        // What the client read late is grouped by the client.
        let lag = |read: &Read| read.user.since(read.at()).unwrap_or_default();
        let in_time = |arrival: &&Arrival| {
            record.reads.get(arrival.read).is_some_and(|read| lag(read) <= READ_IN_TIME)
        };
        for arrival in output.arrivals.iter().filter(in_time) {
            self.arrivals += 1;
            self.arrivals_grouped += u64::from(1 < arrival.events);
        }
        if tokens.source == TokenSource::Usage && output.marked_tokens().is_none() {
            self.unmarked_events += output.events;
            self.unmarked_tokens = self.unmarked_tokens.saturating_add(tokens.count);
            self.explained_tokens += output.tokens_at_most(record).min(tokens.count);
        }
        if let Some(wire) = Flight::on_the_wire(record)
            && let Some(last) = output.arrivals.last().map(|arrival| arrival.at.as_nanos())
        {
            self.after_output += Duration::from_nanos(wire.to_ns.saturating_sub(last));
            self.until_output += Duration::from_nanos(last.saturating_sub(wire.from_ns));
        }
    }
}

#[cfg(test)]
mod tests;
