//! `inferometer run`: one measurement of one server, or the same several times.

use std::process::ExitCode;

use inferometer_analysis::{Summary, ThresholdVerdict, Verdict, check_slos};
use inferometer_model::spec::TargetSpec;
use inferometer_runner::measurement::{Planned, Run};
use inferometer_runner::{Runner, Session};

use super::{page, store_folder};
use crate::arguments::{Records, ResultArguments, RunArguments};
use crate::draft::{Drafted, announce_seed, draft};
use crate::experiment::config;
use crate::failure::{Exit, Failure, Result};
use crate::requirements::{Judged, Requirements, with_enough_requests};
use crate::study::{Begin, StudyPlan};
use crate::{output, report_files, signals};

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let RunArguments { experiment, results, virtual_time, records } = arguments;
    if *virtual_time {
        return super::simulate::play(experiment, results, records.unwrap_or(Records::All));
    }
    let drafted = draft(experiment)?;
    config::announce(results.quiet);
    let spec = with_enough_requests(drafted.resolve()?, &drafted.spec, results)?;
    let Drafted { secrets, repetition, restart_timeout, .. } = drafted;
    check_slos(&spec.slos, spec.workload.streaming).map_err(Failure::from_usage)?;
    if 1 < repetition.runs.get() && !results.dry_run {
        let plan = StudyPlan::repeated(spec, repetition, secrets);
        let plan = StudyPlan { restart_timeout, ..plan };
        return Begin::new(false, results).run(plan);
    }
    let requirements = Requirements::for_run(&results.require, &spec)?;
    let deploys = matches!(spec.target, TargetSpec::Deployed(_));
    let planned = Planned::new(spec)?;
    if results.dry_run {
        return super::plan::show(&planned, &repetition, results.page.format());
    }
    let runner =
        Runner::from_planned(planned)?.secrets(secrets).store_in(store_folder(&results.store));
    let session = signals::session(runner.ceiling(), results.quiet);
    announce_seed(results.quiet);
    // Until a server that runs already was probed, a signal ends the process at once: there is
    // nothing to save, and nothing to stop.
    if deploys {
        signals::listen(&session)?;
    }
    let connected = runner.connect(&session)?;
    if !deploys {
        signals::listen(&session)?;
    }
    show(connected.measure(&session)?, &requirements, results, &session)
}

/// Prints the run, judges it, and returns the code to exit with.
fn show(
    run: Run,
    requirements: &Requirements,
    results: &ResultArguments,
    session: &Session,
) -> Result<ExitCode> {
    let Run { summary, directory, server_failure } = run;
    let outcomes = requirements.judge(std::slice::from_ref(&summary))?;
    report_files::write_run(&directory);
    output::result(&page(&summary, &directory, &outcomes, results.page.format()))?;
    let exit =
        exit_of_run(&summary, results.strict, session).or_else(|| requirements.exit(&outcomes));
    let told =
        requirements.write_files(&[Judged { runs: vec![summary], results: Vec::new(), outcomes }]);
    if let Some(failure) = server_failure {
        return Ok(output::report(&failure));
    }
    Ok(exit.max(told).map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// A run that a signal cut short exits with its code; otherwise the verdict decides.
pub(super) fn exit_of_run(summary: &Summary, strict: bool, session: &Session) -> Option<Exit> {
    let cut = session.interruption.exit().filter(|_| summary.run.partial);
    cut.or_else(|| exit_of(summary, strict))
}

/// The code for the verdict and the SLOs of a run.
pub(crate) fn exit_of(summary: &Summary, strict: bool) -> Option<Exit> {
    match summary.verdict {
        Verdict::Invalid => Some(Exit::RunInvalid),
        Verdict::Degraded if strict => Some(Exit::RunInvalid),
        Verdict::Degraded | Verdict::Simulated | Verdict::Valid => {
            let missed = summary.slos.iter().any(|slo| slo.verdict == ThresholdVerdict::Missed);
            missed.then_some(Exit::PromiseMissed)
        }
    }
}
