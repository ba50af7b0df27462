//! The runs of several workers as one run.
//!
//! Nothing is averaged: every record of every worker is in the merged journal, under its number in the
//! plan and on one axis of time, and the summary is computed from them as from those of one client.
//! The axis is the agreed start. A duration lies between two times of one worker, and is kept.
//!
//! A plan that only the time ends has no number: as in a run of one client, its requests are then
//! numbered without gaps, in the order of the plan.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use inferometer_model::fmt::count;
use inferometer_model::journal::{ClientFacts, CpuFacts, RunStop};
use inferometer_model::observations::{ClockAnchor, WarmUpFacts};
use inferometer_model::outcome::Cause;
use inferometer_model::plan::Bounds;
use inferometer_model::stripe::{HostFacts, MergeFacts, StripeFacts, WorkerFacts, WorkerRun};
use inferometer_model::{
    Environment, JournalEntry, Manifest, Moment, NotSent, RequestId, RequestRecord, RunEnding,
    Spec, Stripe,
};
use inferometer_store::{RunDirectory, RunState, RunWriter, StoreError, Stored, StoredRun};
use inferometer_workload::stripe::{ConversationStarts, StripeIds, stored_conversation_starts};

use crate::environment;
use crate::failure::{Failure, Result};
use crate::measurement::{Run, RunLocation, seal_summary};
use crate::session::{Event, Session};

/// Merges the runs of the workers of one plan that are in these folders, or are these folders. A worker
/// that died is recovered first; one that is missing is accounted for.
pub fn merge(location: RunLocation<'_>, folders: &[PathBuf], session: &Session) -> Result<Run> {
    let found = find_runs(folders)?;
    check_alike(&found)?;
    let (_, first, facts) = &found[0];
    let (first, whole, count) = (first.clone(), facts.whole, facts.stripe.count);
    let starts = stored_conversation_starts(&first.spec)?;
    let mut parts = BTreeMap::new();
    for (part, warning) in read_parts(&found, starts.as_ref())? {
        if let Some(text) = warning {
            session.warn(text);
        }
        let Some(part) = part else { continue };
        let stripe = part.facts.stripe;
        if let Some(other) = parts.insert(stripe.index, part) {
            let [a, b] = [&other, &parts[&stripe.index]].map(|it| it.directory.path().display());
            let what = format!("worker {stripe} has two runs: {a} and {b}");
            return Err(Failure::usage(what).hint("name the folder of the one that counts"));
        }
    }
    let all = (0..count.get()).map(|index| Stripe { index, count }).collect();
    Merger::new(parts, all, whole, starts).write(location, first, session)
}

/// Each journal is read by a thread, of which so many run at a time.
const READERS_MAX: usize = 4;

