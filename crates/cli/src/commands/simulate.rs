//! `inferometer simulate`: the experiment of `run` in virtual time, against the embedded engine.
//!
//! Several files are played in their order on one engine, which keeps its prefix cache.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::{Summary, check_slos};
use inferometer_load::{Control, SystemClock};
use inferometer_model::observations::{
    Connections, Endpoint, InputLength, Materials, PinnedOutput, UsageAsk, WarmUpFacts,
};
use inferometer_model::spec::{ClientDraft, EngineSpec};
use inferometer_model::{BaseUrl, Clock, Environment, JournalEntry, Plan, Spec};
use inferometer_store::{NewRun, RunStore, RunWriter};
use inferometer_workload::{Ingredients, make_plan, make_warm_up};

use super::run::{Planned, exit_of};
use super::{page, seal_summary, store};
use crate::arguments::{
    ExperimentArguments, PageFormat, Records, ResultArguments, VirtualArguments,
};
use crate::draft::{Drafted, Repeat, draft};
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::measurement::Measured;
use crate::output;
use crate::requirements::{Judged, Requirements};
use crate::signals::{self, Interruption};
use crate::simulation::{Journal, Player, Rules, Sample, Tally, Told, VirtualEngine, Watching};
use crate::warm_up;

pub(crate) fn run(typed: &VirtualArguments<'_>) -> Result<ExitCode, Failure> {
    let experiments = experiments(typed)?;
    if typed.records == Records::None {
        check_without_records(&experiments, typed.results)?;
    }
    if typed.results.dry_run {
        return show_plans(&experiments, typed.results);
    }
    let store = match typed.records {
        Records::All => Some(store(&typed.results.store)?),
        Records::None => None,
    };
    if let Some(store) = &store {
        store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
    }
    let requirements = &typed.results.require;
    let requirements = Requirements::new(requirements.limits.clone(), &requirements.gate);
    let engine = VirtualEngine::of(&experiments[0].spec.engine)?;
    let control = Control::default();
    let interruption = signals::listen(control.clone(), typed.results.quiet)?;
    let results = typed.results;
    let mut simulations = Simulations {
        engine,
        store,
        results,
        control,
        interruption,
        requirements,
        pages: Vec::new(),
        judged: Vec::new(),
    };
    let simulated = experiments.into_iter().try_fold(None, |worst, experiment| {
        simulations.play(experiment).map(|exit: Option<Exit>| worst.max(exit))
    });
    // A failure in a later run takes nothing from the earlier ones.
    simulations.print_documents()?;
    let told = simulations.requirements.tell(&simulations.judged);
    Ok(simulated?.max(told).map_or(ExitCode::SUCCESS, ExitCode::from))
}

struct Experiment {
    spec: Spec,
    repeat: Repeat,
}

/// All files as specs, checked before the first is played.
fn experiments(typed: &VirtualArguments<'_>) -> Result<Vec<Experiment>, Failure> {
    let results = typed.results;
    let mut experiments = vec![experiment(typed.experiment, results)?];
    for file in typed.more {
        let arguments =
            ExperimentArguments { place: Some(file.clone()), ..typed.experiment.clone() };
        experiments.push(experiment(&arguments, results)?);
    }
    let engine = |experiment: &Experiment| -> EngineSpec { experiment.spec.engine.clone() };
    if experiments.iter().any(|other| engine(other) != engine(&experiments[0])) {
        return Err(Failure::usage(
            "several files are played on one engine, and their [engine] tables differ",
        )
        .hint("say the engine with flags, or simulate the files one by one"));
    }
    Ok(experiments)
}

fn experiment(
    arguments: &ExperimentArguments,
    results: &ResultArguments,
) -> Result<Experiment, Failure> {
    let mut drafted = draft(arguments)?;
    // Whose URL it is, and how it would be reached, does not matter here.
    drafted.spec.url = None;
    drafted.spec.connections = None;
    drafted.spec.client = ClientDraft::default();
    let spec = drafted.resolve()?;
    let Drafted { repeat, .. } = drafted;
    check_slos(&spec.slos, spec.workload.streaming)
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    Requirements::of(&results.require, &spec)?;
    if !spec.api.generates() {
        return Err(Failure::usage(format!("{} generates no tokens to simulate", spec.api))
            .hint("simulate an API that generates text, such as --api chat"));
    }
    Ok(Experiment { spec, repeat })
}

