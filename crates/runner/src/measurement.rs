//! One benchmark from its spec to a stored run: the server that it measures (reached, deployed or
//! embedded, and probed), the warm-up, the drive of its plan, the telemetry of server and machines, and
//! the summary.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use inferometer_analysis::{AbortWatch, Summary, check_goals, summarize};
use inferometer_load::answer::Failure as LoadFailure;
use inferometer_load::resources::{self, Memory, ResolveError};
use inferometer_load::target::Credentials;
use inferometer_load::{
    Drive, Drivers, HttpFetch, LoadError, Progress, ProgressView, SystemClock, Target,
    connections_needed, drive,
};
use inferometer_model::journal::JournalBatch;
use inferometer_model::observations::{Correction, Endpoint, HttpVersion, WarmUpFacts};
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{
    ClientSpec, Control, DevicesAsked, Extent, LoadShape, Rate, TargetSpec, TelemetrySpec, WarmUp,
};
use inferometer_model::stripe::HostFacts;
use inferometer_model::system::ServerFacts;
use inferometer_model::telemetry::{Absence, DevicesAbsence, MissReason, TelemetryEntry};
use inferometer_model::{
    BaseUrl, Clock, Environment, JournalEntry, Manifest, Outcome, Plan, RunEnding, Spec,
};
use inferometer_store::{
    RunDirectory, RunStore, RunWriter, SetDirectory, StoreError, StoredRun, TelemetryWriter,
    spawn_writer,
};
use inferometer_target::gpu::GpuProbe;
use inferometer_target::machines::{Devices, Sampler, Sampling};
use inferometer_target::{Poller, PollerError, Polling};
use inferometer_workload::stripe::{StripeIds, StripedPlan, conversation_starts};
use inferometer_workload::{Inputs, make_plan, make_warm_up};

use crate::answers::{Answers, DemandingPlan};
use crate::deployed::{self, Deployed};
use crate::embedded::Engine;
use crate::failure::{Failure, Result};
use crate::hooks::Hooks;
use crate::interruption::{Interruption, Sending};
use crate::live::LiveTally;
use crate::preflight::{self, Found};
use crate::secrets::Secrets;
use crate::session::{Event, ProgressTick, Session};
use crate::worker::Worker;
use crate::{answers, calibration, environment};

/// A benchmark that is planned and checked, and has sent nothing yet.
#[derive(Debug)]
#[must_use]
pub struct Runner {
    planned: Planned,
    secrets: Secrets,
    folder: PathBuf,
    ceiling: usize,
}

impl Runner {
    /// Reads what the spec names, plans every request, and checks what can be checked without a
    /// server.
    pub fn new(spec: Spec) -> Result<Self> {
        check_goals(&spec).map_err(Failure::from_usage)?;
        Self::from_planned(Planned::new(spec)?)
    }

    /// The same for a plan that was made before.
    pub fn from_planned(planned: Planned) -> Result<Self> {
        planned.check_sends_something()?;
        let ceiling = ceiling(&planned.spec);
        // Each of several workers has its share of the slots.
        let workers = Worker::count(planned.worker.as_ref()).get() as usize;
        check_ceiling(&planned.spec, ceiling.saturating_mul(workers))?;
        Ok(Self { planned, secrets: Secrets::default(), folder: PathBuf::from("runs"), ceiling })
    }

    /// Keys and headers to send. The default is none.
    pub fn secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The folder in which runs are stored. The default is `./runs`.
    pub fn store_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self }
    }

    /// Requests that may be in flight before the system runs out of file descriptors.
    pub fn ceiling(&self) -> usize {
        self.ceiling
    }

    /// Runs the benchmark to its end. Every [`Event`] is passed to `observe`, from several threads.
    /// Signals are not handled; see [`Runner::connect`].
    pub fn run(self, observe: impl Fn(Event) + Send + Sync + 'static) -> Result<Run> {
        let session = Session::new(self.ceiling, Arc::new(observe));
        self.connect(&session)?.measure(&session)
    }

    /// Deploys or reaches the server and probes it. What comes next is [`Connected::measure`].
    pub fn connect(self, session: &Session) -> Result<Connected> {
        let store = RunStore::open(self.folder).map_err(Failure::from_usage)?;
        let store = store.hiding(self.secrets.credentials.redactor());
        store.check_writable().map_err(Failure::from_usage)?;
        let spec = &self.planned.spec;
        let is_deployed = matches!(spec.target, TargetSpec::Deployed(_));
        let log = is_deployed.then(|| deployed::log_in(store.path()));
        let server = if let Some(log) = &log {
            Deployed::server(spec, &self.secrets, log, session)?
        } else {
            let server = Server::new(spec)?;
            session.emit(Event::Probing { base: server.base().clone() });
            server
        };
        let server = Arc::new(server);
        let live = Live::reach(Arc::clone(&server), &self.secrets, &self.planned)
            .map_err(|failure| explain(failure, &server, session))?;
        session.emit(live.opening());
        Ok(Connected { planned: self.planned, store, log, server, live })
    }
}

