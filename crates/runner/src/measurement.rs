//! One measurement: where it is stored, its warm-up, the drive of its plan, and its summary.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use inferometer_analysis::{Summary, summarize};
use inferometer_load::answer::Failure as LoadFailure;
use inferometer_load::{Drive, Drivers, LoadError, Progress, SystemClock, Target, drive};
use inferometer_model::journal::JournalBatch;
use inferometer_model::observations::{Correction, Endpoint, WarmUpFacts};
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::ClientSpec;
use inferometer_model::{Clock, JournalEntry, Manifest, Outcome, Plan, RunEnding, Spec};
use inferometer_store::{
    RunDirectory, RunStore, RunWriter, SetDirectory, StoreError, StoredRun, spawn_writer,
};
use inferometer_workload::{Inputs, make_plan, make_warm_up};

use crate::failure::Failure;
use crate::interruption::Sending;
use crate::live::Live;
use crate::session::{Event, ProgressTick, Session};
use crate::telemetry::{self, Listening};
use crate::{calibration, deployed, environment};

/// Where a run is stored.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RunLocation<'a> {
    /// What was sent before is looked for here.
    pub(crate) store: &'a RunStore,
    pub(crate) point: Option<(&'a SetDirectory, u32)>,
    /// The log of the server that was deployed for this run alone, which is moved beside it.
    pub server_log: Option<&'a Path>,
}

impl<'a> RunLocation<'a> {
    /// A run by itself.
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
            Some((set, number)) => set.create_point(number, new)?,
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
const JOURNAL_QUEUE: usize = 1 << 13;

/// Progress is reported often enough to look alive, seldom enough to cost nothing.
const TICK_EVERY: Duration = Duration::from_millis(250);

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
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned").field("fingerprints", &self.fingerprints).finish_non_exhaustive()
    }
}

impl Planned {
    /// Reads what the spec names and plans every request.
    pub fn new(spec: Spec) -> Result<Self, Failure> {
        let inputs = Inputs::gather(&spec)?;
        Ok(Self::from_ingredients(spec, inputs))
    }

    /// The same without texts: a simulation needs only their lengths.
    pub fn without_words(spec: Spec) -> Result<Self, Failure> {
        let inputs = Inputs::gather_without_words(&spec)?;
        Ok(Self::from_ingredients(spec, inputs))
    }

    /// Plans every request from inputs that were read before.
    pub fn from_ingredients(spec: Spec, inputs: Inputs) -> Self {
        let (plan, fingerprints) = make_plan(&spec, &inputs);
        Self { spec, inputs, plan, fingerprints }
    }

    /// Plans again with lengths as the server counts them.
    pub fn corrected(mut self, correction: Correction) -> Self {
        self.inputs.correct(correction);
        Self::from_ingredients(self.spec, self.inputs)
    }

    /// The requests that are sent before the run and not counted.
    pub fn warm_up(&self) -> Option<Arc<dyn Plan>> {
        make_warm_up(&self.spec, &self.inputs)
    }

    /// Fails if the plan has no request.
    pub fn check_sends_something(&self) -> Result<(), Failure> {
        if self.plan.bounds().requests != Some(0) {
            return Ok(());
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
    /// Why the server that was deployed for this run ended during it, if it did.
    pub server_failure: Option<Failure>,
}

/// What a measurement needs while it is made.
pub(crate) struct Measurement<'a> {
    pub(crate) planned: Planned,
    pub(crate) live: &'a Live,
    pub(crate) session: &'a Session,
}

impl Measurement<'_> {
    /// Measures. A signal before the first request is a failure, and nothing is stored.
    pub(crate) fn make(&self, location: RunLocation<'_>) -> Result<Run, Failure> {
        let Self { planned, live, session } = self;
        let warm_up = planned.warm_up();
        let has_warm_up = warm_up.is_some();
        let warmed_up = warm_up.map(|plan| self.warm_up(plan));
        // Goes first: a warm-up that was cut has no request that succeeded, and that is no fault.
        session.interruption.check().inspect_err(|_| {
            let when = if has_warm_up { "in the warm-up" } else { "before the run began" };
            session.emit(Event::Interrupted { when });
        })?;
        let warmed_up = warmed_up.transpose()?;
        let clock = SystemClock::new();
        let endpoint = live.found.endpoint.clone();
        let devices = telemetry::devices(&planned.spec, &endpoint, &live.facts, clock);
        // What the embedded engine has cached in a suite is known from its own counters.
        let seen_before = if endpoint.embedded {
            None
        } else {
            let (plan, now_ns) = (&planned.fingerprints.plan, clock.anchor().realtime_ns);
            let Endpoint { base, model, .. } = &endpoint;
            location.store.sent_before(&planned.spec, plan, base, model, now_ns)
        };
        let writer = location.create(Manifest {
            format: 0,
            run: String::new(),
            started: String::new(),
            spec: planned.spec.clone(),
            bounds: planned.plan.bounds(),
            fingerprints: planned.fingerprints.clone(),
            materials: planned.inputs.materials().clone(),
            endpoint,
            warm_up: warmed_up,
            seen_before,
            calibration: calibration::known(session),
            environment: environment::capture(),
            server: Some(live.facts.clone()),
            simulated: None,
            clock: clock.anchor(),
        })?;
        let directory = writer.directory().clone();
        // A set remembers its own command, which finishes this run, too.
        if location.point.is_none() {
            session.interruption.remember(directory.remedy());
        }
        let _sending = session.interruption.sending(Sending::Stored);
        let run_prefix = || format!("inferometer-{}", directory.id().replace('/', "-"));
        let request_id_prefix = live.request_id_prefix.clone().unwrap_or_else(run_prefix);
        let target = Target { request_id_prefix, ..live.found.target.clone() };
        let listening =
            Listening::start(&planned.spec, &target, clock, devices, &directory, session);
        let writer = self.play(writer, target, clock, &directory)?;
        listening.stop(session);
        let summary = seal_summary(&directory, &writer.seal()?)?;
        session.emit(Event::Finished { directory: directory.path().to_owned() });
        Ok(Run { directory, summary, server_failure: None })
    }