/// Without records there is no verdict, and nothing to find it from later: what asks for one is
/// refused, as it would mislead if it were ignored.
fn check_without_records(
    experiments: &[Experiment],
    results: &ResultArguments,
) -> Result<(), Failure> {
    let asked = [
        ("--slo", experiments.iter().any(|experiment| !experiment.spec.slos.is_empty())),
        ("--require", !results.require.limits.is_empty()),
        ("--junit", results.require.gate.junit.is_some()),
        ("--step-summary", results.require.gate.step_summary.is_some()),
        ("--strict", results.strict),
        ("--format vllm", results.page.format() == PageFormat::Vllm),
        ("--output", results.store.folder.is_some()),
    ];
    match asked.into_iter().find(|(_, is_asked)| *is_asked) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::usage(format!("{flag} needs records, and there are none"))
            .hint("keep them with --records all, or leave it out")),
    }
}

fn show_plans(experiments: &[Experiment], results: &ResultArguments) -> Result<ExitCode, Failure> {
    for Experiment { spec, repeat } in experiments {
        let ingredients = Ingredients::gather_without_words(spec)?;
        let (plan, fingerprints) = make_plan(spec, &ingredients);
        let planned = Planned { plan, fingerprints };
        super::plan::show(spec, *repeat, &planned, &ingredients, results.page.format())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Simulations one after the other, on one engine.
struct Simulations<'a> {
    engine: VirtualEngine,
    /// `None` keeps no records.
    store: Option<RunStore>,
    results: &'a ResultArguments,
    control: Control,
    interruption: Interruption,
    requirements: Requirements,
    /// JSON documents, until all are there.
    pages: Vec<String>,
    /// What was required of each experiment, and what became of it.
    judged: Vec<Judged>,
}

impl Simulations<'_> {
    fn play(&mut self, experiment: Experiment) -> Result<Option<Exit>, Failure> {
        let Experiment { spec, repeat } = experiment;
        let (mut worst, mut runs) = (None, Vec::new());
        for number in 0..repeat.runs {
            if let Some(exit) = self.interruption.exit() {
                return Ok(worst.max(Some(exit)));
            }
            if 0 < number {
                self.engine.rest(repeat.cool_down);
            }
            // Each run has a seed of its own, so that no two ask the same.
            let seed = spec.seed.wrapping_add(number.into());
            worst = worst.max(self.once(&Spec { seed, ..spec.clone() }, repeat, &mut runs)?);
        }
        let judged = self.requirements.settle(runs, repeat, self.results.page.format())?;
        let exit = worst.or(judged.exit);
        self.judged.push(judged);
        Ok(exit)
    }

    fn once(
        &mut self,
        spec: &Spec,
        repeat: Repeat,
        runs: &mut Vec<Summary>,
    ) -> Result<Option<Exit>, Failure> {
        let clock = SystemClock::new();
        let ingredients = Ingredients::gather_without_words(spec)?;
        let (plan, fingerprints) = make_plan(spec, &ingredients);
        if plan.bounds().requests == Some(0) {
            return Err(Failure::usage("no request falls into --duration at this rate")
                .hint("run longer, raise the rate, or give a number with --requests"));
        }
        let warm_up = make_warm_up(spec, &ingredients);
        self.engine.sample_every = spec.telemetry.as_ref().map_or(SAMPLE_EVERY, |it| it.every);
        let warmed_up = warm_up.map(|plan| self.warm_up(spec, plan));
        // Goes first: a warm-up that was cut has no request that ended well, and that is no fault.
        if let Some(exit) = self.interruption.exit() {
            output::talk("stopped before the run began: nothing was simulated or stored");
            return Ok(Some(exit));
        }
        let warmed_up = warmed_up.transpose()?;
        let Some(store) = self.store.clone() else {
            let told = self.tell(spec, plan)?;
            self.show(&told.page(), || told.json())?;
            return Ok(self.exit_without_records(&told));
        };
        let planned = Planned { plan: Arc::clone(&plan), fingerprints };
        let new = self.new_run(spec, planned, ingredients.materials().clone(), clock)?;
        let writer = store.create(NewRun { warm_up: warmed_up, ..new })?;
        let directory = writer.directory().clone();
        let (writer, kv_usage_max) = self.record(spec, plan, writer)?;
        let summary = seal_summary(&directory, &writer.seal()?)?;
        let measured = Measured { directory, summary };
        let format = self.results.page.format();
        let required = self.requirements.of_page(&measured.summary, repeat)?;
        let text = page(&measured.summary, &measured.directory, &required, format);
        self.show(&text, || Ok(text.trim_end().to_owned()))?;
        if !self.results.quiet {
            say_speed(&measured, kv_usage_max, clock);
        }
        let summary = measured.summary;
        let interrupted = self.interruption.exit().filter(|_| summary.run.partial);
        let exit = interrupted.or_else(|| exit_of(&summary, self.results.strict));
        runs.push(summary);
        Ok(exit)
    }

    fn exit_without_records(&self, told: &Told) -> Option<Exit> {
        let interrupted = self.interruption.exit().filter(|_| told.is_partial());
        interrupted.or_else(|| {
            let failed = told.ok() == 0;
            if failed {
                output::talk("no request ended well; --records all keeps what each was told");
            }
            failed.then_some(Exit::RunInvalid)
        })
    }

    /// Plays what is not counted; the engine's cache keeps it.
    fn warm_up(&mut self, spec: &Spec, plan: Arc<dyn Plan>) -> Result<WarmUpFacts, Failure> {
        let mut tally = warm_up::Tally::default();
        let write = |entry| {
            tally.add(entry);
            Ok(())
        };
        let mut journal = Journal::new(spec.workload.streaming, write, |_: &Sample| {});
        let rules = Rules { seed: spec.seed ^ WARM_UP, ..rules(spec) };
        let player = Player::new(plan, rules, &mut self.engine, &mut journal);
        let ending = player.heeding(self.control.clone()).play()?;
        tally.facts(&ending)
    }

    fn tell(&mut self, spec: &Spec, plan: Arc<dyn Plan>) -> Result<Told, Failure> {
        let mut tally = Tally::new(spec.workload.streaming);
        let player = Player::new(plan, rules(spec), &mut self.engine, &mut tally);
        let ending = player.heeding(self.control.clone()).play()?;
        let facts = self.engine.facts.clone();
        Ok(tally.tell(&ending, facts, spec.seed, &self.engine.counters()))
    }

    fn new_run(
        &self,
        spec: &Spec,
        planned: Planned,
        materials: Materials,
        clock: SystemClock,
    ) -> Result<NewRun, Failure> {
        Ok(NewRun {
            spec: spec.clone(),
            bounds: planned.plan.bounds(),
            fingerprints: planned.fingerprints,
            // A word is a token of the engine, so nothing is an estimate.
            materials: Materials { input_length: InputLength::Exact, ..materials },
            endpoint: self.endpoint()?,
            warm_up: None,
            seen_before: None,
            calibration: None,
            // No request leaves this program, so no proxy could have had a hand in it.
            environment: Environment { proxy_variables: Vec::new(), ..environment::capture() },
            simulated: Some(self.engine.facts.clone()),
            clock: clock.anchor(),
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

    fn record(
        &mut self,
        spec: &Spec,
        plan: Arc<dyn Plan>,
        mut writer: RunWriter,
    ) -> Result<(RunWriter, f64), Failure> {
        let directory = writer.directory();
        let telemetry =
            spec.telemetry.as_ref().map(|_| directory.create_telemetry()).transpose()?;
        let mut watching = Watching::new(telemetry);
        let write = |entry| Ok(writer.append(&entry)?);
        let watch = |sample: &Sample| watching.note(sample);
        let mut journal = Journal::new(spec.workload.streaming, write, watch);
        let player = Player::new(plan, rules(spec), &mut self.engine, &mut journal);
        let ending = player.heeding(self.control.clone()).play()?;
        if let Err(error) = watching.finish() {
            output::talk(&format!("the engine's metrics are not all stored: {error}"));
        }
        writer.append(&JournalEntry::RunEnded(ending))?;
        writer.flush()?;
        Ok((writer, watching.kv_usage_max))
    }

    /// Prints a page, or keeps a document until all are there.
    fn show(
        &mut self,
        page: &str,
        document: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        if self.results.page.format() == PageFormat::Json {
            self.pages.push(document()?);
            return Ok(());
        }
        output::result(page)
    }

    fn print_documents(&self) -> Result<(), Failure> {
        match &self.pages[..] {
            [] => Ok(()),
            [only] => output::result(&format!("{only}\n")),
            several => output::result(&format!("[{}]\n", several.join(",\n"))),
        }
    }
}

fn say_speed(measured: &Measured, kv_usage_max: f64, clock: SystemClock) {
    let virtual_s = measured.summary.window.duration_s.unwrap_or_default();
    let real_s = Duration::from_nanos(clock.now().as_nanos()).as_secs_f64();
    output::talk(&format!(
        "simulated {virtual_s:.1} s in {real_s:.2} s, {:.0} times faster than real time; KV blocks \
         in use: {:.0} % at most",
        virtual_s / real_s.max(1e-9),
        kv_usage_max * 100.0
    ));
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