/// A benchmark whose server was probed.
#[derive(Debug)]
pub struct Connected {
    planned: Planned,
    store: RunStore,
    log: Option<PathBuf>,
    server: Arc<Server>,
    live: Live,
}

impl Connected {
    /// Measures, stores and summarizes. A server that was deployed for it is stopped, whatever
    /// happens.
    pub fn measure(self, session: &Session) -> Result<Run> {
        let Self { planned, store, log, server, live } = self;
        let location = RunLocation { server_log: log.as_deref(), ..RunLocation::in_store(&store) };
        let run = live
            .measure(planned, location, session)
            .map_err(|failure| explain(failure, &server, session))?;
        let (Some(deployed), Some(log)) = (server.deployed(), log) else { return Ok(run) };
        let lost = deployed.lost(Some(run.summary.run.stop));
        deployed.stop(session);
        let log = deployed::keep_log(&log, run.directory.path());
        let lost = lost.filter(|_| session.interruption.exit().is_none());
        let late_failure = lost.map(|lost| deployed.explain(&lost, &log)).or(run.late_failure);
        Ok(Run { late_failure, ..run })
    }
}

/// What a deployed server wrote last explains a failure better than the failure does. The server is
/// stopped.
fn explain(failure: Failure, server: &Server, session: &Session) -> Failure {
    let Some(deployed) = server.deployed() else { return failure };
    let lost = deployed.lost(None);
    let failure = failure.shown(deployed.last_lines());
    deployed.stop(session);
    match lost {
        Some(lost) if !failure.is_interruption() => deployed.explain(&lost, &deployed.log),
        Some(_) | None => failure,
    }
}

/// A server that was probed and is ready to be measured.
#[derive(Debug)]
#[must_use]
pub struct Live {
    pub(crate) found: Found,
    /// What the server is and what it runs on.
    pub(crate) facts: ServerFacts,
    /// How the server counts our words, where it was asked.
    correction: Option<Correction>,
    /// Begins the id of every request; `None` uses the id of the run.
    pub(crate) request_id_prefix: Option<String>,
    /// Ends with the last measurement, where it is ours.
    _server: Arc<Server>,
}

impl Live {
    /// Probes everything that must be known before a run.
    pub fn reach(server: Arc<Server>, secrets: &Secrets, planned: &Planned) -> Result<Self> {
        let Planned { spec, inputs, plan, .. } = planned;
        let found = preflight::preflight(spec, secrets, server.base(), server.is_embedded())?;
        let facts = environment::find_server(
            spec,
            &found,
            server.deployed().map(|deployed| &deployed.facts),
        )?;
        let body = &spec.workload.body;
        if body.has_media() || body.adapters.is_some() {
            preflight::check_carried(&found.target, secrets, plan.as_ref())?;
        }
        let correction =
            if inputs.wants_correction() { preflight::correction(&found.target)? } else { None };
        Ok(Self { found, facts, correction, request_id_prefix: None, _server: server })
    }

    /// The same server, with request ids that begin with this prefix.
    pub fn naming_requests(self, request_id_prefix: Option<String>) -> Self {
        Self { request_id_prefix, ..self }
    }

    /// Where requests are sent.
    pub fn target(&self) -> &Target {
        &self.found.target
    }

    /// The event that opens the measurement.
    pub fn opening(&self) -> Event {
        let Endpoint { model, base, .. } = self.found.endpoint.clone();
        Event::Measuring { api: self.found.target.api, model, base }
    }

    /// Measures. A signal before the first request is a failure, and nothing is stored.
    pub fn measure(
        &self,
        planned: Planned,
        location: RunLocation<'_>,
        session: &Session,
    ) -> Result<Run> {
        let host = planned.worker.as_ref().map(|worker| worker.check_host(session)).transpose()?;
        // Only lengths as the server counts them change the plan.
        let planned = match self.correction {
            Some(correction) => planned.corrected(correction),
            None => planned,
        };
        planned.check_sends_something()?;
        let warm_up = planned.warm_up();
        let has_warm_up = warm_up.is_some();
        let warmed_up = warm_up.map(|plan| self.warm_up(plan, &planned.spec, session));
        // Goes first: a warm-up that was cut has no request that succeeded, and that is no fault.
        session.interruption.check().inspect_err(|_| {
            let when = if has_warm_up { "in the warm-up" } else { "before the run began" };
            session.emit(Event::Interrupted { when });
        })?;
        let warmed_up = warmed_up.transpose()?;
        let log = location.store.path().join("hooks.log");
        let hooks = Hooks { spec: &planned.spec, target: &self.found.target, log: &log, session };
        let Control { before_run, after_run, .. } = &planned.spec.control;
        // One of several workers is enough to call them.
        let is_calling = planned.worker.as_ref().is_none_or(|it| it.stripe.index == 0);
        let [before, after] =
            [before_run, after_run].map(|it| if is_calling { it } else { &[][..] });
        let measured = hooks
            .call("--before-run", before, &session.interruption)
            .and_then(|()| self.record(&planned, location, (warmed_up, host), session));
        // Also where the run failed: a profiler that was started must end.
        let ended = hooks.call("--after-run", after, &Interruption::default());
        if log.is_file() {
            warn_of_secrets(location.store, &log, session);
        }
        measured.map(|run| Run { late_failure: ended.err(), ..run })
    }

