//! `inferometer run`: one measurement of one server, or the same several times.

use std::process::ExitCode;
use std::sync::Arc;

use inferometer_analysis::{SloVerdict, Summary, Verdict, check_slos};
use inferometer_model::deployment::DeploymentSpec;
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{Plan, Spec};
use inferometer_store::RunStore;
use inferometer_workload::{Ingredients, make_plan};

use super::{page, store};
use crate::arguments::{ResultArguments, RunArguments};
use crate::deployed::{self, Deployed};
use crate::draft::{Drafted, draft};
use crate::failure::{Exit, Failure};
use crate::live::{self, Live, Server, Session, check_sends_something};
use crate::measurement::Measured;
use crate::output;
use crate::place::Place;
use crate::requirements::{Judged, Requirements};
use crate::secrets::Secrets;
use crate::set::{self, How};
use crate::signals::begin_session;

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    if let Some(simulated) = arguments.simulated() {
        return super::simulate::run(&simulated);
    }
    let drafted = draft(&arguments.experiment)?;
    let spec = drafted.resolve()?;
    let Drafted { secrets, repeat, .. } = drafted;
    check_slos(&spec.slos, spec.workload.streaming)
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    let results = &arguments.results;
    if 1 < repeat.runs && !results.dry_run {
        let restart_timeout = repeat.restart_timeout;
        let how = How::Live { secrets: vec![secrets], restart_timeout };
        return set::begin(set::repeated(spec, &repeat)?, how, results);
    }
    let requirements = Requirements::of(&results.require, &spec)?;
    let ingredients = Ingredients::gather(&spec)?;
    let (plan, fingerprints) = make_plan(&spec, &ingredients);
    let planned = Planned { plan, fingerprints };
    if results.dry_run {
        super::plan::show(&spec, &repeat, &planned, &ingredients, results.page.format())?;
        return Ok(ExitCode::SUCCESS);
    }
    let order = Order { spec: &spec, secrets: &secrets, requirements: &requirements, results };
    order.carry_out(ingredients, &planned)
}

/// What would be sent, and its names.
pub(super) struct Planned {
    pub(super) plan: Arc<dyn Plan>,
    pub(super) fingerprints: Fingerprints,
}

/// A server that is put up for one run.
#[derive(Clone, Copy)]
struct Visit<'a> {
    how: &'a DeploymentSpec,
    store: &'a RunStore,
    session: &'a Session,
}

/// One measurement, with all that is wanted of it.
struct Order<'a> {
    spec: &'a Spec,
    secrets: &'a Secrets,
    requirements: &'a Requirements,
    results: &'a ResultArguments,
}

impl Order<'_> {
    fn carry_out(&self, ingredients: Ingredients, planned: &Planned) -> Result<ExitCode, Failure> {
        let Self { spec, secrets, results, .. } = *self;
        check_sends_something(planned.plan.as_ref())?;
        let ceiling = live::ceiling(spec);
        live::check_ceiling(spec, ceiling)?;
        let store = store(&results.store)?;
        store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
        if let TargetSpec::Deployed(how) = &spec.target {
            let session = begin_session(ceiling, results.quiet)?;
            let visit = Visit { how, store: &store, session: &session };
            return self.put_up(&visit, ingredients, planned);
        }
        let server = Arc::new(Server::of(spec)?);
        if !results.quiet {
            output::talk(&format!("asking {} what it serves …", server.base()));
        }
        let live = Live::reach(server, spec, secrets, &ingredients, planned.plan.as_ref())?;
        let session = begin_session(ceiling, results.quiet)?;
        session.emit(live.opening(spec));
        let measured = live.measure(spec, ingredients, Place::alone(&store), &session)?;
        let exit = self.show(measured, &session)?;
        Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
    }

    /// The same with a server of ours, which is taken down whatever happens.
    fn put_up(
        &self,
        visit: &Visit<'_>,
        ingredients: Ingredients,
        planned: &Planned,
    ) -> Result<ExitCode, Failure> {
        let (spec, Visit { how, store, session }) = (self.spec, *visit);
        let log = deployed::log_in(store.path());
        let deployed = Deployed::put_up(spec, self.secrets, &log, session)
            .map_err(|not_up| not_up.failure(how, &log))?;
        let server = Arc::new(Server::Deployed(Box::new(deployed)));
        let reached = Arc::clone(&server);
        let measured =
            Live::reach(reached, spec, self.secrets, &ingredients, planned.plan.as_ref()).and_then(
                |live| {
                    session.emit(live.opening(spec));
                    let place = Place::alone(store).with_server_log(&log);
                    live.measure(spec, ingredients, place, session)
                },
            );
        let stop = measured.as_ref().ok().map(|measured| measured.summary.run.stop);
        let died = server.deployed().and_then(|deployed| deployed.lost(stop));
        // What the server says of a refusal is worth more than the refusal.
        let measured = measured.map_err(|failure| match server.deployed() {
            Some(deployed) => failure.shown(deployed.last_words()),
            None => failure,
        });
        if let Some(deployed) = server.deployed() {
            deployed.take_down(session);
        }
        let log = match &measured {
            Ok(measured) => deployed::keep_log(&log, measured.directory.path()),
            Err(_) => log,
        };
        let died = died.map(|found| deployed::failure(&found, how, &log));
        match (measured, died) {
            (Ok(measured), died) => {
                let exit = self.show(measured, session)?;
                let told = died.filter(|_| session.interruption.exit().is_none());
                let code = exit.map_or(ExitCode::SUCCESS, ExitCode::from);
                Ok(told.map_or(code, |failure| output::report(&failure)))
            }
            (Err(failure), Some(died)) if !failure.is_interruption() => Err(died),
            (Err(failure), _) => Err(failure),
        }
    }

    fn show(&self, measured: Measured, session: &Session) -> Result<Option<Exit>, Failure> {
        let Measured { summary, directory } = measured;
        let outcomes = self.requirements.judge(std::slice::from_ref(&summary))?;
        output::result(&page(&summary, &directory, &outcomes, self.results.page.format()))?;
        // A run that a signal cut short says so first; otherwise the verdict speaks.
        let cut = session.interruption.exit().filter(|_| summary.run.partial);
        let exit = cut
            .or_else(|| exit_of(&summary, self.results.strict))
            .or_else(|| self.requirements.exit(&outcomes));
        let told = self.requirements.tell(&[Judged {
            runs: vec![summary],
            results: Vec::new(),
            outcomes,
        }]);
        Ok(exit.max(told))
    }
}

/// What the verdict and the promises say.
pub(crate) fn exit_of(summary: &Summary, strict: bool) -> Option<Exit> {
    match summary.verdict {
        Verdict::Invalid => Some(Exit::RunInvalid),
        Verdict::Degraded if strict => Some(Exit::RunInvalid),
        Verdict::Degraded | Verdict::Valid => {
            let missed = summary.slos.iter().any(|slo| slo.verdict == SloVerdict::Missed);
            missed.then_some(Exit::PromiseMissed)
        }
    }
}
