//! What is required of the runs of a command: checked before anything is sent, judged after the
//! last run, told to CI in files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use inferometer_analysis::{
    Requirement, RequirementOutcome, Summary, Undecided, Zero, check_requirements,
};
use inferometer_model::Spec;
use inferometer_model::spec::Slo;
use inferometer_report::terminal::{Style, requirements};
use inferometer_report::{Judgement, junit, markdown};

use crate::arguments::{GateArguments, PageFormat, RequireArguments};
use crate::draft::Repeat;
use crate::failure::{Exit, Failure};
use crate::output;

#[derive(Debug)]
pub(crate) struct Requirements {
    limits: Vec<Slo>,
    undecided: Undecided,
    junit: Option<PathBuf>,
    step_summary: Option<PathBuf>,
}

impl Requirements {
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
            undecided: gate.undecided(),
            junit: gate.junit.clone(),
            step_summary: gate.step_summary.clone().or_else(of_github),
            limits,
        }
    }

    /// One run from within, several by what differs between them.
    pub(crate) fn judge(&self, runs: &[Summary]) -> Result<Vec<RequirementOutcome>, Failure> {
        let open = runs.first().is_some_and(|run| run.run.load.is_open());
        let zero = if open { Zero::Schedule } else { Zero::Sent };
        let judged = self.limits.iter().map(|limit| {
            Requirement::of(limit, zero)
                .map(|required| required.judge_across(runs))
                .map_err(|problem| Failure::usage(problem.to_string()))
        });
        judged.collect()
    }

    /// What stands on the page of one run: nothing where several are judged together.
    pub(crate) fn of_page(
        &self,
        summary: &Summary,
        repeat: Repeat,
    ) -> Result<Vec<RequirementOutcome>, Failure> {
        if repeat.runs == 1 { self.judge(std::slice::from_ref(summary)) } else { Ok(Vec::new()) }
    }

    /// Judges the runs of one experiment, after their pages. Several have a section of their own.
    pub(crate) fn settle(
        &self,
        runs: Vec<Summary>,
        repeat: Repeat,
        format: PageFormat,
    ) -> Result<Judged, Failure> {
        if runs.is_empty() {
            return Ok(Judged::default());
        }
        let outcomes = self.judge(&runs)?;
        if repeat.runs != 1 && !outcomes.is_empty() {
            match format {
                PageFormat::Page => {
                    let style = if output::is_coloured() { Style::Coloured } else { Style::Plain };
                    output::result(&format!("\n{}", requirements(&outcomes, style)))?;
                }
                // Their form has no place for it.
                PageFormat::Json | PageFormat::Vllm => {
                    output::talk(requirements(&outcomes, Style::Plain).trim_end());
                }
            }
        }
        let exit = self.exit(&outcomes);
        Ok(Judged { runs, outcomes, exit })
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
            .filter(|judged| !judged.runs.is_empty())
            .map(|Judged { runs, outcomes, .. }| Judgement {
                runs,
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
            let _ = failure.report();
            Some(Exit::Internal)
        })
    }
}

/// The runs of one experiment, and what became of what was required of them.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub(crate) runs: Vec<Summary>,
    pub(crate) outcomes: Vec<RequirementOutcome>,
    pub(crate) exit: Option<Exit>,
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