    /// Plays the plan and stores what comes back.
    fn record(
        &self,
        planned: &Planned,
        location: RunLocation<'_>,
        (warmed_up, host): (Option<WarmUpFacts>, Option<HostFacts>),
        session: &Session,
    ) -> Result<Run> {
        let abort = AbortWatch::new(&planned.spec).map_err(Failure::from_usage)?;
        let clock = Worker::clock(planned.worker.as_ref(), session)?;
        let endpoint = self.found.endpoint.clone();
        let devices = devices(&planned.spec, &endpoint, &self.facts, clock);
        // What the embedded engine has cached in a suite is known from its own counters.
        let seen_before = if endpoint.embedded || planned.spec.control.empties_cache() {
            None
        } else {
            let (plan, now_ns) = (&planned.fingerprints.plan, clock.anchor().realtime_ns);
            let Endpoint { base, model, .. } = &endpoint;
            location.store.sent_before(&planned.spec, plan, base, model, now_ns)
        };
        let environment = environment::capture();
        let writer = location.create(Manifest {
            seen_before,
            calibration: calibration::known(session),
            stripe: planned
                .worker
                .as_ref()
                .zip(host)
                .map(|(worker, host)| worker.facts(planned.whole, host)),
            ..planned.manifest(endpoint, warmed_up, environment, self.facts.clone(), clock)
        })?;
        let directory = writer.directory().clone();
        // A set remembers its own command, which finishes this run, too.
        if location.point.is_none() {
            session.interruption.remember(directory.remedy());
        }
        let _sending = session.interruption.sending(Sending::Stored);
        let run_prefix = || format!("inferometer-{}", directory.id().replace('/', "-"));
        let request_id_prefix = self.request_id_prefix.clone().unwrap_or_else(run_prefix);
        let cancel = planned.spec.load.cancel;
        let target = Target { request_id_prefix, cancel, ..self.found.target.clone() };
        let live = LiveTally::watching(abort);
        let context = RunContext {
            spec: &planned.spec,
            session,
            live: &live,
            worker: planned.worker.as_ref(),
        };
        let listening = Listening::start(context, &target, clock, devices, &directory);
        let writer = play(writer, Arc::clone(&planned.plan), target, clock, context)?;
        listening.stop(session);
        let summary = seal_summary(&directory, &writer.seal()?)?;
        warn_of_secrets(location.store, directory.path(), session);
        session.emit(Event::Finished { directory: directory.path().to_owned() });
        Ok(Run { directory, summary, late_failure: None })
    }

    /// Sends requests that are not counted. Of their records only a few facts are kept.
    fn warm_up(&self, plan: Arc<dyn Plan>, spec: &Spec, session: &Session) -> Result<WarmUpFacts> {
        let _sending = session.interruption.sending(Sending::Unstored);
        let by_time = WarmUp::Time(spec.load.warm_up_time);
        let length = plan.bounds().requests.map_or(by_time, WarmUp::Requests);
        session.emit(Event::WarmingUp { length });
        let (journal, entries) = sync_channel::<JournalBatch>(JOURNAL_QUEUE);
        let live = LiveTally::default();
        let seen = live.clone();
        let counting = std::thread::spawn(move || {
            let mut tally = WarmUpTally::default();
            for entry in entries.into_iter().flatten() {
                seen.add(&entry);
                tally.add(entry);
            }
            tally
        });
        let request_id_prefix = "inferometer-warm-up".to_owned();
        let target = Target { request_id_prefix, ..self.found.target.clone() };
        let ending = drive_plan(
            plan,
            target,
            SystemClock::new(),
            journal,
            RunContext { spec, session, live: &live, worker: None },
        )
        .map_err(Failure::from_error)?;
        let tally = counting.join().map_err(|_| Failure::internal("the warm-up's tally ended"))?;
        tally.facts(&ending)
    }
}

/// What a run that goes on belongs to.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) session: &'a Session,
    pub(crate) live: &'a LiveTally,
    /// Which of several workers this is.
    pub(crate) worker: Option<&'a Worker>,
}

