//! Plays a study over the folder of a set: runs that are stored and complete count, the others are
//! measured. Resuming is therefore the same as playing for the first time.
//!
//! A repeat, sweep or suite asks the [`Study`] for one point after the other. The points of a matrix
//! are known in advance, so several lanes take one deployment at a time (`lanes`).

mod lanes;
mod live;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Summary, metric, summarize};
use inferometer_load::SystemClock;
use inferometer_model::deployment::DeploymentFailure;
use inferometer_model::journal::RunStop;
use inferometer_model::observations::InputLength;
use inferometer_model::spec::TargetSpec;
use inferometer_model::study::{
    Condition, Level, Point, PointFailure, Question, SetManifest, Stage, StudySpec,
};
use inferometer_model::{Outcome, Spec};
use inferometer_report::fmt;
use inferometer_runner::live::{ceiling, check_ceiling};
use inferometer_runner::measurement::{RunLocation, seal_summary};
use inferometer_runner::secrets::Secrets;
use inferometer_runner::simulation::VirtualEngine;
use inferometer_runner::simulator::Simulator;
use inferometer_runner::{Event, Exit, Failure, Session, embedded};
use inferometer_store::{NewSet, RunDirectory, RunState, RunStore, SetDirectory, StoreError};
use inferometer_workload::{Inputs, make_plan};

pub use self::lanes::unfit;
pub use self::live::ConditionServer;
use self::live::{CurrentDeployment, LiveRunner, Restart};
use crate::grid::planned_places;
use crate::matrix::deployments;
use crate::{Progress, Reading, Study};

/// How the points of a study are measured.
#[derive(Debug)]
pub enum Backend {
    /// Over the wire.
    Live {
        /// One for each condition.
        sides: Vec<ConditionServer>,
        restart_timeout: Duration,
    },
    /// In virtual time.
    Virtual,
}

impl Backend {
    /// Over the wire, with the secrets of each condition.
    pub fn live(secrets: Vec<Secrets>, restart_timeout: Duration) -> Self {
        Self::Live {
            sides: secrets.into_iter().map(ConditionServer::new).collect(),
            restart_timeout,
        }
    }

    /// The secrets of each condition; `None` in virtual time.
    pub fn secrets(&self) -> Option<Vec<Secrets>> {
        match self {
            Self::Live { sides, .. } => {
                Some(sides.iter().map(|side| side.secrets.clone()).collect())
            }
            Self::Virtual => None,
        }
    }

    /// Asks every server that is already running what it serves. A server that cannot be used is
    /// then found before a set is created.
    pub fn probe(&mut self, study: &StudySpec, talk: &dyn Fn(String)) -> Result<(), Failure> {
        match (self, &study.question) {
            (Self::Virtual, _) | (_, Question::Matrix(_)) => Ok(()),
            (Self::Live { sides, .. }, _) => live::probe(sides, study, talk),
        }
    }

    /// The files that the keys are read from again when the set is resumed.
    fn key_files(&self) -> Vec<Option<PathBuf>> {
        let secrets = self.secrets().unwrap_or_default();
        let files: Vec<Option<PathBuf>> =
            secrets.iter().map(|secrets| secrets.key_file.clone()).collect();
        if files.iter().all(Option::is_none) { Vec::new() } else { files }
    }
}

/// What to measure when a set is resumed.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// Measures failed cells, and runs with failed requests, again.
    pub retry_failed: bool,
    /// Measures only these cells, by their indexes, and these loads; `None` measures all.
    pub only: Option<(BTreeSet<u32>, Vec<Level>)>,
    /// How many presets are measured at the same time; `None` as the set says.
    pub lanes: Option<NonZeroU32>,
}

impl ResumeOptions {
    fn wants(&self, point: &Point) -> bool {
        self.only.as_ref().is_none_or(|(cells, levels)| {
            cells.contains(&point.condition) && levels.contains(&point.level)
        })
    }

