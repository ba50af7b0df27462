//! One measurement: warm up, drive the plan, write what happens, and sum it up.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use inferometer_analysis::{Summary, summarize};
use inferometer_load::{Drive, Drivers, LoadError, Progress, SystemClock, Target, drive};
use inferometer_model::journal::JournalBatch;
use inferometer_model::observations::{Endpoint, Materials, WarmUpFacts};
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::ClientSpec;
use inferometer_model::system::ServerFacts;
use inferometer_model::{Plan, RunEnding, Spec};
use inferometer_store::{NewRun, RunDirectory, RunWriter, StoredRun, spawn_writer};

use crate::calibration;
use crate::environment;
use crate::event::Event;
use crate::failure::Failure;
use crate::interruption::Sending;
use crate::place::Place;
use crate::preflight::Found;
use crate::session::Session;
use crate::telemetry::{self, Listening};
use crate::ticker::Ticker;
use crate::warm_up::Tally;

/// Batches that may wait for the writer: seconds at the highest rate, and with 64 KiB to a batch a
/// bound on memory.
const JOURNAL_QUEUE: usize = 1 << 13;

/// Everything is known; what is left is to do it.
pub struct Measurement {
    pub spec: Spec,
    pub plan: Arc<dyn Plan>,
    pub warm_up: Option<Arc<dyn Plan>>,
    pub fingerprints: Fingerprints,
    pub materials: Materials,
    /// Begins the name of every request; `None` names the stored run.
    pub request_id_prefix: Option<String>,
}

pub struct Measured {
    pub directory: RunDirectory,
    pub summary: Summary,
}

impl Measurement {
    /// Measures. A signal before the first request is a failure, and nothing is stored.
    pub fn make(
        mut self,
        place: Place<'_>,
        found: Found,
        server: ServerFacts,
        session: &Session,
    ) -> Result<Measured, Failure> {
        let has_warm_up = self.warm_up.is_some();
        let warmed_up =
            self.warm_up.take().map(|plan| self.warm_up(plan, found.target.clone(), session));
        // Goes first: a warm-up that was cut has no request that ended well, and that is no fault.
        session.interruption.check().inspect_err(|_| {
            let when = if has_warm_up { "in the warm-up" } else { "before the run began" };
            session.emit(Event::Interrupted { when });
        })?;
        let warmed_up = warmed_up.transpose()?;
        let clock = SystemClock::new();
        let devices = telemetry::devices(&self.spec, &found.endpoint, &server, clock);
        // The embedded engine is ours: what it has seen in a suite its own counters tell.
        let seen_before = if found.endpoint.embedded {
            None
        } else {
            let now_ns = clock.anchor().realtime_ns;
            let Endpoint { base, model, .. } = &found.endpoint;
            place.sent_before(&self.spec, &self.fingerprints.plan, base, model, now_ns)
        };
        let writer = place.create(NewRun {
            spec: self.spec.clone(),
            bounds: self.plan.bounds(),
            fingerprints: self.fingerprints.clone(),
            materials: self.materials.clone(),
            endpoint: found.endpoint,
            warm_up: warmed_up,
            seen_before,
            calibration: calibration::known(session),
            environment: environment::capture(),
            server: Some(server),
            simulated: None,
            clock: clock.anchor(),
        })?;
        let directory = writer.directory().clone();
        // What a set remembers goes on with this run, too.
        if place.set().is_none() {
            session.interruption.remember(directory.remedy());
        }
        let _sending = session.interruption.sending(Sending::Stored);
        let of_run = || format!("inferometer-{}", directory.id().replace('/', "-"));
        let request_id_prefix = self.request_id_prefix.clone().unwrap_or_else(of_run);
        let target = Target { request_id_prefix, ..found.target };
        let listening = Listening::start(&self.spec, &target, clock, devices, &directory, session);
        let writer = self.play(writer, target, clock, session, &directory)?;
        listening.stop(session);
        let stored = writer.seal()?;
        let summary = seal_summary(&directory, &stored)?;
        session.emit(Event::Finished { directory: directory.path().to_owned() });
        Ok(Measured { directory, summary })
    }

    /// Sends what is not counted. Its records go nowhere but into a few facts.
    fn warm_up(
        &self,
        plan: Arc<dyn Plan>,
        target: Target,
        session: &Session,
    ) -> Result<WarmUpFacts, Failure> {
        let _sending = session.interruption.sending(Sending::Unstored);
        let clock = SystemClock::new();
        let bounds = plan.bounds();
        let requests = bounds.requests.unwrap_or_default();
        session.emit(Event::WarmingUp { requests });
        let (journal, entries) = sync_channel(JOURNAL_QUEUE);
        let counting = std::thread::spawn(move || Tally::of(entries.into_iter().flatten()));
        let request_id_prefix = "inferometer-warm-up".to_owned();
        let target = Target { request_id_prefix, ..target };
        let driven = self.drive(plan, target, clock, session, journal);
        let ending = driven.map_err(|error| Failure::internal(error.to_string()))?;
        let tally = counting.join().map_err(|_| Failure::internal("the warm-up's tally ended"))?;
        tally.facts(&ending)
    }

    /// Drives the plan and writes what comes back.
    fn play(
        &self,
        writer: RunWriter,
        target: Target,
        clock: SystemClock,
        session: &Session,
        directory: &RunDirectory,
    ) -> Result<RunWriter, Failure> {
        let (journal, batches) = sync_channel(JOURNAL_QUEUE);
        let writing = spawn_writer(writer, batches)?;
        let plan = Arc::clone(&self.plan);
        let driven = self.drive(plan, target, clock, session, journal);
        let written = writing.join();
        let unfinished = |what: String| {
            Failure::internal(what)
                .hint(format!("what was recorded is kept; finish it with: {}", directory.remedy()))
        };
        // A writer that failed is the reason why a driver found its journal closed: it goes first.
        let writer = match written {
            Ok(Ok(writer)) => writer,
            Ok(Err(error)) => return Err(unfinished(error.to_string())),
            Err(_) => return Err(unfinished("the journal's writer ended abnormally".to_owned())),
        };
        driven.map(|_| writer).map_err(|error| unfinished(error.to_string()))
    }

    fn drive(
        &self,
        plan: Arc<dyn Plan>,
        target: Target,
        clock: SystemClock,
        session: &Session,
        journal: SyncSender<JournalBatch>,
    ) -> Result<RunEnding, LoadError> {
        let progress = Arc::new(Progress::default());
        let bounds = plan.bounds();
        let observer = Arc::clone(session.observer());
        let ticker = Ticker::start(Arc::clone(&progress), bounds, clock, observer);
        let ended = drive(Drive {
            plan,
            target: Arc::new(target),
            clock,
            control: session.control.clone(),
            progress,
            ceiling: session.ceiling,
            drivers: drivers(&self.spec.client),
            stall_grace: Drive::STALL_GRACE,
            journal,
        });
        drop(ticker);
        ended
    }
}

/// Computes the summary of a run and stores it beside the journal.
pub fn seal_summary(directory: &RunDirectory, stored: &StoredRun) -> Result<Summary, Failure> {
    let summary = summarize(&stored.observations);
    directory.write_summary(&summary.to_json_bytes())?;
    Ok(summary)
}

/// The threads that a spec asks for.
pub fn drivers(client: &ClientSpec) -> Drivers {
    let count = NonZeroUsize::try_from(client.drivers).unwrap_or(NonZeroUsize::MIN);
    Drivers { count, cores: client.cores.iter().map(|core| *core as usize).collect() }
}
