//! One run in virtual time: plan, warm up, play, and keep either every record, as a run writes them, or
//! only a summary.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use inferometer_engine::scheduler::Generation;
use inferometer_load::SystemClock;
use inferometer_model::endpoint::BaseUrlError;
use inferometer_model::journal::{RunStop, log_step, log_step_limits};
use inferometer_model::observations::{
    self, Connections, Endpoint, InputLength, Materials, PinnedOutput, UsageAsk, WarmUpFacts,
};
use inferometer_model::record::{
    Carried, DoneMark, Event as StreamEvent, Finish, FinishReason, Read, ResponseHead, Usage,
};
use inferometer_model::telemetry::{
    self, DevicesAbsence, Dialect, TelemetryEntry, TelemetrySample, Timings,
};
use inferometer_model::{
    Clock, JournalEntry, Manifest, Moment, NotSent, Outcome, Plan, RequestRecord, RunEnding, Spec,
    StartedRequest,
};
use inferometer_store::{StoreError, TelemetryWriter};
use serde::Serialize;

use crate::failure::Failure;
use crate::interruption::Sending;
use crate::measurement::{Planned, Run, RunLocation, WarmUpTally, seal_summary};
use crate::session::{Event, Session};
use crate::simulation::{End, Flight, Observer, Player, Rules, Sample, VirtualEngine};
use crate::{embedded, environment};

/// Plays benchmarks on an engine in virtual time.
#[derive(Debug)]
pub struct Simulator<'session> {
    /// The engine.
    pub engine: VirtualEngine,
    /// Limits, signals and the observer.
    pub session: &'session Session,
}

/// A run that is planned and warmed up.
#[derive(Debug)]
pub struct Ready {
    planned: Planned,
    warmed_up: Option<WarmUpFacts>,
    clock: SystemClock,
}

impl Ready {
    /// How long its warm-up took, in virtual time.
    pub fn warm_up_took(&self) -> Duration {
        self.warmed_up.map_or(Duration::ZERO, |facts| facts.took)
    }
}

/// A run that was simulated and stored.
#[derive(Debug)]
pub struct Simulated {
    /// The stored run.
    pub measured: Run,
    /// How much faster than real time, as a line.
    pub speed: String,
}