    /// Whether a stored run is to be measured again.
    fn rejects(&self, point: &Point, summary: &Summary) -> bool {
        let has_failures = summary.count(Outcome::Ok) < summary.attempted;
        self.retry_failed && has_failures && self.wants(point)
    }
}

/// Everything that can be wrong with a study before anything is sent or deployed.
pub fn check(study: &StudySpec, backend: &Backend) -> Result<(), Failure> {
    Study::new(study.clone()).map_err(Failure::from_usage)?;
    check_restart(study, backend)?;
    let is_matrix = study.matrix().is_some();
    for Condition { name, spec } in &study.conditions {
        match (&spec.target, backend) {
            (TargetSpec::Embedded, _) if is_matrix => {
                unfit(&spec.engine).map_err(|failure| failure.about(name))?;
            }
            (_, Backend::Virtual) if is_matrix => {
                let message =
                    format!("{name} is not the embedded engine, so it has no virtual time");
                return Err(Failure::usage(message).hint("leave --virtual out"));
            }
            (_, Backend::Virtual) => drop(VirtualEngine::new(&spec.engine)?),
            (TargetSpec::Embedded, Backend::Live { .. }) => {
                drop(embedded::profile(&spec.engine)?);
            }
            (TargetSpec::Url(_) | TargetSpec::Deployed(_), Backend::Live { .. }) => {}
        }
    }
    Ok(())
}

fn check_restart(study: &StudySpec, backend: &Backend) -> Result<(), Failure> {
    if study.repetition.restart.is_none() {
        return Ok(());
    }
    let any = |is: fn(&TargetSpec) -> bool| study.conditions.iter().any(|it| is(&it.spec.target));
    if any(|target| matches!(target, TargetSpec::Deployed(_))) {
        return Err(Failure::usage("--restart does not apply to a server that is deployed here")
            .hint("leave it out, and use --renew to choose when the server is deployed anew"));
    }
    if matches!(backend, Backend::Live { .. }) && !any(|target| *target == TargetSpec::Embedded) {
        return Ok(());
    }
    let when = match study.question {
        Question::Suite(_) => "every round of a suite",
        Question::Repeat | Question::Sweep(_) | Question::Matrix(_) => "every run",
    };
    Err(Failure::usage(format!(
        "--restart does not apply to the embedded engine: {when} starts a new one"
    ))
    .hint("leave it out"))
}

/// Raises the limit on file descriptors and checks that every planned level fits below it. Returns
/// how many requests may be in flight.
pub fn checked_ceiling(study: &StudySpec, backend: &Backend) -> Result<usize, Failure> {
    let ceiling = match (backend, study.conditions.first()) {
        (Backend::Live { .. }, Some(condition)) => ceiling(&condition.spec),
        (Backend::Virtual, _) | (_, None) => usize::MAX,
    };
    known_specs(study).iter().try_for_each(|spec| check_ceiling(spec, ceiling))?;
    Ok(ceiling)
}

/// The specs of all levels that are known in advance, one for each condition of each level.
pub fn known_specs(study: &StudySpec) -> Vec<Spec> {
    let places = planned_places(study).into_iter();
    let points = places.flat_map(|place| {
        let (seed, stage, level) = (study.seed, Stage::Planned, place.level);
        let point =
            move |condition| Point { number: 0, condition, level, repetition: 0, seed, stage };
        place.conditions.into_iter().map(point)
    });
    points.filter_map(|point| study.spec_of(&point)).collect()
}

