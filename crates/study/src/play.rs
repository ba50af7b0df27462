//! Plays a study over the folder of a set: runs that are stored and complete count, the others are
//! measured. Resuming is therefore the same as playing for the first time.
//!
//! A repeat, sweep or suite asks the [`Study`] for one point after the other. The points of a matrix
//! are known in advance, so several lanes take one deployment at a time. Each is deployed, measured at
//! every load, drained and stopped. A cell that fails is a result; only a problem of this machine, or
//! a signal, stops a matrix.
//!
//! Over the wire, a server of others is asked once what it serves, and again after each restart. The
//! embedded engine is started anew for every run, in a suite for every round. A server that is
//! deployed here is kept for as long as its spec says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{RunFigures, Summary, check_goals, metric, summarize};
use inferometer_engine::profile::{Profile, ProfileError, Shortage};
use inferometer_load::{SystemClock, Target};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause, Renewal};
use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::journal::RunStop;
use inferometer_model::observations::InputLength;
use inferometer_model::spec::{EngineTable, TargetSpec, Workload};
use inferometer_model::study::{
    Condition, DeploymentRecord, Level, Point, PointFailure, Question, SetManifest, Stage,
    StudySpec,
};
use inferometer_model::telemetry::{Gauges, MissReason};
use inferometer_model::{Clock, Outcome, Spec};
use inferometer_report::fmt;
use inferometer_runner::deployed::{self, Deployed, NotDeployed, failed_at};
use inferometer_runner::failure::Result;
use inferometer_runner::hooks::Shell;
use inferometer_runner::interruption::Interruption;
use inferometer_runner::measurement::{self, Live, Planned, RunLocation, Server, warn_of_secrets};
use inferometer_runner::secrets::Secrets;
use inferometer_runner::simulation::{Simulator, VirtualEngine, check_virtual};
use inferometer_runner::{Event, Exit, Failure, Session, embedded, preflight};
use inferometer_store::{RunDirectory, RunState, RunStore, SetDirectory, StoreError};
use inferometer_target::metrics;
use inferometer_workload::{Inputs, make_plan};
use serde_json::Value;

use crate::grid::{self, planned_levels};
use crate::matrix::{Deployment, Queue, deployments};
use crate::{Progress, Reading, Study};

/// How the points of a study are measured.
#[derive(Debug)]
pub enum Backend {
    /// Over the wire.
    Live {
        /// One for each condition.
        sides: Vec<ConditionServer>,
        restart_timeout: Duration,
        /// What sends the load, if that is not this process.
        workers: Option<Box<dyn Workers>>,
    },
    /// In virtual time.
    Virtual,
}

/// Workers that share the load of each run, and are started for it.
pub trait Workers: Debug + Sync {
    /// Fails if they could not share the load, before any is started.
    fn check(&self, spec: &Spec, secrets: &Secrets) -> Result<()>;

    /// Starts them, and merges what they measured.
    fn measure(
        &self,
        spec: &Spec,
        secrets: &Secrets,
        location: RunLocation<'_>,
        session: &Session,
    ) -> Result<Summary>;

    /// How they are started again when the set is resumed.
    fn settings(&self) -> Value;
}

impl Backend {
    /// Over the wire, with the secrets of each condition.
    pub fn live(
        secrets: Vec<Secrets>,
        restart_timeout: Duration,
        workers: Option<Box<dyn Workers>>,
    ) -> Self {
        let sides = secrets.into_iter().map(ConditionServer::new).collect();
        Self::Live { sides, restart_timeout, workers }
    }

    fn workers(&self) -> Option<&dyn Workers> {
        let Self::Live { workers, .. } = self else { return None };
        workers.as_deref()
    }

    /// The secrets of each condition; `None` in virtual time.
    pub fn secrets(&self) -> Option<Vec<Secrets>> {
        let Self::Live { sides, .. } = self else { return None };
        Some(sides.iter().map(|side| side.secrets.clone()).collect())
    }

