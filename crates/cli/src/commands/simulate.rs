//! `inferometer simulate`: the experiment of `run` in virtual time, against the embedded engine.
//!
//! Several files are played in their order on one engine, which keeps its prefix cache. Repeated
//! runs of one file are a set, and each has its own engine.

use std::process::ExitCode;

use inferometer_analysis::check_slos;
use inferometer_model::spec::{ClientTable, TargetTable};
use inferometer_model::study::Repetition;
use inferometer_model::{Spec, SpecDraft};
use inferometer_report::document::{
    Block, Cell, Columns, Document, Lead, Section, facts, plain, terminal,
};
use inferometer_report::fmt::{count, number, percent};
use inferometer_report::terminal::simulated;
use inferometer_store::RunStore;

use super::run::exit_of_run;
use super::{page, store, style};
use crate::arguments::{
    ExperimentArguments, PageFormat, Records, ResultArguments, SimulateArguments,
};
use crate::draft::{Drafted, draft};
use crate::experiment::{self, config};
use crate::failure::{Exit, Failure, Result};
use crate::measurement::{Planned, Run, RunLocation};
use crate::output;
use crate::requirements::{Judged, Requirements, with_enough_requests};
use crate::secrets::Secrets;
use crate::signals::begin_session;
use crate::simulation::{SimulationSummary, Simulator, Times, VirtualEngine};
use crate::study::{Begin, StudyPlan};

pub(crate) fn run(arguments: &SimulateArguments) -> Result<ExitCode> {
    let SimulateArguments { experiment, results, records } = arguments;
    play(experiment, results, records.unwrap_or(Records::All))
}

