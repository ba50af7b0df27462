//! Requests to be drawn one by one: some that failed, the slowest, and some of the others.

use std::collections::BTreeMap;

use inferometer_model::record::Read;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::arrivals::Output;
use crate::measured::in_time_order;
use crate::ruler::{Ruler, moment_to_ms};
use crate::tokens::OutputTokens;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsFigure {
    /// In the order in which they were sent.
    pub rows: Vec<RequestRow>,
    /// Requests that the rows are a choice of.
    pub of: u64,
}

/// One request. Moments are since the run's zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRow {
    pub id: u64,
    pub why: RowReason,
    pub outcome: Outcome,
    pub intended_ms: f64,
    /// Null where it never left, as when no connection was made.
    pub sent_ms: Option<f64>,
    /// Null where no token came, or the answer came whole.
    pub first_ms: Option<f64>,
    pub ended_ms: f64,
    /// Null where nothing says how many came.
    pub output_tokens: Option<u64>,
}

/// Why a request is among the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowReason {
    Slowest,
    Failed,
    /// Evenly spread over the others.
    Sample,
}

const ROWS_MAX: usize = 40;
const FAILED_MAX: usize = 14;
const SLOWEST_E2E: usize = 7;
const SLOWEST_TTFT: usize = 5;

impl RequestsFigure {
    pub(super) fn of(observations: &Observations) -> Self {
        let records = in_time_order(observations);
        let spec = &observations.manifest.spec;
        let drawing =
            Drawing { streaming: spec.workload.streaming, generates: spec.api.generates() };
        let rows = drawing.choice(&records).into_iter();
        Self {
            rows: rows.map(|(place, why)| drawing.row(records[place], why)).collect(),
            of: records.len() as u64,
        }
    }
}

struct Drawing {
    streaming: bool,
    generates: bool,
}

impl Drawing {
    /// Places among the records, in their order, and why each was chosen.
    fn choice(&self, records: &[&RequestRecord]) -> BTreeMap<usize, RowReason> {
        let mut chosen = BTreeMap::new();
        chosen.extend(failed(records).into_iter().map(|place| (place, RowReason::Failed)));
        let slowest = |latency: &dyn Fn(&RequestRecord) -> Option<u64>, count| {
            slowest(records, latency, count).into_iter().map(|place| (place, RowReason::Slowest))
        };
        chosen.extend(slowest(&e2e_ns, SLOWEST_E2E));
        chosen.extend(slowest(&|record| self.ttft_ns(record), SLOWEST_TTFT));
        let others: Vec<usize> =
            (0..records.len()).filter(|place| !chosen.contains_key(place)).collect();
        let room = ROWS_MAX - chosen.len();
        chosen.extend(evenly(&others, room).map(|place| (place, RowReason::Sample)));
        chosen
    }

    /// When the first output came, where that is to be seen.
    fn first(&self, record: &RequestRecord) -> Option<Moment> {
        let streamed = self.streaming && record.head.is_none_or(|head| head.streamed);
        arrivals(record).next().filter(|_| streamed)
    }

    fn ttft_ns(&self, record: &RequestRecord) -> Option<u64> {
        self.first(record)?.as_nanos().checked_sub(record.sent?.as_nanos())
    }

    fn row(&self, record: &RequestRecord, why: RowReason) -> RequestRow {
        let mut output = Output::default();
        output.read(record, &mut Ruler::new(0));
        let said = 0 < output.events || record.usage.is_some_and(|u| u.completion_tokens.is_some());
        let counted = || OutputTokens::of(record, &output).count;
        RequestRow {
            id: record.id.0,
            why,
            outcome: record.ending.outcome,
            intended_ms: moment_to_ms(record.intended),
            sent_ms: record.sent.map(moment_to_ms),
            first_ms: self.first(record).map(moment_to_ms),
            ended_ms: moment_to_ms(record.ending.at),
            output_tokens: (self.generates && said).then(counted),
        }
    }
}

/// When the output events of a request came.
fn arrivals(record: &RequestRecord) -> impl DoubleEndedIterator<Item = Moment> {
    let output = record.events.iter().filter(|event| event.is_output());
    output.filter_map(|event| record.reads.get(event.read as usize).map(Read::at))
}

fn e2e_ns(record: &RequestRecord) -> Option<u64> {
    arrivals(record).next_back()?.as_nanos().checked_sub(record.sent?.as_nanos())
}

/// The slowest of the ok ones, by a latency; of equally slow ones the first.
fn slowest(
    records: &[&RequestRecord],
    latency: impl Fn(&RequestRecord) -> Option<u64>,
    count: usize,
) -> Vec<usize> {
    let ok = |record: &RequestRecord| record.ending.outcome == Outcome::Ok;
    let mut ranked: Vec<(u64, usize)> = (0..records.len())
        .filter(|place| ok(records[*place]))
        .filter_map(|place| Some((latency(records[place])?, place)))
        .collect();
    ranked.sort_unstable_by_key(|(latency, place)| (std::cmp::Reverse(*latency), *place));
    ranked.into_iter().take(count).map(|(_, place)| place).collect()
}

