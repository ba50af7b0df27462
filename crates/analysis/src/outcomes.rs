//! How requests ended: failures in groups, and the reasons that answers gave for ending.

use std::collections::BTreeMap;

use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::{Moment, Observations, Outcome, RequestId, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::ruler::moment_to_ms;

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

/// The groups with the most requests, and how many requests are in the groups left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failures {
    pub(crate) groups: Vec<FailureGroup>,
    pub(crate) not_listed: u64,
}

/// A server may fail in endless ways; a summary stays readable.
const GROUPS_MAX: usize = 20;
const FINISH_REASONS_MAX: usize = 20;
/// Stands for all finish reasons past the bound.
const OTHER_REASONS: &str = "(other)";

type Key = (Outcome, Option<Cause>, Option<Stage>, Option<u16>);

struct Group {
    count: u64,
    first: Moment,
    last: Moment,
    /// The earliest message; the id settles a tie, so that the order of records does not matter.
    example: Option<(Moment, RequestId, String)>,
}

impl Failures {
    pub(crate) fn of(observations: &Observations) -> Self {
        let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
        for record in &observations.records {
            if record.ending.outcome != Outcome::Ok {
                add_record(&mut groups, record);
            }
        }
        for part in &observations.not_sent {
            let key = (Outcome::NotSent, Some(part.cause), None, None);
            groups.entry(key).or_insert_with(|| Group::at(part.at)).add(part.count, part.at);
        }
        let mut groups: Vec<FailureGroup> = groups.into_iter().map(listed).collect();
        // The map has put them into the order of their keys; the sort is stable.
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let not_listed = groups.iter().skip(GROUPS_MAX).map(|group| group.count).sum();
        groups.truncate(GROUPS_MAX);
        Self { groups, not_listed }
    }
}

impl Group {
    fn at(at: Moment) -> Self {
        Self { count: 0, first: at, last: at, example: None }
    }

    fn add(&mut self, count: u64, at: Moment) {
        self.count += count;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
    }
}

fn add_record(groups: &mut BTreeMap<Key, Group>, record: &RequestRecord) {
    let ending = &record.ending;
    let status = record.head.map(|head| head.status);
    let key = (ending.outcome, ending.cause, Some(ending.stage), status);
    let group = groups.entry(key).or_insert_with(|| Group::at(ending.at));
    group.add(1, ending.at);
    let Some(message) = &ending.message else { return };
    let place = (ending.at, record.id);
    if group.example.as_ref().is_none_or(|(at, id, _)| place < (*at, *id)) {
        group.example = Some((ending.at, record.id, message.clone()));
    }
}

fn listed(((outcome, cause, stage, status), group): (Key, Group)) -> FailureGroup {
    FailureGroup {
        outcome,
        cause,
        stage,
        status,
        count: group.count,
        first_ms: moment_to_ms(group.first),
        last_ms: moment_to_ms(group.last),
        example: group.example.map(|(_, _, message)| message),
    }
}

/// How often each finish reason came, one per choice. The names are the server's, so there may be
/// any number of them: past the bound the rarest are counted together.
pub(crate) fn finish_reasons(records: &[RequestRecord]) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for finish in records.iter().flat_map(|record| &record.finishes) {
        *counts.entry(finish.reason.name()).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest: u64 = counts.iter().skip(FINISH_REASONS_MAX).map(|(_, count)| count).sum();
    counts.truncate(FINISH_REASONS_MAX);
    let mut named: BTreeMap<String, u64> =
        counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    if 0 < rest {
        *named.entry(OTHER_REASONS.to_owned()).or_default() += rest;
    }
    named
}

#[cfg(test)]
mod tests {
    use inferometer_model::journal::NotSent;
    use inferometer_model::record::{Finish, FinishReason, ResponseHead};

    use super::*;
    use crate::fixture::{Given, ms, run};

    fn refused(id: u64, status: u16, at: u64, message: &str) -> RequestRecord {
        let mut record = Given::failed(id, Outcome::HttpError).ends(at).record();
        record.head = Some(ResponseHead { status, read: 0, streamed: true });
        record.ending.message = Some(message.to_owned());
        record
    }

    #[test]
    fn failures_are_grouped_with_their_first_words_and_the_largest_group_first() {
        let observations = run(vec![
            Given::ok(0).arrival(50, &[Some(1)]).record(),
            refused(1, 400, 900, "later"),
            refused(2, 500, 300, "boom"),
            refused(3, 400, 200, "too long"),
        ]);
        let failures = Failures::of(&observations);
        assert_eq!(failures.not_listed, 0);
        assert_eq!(failures.groups.len(), 2);
        let first = &failures.groups[0];
        assert_eq!((first.status, first.count), (Some(400), 2));
        assert_eq!((first.first_ms, first.last_ms), (200.0, 900.0));
        assert_eq!(first.example.as_deref(), Some("too long"));
        assert_eq!(failures.groups[1].status, Some(500));
    }

    #[test]
    fn requests_never_sent_are_a_group_without_a_stage() {
        let mut observations = run(vec![Given::ok(0).arrival(50, &[Some(1)]).record()]);
        let part = |first, count, at| NotSent {
            first: RequestId(first),
            count,
            cause: Cause::RunStopped,
            at: ms(at),
        };
        observations.not_sent = vec![part(1, 4, 70), part(5, 1, 80)];
        let failures = Failures::of(&observations);
        let [group] = failures.groups.as_slice() else { panic!("one group") };
        assert_eq!((group.outcome, group.count, group.stage), (Outcome::NotSent, 5, None));
        assert_eq!((group.first_ms, group.last_ms), (70.0, 80.0));
    }

    #[test]
    fn more_ways_to_fail_than_a_page_holds_are_counted() {
        let records = (0..25).map(|id| refused(id, 400 + u16::try_from(id).unwrap(), 10, "x"));
        let failures = Failures::of(&run(records.collect()));
        assert_eq!(failures.groups.len(), GROUPS_MAX);
        assert_eq!(failures.not_listed, 5);
    }

    #[test]
    fn finish_reasons_are_bounded_and_none_is_lost() {
        let records: Vec<RequestRecord> = (0..30)
            .map(|id| {
                let mut record = Given::ok(id).record();
                let reason = if id < 6 { "stop".to_owned() } else { format!("odd {id:02}") };
                record.finishes = vec![Finish { choice: 0, reason: FinishReason::parse(&reason) }];
                record
            })
            .collect();
        let found = finish_reasons(&records);
        assert_eq!(found["stop"], 6);
        assert_eq!(found[OTHER_REASONS], 5);
        assert_eq!(found.values().sum::<u64>(), 30);
    }
}
