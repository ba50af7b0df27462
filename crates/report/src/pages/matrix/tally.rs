//! How many rows came to what.

use inferometer_analysis::matrix::{MatrixRow, RowEnding};

use crate::number::count;

/// How the rows ended: clean, with errors, partly, failed, missing.
pub(crate) struct Tally {
    clean: usize,
    with_errors: usize,
    partly: usize,
    failed: usize,
    missing: usize,
}

impl Tally {
    pub(crate) fn of(rows: &[MatrixRow]) -> Self {
        let count = |is: fn(&RowEnding) -> bool| rows.iter().filter(|row| is(&row.ending)).count();
        Self {
            clean: count(|ending| matches!(ending, RowEnding::Clean)),
            with_errors: count(|ending| matches!(ending, RowEnding::WithErrors)),
            partly: count(|ending| matches!(ending, RowEnding::Partly { .. })),
            failed: count(|ending| matches!(ending, RowEnding::Failed { .. })),
            missing: count(|ending| matches!(ending, RowEnding::Missing)),
        }
    }

    pub(crate) const fn measured(&self) -> usize {
        self.clean + self.with_errors + self.partly
    }

    /// What is not as it should be, in words; empty where all is well.
    pub(crate) fn troubles(&self) -> String {
        let parts = [
            (self.with_errors, "with failed requests"),
            (self.partly, "with runs that came to nothing"),
            (self.failed, "failed"),
            (self.missing, "not measured yet"),
        ];
        let told = parts.iter().filter(|(number, _)| 0 < *number);
        told.map(|(number, words)| format!("{} {words}", count(*number as u64)))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
