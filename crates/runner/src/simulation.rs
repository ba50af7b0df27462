//! Virtual time: the dispatcher of `load` and the scheduler of `engine` under one simulated clock.
//!
//! A [`Simulator`] plans a run, warms up, plays it, and keeps either every record, as a run writes
//! them, or only a summary. The simulation goes from event to event and waits for nothing: what the
//! plan releases, what the API server hands on, what the scheduler does, and what time-outs end.
//! Decisions are those of a real run, made by the same code; this module only orders events in time:
//! the dispatcher sends requests, time-outs end them, and when the time is over the last ones may still
//! finish until the drain ends.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::statistics::student;
use inferometer_engine::ApiProcess;
use inferometer_engine::physics::{Front as FrontCosts, StepModel};
use inferometer_engine::profile::Profile;
use inferometer_engine::scheduler::blocks::{PromptHasher, mix};
use inferometer_engine::scheduler::{
    Counters, Gauges, Generation, HashedPrompt, Listener, RequestEnd, RequestFacts, Scheduler,
    SchedulerConfig, SchedulerRequest, StopRules,
};
use inferometer_load::contexts::Contexts;
use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_load::limits::{Limits, RequestState};
use inferometer_load::{Control, Stop, SystemClock};
use inferometer_model::endpoint::BaseUrlError;
use inferometer_model::fmt;
use inferometer_model::journal::{ClientFacts, RunStop, log_step, log_step_limits, quantile_step};
use inferometer_model::observations::{
    Connections, Endpoint, InputLength, Materials, ModelError, PinnedOutput, Prediction, Simulated,
    UsageAsk, WarmUpFacts,
};
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::record::{
    Carried, DoneMark, Event as StreamEvent, Finish, FinishReason, Read, ResponseHead, Usage,
};
use inferometer_model::spec::{self, EngineTable};
use inferometer_model::telemetry::{
    self, DevicesAbsence, Dialect, TelemetryEntry, TelemetrySample, Timings,
};
use inferometer_model::{
    Clock, Ending, JournalEntry, Manifest, Moment, NotSent, Outcome, Plan, RequestId,
    RequestRecord, RunEnding, Segment, Spec, StartedRequest,
};
use inferometer_store::{StoreError, TelemetryWriter};
use serde::Serialize;
use slab::Slab;

use crate::failure::{Failure, Result};
use crate::fit::FIGURES;
use crate::interruption::Sending;
use crate::measurement::{Planned, Run, RunLocation, WarmUpTally, seal_summary};
use crate::session::{Event, Session};
use crate::{embedded, environment};

/// Plays benchmarks on an engine in virtual time.
#[derive(Debug)]
pub struct Simulator<'session> {
    /// The engine.
    pub engine: VirtualEngine,
    /// Limits, signals and the observer.
    pub session: &'session Session,
}

/// Refuses what has no meaning in virtual time.
pub fn check_virtual(spec: &Spec) -> Result<()> {
    let stray = [
        (!spec.control.is_default(), "--abort-on, --before-run and --after-run are"),
        (spec.load.cancel.is_some(), "--cancel is"),
    ];
    let Some((_, what)) = stray.into_iter().find(|(is_set, _)| *is_set) else { return Ok(()) };
    let message = format!("{what} for a server that is measured, and virtual time has none");
    Err(Failure::usage(message).hint("leave it out"))
}

/// A run that is planned and warmed up.
#[derive(Debug)]
pub struct Ready {
    planned: Planned,
    /// What was sent before it; times are virtual.
    pub warmed_up: Option<WarmUpFacts>,
    clock: SystemClock,
}

/// A run that was simulated and stored.
#[derive(Debug)]
pub struct SimulatedRun {
    /// The stored run.
    pub measured: Run,
    /// How much faster than real time, as a line.
    pub speed: String,
}

