//! What every point of a matrix came to, told by several hands.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use inferometer_analysis::set::PointResult;
use inferometer_analysis::{RunFigures, Summary};
use inferometer_model::campaign::{Point, PointFailure};

#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    results: BTreeMap<u32, PointResult>,
    failures: BTreeMap<u32, PointFailure>,
    /// Points that this process has played.
    played: usize,
}

/// When a point came to what it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Before,
    Now,
}

impl Ledger {
    /// With the failures that are stored.
    pub(super) fn new(failures: Vec<PointFailure>) -> Self {
        let failures = failures.into_iter().map(|failure| (failure.point.number, failure));
        Self(Mutex::new(Entries { failures: failures.collect(), ..Entries::default() }))
    }

    /// What only charts of the run itself are drawn from is dropped: a matrix has hundreds of runs.
    pub(super) fn measured(&self, point: Point, summary: Summary, known: Known) {
        let summary = Summary { figures: RunFigures::default(), ..summary };
        let mut entries = self.entries();
        entries.results.insert(point.number, PointResult { point, summary });
        entries.played += usize::from(known == Known::Now);
    }

    pub(super) fn failed(&self, failure: PointFailure) {
        let mut entries = self.entries();
        entries.failures.insert(failure.point.number, failure);
        entries.played += 1;
    }

    pub(super) fn has_failed(&self, point: &Point) -> bool {
        self.entries().failures.contains_key(&point.number)
    }

    pub(super) fn knows(&self, point: &Point) -> bool {
        let entries = self.entries();
        let number = &point.number;
        entries.results.contains_key(number) || entries.failures.contains_key(number)
    }

    pub(super) fn counts(&self) -> Counts {
        let entries = self.entries();
        Counts {
            measured: entries.results.len(),
            failed: entries.failures.len(),
            played: entries.played,
        }
    }

    /// All of it, in the order of the points.
    pub(super) fn close(self) -> (Vec<PointResult>, Vec<PointFailure>) {
        let entries = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        (entries.results.into_values().collect(), entries.failures.into_values().collect())
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) measured: usize,
    pub(super) failed: usize,
    /// By this process.
    pub(super) played: usize,
}

impl Counts {
    pub(super) fn known(self) -> usize {
        self.measured + self.failed
    }
}