/// Drives the plan and writes what comes back.
fn play(
    writer: RunWriter,
    plan: Arc<dyn Plan>,
    target: Target,
    clock: SystemClock,
    context: RunContext<'_>,
) -> Result<RunWriter> {
    let remedy = writer.directory().remedy();
    let (journal, batches) = sync_channel(JOURNAL_QUEUE);
    let (observer, live) = (context.session.clone(), context.live.clone());
    let redactor = target.credentials.redactor().clone();
    let table = &context.spec.answers;
    let mut answers = Answers::new(table, writer.directory(), redactor, context.session)?;
    let plan = DemandingPlan::around(plan, context.spec);
    let seen = move |entry: &mut JournalEntry| {
        answers.take_in(entry);
        live.add(entry);
    };
    let writing = spawn_writer(writer, batches, seen, move |notice| observer.warn(notice))?;
    let driven = drive_plan(plan, target, clock, journal, context);
    let unfinished = |what: String| {
        Failure::internal(what).hint(format!("what was recorded is kept; finish it with: {remedy}"))
    };
    // A writer that failed is the reason why a driver found its journal closed: it goes first.
    let written = writing
        .join()
        .map_err(|_| unfinished("the journal's writer ended abnormally".to_owned()))?;
    let writer = written.map_err(|error| unfinished(error.to_string()))?;
    driven.map(|_| writer).map_err(|error| unfinished(error.to_string()))
}

/// Fewer connections are opened before anyone could read about it.
const DIALLING_SHOWN: usize = 64;

/// Drives a plan to its end and reports its progress.
pub(crate) fn drive_plan(
    plan: Arc<dyn Plan>,
    target: Target,
    clock: SystemClock,
    journal: SyncSender<JournalBatch>,
    RunContext { spec, session, live, worker }: RunContext<'_>,
) -> Result<RunEnding, LoadError> {
    let progress = Arc::new(Progress::default());
    let (bounds, observer) = (plan.bounds(), &session.observer);
    let connections = connections_needed(plan.as_ref(), &target, session.ceiling);
    if DIALLING_SHOWN <= connections {
        session.emit(Event::Dialling { connections });
    }
    std::thread::scope(|scope| {
        let (stop, stopped) = channel::<()>();
        let watched = Arc::clone(&progress);
        let ticker = scope.spawn(move || {
            // Progress is reported often enough to look alive, seldom enough to cost nothing.
            while stopped.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout)
            {
                let elapsed = Duration::from_nanos(clock.now().as_nanos());
                let counts = watched.view();
                let figures = live.figures(elapsed);
                let tick = ProgressTick { counts, bounds, elapsed, live: figures };
                observer(Event::Progress(Box::new(tick)));
                if (session.memory)().is_some_and(|memory| is_used_up(memory, counts))
                    && session.control.run_out()
                {
                    session.warn("stopping: there is no memory to summarize more requests");
                }
                if let Some((stop, why)) = live.abort(elapsed, counts)
                    && watched.abort(stop)
                {
                    session.warn(format!("stopping this run by --abort-on {why}"));
                }
            }
            observer(Event::ProgressEnded);
        });
        let ended = drive(Drive {
            plan,
            target: Arc::new(target),
            clock,
            control: session.control.clone(),
            progress,
            start_at: worker.map(|worker| clock.moment_at_realtime(worker.start_ns)),
            ceiling: session.ceiling,
            drivers: Drivers {
                count: NonZeroUsize::try_from(spec.client.drivers_for(&spec.load))
                    .unwrap_or(NonZeroUsize::MIN),
                cores: spec.client.cores.iter().map(|core| *core as usize).collect(),
            },
            stall_grace: Drive::STALL_GRACE,
            journal,
        });
        drop(stop);
        // An observer that panicked must not end the measurement.
        let _ = ticker.join();
        ended
    })
}

/// Whether a tenth of the memory, and what it takes to summarize the run so far, is all that is left;
/// and this process uses much of it, so that stopping it helps.
fn is_used_up(memory: Memory, counts: ProgressView) -> bool {
    /// What a record and everything that is computed from it takes, and an event of a stream; both as
    /// measured on runs of many requests.
    const BYTES_PER_REQUEST: u64 = 150;
    const BYTES_PER_EVENT: u64 = 45;
    let summary = BYTES_PER_REQUEST * counts.ended() + BYTES_PER_EVENT * counts.output_events;
    let tenth = memory.limit_bytes / 10;
    memory.left_bytes < tenth + summary && tenth < memory.own_bytes + summary
}

/// Raises the limit on file descriptors, and returns how many requests may be in flight then.
pub fn ceiling(spec: &Spec) -> usize {
    resources::raise_in_flight_ceiling(spec.client.drivers)
}