impl Simulator<'_> {
    /// Plans and warms up. A signal before the first request is a failure.
    pub fn make_ready(&mut self, spec: &Spec) -> Result<Ready> {
        let clock = SystemClock::new();
        let planned = Planned::without_words(spec.clone())?;
        planned.check_sends_something()?;
        self.engine.draw_noise_from(embedded::noise_seed(spec));
        self.engine.sample_every = spec.telemetry.as_ref().map_or(SAMPLE_EVERY, |it| it.every);
        let warmed_up = planned.warm_up().map(|plan| self.warm_up(spec, plan));
        // Goes first: a warm-up that was cut has no request that succeeded, and that is no fault.
        self.session.interruption.check().inspect_err(|_| {
            self.session.emit(Event::Interrupted { when: "before the run began" });
        })?;
        Ok(Ready { planned, warmed_up: warmed_up.transpose()?, clock })
    }

    /// Plays what is not counted; the engine's cache keeps it.
    fn warm_up(&mut self, spec: &Spec, plan: Arc<dyn Plan>) -> Result<WarmUpFacts> {
        let _sending = self.session.interruption.sending(Sending::Unstored);
        let mut tally = WarmUpTally::default();
        let mut write = |entry| {
            tally.add(entry);
            Ok(())
        };
        let streaming = spec.workload.streaming;
        let mut journal = Journal { streaming, write: &mut write, watch: &mut |_| {} };
        let ending = self.play(spec, plan, spec.seed ^ WARM_UP, &mut journal)?;
        tally.facts(&ending)
    }

    /// Plays it and keeps only a summary.
    pub fn summarize(&mut self, ready: Ready) -> Result<SimulationSummary> {
        let _sending = self.session.interruption.sending(Sending::Unstored);
        let Planned { spec, plan, .. } = ready.planned;
        let mut tally = Tally { streaming: spec.workload.streaming, ..Tally::default() };
        let ending = self.play(&spec, plan, spec.seed, &mut tally)?;
        Ok(tally.summarize(&ending, &self.engine, spec.seed))
    }

    /// Plays it and keeps every record.
    pub fn record(&mut self, ready: &Ready, location: RunLocation<'_>) -> Result<SimulatedRun> {
        let mut writer = location.create(self.new_run(ready)?)?;
        let directory = writer.directory().clone();
        // A set remembers its own command, which finishes this run, too.
        if location.point.is_none() {
            self.session.interruption.remember(directory.remedy());
        }
        let _sending = self.session.interruption.sending(Sending::Stored);
        let Planned { spec, plan, .. } = &ready.planned;
        let telemetry =
            spec.telemetry.as_ref().map(|_| directory.create_telemetry()).transpose()?;
        let mut recorder = TelemetryRecorder { writer: Ok(telemetry), kv_usage_max: 0.0 };
        recorder.write(&TelemetryEntry::DevicesAbsent(DevicesAbsence::Pretended));
        let generation = self.engine.config().generation;
        let ending = self.play(
            spec,
            Arc::clone(plan),
            spec.seed,
            &mut Journal {
                streaming: spec.workload.streaming,
                write: &mut |entry| Ok(writer.append(&entry)?),
                watch: &mut |sample| {
                    recorder.kv_usage_max = recorder.kv_usage_max.max(sample.gauges.kv_usage);
                    recorder.write(&telemetry_entry(sample, generation));
                },
            },
        )?;
        let finished = recorder.writer.and_then(|it| it.map_or(Ok(()), TelemetryWriter::finish));
        if let Err(error) = finished {
            self.session.warn(format!("the engine's metrics are not all stored: {error}"));
        }
        writer.append(&JournalEntry::RunEnded(ending))?;
        writer.flush()?;
        let summary = seal_summary(&directory, &writer.seal()?)?;
        let virtual_s = summary.window.duration_s.unwrap_or_default();
        let real_s = Duration::from_nanos(ready.clock.now().as_nanos()).as_secs_f64();
        let speed = format!(
            "simulated {} in {}, {} times faster than real time; KV blocks in use: {} at most",
            fmt::seconds(virtual_s),
            fmt::seconds(real_s),
            fmt::whole(virtual_s / real_s.max(1e-9)),
            fmt::percent(recorder.kv_usage_max)
        );
        Ok(SimulatedRun { measured: Run { directory, summary, late_failure: None }, speed })
    }

    fn play<O: Observer>(
        &mut self,
        spec: &Spec,
        plan: Arc<dyn Plan>,
        seed: u64,
        observer: &mut O,
    ) -> Result<RunEnding> {
        let rules = Rules { limits: spec.limits, streaming: spec.workload.streaming, seed };
        let mut player = Player::new(plan, rules, &mut self.engine, observer);
        player.control = self.session.control.clone();
        player.play()
    }

    fn new_run(&self, ready: &Ready) -> Result<Manifest> {
        let endpoint = Endpoint {
            // An address that cannot be reached, by its very name.
            base: "http://simulated.invalid"
                .parse()
                .map_err(|error: BaseUrlError| Failure::from_error(error))?,
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            model: self.engine.model.clone(),
            usage: UsageAsk::Continuous,
            connections: Connections::Reuse,
            pinned: PinnedOutput { ignore_eos: true, min_tokens: false },
            embedded: true,
        };
        let Ready { planned, warmed_up, clock } = ready;
        // No request leaves this program, so no proxy could affect it.
        let environment = environment::capture_host();
        let server = environment::from_engine(&planned.spec.engine)?;
        let materials = planned.inputs.materials().clone();
        Ok(Manifest {
            // A word is a token of the engine, so nothing is an estimate.
            materials: Materials { input_length: InputLength::Exact, ..materials },
            simulated: Some(self.engine.facts.clone()),
            ..planned.manifest(endpoint, *warmed_up, environment, server, *clock)
        })
    }
}

/// Keeps the answers of a warm-up apart from those of the run.
const WARM_UP: u64 = 0x5761_726d_2d75_7021;
/// Bytes of a word, and of the event around it: about what a server sends.
const TEXT_BYTES: u32 = 5;

/// Makes entries of what happens, and hands them on; `watch` receives samples of the engine.
struct Journal<'a> {
    streaming: bool,
    write: &'a mut dyn FnMut(JournalEntry) -> Result<()>,
    watch: &'a mut dyn FnMut(&Sample),
}

impl Observer for Journal<'_> {
    type Notes = Vec<Moment>;

    fn started(&mut self, started: &StartedRequest) -> Result<()> {
        (self.write)(JournalEntry::Started(*started))
    }

    fn token(&mut self, notes: &mut Vec<Moment>, _before: Option<Moment>, at: Moment) {
        notes.push(at);
    }

    fn ended(&mut self, flight: Flight<Vec<Moment>>, end: End) -> Result<()> {
        let record = record(&flight, end, self.streaming);
        (self.write)(JournalEntry::Ended(Box::new(record)))
    }

    fn not_sent(&mut self, part: NotSent) -> Result<()> {
        (self.write)(JournalEntry::NotSent(part))
    }

    fn sampled(&mut self, sample: &Sample) {
        (self.watch)(sample);
    }
}

fn record(flight: &Flight<Vec<Moment>>, end: End, streaming: bool) -> RequestRecord {
    let is_whole = end.ending.outcome == Outcome::Ok;
    // There is no kernel timestamp, and no read is late.
    let read = |at| Read { kernel: None, user: at, turn: at, bytes: 200, drained: true };
    let (mut reads, events): (Vec<Read>, _) = if streaming {
        // One read for each token that came before the client left.
        let seen = usize::try_from(flight.tokens).unwrap_or(usize::MAX);
        (flight.notes.iter().copied().take(seen).map(read).collect(), streamed(flight, is_whole))
    } else if is_whole {
        // Nothing is seen of an answer before its end.
        let carried = Carried::CHOICE | Carried::CONTENT | Carried::FINISH | Carried::USAGE;
        let (tokens, text_bytes) = (Some(flight.tokens), TEXT_BYTES * flight.tokens);
        let event = StreamEvent { read: 0, choice: 0, carried, tokens, text_bytes };
        (vec![read(end.ending.at)], vec![event])
    } else {
        (Vec::new(), Vec::new())
    };
    let head = end.status.map(|status| ResponseHead { status, read: 0, streamed: streaming });
    if head.is_some() && reads.is_empty() {
        // A head without an event has a separate read.
        reads.push(read(end.ending.at));
    }
    let usage = end.cached_tokens.map(|cached_tokens| Usage {
        prompt_tokens: Some(flight.prompt_tokens.into()),
        completion_tokens: Some(flight.tokens.into()),
        cached_tokens: Some(cached_tokens.into()),
    });
    let finish = Finish { choice: 0, reason: FinishReason::Length };
    RequestRecord {
        sent: Some(flight.sent),
        reads,
        head,
        events,
        usage,
        finishes: is_whole.then_some(finish).into_iter().collect(),
        done: DoneMark { seen: is_whole && streaming, events_after: 0 },
        ..RequestRecord::without_answer(&flight.started(), end.ending)
    }
}

