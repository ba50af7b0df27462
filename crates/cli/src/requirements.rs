//! Requirements on the runs of a command: checked before anything is sent, judged after the last
//! run, and written to files for CI; and `inferometer require`, which judges stored runs or imported
//! results.

use std::fs;
use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{
    LatencyOrigin, Requirement, RequirementOutcome, Summary, Undecided, Verdict, check_requirements,
};
use inferometer_model::fmt;
use inferometer_model::spec::{Extent, LoadTable, Slo};
use inferometer_model::study::{Question, StudySpec};
use inferometer_model::{Spec, SpecDraft};
use inferometer_report::{Judgement, junit, markdown, terminal};
use inferometer_store::{RunDirectory, Stored, write_output};
use inferometer_study::play;
use serde_json::json;

use crate::arguments::{
    GateArguments, PageFormat, RequireArguments, RequireCommand, ResultArguments,
};
use crate::commands::{page, store, style};
use crate::failure::{Exit, Failure, Result};
use crate::measurement::summarize_stored;
use crate::{output, results};

const JUDGE_RUN: &str =
    "measure it without requirements, then judge a run with: inferometer require SET/N LIMIT";

#[derive(Debug)]
pub(crate) struct Requirements {
    limits: Vec<Slo>,
    undecided: Undecided,
    junit: Option<PathBuf>,
    step_summary: Option<PathBuf>,
}

/// The runs of one experiment, and the outcomes of their requirements.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) runs: Vec<Summary>,
    /// Imported results, where no run of ours is judged.
    pub(crate) results: Vec<ToolResult>,
    pub(crate) outcomes: Vec<RequirementOutcome>,
}

/// The most requests that are chosen for a requirement; more take hours, and are for the user to set.
const REQUESTS_MAX: u64 = 10_000;

/// The spec with enough requests for its requirements to be decided, where the user gave neither a
/// number of requests nor a time.
pub(crate) fn with_enough_requests(
    mut spec: Spec,
    draft: &SpecDraft,
    results: &ResultArguments,
) -> Result<Spec> {
    let LoadTable { requests, duration, .. } = &draft.load;
    let Extent::Requests(default) = spec.load.extent else { return Ok(spec) };
    if requests.is_some() || duration.is_some() || draft.saved.is_some() {
        return Ok(spec);
    }
    let mut most = (default, None);
    for limit in &results.require.limits {
        let needed = requirement(limit, LatencyOrigin::Sent)?.requests_needed();
        let needed = needed.and_then(NonZeroU64::new).filter(|needed| most.0 < *needed);
        most = needed.map_or(most, |needed| (needed, Some(limit)));
    }
    let (needed, Some(limit)) = most else { return Ok(spec) };
    let sent = needed.min(NonZeroU64::new(REQUESTS_MAX).unwrap_or(NonZeroU64::MAX));
    spec.load.extent = Extent::Requests(sent);
    if !results.quiet {
        let [sent, needed] = [sent, needed].map(|requests| fmt::count(requests.get()));
        output::talk(&format!(
            "{sent} requests are sent, because {limit} needs about {needed} to be decided; \
             --requests sets another number"
        ));
    }
    Ok(spec)
}