impl Simulator<'_> {
    /// Plans and warms up. A signal before the first request is a failure.
    pub fn make_ready(&mut self, spec: &Spec) -> Result<Ready, Failure> {
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
    fn warm_up(&mut self, spec: &Spec, plan: Arc<dyn Plan>) -> Result<WarmUpFacts, Failure> {
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
    pub fn summarize(&mut self, ready: Ready) -> Result<SimulationSummary, Failure> {
        let _sending = self.session.interruption.sending(Sending::Unstored);
        let Planned { spec, plan, .. } = ready.planned;
        let mut tally = Tally { streaming: spec.workload.streaming, ..Tally::default() };
        let ending = self.play(&spec, plan, spec.seed, &mut tally)?;
        Ok(tally.summarize(&ending, &self.engine, spec.seed))
    }

    /// Plays it and keeps every record.
    pub fn record(
        &mut self,
        ready: &Ready,
        location: RunLocation<'_>,
    ) -> Result<Simulated, Failure> {
        let mut writer = location.create(self.new_run(ready)?)?;
        let directory = writer.directory().clone();
        // A set remembers its own command, which finishes this run, too.
        if location.set().is_none() {
            self.session.interruption.remember(directory.remedy());
        }
        let _sending = self.session.interruption.sending(Sending::Stored);
        let Planned { spec, plan, .. } = &ready.planned;
        let telemetry =
            spec.telemetry.as_ref().map(|_| directory.create_telemetry()).transpose()?;
        let mut recorder = TelemetryRecorder { writer: telemetry, failed: None, kv_usage_max: 0.0 };
        recorder.write(&TelemetryEntry::DevicesAbsent(DevicesAbsence::Pretended));
        let generation = self.engine.config().generation;
        let ending = self.play(
            spec,
            Arc::clone(plan),
            spec.seed,
            &mut Journal {
                streaming: spec.workload.streaming,
                write: &mut |entry| Ok(writer.append(&entry)?),
                watch: &mut |sample| recorder.note(sample, generation),
            },
        )?;
        if let Err(error) = recorder.finish() {
            self.session.warn(format!("the engine's metrics are not all stored: {error}"));
        }
        writer.append(&JournalEntry::RunEnded(ending))?;
        writer.flush()?;
        let summary = seal_summary(&directory, &writer.seal()?)?;
        let virtual_s = summary.window.duration_s.unwrap_or_default();
        let real_s = Duration::from_nanos(ready.clock.now().as_nanos()).as_secs_f64();
        let speed = format!(
            "simulated {virtual_s:.1} s in {real_s:.2} s, {:.0} times faster than real time; KV \
             blocks in use: {:.0} % at most",
            virtual_s / real_s.max(1e-9),
            recorder.kv_usage_max * 100.0
        );
        Ok(Simulated { measured: Run { directory, summary, server_failure: None }, speed })
    }

    fn play<O: Observer>(
        &mut self,
        spec: &Spec,
        plan: Arc<dyn Plan>,
        seed: u64,
        observer: &mut O,
    ) -> Result<RunEnding, Failure> {
        let rules = Rules { limits: spec.limits, streaming: spec.workload.streaming, seed };
        let player = Player::new(plan, rules, &mut self.engine, observer);
        player.obeying(self.session.control.clone()).play()
    }

    fn new_run(&self, ready: &Ready) -> Result<Manifest, Failure> {
        let Planned { spec, inputs, plan, fingerprints } = &ready.planned;
        Ok(Manifest {
            format: 0,
            run: String::new(),
            started: String::new(),
            spec: spec.clone(),
            bounds: plan.bounds(),
            fingerprints: fingerprints.clone(),
            // A word is a token of the engine, so nothing is an estimate.
            materials: Materials { input_length: InputLength::Exact, ..inputs.materials().clone() },
            endpoint: Endpoint {
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
            },
            warm_up: ready.warmed_up,
            seen_before: None,
            calibration: None,
            // No request leaves this program, so no proxy could have had a hand in it.
            environment: environment::capture_host(),
            server: Some(environment::from_engine(&spec.engine)?),
            simulated: Some(self.engine.facts.clone()),
            clock: ready.clock.anchor(),
        })
    }
}

/// Of the engine's state, where no telemetry is asked for.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Keeps the answers of a warm-up apart from those of the run.
const WARM_UP: u64 = 0x5761_726d_2d75_7021;
/// Bytes of a word, and of the event around it: about what a server sends.
const TEXT_BYTES: u32 = 5;
const EVENT_BYTES: u32 = 200;

/// Makes entries of what happens, and hands them on; `watch` receives samples of the engine.
struct Journal<'a> {
    streaming: bool,
    write: &'a mut dyn FnMut(JournalEntry) -> Result<(), Failure>,
    watch: &'a mut dyn FnMut(&Sample),
}

impl Observer for Journal<'_> {
    type Notes = Vec<Moment>;

    fn started(&mut self, started: &StartedRequest) -> Result<(), Failure> {
        (self.write)(JournalEntry::Started(*started))
    }

    fn token(&mut self, notes: &mut Vec<Moment>, _before: Option<Moment>, at: Moment) {
        notes.push(at);
    }

    fn ended(&mut self, flight: Flight<Vec<Moment>>, end: End) -> Result<(), Failure> {
        let record = record(&flight, end, self.streaming);
        (self.write)(JournalEntry::Ended(Box::new(record)))
    }

    fn not_sent(&mut self, part: NotSent) -> Result<(), Failure> {
        (self.write)(JournalEntry::NotSent(part))
    }

    fn sampled(&mut self, sample: &Sample) {
        (self.watch)(sample);
    }
}

fn record(flight: &Flight<Vec<Moment>>, end: End, streaming: bool) -> RequestRecord {
    let is_whole = end.ending.outcome == Outcome::Ok;
    // No kernel had a hand in it, and nobody came late to read it.
    let read = |at| Read { kernel: None, user: at, turn: at, bytes: EVENT_BYTES, drained: true };
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
        // A head without an event came in a read of its own.
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

/// Writes samples down as they come. What cannot be written does not stop the simulation.
#[derive(Debug)]
struct TelemetryRecorder {
    /// `None` where nobody asked for it, and from the first failure on.
    writer: Option<TelemetryWriter>,
    failed: Option<StoreError>,
    kv_usage_max: f64,
}

impl TelemetryRecorder {
    fn note(&mut self, sample: &Sample, generation: Generation) {
        self.kv_usage_max = self.kv_usage_max.max(sample.gauges.kv_usage);
        self.write(&telemetry_entry(sample, generation));
    }

    fn write(&mut self, entry: &TelemetryEntry) {
        let written = self.writer.as_mut().map(|writer| writer.append(entry));
        if let Some(Err(error)) = written {
            self.writer = None;
            self.failed = Some(error);
        }
    }

    /// Puts everything on disk.
    fn finish(&mut self) -> Result<(), StoreError> {
        match (self.failed.take(), self.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish(),
            (None, None) => Ok(()),
        }
    }
}

/// A sample that took no time to take. The older generation tells of blocks in host memory, of which
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
        dropped: 0,
    })
}

