//! Points as they are stored: whether they are whole, and whether they belong to the set.

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Summary, summarize};
use inferometer_campaign::Campaign;
use inferometer_model::Spec;
use inferometer_model::campaign::SetManifest;
use inferometer_model::journal::RunStop;
use inferometer_model::observations::InputLength;
use inferometer_store::{RunDirectory, RunState, SetDirectory, StoreError};
use inferometer_workload::{Ingredients, make_plan};

use crate::commands::seal_summary;
use crate::failure::Failure;

/// What a run came to, if it was not cut short by its user or by a crash.
pub(super) fn whole(directory: &RunDirectory) -> Result<Option<Summary>, Failure> {
    let refused = |error: StoreError| Failure::usage(error.to_string());
    if let Err(error @ StoreError::NewerFormat { .. }) = directory.manifest() {
        return Err(refused(error));
    }
    let summary = match directory.state() {
        RunState::Sealed => {
            let stored = directory.read_summary()?;
            let known = stored.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
            match known {
                Some(summary) => Some(summary),
                // Of another version: the records are what counts.
                None => Some(summarize(&directory.read().map_err(refused)?.observations)),
            }
        }
        RunState::Finished => Some(seal_summary(directory, &directory.read().map_err(refused)?)?),
        RunState::Running => {
            return Err(refused(StoreError::Busy { run: directory.path().to_owned() }));
        }
        RunState::Unfinished | RunState::Unreadable(_) => None,
    };
    Ok(summary.filter(|summary| !was_cut(summary)))
}

/// What the server did to a run is a result; what its user or a crash did is none.
pub(crate) fn was_cut(summary: &Summary) -> bool {
    match summary.run.stop {
        RunStop::Drained | RunStop::Cut | RunStop::Recovered => true,
        RunStop::PlanDone
        | RunStop::Unauthorized
        | RunStop::Unreachable
        | RunStop::ClientExhausted
        | RunStop::Stalled => false,
    }
}

/// Refuses a stored run that is not the one which the set asks for.
pub(super) fn check_fits(
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
    campaign: &Campaign,
) -> SetSummary {
    SetSummary::of(manifest, results).with_limits(campaign.limits())
}

/// Tells the campaign what is stored, in its order. `read` gives a point's summary, or none when
/// it is not there.
pub(crate) fn replay(
    set: &SetDirectory,
    manifest: &SetManifest,
    mut read: impl FnMut(&RunDirectory) -> Result<Option<Summary>, Failure>,
) -> Result<Replay, Failure> {
    let mut campaign = Campaign::new(manifest.campaign.clone())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut results = Vec::new();
    while let Some(point) = campaign.next() {
        let Some(summary) = read(&set.point(point.number))? else {
            return Ok(Replay { results, summary: None });
        };
        campaign.finished(&summary);
        results.push(PointResult { point, summary });
    }
    let summary = Some(sum_up(manifest, &results, &campaign));
    Ok(Replay { results, summary })
}
