//! Points as they are stored: whether they are whole, and whether they belong to the set.

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Summary, summarize};
use inferometer_model::campaign::{Point, Question, SetManifest};
use inferometer_model::journal::RunStop;
use inferometer_model::observations::InputLength;
use inferometer_model::{Outcome, Spec};
use inferometer_store::{RunDirectory, RunState, SetDirectory, StoreError};
use inferometer_study::Study;
use inferometer_study::matrix::deployments;
use inferometer_workload::{Ingredients, make_plan};

use crate::commands::seal_summary;
use crate::failure::Failure;

/// A point as it lies there.
#[derive(Debug)]
pub(crate) enum Found {
    Whole(Box<Summary>),
    /// Why it must be measured again.
    Broken(String),
}

/// What a run came to, if all of it is there and it was not cut short. The journal is read for
/// this: a summary alone does not show that something was lost.
pub(crate) fn find(directory: &RunDirectory) -> Result<Found, Failure> {
    let stored = match directory.read() {
        Ok(stored) => stored,
        Err(error) => {
            return match damage(&error) {
                Some(why) => Ok(Found::Broken(why)),
                None => Err(Failure::usage(error.to_string())),
            };
        }
    };
    if !stored.integrity.is_intact() {
        return Ok(Found::Broken(format!("its journal is damaged: {}", stored.integrity)));
    }
    let summary = match directory.state() {
        RunState::Sealed => {
            let kept = directory.read_summary()?;
            let known = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
            // Of another version: the records are what counts.
            known.unwrap_or_else(|| summarize(&stored.observations))
        }
        RunState::Finished => seal_summary(directory, &stored)?,
        RunState::Running => {
            let busy = StoreError::Busy { run: directory.path().to_owned() };
            return Err(Failure::usage(busy.to_string()));
        }
        RunState::Unfinished => return Ok(Found::Broken("it did not finish".to_owned())),
        RunState::Unreadable(why) => return Ok(Found::Broken(why)),
    };
    Ok(if was_cut(&summary) {
        Found::Broken(format!("it ended early: {}", summary.run.stop.text()))
    } else {
        Found::Whole(Box::new(summary))
    })
}

/// What is lost can be measured again; what another process holds, a newer program wrote or the
/// disk keeps back is not lost.
pub(crate) fn damage(error: &StoreError) -> Option<String> {
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
        StoreError::NotWritable { .. }
        | StoreError::Read { .. }
        | StoreError::Write { .. }
        | StoreError::Append { .. }
        | StoreError::NotDurable { .. }
        | StoreError::Stopped { .. }
        | StoreError::Entry { .. }
        | StoreError::Thread { .. }
        | StoreError::Busy { .. }
        | StoreError::Lock { .. }
        | StoreError::NamesTaken { .. }
        | StoreError::Date { .. }
        | StoreError::NoSet { .. }
        | StoreError::Set { .. }
        | StoreError::ManifestDraft { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::NotEnded { .. }
        | StoreError::AlreadyFinished { .. }
        | StoreError::NotFound { .. }
        | StoreError::Ambiguous { .. }
        | StoreError::IsSet { .. }
        | StoreError::NoImport { .. }
        | StoreError::Import { .. }
        | StoreError::IsImport { .. }
        | StoreError::NoPoint { .. } => None,
    }
}

/// What the server did to a run is a result; what its user or a crash did is none, and neither is
/// that there was no server.
pub(crate) fn was_cut(summary: &Summary) -> bool {
    match summary.run.stop {
        RunStop::Drained | RunStop::Cut | RunStop::Recovered | RunStop::Unreachable => true,
        RunStop::PlanDone | RunStop::Unauthorized | RunStop::ClientExhausted | RunStop::Stalled => {
            false
        }
    }
}

/// Whether nobody was there to answer, in a run too short to be given up.
pub(crate) fn found_nobody(summary: &Summary) -> bool {
    summary.count(Outcome::Ok) == 0
        && summary.outcomes.iter().any(|(outcome, count)| {
            matches!(outcome, Outcome::TransportError | Outcome::TimeoutConnect) && 0 < *count
        })
}