    /// Asks every server that is already running what it serves. A server that cannot be used is
    /// then found before a set is created.
    pub fn probe(&mut self, study: &StudySpec, talk: &dyn Fn(String)) -> Result<()> {
        match (self, &study.question) {
            // Only workers need to reach a server that they share.
            (Self::Virtual | Self::Live { workers: Some(_), .. }, _) | (_, Question::Matrix(_)) => {
                Ok(())
            }
            (Self::Live { sides, .. }, _) => probe(sides, study, talk),
        }
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

    fn retries(&self, point: &Point) -> bool {
        self.retry_failed && self.wants(point)
    }
}

/// Everything that can be wrong with a study before anything is sent or deployed.
pub fn check(study: &StudySpec, backend: &Backend) -> Result<()> {
    Study::new(study.clone()).map_err(Failure::from_usage)?;
    check_restart(study, backend)?;
    if let Backend::Live { workers: Some(workers), sides, .. } = backend {
        for point in known_points(study) {
            if let (Some(spec), Some(side)) =
                (study.spec_of(&point), sides.get(point.condition as usize))
            {
                workers.check(&spec, &side.secrets)?;
            }
        }
    }
    for spec in known_specs(study) {
        check_goals(&spec).map_err(Failure::from_usage)?;
        if matches!(backend, Backend::Virtual) {
            check_virtual(&spec)?;
        }
    }
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

fn check_restart(study: &StudySpec, backend: &Backend) -> Result<()> {
    if study.repetition.restart.is_none() {
        return Ok(());
    }
    if backend.workers().is_some() {
        return Err(Failure::usage("--restart and --on cannot be combined")
            .hint("restart the server between two commands"));
    }
    let any = |is: fn(&TargetSpec) -> bool| study.conditions.iter().any(|it| is(&it.spec.target));
    if any(|target| matches!(target, TargetSpec::Deployed(_))) {
        return Err(Failure::usage("--restart does not apply to a server that is deployed here")
            .hint("leave it out, and use --renew to choose when the server is deployed again"));
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
pub fn checked_ceiling(study: &StudySpec, backend: &Backend) -> Result<usize> {
    let ceiling = match (backend, study.conditions.first()) {
        (Backend::Live { workers: None, .. }, Some(condition)) => {
            measurement::ceiling(&condition.spec)
        }
        (Backend::Live { .. } | Backend::Virtual, _) => usize::MAX,
    };
    known_specs(study).iter().try_for_each(|spec| measurement::check_ceiling(spec, ceiling))?;
    Ok(ceiling)
}

/// The points of the first repetition that are known in advance: every level of each condition.
pub fn known_points(study: &StudySpec) -> Vec<Point> {
    let places = planned_levels(study).into_iter();
    let points = places.flat_map(|place| {
        let point = move |condition| {
            let (level, stage) = (place.level, Stage::Planned);
            let point = Point { number: 0, condition, level, repetition: 0, seed: 0, stage };
            Point { seed: grid::seed(study, &point), ..point }
        };
        place.conditions.into_iter().map(point)
    });
    points.collect()
}

/// The specs of [`known_points`].
pub fn known_specs(study: &StudySpec) -> Vec<Spec> {
    known_points(study).iter().filter_map(|point| study.spec_of(point)).collect()
}

/// Creates the set of a study.
pub fn create(store: &RunStore, study: StudySpec, backend: &Backend) -> Result<SetDirectory> {
    // The keys are read again from these files when the set is resumed.
    let secrets = backend.secrets().unwrap_or_default();
    let mut key_files: Vec<Option<PathBuf>> = secrets.into_iter().map(|it| it.key_file).collect();
    if key_files.iter().all(Option::is_none) {
        key_files.clear();
    }
    let simulated = matches!(backend, Backend::Virtual);
    let realtime_ns = SystemClock::new().anchor().realtime_ns;
    let workers = backend.workers().map(Workers::settings);
    Ok(store.create_set(study, simulated, key_files, workers, realtime_ns)?)
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
    /// The study with the secrets that were typed into it, which the set does not store.
    pub study: &'a StudySpec,
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
    pub fn play(&self, backend: Backend) -> Result<Played> {
        let _lock = self.set.lock().map_err(Failure::from_usage)?;
        let stored = self.set.manifest()?;
        let manifest = SetManifest { study: self.study.clone(), ..stored.clone() };
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
            let counted = if is_matrix {
                format!(
                    "{} of {points} runs are measured, {} failed and {} are left,",
                    results.len(),
                    failures.len(),
                    points.saturating_sub(known)
                )
            } else {
                stored_runs(results.len())
            };
            let what = format!("{counted} in {}", self.set.path().display());
            self.session.emit(Event::Unfinished { what, command: resume_command(self.set) });
        }
        result?;
        if is_complete && played == 0 {
            self.session.talk(&format!("the set is already complete ({known} runs)"));
        }
        let points: Vec<PointResult> = results.into_values().collect();
        let summary = summarize_stored(self.set, &stored, &points)?;
        let summary = summary.with_limits(sequence.limits());
        for line in precision(&summary) {
            self.session.talk(&line);
        }
        if is_complete {
            self.set.write_summary(&summary.to_json_bytes())?;
        }
        warn_of_secrets(self.store, self.set.path(), self.session);
        Ok(Played { manifest: stored, summary, points, is_complete })
    }

    /// The points whose failures are stored. Those that are to be retried are moved aside, and with
    /// them the summary of the set.
    fn failures(&self) -> Result<BTreeSet<u32>> {
        let mut kept = BTreeSet::new();
        for PointFailure { point, .. } in self.set.failures().map_err(Failure::from_usage)? {
            if self.options.retries(&point) {
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
    set: &'a SetDirectory,
    location: RunLocation<'a>,
    /// Whether its server must not have answered anything before but has: it is restarted if there
    /// is a command for that.
    needs_restart: bool,
    /// What the server was asked before, where runs share one: in a round of a suite, or on a
    /// deployment of a matrix. `None` where every run has its own engine.
    before: Option<Vec<Spec>>,
}

/// Measures one point.
type MeasureJob<'a> = dyn FnMut(&Job<'_>) -> Result<Summary> + 'a;

/// Points in virtual time. Every run has its own engine, except in a round of a suite and in a
/// cell of a matrix: there one engine is kept, with its prefix cache.
struct VirtualRunner<'session> {
    session: &'session Session,
    /// The engine between two runs that share it, the repetition, and how many runs it has played.
    kept: Option<(Simulator<'session>, u32, usize)>,
}

impl VirtualRunner<'_> {
    fn measure(&mut self, job: &Job<'_>) -> Result<Summary> {
        let (round, session) = (job.point.repetition, self.session);
        let (mut simulator, played) = match self.kept.take() {
            Some((simulator, kept_round, played)) if kept_round == round => (simulator, played),
            _ => (Simulator { engine: VirtualEngine::new(&job.spec.engine)?, session }, 0),
        };
        // Stored runs are played again without recording them: the state of an engine follows from
        // its requests, so a study that is resumed gives the same bytes.
        let before = job.before.as_deref().unwrap_or_default();
        let missed = before.get(played..).unwrap_or_default();
        if !missed.is_empty() {
            session.talk("playing the stored runs again to fill the engine's prefix cache …");
        }
        for spec in missed {
            match simulator.make_ready(spec) {
                Ok(ready) => drop(simulator.summarize(ready)?),
                Err(failure) if failure.is_our_own() => return Err(failure),
                // It failed the first time, too.
                Err(_) => {}
            }
        }
        session.interruption.check()?;
        let ready = simulator.make_ready(&job.spec);
        let measured = ready.and_then(|ready| simulator.record(&ready, job.location));
        self.kept = job.before.is_some().then_some((simulator, round, before.len() + 1));
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

    /// Asks the study for one point after the other.
    fn measure_with(self, sequence: &mut Study, backend: Backend) -> Result<()> {
        let (session, set) = (self.player.session, self.player.set);
        let mut measure: Box<MeasureJob<'_>> = match backend {
            Backend::Virtual => {
                let mut runner = VirtualRunner { session, kept: None };
                Box::new(move |job| runner.measure(job))
            }
            Backend::Live { sides, restart_timeout: timeout, workers } => {
                let command = self.manifest.study.repetition.restart.clone();
                let restart = command.map(|command| Restart { command, timeout });
                let deployment = CurrentDeployment { session, set, up: None };
                let mut runner =
                    LiveRunner { session, sides, engine: None, restart, deployment, workers };
                Box::new(move |job| runner.measure(job))
            }
        };
        while let Some(point) = sequence.next() {
            let stored = self.stored(&point)?;
            let is_new = stored.is_none();
            let summary = match stored {
                Some(summary) => summary,
                None => self.measure_next(&point, sequence, &mut measure)?,
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
        measure: &mut MeasureJob<'_>,
    ) -> Result<Summary> {
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
            session.talk(&format!("resting for {} …", fmt::duration(rest)));
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
        session.talk(&format!("{} {}", run_number(sequence), figures(&summary, None)));
        Ok(summary)
    }

    /// A run that was cut short is no result.
    fn check_not_cut(self, job: &Job<'_>, summary: &Summary) -> Result<()> {
        if !was_cut(summary) {
            return Ok(());
        }
        self.player.session.interruption.check()?;
        let resume = resume_command(self.player.set);
        if summary.run.stop == RunStop::WorkersLost {
            let what = "not all workers played their share: this run is partial and does not count";
            let hint = format!("the logs beside it say why; resume with: {resume}");
            return Err(Failure::invalid(what).hint(hint));
        }
        if summary.run.stop != RunStop::Unreachable {
            return Err(Failure::interrupted(Exit::Interrupted));
        }
        let name = &job.condition.name;
        Err(Failure::target(format!(
            "{name} cannot be reached any more: this run ended early and does not count"
        ))
        .hint(format!("start the server again, then resume with: {resume}")))
    }

    fn job(self, point: &Point, before: Option<Vec<Spec>>) -> Result<Job<'a>> {
        let study = &self.manifest.study;
        let condition = study.conditions.get(point.condition as usize);
        let (Some(condition), Some(spec)) = (condition, study.spec_of(point)) else {
            return Err(Failure::internal("a point of a condition that is not listed"));
        };
        let Player { store, set, .. } = *self.player;
        let location = RunLocation::in_set(store, set, point.number);
        Ok(Job { point: *point, condition, spec, set, location, needs_restart: false, before })
    }

    /// The summary of a point that is stored and complete. A run that is not is moved aside.
    fn stored(self, point: &Point) -> Result<Option<Summary>> {
        let Player { set, session, options, .. } = self.player;
        let directory = set.point(point.number);
        if !directory.path().exists() {
            return Ok(None);
        }
        let why = match find_stored(&directory)? {
            Ok(summary) if 0 < summary.failed() && options.retries(point) => {
                set.unseal()?;
                let failed = summary.failed();
                format!("it has {failed} requests that failed")
            }
            Ok(summary) => {
                let spec = self.job(point, None)?.spec;
                check_fits(&directory, &spec, self.manifest.simulated)?;
                return Ok(Some(summary));
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

const GIB: f64 = (1_u64 << 30) as f64;

impl Work<'_> {
    /// Measures all deployments. If a lane must stop, all do.
    fn measure_deployments(self, planned: Vec<Deployment>, backend: &Backend) -> Result<()> {
        let lanes = self.lanes(backend, planned.len());
        let session = self.player.session;
        // Several lanes would report progress at the same time.
        let mut quiet = if 1 < lanes { session.only_warnings() } else { session.clone() };
        quiet.ceiling /= lanes;
        let queue = &Queue::new(planned, matches!(backend, Backend::Virtual));
        let lane = || {
            let mut rest = Duration::ZERO;
            while let Some(taken) = queue.take() {
                let measured = self.measure_deployment(&taken.deployment, backend, &quiet, rest);
                if measured.inspect_err(|_| queue.give_up())? {
                    rest = self.manifest.study.repetition.cool_down;
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
            let panicked = |_| Err(Failure::internal("a lane of the matrix panicked"));
            let ended = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(panicked));
            let ended: Vec<Result<()>> = ended.collect();
            // A failure of this machine explains more than a signal does.
            let failures = ended.into_iter().filter_map(Result::err);
            failures.min_by_key(Failure::is_interruption).map_or(Ok(()), Err)
        })
    }

    /// Presets that are measured at the same time; in virtual time as many cells as there are cores,
    /// because no cell disturbs another.
    fn lanes(self, backend: &Backend, deployments: usize) -> usize {
        let Some(matrix) = self.manifest.study.matrix() else { return 1 };
        let lanes = self.player.options.lanes.unwrap_or(matrix.lanes).get() as usize;
        let lanes = match backend {
            Backend::Live { .. } => lanes.min(matrix.presets.len()),
            Backend::Virtual => thread::available_parallelism().map_or(1, usize::from).max(lanes),
        };
        // Every lane has a run in memory.
        lanes.min(deployments).clamp(1, 64)
    }

    /// Measures the points of a deployment that are missing, and returns whether there were any. An
    /// error is never the server's.
    fn measure_deployment(
        self,
        deployment: &Deployment,
        backend: &Backend,
        quiet: &Session,
        rest: Duration,
    ) -> Result<bool> {
        let session = self.player.session;
        session.interruption.check()?;
        let mut left = Vec::new();
        for point in &deployment.points {
            if self.ledger().failures.contains(&point.number) {
                continue;
            }
            match self.stored(point)? {
                Some(summary) => self.ledger().measured(*point, without_figures(summary), false),
                None if self.player.options.wants(point) => left.push(*point),
                None => {}
            }
        }
        let Some(first) = left.first() else { return Ok(false) };
        if let Backend::Live { .. } = backend {
            session.interruption.rest(rest)?;
        }
        let (study, name) = (&self.manifest.study, &self.job(first, None)?.condition.name);
        session.talk(&format!("{}: {name}: …", cell_label(study, first, Level::AsAsked)));
        let spec = self.job(first, None)?.spec;
        if spec.target == TargetSpec::Embedded
            && let Some(failure) = unfit(&spec.engine)?
        {
            self.failed(&left, &failure)?;
            return Ok(true);
        }
        match backend {
            Backend::Virtual => self.measure_virtual(deployment, &left, quiet)?,
            Backend::Live { sides, .. } => {
                let side = sides.get(first.condition as usize);
                let side = side.ok_or_else(|| Failure::internal("a cell without secrets"))?;
                measure_cell(self, &side.secrets, &left, quiet)?;
            }
        }
        Ok(true)
    }

    /// One engine for all loads of a cell.
    fn measure_virtual(
        self,
        deployment: &Deployment,
        left: &[Point],
        quiet: &Session,
    ) -> Result<()> {
        let mut runner = VirtualRunner { session: quiet, kept: None };
        for point in left {
            let before = deployment.points.iter().take_while(|it| it.number < point.number);
            let before = before.filter_map(|it| self.manifest.study.spec_of(it)).collect();
            let job = self.job(point, Some(before))?;
            match runner.measure(&job) {
                Ok(summary) => {
                    self.check_not_cut(&job, &summary)?;
                    self.measured(point, summary);
                }
                Err(failure) if failure.is_our_own() => return Err(failure),
                Err(failure) => self.failed(&[*point], &not_measured(&failure))?,
            }
        }
        Ok(())
    }

    fn measured(self, point: &Point, summary: Summary) {
        // Cells may end in any order. Pages show the server's counters where there are any.
        let cell = cell_label(&self.manifest.study, point, point.level);
        self.player.session.talk(&format!("{cell}: {}", figures_of_cell(&summary)));
        self.ledger().measured(*point, without_figures(summary), true);
    }

    /// Stores that these points failed, all for the same reason.
    fn failed(self, points: &[Point], failure: &DeploymentFailure) -> Result<()> {
        let now = jiff::Timestamp::now();
        let now = now.round(jiff::Unit::Second).unwrap_or(now).to_string();
        let at = (!self.manifest.simulated).then_some(now);
        for point in points {
            let noted = PointFailure { point: *point, at: at.clone(), failure: failure.clone() };
            self.player.set.write_failure(&noted)?;
            let cell = cell_label(&self.manifest.study, point, point.level);
            self.player.session.talk(&format!("{cell}: {}: {}", failure.stage, failure.what));
            let mut ledger = self.ledger();
            ledger.failures.insert(point.number);
            ledger.played += 1;
        }
        Ok(())
    }
}

/// A matrix has hundreds of runs: what only the charts of a single run need is dropped.
fn without_figures(summary: Summary) -> Summary {
    Summary { figures: RunFigures::default(), ..summary }
}

/// A measurement that failed, as the failure of a cell.
fn not_measured(failure: &Failure) -> DeploymentFailure {
    let failed = failed_at(DeploymentStage::Measure, failure.message());
    DeploymentFailure { log: failure.lines(), ..failed }
}

/// Measures these points of a deployment. Whatever happens, the server is stopped.
fn measure_cell(
    work: Work<'_>,
    secrets: &Secrets,
    left: &[Point],
    session: &Session,
) -> Result<()> {
    let Some(first) = left.first() else { return Ok(()) };
    let job = work.job(first, None)?;
    let started = match job.spec.target {
        TargetSpec::Deployed(_) => RunningServer::deploy(&job, secrets, session)
            .map_err(|not_up| not_up.found.ok_or(not_up.failure)),
        TargetSpec::Url(_) | TargetSpec::Embedded => Server::new(&job.spec)
            .map(|server| RunningServer::new(server, first))
            .map_err(|failure| Ok(failed_at(DeploymentStage::Start, failure.message()))),
    };
    let up = match started {
        Ok(up) => up,
        Err(Ok(found)) => return work.failed(left, &found),
        Err(Err(failure)) => return Err(failure),
    };
    let mut cell = DeployedCell { work, secrets, session, up, drained: Drained::Unknown };
    let died = cell.measure_all(left);
    let (drained_after_s, trouble) = match cell.drained {
        Drained::Idle(after_s) => (Some(after_s), None),
        Drained::Busy => {
            let patience = fmt::duration(PATIENCE);
            (None, Some(format!("it was still busy {patience} after its last run")))
        }
        Drained::Unknown | Drained::Stopped(_) => (None, None),
    };
    cell.up.stop(work.player.set, session, drained_after_s, trouble);
    match died? {
        None => Ok(()),
        Some(failure) => {
            let mut lost = left.to_vec();
            lost.retain(|point| !work.ledger().knows(point));
            work.failed(&lost, &failure)
        }
    }
}

fn as_death(failure: DeploymentFailure) -> DeploymentFailure {
    DeploymentFailure { stage: DeploymentStage::Died, ..failure }
}

/// A cell whose server is ready.
struct DeployedCell<'a> {
    work: Work<'a>,
    secrets: &'a Secrets,
    session: &'a Session,
    up: RunningServer,
    /// After the last run.
    drained: Drained,
}

impl DeployedCell<'_> {
    /// Measures one load after the other. Returns why the server is gone, if it is.
    fn measure_all(&mut self, left: &[Point]) -> Result<Option<DeploymentFailure>> {
        for point in left {
            let died = match self.try_measure(&self.work.job(point, None)?) {
                Ok(summary) => {
                    if was_cut(&summary) {
                        self.session.interruption.check()?;
                    }
                    let has_failures = 0 < summary.failed();
                    let died = self.died(&summary);
                    if died.is_some() && (was_cut(&summary) || has_failures) {
                        self.work.player.set.abandon(point.number)?;
                    } else {
                        self.work.measured(point, summary);
                    }
                    died
                }
                Err(failure) if failure.is_our_own() => return Err(failure),
                Err(failure) => self.not_measured(point, &failure)?,
            };
            if died.is_some() {
                return Ok(died);
            }
            if let Drained::Stopped(exit) = self.drained {
                return Err(Failure::interrupted(exit));
            }
        }
        Ok(None)
    }

    fn try_measure(&mut self, job: &Job<'_>) -> Result<Summary> {
        let planned = Planned::new(job.spec.clone())?;
        let live = Live::reach(Arc::clone(&self.up.server), self.secrets, &planned)?;
        self.drained = Drained::Unknown;
        let measured = live.measure(planned, job.location, self.session)?;
        if let Some(telemetry) = &job.spec.telemetry {
            let clock = SystemClock::new();
            let waited = || Duration::from_nanos(clock.now().as_nanos());
            let rest = |time| self.session.interruption.wait(time);
            self.drained = wait(&telemetry.path, waited, |path| look(live.target(), path), rest);
        }
        Ok(measured.summary)
    }

    /// The server is to blame: it is gone, or its answers are of no use at this load.
    fn not_measured(&self, point: &Point, failure: &Failure) -> Result<Option<DeploymentFailure>> {
        let mut found = not_measured(failure);
        if let Some(deployed) = self.up.server.deployed() {
            if let Some(lost) = deployed.lost(None) {
                return Ok(Some(as_death(lost)));
            }
            let with_log = deployed.failure(found.stage, found.what.clone());
            found = DeploymentFailure { log: [found.log, with_log.log].concat(), ..with_log };
        }
        self.work.failed(&[*point], &found)?;
        Ok(None)
    }

    /// Why the server is gone; `None` while it is there.
    fn died(&self, summary: &Summary) -> Option<DeploymentFailure> {
        let stop = if reached_no_server(summary) { RunStop::Unreachable } else { summary.run.stop };
        match self.up.server.deployed() {
            Some(deployed) => deployed.lost(Some(stop)).map(as_death),
            None => (stop == RunStop::Unreachable)
                .then(|| failed_at(DeploymentStage::Died, "it cannot be reached any more")),
        }
    }
}

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drained {
    /// It was idle after so many seconds.
    Idle(f64),
    /// It does not report what it does.
    Unknown,
    /// It was still busy when we stopped waiting.
    Busy,
    /// A signal came.
    Stopped(Exit),
}

/// For servers that keep generating for clients that left.
const PATIENCE: Duration = Duration::from_mins(1);

/// What one look brought: the server's gauges, or why there are none.
type Look = Result<Gauges, MissReason>;

/// Waits until the server is idle; `path` is where it has its metrics.
fn wait(
    path: &str,
    waited: impl Fn() -> Duration,
    mut look: impl FnMut(&str) -> Look,
    mut rest: impl FnMut(Duration) -> Option<Exit>,
) -> Drained {
    let mut path = path;
    let mut lost = 0;
    loop {
        let found = look(path);
        let waited = waited();
        match found.map(is_at_work) {
            Ok(None) => return Drained::Unknown,
            Ok(Some(false)) => return Drained::Idle(waited.as_secs_f64()),
            Ok(Some(true)) => lost = 0,
            Err(missed) => match metrics::other_path(path, missed) {
                Some(other) => path = other,
                None => lost += 1,
            },
        }
        // A server that finishes its work answers late, or not at once.
        if lost == 3 {
            return Drained::Unknown;
        }
        if PATIENCE <= waited {
            return Drained::Busy;
        }
        if let Some(exit) = rest(Duration::from_millis(250)) {
            return Drained::Stopped(exit);
        }
    }
}

fn look(target: &Target, path: &str) -> Look {
    let request = FetchRequest { path, body_limit: metrics::BODY_BYTES_MAX };
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is measured here, and the module for time-outs is the client's own"
    )]
    let answered = preflight::fetching(target, async |fetch| {
        // A signal is noticed between two looks, so a look must be short.
        tokio::time::timeout(Duration::from_secs(1), fetch.fetch(request)).await
    });
    let reply = answered.map_err(|_no_runtime| MissReason::Transport)?;
    let reply = reply.map_err(|_elapsed| MissReason::Timeout)?;
    let reply = reply.map_err(|_failed| MissReason::Transport)?;
    metrics::read_reply(&reply).map(|reading| reading.gauges)
}

/// `None` if the server does not report how many requests it has.
fn is_at_work(gauges: Gauges) -> Option<bool> {
    let Gauges { running, waiting, swapped, .. } = gauges;
    running.map(|running| 0.0 < running + waiting.unwrap_or(0.0) + swapped.unwrap_or(0.0))
}

/// Why an engine with these options cannot start; `None` if it can. A mistake in the options, such as
/// an unknown name, is no result and stops the matrix before it begins.
pub fn unfit(spec: &EngineTable) -> Result<Option<DeploymentFailure>> {
    let Err(error) = Profile::compose(spec) else { return Ok(None) };
    let cause = match &error {
        ProfileError::DoesNotFit(_) => LikelyCause::OutOfMemory,
        ProfileError::Layout(_) => LikelyCause::CannotSpread,
        ProfileError::Unsupported(_) => LikelyCause::BadFlag,
        ProfileError::Read { .. } | ProfileError::Invalid(_) => {
            return Err(embedded::refusal(&error));
        }
    };
    let text = error.to_string();
    let mut lines = text.lines().map(str::to_owned);
    let first = lines.next().unwrap_or_default();
    let what = if let ProfileError::DoesNotFit(shortage) = &error {
        format!("{first} {}", deciding(shortage))
    } else {
        first
    };
    Ok(Some(DeploymentFailure {
        stage: DeploymentStage::Start,
        what,
        cause: Some(cause),
        log: lines.collect(),
    }))
}

/// The numbers that decide it, of the arithmetic that follows.
fn deciding(shortage: &Shortage) -> String {
    let Shortage { max_model_len, memory, remedies, .. } = shortage;
    if memory.left <= 0.0 {
        let before_cache = memory.budget - memory.left;
        return format!(
            "{} GiB are needed on each GPU before any KV cache, and {} GiB may be used",
            fmt::number(before_cache / GIB),
            fmt::number(memory.budget / GIB)
        );
    }
    let longest = remedies.iter().find_map(|remedy| remedy.strip_prefix("--max-model-len "));
    let longest = longest.and_then(|tokens| tokens.parse().ok()).map(fmt::count);
    let enough = longest.map_or_else(String::new, |tokens| format!(", enough for {tokens} tokens"));
    format!(
        "{} tokens need {} GiB of KV cache on each GPU, and {} GiB are left{enough}",
        fmt::count((*max_model_len).into()),
        fmt::number(memory.needed / GIB),
        fmt::number(memory.left / GIB)
    )
}

/// The server of one condition.
#[derive(Debug)]
pub struct ConditionServer {
    secrets: Secrets,
    /// `None` until the server was asked what it serves.
    live: Option<Arc<Live>>,
    /// What it was asked with.
    spec: Option<Spec>,
}

impl ConditionServer {
    fn new(secrets: Secrets) -> Self {
        Self { secrets, live: None, spec: None }
    }

    fn remember(&mut self, live: Option<Arc<Live>>, spec: &Spec) {
        (self.live, self.spec) = (live, Some(spec.clone()));
    }

    /// What the server has answered to another condition, where it would answer the same.
    fn answered(sides: &[Self], spec: &Spec) -> Option<Arc<Live>> {
        let alike = |side: &&Self| side.spec.as_ref().is_some_and(|other| asks_alike(other, spec));
        sides.iter().find(alike)?.live.clone()
    }
}

/// Asks all servers that are already running what they serve.
fn probe(sides: &mut [ConditionServer], study: &StudySpec, talk: &dyn Fn(String)) -> Result<()> {
    let is_suite = study.suite().is_some();
    for (place, Condition { name, spec }) in study.conditions.iter().enumerate() {
        let known = if is_suite { ConditionServer::answered(sides, spec) } else { None };
        let Some(side) = sides.get_mut(place) else { break };
        side.remember(known, spec);
        if !is_ours(spec) && side.live.is_none() {
            let server = if is_suite { server_name(spec) } else { name.clone() };
            talk(format!("asking {server} what it serves …"));
            let planned = Planned::new(spec.clone())?;
            let server = Arc::new(Server::new(spec)?);
            side.live = Some(Arc::new(Live::reach(server, &side.secrets, &planned)?));
        }
    }
    Ok(())
}

struct LiveRunner<'session> {
    session: &'session Session,
    /// In the order of the conditions.
    sides: Vec<ConditionServer>,
    /// The engine that a suite keeps.
    engine: Option<Arc<Server>>,
    restart: Option<Restart>,
    deployment: CurrentDeployment<'session>,
    workers: Option<Box<dyn Workers>>,
}

impl LiveRunner<'_> {
    fn measure(&mut self, job: &Job<'_>) -> Result<Summary> {
        if let Some(workers) = &self.workers {
            let secrets = &side(&mut self.sides, job)?.secrets;
            return workers.measure(&job.spec, secrets, job.location, self.session);
        }
        let planned = Planned::new(job.spec.clone())?;
        if job.needs_restart {
            self.renew(job, &planned)?;
        }
        self.deployment.provide(job, &side(&mut self.sides, job)?.secrets)?;
        let measured = self.live(job, &planned).and_then(|live| {
            let measured = live.measure(planned, job.location, self.session)?;
            // The run counts, but what should have been called after it was not.
            measured.late_failure.map_or(Ok((live, measured.summary)), Err)
        });
        // A run whose server ended meanwhile is no result of the set.
        let stop = measured.as_ref().ok().map(|(_, summary)| summary.run.stop);
        if let Some(up) = &self.deployment.up
            && let Some(deployed) = up.server.deployed()
            && let Some(found) = deployed.lost(stop)
        {
            if job.set.point(job.point.number).path().exists() {
                job.set.abandon(job.point.number)?;
            }
            return Err(deployed.explain(&found, &deployed.log));
        }
        let (live, summary) = measured?;
        // Outside of a suite the embedded engine ends here, with its cache and its queue. A deployed
        // server is kept by its deployment alone.
        let is_kept = self.deployment.up.is_none() && (job.before.is_some() || !is_ours(&job.spec));
        side(&mut self.sides, job)?.remember(Some(live).filter(|_| is_kept), &job.spec);
        Ok(summary)
    }

    /// Provides a server that has answered nothing yet: a new engine, or one that was restarted.
    fn renew(&mut self, job: &Job<'_>, planned: &Planned) -> Result<()> {
        self.engine = None;
        let is_ours = is_ours(&job.spec);
        let restart = self.restart.clone().filter(|_| !is_ours);
        // All scenarios of a suite have the same server.
        if is_ours || restart.is_some() && job.before.is_some() {
            self.sides.iter_mut().for_each(|side| side.live = None);
        }
        let Some(restart) = restart else { return Ok(()) };
        let side = side(&mut self.sides, job)?;
        side.live = None;
        let interruption = &self.session.interruption;
        let clock = SystemClock::new();
        restart.run(&clock, job.condition, &job.set.restart_log(), interruption)?;
        loop {
            let server = Arc::new(Server::new(&job.spec)?);
            match Live::reach(server, &side.secrets, planned) {
                Ok(live) => {
                    side.remember(Some(Arc::new(live)), &job.spec);
                    return Ok(());
                }
                // A key that is refused now is refused later too.
                Err(failure) if !failure.is_passing() => return Err(failure),
                Err(failure) if restart.is_over(&clock) => {
                    return Err(failure.hint(format!(
                        "`{}` ended, and the server did not answer within {}; give it longer \
                         with --restart-timeout",
                        restart.command,
                        fmt::duration(restart.timeout)
                    )));
                }
                Err(_) => {}
            }
            // Between two questions to a server that is still starting.
            interruption.rest(Duration::from_secs(1))?;
        }
    }

    /// The server of a point, asked what it serves.
    fn live(&mut self, job: &Job<'_>, planned: &Planned) -> Result<Arc<Live>> {
        let is_shared = job.before.is_some();
        let known = is_shared.then(|| ConditionServer::answered(&self.sides, &job.spec)).flatten();
        let side = side(&mut self.sides, job)?;
        if let Some(up) = &self.deployment.up {
            return Live::reach(Arc::clone(&up.server), &side.secrets, planned).map(Arc::new);
        }
        if let Some(live) = side.live.take().or(known) {
            return Ok(live);
        }
        let server = if let Some(engine) = self.engine.take() {
            engine
        } else {
            if is_ours(&job.spec) && job.before.as_ref().is_some_and(|it| !it.is_empty()) {
                let notice = "the engine is new: its prefix cache has nothing of stored runs";
                self.session.talk(notice);
            }
            Arc::new(Server::new(&job.spec)?)
        };
        let live = Arc::new(Live::reach(Arc::clone(&server), &side.secrets, planned)?);
        self.engine = (is_shared && is_ours(&job.spec)).then_some(server);
        Ok(live)
    }
}

fn side<'sides>(
    sides: &'sides mut [ConditionServer],
    job: &Job<'_>,
) -> Result<&'sides mut ConditionServer> {
    let side = sides.get_mut(job.point.condition as usize);
    side.ok_or_else(|| Failure::internal("a point of a server that is not listed"))
}