/// Creates the set of a study.
pub fn create(
    store: &RunStore,
    study: StudySpec,
    backend: &Backend,
) -> Result<SetDirectory, Failure> {
    Ok(store.create_set(NewSet {
        study,
        simulated: matches!(backend, Backend::Virtual),
        key_files: backend.key_files(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        realtime_ns: SystemClock::new().anchor().realtime_ns,
    })?)
}

/// The command that resumes a set.
pub fn resume_command(set: &SetDirectory) -> String {
    let command = match set.manifest().map(|manifest| manifest.study.question) {
        Ok(Question::Suite(_)) => "suite",
        Ok(Question::Matrix(_)) => "matrix",
        Ok(Question::Repeat | Question::Sweep(_)) | Err(_) => "sweep",
    };
    format!("inferometer {command} --resume {}", set.path().display())
}

/// `1 run is stored`.
pub fn stored_runs(runs: usize) -> String {
    if runs == 1 { "1 run is stored".to_owned() } else { format!("{runs} runs are stored") }
}

/// The name of a server that has none: its URL, how it is deployed, or its profile.
pub fn server_name(spec: &Spec) -> String {
    match &spec.target {
        TargetSpec::Url(base) => base.to_string(),
        TargetSpec::Deployed(deployment) => deployment.how.kind().to_owned(),
        TargetSpec::Embedded => {
            spec.engine.profile.clone().unwrap_or_else(|| "embedded".to_owned())
        }
    }
}

/// A set that is played from its first missing run to its last.
#[derive(Debug)]
pub struct Player<'a> {
    pub store: &'a RunStore,
    pub set: &'a SetDirectory,
    pub session: &'a Session,
    pub options: ResumeOptions,
    /// Whether the set was begun by an earlier process.
    pub is_resumed: bool,
}

/// A set after it was played.
#[derive(Debug)]
pub struct Played {
    pub manifest: SetManifest,
    pub summary: SetSummary,
    pub points: Vec<PointResult>,
    /// Whether no point is left; only a matrix that was narrowed is not complete.
    pub is_complete: bool,
}

impl Player<'_> {
    /// Measures what is missing, and writes the summary of a set that is complete.
    pub fn play(&self, backend: Backend) -> Result<Played, Failure> {
        let _lock = self.set.lock().map_err(Failure::from_usage)?;
        let manifest = self.set.manifest()?;
        let mut sequence = Study::new(manifest.study.clone()).map_err(Failure::from_usage)?;
        self.session.interruption.remember(resume_command(self.set));
        let failures = self.failures()?;
        let ledger = Mutex::new(Ledger { failures, ..Ledger::default() });
        let work = Work { player: self, manifest: &manifest, ledger: &ledger };
        let planned = deployments(&manifest.study);
        let points: usize = planned.iter().map(|deployment| deployment.points.len()).sum();
        let is_matrix = manifest.study.matrix().is_some();
        let result = if is_matrix {
            work.measure_deployments(planned, &backend)
        } else {
            work.measure_with(&mut sequence, backend)
        };
        let ledger = ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Ledger { results, failures, played } = ledger;
        let known = results.len() + failures.len();
        let is_complete = !is_matrix || known == points;
        // A user who has just typed the command to resume knows it.
        let is_news =
            |failure: &Failure| !self.is_resumed || 0 < played || failure.is_interruption();
        if result.as_ref().map_or_else(is_news, |()| !is_complete) {
            let stored = if is_matrix {
                format!(
                    "{} of {points} runs are measured, {} failed and {} are left,",
                    results.len(),
                    failures.len(),
                    points.saturating_sub(known)
                )
            } else {
                stored_runs(results.len())
            };
            let what = format!("{stored} in {}", self.set.path().display());
            self.session.emit(Event::Unfinished { what, command: resume_command(self.set) });
        }
        result?;
        if is_complete && played == 0 {
            self.session.talk(&format!("the set is already complete ({known} runs)"));
        }
        let points: Vec<PointResult> = results.into_values().collect();
        let summary = summarize_stored(self.set, &manifest, &points)?;
        let summary = summary.with_limits(sequence.limits());
        for line in precision(&summary) {
            self.session.talk(&line);
        }
        if is_complete {
            self.set.write_summary(&summary.to_json_bytes())?;
        }
        Ok(Played { manifest, summary, points, is_complete })
    }

    /// The points whose failures are stored. Those that are to be retried are moved aside, and with
    /// them the summary of the set.
    fn failures(&self) -> Result<BTreeSet<u32>, Failure> {
        let mut kept = BTreeSet::new();
        for PointFailure { point, .. } in self.set.failures().map_err(Failure::from_usage)? {
            if self.options.retry_failed && self.options.wants(&point) {
                self.set.unseal()?;
                self.set.abandon_failure(point.number)?;
            } else {
                kept.insert(point.number);
            }
        }
        Ok(kept)
    }
}

