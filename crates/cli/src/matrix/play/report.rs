//! The pages of a matrix. Its results are stored by then, and whatever goes wrong here takes nothing
//! from them.

use std::path::PathBuf;

use inferometer_report::escape::terminal;
use inferometer_report::pages::csv;

use crate::failure::Failure;
use crate::output;
use crate::report_files::{self, OfSet};

/// The page that was written; `None` where it could not be. The table is written first: where the page
/// is, all is there.
pub(super) fn write(results: &OfSet<'_>) -> Option<PathBuf> {
    let folder = results.set.path();
    let whole = || csv::of_set(results.summary, results.points);
    let table = csv::of_matrix(results.summary).unwrap_or_else(whole);
    let written = report_files::write_file(&folder.join(report_files::MATRIX_CSV), &table)
        .and_then(|()| report_files::write_both(folder, &results.document()));
    written.inspect_err(|failure| tell(results, failure)).ok()
}

/// It is no chat: whoever asked for quiet misses the page too.
fn tell(results: &OfSet<'_>, failure: &Failure) {
    let set = results.set.path().display();
    output::talk(&format!("warning: no report was written: {}", terminal(failure.message())));
    output::talk(&format!(
        "the results are stored in {set}; make the report with: inferometer report {set}"
    ));
}