/// Whether the server is started for the measurement: an engine, or a deployment.
fn is_ours(spec: &Spec) -> bool {
    !matches!(spec.target, TargetSpec::Url(_))
}

/// Whether a server would answer both the same before a run: when, how much and how often it will be
/// asked makes no difference.
fn asks_alike(one: &Spec, other: &Spec) -> bool {
    let (from, to) = (&one.workload.source, &other.workload.source);
    let bare = |spec: &Spec| Spec {
        load: one.load.clone(),
        seed: 0,
        slos: Vec::new(),
        telemetry: None,
        metadata: one.metadata.clone(),
        workload: Workload { source: from.clone(), ..spec.workload.clone() },
        ..spec.clone()
    };
    from.kind() == to.kind()
        && from.chooses_output() == to.chooses_output()
        && one.workload.body.images.is_none()
        && bare(one) == bare(other)
}

/// The server that is deployed for the points of a set. At most one runs: two would share the
/// hardware. It is stopped when this is dropped.
struct CurrentDeployment<'a> {
    session: &'a Session,
    set: &'a SetDirectory,
    up: Option<RunningServer>,
}

impl CurrentDeployment<'_> {
    /// Makes sure that the server of a point runs, if it is to be deployed.
    fn provide(&mut self, job: &Job<'_>, secrets: &Secrets) -> Result<()> {
        let TargetSpec::Deployed(how) = &job.spec.target else {
            self.stop();
            return Ok(());
        };
        let can_answer = |up: &RunningServer| {
            up.server.deployed().is_some_and(|deployed| deployed.how == **how)
                && match how.renewal {
                    Renewal::EachRepetition => up.record.repetition == job.point.repetition,
                    Renewal::EachRun => false,
                    Renewal::Never => true,
                }
        };
        if !self.up.as_ref().is_some_and(can_answer) {
            self.stop();
            let up = RunningServer::deploy(job, secrets, self.session);
            self.up = Some(up.map_err(|not_up| not_up.failure)?);
        }
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(up) = self.up.take() {
            up.stop(self.set, self.session, None, None);
        }
    }
}