impl Requirements {
    /// Repeated runs of a set are judged together; other sets have no single value to judge.
    pub(crate) fn for_set(arguments: &RequireArguments, study: &StudySpec) -> Result<Self> {
        let (why, hint) = match (&study.question, study.conditions.first()) {
            (Question::Repeat, Some(condition)) => {
                return Self::for_run(arguments, &condition.spec);
            }
            (Question::Suite(_), _) => ("one experiment, and a suite has several", JUDGE_RUN),
            (Question::Matrix(_), _) => ("one experiment, and a matrix has many", JUDGE_RUN),
            (Question::Sweep(_) | Question::Repeat, _) => (
                "one load, and a sweep has several",
                "search for the load that meets it: --find 'max rate where …'",
            ),
        };
        let flags = [
            ("--require", !arguments.limits.is_empty()),
            ("--junit", arguments.gate.junit.is_some()),
            ("--step-summary", arguments.gate.step_summary.is_some()),
        ];
        match flags.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(Self::new(Vec::new(), &arguments.gate)),
            Some((flag, _)) => Err(Failure::usage(format!("{flag} is about {why}")).hint(hint)),
        }
    }

    /// Refuses what no run of this experiment could be judged by.
    pub(crate) fn for_run(arguments: &RequireArguments, spec: &Spec) -> Result<Self> {
        let limits = &arguments.limits;
        check_requirements(limits, &spec.slos, spec.workload.streaming)
            .map_err(Failure::from_usage)?;
        Ok(Self::new(limits.clone(), &arguments.gate))
    }

    pub(crate) fn new(limits: Vec<Slo>, gate: &GateArguments) -> Self {
        let of_github = || {
            let path = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
            path.filter(|_| !limits.is_empty()).map(PathBuf::from)
        };
        Self {
            undecided: gate.undecided.unwrap_or_default(),
            junit: gate.junit.clone(),
            step_summary: gate.step_summary.clone().or_else(of_github),
            limits,
        }
    }

    /// One run is judged by its own interval, several by the interval between them.
    pub(crate) fn judge(&self, runs: &[Summary]) -> Result<Vec<RequirementOutcome>> {
        let open = runs.first().is_some_and(|run| run.run.load.is_open());
        let origin = LatencyOrigin::for_load(open);
        let judge = |limit| Ok(requirement(limit, origin)?.judge_across(runs));
        self.limits.iter().map(judge).collect()
    }

    /// One imported result is judged by its values, several by the interval between them. A bare
    /// `ttft` or `e2e` counts from sending, as in other tools, unless the result only has the other.
    pub(crate) fn judge_imported(&self, results: &[ToolResult]) -> Result<Vec<RequirementOutcome>> {
        let judge = |limit| {
            let found = requirement(limit, LatencyOrigin::Sent)?.judge_results(results);
            let other = requirement(limit, LatencyOrigin::Schedule).ok();
            let other = other.filter(|_| found.value.is_none()).map(|it| it.judge_results(results));
            Ok(other.filter(|other| other.value.is_some()).unwrap_or(found))
        };
        self.limits.iter().map(judge).collect()
    }

    /// The exit of missed requirements, where the runs themselves have none that is worse.
    pub(crate) fn exit(&self, outcomes: &[RequirementOutcome]) -> Option<Exit> {
        let met = outcomes.iter().all(|found| found.verdict.is_met(self.undecided));
        (!met).then_some(Exit::PromiseMissed)
    }

    /// Writes the files for CI. The runs are stored by then, so a file that cannot be written is
    /// reported and changes nothing else.
    pub(crate) fn write_files(&self, judged: &[Judged]) -> Option<Exit> {
        let mut judgements = Vec::new();
        for Judged { runs, results, outcomes: requirements } in judged {
            if !runs.is_empty() || !results.is_empty() {
                let undecided = self.undecided;
                judgements.push(Judgement { runs, results, requirements, undecided });
            }
        }
        let junit = |path: &Path| {
            write_output(path, junit::render(&judgements).as_bytes()).map_err(std::io::Error::other)
        };
        let summary = |path: &Path| {
            let text: String = judgements.iter().map(markdown::step_summary).collect();
            let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
            file.write_all(text.as_bytes())
        };
        let files = [
            ("--junit", &self.junit, &junit as &dyn Fn(&Path) -> std::io::Result<()>),
            ("the step summary", &self.step_summary, &summary),
        ];
        let mut exit = None;
        for (what, path, write) in files {
            let Some(path) = path.as_deref().filter(|_| !judgements.is_empty()) else { continue };
            if let Err(error) = write(path) {
                let what = format!("{what}: {} could not be written: {error}", path.display());
                let hint = "the runs are stored; repeat it with: inferometer require RUN LIMIT";
                let _ = output::report(&Failure::internal(what).hint(hint));
                exit = Some(Exit::Internal);
            }
        }
        exit
    }
}

fn requirement(limit: &Slo, origin: LatencyOrigin) -> Result<Requirement> {
    Requirement::from_slo(limit, origin).map_err(Failure::from_usage)
}

