//! What the warm-up came to: a few facts for the manifest, and a reason to stop where nothing worked.

use std::collections::BTreeMap;

use inferometer_load::answer::Failure as LoadFailure;
use inferometer_model::observations::WarmUpFacts;
use inferometer_model::{JournalEntry, Outcome, RunEnding};

use crate::failure::Failure;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: u64,
    ok: u64,
    /// How requests failed, how often, and the words of the first: a server may say something
    /// else each time.
    failures: BTreeMap<Outcome, (u64, String)>,
}

impl Tally {
    pub(crate) fn from_entries(entries: impl Iterator<Item = JournalEntry>) -> Self {
        let mut tally = Self::default();
        entries.for_each(|entry| tally.add(entry));
        tally
    }

    pub(crate) fn add(&mut self, entry: JournalEntry) {
        let JournalEntry::Ended(record) = entry else { return };
        self.requests += 1;
        let ending = record.ending;
        if ending.outcome == Outcome::Ok {
            self.ok += 1;
            return;
        }
        let (outcome, cause) = (ending.outcome, ending.cause);
        let (count, _) = self.failures.entry(outcome).or_insert_with(|| {
            (0, LoadFailure { outcome, cause, message: ending.message }.words())
        });
        *count += 1;
    }

    /// The facts; or a failure where not one request ended well, unless it was stopped.
    pub(crate) fn facts(self, ending: &RunEnding) -> Result<WarmUpFacts, Failure> {
        if self.ok == 0
            && let Some((outcome, (_, words))) =
                self.failures.iter().max_by_key(|(_, (count, _))| *count)
        {
            let requests = self.requests;
            let message =
                format!("none of {requests} warm-up requests ended ok ({outcome}: {words})");
            return Err(Failure::target(message)
                .hint("nothing was measured; mend the server, or leave --warm-up out"));
        }
        let took = ending.began.and_then(|began| ending.at.since(began)).unwrap_or_default();
        let failed = self.requests - self.ok;
        Ok(WarmUpFacts { requests: self.requests, ok: self.ok, failed, took })
    }
}