/// Fails if requests that are certain to be in flight at once need more file descriptors.
pub fn check_ceiling(spec: &Spec, ceiling: usize) -> Result<()> {
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

/// The server to measure, kept alive while it is needed.
#[derive(Debug)]
pub enum Server {
    /// The engine of this program.
    Embedded(Engine),
    /// A server that runs already.
    Remote(BaseUrl),
    /// A server that we deployed.
    Deployed(Box<Deployed>),
}

impl Server {
    /// A server that runs already, or the embedded engine. A server that must be deployed needs
    /// more than its spec: see [`Deployed::start`].
    pub fn new(spec: &Spec) -> Result<Self> {
        match &spec.target {
            TargetSpec::Url(base) => Ok(Self::Remote(base.clone())),
            TargetSpec::Deployed(_) => Err(Failure::usage("this command does not deploy servers")
                .hint("start the server yourself and give its URL")),
            TargetSpec::Embedded => Engine::for_spec(spec).map(Self::Embedded),
        }
    }

    /// The base URL of the server.
    pub fn base(&self) -> &BaseUrl {
        match self {
            Self::Embedded(engine) => engine.base(),
            Self::Remote(base) => base,
            Self::Deployed(deployed) => &deployed.base,
        }
    }

    /// The deployment, if we deployed the server.
    pub fn deployed(&self) -> Option<&Deployed> {
        match self {
            Self::Deployed(deployed) => Some(deployed),
            Self::Embedded(_) | Self::Remote(_) => None,
        }
    }

    /// Whether it is the embedded engine.
    pub fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }
}

/// Where a run is stored.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RunLocation<'a> {
    /// What was sent before is looked for here.
    pub store: &'a RunStore,
    pub(crate) point: Option<(&'a SetDirectory, u32)>,
    /// The log of the server that was deployed for this run alone, which is moved beside it.
    pub server_log: Option<&'a Path>,
}

impl<'a> RunLocation<'a> {
    /// A run that is not part of a set.
    pub fn in_store(store: &'a RunStore) -> Self {
        Self { store, point: None, server_log: None }
    }

    /// A point of a set.
    pub fn in_set(store: &'a RunStore, set: &'a SetDirectory, number: u32) -> Self {
        Self { store, point: Some((set, number)), server_log: None }
    }

    /// Creates the directory of the run.
    pub(crate) fn create(self, new: Manifest) -> Result<RunWriter, StoreError> {
        let writer = match self.point {
            Some((set, number)) => set.create_point(number, self.store.redacted(new)?)?,
            None => self.store.create(new)?,
        };
        if let Some(log) = self.server_log {
            // At once: a run that is killed has its server's log, too.
            deployed::keep_log(log, writer.directory().path());
        }
        Ok(writer)
    }
}

/// Batches that may wait for the writer: seconds at the highest rate, and with 64 KiB to a batch a
/// bound on memory.
pub(crate) const JOURNAL_QUEUE: usize = 1 << 13;

/// A benchmark whose requests are planned.
#[derive(Clone)]
#[must_use]
pub struct Planned {
    /// What is measured, and how.
    pub spec: Spec,
    /// What prompts are made from: tokenizers, datasets, traces.
    pub inputs: Inputs,
    /// Every request, with the time at which it is sent.
    pub plan: Arc<dyn Plan>,
    /// Names of the workload and the plan: equal for equal bytes on the wire.
    pub fingerprints: Fingerprints,
    /// The bounds of the plan of all workers.
    pub whole: Bounds,
    /// Which of several workers this client is; the plan is then its share alone.
    pub worker: Option<Worker>,
}

inferometer_model::debug_fields!(Planned, fingerprints);

impl Planned {
    /// Reads what the spec names and plans every request.
    pub fn new(spec: Spec) -> Result<Self> {
        let inputs = Inputs::gather(&spec)?;
        Ok(Self::from_ingredients(spec, inputs))
    }

    /// The same without texts: a simulation needs only their lengths.
    pub fn without_words(spec: Spec) -> Result<Self> {
        let inputs = Inputs::gather_without_words(&spec)?;
        Ok(Self::from_ingredients(spec, inputs))
    }

    /// Plans every request from inputs that were read before.
    pub fn from_ingredients(spec: Spec, inputs: Inputs) -> Self {
        let (plan, fingerprints) = make_plan(&spec, &inputs);
        let whole = plan.bounds();
        Self { spec, inputs, plan, fingerprints, whole, worker: None }
    }

    /// The share of one worker, under the fingerprints of the whole plan.
    pub fn shared(self, worker: Worker) -> Result<Self> {
        worker.check_share(&self.spec, self.whole)?;
        Ok(self.share_of(Some(worker)))
    }

    fn share_of(mut self, worker: Option<Worker>) -> Self {
        if let Some(worker) = &worker {
            let starts = conversation_starts(&self.spec, &self.inputs);
            let ids = StripeIds::new(worker.stripe, starts);
            self.plan = Arc::new(StripedPlan::new(self.plan, ids));
        }
        Self { worker, ..self }
    }