/// One event for each token; the last says that it is the last, and usage and the mark of the end
/// come right behind it, as a server sends them.
fn streamed(flight: &Flight<Vec<Moment>>, is_whole: bool) -> Vec<StreamEvent> {
    let last = flight.tokens.saturating_sub(1);
    let token = |read: u32| {
        let is_last = is_whole && read == last;
        let finish = if is_last { Carried::FINISH } else { Carried::empty() };
        let carried = Carried::CHOICE | Carried::CONTENT | finish;
        StreamEvent { read, choice: 0, carried, tokens: Some(1), text_bytes: TEXT_BYTES }
    };
    let closing = [Carried::USAGE, Carried::DONE].into_iter().map(|carried| StreamEvent {
        carried,
        tokens: None,
        text_bytes: 0,
        ..token(last)
    });
    let closing = closing.filter(|_| is_whole && 0 < flight.tokens);
    (0..flight.tokens).map(token).chain(closing).collect()
}

/// Stores samples. A sample that cannot be written does not stop the simulation.
#[derive(Debug)]
struct TelemetryRecorder {
    /// `None` where no telemetry is requested; the first error ends it.
    writer: Result<Option<TelemetryWriter>, StoreError>,
    kv_usage_max: f64,
}

impl TelemetryRecorder {
    fn write(&mut self, entry: &TelemetryEntry) {
        if let Ok(Some(writer)) = &mut self.writer
            && let Err(error) = writer.append(entry)
        {
            self.writer = Err(error);
        }
    }
}

/// A sample that took no time. The older generation reports blocks in host memory, of which
/// there are never any here, and of its prefix cache no more than a rate.
fn telemetry_entry(sample: &Sample, generation: Generation) -> TelemetryEntry {
    let (gauges, counters) = (sample.gauges, sample.counters);
    let is_older = generation != Generation::V1;
    let of_older = is_older.then_some(0.0);
    let of_newer = |count: u64| (!is_older).then_some(count as f64);
    TelemetryEntry::Sample(TelemetrySample {
        at: sample.at,
        took: Duration::ZERO,
        dialect: if is_older { Dialect::VllmV0 } else { Dialect::VllmV1 },
        process_start_s: None,
        gauges: telemetry::Gauges {
            running: Some(gauges.running.into()),
            waiting: Some(gauges.waiting.into()),
            swapped: of_older,
            kv_usage: Some(gauges.kv_usage),
            cpu_kv_usage: of_older,
        },
        counters: telemetry::Counters {
            prefix_queries: of_newer(counters.prefix_queries),
            prefix_hits: of_newer(counters.prefix_hits),
            preemptions: Some(counters.preemptions as f64),
            prompt_tokens: Some(counters.prompt_tokens as f64),
            generation_tokens: Some(counters.generation_tokens as f64),
        },
        timings: Timings::default(),
        speculation: None,
        dropped: 0,
    })
}

#[derive(Debug, Default)]
struct Tally {
    /// Whether answers are streamed; otherwise only the end of an answer is seen.
    streaming: bool,
    ttft: Histogram,
    tpot: Histogram,
    itl: Histogram,
    e2e: Histogram,
    outcomes: BTreeMap<Outcome, u64>,
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    first_sent: Option<Moment>,
    last_end: Moment,
    samples: u64,
    kv_usage_sum: f64,
    kv_usage_max: f64,
    running_max: u32,
    waiting_max: u32,
}

impl Observer for Tally {
    type Notes = ();

    fn started(&mut self, started: &StartedRequest) -> Result<()> {
        self.first_sent.get_or_insert(started.admitted);
        Ok(())
    }

    fn token(&mut self, (): &mut (), before: Option<Moment>, at: Moment) {
        if let Some(before) = before.filter(|_| self.streaming) {
            self.itl.add(at.as_nanos() - before.as_nanos());
        }
    }

    fn ended(&mut self, flight: Flight<()>, end: End) -> Result<()> {
        let ending = &end.ending;
        *self.outcomes.entry(ending.outcome).or_default() += 1;
        self.last_end = self.last_end.max(ending.at);
        let (Outcome::Ok, Some(first), Some(last)) = (ending.outcome, flight.first, flight.last)
        else {
            return Ok(());
        };
        let since = |later: Moment, earlier: Moment| later.as_nanos() - earlier.as_nanos();
        self.e2e.add(since(ending.at, flight.sent));
        if self.streaming {
            self.ttft.add(since(first, flight.sent));
            let gaps = u64::from(flight.tokens).checked_sub(1).filter(|gaps| 0 < *gaps);
            if let Some(gaps) = gaps {
                self.tpot.add(since(last, first) / gaps);
            }
        }
        self.input_tokens += u64::from(flight.prompt_tokens);
        self.cached_tokens += u64::from(end.cached_tokens.unwrap_or_default());
        self.output_tokens += u64::from(flight.tokens);
        Ok(())
    }

    fn not_sent(&mut self, part: NotSent) -> Result<()> {
        *self.outcomes.entry(Outcome::NotSent).or_default() += part.count;
        Ok(())
    }

    fn sampled(&mut self, sample: &Sample) {
        let gauges = sample.gauges;
        self.samples += sample.stands_for;
        self.kv_usage_sum += gauges.kv_usage * sample.stands_for as f64;
        self.kv_usage_max = self.kv_usage_max.max(gauges.kv_usage);
        self.running_max = self.running_max.max(gauges.running);
        self.waiting_max = self.waiting_max.max(gauges.waiting);
    }
}

/// The result of a simulation without records.
#[derive(Clone, Debug, Serialize)]
pub struct SimulationSummary {
    /// Name and version of this document.
    pub schema: &'static str,
    /// The profile that was simulated.
    pub simulated: Simulated,
    /// The seed of the run.
    pub seed: u64,
    /// Why the plan was not played to its end, where it was not.
    pub stopped: Option<RunStop>,
    /// From the first request to the end of the last, in virtual seconds.
    pub duration_s: f64,
    /// Requests by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Input tokens of successful requests.
    pub input_tokens: u64,
    /// Output tokens of successful requests.
    pub output_tokens: u64,
    /// Successful requests per second.
    pub request_throughput: Option<f64>,
    /// Output tokens per second.
    pub output_throughput: Option<f64>,
    /// Input and output tokens per second.
    pub total_throughput: Option<f64>,
    /// Time to first token.
    pub ttft_ms: Times,
    /// Time per output token.
    pub tpot_ms: Times,
    /// Time between two tokens.
    pub itl_ms: Times,
    /// Time from sending to the end of the answer.
    pub e2e_ms: Times,
    /// Share of the input tokens of successful requests that the prefix cache held.
    pub cached_share: Option<f64>,
    /// Tokens found in the prefix cache, as a share of those looked up.
    pub prefix_hit_rate: Option<f64>,
    /// Requests that were preempted.
    pub preemptions: u64,
    /// Steps of the engine.
    pub steps: u64,
    /// Sampled at even steps of virtual time.
    pub kv_usage_mean: Option<f64>,
    /// Largest share of KV blocks in use.
    pub kv_usage_max: Option<f64>,
    /// Most requests running.
    pub running_max: u32,
    /// Most requests waiting.
    pub waiting_max: u32,
}