/// The results so far, from all lanes.
#[derive(Debug, Default)]
struct Ledger {
    results: BTreeMap<u32, PointResult>,
    /// The points that failed, by their numbers.
    failures: BTreeSet<u32>,
    /// Points that this process has measured.
    played: usize,
}

impl Ledger {
    fn measured(&mut self, point: Point, summary: Summary, is_new: bool) {
        self.results.insert(point.number, PointResult { point, summary });
        self.played += usize::from(is_new);
    }

    fn knows(&self, point: &Point) -> bool {
        self.results.contains_key(&point.number) || self.failures.contains(&point.number)
    }
}

/// One point, with everything that its measurement needs.
#[derive(Debug)]
struct Job<'a> {
    point: Point,
    condition: &'a Condition,
    spec: Spec,
    location: RunLocation<'a>,
    /// Whether its server must not have answered anything before but has: it is restarted if there
    /// is a command for that.
    needs_restart: bool,
    /// What the server was asked before, where runs share one: in a round of a suite, or on a
    /// deployment of a matrix. `None` where every run has an engine of its own.
    before: Option<Vec<Spec>>,
}

/// Points in virtual time. Every run has an engine of its own, except in a round of a suite and in a
/// cell of a matrix: there one engine is kept, with its prefix cache.
struct VirtualRunner<'session> {
    session: &'session Session,
    kept: Option<KeptEngine<'session>>,
}

/// The engine between two runs that share it.
struct KeptEngine<'session> {
    simulator: Simulator<'session>,
    round: u32,
    /// How many runs it has played.
    played: usize,
}

impl VirtualRunner<'_> {
    fn measure(&mut self, job: &Job<'_>) -> Result<Summary, Failure> {
        let (round, session) = (job.point.repetition, self.session);
        let mut kept = if let Some(kept) = self.kept.take().filter(|kept| kept.round == round) {
            kept
        } else {
            let engine = VirtualEngine::new(&job.spec.engine)?;
            KeptEngine { simulator: Simulator { engine, session }, round, played: 0 }
        };
        // Stored runs are played again without recording them: the state of an engine follows from
        // its requests, so a study that is resumed gives the same bytes.
        let before = job.before.as_deref().unwrap_or_default();
        let missed = before.get(kept.played..).unwrap_or_default();
        if !missed.is_empty() {
            session.talk("playing the stored runs again to fill the engine's prefix cache …");
        }
        for spec in missed {
            match kept.simulator.make_ready(spec) {
                Ok(ready) => drop(kept.simulator.summarize(ready)?),
                Err(failure) if failure.is_our_own() => return Err(failure),
                // It failed the first time, too.
                Err(_) => {}
            }
        }
        session.interruption.check()?;
        let ready = kept.simulator.make_ready(&job.spec);
        let measured = ready.and_then(|ready| kept.simulator.record(&ready, job.location));
        kept.played = before.len() + 1;
        self.kept = job.before.is_some().then_some(kept);
        measured.map(|simulated| simulated.measured.summary)
    }
}

/// The state that all lanes share.
#[derive(Clone, Copy)]
struct Work<'a> {
    player: &'a Player<'a>,
    manifest: &'a SetManifest,
    ledger: &'a Mutex<Ledger>,
}