/// Refuses a stored run that is not the one which the set asks for.
pub(crate) fn check_fits(
    directory: &RunDirectory,
    spec: &Spec,
    simulated: bool,
) -> Result<(), Failure> {
    let manifest = directory.manifest().map_err(|error| Failure::usage(error.to_string()))?;
    let changed = |what: &str| {
        Failure::usage(format!("{}: {what}", directory.path().display()))
            .hint("the folder was changed; put the original back, or begin a new set")
    };
    if manifest.spec != *spec {
        return Err(changed("this run was measured with another spec than set.json asks for"));
    }
    let mut ingredients = if simulated {
        Ingredients::gather_without_words(spec)?
    } else {
        Ingredients::gather(spec)?
    };
    if let InputLength::Corrected(correction) = manifest.materials.input_length {
        ingredients.correct(correction);
    }
    let (_, fingerprints) = make_plan(spec, &ingredients);
    if fingerprints.plan == manifest.fingerprints.plan {
        return Ok(());
    }
    Err(changed(
        "what would be sent now is not what this run has sent; did a file of its workload \
                 change?",
    ))
}

/// A set read back, as far as it goes.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) results: Vec<PointResult>,
    /// What they come to; `None` while something is left to ask.
    pub(crate) summary: Option<SetSummary>,
}

/// What the runs of a set come to, once the campaign was told of all of them.
pub(super) fn sum_up(
    manifest: &SetManifest,
    results: &[PointResult],
    campaign: &Study,
) -> SetSummary {
    SetSummary::of(manifest, results).with_limits(campaign.limits())
}

/// Tells the campaign what is stored, in its order. `read` gives a point's summary, or none when
/// it is not there.
pub(crate) fn replay(
    set: &SetDirectory,
    manifest: &SetManifest,
    mut read: impl FnMut(&Point, &RunDirectory) -> Result<Option<Summary>, Failure>,
) -> Result<Replay, Failure> {
    let mut campaign =
        Study::new(manifest.campaign.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    if let Question::Matrix(_) = manifest.campaign.question {
        return replay_matrix(set, manifest, read);
    }
    let mut results = Vec::new();
    while let Some(point) = campaign.next() {
        let Some(summary) = read(&point, &set.point(point.number))? else {
            return Ok(Replay { results, summary: None });
        };
        campaign.finished(&summary);
        results.push(PointResult { point, summary });
    }
    let summary = Some(sum_up(manifest, &results, &campaign));
    Ok(Replay { results, summary })
}

/// The points of a matrix stand for themselves: one that is not there yet hides none behind it, and one
/// that came to nothing is there.
fn replay_matrix(
    set: &SetDirectory,
    manifest: &SetManifest,
    mut read: impl FnMut(&Point, &RunDirectory) -> Result<Option<Summary>, Failure>,
) -> Result<Replay, Failure> {
    let failures = set.failures().map_err(|error| Failure::usage(error.to_string()))?;
    let has_failed =
        |point: &Point| failures.iter().any(|failure| failure.point.number == point.number);
    let points = deployments(&manifest.campaign).into_iter().flat_map(|it| it.points);
    let (mut results, mut is_whole) = (Vec::new(), true);
    for point in points.filter(|point| !has_failed(point)) {
        match read(&point, &set.point(point.number))? {
            Some(summary) => results.push(PointResult { point, summary }),
            None => is_whole = false,
        }
    }
    let summary = if is_whole { Some(of_stored(set, manifest, &results)?) } else { None };
    Ok(Replay { results, summary })
}

/// What is stored comes to, however much of it is there.
pub(crate) fn of_stored(
    set: &SetDirectory,
    manifest: &SetManifest,
    results: &[PointResult],
) -> Result<SetSummary, Failure> {
    let Question::Matrix(_) = manifest.campaign.question else {
        return Ok(SetSummary::of(manifest, results));
    };
    let refused = |error: StoreError| Failure::usage(error.to_string());
    let failures = set.failures().map_err(refused)?;
    let deployments = set.deployments().map_err(refused)?;
    Ok(SetSummary::of_matrix(manifest, results, &failures, &deployments))
}