/// The server of some points of a set, which is stopped after the last.
struct RunningServer {
    server: Arc<Server>,
    record: DeploymentRecord,
}

impl RunningServer {
    fn new(server: Server, point: &Point) -> Self {
        let deployed = server.deployed();
        let facts = deployed.map(|deployed| deployed.facts.clone());
        let record = record(point, deployed.map(|deployed| deployed.log.as_path()));
        Self { server: Arc::new(server), record: DeploymentRecord { facts, ..record } }
    }

    /// Deploys the server of a point.
    fn deploy(
        job: &Job<'_>,
        secrets: &Secrets,
        session: &Session,
    ) -> Result<Self, Box<NotDeployed>> {
        let Point { condition, repetition, .. } = job.point;
        let log = deployed::free(&job.set.deployment_log(condition, repetition));
        Deployed::start(&job.spec, secrets, &log, session)
            .map(|deployed| Self::new(Server::Deployed(Box::new(deployed)), &job.point))
            .inspect_err(|not_up| {
                let departure = not_up.departure.clone();
                if departure.is_some() {
                    let record = record(&job.point, Some(&log));
                    store_record(job.set, session, &DeploymentRecord { departure, ..record });
                }
            })
    }

    /// Stops it, if it was deployed, and stores how that went. `trouble` is what went wrong before.
    fn stop(
        mut self,
        set: &SetDirectory,
        session: &Session,
        drained_after_s: Option<f64>,
        trouble: Option<String>,
    ) {
        let departure = self.server.deployed().and_then(|deployed| deployed.stop(session));
        self.record.departure = departure.map(|mut departure| {
            departure.troubles.extend(trouble);
            departure
        });
        self.record.drained_after_s = drained_after_s;
        store_record(set, session, &self.record);
    }
}

