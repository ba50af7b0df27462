//! `inferometer run`: one measurement of one server, or the same several times.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::{SloVerdict, Summary, Verdict, check_slos};
use inferometer_load::{Control, resources};
use inferometer_model::observations::Correction;
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::{Extent, LoadShape, Rate, TargetSpec};
use inferometer_model::{BaseUrl, Plan, Spec};
use inferometer_store::RunStore;
use inferometer_target::EngineProcess;
use inferometer_workload::{Ingredients, make_plan, make_warm_up};

use super::{page, store};
use crate::arguments::{PageFormat, ResultArguments, RunArguments};
use crate::draft::{Drafted, Repeat, draft};
use crate::embedded;
use crate::failure::{Exit, Failure};
use crate::measurement::{Measured, Measurement};
use crate::output;
use crate::preflight::{Found, carrying, counting, preflight};
use crate::requirements::Requirements;
use crate::signals::{self, Interruption};

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
    let requirements = Requirements::of(&results.require, &spec)?;
    let mut ingredients = Ingredients::gather(&spec)?;
    let (plan, fingerprints) = make_plan(&spec, &ingredients);
    if results.dry_run {
        let planned = Planned { plan, fingerprints };
        super::plan::show(&spec, repeat, &planned, &ingredients, results.page.format())?;
        return Ok(ExitCode::SUCCESS);
    }
    if plan.bounds().requests == Some(0) {
        return Err(Failure::usage("no request falls into --duration at this rate")
            .hint("run longer, raise the rate, or give a number with --requests"));
    }
    let ceiling = resources::raise_in_flight_ceiling(spec.client.drivers);
    check_ceiling(&spec, ceiling)?;
    let store = store(&results.store)?;
    store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
    let server = Server::of(&spec)?;
    if !results.quiet {
        output::talk(&format!("asking {} what it serves …", server.base()));
    }
    let found = preflight(&spec, &secrets, server.base(), server.is_embedded())?;
    let body = &spec.workload.body;
    if body.images.is_some() || body.adapters.is_some() {
        carrying::check(&found.target, &secrets, plan.as_ref())?;
    }
    let correction =
        if ingredients.wants_correction() { counting::correction(&found.target)? } else { None };
    if let Some(correction) = correction {
        ingredients.correct(correction);
    }
    let control = Control::default();
    let interruption = signals::listen(control.clone(), results.quiet)?;
    let runs = Runs {
        spec,
        ingredients,
        correction,
        store,
        found,
        ceiling,
        control,
        interruption,
        requirements,
        results,
    };
    let exit = runs.measure(repeat)?;
    drop(server);
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// What would be sent, and its names.
pub(super) struct Planned {
    pub(super) plan: Arc<dyn Plan>,
    pub(super) fingerprints: Fingerprints,
}

/// One experiment, measured once or several times.
struct Runs<'arguments> {
    spec: Spec,
    /// Of the first run.
    ingredients: Ingredients,
    /// How the server counts our words, where it was asked.
    correction: Option<Correction>,
    store: RunStore,
    found: Found,
    ceiling: usize,
    control: Control,
    interruption: Interruption,
    requirements: Requirements,
    results: &'arguments ResultArguments,
}