impl<'a> Work<'a> {
    fn ledger(self) -> MutexGuard<'a, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn measure_with(self, sequence: &mut Study, backend: Backend) -> Result<(), Failure> {
        let session = self.player.session;
        match backend {
            Backend::Virtual => {
                let mut runner = VirtualRunner { session, kept: None };
                self.measure_points(sequence, &mut |job| runner.measure(job))
            }
            Backend::Live { sides, restart_timeout: timeout } => {
                let command = self.manifest.study.repetition.restart.clone();
                let restart = command.map(|command| Restart { command, timeout });
                let deployment = CurrentDeployment { session, up: None };
                let mut runner = LiveRunner { session, sides, engine: None, restart, deployment };
                self.measure_points(sequence, &mut |job| runner.measure(job))
            }
        }
    }

    /// Asks the study for one point after the other.
    fn measure_points(
        self,
        sequence: &mut Study,
        measure: &mut dyn FnMut(&Job<'_>) -> Result<Summary, Failure>,
    ) -> Result<(), Failure> {
        while let Some(point) = sequence.next() {
            let stored = self.stored(&point)?;
            let is_new = stored.is_none();
            let summary = match stored {
                Some(summary) => summary,
                None => self.measure_next(&point, sequence, measure)?,
            };
            sequence.finished(&summary);
            self.ledger().measured(point, summary, is_new);
        }
        Ok(())
    }

    fn measure_next(
        self,
        point: &Point,
        sequence: &Study,
        measure: &mut dyn FnMut(&Job<'_>) -> Result<Summary, Failure>,
    ) -> Result<Summary, Failure> {
        let (session, study) = (self.player.session, &self.manifest.study);
        let played = self.ledger().played;
        let results: Vec<Point> = self.ledger().results.values().map(|it| it.point).collect();
        if played == 0 && !results.is_empty() {
            session.talk(&format!("{} already; resuming", stored_runs(results.len())));
        }
        let rest = study.repetition.cool_down;
        if played == 0 || rest.is_zero() || self.manifest.simulated {
            session.interruption.check()?;
        } else {
            session.talk(&format!("resting for {rest:?} …"));
            session.interruption.rest(rest)?;
        }
        session.talk(&opening(study, sequence, point));
        let is_suite = study.suite().is_some();
        let in_round = results.iter().filter(|it| it.repetition == point.repetition);
        let before = is_suite.then(|| in_round.filter_map(|it| study.spec_of(it)).collect());
        let mut job = self.job(point, before)?;
        // A run that was moved aside has used the server, too.
        let abandoned = self.player.set.abandoned()?;
        let was_used = results.iter().any(|it| is_suite || it.condition == point.condition)
            || abandoned.iter().any(|(number, _)| point.number <= *number);
        job.needs_restart = was_used && job.before.as_ref().is_none_or(Vec::is_empty);
        let summary = measure(&job)?;
        self.check_not_cut(&job, &summary)?;
        session.talk(&headline(sequence, &summary));
        Ok(summary)
    }

    /// A run that was cut short is no result.
    fn check_not_cut(self, job: &Job<'_>, summary: &Summary) -> Result<(), Failure> {
        if !was_cut(summary) {
            return Ok(());
        }
        self.player.session.interruption.check()?;
        if summary.run.stop != RunStop::Unreachable {
            return Err(Failure::interrupted(Exit::Interrupted));
        }
        let name = &job.condition.name;
        let resume = resume_command(self.player.set);
        Err(Failure::target(format!(
            "{name} could not be reached any more: this run ended early and does not count"
        ))
        .hint(format!("start the server again, then resume with: {resume}")))
    }

    fn job(self, point: &Point, before: Option<Vec<Spec>>) -> Result<Job<'a>, Failure> {
        let study = &self.manifest.study;
        let condition = study.conditions.get(point.condition as usize);
        let (Some(condition), Some(spec)) = (condition, study.spec_of(point)) else {
            return Err(Failure::internal("a point of a condition that is not listed"));
        };
        let location = RunLocation::in_set(self.player.store, self.player.set, point.number);
        Ok(Job { point: *point, condition, spec, location, needs_restart: false, before })
    }

    /// The summary of a point that is stored and complete. A run that is not is moved aside.
    fn stored(self, point: &Point) -> Result<Option<Summary>, Failure> {
        let Player { set, session, options, .. } = self.player;
        let directory = set.point(point.number);
        if !directory.path().exists() {
            return Ok(None);
        }
        let why = match find_stored(&directory)? {
            Ok(summary) if options.rejects(point, &summary) => {
                set.unseal()?;
                let failed = summary.attempted - summary.count(Outcome::Ok);
                format!("it has {failed} requests that failed")
            }
            Ok(summary) => {
                let spec = self.job(point, None)?.spec;
                check_fits(&directory, &spec, self.manifest.simulated)?;
                return Ok(Some(*summary));
            }
            Err(why) => why,
        };
        let aside = set.abandon(point.number)?;
        let number = point.number;
        session
            .talk(&format!("run {number} is measured again: {why}; kept in {}", aside.display()));
        Ok(None)
    }
}

