//! The account of a run's requests while its journal is read: who started, who ended, who never
//! left. Every request must be accounted for exactly once before the run becomes `Observations`.

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::ops::Range;

use inferometer_model::journal::{NotSent, StartedRequest};
use inferometer_model::observations::SumError;
use inferometer_model::plan::Bounds;
use inferometer_model::{
    JournalEntry, Manifest, Moment, Observations, RequestId, RequestRecord, RunEnding,
};

use crate::error::StoreError;
use crate::journal::JournalReader;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("request {0} was started and has no ending")]
    NoEnding(RequestId),
    #[error("request {0} is reported as not sent more than once")]
    NotSentTwice(RequestId),
    #[error("the journal speaks of request {id}, but the plan has {requests} requests")]
    BeyondPlan { id: RequestId, requests: u64 },
    #[error(transparent)]
    Sum(#[from] SumError),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    started: Vec<StartedRequest>,
    records: Vec<RequestRecord>,
    not_sent: Vec<NotSent>,
    ending: Option<RunEnding>,
    /// The latest moment that the journal speaks of.
    last: Moment,
}

impl Ledger {
    pub(crate) fn read(reader: &mut JournalReader<impl Read + Seek>) -> Result<Self, StoreError> {
        let mut ledger = Self::default();
        for entry in reader {
            ledger.note(entry?);
        }
        Ok(ledger)
    }

    /// A later ending of the run replaces an earlier one: `recover` may have had to add entries
    /// to a finished journal that was damaged.
    pub(crate) fn note(&mut self, entry: JournalEntry) {
        let at = match entry {
            JournalEntry::Started(started) => {
                self.started.push(started);
                started.admitted
            }
            JournalEntry::Ended(record) => {
                let at = record.ending.at;
                self.records.push(*record);
                at
            }
            JournalEntry::NotSent(part) => {
                self.not_sent.push(part);
                part.at
            }
            JournalEntry::RunEnded(ending) => {
                let at = ending.at;
                self.ending = Some(ending);
                at
            }
        };
        self.last = self.last.max(at);
    }

    pub(crate) fn ending(&self) -> Option<&RunEnding> {
        self.ending.as_ref()
    }

    pub(crate) fn last(&self) -> Moment {
        self.last
    }

    /// The requests that were started, and the records that there are.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.started.len() as u64, self.records.len() as u64)
    }

    /// Requests that were started and have no ending, in the order of their ids. A started request
    /// may turn out not to be sent: this machine may have no port or descriptor left for it.
    pub(crate) fn without_record(&self) -> Vec<StartedRequest> {
        let mut seen: BTreeSet<RequestId> = self.records.iter().map(|record| record.id).collect();
        let is_not_sent = |id: RequestId| {
            let covers = |part: &&NotSent| {
                id.0.checked_sub(part.first.0).is_some_and(|place| place < part.count)
            };
            self.not_sent.iter().find(covers).is_some()
        };
        let mut open: Vec<StartedRequest> = self
            .started
            .iter()
            .filter(|started| seen.insert(started.id) && !is_not_sent(started.id))
            .copied()
            .collect();
        open.sort_by_key(|started| started.id);
        open
    }

    /// Ranges of ids that the plan has and the journal does not speak of. A plan without a number
    /// reaches to the last request that the journal speaks of, and at least to its least number.
    pub(crate) fn unmentioned(&self, bounds: &Bounds) -> Result<Vec<Range<u64>>, LedgerError> {
        let records = self.records.iter().map(|record| span(record.id, 1));
        let started = self.started.iter().map(|started| span(started.id, 1));
        let not_sent = self.not_sent.iter().map(|part| span(part.first, part.count));
        let mut mentioned: Vec<Range<u64>> =
            records.chain(started).chain(not_sent).collect::<Result<_, _>>()?;
        mentioned.sort_by_key(|span| span.start);
        let mut gaps = Vec::new();
        let mut next = 0;
        for span in mentioned {
            if next < span.start {
                gaps.push(next..span.start);
            }
            next = next.max(span.end);
        }
        if next < bounds.scheduled_min() {
            gaps.push(next..bounds.scheduled_min());
        }
        Ok(gaps)
    }

    /// Checks that every request is accounted for exactly once.
    pub(crate) fn close(
        self,
        manifest: Manifest,
        ending: RunEnding,
    ) -> Result<Observations, LedgerError> {
        self.check_ids(&manifest.bounds)?;
        if let Some(open) = self.without_record().first() {
            return Err(LedgerError::NoEnding(open.id));
        }
        Ok(Observations::new(manifest, self.records, self.not_sent, ending)?)
    }

    /// Checks what `Observations` takes for granted: ids that lie in the plan, and ranges that do
    /// not overlap.
    fn check_ids(&self, bounds: &Bounds) -> Result<(), LedgerError> {
        let mut not_sent: Vec<Range<u64>> = self
            .not_sent
            .iter()
            .map(|part| span(part.first, part.count))
            .collect::<Result<_, _>>()?;
        not_sent.retain(|span| !span.is_empty());
        not_sent.sort_by_key(|span| span.start);
        for pair in not_sent.windows(2) {
            if pair[1].start < pair[0].end {
                return Err(LedgerError::NotSentTwice(RequestId(pair[1].start)));
            }
        }
        let records = self.records.iter().map(|record| span(record.id, 1));
        let requests = bounds.requests.unwrap_or(u64::MAX);
        for span in records.chain(not_sent.into_iter().map(Ok)) {
            let end = span?.end;
            if requests < end {
                return Err(LedgerError::BeyondPlan { id: RequestId(end - 1), requests });
            }
        }
        Ok(())
    }
}

/// The ids from `first` on. Ids are below `u64::MAX`, so that ends of ranges exist.
fn span(first: RequestId, count: u64) -> Result<Range<u64>, LedgerError> {
    match first.0.checked_add(count) {
        Some(end) => Ok(first.0..end),
        None => Err(LedgerError::BeyondPlan { id: first, requests: u64::MAX }),
    }
}
