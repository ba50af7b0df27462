//! `inferometer run`: one measurement of one server, or the same several times.

use std::process::ExitCode;
use std::sync::Arc;

use inferometer_analysis::{SloVerdict, Summary, Verdict, check_slos};
use inferometer_model::plan::Fingerprints;
use inferometer_model::{Plan, Spec};
use inferometer_workload::{Ingredients, make_plan};

use super::{page, store};
use crate::arguments::{ResultArguments, RunArguments};
use crate::draft::{Drafted, draft};
use crate::failure::{Exit, Failure};
use crate::live::{self, Live, Server, Session, check_sends_something};
use crate::measurement::Measured;
use crate::output;
use crate::place::Place;
use crate::requirements::{Judged, Requirements};
use crate::secrets::Secrets;
use crate::set::{self, How};

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
        let server = Arc::new(Server::of(spec)?);
        if !results.quiet {
            output::talk(&format!("asking {} what it serves …", server.base()));
        }
        let live = Live::reach(server, spec, secrets, &ingredients, planned.plan.as_ref())?;
        let session = Session::begin(ceiling, results.quiet)?;
        session.talk(&live.opening(spec));
        let exit = match live.measure(spec, ingredients, Place::alone(&store), &session)? {
            Ok(measured) => self.show(measured, &session)?,
            // Stopped before anything was measured: there is nothing to save.
            Err(interrupted) => Some(interrupted),
        };
        Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
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