/// Mean and maximum are exact; percentiles are within a hundredth.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// Mean.
    pub mean: Option<f64>,
    /// 50th percentile.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Number of values.
    pub n: u64,
}

impl Times {
    fn from_histogram(times: &Histogram) -> Self {
        let any = 0 < times.count;
        let at = |share| times.quantile_ns(share).map(|ns| ns as f64 / 1e6);
        Self {
            mean: any.then(|| times.sum_ns as f64 / times.count as f64 / 1e6),
            p50: at(0.50),
            p90: at(0.90),
            p95: at(0.95),
            p99: at(0.99),
            max: any.then(|| times.max_ns as f64 / 1e6),
            n: times.count,
        }
    }
}

impl Tally {
    /// The summary of the simulation.
    fn summarize(self, ending: &RunEnding, engine: &VirtualEngine, seed: u64) -> SimulationSummary {
        let began = self.first_sent.or(ending.began).unwrap_or_default();
        let duration_s = self.last_end.since(began).map_or(0.0, |duration| duration.as_secs_f64());
        let share = |part: u64, whole: u64| (0 < whole).then(|| part as f64 / whole as f64);
        let per_s = |number: u64| (0.0 < duration_s).then(|| number as f64 / duration_s);
        let sampled = 0 < self.samples;
        SimulationSummary {
            schema: "inferometer.simulation/1",
            simulated: engine.facts.clone(),
            seed,
            stopped: Some(ending.stop).filter(|stop| stop.is_partial()),
            duration_s,
            request_throughput: per_s(self.e2e.count),
            output_throughput: per_s(self.output_tokens),
            total_throughput: per_s(self.input_tokens + self.output_tokens),
            ttft_ms: Times::from_histogram(&self.ttft),
            tpot_ms: Times::from_histogram(&self.tpot),
            itl_ms: Times::from_histogram(&self.itl),
            e2e_ms: Times::from_histogram(&self.e2e),
            cached_share: share(self.cached_tokens, self.input_tokens),
            prefix_hit_rate: share(
                engine.counted(|counters| counters.prefix_hits),
                engine.counted(|counters| counters.prefix_queries),
            ),
            preemptions: engine.counted(|counters| counters.preemptions),
            steps: engine.counted(|counters| counters.steps),
            kv_usage_mean: sampled.then(|| self.kv_usage_sum / self.samples as f64),
            kv_usage_max: sampled.then_some(self.kv_usage_max),
            running_max: self.running_max,
            waiting_max: self.waiting_max,
            outcomes: self.outcomes,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
        }
    }
}

impl SimulationSummary {
    /// All requests, with any outcome.
    pub fn requests(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Requests that succeeded.
    pub fn ok(&self) -> u64 {
        self.outcomes.get(&Outcome::Ok).copied().unwrap_or_default()
    }

    /// The summary as a JSON document.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(Failure::from_error)
    }
}

/// Sixty-four steps to each doubling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

const STEP_BITS: u32 = 6;