impl Runs<'_> {
    /// All of them, until a signal ends it. The exit code is the worst.
    fn measure(&self, repeat: Repeat) -> Result<Option<Exit>, Failure> {
        let format = self.results.page.format();
        let several_documents = format == PageFormat::Json && repeat.runs != 1;
        let (mut runs, mut documents) = (Vec::new(), Vec::new());
        let ended = self.one_by_one(repeat, |measured| {
            let required = self.requirements.of_page(&measured.summary, repeat)?;
            let text = page(&measured.summary, &measured.directory, &required, format);
            runs.push(measured.summary);
            if !several_documents {
                return output::result(&text);
            }
            documents.push(text.trim_end().to_owned());
            Ok(())
        });
        // A failure in a later run takes nothing from the earlier ones.
        if several_documents && (ended.is_ok() || !documents.is_empty()) {
            output::result(&format!("[{}]\n", documents.join(",\n")))?;
        }
        let judged = self.requirements.settle(runs, repeat, format)?;
        let told = self.requirements.tell(std::slice::from_ref(&judged));
        Ok(ended?.or(judged.exit).max(told))
    }

    fn one_by_one(
        &self,
        repeat: Repeat,
        mut show: impl FnMut(Measured) -> Result<(), Failure>,
    ) -> Result<Option<Exit>, Failure> {
        let mut worst = None;
        for number in 0..repeat.runs {
            if 0 < number
                && let Some(exit) = self.rest(number, repeat)
            {
                return Ok(worst.max(Some(exit)));
            }
            let exit = match self.once(number)? {
                Ok(measured) => {
                    let exit = self.exit(&measured.summary);
                    show(measured)?;
                    exit
                }
                // Stopped before anything was measured: there is nothing to save.
                Err(interrupted) => Some(interrupted),
            };
            worst = worst.max(exit);
        }
        Ok(worst)
    }

    /// Each run has a seed of its own, so that no two ask the same.
    fn once(&self, number: u32) -> Result<Result<Measured, Exit>, Failure> {
        let seed = self.spec.seed.wrapping_add(number.into());
        let spec = Spec { seed, ..self.spec.clone() };
        let quiet = self.results.quiet;
        if !quiet {
            output::talk(&opening(&spec, &self.found));
        }
        let ingredients = self.ingredients(number, &spec)?;
        let (plan, fingerprints) = make_plan(&spec, &ingredients);
        let measurement = Measurement {
            warm_up: make_warm_up(&spec, &ingredients),
            spec,
            plan,
            fingerprints,
            materials: ingredients.materials().clone(),
            ceiling: self.ceiling,
            quiet,
        };
        measurement.make(&self.store, self.found.clone(), self.control.clone(), &self.interruption)
    }

    /// What a run is made from. A trace is thinned by the seed, so another seed reads it anew.
    fn ingredients(&self, number: u32, spec: &Spec) -> Result<Ingredients, Failure> {
        if number == 0 {
            return Ok(self.ingredients.clone());
        }
        let mut ingredients = Ingredients::gather(spec)?;
        if let Some(correction) = self.correction {
            ingredients.correct(correction);
        }
        Ok(ingredients)
    }

    /// Lets the server cool down before the next run, unless a signal came or comes.
    fn rest(&self, number: u32, repeat: Repeat) -> Option<Exit> {
        if !self.results.quiet && self.interruption.exit().is_none() {
            let (next, runs) = (number + 1, repeat.runs);
            let rest = match repeat.cool_down {
                Duration::ZERO => String::new(),
                time => format!(", after a rest of {time:?}"),
            };
            output::talk(&format!("run {next} of {runs}{rest} …"));
        }
        self.interruption.wait(repeat.cool_down)
    }

    /// A run that a signal cut short says so first; otherwise the verdict speaks.
    fn exit(&self, summary: &Summary) -> Option<Exit> {
        let interrupted = self.interruption.exit().filter(|_| summary.run.partial);
        interrupted.or_else(|| exit_of(summary, self.results.strict))
    }
}

/// What the verdict and the promises say.
pub(super) fn exit_of(summary: &Summary, strict: bool) -> Option<Exit> {
    match summary.verdict {
        Verdict::Invalid => Some(Exit::RunInvalid),
        Verdict::Degraded if strict => Some(Exit::RunInvalid),
        Verdict::Degraded | Verdict::Valid => {
            let missed = summary.slos.iter().any(|slo| slo.verdict == SloVerdict::Missed);
            missed.then_some(Exit::PromiseMissed)
        }
    }
}

/// What is certain to be in flight at once must find its descriptors.
fn check_ceiling(spec: &Spec, ceiling: usize) -> Result<(), Failure> {
    if ceiling == 0 {
        return Err(Failure::usage(
            "this system gives too few file descriptors: no request can be in flight",
        )
        .hint("raise the limit with `ulimit -n`"));
    }
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
pub(super) enum Server {
    Embedded(EngineProcess),
    Remote(BaseUrl),
}

impl Server {
    pub(super) fn of(spec: &Spec) -> Result<Self, Failure> {
        match &spec.target {
            TargetSpec::Url(base) => Ok(Self::Remote(base.clone())),
            TargetSpec::Embedded => {
                let program = std::env::current_exe()
                    .map_err(|error| Failure::internal(format!("own program: {error}")))?;
                // What cannot be served is refused here, with the words that explain it.
                embedded::profile(&spec.engine)?;
                let mode = ["--mode", "serve"].map(str::to_owned);
                let arguments = [mode.to_vec(), embedded::flags(&spec.engine)?].concat();
                EngineProcess::start(&program, &arguments)
                    .map(Self::Embedded)
                    .map_err(|error| Failure::internal(error.to_string()))
            }
        }
    }

    pub(super) fn base(&self) -> &BaseUrl {
        match self {
            Self::Embedded(engine) => &engine.base,
            Self::Remote(base) => base,
        }
    }

    pub(super) fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }
}
