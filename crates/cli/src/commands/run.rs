//! `inferometer run`: one measurement of one server.

use std::process::ExitCode;

use inferometer_analysis::{Summary, Verdict};
use inferometer_load::resources;
use inferometer_model::spec::{Extent, LoadShape, Rate, TargetSpec};
use inferometer_model::{BaseUrl, Spec};
use inferometer_target::EngineProcess;
use inferometer_workload::{Ingredients, make_plan, make_warm_up};

use super::{show, store};
use crate::arguments::RunArguments;
use crate::draft::draft;
use crate::failure::{Exit, Failure};
use crate::measurement::{Measured, Measurement};
use crate::output;
use crate::preflight::{Found, counting, preflight};
use crate::secrets::Secrets;
use crate::signals::Interruption;

/// The pace of the embedded engine when nobody asks for another: a mid-sized model on one GPU.
const EMBEDDED_PACE: [&str; 6] = ["--ttft", "80ms", "--gap", "8ms", "--jitter", "0.2"];

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let secrets = Secrets::read(&arguments.access)?;
    let spec = draft(arguments, &secrets)?.resolve()?;
    let mut ingredients = Ingredients::gather(&spec)?;
    let (plan, fingerprints) = make_plan(&spec, &ingredients);
    if arguments.results.dry_run {
        super::plan::show(
            &spec,
            plan.as_ref(),
            ingredients.materials(),
            &fingerprints,
            arguments.results.page.format(),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    if plan.bounds().requests == Some(0) {
        return Err(Failure::usage("no request falls into --duration at this rate")
            .hint("run longer, raise the rate, or give a number with --requests"));
    }
    let ceiling = resources::raise_in_flight_ceiling(spec.client.drivers);
    check_ceiling(&spec, ceiling)?;
    let store = store(&arguments.results.store)?;
    store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
    let server = Server::of(&spec)?;
    if !arguments.results.quiet {
        output::talk(&format!("asking {} what it serves …", server.base()));
    }
    let found = preflight(&spec, &secrets, server.base(), server.is_embedded())?;
    if ingredients.wants_correction()
        && let Some(correction) = counting::correction(&found.target)?
    {
        ingredients.correct(correction);
    }
    let (plan, fingerprints) = make_plan(&spec, &ingredients);
    let quiet = arguments.results.quiet;
    if !quiet {
        output::talk(&opening(&spec, &found));
    }
    let warm_up = make_warm_up(&spec, &ingredients);
    let materials = ingredients.materials().clone();
    let measurement = Measurement { spec, plan, warm_up, fingerprints, materials, ceiling, quiet };
    let Measured { directory, summary, interruption } = match measurement.make(&store, found)? {
        Ok(measured) => measured,
        // Stopped before anything was measured: there is nothing to save.
        Err(interrupted) => return Ok(interrupted.into()),
    };
    drop(server);
    show(&summary, &directory, arguments.results.page.format())?;
    Ok(exit(&summary, &interruption, arguments.results.strict))
}

/// A run that a signal cut short says so first; otherwise the verdict speaks.
fn exit(summary: &Summary, interruption: &Interruption, strict: bool) -> ExitCode {
    match (interruption.exit().filter(|_| summary.run.partial), summary.verdict) {
        (Some(exit), _) => exit.into(),
        (None, Verdict::Invalid) => Exit::RunInvalid.into(),
        (None, Verdict::Degraded) if strict => Exit::RunInvalid.into(),
        (None, Verdict::Degraded | Verdict::Valid) => ExitCode::SUCCESS,
    }
}

/// What is certain to be in flight at once must find its descriptors.
fn check_ceiling(spec: &Spec, ceiling: usize) -> Result<(), Failure> {
    let (flag, wanted) = match (&spec.load.shape, spec.load.extent) {
        (LoadShape::Closed { concurrency, .. }, _) => ("--concurrency", concurrency.get().into()),
        (LoadShape::Open { cap: Some(cap), .. }, _) => ("--max-concurrency", cap.get().into()),
        (LoadShape::Open { rate: Rate::Unlimited, .. }, Extent::Requests(requests)) => {
            ("--rate inf with --requests", requests.get())
        }
        (LoadShape::Open { .. }, _) => return Ok(()),
    };
    if wanted <= ceiling as u64 {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{flag} {wanted} needs more file descriptors than this system gives: {ceiling} requests \
         can be in flight"
    ))
    .hint("raise the limit with `ulimit -n`, or ask for fewer requests at once"))
}

fn opening(spec: &Spec, found: &Found) -> String {
    let endpoint = &found.endpoint;
    let model = inferometer_report::escape::terminal(&endpoint.model);
    format!("measuring {} of `{model}` at {} …", spec.api, endpoint.base)
}

/// The server to measure, kept alive while it is needed.
enum Server {
    Embedded(EngineProcess),
    Remote(BaseUrl),
}

impl Server {
    fn of(spec: &Spec) -> Result<Self, Failure> {
        match &spec.target {
            TargetSpec::Url(base) => Ok(Self::Remote(base.clone())),
            TargetSpec::Embedded => {
                let program = std::env::current_exe()
                    .map_err(|error| Failure::internal(format!("own program: {error}")))?;
                let arguments: Vec<String> = ["--mode", "paced"]
                    .into_iter()
                    .chain(EMBEDDED_PACE)
                    .map(str::to_owned)
                    .collect();
                EngineProcess::start(&program, &arguments)
                    .map(Self::Embedded)
                    .map_err(|error| Failure::internal(error.to_string()))
            }
        }
    }

    fn base(&self) -> &BaseUrl {
        match self {
            Self::Embedded(engine) => &engine.base,
            Self::Remote(base) => base,
        }
    }

    fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }
}