impl Histogram {
    pub(crate) fn add(&mut self, ns: u64) {
        let step = log_step(ns, STEP_BITS);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns += u128::from(ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        let both = 0 < self.count && 0 < other.count;
        self.min_ns =
            if both { self.min_ns.min(other.min_ns) } else { self.min_ns.max(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }

    /// The middle of the step that holds the share's quantile.
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<u64> {
        let (first, end) = log_step_limits(quantile_step(&self.counts, share)?, STEP_BITS);
        Some((first + (end - first) / 2).clamp(self.min_ns, self.max_ns))
    }
}

/// An engine in virtual time. It keeps its prefix cache from run to run.
pub struct VirtualEngine {
    scheduler: Scheduler<StepModel>,
    api_server: ApiServer,
    /// The run's zero on the engine's clock.
    origin_ns: u64,
    /// What had been counted by then.
    counted: Counters,
    next_sample: Moment,
    /// How far apart samples are.
    pub sample_every: Duration,
    /// What is stored of the engine.
    pub facts: Simulated,
    /// The name of its model.
    pub model: String,
}

inferometer_model::debug_fields!(VirtualEngine, facts);

impl VirtualEngine {
    /// The engine that a spec asks for.
    pub fn new(spec: &EngineTable) -> Result<Self> {
        let profile = embedded::profile(spec)?;
        let Some(step) = spec.step else {
            // Each run draws the noise anew.
            return Ok(Self::from_profile(&profile, 0));
        };
        // The profile's queues, in which nothing but steps takes time: the live engine's `--step`.
        let config = profile.scheduler;
        let title = format!("constant step of {step:?}");
        let facts = Simulated {
            profile: title,
            engine: describe(&config),
            model_error: None,
            prediction: None,
        };
        let scheduler = Scheduler::new(config, StepModel::constant(step));
        Ok(Self::assemble(scheduler, FrontCosts::IMMEDIATE, facts, profile.model.title))
    }

    /// The engine of a profile, with noise from this seed.
    pub fn from_profile(profile: &Profile, seed: u64) -> Self {
        let timing = profile.step_model(seed);
        let [output_throughput, ttft, tpot] = FIGURES
            .map(|figure| profile.fitted.as_ref().and_then(|fitted| fitted.worst_error(figure)));
        let model_error = ModelError { output_throughput, ttft, tpot };
        let facts = Simulated {
            profile: profile.name.clone(),
            engine: profile_line(profile),
            model_error: model_error.worst().map(|_| model_error),
            prediction: prediction(profile),
        };
        let scheduler = Scheduler::new(profile.scheduler.clone(), timing);
        Self::assemble(scheduler, profile.front, facts, profile.model.title.clone())
    }

    fn assemble(
        scheduler: Scheduler<StepModel>,
        costs: FrontCosts,
        facts: Simulated,
        model: String,
    ) -> Self {
        Self {
            scheduler,
            api_server: ApiServer { process: ApiProcess::new(costs), queue: VecDeque::new() },
            origin_ns: 0,
            counted: Counters::default(),
            next_sample: Moment::ZERO,
            sample_every: SAMPLE_EVERY,
            facts,
            model,
        }
    }

    /// The steps of a run differ from those of the next: their noise is of the run's own seed.
    pub fn draw_noise_from(&mut self, seed: u64) {
        self.scheduler.step_time_mut().reseed(seed);
    }

    pub(crate) fn config(&self) -> &SchedulerConfig {
        self.scheduler.config()
    }

    /// The run is over: the next begins here.
    fn end(&mut self, at: Moment) {
        self.origin_ns = self.on_engine(at);
    }

    /// Lets time pass between runs.
    pub fn rest(&mut self, time: Duration) {
        self.end(Moment::ZERO + time);
    }

    /// The value of one of the scheduler's counters in this run.
    pub(crate) fn counted(&self, counter: fn(&Counters) -> u64) -> u64 {
        counter(&self.scheduler.counters()) - counter(&self.counted)
    }

    /// Shows itself at even steps up to `now`, as it stands before what happens then. Nothing
    /// changes between events, so of a long rest only the beginning and the end are shown.
    fn sample_before(&mut self, now: Moment, observer: &mut impl Observer) {
        for _ in 0..SAMPLES_OF_A_REST {
            if now < self.next_sample {
                return;
            }
            observer.sampled(&self.sample(self.next_sample));
            self.next_sample = self.next_sample + self.sample_every;
        }
        let Some(rest) = now.since(self.next_sample) else { return };
        let steps = rest.as_nanos() / self.sample_every.as_nanos().max(1);
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let every_ns = u64::try_from(self.sample_every.as_nanos()).unwrap_or(u64::MAX);
        let at = self.next_sample + Duration::from_nanos(every_ns.saturating_mul(steps));
        observer.sampled(&Sample { stands_for: steps.saturating_add(1), ..self.sample(at) });
        self.next_sample = at + self.sample_every;
    }

    /// Itself, as it stands.
    fn sample(&self, at: Moment) -> Sample {
        let (gauges, counters) = (self.scheduler.gauges(), self.scheduler.counters());
        Sample { at, stands_for: 1, gauges, counters }
    }

    fn next_moment(&self) -> Option<Moment> {
        let front_ns = self.api_server.queue.front().map(|waiting| waiting.at_ns);
        let events = [self.scheduler.next_event(), front_ns];
        let next_ns = events.into_iter().flatten().min()?;
        Some(Moment::from_nanos(next_ns.saturating_sub(self.origin_ns)))
    }

    fn on_engine(&self, moment: Moment) -> u64 {
        self.origin_ns.saturating_add(moment.as_nanos())
    }

    /// Lets the scheduler act at `now`; what it makes goes through the API server to the client.
    fn act<T, O: Observer>(
        &mut self,
        client: &mut Client<'_, O>,
        act: impl FnOnce(&mut Scheduler<StepModel>, u64, &mut Wire<'_, '_, O>) -> T,
    ) -> T {
        let now_ns = self.on_engine(client.now);
        let Self { scheduler, api_server, origin_ns, .. } = self;
        let mut wire = Wire { process: &mut api_server.process, origin_ns: *origin_ns, client };
        act(scheduler, now_ns, &mut wire)
    }
}

/// Between two samples of the engine, where no telemetry is requested.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const SAMPLES_OF_A_REST: u32 = 60;

/// From the scheduler through the API server to the client.
struct Wire<'a, 'c, O: Observer> {
    process: &'a mut ApiProcess,
    origin_ns: u64,
    client: &'a mut Client<'c, O>,
}

impl<O: Observer> Listener for Wire<'_, '_, O> {
    fn token(&mut self, id: u64, _index: u32, at_ns: u64) {
        let seen_ns = self.process.hand_out(id, at_ns);
        let at = Moment::from_nanos(seen_ns.saturating_sub(self.origin_ns));
        let Client { now, flights, observer, .. } = &mut *self.client;
        let Some(flight) = flights.get_mut(place_of(id)) else { return };
        observer.token(&mut flight.notes, flight.last, at);
        flight.tokens += 1;
        flight.first.get_or_insert(at);
        flight.last = Some(at);
        flight.on_the_way.add(*now, at);
    }

    fn ended(&mut self, facts: &RequestFacts) {
        // The player ends what it aborts.
        if facts.end != RequestEnd::Abort {
            self.client.landed.push(*facts);
        }
    }
}

/// No probe of two minutes knows a server better.
const HALF_WIDTH_MIN: f64 = 0.05;

/// How far the predictions of a learned profile reach: from its errors in loads that it had not seen.
fn prediction(profile: &Profile) -> Option<Prediction> {
    let seen = profile.law.as_ref()?.seen;
    let fitted = profile.fitted.as_ref()?;
    let half_width = |figure: &str| {
        let errors = fitted.unseen_errors(figure).into_iter().filter(|error| -1.0 < *error);
        let squares: Vec<f64> = errors.map(|it| libm::pow(libm::log(1.0 + it), 2.0)).collect();
        let n = squares.len() as f64;
        // One more draw from errors whose spread is known from so many, around no error.
        let scale = (!squares.is_empty()).then(|| student::quantile(0.975, n))?;
        let spread = libm::sqrt(squares.iter().sum::<f64>() / n);
        Some((libm::exp(scale * spread) - 1.0).max(HALF_WIDTH_MIN))
    };
    let [output_throughput, ttft, tpot] = FIGURES.map(half_width);
    Some(Prediction {
        half_width: ModelError { output_throughput, ttft, tpot },
        batch: Some(seen.batch).filter(|batch| *batch < profile.scheduler.max_num_seqs),
        prompt: seen.prompt,
        context: seen.context,
    })
}

/// What the profile says of itself first and last: what is served on what, and where the step times
/// come from.
fn profile_line(profile: &Profile) -> String {
    let text = profile.describe();
    let name = format!("{}: ", profile.name);
    let mut lines = text.strip_prefix(&name).unwrap_or(&text).lines();
    let (first, last) = (lines.next(), lines.next_back());
    first.into_iter().chain(last).collect::<Vec<_>>().join("; ")
}

/// What the reader of a result needs to know of the settings.
fn describe(config: &SchedulerConfig) -> String {
    let generation = match config.generation {
        Generation::V1 => "v1".to_owned(),
        Generation::V0 { scheduler_steps } => format!("v0 ({scheduler_steps} scheduler steps)"),
    };
    let caching = if config.prefix_caching { "on" } else { "off" };
    format!(
        "{generation} scheduler, {} KV blocks of {} tokens, max_num_seqs {}, \
         max_num_batched_tokens {}, max_model_len {}, prefix caching {caching}",
        config.blocks,
        config.block_size,
        config.max_num_seqs,
        config.max_num_batched_tokens,
        config.max_model_len,
    )
}

/// The process in front of the scheduler.
#[derive(Debug)]
struct ApiServer {
    process: ApiProcess,
    /// Requests on their way to the scheduler, in the order of their arrival there.
    queue: VecDeque<Waiting>,
}

/// A request that is not with the scheduler yet. Its slot may have been used again meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    at_ns: u64,
    place: usize,
    id: RequestId,
}

impl ApiServer {
    /// Takes a request in; it will be with the scheduler when all before it are done.
    fn take_in(&mut self, now_ns: u64, place: usize, id: RequestId, tokens: u32) {
        let at_ns = self.process.take_in(now_ns, tokens);
        self.queue.push_back(Waiting { at_ns, place, id });
    }

    /// A request that reaches the scheduler by now.
    fn pass_on(&mut self, now_ns: u64) -> Option<Waiting> {
        let is_due = self.queue.front().is_some_and(|waiting| waiting.at_ns <= now_ns);
        if is_due { self.queue.pop_front() } else { None }
    }
}

/// What a plan is played with.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) limits: spec::Limits,
    pub(crate) streaming: bool,
    /// Seed of the answers.
    pub(crate) seed: u64,
}

pub(crate) struct Player<'a, O: Observer> {
    plan: Arc<dyn Plan>,
    rules: Rules,
    engine: &'a mut VirtualEngine,
    client: Client<'a, O>,
    dispatcher: Dispatcher,
    /// What was said in the sessions that go on.
    contexts: Contexts<Segment>,
    limits: Limits,
    /// The shortest of all limits: nothing is looked at later than after this.
    limit_min: Duration,
    /// The API server may hand the last tokens out a little after the engine has made them.
    last_end: Moment,
    drain_until: Option<Moment>,
    /// Whether the time to drain is over as well.
    is_cut: bool,
    /// What the user asks for, and what of that has been done.
    control: Control,
    obeyed: Stop,
    stop: RunStop,
    turns: u32,
    /// Refused requests in a row, until they are written down.
    refused: Option<NotSent>,
}

