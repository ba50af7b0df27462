//! `inferometer require`: stored runs, or imported results, held against limits.

mod imported;

use std::process::ExitCode;

use inferometer_analysis::{Summary, Verdict, check_requirements, summarize};
use inferometer_model::campaign::Question;
use inferometer_model::spec::{Slo, SloError};
use inferometer_store::{RunDirectory, RunState, StoreError, Stored};

use super::{page, store, style};
use crate::arguments::{PageFormat, RequireCommand};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::requirements::{Judged, Requirements};
use crate::set;

pub(crate) fn run(arguments: &RequireCommand) -> Result<ExitCode, Failure> {
    let (limits, names): (Vec<&String>, Vec<&String>) =
        arguments.words.iter().partition(|word| word.contains(['<', '>']));
    let limits: Vec<Slo> = limits
        .into_iter()
        .map(|limit| limit.parse().map_err(|error: SloError| Failure::usage(error.to_string())))
        .collect::<Result<_, _>>()?;
    if limits.is_empty() {
        return Err(Failure::usage("nothing is required")
            .hint("add a limit: inferometer require latest 'ttft.p99<500ms'"));
    }
    if names.is_empty() {
        return Err(Failure::usage("no run is named")
            .hint("name one before its limits: inferometer require latest 'ttft.p99<500ms'"));
    }
    let store = store(&arguments.store)?;
    let refused = |error: StoreError| Failure::usage(error.to_string());
    let found: Vec<Stored> = names
        .into_iter()
        .map(|name| store.find(name).map_err(refused))
        .collect::<Result<_, _>>()?;
    if found.iter().any(|found| matches!(found, Stored::Import(..))) {
        return imported::run(arguments, limits, &found);
    }
    let found: Vec<Vec<RunDirectory>> = found.into_iter().map(resolve).collect::<Result<_, _>>()?;
    let directories = found.concat();
    let runs: Vec<Summary> =
        directories.iter().map(|place| read(place, &limits)).collect::<Result<_, _>>()?;
    check_alike(&runs)?;
    let requirements = Requirements::new(limits, &arguments.gate);
    let outcomes = requirements.judge(&runs)?;
    let format = arguments.page.format();
    output::result(&match (&runs[..], &directories[..]) {
        ([only], [place]) => page(only, place, &outcomes, format),
        _ if format == PageFormat::Json => {
            let ids: Vec<&str> = runs.iter().map(|run| run.run.id.as_str()).collect();
            let document = serde_json::json!({
                "schema": "inferometer.requirements/1", "runs": ids, "requirements": outcomes,
            });
            format!("{document:#}\n")
        }
        _ => inferometer_report::terminal::requirements(&outcomes, style()),
    })?;
    let invalid = runs.iter().any(|run| run.verdict == Verdict::Invalid);
    let exit = if invalid { Some(Exit::RunInvalid) } else { requirements.exit(&outcomes) };
    let exit = exit.max(requirements.tell(&[Judged { runs, results: Vec::new(), outcomes }]));
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The runs that a name means: one, or all that a set repeats.
fn resolve(found: Stored) -> Result<Vec<RunDirectory>, Failure> {
    let refused = |error: StoreError| Failure::usage(error.to_string());
    let set = match found {
        Stored::Run(run) => return Ok(vec![run]),
        Stored::Set(set) => set,
        Stored::Import(..) => return Err(imported::beside_runs()),
    };
    let manifest = set.manifest().map_err(refused)?;
    if let Some(refused) = of_several(set.id(), &manifest.campaign.question) {
        return Err(refused);
    }
    let replay = set::replay(&set, &manifest, |_, point| match point.state() {
        RunState::Sealed | RunState::Finished => {
            let stored = point.read().map_err(refused)?;
            Ok(Some(summarize(&stored.observations)).filter(|summary| !set::was_cut(summary)))
        }
        RunState::Unfinished | RunState::Running | RunState::Unreadable(_) => Ok(None),
    })?;
    if replay.summary.is_none() {
        let stored = set::stored_runs(replay.results.len());
        return Err(Failure::usage(format!("{} is not finished: {stored}", set.id()))
            .hint(format!("go on with: {}", set::way_on(&set))));
    }
    Ok(replay.results.iter().map(|result| set.point(result.point.number)).collect())
}

/// Sets whose runs have no common value.
fn of_several(set: &str, question: &Question) -> Option<Failure> {
    let (what, hint) = match question {
        Question::Sweep(_) => (
            format!("{set} is a sweep: a limit is about one load, and a sweep has several"),
            format!(
                "name one of its runs, such as {set}/0, or search for the load that keeps it: sweep \
                 --find 'max rate where …'"
            ),
        ),
        Question::Matrix(_) => (
            format!("{set} is a matrix: a limit is about one server, and a matrix has many"),
            format!("name runs of one cell, such as {set}/0"),
        ),
        Question::Repeat | Question::Suite(_) => return None,
    };
    Some(Failure::usage(what).hint(hint))
}

/// The summary as this version computes it, of a run that the limits can be about.
fn read(place: &RunDirectory, limits: &[Slo]) -> Result<Summary, Failure> {
    let stored = place.read().map_err(|error| Failure::usage(error.to_string()))?;
    let spec = &stored.observations.manifest.spec;
    check_requirements(limits, &spec.slos, spec.workload.streaming)
        .map_err(|problem| Failure::usage(format!("run {}: {problem}", place.id())))?;
    Ok(summarize(&stored.observations))
}

/// Runs that ask different things have no common value.
fn check_alike(runs: &[Summary]) -> Result<(), Failure> {
    let fingerprint = |run: &Summary| run.workload.fingerprint.clone();
    let load = |run: &Summary| run.run.load.clone();
    let Some((first, others)) = runs.split_first() else { return Ok(()) };
    let alike =
        |other: &&Summary| fingerprint(other) == fingerprint(first) && load(other) == load(first);
    match others.iter().find(|other| !alike(other)) {
        None => Ok(()),
        Some(other) => Err(Failure::usage(format!(
            "run {} and run {} ask different things of their servers",
            first.run.id, other.run.id
        ))
        .hint("judge them one by one")),
    }
}