/// Some of each way to fail, evenly spread over the run: a rare way is not crowded out by a common
/// one.
fn failed(records: &[&RequestRecord]) -> Vec<usize> {
    let mut by_outcome: BTreeMap<Outcome, Vec<usize>> = BTreeMap::new();
    for (place, record) in records.iter().enumerate() {
        if record.ending.outcome != Outcome::Ok {
            by_outcome.entry(record.ending.outcome).or_default().push(place);
        }
    }
    let mut smallest_first: Vec<Vec<usize>> = by_outcome.into_values().collect();
    smallest_first.sort_by_key(Vec::len);
    let mut room = FAILED_MAX;
    let mut left = smallest_first.len();
    let mut chosen = Vec::new();
    for places in smallest_first {
        let share = places.len().min(room.div_ceil(left));
        chosen.extend(evenly(&places, share));
        room -= share;
        left -= 1;
    }
    chosen
}

/// At most so many of the places, each from the middle of an equal stretch of them.
fn evenly(places: &[usize], count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(places.len());
    (0..count).map(move |part| places[(2 * part + 1) * places.len() / (2 * count)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Given, calm_record, run};

    fn reasons(figure: &RequestsFigure, why: RowReason) -> usize {
        figure.rows.iter().filter(|row| row.why == why).count()
    }

    #[test]
    fn a_rare_failure_is_drawn_beside_a_common_one() {
        let common = |id| Given::failed(id, Outcome::Rejected).moments(id, id, id).ends(id + 1);
        let mut records: Vec<RequestRecord> = (0..500).map(|id| common(id).record()).collect();
        records[77] = Given::failed(77, Outcome::TimeoutIdle).moments(77, 77, 77).record();
        let figure = RequestsFigure::of(&run(records));
        assert_eq!((figure.of, figure.rows.len()), (500, ROWS_MAX));
        assert_eq!(reasons(&figure, RowReason::Failed), FAILED_MAX);
        assert_eq!(reasons(&figure, RowReason::Slowest), 0);
        let rare: Vec<_> =
            figure.rows.iter().filter(|row| row.outcome == Outcome::TimeoutIdle).collect();
        assert_eq!((rare.len(), rare[0].id, rare[0].why), (1, 77, RowReason::Failed));
    }

    #[test]
    fn the_slowest_by_either_latency_are_drawn() {
        let mut records: Vec<RequestRecord> = (0..300).map(calm_record).collect();
        let late_first = Given::ok(150).moments(15_000, 15_000, 15_000).arrival(15_115, &[Some(1)]);
        records[150] = late_first.record();
        let late_end = Given::ok(30).moments(3_000, 3_000, 3_000).arrival(3_010, &[Some(1)]);
        records[30] = late_end.arrival(3_900, &[Some(1)]).record();
        let figure = RequestsFigure::of(&run(records));
        assert_eq!(figure.rows.len(), ROWS_MAX);
        for id in [30, 150] {
            let row = figure.rows.iter().find(|row| row.id == id).unwrap();
            assert_eq!(row.why, RowReason::Slowest);
        }
        assert!(figure.rows.is_sorted_by_key(|row| row.sent_ms.unwrap()));
        // The sample reaches over the whole run.
        let sampled: Vec<u64> =
            figure.rows.iter().filter(|row| row.why == RowReason::Sample).map(|r| r.id).collect();
        assert!(sampled[0] < 30 && 270 < sampled[sampled.len() - 1], "{sampled:?}");
    }

    #[test]
    fn what_is_not_known_of_a_request_is_null() {
        let mut refused = Given::failed(0, Outcome::TransportError).ends(5).record();
        refused.sent = None;
        let cut = Given::failed(1, Outcome::Cancelled).moments(2, 3, 4).arrival(9, &[Some(2)]);
        let figure = RequestsFigure::of(&run(vec![refused, cut.ends(12).record()]));
        let [refused, cut] = figure.rows.as_slice() else { panic!("two rows") };
        assert_eq!((refused.sent_ms, refused.first_ms), (None, None));
        assert_eq!((refused.ended_ms, refused.output_tokens), (5.0, None));
        assert_eq!((cut.intended_ms, cut.sent_ms, cut.first_ms), (2.0, Some(4.0), Some(9.0)));
        assert_eq!((cut.ended_ms, cut.output_tokens), (12.0, Some(2)));
        assert_eq!((cut.outcome, cut.why), (Outcome::Cancelled, RowReason::Failed));
    }

    #[test]
    fn the_first_token_of_an_answer_that_comes_whole_is_not_seen() {
        let mut observations = run(vec![calm_record(0)]);
        observations.manifest.spec.workload.streaming = false;
        assert_eq!(RequestsFigure::of(&observations).rows[0].first_ms, None);
    }

    #[test]
    fn places_are_spread_evenly_and_none_is_taken_twice() {
        let places: Vec<usize> = (0..10).collect();
        assert_eq!(evenly(&places, 2).collect::<Vec<_>>(), [2, 7]);
        assert_eq!(evenly(&places, 30).collect::<Vec<_>>(), places);
        assert_eq!(evenly(&[], 3).count(), 0);
    }
}