/// The client of the engine: its requests in flight, and the observer of what happens to them.
struct Client<'a, O: Observer> {
    now: Moment,
    /// The place of a flight is its name in the scheduler, so that a token finds it without a search.
    flights: Slab<Flight<O::Notes>>,
    observer: &'a mut O,
    /// Requests that the engine has ended, until the client has seen it.
    landed: Vec<RequestFacts>,
}

/// A simulation has one driver.
const LANE: usize = 0;
const STATUS_OK: u16 = 200;

impl<'a, O: Observer> Player<'a, O> {
    /// The plan's zero is the engine's present.
    pub(crate) fn new(
        plan: Arc<dyn Plan>,
        rules: Rules,
        engine: &'a mut VirtualEngine,
        observer: &'a mut O,
    ) -> Self {
        // The zero of the run is now.
        engine.counted = engine.scheduler.counters();
        engine.next_sample = Moment::ZERO;
        let spec::Limits { first_token, idle, total, .. } = rules.limits;
        Self {
            dispatcher: Dispatcher::new(Arc::clone(&plan), usize::MAX, Moment::ZERO, 1),
            plan,
            engine,
            client: Client {
                now: Moment::ZERO,
                flights: Slab::new(),
                observer,
                landed: Vec::new(),
            },
            contexts: Contexts::default(),
            limits: Limits::default(),
            limit_min: first_token.min(idle).min(total),
            rules,
            last_end: Moment::ZERO,
            drain_until: None,
            is_cut: false,
            control: Control::default(),
            obeyed: Stop::Run,
            stop: RunStop::PlanDone,
            turns: 0,
            refused: None,
        }
    }

    /// Plays it to its end.
    pub(crate) fn play(mut self) -> Result<RunEnding> {
        loop {
            self.obey()?;
            let due = match self.dispatcher.next(LANE, self.client.now) {
                Command::Send(departure) => {
                    self.depart(departure)?;
                    continue;
                }
                Command::Refuse { id, cause } => {
                    self.refuse(id, cause)?;
                    continue;
                }
                Command::WaitUntil(moment) => Some(moment),
                Command::WaitForReply => None,
                Command::Done => break,
            };
            let Some(next) = self.next_moment(due) else {
                return Err(Failure::internal("a simulation with requests in flight stood still"));
            };
            self.happen(next.max(self.client.now))?;
        }
        self.note_refused()?;
        let at = self.client.now.max(self.last_end);
        self.client.observer.sampled(&self.engine.sample(at));
        self.engine.end(at);
        let client = ClientFacts { drivers: 1, ..ClientFacts::default() };
        Ok(RunEnding { began: Some(Moment::ZERO), at, stop: self.stop, client })
    }

    /// The time of the next event.
    fn next_moment(&self, due: Option<Moment>) -> Option<Moment> {
        let is_over = self.dispatcher.is_time_over(self.client.now);
        let time_over = self.plan.bounds().release_before.filter(|_| !is_over);
        let drained = self.drain_until.filter(|_| !self.is_cut);
        let events = [due, self.engine.next_moment(), self.limits.next(), time_over, drained];
        events.into_iter().flatten().min()
    }

    /// Brings everything to `now`. What reaches the engine at a moment comes before what the
    /// engine does then, and what the client sees comes before its patience ends.
    fn happen(&mut self, now: Moment) -> Result<()> {
        self.engine.sample_before(now, self.client.observer);
        self.client.now = now;
        let now_ns = self.engine.on_engine(now);
        while let Some(waiting) = self.engine.api_server.pass_on(now_ns) {
            self.submit(waiting)?;
        }
        self.engine
            .act(&mut self.client, |scheduler, now_ns, wire| scheduler.advance(now_ns, wire));
        self.land_all()?;
        while let Some(place) = self.limits.due(now) {
            self.check_limit(place)?;
        }
        self.conduct()
    }