/// Plays an experiment, or several files one after the other on the same engine.
pub(super) fn play(
    experiment: &ExperimentArguments,
    results: &ResultArguments,
    records: Records,
) -> Result<ExitCode> {
    let mut experiments = experiments(experiment, results)?;
    config::announce(results.quiet);
    check_flags(&experiments, results, records)?;
    if results.dry_run {
        for Experiment { spec, repeat } in &experiments {
            let planned = Planned::without_words(spec.clone())?;
            super::plan::show(&planned, repeat, results.page.format())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if records == Records::All
        && let [Experiment { repeat, .. }] = &experiments[..]
        && 1 < repeat.runs.get()
        && let Some(Experiment { spec, repeat }) = experiments.pop()
    {
        let plan = StudyPlan::repeated(spec, repeat, Secrets::default());
        return Begin::new(true, results).run(plan);
    }
    let store = (records == Records::All).then(|| store(&results.store)).transpose()?;
    if let Some(store) = &store {
        store.check_writable().map_err(Failure::from_usage)?;
    }
    let engine = VirtualEngine::new(&experiments[0].spec.engine)?;
    let session = begin_session(usize::MAX, results.quiet)?;
    let simulator = Simulator { engine, session: &session };
    let requirements = Requirements::new(results.require.limits.clone(), &results.require.gate);
    let (pages, judged, exits) = (Vec::new(), Vec::new(), Vec::new());
    let mut simulations =
        Simulations { simulator, store, results, requirements, pages, judged, exits };
    let simulated = experiments.into_iter().try_for_each(|it| simulations.play(&it));
    // A failure in a later run takes nothing from the earlier ones.
    match &simulations.pages[..] {
        [] => {}
        [only] => drop(output::result(&format!("{only}\n"))?),
        several => drop(output::result(&format!("[{}]\n", several.join(",\n")))?),
    }
    let written = simulations.requirements.write_files(&simulations.judged);
    simulated?;
    Ok(Exit::gravest(simulations.exits).max(written).map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The experiment as it is simulated: its URL, and how the server would be reached, do not matter. The
/// engine of a simulation knows no earlier prompts, so the default seed is always the same.
pub(crate) fn virtual_spec(drafted: &Drafted, draft: SpecDraft) -> Result<Spec> {
    let draft = SpecDraft {
        url: None,
        deployment: None,
        target: TargetTable { connections: None, http2: None, insecure: None, ..draft.target },
        client: ClientTable::default(),
        cores_allowed: Vec::new(),
        ..draft
    };
    let spec = drafted.resolve_seeded(draft, || 1)?;
    check_slos(&spec.slos, spec.workload.streaming).map_err(Failure::from_usage)?;
    if !spec.api.generates() {
        return Err(Failure::usage(format!("{} generates no tokens to simulate", spec.api))
            .hint("simulate an API that generates text, such as --api chat"));
    }
    Ok(spec)
}

struct Experiment {
    spec: Spec,
    repeat: Repetition,
}

/// All files as specs, checked before the first is played.
fn experiments(typed: &ExperimentArguments, results: &ResultArguments) -> Result<Vec<Experiment>> {
    let (files, urls): (Vec<String>, Vec<String>) =
        typed.places.iter().cloned().partition(|place| experiment::is_file(place));
    let places = |file: Option<&String>| file.into_iter().chain(&urls).cloned().collect();
    let mut each: Vec<Vec<String>> = files.iter().map(|file| places(Some(file))).collect();
    if each.is_empty() {
        each.push(places(None));
    }
    let mut experiments: Vec<Experiment> = Vec::new();
    for places in each {
        let arguments = ExperimentArguments { places, ..typed.clone() };
        let drafted = draft(&arguments)?;
        let spec = virtual_spec(&drafted, drafted.spec.clone())?;
        let spec = with_enough_requests(spec, &drafted.spec, results)?;
        Requirements::for_run(&results.require, &spec)?;
        experiments.push(Experiment { spec, repeat: drafted.repetition });
    }
    if experiments.iter().any(|other| other.spec.engine != experiments[0].spec.engine) {
        return Err(Failure::usage(
            "several files are simulated on one engine, but their [engine] tables differ",
        )
        .hint("set the engine with flags, or simulate the files one by one"));
    }
    Ok(experiments)
}

/// Refuses flags that would mislead if they were ignored: several files on one engine are no set, and
/// without records there is no verdict, and nothing to find it from later.
fn check_flags(
    experiments: &[Experiment],
    results: &ResultArguments,
    records: Records,
) -> Result<()> {
    let any = |is_so: fn(&Experiment) -> bool| experiments.iter().any(is_so);
    let stops = any(|experiment| experiment.repeat.stop_at.is_some());
    let restarts = any(|experiment| experiment.repeat.restart.is_some());
    let of_a_set = [("--stop-at", stops), ("--restart", restarts)];
    if let Some((flag, _)) = of_a_set.into_iter().find(|(_, is_set)| *is_set)
        && 1 < experiments.len()
    {
        let why = format!("{flag} is for repeated runs of one file, and there are several files");
        return Err(Failure::usage(why).hint("leave it out, or simulate the files one by one"));
    }
    let of_records = [
        ("--slo", any(|experiment| !experiment.spec.slos.is_empty())),
        ("--stop-at", stops),
        ("--strict", results.strict),
        ("--require", !results.require.limits.is_empty()),
        ("--junit", results.require.gate.junit.is_some()),
        ("--step-summary", results.require.gate.step_summary.is_some()),
        ("--format vllm", results.page.format() == PageFormat::Vllm),
        ("--output", results.store.folder.is_some()),
    ];
    match of_records.into_iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) if records == Records::None => {
            Err(Failure::usage(format!("{flag} needs records, and there are none"))
                .hint("keep them with --records all, or leave it out"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Simulations one after the other, on one engine.
struct Simulations<'a> {
    simulator: Simulator<'a>,
    /// `None` keeps no records.
    store: Option<RunStore>,
    results: &'a ResultArguments,
    requirements: Requirements,
    /// JSON documents, until all are there.
    pages: Vec<String>,
    /// The requirements of each run, and their outcomes.
    judged: Vec<Judged>,
    /// The exit codes of the runs that have one.
    exits: Vec<Exit>,
}

impl Simulations<'_> {
    fn play(&mut self, Experiment { spec, repeat }: &Experiment) -> Result<()> {
        for number in 0..repeat.runs.get() {
            self.simulator.session.interruption.check()?;
            if 0 < number {
                self.simulator.engine.rest(repeat.cool_down);
            }
            // Each run has its own seed, so that no two send the same prompts.
            let seed = spec.seed.wrapping_add(number.into());
            let exit = self.once(&Spec { seed, ..spec.clone() })?;
            self.exits.extend(exit);
        }
        Ok(())
    }

    fn once(&mut self, spec: &Spec) -> Result<Option<Exit>> {
        let ready = self.simulator.make_ready(spec)?;
        let Some(store) = self.store.clone() else {
            let summary = self.simulator.summarize(ready)?;
            self.show(&summary_page(&summary), || summary.json())?;
            let interrupted = self.simulator.session.interruption.exit();
            if let Some(exit) = interrupted.filter(|_| summary.stopped.is_some()) {
                return Ok(Some(exit));
            }
            if 0 < summary.ok() {
                return Ok(None);
            }
            output::talk("no request succeeded; --records all keeps the reason of each");
            return Ok(Some(Exit::RunInvalid));
        };
        let simulated = self.simulator.record(&ready, RunLocation::in_store(&store))?;
        let Run { summary, directory, .. } = simulated.measured;
        let outcomes = self.requirements.judge(std::slice::from_ref(&summary))?;
        let text = page(&summary, &directory, &outcomes, self.results.page.format());
        self.show(&text, || Ok(text.trim_end().to_owned()))?;
        let session = self.simulator.session;
        session.talk(&simulated.speed);
        let exit = exit_of_run(&summary, self.results.strict, session)
            .or_else(|| self.requirements.exit(&outcomes));
        self.judged.push(Judged { runs: vec![summary], results: Vec::new(), outcomes });
        Ok(exit)
    }

    /// Prints a page, or keeps a document until all are there.
    fn show(&mut self, page: &str, document: impl FnOnce() -> Result<String>) -> Result<()> {
        if self.results.page.format() == PageFormat::Json {
            self.pages.push(document()?);
            return Ok(());
        }
        output::result(page).map(drop)
    }
}

/// The page of a simulation without records.
fn summary_page(summary: &SimulationSummary) -> String {
    let alert = simulated(&summary.simulated);
    let outcomes = summary.outcomes.iter();
    let outcomes: Vec<String> =
        outcomes.map(|(outcome, number)| format!("{} {outcome}", count(*number))).collect();
    let duration = number(summary.duration_s);
    let subject = facts([
        ("partial", summary.stopped.map(|stop| stop.text().to_owned())),
        ("requests", Some(format!("{} in {duration} s", outcomes.join(", ")))),
    ]);
    let mut columns =
        Columns::new("latency (ms)", |(title, _): &(&str, &Times)| Cell::text(*title));
    let titles = ["mean", "p50", "p90", "p95", "p99", "max"];
    for (index, title) in titles.into_iter().enumerate() {
        columns = columns.right(title, move |(_, times)| {
            let Times { mean, p50, p90, p95, p99, max, .. } = **times;
            Cell::text(number([mean, p50, p90, p95, p99, max][index]))
        });
    }
    let SimulationSummary { ttft_ms, tpot_ms, itl_ms, e2e_ms, .. } = summary;
    let latencies = columns.right("n", |(_, times)| Cell::text(count(times.n))).table(
        "",
        "",
        [("TTFT", ttft_ms), ("TPOT", tpot_ms), ("ITL", itl_ms), ("E2E", e2e_ms)],
    );
    let throughput = format!(
        "{} requests/s, {} output tokens/s, {} tokens/s in all",
        number(summary.request_throughput),
        number(summary.output_throughput),
        number(summary.total_throughput),
    );
    let cache = format!(
        "{} of the tokens looked up, {} preemptions, {} steps",
        percent(summary.prefix_hit_rate),
        count(summary.preemptions),
        count(summary.steps),
    );
    let blocks = format!(
        "{} on average, {} at most; {} running and {} waiting at most",
        percent(summary.kv_usage_mean),
        percent(summary.kv_usage_max),
        count(summary.running_max.into()),
        count(summary.waiting_max.into()),
    );
    let rates = [("throughput", throughput), ("prefix cache", cache), ("KV blocks in use", blocks)];
    let title = format!("Inferometer simulation without records, seed {}", summary.seed);
    let sections = vec![
        Section::new("", vec![Block::Table(latencies)]),
        Section::new("", vec![Block::facts(rates)]),
    ];
    let lead = Lead { alert: Some(plain(alert)), subject, ..Lead::default() };
    terminal::render(&Document { lead, ..Document::new(title, sections) }, style())
}
