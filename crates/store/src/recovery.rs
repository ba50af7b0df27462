//! Finishing a run that died: what the journal does not tell is written down as lost.
//!
//! - The torn tail is cut off.
//! - A request that was started and has no record ends as `cancelled`.
//! - A request that the journal does not speak of was not sent, as far as can be known. In a
//!   plan without a number these are only the holes between requests that it speaks of.
//! - The run ends at the last moment that the journal speaks of, and is partial for good.
//!
//! A finished run whose journal has lost frames since is treated alike. Nothing is written before
//! the sums of the result hold, and a recovery that dies can be done again.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use inferometer_model::journal::{ClientFacts, RunStop};
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::{
    Ending, JournalEntry, Manifest, Moment, NotSent, Outcome, RequestId, RequestRecord, RunEnding,
    StartedRequest,
};

use crate::directory::{RunDirectory, StoredRun};
use crate::error::StoreError;
use crate::files;
use crate::journal::{Integrity, Tail};
use crate::ledger::{Ledger, LedgerError};
use crate::writer::JournalWriter;

/// What a recovery did.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    pub run: StoredRun,
    /// Bytes of a torn frame that were cut off.
    pub cut_bytes: u64,
    /// Requests that were in flight, as far as the journal knows.
    pub cancelled: u64,
    /// Requests that the journal did not speak of.
    pub not_sent: u64,
}

/// The entries that a journal lacks.
#[derive(Clone, Debug)]
struct Lost {
    records: Vec<RequestRecord>,
    not_sent: Vec<JournalEntry>,
    not_sent_count: u64,
}

impl RunDirectory {
    /// Finishes a run that died. Fails with `Busy` while the run is alive, and with
    /// `AlreadyFinished` when nothing is missing.
    pub fn recover(&self) -> Result<Recovery, StoreError> {
        let manifest = self.manifest()?;
        let sealed = self.has_summary();
        let journal = files::open_locked(self.journal_path(), self.path())?;
        let (mut ledger, mut integrity) = self.read_journal()?;
        if sealed && ledger.ending().is_none() {
            return Err(StoreError::JournalLost { run: self.path().to_owned() });
        }
        let lost =
            Lost::find(&ledger, &manifest).map_err(|error| self.inconsistent(error, &integrity))?;
        let earlier = ledger.ending().cloned();
        if let Some(ending) = earlier.clone().filter(|_ending| lost.is_empty()) {
            return match ledger.close(manifest, ending) {
                Ok(_whole) if integrity.tail == Tail::Clean => {
                    Err(StoreError::AlreadyFinished { run: self.path().to_owned() })
                }
                // Whole, with bytes behind its end that are no entry: they are cut off.
                Ok(observations) => {
                    let cut_bytes = self.cut_and_append(journal, integrity.tail, &[])?;
                    integrity.tail = Tail::Clean;
                    let observations = self.with_telemetry(observations);
                    let run = StoredRun { observations, integrity, sealed };
                    Ok(Recovery { run, cut_bytes, cancelled: 0, not_sent: 0 })
                }
                Err(error) => Err(self.inconsistent(error, &integrity)),
            };
        }

        let (cancelled, not_sent) = (lost.records.len() as u64, lost.not_sent_count);
        let drivers = manifest.spec.client.drivers.get();
        let ending = recovered_ending(earlier.as_ref(), ledger.last(), drivers);
        let entries = lost.into_entries(ending.clone(), earlier.is_some());
        for entry in &entries {
            ledger.note(entry.clone());
        }
        let observations =
            ledger.close(manifest, ending).map_err(|error| self.inconsistent(error, &integrity))?;

        let cut_bytes = self.cut_and_append(journal, integrity.tail, &entries)?;
        self.remove_summary()?;
        integrity.tail = Tail::Clean;
        let observations = self.with_telemetry(observations);
        let run = StoredRun { observations, integrity, sealed: false };
        Ok(Recovery { run, cut_bytes, cancelled, not_sent })
    }

    fn cut_and_append(
        &self,
        mut journal: File,
        tail: Tail,
        entries: &[JournalEntry],
    ) -> Result<u64, StoreError> {
        let path = self.journal_path();
        let cut = match tail {
            Tail::Clean => Ok(0),
            Tail::Torn { at, bytes } => journal.set_len(at).map(|()| bytes),
        };
        let placed = cut.and_then(|cut| Ok((cut, journal.seek(SeekFrom::End(0))?)));
        let (cut_bytes, end) = match placed {
            Ok(placed) => placed,
            Err(error) => return Err(StoreError::Write { path, error }),
        };
        let mut writer = if end == 0 {
            JournalWriter::new(journal, path.clone())
        } else {
            JournalWriter::resume(journal, path.clone(), end)
        };
        for entry in entries {
            writer.append(entry)?;
        }
        writer.sync()?;
        files::sync_parent(&path).map_err(|error| StoreError::NotDurable { path, error })?;
        Ok(cut_bytes)
    }

    fn inconsistent(&self, error: LedgerError, integrity: &Integrity) -> StoreError {
        StoreError::Inconsistent {
            path: self.journal_path(),
            error,
            integrity: Box::new(integrity.clone()),
        }
    }
}

impl Lost {
    fn find(ledger: &Ledger, manifest: &Manifest) -> Result<Self, LedgerError> {
        let at = ledger.last();
        let open = ledger.without_record();
        let records = open.iter().map(|started| cancelled_record(started, at)).collect();
        let gaps = ledger.unmentioned(&manifest.bounds)?;
        let not_sent_count = gaps.iter().map(|gap| gap.end - gap.start).sum();
        let not_sent = gaps
            .into_iter()
            .map(|gap| {
                JournalEntry::NotSent(NotSent {
                    first: RequestId(gap.start),
                    count: gap.end - gap.start,
                    cause: Cause::RunCrashed,
                    at,
                })
            })
            .collect();
        Ok(Self { records, not_sent, not_sent_count })
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.not_sent.is_empty()
    }

    /// In an order that a crash may cut anywhere. A journal without an ending gets it last; one
    /// that has an ending already gets the new one first, so that it counts as partial from then
    /// on.
    fn into_entries(self, ending: RunEnding, ended_before: bool) -> Vec<JournalEntry> {
        let records = self.records.into_iter().map(|record| JournalEntry::Ended(Box::new(record)));
        let mut entries: Vec<JournalEntry> = records.chain(self.not_sent).collect();
        let place = if ended_before { 0 } else { entries.len() };
        entries.insert(place, JournalEntry::RunEnded(ending));
        entries
    }
}

/// What is known of a request whose record was lost: that it was started, and nothing else.
fn cancelled_record(started: &StartedRequest, at: Moment) -> RequestRecord {
    let ending = Ending {
        outcome: Outcome::Cancelled,
        at,
        stage: Stage::Unknown,
        cause: Some(Cause::RunCrashed),
        message: None,
    };
    RequestRecord::without_answer(started, ending)
}

/// What the client reported about itself is kept; a run that died reported nothing.
fn recovered_ending(earlier: Option<&RunEnding>, last: Moment, drivers: u32) -> RunEnding {
    let silent = || ClientFacts { drivers, ..ClientFacts::default() };
    let client = earlier.map_or_else(silent, |ending| ending.client.clone());
    let began = earlier.and_then(|ending| ending.began);
    RunEnding { began, at: last, stop: RunStop::Recovered, client }
}