    /// Plans again with lengths as the server counts them.
    pub fn corrected(mut self, correction: Correction) -> Self {
        self.inputs.correct(correction);
        Self::from_ingredients(self.spec, self.inputs).share_of(self.worker)
    }

    /// The manifest of a run of this plan; the store adds its name and its time.
    pub(crate) fn manifest(
        &self,
        endpoint: Endpoint,
        warm_up: Option<WarmUpFacts>,
        environment: Environment,
        server: ServerFacts,
        clock: SystemClock,
    ) -> Manifest {
        Manifest {
            format: 0,
            run: String::new(),
            started: String::new(),
            spec: self.spec.clone(),
            bounds: self.plan.bounds(),
            fingerprints: self.fingerprints.clone(),
            materials: self.inputs.materials().clone(),
            endpoint,
            warm_up,
            seen_before: None,
            calibration: None,
            environment,
            server: Some(server),
            simulated: None,
            stripe: None,
            merged: None,
            clock: clock.anchor(),
        }
    }

    /// The requests that are sent before the run and not counted.
    pub fn warm_up(&self) -> Option<Arc<dyn Plan>> {
        let plan = make_warm_up(&self.spec, &self.inputs)?;
        let Some(worker) = &self.worker else { return Some(plan) };
        let share = StripedPlan::new(plan, StripeIds::new(worker.stripe, None));
        (share.bounds().requests != Some(0)).then(|| Arc::new(share) as Arc<dyn Plan>)
    }

    /// Fails if the plan has no request, or none whose answer can be judged as the spec asks.
    pub fn check_sends_something(&self) -> Result<()> {
        if self.plan.bounds().requests != Some(0) {
            return answers::check(&self.spec, self.plan.as_ref());
        }
        Err(Failure::usage("no request falls into --duration at this rate")
            .hint("run longer, raise the rate, or give a number with --requests"))
    }
}

/// A run that was measured and is stored.
#[derive(Debug)]
pub struct Run {
    /// The directory with the journal, the manifest and the summary.
    pub directory: RunDirectory,
    /// All metrics, checks and warnings.
    pub summary: Summary,
    /// What failed although the run is stored: the server that was deployed for it ended, or a hook after it
    /// failed.
    pub late_failure: Option<Failure>,
}

/// The outcomes of a warm-up.
#[derive(Debug, Default)]
pub(crate) struct WarmUpTally {
    requests: u64,
    ok: u64,
    /// How requests failed, how often, and the words of the first: a server may say something
    /// else each time.
    failures: BTreeMap<Outcome, (u64, String)>,
}

impl WarmUpTally {
    pub(crate) fn add(&mut self, entry: JournalEntry) {
        let JournalEntry::Ended(record) = entry else { return };
        self.requests += 1;
        let ending = record.ending;
        if ending.outcome == Outcome::Ok {
            self.ok += 1;
            return;
        }
        let (outcome, cause) = (ending.outcome, ending.cause);
        let (count, _) = self.failures.entry(outcome).or_insert_with(|| {
            (0, LoadFailure { outcome, cause, message: ending.message }.words())
        });
        *count += 1;
    }

    /// The facts; or a failure where not one request ended well, unless it was stopped.
    pub(crate) fn facts(self, ending: &RunEnding) -> Result<WarmUpFacts> {
        if self.ok == 0
            && let Some((outcome, (_, words))) =
                self.failures.iter().max_by_key(|(_, (count, _))| *count)
        {
            let requests = self.requests;
            let message =
                format!("none of {requests} warm-up requests succeeded ({outcome}: {words})");
            return Err(Failure::target(message)
                .hint("nothing was measured; repair the server, or leave --warm-up out"));
        }
        let took = ending.began.and_then(|began| ending.at.since(began)).unwrap_or_default();
        let failed = self.requests - self.ok;
        Ok(WarmUpFacts { requests: self.requests, ok: self.ok, failed, took })
    }
}

/// Looks for secrets in the files of a folder that is complete. They are struck out of everything
/// that is written, so a file that holds one is a bug, or another program's.
pub fn warn_of_secrets(store: &RunStore, folder: &Path, session: &Session) {
    let found = store.exposed(folder).unwrap_or_else(|error| {
        session.warn(format!("its files could not be searched for secrets: {error}"));
        Vec::new()
    });
    for path in found {
        session.warn(format!(
            "{} holds a key or password that was used here: do not share it",
            path.display()
        ));
    }
}

/// The summary of a stored run, computed from its records.
pub fn summarize_stored(stored: &StoredRun) -> Result<Summary, StoreError> {
    let summary = summarize(&stored.observations);
    stored.check_read()?;
    Ok(summary)
}

