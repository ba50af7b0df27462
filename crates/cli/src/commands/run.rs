//! `inferometer run`: one measurement of one server.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use inferometer_analysis::{Summary, Verdict};
use inferometer_load::{Control, Drive, Progress, SystemClock, Target, drive, resources};
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::{LoadShape, TargetSpec};
use inferometer_model::{BaseUrl, Plan, RunEnding, Spec};
use inferometer_store::{NewRun, RunDirectory, RunStore, RunWriter, spawn_writer};
use inferometer_target::EngineProcess;
use inferometer_workload::{SyntheticPlan, make_plan};

use super::{seal_summary, show, store};
use crate::arguments::RunArguments;
use crate::draft::draft;
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::preflight::{Found, preflight};
use crate::secrets::Secrets;
use crate::signals::{self, Interruption};
use crate::watch::Watch;

/// Facts that may wait for the writer: most of a second at the highest rate, and a bound on memory
/// with long answers.
const JOURNAL_QUEUE: usize = 1 << 15;

/// The pace of the embedded engine when nobody asks for another: a mid-sized model on one GPU.
const EMBEDDED_PACE: [&str; 6] = ["--ttft", "80ms", "--gap", "8ms", "--jitter", "0.2"];

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let secrets = Secrets::read(&arguments.access)?;
    let spec = draft(arguments, &secrets)?.resolve()?;
    let (plan, fingerprints) = make_plan(&spec);
    if arguments.results.dry_run {
        super::plan::show(&spec, &plan, &fingerprints, arguments.results.page.format())?;
        return Ok(ExitCode::SUCCESS);
    }
    if plan.bounds().requests == Some(0) {
        return Err(Failure::usage("no request falls into --duration at this rate")
            .hint("run longer, raise the rate, or give a number with --requests"));
    }
    let ceiling = resources::raise_in_flight_ceiling();
    check_ceiling(&spec, ceiling)?;
    let store = store(&arguments.results.store)?;
    store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
    let server = Server::of(&spec)?;
    if !arguments.results.quiet {
        output::talk(&format!("asking {} what it serves …", server.base()));
    }
    let found = preflight(&spec, &secrets, server.base(), server.is_embedded())?;
    let quiet = arguments.results.quiet;
    if !quiet {
        output::talk(&opening(&spec, &found));
    }
    let measurement = Measurement { spec, plan: Arc::new(plan), fingerprints, ceiling, quiet };
    let (directory, summary, interruption) = measurement.make(&store, found)?;
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

fn check_ceiling(spec: &Spec, ceiling: usize) -> Result<(), Failure> {
    match &spec.load.shape {
        LoadShape::Closed { concurrency, .. } if ceiling < concurrency.get() as usize => {
            Err(Failure::usage(format!(
                "--concurrency {concurrency} needs more file descriptors than this system gives: \
                 {ceiling} requests can be in flight"
            ))
            .hint("raise the limit with `ulimit -n`, or lower --concurrency"))
        }
        LoadShape::Closed { .. } | LoadShape::Open { .. } => Ok(()),
    }
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

/// Everything is known; what is left is to do it.
struct Measurement {
    spec: Spec,
    plan: Arc<SyntheticPlan>,
    fingerprints: Fingerprints,
    ceiling: usize,
    quiet: bool,
}

impl Measurement {
    fn make(
        self,
        store: &RunStore,
        found: Found,
    ) -> Result<(RunDirectory, Summary, Interruption), Failure> {
        let control = Control::default();
        let interruption = signals::listen(control.clone(), self.quiet)?;
        let clock = SystemClock::new();
        let writer = store.create(NewRun {
            spec: self.spec.clone(),
            bounds: self.plan.bounds(),
            fingerprints: self.fingerprints.clone(),
            endpoint: found.endpoint,
            warm_up: None,
            environment: environment::capture(),
            clock: clock.anchor(),
        })?;
        let directory = writer.directory().clone();
        let request_id_prefix = format!("inferometer-{}", directory.id());
        let target = Target { request_id_prefix, ..found.target };
        let writer = self.play(writer, target, clock, control, &directory)?;
        let stored = writer.seal()?;
        let summary = seal_summary(&directory, &stored)?;
        Ok((directory, summary, interruption))
    }

    /// Drives the plan on a thread of its own and writes what comes back.
    fn play(
        &self,
        writer: RunWriter,
        target: Target,
        clock: SystemClock,
        control: Control,
        directory: &RunDirectory,
    ) -> Result<RunWriter, Failure> {
        let (journal, entries) = sync_channel(JOURNAL_QUEUE);
        let writing = spawn_writer(writer, entries)?;
        let progress = Arc::new(Progress::default());
        let watch =
            (!self.quiet).then(|| Watch::start(Arc::clone(&progress), self.plan.bounds(), clock));
        let run = Drive {
            plan: Arc::clone(&self.plan) as Arc<dyn Plan>,
            target: Arc::new(target),
            clock,
            control,
            progress,
            ceiling: self.ceiling,
            journal,
        };
        let driving = std::thread::Builder::new()
            .name("driver".to_owned())
            .spawn(move || drive(run))
            .map_err(|error| Failure::internal(format!("driver thread: {error}")))?;
        let driven = driving.join();
        drop(watch);
        let written = writing.join();
        let unfinished = |what: String| {
            Failure::internal(what).hint(format!(
                "what was recorded is kept; finish it with: inferometer recover {}",
                directory.path().display()
            ))
        };
        // A writer that failed is the reason why a driver found its journal closed: it goes first.
        let writer = match written {
            Ok(Ok(writer)) => writer,
            Ok(Err(error)) => return Err(unfinished(error.to_string())),
            Err(_) => return Err(unfinished("the journal's writer ended abnormally".to_owned())),
        };
        match driven {
            Ok(Ok(RunEnding { .. })) => Ok(writer),
            Ok(Err(error)) => Err(unfinished(error.to_string())),
            Err(_) => Err(unfinished("the driver ended abnormally".to_owned())),
        }
    }
}