/// `[7/21]`; without a total where that is not known yet.
fn run_number(sequence: &Study) -> String {
    let Progress { done, expected } = sequence.progress();
    match expected {
        Some(expected) => format!("[{}/{expected}]", done + 1),
        None => format!("[{}]", done + 1),
    }
}

fn condition_name(study: &StudySpec, condition: u32) -> &str {
    study.conditions.get(condition as usize).map_or("", |condition| &condition.name)
}

/// The line before a run. The reason of a run of a suite names its scenario.
fn opening(study: &StudySpec, sequence: &Study, point: &Point) -> String {
    let is_suite = study.suite().is_some();
    let server = match study.conditions.len() {
        2.. if !is_suite => format!("{}, ", condition_name(study, point.condition)),
        _ => String::new(),
    };
    format!("{} {server}{}: …", run_number(sequence), sequence.why().unwrap_or_default())
}

/// The line after a run, before the study receives its summary.
fn headline(sequence: &Study, summary: &Summary) -> String {
    format!("{} {}", run_number(sequence), figures(summary))
}

fn figures(summary: &Summary) -> String {
    let output = summary.metrics.scalar(&metric::OUTPUT_THROUGHPUT).and_then(|scalar| scalar.value);
    // On an open loop a wait before sending is the server's doing too.
    let ttft = summary.latency_origin().ttft().p99().value_in(summary).ok();
    format!(
        "{}, {} output tok/s, TTFT p99 {} ms",
        summary.verdict.key(),
        fmt::number(output),
        fmt::number(ttft.map(|estimate| estimate.value))
    )
}

/// Whether the half-width that ends the runs early was reached, level by level.
fn precision(summary: &SetSummary) -> Vec<String> {
    let several = 1 < summary.conditions.len();
    let percent = |share: f64| format!("{} %", fmt::number(share * 100.0));
    let mut lines = Vec::new();
    for condition in &summary.conditions {
        for level in &condition.levels {
            let Some(enough) = &level.enough else { continue };
            let server = several.then(|| condition.name.clone());
            let load = (level.level != Level::AsAsked).then(|| level.level.to_string());
            let parts = server.into_iter().chain(load);
            let place = parts.fold(String::new(), |place, part| format!("{place} of {part}"));
            let width = enough.half_width.map_or_else(
                || "not known: there are too few valid runs".to_owned(),
                |share| format!("±{} after {} runs", percent(share), level.points.len()),
            );
            let reached = if enough.reached { "reached" } else { "not reached" };
            let (quantity, wanted) = (&enough.quantity, percent(enough.target));
            lines.push(format!(
                "--stop-at {reached}: {quantity}{place} is {width} (wanted: {wanted})"
            ));
        }
    }
    lines
}

