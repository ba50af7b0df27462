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
use inferometer_model::campaign::{CampaignSpec, Question};
use inferometer_model::spec::Slo;
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

impl Requirements {
    /// Of a set: repeated runs are judged together, and the levels of a sweep have no one value.
    pub(crate) fn of_set(
        arguments: &RequireArguments,
        campaign: &CampaignSpec,
    ) -> Result<Self, Failure> {
        match (&campaign.question, campaign.conditions.first()) {
            (Question::Repeat, Some(condition)) => Self::of(arguments, &condition.spec),
            (Question::Sweep(_) | Question::Suite(_) | Question::Matrix(_), _)
            | (Question::Repeat, None) => {
                let asked = [
                    ("--require", !arguments.limits.is_empty()),
                    ("--junit", arguments.gate.junit.is_some()),
                    ("--step-summary", arguments.gate.step_summary.is_some()),
                ];
                match asked.into_iter().find(|(_, is_asked)| *is_asked) {
                    None => Ok(Self::new(Vec::new(), &arguments.gate)),
                    Some((flag, _)) => Err(of_several(flag, &campaign.question)),
                }
            }
        }
    }

    /// Refuses what no run of this experiment could be judged by.
    pub(crate) fn of(arguments: &RequireArguments, spec: &Spec) -> Result<Self, Failure> {
        let limits = &arguments.limits;
        check_requirements(limits, &spec.slos, spec.workload.streaming)
            .map_err(|problem| Failure::usage(problem.to_string()))?;
        Ok(Self::new(limits.clone(), &arguments.gate))
    }

    pub(crate) fn new(limits: Vec<Slo>, gate: &GateArguments) -> Self {
        let of_github = || {
            let said = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
            said.filter(|_| !limits.is_empty()).map(PathBuf::from)
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
        let zero = LatencyOrigin::for_load(open);
        let judged = self.limits.iter().map(|limit| {
            Requirement::from_slo(limit, zero)
                .map(|required| required.judge_across(runs))
                .map_err(|problem| Failure::usage(problem.to_string()))
        });
        judged.collect()
    }

    /// What was imported: one by its values, several by what differs between them. A bare `ttft` or
    /// `e2e` counts from sending, as other tools count, unless the result only has the other.
    pub(crate) fn judge_imported(
        &self,
        results: &[ToolResult],
    ) -> Result<Vec<RequirementOutcome>, Failure> {
        let judged = self.limits.iter().map(|limit| {
            let judge =
                |zero| Requirement::from_slo(limit, zero).map(|it| it.judge_results(results));
            let found = judge(LatencyOrigin::Sent)
                .map_err(|problem| Failure::usage(problem.to_string()))?;
            match (found.value, judge(LatencyOrigin::Schedule)) {
                (None, Ok(other)) if other.value.is_some() => Ok(other),
                _ => Ok(found),
            }
        });
        judged.collect()
    }

    /// What the requirements say, where the runs themselves have nothing worse to say.
    pub(crate) fn exit(&self, outcomes: &[RequirementOutcome]) -> Option<Exit> {
        let met = outcomes.iter().all(|found| found.verdict.is_met(self.undecided));
        (!met).then_some(Exit::PromiseMissed)
    }

    /// Writes what CI reads. The runs are stored by then, so a file that cannot be written is said
    /// and takes nothing from them.
    pub(crate) fn tell(&self, judged: &[Judged]) -> Option<Exit> {
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
        let junit = self.junit.as_deref().map(|file| write(file, &junit::render(&judgements)));
        let summary = self.step_summary.as_deref();
        let summary = summary.map(|file| {
            append(file, &judgements.iter().map(markdown::step_summary).collect::<String>())
        });
        let told = [junit, summary].into_iter().flatten();
        told.filter_map(Result::err).fold(None, |_, failure| {
            let _ = crate::output::report(&failure);
            Some(Exit::Internal)
        })
    }
}

fn of_several(flag: &str, question: &Question) -> Failure {
    match question {
        Question::Suite(_) => Failure::usage(format!(
            "{flag} is about one experiment, and a suite has several scenarios"
        ))
        .hint("play the suite, then judge a run of it with: inferometer require SET/N LIMIT"),
        Question::Matrix(_) => Failure::usage(format!(
            "{flag} is about one experiment, and a matrix has many deployments"
        ))
        .hint("measure the matrix, then judge a run of it with: inferometer require SET/N LIMIT"),
        Question::Sweep(_) | Question::Repeat => {
            Failure::usage(format!("{flag} is about one load, and a sweep has several"))
                .hint("search for the load that meets it: --find 'max rate where …'")
        }
    }
}

/// The runs of one experiment, and what became of what was required of them.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) runs: Vec<Summary>,
    /// What was imported, where no run of ours is judged.
    pub(crate) results: Vec<ToolResult>,
    pub(crate) outcomes: Vec<RequirementOutcome>,
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| unwritten("--junit", file, &error))
}

fn append(file: &Path, text: &str) -> Result<(), Failure> {
    let opened = fs::OpenOptions::new().create(true).append(true).open(file);
    opened
        .and_then(|mut opened| opened.write_all(text.as_bytes()))
        .map_err(|error| unwritten("the step summary", file, &error))
}

fn unwritten(what: &str, file: &Path, error: &std::io::Error) -> Failure {
    Failure::internal(format!("{what}: {} could not be written: {error}", file.display())).hint(
        "the runs are stored; write it again with: inferometer require RUN LIMIT --junit FILE",
    )
}