    fn depart(&mut self, departure: Departure) -> Result<()> {
        let place = self.client.flights.vacant_key();
        let request = departure.request;
        // All that the server is sent: what was said before, and the new turn.
        let added = self.plan.segments(&request);
        let mut said: Vec<Segment> = self.contexts.before(&request).into_iter().copied().collect();
        said.extend(&added);
        let answer_seed = mix(self.rules.seed ^ mix(request.id.0.wrapping_add(1)));
        let prompt = self.hashed(&said);
        let prompt_tokens = prompt.tokens;
        let in_front = SchedulerRequest {
            id: place as u64,
            prompt,
            answer_seed,
            stop: StopRules::after(request.output_tokens.max(1)),
            priority: 0,
        };
        let flight = Flight {
            departure,
            sent: self.client.now,
            prompt_tokens,
            tokens: 0,
            first: None,
            last: None,
            on_the_way: OnTheWay::default(),
            notes: O::Notes::default(),
            added,
            answer_seed,
            in_front: Some(in_front),
        };
        self.client.observer.started(&flight.started())?;
        self.client.flights.insert(flight);
        let now_ns = self.engine.on_engine(self.client.now);
        self.engine.api_server.take_in(now_ns, place, request.id, prompt_tokens);
        self.limits.arm(place, self.client.now + self.limit_min);
        Ok(())
    }

    /// Names of blocks are made only for a cache that looks for them.
    fn hashed(&self, said: &[Segment]) -> HashedPrompt {
        let config = self.engine.config();
        if config.prefix_caching {
            let segments = said.iter().map(|segment| (segment.seed, segment.tokens));
            return HashedPrompt::of_segments(segments, config.block_size);
        }
        HashedPrompt {
            tokens: said.iter().fold(0, |sum, segment| sum.saturating_add(segment.tokens)),
            hashes: Vec::new(),
            rest: PromptHasher::new(config.block_size),
        }
    }

    /// The API server has read a request, and hands it on or refuses it.
    fn submit(&mut self, waiting: Waiting) -> Result<()> {
        let Waiting { place, id, .. } = waiting;
        let flight = self.client.flights.get_mut(place);
        // Ended meanwhile, and perhaps its place has changed hands.
        let flight = flight.filter(|flight| flight.departure.request.id == id);
        let Some(request) = flight.and_then(|flight| flight.in_front.take()) else { return Ok(()) };
        let submitted = self.engine.act(&mut self.client, |scheduler, now_ns, wire| {
            scheduler.submit(now_ns, request, wire)
        });
        let Err(refusal) = submitted else { return Ok(()) };
        let ending = Ending {
            outcome: Outcome::HttpError,
            at: self.client.now,
            stage: Stage::Headers,
            cause: None,
            message: Some(refusal.to_string()),
        };
        self.end(place, End { ending, status: Some(400), cached_tokens: None })
    }

    fn land_all(&mut self) -> Result<()> {
        let mut landed = std::mem::take(&mut self.client.landed);
        for facts in landed.drain(..) {
            let place = place_of(facts.id);
            let Some(flight) = self.client.flights.get_mut(place) else { continue };
            let ending = Ending::ok(flight.last.unwrap_or(self.client.now));
            let request = flight.departure.request;
            let mut added = std::mem::take(&mut flight.added);
            added.push(Segment { seed: flight.answer_seed, tokens: flight.tokens });
            self.contexts.finished(&request, Some(added));
            let cached_tokens = Some(facts.cached_tokens);
            self.end(place, End { ending, status: Some(STATUS_OK), cached_tokens })?;
        }
        self.client.landed = landed;
        Ok(())
    }

    fn check_limit(&mut self, place: usize) -> Result<()> {
        let Some(flight) = self.client.flights.get_mut(place) else { return Ok(()) };
        let state = flight.state_at(self.client.now, self.rules.streaming);
        let (at, outcome) = state.next_limit(&self.rules.limits);
        if self.client.now < at {
            // The next stage may bring a limit that comes sooner.
            self.limits.arm(place, at.min(self.client.now + self.limit_min));
            return Ok(());
        }
        self.break_off(place, outcome, None)
    }

    /// What no driver does: gives up what a cap holds back when the time is over, and ends what is
    /// in flight when the time to drain is over as well.
    fn conduct(&mut self) -> Result<()> {
        let now = self.client.now;
        // What a stop gave up is not given up again.
        if self.obeyed == Stop::Run && self.dispatcher.is_time_over(now) {
            if let Some(part) = self.dispatcher.expire(now) {
                self.client.observer.not_sent(part)?;
            }
            if self.drain_until.is_none() && self.dispatcher.has_released_all(now) {
                self.drain_until = Some(now + self.rules.limits.drain);
            }
        }
        if self.drain_until.is_some_and(|until| until <= now) { self.cut() } else { Ok(()) }
    }

    /// Follows the stop control, as a real run does: the first stop drains, the second cuts.
    fn obey(&mut self) -> Result<()> {
        // Reading the stop control takes longer than most turns.
        let is_look = self.turns.is_multiple_of(64);
        self.turns = self.turns.wrapping_add(1);
        let asked = if is_look { self.control.asked() } else { self.obeyed };
        if asked <= self.obeyed {
            return Ok(());
        }
        if self.obeyed == Stop::Run {
            self.release_nothing_more()?;
        }
        self.obeyed = asked;
        if asked == Stop::Cut { self.cut() } else { Ok(()) }
    }

    fn release_nothing_more(&mut self) -> Result<()> {
        let now = self.client.now;
        // A run that has sent all of its requests is not partial when it is stopped.
        if !self.dispatcher.has_released_all(now) {
            self.stop = RunStop::Drained;
        }
        for part in self.dispatcher.stop(now) {
            self.client.observer.not_sent(part)?;
        }
        let until = now + self.rules.limits.drain;
        self.drain_until = Some(self.drain_until.map_or(until, |earlier| earlier.min(until)));
        Ok(())
    }

    /// Ends what is in flight.
    fn cut(&mut self) -> Result<()> {
        if self.is_cut {
            return Ok(());
        }
        self.is_cut = true;
        let places: Vec<usize> = self.client.flights.iter().map(|(place, _)| place).collect();
        let is_requested = self.stop == RunStop::Drained || self.obeyed == Stop::Cut;
        if is_requested && !places.is_empty() {
            self.stop = RunStop::Cut;
        }
        for place in places {
            self.break_off(place, Outcome::Cancelled, Some(Cause::RunStopped))?;
        }
        Ok(())
    }