/// `inferometer require`.
pub(crate) fn run(arguments: &RequireCommand) -> Result<ExitCode> {
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
    } else if format == PageFormat::Json {
        let ids = runs.iter().map(|run| &run.run.id);
        let ids: Vec<&String> = ids.chain(results.iter().map(|it| &it.source.name)).collect();
        let schema = "inferometer.requirements/1";
        let document = json!({ "schema": schema, "runs": ids, "requirements": outcomes });
        format!("{document:#}\n")
    } else {
        terminal::requirements(&outcomes, style())
    })?;
    let invalid = runs.iter().any(|run| run.verdict == Verdict::Invalid);
    let exit = if invalid { Some(Exit::RunInvalid) } else { requirements.exit(&outcomes) };
    let exit = exit.max(requirements.write_files(&[Judged { runs, results, outcomes }]));
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The runs that a name means: one, or all that a set repeats.
fn resolve(found: Stored) -> Result<Vec<RunDirectory>> {
    let set = match found {
        Stored::Run(run) => return Ok(vec![run]),
        Stored::Set(set) => set,
        Stored::Import(..) => return Err(beside_runs()),
    };
    let manifest = set.manifest().map_err(Failure::from_usage)?;
    let id = set.id();
    // The runs of these have no common value.
    let refused = match manifest.study.question {
        Question::Repeat | Question::Suite(_) => None,
        Question::Sweep(_) => Some((
            "sweep: a threshold is for one load, and it has several",
            ", or search for the load that meets it: sweep --find 'max rate where …'",
        )),
        Question::Matrix(_) => Some(("matrix: a threshold is for one server, and it has many", "")),
    };
    if let Some((what, or)) = refused {
        return Err(Failure::usage(format!("{id} is a {what}"))
            .hint(format!("name one of its runs, such as {id}/0{or}")));
    }
    let replay = play::replay_finished(&set, &manifest, |point| {
        Ok(summarize_stored(&point.read().map_err(Failure::from_usage)?)?)
    })?;
    if replay.summary.is_none() {
        let stored = play::stored_runs(replay.results.len());
        return Err(Failure::usage(format!("{id} is not finished: {stored}"))
            .hint(format!("resume with: {}", play::resume_command(&set))));
    }
    Ok(replay.results.iter().map(|result| set.point(result.point.number)).collect())
}

/// The summary as this version computes it, of a run that the limits can be about.
fn read(place: &RunDirectory, limits: &[Slo]) -> Result<Summary> {
    let stored = place.read().map_err(Failure::from_usage)?;
    let spec = &stored.observations.manifest.spec;
    check_requirements(limits, &spec.slos, spec.workload.streaming)
        .map_err(|problem| Failure::usage(format!("run {}: {problem}", place.id())))?;
    Ok(summarize_stored(&stored)?)
}

/// Runs that ask different things have no common value.
fn check_alike(runs: &[Summary]) -> Result<()> {
    let is_alike = |one: &Summary, other: &Summary| {
        one.workload.fingerprint == other.workload.fingerprint && one.run.load == other.run.load
    };
    let Some((first, other)) = first_unlike(runs, is_alike) else { return Ok(()) };
    let (first, other) = (&first.run.id, &other.run.id);
    let what = format!("run {first} and run {other} have different workloads or loads");
    Err(Failure::usage(what).hint("name one run at a time, or runs of one workload and load"))
}

/// The first item, and the first of the others that is not like it.
fn first_unlike<T>(items: &[T], is_alike: impl Fn(&T, &T) -> bool) -> Option<(&T, &T)> {
    let (first, others) = items.split_first()?;
    Some((first, others.iter().find(|other| !is_alike(first, other))?))
}

/// The results of imports, which must be alike.
fn read_results(found: &[Stored]) -> Result<Vec<ToolResult>> {
    let mut all: Vec<ToolResult> = Vec::new();
    for found in found {
        let results = match found {
            Stored::Import(import, number) => results::from_import(import, *number)?,
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
) -> Result<()> {
    let Some((first, other)) = first_unlike(results, is_alike) else { return Ok(()) };
    let difference = difference(first, other);
    Err(Failure::usage(format!(
        "a threshold applies to one configuration at one load, and these are {difference}"
    ))
    .hint("name one of them, such as IMPORT/0 (`inferometer report IMPORT` lists them)"))
}

/// How two results differ.
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