    /// Sends requests that are not counted. Of their records only a few facts are kept.
    fn warm_up(&self, plan: Arc<dyn Plan>) -> Result<WarmUpFacts, Failure> {
        let _sending = self.session.interruption.sending(Sending::Unstored);
        let requests = plan.bounds().requests.unwrap_or_default();
        self.session.emit(Event::WarmingUp { requests });
        let (journal, entries) = sync_channel::<JournalBatch>(JOURNAL_QUEUE);
        let counting = std::thread::spawn(move || {
            let mut tally = WarmUpTally::default();
            entries.into_iter().flatten().for_each(|entry| tally.add(entry));
            tally
        });
        let request_id_prefix = "inferometer-warm-up".to_owned();
        let target = Target { request_id_prefix, ..self.live.found.target.clone() };
        let ending =
            self.drive(plan, target, SystemClock::new(), journal).map_err(Failure::from_error)?;
        let tally = counting.join().map_err(|_| Failure::internal("the warm-up's tally ended"))?;
        tally.facts(&ending)
    }

    /// Drives the plan and writes what comes back.
    fn play(
        &self,
        writer: RunWriter,
        target: Target,
        clock: SystemClock,
        directory: &RunDirectory,
    ) -> Result<RunWriter, Failure> {
        let (journal, batches) = sync_channel(JOURNAL_QUEUE);
        let writing = spawn_writer(writer, batches)?;
        let driven = self.drive(Arc::clone(&self.planned.plan), target, clock, journal);
        let unfinished = |what: String| {
            Failure::internal(what)
                .hint(format!("what was recorded is kept; finish it with: {}", directory.remedy()))
        };
        // A writer that failed is the reason why a driver found its journal closed: it goes first.
        let written = writing
            .join()
            .map_err(|_| unfinished("the journal's writer ended abnormally".to_owned()))?;
        let writer = written.map_err(|error| unfinished(error.to_string()))?;
        driven.map(|_| writer).map_err(|error| unfinished(error.to_string()))
    }

    fn drive(
        &self,
        plan: Arc<dyn Plan>,
        target: Target,
        clock: SystemClock,
        journal: SyncSender<JournalBatch>,
    ) -> Result<RunEnding, LoadError> {
        let progress = Arc::new(Progress::default());
        let (bounds, observer) = (plan.bounds(), &self.session.observer);
        std::thread::scope(|scope| {
            let (stop, stopped) = channel::<()>();
            let counts = Arc::clone(&progress);
            let ticker = scope.spawn(move || {
                while stopped.recv_timeout(TICK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    let elapsed = Duration::from_nanos(clock.now().as_nanos());
                    let tick = ProgressTick { counts: counts.view(), bounds, elapsed };
                    observer(Event::Progress(tick));
                }
                observer(Event::ProgressEnded);
            });
            let ended = drive(Drive {
                plan,
                target: Arc::new(target),
                clock,
                control: self.session.control.clone(),
                progress,
                ceiling: self.session.ceiling,
                drivers: drivers(&self.planned.spec.client),
                stall_grace: Drive::STALL_GRACE,
                journal,
            });
            drop(stop);
            // An observer that panicked must not end the measurement.
            let _ = ticker.join();
            ended
        })
    }
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
    pub(crate) fn facts(self, ending: &RunEnding) -> Result<WarmUpFacts, Failure> {
        if self.ok == 0
            && let Some((outcome, (_, words))) =
                self.failures.iter().max_by_key(|(_, (count, _))| *count)
        {
            let requests = self.requests;
            let message =
                format!("none of {requests} warm-up requests ended ok ({outcome}: {words})");
            return Err(Failure::target(message)
                .hint("nothing was measured; repair the server, or leave --warm-up out"));
        }
        let took = ending.began.and_then(|began| ending.at.since(began)).unwrap_or_default();
        let failed = self.requests - self.ok;
        Ok(WarmUpFacts { requests: self.requests, ok: self.ok, failed, took })
    }
}

/// Computes the summary of a run and stores it beside the journal.
pub fn seal_summary(directory: &RunDirectory, stored: &StoredRun) -> Result<Summary, Failure> {
    let summary = summarize(&stored.observations);
    directory.write_summary(&summary.to_json_bytes())?;
    Ok(summary)
}

/// The threads that send requests.
pub(crate) fn drivers(client: &ClientSpec) -> Drivers {
    let count = NonZeroUsize::try_from(client.drivers).unwrap_or(NonZeroUsize::MIN);
    Drivers { count, cores: client.cores.iter().map(|core| *core as usize).collect() }
}
