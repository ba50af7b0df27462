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
    /// How requests failed, and how often.
    failures: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn of(entries: impl Iterator<Item = JournalEntry>) -> Self {
        let mut tally = Self::default();
        for entry in entries {
            let JournalEntry::Ended(record) = entry else { continue };
            tally.requests += 1;
            let ending = record.ending;
            if ending.outcome == Outcome::Ok {
                tally.ok += 1;
                continue;
            }
            let (outcome, cause) = (ending.outcome, ending.cause);
            let words = LoadFailure { outcome, cause, message: ending.message }.words();
            *tally.failures.entry(format!("{outcome}: {words}")).or_default() += 1;
        }
        tally
    }

    /// The facts; or a failure where not one request ended well, unless it was stopped.
    pub(crate) fn facts(self, ending: &RunEnding) -> Result<WarmUpFacts, Failure> {
        if self.ok == 0
            && let Some((words, _)) = self.failures.iter().max_by_key(|(_, count)| **count)
        {
            let message = format!("none of {} warm-up requests ended ok ({words})", self.requests);
            return Err(Failure::target(message)
                .hint("nothing was measured; mend the server, or leave --warm-up out"));
        }
        let took = ending.began.and_then(|began| ending.at.since(began)).unwrap_or_default();
        let failed = self.requests - self.ok;
        Ok(WarmUpFacts { requests: self.requests, ok: self.ok, failed, took })
    }
}