    /// Ends a request from the client's side: it closes the connection, and the engine lets go.
    fn break_off(&mut self, place: usize, outcome: Outcome, cause: Option<Cause>) -> Result<()> {
        let Some(flight) = self.client.flights.get_mut(place) else { return Ok(()) };
        flight.leave(self.client.now);
        let has_output = 0 < flight.tokens;
        if flight.in_front.is_none() {
            self.engine.act(&mut self.client, |scheduler, now_ns, wire| {
                scheduler.abort(now_ns, place as u64, wire);
            });
        }
        let stage = if has_output { Stage::Stream } else { Stage::FirstToken };
        let ending = Ending { outcome, at: self.client.now, stage, cause, message: None };
        let status = has_output.then_some(STATUS_OK);
        self.end(place, End { ending, status, cached_tokens: None })
    }

    fn end(&mut self, place: usize, end: End) -> Result<()> {
        let Some(flight) = self.client.flights.try_remove(place) else { return Ok(()) };
        if end.ending.outcome != Outcome::Ok {
            self.contexts.finished(&flight.departure.request, None);
        }
        let reply = Reply { at: end.ending.at, ok: end.ending.outcome == Outcome::Ok };
        self.dispatcher.replied(LANE, &flight.departure, reply);
        self.last_end = self.last_end.max(reply.at);
        self.client.observer.ended(flight, end)
    }

    fn refuse(&mut self, id: RequestId, cause: Cause) -> Result<()> {
        if !self.contexts.is_empty()
            && let Some(request) = self.plan.request(id)
        {
            self.contexts.finished(&request, None);
        }
        match &mut self.refused {
            Some(part) if part.first.0 + part.count == id.0 && part.cause == cause => {
                part.count += 1;
            }
            _ => {
                self.note_refused()?;
                self.refused = Some(NotSent { first: id, count: 1, cause, at: self.client.now });
            }
        }
        Ok(())
    }

    fn note_refused(&mut self) -> Result<()> {
        self.refused.take().map_or(Ok(()), |part| self.client.observer.not_sent(part))
    }
}

/// Receives everything that the client would see, in the order in which it happens.
pub(crate) trait Observer {
    /// What it keeps of a request in flight.
    type Notes: Default;

    fn started(&mut self, _: &StartedRequest) -> Result<()> {
        Ok(())
    }

    /// A token of an answer arrived; `before` is the time of the one before it. This is the
    /// path of every token: nothing that can fail belongs here.
    fn token(&mut self, _: &mut Self::Notes, _before: Option<Moment>, _at: Moment) {}

    fn ended(&mut self, flight: Flight<Self::Notes>, end: End) -> Result<()>;

    fn not_sent(&mut self, _: NotSent) -> Result<()> {
        Ok(())
    }

    /// The engine as it stands, at even steps of virtual time.
    fn sampled(&mut self, _: &Sample) {}
}

/// How a request ended, and what the engine says of it.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) ending: Ending,
    /// The status of the answer's head, where there is one.
    pub(crate) status: Option<u16>,
    /// Prompt tokens that the prefix cache held; `None` where the answer is not whole.
    pub(crate) cached_tokens: Option<u32>,
}

/// The state of the engine, as telemetry would read it. Counters are since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) at: Moment,
    /// How many it stands for: more than itself at the end of a long rest.
    pub(crate) stands_for: u64,
    pub(crate) gauges: Gauges,
    pub(crate) counters: Counters,
}

/// A request between its departure and its end.
#[derive(Debug)]
pub(crate) struct Flight<N> {
    pub(crate) departure: Departure,
    pub(crate) sent: Moment,
    pub(crate) prompt_tokens: u32,
    /// Tokens that the API server has handed out; the last ones may still be on the way.
    pub(crate) tokens: u32,
    pub(crate) first: Option<Moment>,
    pub(crate) last: Option<Moment>,
    on_the_way: OnTheWay,
    pub(crate) notes: N,
    /// What it adds to its session.
    added: Vec<Segment>,
    answer_seed: u64,
    /// Until the API server has handed it to the scheduler.
    in_front: Option<SchedulerRequest>,
}

impl<N> Flight<N> {
    pub(crate) fn started(&self) -> StartedRequest {
        let Departure { request, intended, admitted, slot: _ } = self.departure;
        StartedRequest { id: request.id, intended, admitted, asked: request.asked() }
    }

    /// As the client sees it.
    fn state_at(&self, now: Moment, streaming: bool) -> RequestState {
        let last_read = self.last_seen(now);
        RequestState {
            admitted: self.departure.admitted,
            connected: true,
            sent: Some(self.sent),
            last_read,
            has_output: last_read.is_some(),
            streaming,
        }
    }

    /// The client closes the connection: tokens on the way are lost.
    fn leave(&mut self, now: Moment) {
        self.last = self.last_seen(now);
        self.first = self.first.filter(|_| self.last.is_some());
        self.tokens = self.tokens.saturating_sub(self.on_the_way.after(now));
    }

    fn last_seen(&self, now: Moment) -> Option<Moment> {
        self.last.filter(|last| *last <= now).or_else(|| self.on_the_way.last_by(now))
    }
}

/// Moments of tokens that the engine has made and the client may not have, in their order.
#[derive(Debug, Default)]
struct OnTheWay {
    moments: VecDeque<Moment>,
    /// The last that is certain to have arrived.
    arrived: Option<Moment>,
}

impl OnTheWay {
    fn add(&mut self, made: Moment, seen: Moment) {
        while let Some(moment) = self.moments.front().copied().filter(|moment| *moment <= made) {
            self.arrived = Some(moment);
            self.moments.pop_front();
        }
        if seen <= made {
            self.arrived = Some(seen);
        } else {
            self.moments.push_back(seen);
        }
    }

    fn last_by(&self, now: Moment) -> Option<Moment> {
        let seen = self.moments.iter().rev().find(|moment| **moment <= now);
        seen.copied().or(self.arrived)
    }

    fn after(&self, now: Moment) -> u32 {
        let unseen = self.moments.iter().rev().take_while(|moment| now < **moment).count();
        u32::try_from(unseen).unwrap_or(u32::MAX)
    }
}

fn place_of(id: u64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
