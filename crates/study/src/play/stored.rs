//! Points as they are stored: whether they are complete, and whether they belong to the set.

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Summary, summarize};
use inferometer_model::journal::RunStop;
use inferometer_model::observations::InputLength;
use inferometer_model::study::{Point, Question, SetManifest};
use inferometer_model::{Outcome, Spec};
use inferometer_runner::Failure;
use inferometer_runner::measurement::seal_summary;
use inferometer_store::{RunDirectory, RunState, SetDirectory, StoreError};
use inferometer_workload::{Inputs, make_plan};

use crate::{Reading, Study};

/// The summary of a stored run, or why it must be measured again: it is damaged or was cut short.
/// The journal is read for this, because a summary alone does not show that something was lost.
pub(super) fn find(directory: &RunDirectory) -> Result<Result<Box<Summary>, String>, Failure> {
    let stored = match directory.read() {
        Ok(stored) => stored,
        Err(error) => {
            let why = damage(&error).ok_or_else(|| Failure::usage(error.to_string()));
            return why.map(Err);
        }
    };
    if !stored.integrity.is_intact() {
        return Ok(Err(format!("its journal is damaged: {}", stored.integrity)));
    }
    let summary = match directory.state() {
        RunState::Sealed => {
            let kept = directory.read_summary()?;
            let known = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
            // The summary may be of another version: the records count.
            known.unwrap_or_else(|| summarize(&stored.observations))
        }
        RunState::Finished => seal_summary(directory, &stored)?,
        RunState::Running => {
            let busy = StoreError::Busy { run: directory.path().to_owned() };
            return Err(Failure::usage(busy.to_string()));
        }
        RunState::Unfinished => return Ok(Err("it did not finish".to_owned())),
        RunState::Unreadable(why) => return Ok(Err(why)),
    };
    Ok(if was_cut(&summary) {
        Err(format!("it ended early: {}", summary.run.stop.text()))
    } else {
        Ok(Box::new(summary))
    })
}

/// Why a run is lost and can be measured again. Every other error is about a run that is not lost:
/// another process holds it, a newer version wrote it, or the disk cannot be read.
#[expect(clippy::wildcard_enum_match_arm, reason = "an error that is not listed loses no run")]
fn damage(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Unfinished { .. } => Some("it did not finish".to_owned()),
        StoreError::JournalLost { .. } => Some("its journal holds no ending".to_owned()),
        StoreError::NotAJournal { .. } => Some("its journal does not begin as one".to_owned()),
        StoreError::Incomplete { error, integrity, .. } => {
            Some(format!("its journal has lost entries ({error}; {integrity})"))
        }
        StoreError::Inconsistent { error, integrity, .. } => {
            Some(format!("its journal contradicts itself ({error}; {integrity})"))
        }
        StoreError::Manifest { error, .. } => Some(format!("its manifest is damaged: {error}")),
        StoreError::NoManifest { .. } => Some("its manifest is missing".to_owned()),
        StoreError::TooLong { path, .. } => Some(format!("{} is too long", path.display())),
        _ => None,
    }
}

/// Whether a user, a crash or a missing server ended a run. What the server did to it is a result.
pub fn was_cut(summary: &Summary) -> bool {
    match summary.run.stop {
        RunStop::Drained | RunStop::Cut | RunStop::Recovered | RunStop::Unreachable => true,
        RunStop::PlanDone | RunStop::Unauthorized | RunStop::ClientExhausted | RunStop::Stalled => {
            false
        }
    }
}

/// Whether no server answered, in a run that was too short to be given up.
pub fn found_nobody(summary: &Summary) -> bool {
    summary.count(Outcome::Ok) == 0
        && summary.outcomes.iter().any(|(outcome, count)| {
            matches!(outcome, Outcome::TransportError | Outcome::TimeoutConnect) && 0 < *count
        })
}

/// Refuses a stored run that is not the one that the set describes.
pub(super) fn check_fits(
    directory: &RunDirectory,
    spec: &Spec,
    simulated: bool,
) -> Result<(), Failure> {
    let manifest = directory.manifest().map_err(Failure::from_usage)?;
    let changed = |what: &str| {
        Failure::usage(format!("{}: {what}", directory.path().display()))
            .hint("the folder was changed; restore the original, or begin a new set")
    };
    if manifest.spec != *spec {
        return Err(changed("this run was measured with another spec than set.json has for it"));
    }
    let mut inputs =
        if simulated { Inputs::gather_without_words(spec)? } else { Inputs::gather(spec)? };
    if let InputLength::Corrected(correction) = manifest.materials.input_length {
        inputs.correct(correction);
    }
    let (_, fingerprints) = make_plan(spec, &inputs);
    if fingerprints.plan == manifest.fingerprints.plan {
        return Ok(());
    }
    Err(changed(
        "this run sent other requests than it would now; did a file of its workload change?",
    ))
}

/// A set that was read back, as far as it goes.
#[derive(Debug)]
pub struct Replay {
    pub results: Vec<PointResult>,
    /// The summary of all runs; `None` while some are missing.
    pub summary: Option<SetSummary>,
}

/// Reads a set back in the order of its points. `read` returns the summary of a point, or `None` when
/// it is not there. A missing point ends a set, except a matrix, whose points do not depend on each
/// other; there a point that failed is not missing.
pub fn replay(
    set: &SetDirectory,
    manifest: &SetManifest,
    mut read: impl FnMut(&Point, &RunDirectory) -> Result<Option<Summary>, Failure>,
) -> Result<Replay, Failure> {
    let mut study = Study::new(manifest.campaign.clone()).map_err(Failure::from_usage)?;
    let is_matrix = matches!(manifest.campaign.question, Question::Matrix(_));
    let failures = set.failures().map_err(Failure::from_usage)?;
    let (mut results, mut is_complete) = (Vec::new(), true);
    while let Some(point) = study.next() {
        let has_failed = failures.iter().any(|failure| failure.point.number == point.number);
        let summary = if has_failed { None } else { read(&point, &set.point(point.number))? };
        is_complete &= has_failed || summary.is_some();
        match summary {
            Some(summary) => {
                study.finished(&summary);
                results.push(PointResult { point, summary });
            }
            None if is_matrix => study.record(Reading::default()),
            None => return Ok(Replay { results, summary: None }),
        }
    }
    let summary = is_complete.then(|| summarize_stored(set, manifest, &results)).transpose()?;
    let summary = summary.map(|summary| summary.with_limits(study.limits()));
    Ok(Replay { results, summary })
}

/// The summary of what is stored, however much of it is there.
pub fn summarize_stored(
    set: &SetDirectory,
    manifest: &SetManifest,
    results: &[PointResult],
) -> Result<SetSummary, Failure> {
    let Question::Matrix(_) = manifest.campaign.question else {
        return Ok(SetSummary::summarize(manifest, results));
    };
    let failures = set.failures().map_err(Failure::from_usage)?;
    let deployments = set.deployments().map_err(Failure::from_usage)?;
    Ok(SetSummary::summarize_matrix(manifest, results, &failures, &deployments))
}