/// Computes the summary of a run and stores it beside the journal.
pub fn seal_summary(directory: &RunDirectory, stored: &StoredRun) -> Result<Summary> {
    let summary = summarize_stored(stored)?;
    directory.write_summary(&summary.to_json_bytes())?;
    Ok(summary)
}

/// The poller of the server's metrics and the sampler of the machines; none without telemetry.
#[derive(Default)]
pub(crate) struct Listening {
    journal: Option<Journal>,
    /// One for each source of the server's metrics.
    pollers: Vec<Poller<Journal, StoreError>>,
    sampler: Option<Sampler<Journal, StoreError>>,
}

/// One file, and several threads that write to it: each entry goes there whole.
#[derive(Clone)]
struct Journal {
    writer: Arc<Mutex<TelemetryWriter>>,
    live: LiveTally,
    /// The number of the source whose entries these are.
    source: u16,
}

impl Journal {
    fn append(&mut self, entry: &TelemetryEntry) -> Result<(), StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if self.source == 0 {
            self.live.add_telemetry(entry);
            return writer.append(entry);
        }
        writer.append(&TelemetryEntry::FromSource(self.source, Box::new(entry.clone())))
    }

    /// Everything is on disk; the threads have ended.
    fn finish(self) -> Result<(), StoreError> {
        let writer = Arc::into_inner(self.writer).map(Mutex::into_inner);
        writer.map_or(Ok(()), |writer| writer.unwrap_or_else(PoisonError::into_inner).finish())
    }
}

impl Listening {
    /// Returns after the first sample of the server and the machines: the run may begin.
    pub(crate) fn start(
        RunContext { spec, session, live, worker }: RunContext<'_>,
        target: &Target,
        clock: SystemClock,
        devices: Devices,
        directory: &RunDirectory,
    ) -> Self {
        let warn_of = |what: &str, error: &dyn std::error::Error| {
            session.warn(format!("{what}: {error}"));
        };
        let Some(asked) = spec.telemetry.clone() else { return Self::default() };
        let journal = match directory.create_telemetry() {
            Ok(writer) => {
                let writer = Arc::new(Mutex::new(writer));
                Journal { writer, live: live.clone(), source: 0 }
            }
            Err(error) => {
                warn_of("the server's metrics and the machines are not read", &error);
                return Self::default();
            }
        };
        let mut pollers = Vec::new();
        // One of several workers is enough to ask the server.
        let is_asking = worker.is_none_or(|worker| worker.stripe.index == 0);
        let started = is_asking.then(|| start_pollers(spec, &asked, target, clock, &journal));
        for (number, started) in started.into_iter().flatten() {
            match started {
                Ok(poller) => pollers.push(poller),
                Err(error) => {
                    let refused = Absence::Refused(MissReason::Transport);
                    let mut journal = Journal { source: number, ..journal.clone() };
                    let _ = journal.append(&TelemetryEntry::Absent(refused));
                    warn_of("the server's metrics are not read", &*error);
                }
            }
        }
        let sampling = Sampling::new(asked.every);
        let sampler = Sampler::start(sampling, clock, devices, journal.clone(), Journal::append)
            .map_err(|error| warn_of("the machines are not sampled", &error));
        Self { journal: Some(journal), pollers, sampler: sampler.ok() }
    }

    /// Asks once more, and puts everything on disk.
    pub(crate) fn stop(self, session: &Session) {
        let mut failed = None;
        let polled =
            self.pollers.into_iter().map(|it| it.stop().map_err(|error| error.to_string()));
        let sampled = self.sampler.map(|sampler| sampler.stop().map_err(|error| error.to_string()));
        for ended in polled.chain(sampled) {
            let written = ended.and_then(|written| written.map_err(|error| error.to_string()));
            failed = failed.or(written.err());
        }
        let finished = self.journal.map_or(Ok(()), Journal::finish);
        if let Some(error) = failed.or(finished.err().map(|error| error.to_string())) {
            session.warn(format!("the server's metrics are not all stored: {error}"));
        }
    }
}

type Started =
    std::result::Result<Poller<Journal, StoreError>, Box<dyn std::error::Error + Send + Sync>>;

/// A poller for each source of the server's metrics, by its number. They start at the same time, as
/// each begins with a scrape.
fn start_pollers(
    spec: &Spec,
    asked: &TelemetrySpec,
    target: &Target,
    clock: SystemClock,
    journal: &Journal,
) -> Vec<(u16, Started)> {
    let start = |target: Arc<Target>, path: &str, source: u16| -> Started {
        let polling =
            Polling { path: path.to_owned(), every: asked.every, time_limit: Polling::TIME_LIMIT };
        let fetch = move || HttpFetch::new(target, clock);
        let journal = Journal { source, ..journal.clone() };
        Ok(Poller::start(polling, clock, fetch, journal, Journal::append)?)
    };
    if asked.sources.is_empty() {
        return vec![(0, start(Arc::new(target.clone()), &asked.path, 0))];
    }
    std::thread::scope(|scope| {
        let begun = (0..).zip(&asked.sources).map(|(number, source)| {
            let begin = move || start(keyless(spec, &source.base)?, &source.path, number);
            (number, scope.spawn(begin))
        });
        let begun: Vec<_> = begun.collect();
        let ended = begun.into_iter().map(|(number, thread)| {
            let started = thread.join().unwrap_or_else(|_| Err(PollerError::Panicked.into()));
            (number, started)
        });
        ended.collect()
    })
}

