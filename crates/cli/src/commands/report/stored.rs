//! What is stored, read so far that a page can be made of it.

use std::path::Path;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Severity, Summary, Verdict, Warning, summarize};
use inferometer_report::document::Document;
use inferometer_report::json;
use inferometer_report::narrative::facts;
use inferometer_report::pages::csv;
use inferometer_store::{
    ImportDirectory, RunDirectory, RunState, SetDirectory, StoreError, Stored,
};
use inferometer_study::play;

use crate::failure::Failure;
use crate::narrator::{self, Subject, Writer, leaving_pages_alone};
use crate::report_files::{self, OfSet};
use crate::signals::Interruption;
use crate::study;

/// What a page is made of.
pub(crate) enum Source {
    Run { directory: RunDirectory, summary: Box<Summary> },
    Set { set: SetDirectory, summary: Box<SetSummary>, points: Vec<PointResult> },
}

impl Source {
    pub(crate) fn read(found: &Stored, talk: impl Fn(&str)) -> Result<Self, Failure> {
        match found {
            Stored::Run(directory) => {
                let summary = Box::new(of_run(directory)?);
                Ok(Self::Run { directory: directory.clone(), summary })
            }
            Stored::Set(set) => of_set(set, talk),
            Stored::Import(import, _) => Err(not_measured(import)),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Run { directory, .. } => directory.path(),
            Self::Set { set, .. } => set.path(),
        }
    }

    /// The page, in the words of whoever is to write it.
    pub(super) fn document(
        &self,
        writer: &Writer,
        talk: impl Fn(&str),
    ) -> Result<Document, Failure> {
        if writer.is_model() {
            self.consult(writer, talk).map_err(leaving_pages_alone)?;
        }
        match self {
            Self::Run { directory, summary } => Ok(report_files::of_run(directory, summary)),
            Self::Set { set, summary, points } => {
                let manifest = &set.manifest().map_err(|error| refused(&error))?;
                Ok(OfSet { set, manifest, summary, points }.document())
            }
        }
    }

    fn consult(&self, writer: &Writer, talk: impl Fn(&str)) -> Result<(), Failure> {
        // Nothing is begun here that a signal may not end at once.
        let never = &Interruption::default();
        match self {
            Self::Run { directory, summary } => {
                let manifest = directory.manifest().map_err(|error| refused(&error))?;
                let subject = Subject {
                    spec: &manifest.spec,
                    condition: 0,
                    model: &summary.run.model,
                    simulated: summary.run.simulated.is_some(),
                };
                let (facts, folder) = (&facts::of_run(summary), directory.path());
                narrator::Errand { subject, facts, folder }.run(writer, never, talk)
            }
            Self::Set { set, summary, points } => {
                let manifest = &set.manifest().map_err(|error| refused(&error))?;
                let of_set = OfSet { set, manifest, summary, points };
                let Some(subject) = of_set.subject() else { return Ok(()) };
                let (facts, folder) = (&of_set.facts(), set.path());
                narrator::Errand { subject, facts, folder }.run(writer, never, talk)
            }
        }
    }

    pub(super) fn csv(&self) -> String {
        match self {
            Self::Run { summary, .. } => csv::of_run(summary),
            Self::Set { summary, points, .. } => {
                csv::of_matrix(summary).unwrap_or_else(|| csv::of_set(summary, points))
            }
        }
    }

    pub(super) fn json(&self) -> String {
        match self {
            Self::Run { directory, summary } => {
                json::render(summary, &crate::commands::files(directory))
            }
            Self::Set { set, summary, .. } => json::render_set(summary, &study::files(set), &[]),
        }
    }
}

fn not_measured(import: &ImportDirectory) -> Failure {
    Failure::usage(format!("{} was imported, not measured", import.id()))
}

fn refused(error: &StoreError) -> Failure {
    Failure::usage(error.to_string())
}

fn of_run(directory: &RunDirectory) -> Result<Summary, Failure> {
    match directory.state() {
        RunState::Sealed | RunState::Finished => summary(directory),
        RunState::Running => Err(refused(&StoreError::Busy { run: directory.path().to_owned() })),
        RunState::Unfinished => {
            Err(Failure::usage(format!("run {} is not finished", directory.id()))
                .hint(format!("finish it with: {}", directory.remedy())))
        }
        RunState::Unreadable(why) => {
            Err(Failure::usage(format!("run {} cannot be read: {why}", directory.id())))
        }
    }
}

/// As it is stored, where that has all that charts are drawn from; else computed from the records,
/// which count for more than a summary that is damaged or of another version.
fn summary(directory: &RunDirectory) -> Result<Summary, Failure> {
    let kept = directory.read_summary().map_err(|error| refused(&error))?;
    let kept = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
    if let Some(whole) = kept.as_ref().filter(|summary| has_figures(summary)) {
        return Ok(whole.clone());
    }
    match (directory.read(), kept) {
        (Ok(stored), _) => Ok(summarize(&stored.observations)),
        // Without its records a run has its numbers still, and no charts.
        (Err(_), Some(kept)) => Ok(kept),
        (Err(error), None) => Err(refused(&error)),
    }
}

fn has_figures(summary: &Summary) -> bool {
    summary.attempted == 0 || !summary.figures.course.in_flight.is_empty()
}

/// A set that was stopped is told as far as it goes, and says so.
fn of_set(set: &SetDirectory, talk: impl Fn(&str)) -> Result<Source, Failure> {
    let manifest = set.manifest().map_err(|error| refused(&error))?;
    let replay = play::replay(set, &manifest, |_, point| match point.state() {
        RunState::Sealed | RunState::Finished => {
            Ok(Some(summary(point)?).filter(|summary| !play::was_cut(summary)))
        }
        RunState::Unfinished | RunState::Running | RunState::Unreadable(_) => Ok(None),
    })?;
    let (set, points) = (set.clone(), replay.results);
    if let Some(summary) = replay.summary {
        return Ok(Source::Set { set, summary: Box::new(summary), points });
    }
    if points.is_empty() {
        return Err(Failure::usage(format!("set {} has no finished run yet", set.id()))
            .hint(format!("resume with: {}", play::resume_command(&set))));
    }
    talk(&format!("warning: set {} is not finished; the report has what there is", set.id()));
    let mut summary = play::summarize_stored(&set, &manifest, &points)?;
    summary.verdict = summary.verdict.max(Verdict::Degraded);
    summary.warnings.insert(0, unfinished(&set, points.len()));
    Ok(Source::Set { set, summary: Box::new(summary), points })
}

fn unfinished(set: &SetDirectory, runs: usize) -> Warning {
    Warning {
        key: "unfinished".to_owned(),
        check: None,
        severity: Severity::Degraded,
        text: format!(
            "the set is not finished: {}, and this page has no more",
            play::stored_runs(runs)
        ),
        remedy: format!("resume it with: {}", play::resume_command(set)),
    }
}
