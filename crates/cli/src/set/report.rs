//! The report of a suite. Its results are stored by then, and whatever goes wrong here takes nothing
//! from them.

use std::path::PathBuf;

use inferometer_report::escape::terminal;

use super::Errand;
use crate::failure::{Exit, Failure};
use crate::narrator;
use crate::output;
use crate::report_files::{self, OfSet};

#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    pub(super) errand: Errand<'a>,
    pub(super) results: OfSet<'a>,
}

impl Report<'_> {
    /// By rules, or in the words of an earlier narrator: whoever is asked now may need minutes, and
    /// the page is there meanwhile. `None` where it could not be written.
    pub(super) fn write(self) -> Option<PathBuf> {
        let written = report_files::write_both(self.results.set.path(), &self.results.document());
        written.inspect_err(|failure| self.tell(failure)).ok()
    }

    /// Lets the narrator speak where there is one, and names the page. A page that is not there is
    /// worth an exit code only where nothing graver is to be said.
    pub(super) fn conclude(self, written: Option<PathBuf>, exit: Option<Exit>) -> Option<Exit> {
        let Errand { session, writer, .. } = self.errand;
        let (mut written, mut signal) = (written, None);
        if let (Some(_), Some(subject)) = (&written, self.results.subject())
            && writer.is_model()
        {
            let (facts, folder) = (&self.results.facts(), self.results.set.path());
            let errand = narrator::Errand { subject, facts, folder };
            errand.try_run(writer, &session.interruption, |line| session.talk(line));
            signal = session.interruption.exit();
            written = self.write();
        }
        if let Some(page) = &written {
            session.talk(&format!("report: {}", page.display()));
        }
        signal.or(exit).or_else(|| written.is_none().then_some(Exit::Internal))
    }

    /// It is no chat: whoever asked for quiet misses the page too.
    fn tell(self, failure: &Failure) {
        let set = self.results.set.path().display();
        output::talk(&format!("warning: no report was written: {}", terminal(failure.message())));
        output::talk(&format!(
            "the results are stored in {set}; make the report with: inferometer report {set}"
        ));
    }
}
