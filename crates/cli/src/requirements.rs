//! Requirements on the runs of a command: checked before anything is sent, judged after the last
//! run, and written to files for CI.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{
    LatencyOrigin, Requirement, RequirementOutcome, Summary, Undecided, check_requirements,
};
use inferometer_model::Spec;
use inferometer_model::spec::Slo;
use inferometer_model::study::{Question, StudySpec};
use inferometer_report::{Judgement, junit, markdown};

use crate::arguments::{GateArguments, RequireArguments};
use crate::failure::{Exit, Failure};

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
    /// What was imported, where no run of ours is judged.
    pub(crate) results: Vec<ToolResult>,
    pub(crate) outcomes: Vec<RequirementOutcome>,
}

impl Requirements {
    /// Repeated runs of a set are judged together, and the levels of a sweep have no one value.
    pub(crate) fn for_set(
        arguments: &RequireArguments,
        study: &StudySpec,
    ) -> Result<Self, Failure> {
        let hint_of_set = |verb: &str, set: &str| {
            format!(
                "{verb} the {set}, then judge a run of it with: inferometer require SET/N LIMIT"
            )
        };
        let (why, hint) = match (&study.question, study.conditions.first()) {
            (Question::Repeat, Some(condition)) => {
                return Self::for_run(arguments, &condition.spec);
            }
            (Question::Suite(_), _) => (
                "is about one experiment, and a suite has several scenarios",
                hint_of_set("play", "suite"),
            ),
            (Question::Matrix(_), _) => (
                "is about one experiment, and a matrix has many deployments",
                hint_of_set("measure", "matrix"),
            ),
            (Question::Sweep(_) | Question::Repeat, _) => (
                "is about one load, and a sweep has several",
                "search for the load that meets it: --find 'max rate where …'".to_owned(),
            ),
        };
        let flags = [
            ("--require", !arguments.limits.is_empty()),
            ("--junit", arguments.gate.junit.is_some()),
            ("--step-summary", arguments.gate.step_summary.is_some()),
        ];
        match flags.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(Self::new(Vec::new(), &arguments.gate)),
            Some((flag, _)) => Err(Failure::usage(format!("{flag} {why}")).hint(hint)),
        }
    }

    /// Refuses what no run of this experiment could be judged by.
    pub(crate) fn for_run(arguments: &RequireArguments, spec: &Spec) -> Result<Self, Failure> {
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

    /// One run from within, several by what differs between them.
    pub(crate) fn judge(&self, runs: &[Summary]) -> Result<Vec<RequirementOutcome>, Failure> {
        let open = runs.first().is_some_and(|run| run.run.load.is_open());
        let origin = LatencyOrigin::for_load(open);
        let judge = |limit| Ok(requirement(limit, origin)?.judge_across(runs));
        self.limits.iter().map(judge).collect()
    }

    /// What was imported: one by its values, several by what differs between them. A bare `ttft` or
    /// `e2e` counts from sending, as other tools count, unless the result only has the other.
    pub(crate) fn judge_imported(
        &self,
        results: &[ToolResult],
    ) -> Result<Vec<RequirementOutcome>, Failure> {
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

    /// Writes what CI reads. The runs are stored by then, so a file that cannot be written is
    /// reported and takes nothing from them.
    pub(crate) fn write_files(&self, judged: &[Judged]) -> Option<Exit> {
        let judgements: Vec<Judgement<'_>> = judged
            .iter()
            .filter(|judged| !judged.runs.is_empty() || !judged.results.is_empty())
            .map(|Judged { runs, results, outcomes }| Judgement {
                runs,
                results,
                requirements: outcomes,
                undecided: self.undecided,
            })
            .collect();
        if judgements.is_empty() {
            return None;
        }
        let junit = |file| {
            fs::write(file, junit::render(&judgements))
                .map_err(|why| unwritten("--junit", file, &why))
        };
        let summary = |file| {
            let opened = fs::OpenOptions::new().create(true).append(true).open(file);
            let text: String = judgements.iter().map(markdown::step_summary).collect();
            opened
                .and_then(|mut opened| opened.write_all(text.as_bytes()))
                .map_err(|why| unwritten("the step summary", file, &why))
        };
        let written = [self.junit.as_deref().map(junit), self.step_summary.as_deref().map(summary)];
        let failures = written.into_iter().flatten().filter_map(Result::err);
        failures.fold(None, |_, failure| {
            let _ = crate::output::report(&failure);
            Some(Exit::Internal)
        })
    }
}

fn requirement(limit: &Slo, origin: LatencyOrigin) -> Result<Requirement, Failure> {
    Requirement::from_slo(limit, origin).map_err(Failure::from_usage)
}

fn unwritten(what: &str, file: &Path, error: &std::io::Error) -> Failure {
    Failure::internal(format!("{what}: {} could not be written: {error}", file.display())).hint(
        "the runs are stored; write it again with: inferometer require RUN LIMIT --junit FILE",
    )
}