/// The parts in the order of their workers, each with a warning about it.
fn read_parts(
    found: &[FoundRun],
    starts: Option<&ConversationStarts>,
) -> Result<Vec<(Option<Part>, Option<String>)>> {
    let at_once = thread::available_parallelism().map_or(1, usize::from).min(READERS_MAX);
    let mut parts = Vec::with_capacity(found.len());
    for group in found.chunks(at_once) {
        thread::scope(|scope| {
            let read = |run: &FoundRun| Part::read(run.clone(), starts.cloned());
            let begin = |run| {
                let reader = thread::Builder::new().name("worker's run".to_owned());
                reader.spawn_scoped(scope, move || read(run)).map_err(Failure::from_error)
            };
            let readers = group.iter().map(begin).collect::<Result<Vec<_>>>()?;
            for reader in readers {
                parts.push(reader.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok::<_, Failure>(())
        })?;
    }
    Ok(parts)
}

type FoundRun = (RunDirectory, Manifest, StripeFacts);

/// The workers' runs that these folders are or hold.
fn find_runs(folders: &[PathBuf]) -> Result<Vec<FoundRun>> {
    let mut found = Vec::new();
    for folder in folders {
        let run = |path| match Stored::at(path) {
            Some(Stored::Run(run)) => Some(run),
            Some(Stored::Set(_) | Stored::Import(..)) | None => None,
        };
        let runs = if let Some(run) = run(folder.clone()) {
            vec![run]
        } else {
            let unread = |error| Failure::usage(format!("{}: {error}", folder.display()));
            let entries = std::fs::read_dir(folder).map_err(unread)?;
            entries.filter_map(|entry| run(entry.ok()?.path())).collect()
        };
        let known = found.len();
        for run in runs {
            // A run whose manifest was not written has sent nothing.
            let Ok(manifest) = run.manifest() else { continue };
            if let Some(facts) = manifest.stripe.clone() {
                found.push((run, manifest, facts));
            }
        }
        if known == found.len() {
            let what = format!("{} holds no run of a worker", folder.display());
            return Err(Failure::usage(what)
                .hint("workers are started with --stripe, and store their runs in --output"));
        }
    }
    found.sort_by(|a, b| (a.2.stripe.index, a.0.path()).cmp(&(b.2.stripe.index, b.0.path())));
    // A folder may be named beside one that holds it.
    found.dedup_by(|a, b| a.0.path() == b.0.path());
    Ok(found)
}

/// Fails if the runs are not shares of one measurement.
fn check_alike(found: &[FoundRun]) -> Result<()> {
    let Some((directory, manifest, facts)) = found.first() else {
        return Err(Failure::usage("no folder of a worker's run is given"));
    };
    // Cores are those of a machine.
    let alike = |spec: &Spec| Spec { client: manifest.spec.client.clone(), ..spec.clone() };
    for (other, its_manifest, its) in &found[1..] {
        let differs = if its.stripe.count != facts.stripe.count {
            "numbers of workers"
        } else if its.start_ns != facts.start_ns {
            "starts"
        } else if its_manifest.fingerprints != manifest.fingerprints {
            "plans (a seed of their own, perhaps)"
        } else if alike(&its_manifest.spec) != manifest.spec {
            "specs"
        } else {
            continue;
        };
        let [a, b] = [directory, other].map(|it| it.path().display());
        let what = format!("{a} and {b} are not of one measurement: they have different {differs}");
        return Err(Failure::usage(what).hint("name the folders of one measurement alone"));
    }
    Ok(())
}

/// What one worker recorded.
struct Part {
    directory: RunDirectory,
    manifest: Manifest,
    facts: StripeFacts,
    stored: StoredRun,
    ids: StripeIds,
    /// The agreed start on its clock.
    began: Moment,
    /// When it joined, if that was too late.
    joined: Option<Moment>,
    /// From its clock to the merged one.
    later: Duration,
}

impl Part {
    /// With a warning where the worker died; without a part where nothing was recorded.
    fn read(
        (directory, manifest, facts): FoundRun,
        starts: Option<ConversationStarts>,
    ) -> Result<(Option<Self>, Option<String>)> {
        let stripe = facts.stripe;
        let about =
            |error: StoreError| Failure::from_usage(error).about(&format!("worker {stripe}"));
        let mut warning = None;
        if directory.state() == RunState::Unfinished {
            match directory.recover() {
                Ok(recovery) => {
                    let [cancelled, not_sent] = [recovery.cancelled, recovery.not_sent].map(count);
                    warning = Some(format!(
                        "worker {stripe} died: of its requests, {cancelled} were in flight and \
                         {not_sent} were not sent"
                    ));
                }
                Err(StoreError::NothingRecorded { .. }) => {
                    return Ok((
                        None,
                        Some(format!("worker {stripe} died before it sent a request")),
                    ));
                }
                Err(error) => return Err(about(error)),
            }
        }
        // The records stay in the journals, however many workers there are.
        let stored = directory.read_holding(0).map_err(about)?;
        let ending = &stored.observations.ending;
        let before_start = facts.start_ns.saturating_sub(manifest.clock.realtime_ns);
        let began = ending.began.unwrap_or(Moment::from_nanos(before_start));
        let late = stored.observations.not_sent.iter().filter(|it| it.cause == Cause::WorkerLate);
        let joined = late.map(|part| part.at).max();
        let ids = StripeIds::new(stripe, starts);
        let later = Duration::ZERO;
        let part = Self { directory, manifest, facts, stored, ids, began, joined, later };
        Ok((Some(part), warning))
    }

    fn client(&self) -> &ClientFacts {
        &self.stored.observations.ending.client
    }

    fn run(&self) -> WorkerRun {
        let observations = &self.stored.observations;
        WorkerRun {
            run: self.directory.id().to_owned(),
            host: self.facts.host.clone(),
            stop: observations.ending.stop,
            late_ns: self
                .joined
                .and_then(|joined| joined.since(self.began))
                .and_then(|late| u64::try_from(late.as_nanos()).ok()),
            attempted: observations.records.len() as u64,
            not_sent: observations.not_sent_count(),
            loop_lag: self.client().loop_lag.clone(),
            driver_cpu_us: self.client().driver_cpu_us,
        }
    }

    /// The numbers in the plan of what was not sent, with cause and moment.
    fn not_sent(&self) -> impl Iterator<Item = (RequestId, Cause, Moment)> {
        self.stored.observations.not_sent.iter().flat_map(|part| {
            let ids = (0..part.count).map(|number| RequestId(part.first.0 + number));
            let in_plan = ids.filter_map(|id| self.ids.in_plan(id));
            in_plan.map(|id| (id, part.cause, part.at + self.later))
        })
    }
}

struct Merger {
    parts: Vec<Part>,
    workers: Vec<WorkerFacts>,
    whole: Bounds,
    starts: Option<ConversationStarts>,
    /// The agreed start on the merged clock.
    began: Moment,
    /// The numbers in the plan of all requests that were scheduled, where only the time ends the plan.
    numbers: Option<Vec<u64>>,
}

impl Merger {
    fn new(
        mut parts: BTreeMap<u32, Part>,
        stripes: Vec<Stripe>,
        whole: Bounds,
        starts: Option<ConversationStarts>,
    ) -> Self {
        // No moment may come before the zero of the merged clock.
        let began = parts.values().map(|part| part.began).max().unwrap_or_default();
        for part in parts.values_mut() {
            part.later = began.since(part.began).unwrap_or_default();
        }
        let worker =
            |stripe: Stripe| WorkerFacts { stripe, run: parts.get(&stripe.index).map(Part::run) };
        let workers = stripes.into_iter().map(worker).collect();
        let parts = parts.into_values().collect();
        let mut merger = Self { parts, workers, whole, starts, began, numbers: None };
        merger.numbers = whole.requests.is_none().then(|| merger.scheduled());
        merger
    }

    /// The numbers in the plan of all that was sent or not sent, in their order.
    fn scheduled(&self) -> Vec<u64> {
        let of_part = |part: &Part| {
            let records = part.stored.observations.records.iter();
            let sent = records.filter_map(|record| part.ids.in_plan(record.id)).map(|id| id.0);
            sent.chain(part.not_sent().map(|(id, ..)| id.0)).collect::<Vec<_>>()
        };
        let missing = self.missing().map(|id| id.0);
        let mut numbers: Vec<u64> = self.parts.iter().flat_map(of_part).chain(missing).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The requests of workers without a run, as far as it is certain that they were scheduled.
    fn missing(&self) -> impl Iterator<Item = RequestId> {
        let missing = self.workers.iter().filter(|worker| worker.run.is_none());
        missing.flat_map(|worker| {
            let ids = StripeIds::new(worker.stripe, self.starts.clone());
            let count = ids.count_below(self.whole.scheduled_min());
            (0..count).map_while(move |id| ids.in_plan(RequestId(id))).collect::<Vec<_>>()
        })
    }

    /// The number in the merged run of a request of the plan.
    fn number(&self, in_plan: RequestId) -> RequestId {
        match &self.numbers {
            None => in_plan,
            Some(numbers) => RequestId(numbers.partition_point(|it| *it < in_plan.0) as u64),
        }
    }

    fn write(&self, location: RunLocation<'_>, first: Manifest, session: &Session) -> Result<Run> {
        let mut writer = location.create(self.manifest(first)).map_err(Failure::from_usage)?;
        let directory = writer.directory().clone();
        self.write_records(&mut writer)?;
        let ending = self.ending();
        for part in self.not_sent(ending.at) {
            writer.append(&JournalEntry::NotSent(part))?;
        }
        writer.append(&JournalEntry::RunEnded(ending))?;
        self.write_telemetry(&directory, session);
        let summary = seal_summary(&directory, &writer.seal()?)?;
        session.emit(Event::Finished { directory: directory.path().to_owned() });
        Ok(Run { directory, summary, late_failure: None })
    }

    /// The records of all workers, in the order in which the requests left.
    fn write_records(&self, writer: &mut RunWriter) -> Result<(), StoreError> {
        let orders: Vec<_> = self
            .parts
            .iter()
            .map(|part| part.stored.observations.records.in_time_order())
            .collect();
        let mut sources: Vec<_> = orders.iter().map(|order| order.iter()).collect();
        let mut heads: Vec<Option<RequestRecord>> = Vec::new();
        let mut next = BinaryHeap::new();
        for (place, source) in sources.iter_mut().enumerate() {
            heads.push(source.next().map(|record| self.merged(place, record.into_owned())));
            next.extend(heads[place].as_ref().map(|record| Reverse((record.left(), place))));
        }
        while let Some(Reverse((_, place))) = next.pop() {
            let following = sources[place].next();
            let following = following.map(|record| self.merged(place, record.into_owned()));
            next.extend(following.as_ref().map(|record| Reverse((record.left(), place))));
            if let Some(record) = std::mem::replace(&mut heads[place], following) {
                writer.append(&JournalEntry::Ended(Box::new(record)))?;
            }
        }
        self.parts.iter().try_for_each(|part| part.stored.check_read())
    }

    /// A record of this part under its number and on the axis of the merged run.
    fn merged(&self, place: usize, mut record: RequestRecord) -> RequestRecord {
        let part = &self.parts[place];
        record.id = self.number(part.ids.in_plan(record.id).unwrap_or(record.id));
        if let Some(connection) = &mut record.connection {
            let ordinal = part.facts.stripe.nth(connection.ordinal.into());
            connection.ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
        }
        record.later_by(part.later)
    }

    /// What was not sent, by any worker, in ranges.
    fn not_sent(&self, end: Moment) -> Vec<NotSent> {
        let missing = self.missing().map(|id| (id, Cause::WorkerMissing, end));
        let all = self.parts.iter().flat_map(Part::not_sent).chain(missing);
        let mut all: Vec<(RequestId, Cause, Moment)> =
            all.map(|(id, cause, at)| (self.number(id), cause, at)).collect();
        all.sort_unstable_by_key(|(id, ..)| *id);
        let mut ranges: Vec<NotSent> = Vec::new();
        for (first, cause, at) in all {
            match ranges.last_mut() {
                Some(last) if last.first.0 + last.count == first.0 && last.cause == cause => {
                    last.count += 1;
                    last.at = last.at.max(at);
                }
                _ => ranges.push(NotSent { first, count: 1, cause, at }),
            }
        }
        ranges
    }

    fn ending(&self) -> RunEnding {
        let endings = || self.parts.iter().map(|part| &part.stored.observations.ending);
        let mut client = ClientFacts::default();
        let mut cpu = CpuFacts { process_ns: 0, ticks: 0, stolen_ticks: 0 };
        for part in &self.parts {
            client.merge(part.client());
            if let Some(dialling) = part.client().dialling.clone() {
                client.dialling.get_or_insert_default().merge(dialling);
            }
            if let Some(its) = part.client().cpu {
                cpu.process_ns += its.process_ns;
                cpu.ticks += its.ticks;
                cpu.stolen_ticks += its.stolen_ticks;
            }
        }
        client.cpu = client.cpu.map(|_| cpu);
        let mut stops = self.workers.iter().map(|worker| worker.run.as_ref().map(|run| run.stop));
        let first = stops.next().flatten().unwrap_or(RunStop::WorkersLost);
        // Those that a scheduler cancels all end alike.
        let was_stopped = matches!(first, RunStop::Recovered | RunStop::Drained | RunStop::Cut);
        let stop = if stops.all(|stop| stop == Some(first)) && !was_stopped {
            first
        } else {
            RunStop::WorkersLost
        };
        let at = self.parts.iter().zip(endings()).map(|(part, ending)| ending.at + part.later);
        RunEnding { began: Some(self.began), at: at.max().unwrap_or(self.began), stop, client }
    }

    fn manifest(&self, first: Manifest) -> Manifest {
        let manifests = || self.parts.iter().map(|part| &part.manifest);
        let began_ns = self.began.as_nanos();
        let start_ns = first.stripe.as_ref().map_or(0, |facts| facts.start_ns);
        // Where this process started the workers, its command is the one that repeats the run.
        let command = environment::capture_host().command.or(first.environment.command);
        let warm_ups = manifests().filter_map(|manifest| manifest.warm_up);
        Manifest {
            bounds: self.whole,
            clock: ClockAnchor { realtime_ns: start_ns.saturating_sub(began_ns), ..first.clock },
            warm_up: warm_ups.reduce(|a, b| WarmUpFacts {
                requests: a.requests + b.requests,
                ok: a.ok + b.ok,
                failed: a.failed + b.failed,
                took: a.took.max(b.took),
            }),
            environment: Environment { command, ..first.environment },
            seen_before: manifests().find_map(|manifest| manifest.seen_before.clone()),
            // Those of the workers say nothing about all of them together.
            calibration: None,
            stripe: None,
            merged: Some(MergeFacts {
                clock_error_ns: clock_error(self.parts.iter().map(|part| &part.facts.host)),
                workers: self.workers.clone(),
            }),
            ..first
        }
    }

    /// The metrics of the server, as one worker read them.
    fn write_telemetry(&self, directory: &RunDirectory, session: &Session) {
        let copy = |part: &Part| -> Result<(), StoreError> {
            let Ok(entries) = part.directory.open_telemetry() else { return Ok(()) };
            let mut writer = directory.create_telemetry()?;
            for entry in entries {
                writer.append(&entry?.later_by(part.later))?;
            }
            writer.finish()
        };
        if let Some(Err(error)) = self.parts.first().map(copy) {
            session.warn(format!("the server's metrics are not all merged: {error}"));
        }
    }
}

/// How far the times of two workers may be apart: nothing on one machine, otherwise what the two worst
/// clocks may be off. `None` where one of them is not known.
fn clock_error<'a>(hosts: impl Iterator<Item = &'a HostFacts>) -> Option<u64> {
    let hosts: Vec<&HostFacts> = hosts.collect();
    let first = hosts.first()?;
    if first.boot.is_some() && hosts.iter().all(|host| host.boot == first.boot) {
        return Some(0);
    }
    let mut by_machine = BTreeMap::new();
    for host in hosts {
        by_machine.insert(host.boot.clone().unwrap_or_else(|| host.name.clone()), host.error_ns?);
    }
    let mut errors: Vec<u64> = by_machine.into_values().collect();
    errors.sort_unstable();
    Some(errors.iter().rev().take(2).sum())
}
