//! `inferometer run`: one measurement of one server, or the same several times.

use std::process::ExitCode;

use inferometer_analysis::compliance::{
    AUDIT_COMMITMENT, AUDIT_DRAWN, AUDIT_NONCE, commitment, seed_of_nonces,
};
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{Summary, ThresholdVerdict, Verdict, check_goals};
use inferometer_model::spec::TargetSpec;
use inferometer_runner::measurement::{Planned, Run};
use inferometer_runner::{Runner, Session, embedded};
use ring::rand::{SecureRandom, SystemRandom};

use super::{page, store_folder};
use crate::arguments::{Records, ResultArguments, RunArguments, WorkerArguments};
use crate::draft::{Drafted, announce_seed, draft};
use crate::experiment::config;
use crate::failure::{Exit, Failure, Result};
use crate::requirements::{Judged, Requirements, with_enough_requests};
use crate::study::{Begin, StudyPlan};
use crate::workers::{Objects, Scheduled, read_spec};
use crate::{output, push, report_files, signals};

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let RunArguments { experiment, results, virtual_time, records, workers, push, .. } = arguments;
    let RunArguments { audit, audit_nonce, .. } = arguments;
    if *virtual_time {
        return super::simulate::play(experiment, results, records.unwrap_or(Records::All));
    }
    let mut drafted = draft(experiment)?;
    if *audit || audit_nonce.is_some() {
        hold_to_rules(&mut drafted, audit_nonce.as_deref())?;
    }
    config::announce(results.quiet);
    let spec = match &workers.spec {
        Some(path) => read_spec(path, &drafted.resolve()?.client)?,
        None => with_enough_requests(drafted.resolve()?, &drafted.spec, results)?,
    };
    workers.check(&drafted, results)?;
    let WorkerArguments { scheduler, stripe, .. } = workers;
    let scheduled = if stripe.is_none() { Scheduled::new(scheduler, experiment)? } else { None };
    let Drafted { secrets, repetition, restart_timeout, .. } = drafted;
    check_goals(&spec).map_err(Failure::from_usage)?;
    if 1 < repetition.runs.get() && !results.dry_run {
        let plan = StudyPlan::repeated(spec, repetition, secrets);
        let workers = scheduled.map(Scheduled::boxed);
        let plan = StudyPlan { restart_timeout, workers, ..plan };
        return Begin::new(false, results).run(plan);
    }
    let requirements = Requirements::for_run(&results.require, &spec)?;
    if let Some(scheduled) = scheduled {
        return scheduled.run(&spec, &secrets, &requirements, results);
    }
    let deploys = matches!(spec.target, TargetSpec::Deployed(_));
    if spec.target == TargetSpec::Embedded {
        // An unknown profile is refused before anything is shown.
        embedded::profile(&spec.engine)?;
    }
    let planned = Planned::new(spec)?;
    let planned = match workers.worker() {
        Some(worker) => planned.shared(worker)?,
        None => planned,
    };
    if results.dry_run {
        return super::plan::show(&planned, &repetition, results.page.format());
    }
    let objects = scheduler.results.as_deref().map(Objects::open).transpose()?.zip(*stripe);
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
    let run = connected.measure(&session)?;
    // A page is shown whatever becomes of the upload.
    let left = objects.map_or(Ok(()), |(objects, stripe)| objects.upload(stripe, &run.directory));
    let result = ToolResult::from_summary(&run.summary);
    let exit = show(run, &requirements, results, &session)?;
    push::push(&[result], push)?.iter().for_each(|line| session.talk(line));
    left.map(|()| exit)
}

/// Draws a nonce, publishes its hash, and only then takes the nonce of the auditor: the seed follows from
/// both, so that neither side has chosen it.
fn hold_to_rules(drafted: &mut Drafted, auditor: Option<&str>) -> Result<()> {
    if drafted.spec.workload.seed.is_some() || drafted.spec.saved.is_some() {
        return Err(Failure::usage(
            "an audited run must not have --seed or a saved plan: its seed is drawn",
        )
        .hint("leave it out, or let the auditor choose --audit-nonce"));
    }
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Failure::internal("no random bytes"))?;
    let drawn = crate::results::hex(&bytes);
    let committed = commitment(&drawn);
    output::talk(&format!("commitment: sha256 {committed}"));
    let auditor = match auditor {
        Some("-") => {
            output::talk("send it to the auditor, and type the text that comes back:");
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map_err(Failure::from_error)?;
            let text = Some(line.trim().to_owned()).filter(|text| !text.is_empty());
            Some(text.ok_or_else(|| Failure::usage("no text was entered for the auditor"))?)
        }
        other => other.map(str::to_owned),
    };
    drafted.spec.workload.seed =
        Some(seed_of_nonces(&drawn, auditor.as_deref().unwrap_or_default()));
    let nonces = [(AUDIT_DRAWN, drawn), (AUDIT_COMMITMENT, committed)];
    let nonces = nonces.into_iter().chain(auditor.map(|nonce| (AUDIT_NONCE, nonce)));
    drafted.spec.metadata.extend(nonces.map(|(key, value)| (key.to_owned(), value)));
    Ok(())
}

/// Prints the run, judges it, and returns the code to exit with.
pub(crate) fn show(
    run: Run,
    requirements: &Requirements,
    results: &ResultArguments,
    session: &Session,
) -> Result<ExitCode> {
    let Run { summary, directory, late_failure } = run;
    let outcomes = requirements.judge(std::slice::from_ref(&summary))?;
    report_files::write_run(&directory);
    output::result(&page(&summary, &directory, &outcomes, results.page.format()))?;
    let exit =
        exit_of_run(&summary, results.strict, session).or_else(|| requirements.exit(&outcomes));
    let written =
        requirements.write_files(&[Judged { runs: vec![summary], results: Vec::new(), outcomes }]);
    if let Some(failure) = late_failure {
        return Ok(output::report(&failure));
    }
    Ok(exit.max(written).map_or(ExitCode::SUCCESS, ExitCode::from))
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
            (missed || summary.run.stop.is_abort()).then_some(Exit::PromiseMissed)
        }
    }
}
