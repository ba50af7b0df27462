//! One run in virtual time: plan, warm up, play, and either keep every record or only tell.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::observations::{
    Connections, Endpoint, InputLength, Materials, PinnedOutput, UsageAsk, WarmUpFacts,
};
use inferometer_model::{BaseUrl, Clock, JournalEntry, Plan, Spec};
use inferometer_store::{NewRun, RunWriter};

use crate::embedded;
use crate::environment;
use crate::event::Event;
use crate::failure::Failure;
use crate::interruption::Sending;
use crate::location::RunLocation;
use crate::measurement::{Planned, Run, WarmUpTally, seal_summary};
use crate::server_facts;
use crate::session::Session;
use crate::simulation::{
    Journal, Player, Rules, Sample, SimulationSummary, Tally, TelemetryRecorder, VirtualEngine,
};

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

    /// Plays it and keeps every record.
    pub fn record(
        &mut self,
        ready: &Ready,
        location: RunLocation<'_>,
    ) -> Result<Simulated, Failure> {
        let writer = location.create(self.new_run(ready)?)?;
        let directory = writer.directory().clone();
        // A set remembers its own command, which finishes this run, too.
        if location.set().is_none() {
            self.session.interruption.remember(directory.remedy());
        }
        let _sending = self.session.interruption.sending(Sending::Stored);
        let (writer, kv_usage_max) = self.play(&ready.planned, writer)?;
        let summary = seal_summary(&directory, &writer.seal()?)?;
        let measured = Run { directory, summary, server_failure: None };
        let speed = speed(&measured, kv_usage_max, ready.clock);
        Ok(Simulated { measured, speed })
    }

    /// Plays it and keeps only a summary.
    pub fn summarize(&mut self, ready: Ready) -> Result<SimulationSummary, Failure> {
        let _sending = self.session.interruption.sending(Sending::Unstored);
        let Planned { spec, plan, .. } = ready.planned;
        let mut tally = Tally::new(spec.workload.streaming);
        let player = Player::new(plan, rules(&spec), &mut self.engine, &mut tally);
        let ending = player.obeying(self.session.control.clone()).play()?;
        let facts = self.engine.facts.clone();
        Ok(tally.summarize(&ending, facts, spec.seed, &self.engine.counters()))
    }

    /// Plays what is not counted; the engine's cache keeps it.
    fn warm_up(&mut self, spec: &Spec, plan: Arc<dyn Plan>) -> Result<WarmUpFacts, Failure> {
        let _sending = self.session.interruption.sending(Sending::Unstored);
        let mut tally = WarmUpTally::default();
        let write = |entry| {
            tally.add(entry);
            Ok(())
        };
        let mut journal = Journal::new(spec.workload.streaming, write, |_: &Sample| {});
        let rules = Rules { seed: spec.seed ^ WARM_UP, ..rules(spec) };
        let player = Player::new(plan, rules, &mut self.engine, &mut journal);
        let ending = player.obeying(self.session.control.clone()).play()?;
        tally.facts(&ending)
    }

    fn new_run(&self, ready: &Ready) -> Result<NewRun, Failure> {
        let Planned { spec, inputs, plan, fingerprints } = &ready.planned;
        let materials = inputs.materials().clone();
        Ok(NewRun {
            spec: spec.clone(),
            bounds: plan.bounds(),
            fingerprints: fingerprints.clone(),
            // A word is a token of the engine, so nothing is an estimate.
            materials: Materials { input_length: InputLength::Exact, ..materials },
            endpoint: self.endpoint()?,
            warm_up: ready.warmed_up,
            seen_before: None,
            calibration: None,
            // No request leaves this program, so no proxy could have had a hand in it.
            environment: environment::capture_host(),
            server: Some(server_facts::from_engine(&spec.engine)?),
            simulated: Some(self.engine.facts.clone()),
            clock: ready.clock.anchor(),
        })
    }

    fn endpoint(&self) -> Result<Endpoint, Failure> {
        let nowhere: BaseUrl =
            NOWHERE.parse().map_err(|error| Failure::internal(format!("{NOWHERE}: {error}")))?;
        Ok(Endpoint {
            base: nowhere,
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            model: self.engine.model.clone(),
            usage: UsageAsk::Continuous,
            connections: Connections::Reuse,
            pinned: PinnedOutput { ignore_eos: true, min_tokens: false },
            embedded: true,
        })
    }

    fn play(
        &mut self,
        planned: &Planned,
        mut writer: RunWriter,
    ) -> Result<(RunWriter, f64), Failure> {
        let (spec, plan) = (&planned.spec, Arc::clone(&planned.plan));
        let directory = writer.directory();
        let telemetry =
            spec.telemetry.as_ref().map(|_| directory.create_telemetry()).transpose()?;
        let mut recorder = TelemetryRecorder::new(telemetry, self.engine.config().generation);
        let write = |entry| Ok(writer.append(&entry)?);
        let watch = |sample: &Sample| recorder.note(sample);
        let mut journal = Journal::new(spec.workload.streaming, write, watch);
        let player = Player::new(plan, rules(spec), &mut self.engine, &mut journal);
        let ending = player.obeying(self.session.control.clone()).play()?;
        if let Err(error) = recorder.finish() {
            self.session.warn(format!("the engine's metrics are not all stored: {error}"));
        }
        writer.append(&JournalEntry::RunEnded(ending))?;
        writer.flush()?;
        Ok((writer, recorder.kv_usage_max))
    }
}

fn speed(measured: &Run, kv_usage_max: f64, clock: SystemClock) -> String {
    let virtual_s = measured.summary.window.duration_s.unwrap_or_default();
    let real_s = Duration::from_nanos(clock.now().as_nanos()).as_secs_f64();
    format!(
        "simulated {virtual_s:.1} s in {real_s:.2} s, {:.0} times faster than real time; KV blocks \
         in use: {:.0} % at most",
        virtual_s / real_s.max(1e-9),
        kv_usage_max * 100.0
    )
}

/// Of the engine's state, where no telemetry is asked for.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Keeps the answers of a warm-up apart from those of the run.
const WARM_UP: u64 = 0x5761_726d_2d75_7021;
/// An address that cannot be reached, by its very name.
const NOWHERE: &str = "http://simulated.invalid";

fn rules(spec: &Spec) -> Rules {
    Rules { limits: spec.limits, streaming: spec.workload.streaming, seed: spec.seed }
}