/// A server beside the measured one. It receives no keys: they are for the measured one.
pub(crate) fn keyless(
    spec: &Spec,
    base: &BaseUrl,
) -> std::result::Result<Arc<Target>, ResolveError> {
    let address = resources::resolve(base, spec.limits.connect)?;
    let client = ClientSpec { http: HttpVersion::Http1, ..spec.client.clone() };
    let plain = Spec { client, ..spec.clone() };
    Ok(Arc::new(preflight::bare_target(&plain, Credentials::default(), base, address)))
}

/// The source of the GPU metrics of this server.
pub(crate) fn devices(
    spec: &Spec,
    endpoint: &Endpoint,
    server: &ServerFacts,
    clock: SystemClock,
) -> Devices {
    let asked = spec.telemetry.as_ref().map_or(&DevicesAsked::Off, |telemetry| &telemetry.devices);
    let absence = match asked {
        DevicesAsked::Dcgm(base) => return exporter(spec, base, clock),
        DevicesAsked::Auto if endpoint.embedded => DevicesAbsence::Pretended,
        DevicesAsked::Auto if !environment::is_here(spec, endpoint.address, server) => {
            DevicesAbsence::Elsewhere
        }
        DevicesAsked::Auto
        | DevicesAsked::Off
        | DevicesAsked::Nvml
        | DevicesAsked::NvidiaSmi
        | DevicesAsked::AmdSmi
        | DevicesAsked::RocmSmi => DevicesAbsence::NotAsked,
    };
    match GpuProbe::local(asked).filter(|_| absence == DevicesAbsence::NotAsked) {
        Some(opening) => Devices::Asked(opening),
        None => Devices::Absent(absence),
    }
}

/// The exporter of GPU metrics.
fn exporter(spec: &Spec, base: &BaseUrl, clock: SystemClock) -> Devices {
    match keyless(spec, base) {
        Ok(target) => Devices::Asked(GpuProbe::exporter(move || HttpFetch::new(target, clock))),
        Err(error) => Devices::Absent(DevicesAbsence::Failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::SpecDraft;
    use inferometer_model::journal::RunStop;
    use inferometer_model::spec::LoadTable;

    use super::*;

    #[test]
    fn a_run_ends_while_its_summary_still_fits() {
        let memory = |left_mb: u64, own_mb: u64| Memory {
            limit_bytes: 500 << 20,
            left_bytes: left_mb << 20,
            own_bytes: own_mb << 20,
        };
        let counts =
            |ok, output_events| ProgressView { ok, output_events, ..ProgressView::default() };
        assert!(!is_used_up(memory(460, 40), counts(1_000_000, 0)));
        assert!(is_used_up(memory(460, 40), counts(3_000_000, 0)), "4 of 5 for the summary");
        assert!(is_used_up(memory(460, 40), counts(10_000, 10_000_000)), "long streams");
        assert!(is_used_up(memory(40, 460), counts(10, 0)), "huge answers");
        assert!(!is_used_up(memory(40, 20), counts(10, 0)), "others use it");
    }

    /// Faults: 76.
    #[test]
    fn a_run_without_memory_stops_and_is_saved() {
        let load =
            LoadTable { concurrency: Some(2), requests: Some(1_000), ..LoadTable::default() };
        let spec = SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let runner = Runner::new(spec).unwrap().store_in(folder.path());
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&warnings);
        let observe = move |event: Event| {
            if event.is_warning() {
                heard.lock().unwrap().push(event.to_string());
            }
        };
        let memory =
            || Some(Memory { limit_bytes: 1 << 30, left_bytes: 50 << 20, own_bytes: 900 << 20 });
        let session = Session { memory, ..Session::new(runner.ceiling(), Arc::new(observe)) };
        let run = runner.connect(&session).unwrap().measure(&session).unwrap();
        let warnings = warnings.lock().unwrap();
        assert!(warnings.iter().any(|it| it.contains("no memory")), "{warnings:?}");
        let stored = run.directory.read().unwrap().observations;
        assert_eq!(stored.ending.stop, RunStop::ClientExhausted);
        assert!((1..1_000).contains(&stored.records.len()), "some were not sent");
        assert_eq!(stored.scheduled_count(), 1_000, "each is accounted for");
        assert_eq!(run.summary.attempted, stored.records.len() as u64, "they are summarized");
    }
}
