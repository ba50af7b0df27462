//! `inferometer require`: checks stored runs, or imported results, against thresholds.

use std::process::ExitCode;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{RequirementOutcome, Summary, Verdict, check_requirements, summarize};
use inferometer_model::spec::Slo;
use inferometer_model::study::Question;
use inferometer_store::{RunDirectory, RunState, Stored};
use inferometer_study::play;

use super::{page, store, style};
use crate::arguments::{PageFormat, RequireCommand};
use crate::failure::{Exit, Failure};
use crate::requirements::{Judged, Requirements};
use crate::{output, results};

pub(crate) fn run(arguments: &RequireCommand) -> Result<ExitCode, Failure> {
    let (limits, names): (Vec<&String>, Vec<&String>) =
        arguments.words.iter().partition(|word| word.contains(['<', '>']));
    let limits: Vec<Slo> = limits
        .into_iter()
        .map(|limit| limit.parse().map_err(|error: String| Failure::usage(error)))
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
    let found = names.into_iter().map(|name| store.find(name).map_err(Failure::from_usage));
    let found: Vec<Stored> = found.collect::<Result<_, _>>()?;
    let is_imported = found.iter().any(|found| matches!(found, Stored::Import(..)));
    let (mut directories, mut runs, mut results) = (Vec::new(), Vec::new(), Vec::new());
    if is_imported {
        results = read_results(&found)?;
    } else {
        for found in found {
            directories.extend(resolve(found)?);
        }
        for directory in &directories {
            runs.push(read(directory, &limits)?);
        }
        check_alike(&runs)?;
    }
    let requirements = Requirements::new(limits, &arguments.gate);
    let outcomes = if is_imported {
        requirements.judge_imported(&results)?
    } else {
        requirements.judge(&runs)?
    };
    let format = arguments.page.format();
    output::result(&if let ([only], [directory]) = (&runs[..], &directories[..]) {
        page(only, directory, &outcomes, format)
    } else {
        let ids = runs.iter().map(|run| run.run.id.as_str());
        let names = results.iter().map(|result| result.source.name.as_str());
        outcomes_page(&ids.chain(names).collect::<Vec<_>>(), &outcomes, format)
    })?;
    let invalid = runs.iter().any(|run| run.verdict == Verdict::Invalid);
    let exit = if invalid { Some(Exit::RunInvalid) } else { requirements.exit(&outcomes) };
    let exit = exit.max(requirements.write_files(&[Judged { runs, results, outcomes }]));
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The outcomes of several runs or of imported results.
fn outcomes_page(runs: &[&str], outcomes: &[RequirementOutcome], format: PageFormat) -> String {
    if format != PageFormat::Json {
        return inferometer_report::terminal::requirements(outcomes, style());
    }
    let document = serde_json::json!({
        "schema": "inferometer.requirements/1", "runs": runs, "requirements": outcomes,
    });
    format!("{document:#}\n")
}

/// The runs that a name means: one, or all that a set repeats.
fn resolve(found: Stored) -> Result<Vec<RunDirectory>, Failure> {
    let set = match found {
        Stored::Run(run) => return Ok(vec![run]),
        Stored::Set(set) => set,
        Stored::Import(..) => return Err(beside_runs()),
    };
    let manifest = set.manifest().map_err(Failure::from_usage)?;
    if let Some(refused) = of_several(set.id(), &manifest.study.question) {
        return Err(refused);
    }
    let replay = play::replay(&set, &manifest, |_, point| match point.state() {
        RunState::Sealed | RunState::Finished => {
            let stored = point.read().map_err(Failure::from_usage)?;
            Ok(Some(summarize(&stored.observations)).filter(|summary| !play::was_cut(summary)))
        }
        RunState::Unfinished | RunState::Running | RunState::Unreadable(_) => Ok(None),
    })?;
    if replay.summary.is_none() {
        let stored = play::stored_runs(replay.results.len());
        return Err(Failure::usage(format!("{} is not finished: {stored}", set.id()))
            .hint(format!("resume with: {}", play::resume_command(&set))));
    }
    Ok(replay.results.iter().map(|result| set.point(result.point.number)).collect())
}

/// Sets whose runs have no common value.
fn of_several(set: &str, question: &Question) -> Option<Failure> {
    let (what, hint) = match question {
        Question::Sweep(_) => (
            format!("{set} is a sweep: a threshold applies to one load, and a sweep has several"),
            format!(
                "name one of its runs, such as {set}/0, or search for the load that meets it: sweep \
                 --find 'max rate where …'"
            ),
        ),
        Question::Matrix(_) => (
            format!("{set} is a matrix: a threshold applies to one server, and a matrix has many"),
            format!("name runs of one cell, such as {set}/0"),
        ),
        Question::Repeat | Question::Suite(_) => return None,
    };
    Some(Failure::usage(what).hint(hint))
}

/// The summary as this version computes it, of a run that the limits can be about.
fn read(place: &RunDirectory, limits: &[Slo]) -> Result<Summary, Failure> {
    let stored = place.read().map_err(Failure::from_usage)?;
    let spec = &stored.observations.manifest.spec;
    check_requirements(limits, &spec.slos, spec.workload.streaming)
        .map_err(|problem| Failure::usage(format!("run {}: {problem}", place.id())))?;
    Ok(summarize(&stored.observations))
}

/// Runs that ask different things have no common value.
fn check_alike(runs: &[Summary]) -> Result<(), Failure> {
    let is_alike = |one: &Summary, other: &Summary| {
        one.workload.fingerprint == other.workload.fingerprint && one.run.load == other.run.load
    };
    let Some((first, other)) = first_unlike(runs, is_alike) else { return Ok(()) };
    let (first, other) = (&first.run.id, &other.run.id);
    let what = format!("run {first} and run {other} have different workloads or loads");
    Err(Failure::usage(what).hint("judge them one by one"))
}

/// The first item, and the first of the others that is not like it.
fn first_unlike<T>(items: &[T], is_alike: impl Fn(&T, &T) -> bool) -> Option<(&T, &T)> {
    let (first, others) = items.split_first()?;
    Some((first, others.iter().find(|other| !is_alike(first, other))?))
}

/// The results of imports, which must be alike.
fn read_results(found: &[Stored]) -> Result<Vec<ToolResult>, Failure> {
    let mut all: Vec<ToolResult> = Vec::new();
    for found in found {
        let results = match found {
            Stored::Import(..) => results::from_stored(found)?,
            Stored::Run(_) | Stored::Set(_) => return Err(beside_runs()),
        };
        // Files that are named together are taken for repeats, whatever each calls its own.
        check_alike_results(&results, |one, other| one.configuration == other.configuration)?;
        all.extend(results);
    }
    if all.is_empty() {
        return Err(Failure::usage("no import has a result")
            .hint("`inferometer report IMPORT` says what is in it"));
    }
    check_alike_results(&all, |one, other| {
        (one.source.tool, &one.model) == (other.source.tool, &other.model)
            && one.level() == other.level()
    })?;
    Ok(all)
}

/// Runs have intervals within them and imported results have none: one rule does not fit both.
fn beside_runs() -> Failure {
    Failure::usage("some of these are imported results, and the others are runs")
        .hint("check them one by one")
}

/// A limit is about one configuration at one load.
fn check_alike_results(
    results: &[ToolResult],
    is_alike: impl Fn(&ToolResult, &ToolResult) -> bool,
) -> Result<(), Failure> {
    let Some((first, other)) = first_unlike(results, is_alike) else { return Ok(()) };
    let difference = difference(first, other);
    Err(Failure::usage(format!(
        "a threshold applies to one configuration at one load, and these are {difference}"
    ))
    .hint("name one of them, such as IMPORT/0 (`inferometer report IMPORT` lists them)"))
}

/// What tells two results apart.
fn difference(first: &ToolResult, other: &ToolResult) -> String {
    let (a, b) = (first.level(), other.level());
    if a != b {
        return format!("of {a} and {b}");
    }
    let name = |sheet: &ToolResult| {
        let model = sheet.model.as_deref().unwrap_or("no model named");
        format!("`{}` ({}, {model})", sheet.configuration, sheet.source.tool.name())
    };
    format!("of {} and {}", name(first), name(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let at = |concurrency| ToolResult {
            max_concurrency: Some(concurrency),
            ..ToolResult::default()
        };
        let same_level = |one: &ToolResult, other: &ToolResult| one.level() == other.level();
        assert!(check_alike_results(&[at(8), at(8)], same_level).is_ok());
        assert!(check_alike_results(&[at(8), at(16)], same_level).is_err());
        assert!(difference(&at(8), &at(16)).contains("16"));
        let other = ToolResult { configuration: "v1".to_owned(), ..at(8) };
        assert!(difference(&at(8), &other).contains("`v1`"));
    }
}