/// `cell 12 of 256`, and `run 2 of 3` where there are several.
fn cell_number(study: &StudySpec, point: &Point) -> (String, String) {
    let run = match study.repetition.runs.get() {
        1 => String::new(),
        runs => format!(", run {} of {runs}", point.repetition + 1),
    };
    (format!("cell {} of {}", point.condition + 1, study.conditions.len()), run)
}

/// The line before a cell is deployed.
fn opening_cell(study: &StudySpec, point: &Point) -> String {
    let (cell, run) = cell_number(study, point);
    format!("{cell}: {}{run}: …", condition_name(study, point.condition))
}

/// The line after a run. Cells may end in any order, so it names its own again. Pages show the
/// server's counters where there are any, which differ.
fn measured_cell(study: &StudySpec, point: &Point, summary: &Summary) -> String {
    format!("{} {}, by the client", with_load(study, point), figures(summary))
}

fn failed_cell(study: &StudySpec, point: &Point, failure: &DeploymentFailure) -> String {
    format!("{} {}: {}", with_load(study, point), failure.stage, failure.what)
}

fn with_load(study: &StudySpec, point: &Point) -> String {
    let (cell, run) = cell_number(study, point);
    let load = match point.level {
        Level::AsAsked => String::new(),
        level @ (Level::Rate(_) | Level::Unlimited | Level::Concurrency(_)) => {
            format!(", {level}")
        }
    };
    format!("{cell}{run}{load}:")
}

/// The summary of a stored run, or why it must be measured again: it is damaged or was cut short.
/// The journal is read for this, because a summary alone does not show that something was lost.
fn find_stored(directory: &RunDirectory) -> Result<Result<Box<Summary>, String>, Failure> {
    let stored = match directory.read() {
        Ok(stored) => stored,
        Err(error) => {
            let why = damage(&error).ok_or_else(|| Failure::usage(error.to_string()));
            return why.map(Err);
        }
    };
    if !stored.integrity.is_intact() {
        return Ok(Err(format!("its journal is damaged: {}", stored.integrity)));
    }
    let summary = match directory.state() {
        RunState::Sealed => {
            let kept = directory.read_summary()?;
            let known = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
            // The summary may be of another version: the records count.
            known.unwrap_or_else(|| summarize(&stored.observations))
        }
        RunState::Finished => seal_summary(directory, &stored)?,
        RunState::Running => {
            let busy = StoreError::Busy { run: directory.path().to_owned() };
            return Err(Failure::usage(busy.to_string()));
        }
        RunState::Unfinished => return Ok(Err("it did not finish".to_owned())),
        RunState::Unreadable(why) => return Ok(Err(why)),
    };
    Ok(if was_cut(&summary) {
        Err(format!("it ended early: {}", summary.run.stop.text()))
    } else {
        Ok(Box::new(summary))
    })
}

/// Why a run is lost and can be measured again. Every other error is about a run that is not lost:
/// another process holds it, a newer version wrote it, or the disk cannot be read.
#[expect(clippy::wildcard_enum_match_arm, reason = "an error that is not listed loses no run")]
fn damage(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Unfinished { .. } => Some("it did not finish".to_owned()),
        StoreError::JournalLost { .. } => Some("its journal holds no ending".to_owned()),
        StoreError::NotAJournal { .. } => Some("its journal does not begin as one".to_owned()),
        StoreError::Incomplete { error, integrity, .. } => {
            Some(format!("its journal has lost entries ({error}; {integrity})"))
        }
        StoreError::Inconsistent { error, integrity, .. } => {
            Some(format!("its journal contradicts itself ({error}; {integrity})"))
        }
        StoreError::Manifest { error, .. } => Some(format!("its manifest is damaged: {error}")),
        StoreError::NoManifest { .. } => Some("its manifest is missing".to_owned()),
        StoreError::TooLong { path, .. } => Some(format!("{} is too long", path.display())),
        _ => None,
    }
}