fn record(point: &Point, log: Option<&Path>) -> DeploymentRecord {
    let &Point { condition, repetition, .. } = point;
    let log = log.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let (facts, departure, drained_after_s) = (None, None, None);
    DeploymentRecord { condition, repetition, facts, departure, drained_after_s, log }
}

fn store_record(set: &SetDirectory, session: &Session, record: &DeploymentRecord) {
    if let Err(error) = set.write_deployment(record) {
        session.warn(format!("the record of the deployment is not stored: {error}"));
    }
}

impl Drop for CurrentDeployment<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The user's command that restarts a server between runs.
#[derive(Clone, Debug)]
struct Restart {
    command: String,
    /// How long the server has to answer again.
    timeout: Duration,
}

impl Restart {
    /// Whether the time is over, by a clock that was started with the restart.
    fn is_over(&self, clock: &SystemClock) -> bool {
        self.timeout <= Duration::from_nanos(clock.now().as_nanos())
    }

    /// Runs the command to its end.
    fn run(
        &self,
        clock: &SystemClock,
        condition: &Condition,
        log: &Path,
        interruption: &Interruption,
    ) -> Result<()> {
        let url = match &condition.spec.target {
            TargetSpec::Url(base) => base.to_string(),
            TargetSpec::Embedded | TargetSpec::Deployed(_) => String::new(),
        };
        let (flag, command, timeout) = ("--restart", self.command.as_str(), self.timeout);
        let variables =
            [("INFEROMETER_CONDITION", condition.name.as_str()), ("INFEROMETER_URL", &url)];
        let shell = Shell { flag, command, timeout, variables: &variables };
        shell.run(clock, log, interruption).map_err(|failure| {
            if !self.is_over(clock) {
                return failure;
            }
            failure.hint(
                "give it longer with --restart-timeout, or let it start its server in the background",
            )
        })
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

/// The line before a run. The reason of a run of a suite names its scenario.
fn opening(study: &StudySpec, sequence: &Study, point: &Point) -> String {
    let is_suite = study.suite().is_some();
    let server = match study.conditions.len() {
        2.. if !is_suite => format!("{}, ", study.conditions[point.condition as usize].name),
        _ => String::new(),
    };
    format!("{} {server}{}: …", run_number(sequence), sequence.why().unwrap_or_default())
}

/// The numbers of a cell, with the throughput that the server counted, if it does.
fn figures_of_cell(summary: &Summary) -> String {
    let counter = summary.server.as_ref().and_then(|server| server.generation_tokens.as_ref());
    match counter.and_then(|counter| counter.per_s) {
        Some(per_s) => figures(summary, Some(per_s)) + "; throughput by the server",
        None => figures(summary, None) + ", by the client",
    }
}

/// The numbers of a run, with this throughput, or with its own.
fn figures(summary: &Summary, output_per_s: Option<f64>) -> String {
    let value = |quantity: inferometer_analysis::Quantity| {
        quantity.value_in(summary).ok().map(|it| it.value)
    };
    format!(
        "{}, {} output tok/s, TTFT p99 {} ms",
        summary.verdict.key(),
        fmt::number(output_per_s.or_else(|| value(metric::OUTPUT_THROUGHPUT.quantity()))),
        // On an open loop a wait before sending is the server's doing too.
        fmt::number(value(summary.latency_origin().ttft().p99()))
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
            let at = parts.fold(String::new(), |at, part| format!("{at} of {part}"));
            let width = enough.half_width.map_or_else(
                || "not known: there are too few valid runs".to_owned(),
                |share| format!("±{} after {} runs", percent(share), level.points.len()),
            );
            let reached = if enough.reached { "reached" } else { "not reached" };
            let (quantity, wanted) = (&enough.quantity, percent(enough.target));
            lines.push(format!(
                "--stop-at {reached}: {quantity}{at} is {width} (requested: {wanted})"
            ));
        }
    }
    lines
}

/// `cell 12 of 256`, `, run 2 of 3` where there are several, and a load.
fn cell_label(study: &StudySpec, point: &Point, level: Level) -> String {
    let run = match study.repetition.runs.get() {
        1 => String::new(),
        runs => format!(", run {} of {runs}", point.repetition + 1),
    };
    let level = if level == Level::AsAsked { String::new() } else { format!(", {level}") };
    format!("cell {} of {}{run}{level}", point.condition + 1, study.conditions.len())
}

/// The summary of a stored run, or why it must be measured again: it is damaged or was cut short.
/// The journal is read for this, because a summary alone does not show that something was lost.
fn find_stored(directory: &RunDirectory) -> Result<Result<Summary, String>> {
    let stored = match directory.read() {
        Ok(stored) => stored,
        Err(
            error @ (StoreError::Unfinished { .. }
            | StoreError::JournalLost { .. }
            | StoreError::NotAJournal { .. }
            | StoreError::Incomplete { .. }
            | StoreError::Inconsistent { .. }
            | StoreError::Damaged { .. }
            | StoreError::Missing { .. }
            | StoreError::TooLong { .. }),
        ) => return Ok(Err(error.to_string())),
        // The run is not lost: another process holds it, a newer version wrote it, or the disk cannot
        // be read.
        Err(error) => return Err(Failure::from_usage(error)),
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
        RunState::Finished => measurement::seal_summary(directory, &stored)?,
        RunState::Running => {
            return Err(Failure::from_usage(StoreError::Busy { run: directory.path().to_owned() }));
        }
        RunState::Unfinished => return Ok(Err("it did not finish".to_owned())),
        RunState::Unreadable(why) => return Ok(Err(why)),
    };
    let ended_early = was_cut(&summary).then(|| summary.run.stop.text());
    Ok(ended_early.map_or(Ok(summary), |why| Err(format!("it ended early: {why}"))))
}

/// Whether a user, a crash or a missing server ended a run. What the server did to it is a result.
pub fn was_cut(summary: &Summary) -> bool {
    match summary.run.stop {
        RunStop::Drained
        | RunStop::Cut
        | RunStop::Recovered
        | RunStop::Unreachable
        | RunStop::WorkersLost => true,
        RunStop::PlanDone
        | RunStop::Unauthorized
        | RunStop::ClientExhausted
        | RunStop::Stalled
        | RunStop::ErrorBudget
        | RunStop::SloMissed
        | RunStop::Saturated => false,
    }
}

/// Whether no server answered, in a run that was too short to be given up.
pub fn reached_no_server(summary: &Summary) -> bool {
    summary.count(Outcome::Ok) == 0
        && summary.outcomes.iter().any(|(outcome, count)| {
            matches!(outcome, Outcome::TransportError | Outcome::TimeoutConnect) && 0 < *count
        })
}

/// Refuses a stored run that is not the one that the set describes.
fn check_fits(directory: &RunDirectory, spec: &Spec, simulated: bool) -> Result<()> {
    let manifest = directory.manifest().map_err(Failure::from_usage)?;
    let changed = |what: &str| {
        Failure::usage(format!("{}: {what}", directory.path().display()))
            .hint("the folder was changed; restore the original, or begin a new set")
    };
    // Each worker has the cores of its own machine.
    let client = manifest.merged.as_ref().map_or(&spec.client, |_| &manifest.spec.client);
    if manifest.spec != (Spec { client: client.clone(), ..spec.clone() }) {
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
    mut read: impl FnMut(&Point, &RunDirectory) -> Result<Option<Summary>>,
) -> Result<Replay> {
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

/// The same of its finished runs, whose summaries are `read`. A run that was cut is not finished.
pub fn replay_finished(
    set: &SetDirectory,
    manifest: &SetManifest,
    mut read: impl FnMut(&RunDirectory) -> Result<Summary>,
) -> Result<Replay> {
    replay(set, manifest, |_, run| match run.state() {
        RunState::Sealed | RunState::Finished => Ok(Some(read(run)?).filter(|it| !was_cut(it))),
        RunState::Unfinished | RunState::Running | RunState::Unreadable(_) => Ok(None),
    })
}

/// The summary of what is stored, however much of it is there.
pub fn summarize_stored(
    set: &SetDirectory,
    manifest: &SetManifest,
    results: &[PointResult],
) -> Result<SetSummary> {
    let Some(_) = manifest.study.matrix() else {
        return Ok(SetSummary::summarize(manifest, results));
    };
    let failures = set.failures().map_err(Failure::from_usage)?;
    let deployments = set.deployments().map_err(Failure::from_usage)?;
    Ok(SetSummary::summarize_matrix(manifest, results, &failures, &deployments))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use inferometer_model::spec::Dtype;

    use super::*;

    #[test]
    fn what_is_not_said_is_neither_idle_nor_at_work() {
        let of = |running, waiting| Gauges { running, waiting, ..Gauges::default() };
        assert_eq!(is_at_work(of(None, Some(0.0))), None);
        assert_eq!(is_at_work(of(Some(0.0), None)), Some(false));
        assert_eq!(is_at_work(of(Some(0.0), Some(2.0))), Some(true));
        assert_eq!(is_at_work(of(Some(1.0), Some(0.0))), Some(true));
    }

    const BUSY: Look = Ok(Gauges { running: Some(1.0), ..NOTHING });
    const IDLE: Look = Ok(Gauges { running: Some(0.0), ..NOTHING });
    const NOTHING: Gauges =
        Gauges { running: None, waiting: None, swapped: None, kv_usage: None, cpu_kv_usage: None };

    /// Looks in turn, each of which takes so many seconds, and the paths that were asked.
    fn waited(looks: &[Look], each_s: u64) -> (Drained, Vec<String>) {
        let now = Cell::new(Duration::ZERO);
        let mut asked = Vec::new();
        let mut left = looks.iter();
        let look = |path: &str| {
            asked.push(path.to_owned());
            now.set(now.get() + Duration::from_secs(each_s));
            *left.next().unwrap()
        };
        let found = wait("/metrics", || now.get(), look, |_| None);
        (found, asked)
    }

    #[test]
    fn a_look_that_fails_is_not_the_last_and_many_are() {
        let slow = Err(MissReason::Timeout);
        assert_eq!(waited(&[BUSY, slow, slow, BUSY, slow, IDLE], 1).0, Drained::Idle(6.0));
        assert_eq!(waited(&[BUSY, slow, slow, slow], 1).0, Drained::Unknown);
        assert_eq!(waited(&[BUSY, BUSY, BUSY], 20).0, Drained::Busy);
        assert_eq!(waited(&[Ok(NOTHING)], 1).0, Drained::Unknown);
    }

    #[test]
    fn metrics_at_the_other_place_are_found_there() {
        let (found, asked) = waited(&[Err(MissReason::Status(404)), BUSY, IDLE], 1);
        assert_eq!(found, Drained::Idle(3.0));
        let other = "/prometheus/metrics";
        assert_eq!(asked, ["/metrics", other, other]);
    }

    fn engine(hardware: &str, model: &str) -> EngineTable {
        EngineTable {
            hardware: Some(hardware.to_owned()),
            model: Some(model.to_owned()),
            dtype: Some(Dtype::Half.into()),
            ..EngineTable::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_a_result_and_a_misspelt_name_is_none() {
        let (small, large) = ("v100-pcie-16gb", "deepseek-r1-distill-qwen-32b");
        let failure = unfit(&engine(small, large)).unwrap().unwrap();
        assert_eq!(failure.cause, Some(LikelyCause::OutOfMemory));
        assert_eq!(failure.stage, DeploymentStage::Start);
        assert!(!failure.what.is_empty() && !failure.log.is_empty(), "{failure:?}");
        let part = "GiB are needed on each GPU before any KV cache, and";
        assert!(failure.what.contains(part), "{}", failure.what);
        let short = EngineTable { max_model_len: Some(2048), ..engine("h100-pcie", large) };
        assert_eq!(unfit(&short).unwrap(), None);
        let long = EngineTable { max_model_len: Some(128_000), ..engine(small, "llama-3.2-3b") };
        let long = unfit(&long).unwrap().unwrap();
        assert!(long.what.contains("128,000 tokens need"), "{}", long.what);
        assert!(long.what.contains(", enough for "), "{}", long.what);

        let wide = EngineTable { tp: Some(3), ..engine("h100-pcie", large) };
        let wide = unfit(&wide).unwrap().unwrap();
        assert_eq!(wide.cause, Some(LikelyCause::CannotSpread));
        assert!(wide.what.contains("--tp 3 does not divide"), "{}", wide.what);
        let astray = format!("{:?}", unfit(&engine("h100-pcy", large)).unwrap_err());
        assert!(astray.contains("unknown") && astray.contains("h100-pcie"), "{astray}");
    }

    use inferometer_model::SpecDraft;

    fn run(command: &str, timeout: Duration) -> (Result<()>, String) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("restart.log");
        let url = Some("http://127.0.0.1:9".parse().unwrap());
        let spec = SpecDraft { url, ..SpecDraft::default() }.resolve().unwrap();
        let condition = Condition { name: "v1".to_owned(), spec };
        let restart = Restart { command: command.to_owned(), timeout };
        let ended = restart.run(&SystemClock::new(), &condition, &log, &Interruption::default());
        (ended, std::fs::read_to_string(&log).unwrap())
    }

    #[test]
    fn a_command_knows_its_server_and_its_words_are_kept() {
        let command = "echo \"$INFEROMETER_CONDITION $INFEROMETER_URL\"; echo oops >&2";
        let (ended, log) = run(command, Duration::from_mins(1));
        ended.unwrap();
        assert!(log.starts_with("v1 http://127.0.0.1:9") && log.ends_with("\noops\n"), "{log}");
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_an_error_with_its_last_lines() {
        let (ended, _) = run("echo one; echo two; exit 7", Duration::from_mins(1));
        let failure = format!("{:?}", ended.unwrap_err());
        assert!(failure.contains("exit status: 7") && failure.contains("  two"), "{failure}");
        let (ended, _) = run("echo waiting; sleep 1000", Duration::from_millis(300));
        let failure = format!("{:?}", ended.unwrap_err());
        assert!(failure.contains("did not end within") && failure.contains("waiting"), "{failure}");
    }
}