#[derive(Debug, Default)]
struct Tally {
    /// Of an answer in one piece nobody sees when its tokens were made.
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

    fn started(&mut self, started: &StartedRequest) -> Result<(), Failure> {
        self.first_sent.get_or_insert(started.admitted);
        Ok(())
    }

    fn token(&mut self, (): &mut (), before: Option<Moment>, at: Moment) {
        if let Some(before) = before.filter(|_| self.streaming) {
            self.itl.add(at.as_nanos() - before.as_nanos());
        }
    }

    fn ended(&mut self, flight: Flight<()>, end: End) -> Result<(), Failure> {
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

    fn not_sent(&mut self, part: NotSent) -> Result<(), Failure> {
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
    pub simulated: observations::Simulated,
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
    /// Of the input tokens of ok requests, those that the prefix cache held.
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
    /// Of all requests, however they ended.
    pub fn requests(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Requests that succeeded.
    pub fn ok(&self) -> u64 {
        self.outcomes.get(&Outcome::Ok).copied().unwrap_or_default()
    }

    /// The summary as a JSON document.
    pub fn json(&self) -> Result<String, Failure> {
        serde_json::to_string_pretty(self).map_err(Failure::from_error)
    }
}

/// Sixty-four steps to each doubling.
#[derive(Clone, Debug, Default)]
struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

const STEP_BITS: u32 = 6;

impl Histogram {
    fn add(&mut self, ns: u64) {
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

    /// The middle of the step that holds the share's quantile.
    fn quantile_ns(&self, share: f64) -> Option<u64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let step = self.counts.iter().position(|count| {
            seen += count;
            wanted <= seen
        })?;
        let (first, end) = log_step_limits(step, STEP_BITS);
        Some((first + (end - first) / 2).clamp(self.min_ns, self.max_ns))
    }
}

#[cfg(test)]
mod tests {
    use inferometer_engine::scheduler;

    use super::*;

    fn recorded(generation: Generation) -> TelemetrySample {
        let gauges = scheduler::Gauges { running: 3, waiting: 1, kv_usage: 0.5 };
        let counters = scheduler::Counters { prefix_queries: 32, ..<_>::default() };
        let sample = Sample { at: Moment::from_nanos(7), stands_for: 1, gauges, counters };
        let TelemetryEntry::Sample(sample) = telemetry_entry(&sample, generation) else {
            panic!("no sample")
        };
        sample
    }

    #[test]
    fn each_generation_tells_what_its_servers_do() {
        let newer = recorded(Generation::V1);
        assert_eq!((newer.dialect, newer.gauges.swapped), (Dialect::VllmV1, None));
        assert_eq!(newer.counters.prefix_queries, Some(32.0));
        let older = recorded(Generation::V0 { scheduler_steps: 1 });
        assert_eq!((older.dialect, older.gauges.swapped), (Dialect::VllmV0, Some(0.0)));
        assert_eq!((older.gauges.cpu_kv_usage, older.counters.prefix_queries), (Some(0.0), None));
        assert_eq!(older.gauges.running, Some(3.0));
    }

    #[test]
    fn every_time_is_near_the_middle_of_its_step() {
        let some = (0..5_000).chain((13..63).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 7]));
        let mut last = 0;
        for ns in some {
            let step = log_step(ns, STEP_BITS);
            assert!(last <= step, "{ns}");
            last = step;
            let (first, end) = log_step_limits(step, STEP_BITS);
            let middle = first + (end - first) / 2;
            let off = middle.abs_diff(ns);
            assert!(off * 100 <= ns, "{ns} is taken for {middle}");
        }
    }

    #[test]
    fn quantiles_and_mean_of_a_thousand_times() {
        let mut times = Histogram::default();
        let empty = Times::from_histogram(&times);
        assert_eq!((empty.p50, empty.mean), (None, None));
        for ns in 1..=1_000 {
            times.add(ns * 1_000_000);
        }
        let found = Times::from_histogram(&times);
        assert_eq!((found.n, found.mean, found.max), (1_000, Some(500.5), Some(1_000.0)));
        for (share, ms) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = times.quantile_ns(share).unwrap() as f64 / 1e6;
            assert!((found - ms).abs() <= ms * 0.01, "{share}: {found}");
        }
    }
}