/// Whether a user, a crash or a missing server ended a run. What the server did to it is a result.
pub fn was_cut(summary: &Summary) -> bool {
    match summary.run.stop {
        RunStop::Drained | RunStop::Cut | RunStop::Recovered | RunStop::Unreachable => true,
        RunStop::PlanDone | RunStop::Unauthorized | RunStop::ClientExhausted | RunStop::Stalled => {
            false
        }
    }
}

/// Whether no server answered, in a run that was too short to be given up.
pub fn found_nobody(summary: &Summary) -> bool {
    summary.count(Outcome::Ok) == 0
        && summary.outcomes.iter().any(|(outcome, count)| {
            matches!(outcome, Outcome::TransportError | Outcome::TimeoutConnect) && 0 < *count
        })
}

/// Refuses a stored run that is not the one that the set describes.
fn check_fits(directory: &RunDirectory, spec: &Spec, simulated: bool) -> Result<(), Failure> {
    let manifest = directory.manifest().map_err(Failure::from_usage)?;
    let changed = |what: &str| {
        Failure::usage(format!("{}: {what}", directory.path().display()))
            .hint("the folder was changed; restore the original, or begin a new set")
    };
    if manifest.spec != *spec {
        return Err(changed("this run was measured with another spec than set.json has for it"));
    }
    let mut inputs =
        if simulated { Inputs::gather_without_words(spec)? } else { Inputs::gather(spec)? };
    if let InputLength::Corrected(correction) = manifest.materials.input_length {
        inputs.correct(correction);
    }
    let (_, fingerprints) = make_plan(spec, &inputs);
    if fingerprints.plan == manifest.fingerprints.plan {
        return Ok(());
    }
    Err(changed(
        "this run sent other requests than it would now; did a file of its workload change?",
    ))
}

/// A set that was read back, as far as it goes.
#[derive(Debug)]
pub struct Replay {
    pub results: Vec<PointResult>,
    /// The summary of all runs; `None` while some are missing.
    pub summary: Option<SetSummary>,
}

/// Reads a set back in the order of its points. `read` returns the summary of a point, or `None` when
/// it is not there. A missing point ends a set, except a matrix, whose points do not depend on each
/// other; there a point that failed is not missing.
pub fn replay(
    set: &SetDirectory,
    manifest: &SetManifest,
    mut read: impl FnMut(&Point, &RunDirectory) -> Result<Option<Summary>, Failure>,
) -> Result<Replay, Failure> {
    let mut study = Study::new(manifest.study.clone()).map_err(Failure::from_usage)?;
    let is_matrix = manifest.study.matrix().is_some();
    let failures = set.failures().map_err(Failure::from_usage)?;
    let (mut results, mut is_complete) = (Vec::new(), true);
    while let Some(point) = study.next() {
        let has_failed = failures.iter().any(|failure| failure.point.number == point.number);
        let summary = if has_failed { None } else { read(&point, &set.point(point.number))? };
        is_complete &= has_failed || summary.is_some();
        match summary {
            Some(summary) => {
                study.finished(&summary);
                results.push(PointResult { point, summary });
            }
            None if is_matrix => study.record(Reading::default()),
            None => return Ok(Replay { results, summary: None }),
        }
    }
    let summary = is_complete.then(|| summarize_stored(set, manifest, &results)).transpose()?;
    let summary = summary.map(|summary| summary.with_limits(study.limits()));
    Ok(Replay { results, summary })
}

/// The summary of what is stored, however much of it is there.
pub fn summarize_stored(
    set: &SetDirectory,
    manifest: &SetManifest,
    results: &[PointResult],
) -> Result<SetSummary, Failure> {
    let Some(_) = manifest.study.matrix() else {
        return Ok(SetSummary::summarize(manifest, results));
    };
    let failures = set.failures().map_err(Failure::from_usage)?;
    let deployments = set.deployments().map_err(Failure::from_usage)?;
    Ok(SetSummary::summarize_matrix(manifest, results, &failures, &deployments))
}
