//! Plays a study over the folder of a set: runs that are stored and complete count, the others are
//! measured. Resuming is therefore the same as playing for the first time.
//!
//! A repeat, sweep or suite asks the [`Study`] for one point after the other. The points of a matrix
//! are known in advance, so several lanes take one deployment at a time (`lanes`).

mod lanes;
mod live;
mod progress;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_load::SystemClock;
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::study::{
    Condition, Level, Point, PointFailure, Question, SetManifest, Stage, StudySpec,
};
use inferometer_model::{Outcome, Spec};
use inferometer_runner::live::{ceiling, check_ceiling};
use inferometer_runner::measurement::RunLocation;
use inferometer_runner::secrets::Secrets;
use inferometer_runner::simulation::VirtualEngine;
use inferometer_runner::simulator::Simulator;
use inferometer_runner::{Event, Exit, Failure, Session, embedded};
use inferometer_store::{NewSet, RunStore, SetDirectory};

pub use self::lanes::unfit;
pub use self::live::Side;
use self::live::{CurrentDeployment, LiveRunner, Restart};
pub use self::stored::{Replay, found_nobody, replay, summarize_stored, was_cut};
use crate::Study;
use crate::grid::planned_places;
use crate::matrix::deployments;

/// How the points of a study are measured.
#[derive(Debug)]
pub enum Backend {
    /// Over the wire.
    Live {
        /// One for each condition.
        sides: Vec<Side>,
        restart_timeout: Duration,
    },
    /// In virtual time.
    Virtual,
}

impl Backend {
    /// Over the wire, with the secrets of each condition.
    pub fn live(secrets: Vec<Secrets>, restart_timeout: Duration) -> Self {
        Self::Live { sides: secrets.into_iter().map(Side::new).collect(), restart_timeout }
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
        let files: Vec<Option<PathBuf>> = secrets.iter().map(Secrets::key_file).collect();
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
    let is_matrix = matches!(study.question, Question::Matrix(_));
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
        campaign: study,
        simulated: matches!(backend, Backend::Virtual),
        key_files: backend.key_files(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        realtime_ns: SystemClock::new().anchor().realtime_ns,
    })?)
}

/// The command that resumes a set.
pub fn resume_command(set: &SetDirectory) -> String {
    let command = match set.manifest().map(|manifest| manifest.campaign.question) {
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
        let mut sequence = Study::new(manifest.campaign.clone()).map_err(Failure::from_usage)?;
        self.session.interruption.remember(resume_command(self.set));
        let failures = self.failures()?;
        let ledger = Ledger(Mutex::new(Entries { failures, ..Entries::default() }));
        let work = Work { player: self, manifest: &manifest, ledger: &ledger };
        let planned = deployments(&manifest.campaign);
        let points: usize = planned.iter().map(|deployment| deployment.points.len()).sum();
        let is_matrix = matches!(manifest.campaign.question, Question::Matrix(_));
        let result = if is_matrix {
            work.measure_deployments(planned, &backend)
        } else {
            work.measure_with(&mut sequence, backend)
        };
        let counts = ledger.counts();
        let is_complete = !is_matrix || counts.known() == points;
        // A user who has just typed the command to resume knows it.
        let is_news =
            |failure: &Failure| !self.is_resumed || 0 < counts.played || failure.is_interruption();
        if result.as_ref().map_or_else(is_news, |()| !is_complete) {
            let stored = if is_matrix {
                format!(
                    "{} of {points} runs are measured, {} failed and {} are left,",
                    counts.measured,
                    counts.failed,
                    points.saturating_sub(counts.known())
                )
            } else {
                stored_runs(counts.measured)
            };
            let what = format!("{stored} in {}", self.set.path().display());
            self.session.emit(Event::Unfinished { what, command: resume_command(self.set) });
        }
        result?;
        if is_complete && counts.played == 0 {
            let runs = counts.known();
            self.session.talk(&format!("the set is already complete ({runs} runs)"));
        }
        let points = ledger.close();
        let summary = summarize_stored(self.set, &manifest, &points)?;
        let summary = summary.with_limits(sequence.limits());
        progress::precision(&summary).iter().for_each(|line| self.session.talk(line));
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
struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    results: BTreeMap<u32, PointResult>,
    /// The points that failed, by their numbers.
    failures: BTreeSet<u32>,
    /// Points that this process has measured.
    played: usize,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    measured: usize,
    failed: usize,
    /// By this process.
    played: usize,
}

impl Counts {
    fn known(self) -> usize {
        self.measured + self.failed
    }
}

impl Ledger {
    fn measured(&self, point: Point, summary: Summary, is_new: bool) {
        let mut entries = self.entries();
        entries.results.insert(point.number, PointResult { point, summary });
        entries.played += usize::from(is_new);
    }

    fn failed(&self, point: &Point) {
        let mut entries = self.entries();
        entries.failures.insert(point.number);
        entries.played += 1;
    }

    fn has_failed(&self, point: &Point) -> bool {
        self.entries().failures.contains(&point.number)
    }

    fn knows(&self, point: &Point) -> bool {
        self.entries().results.contains_key(&point.number) || self.has_failed(point)
    }

    /// The points that were measured, in their order.
    fn points(&self) -> Vec<Point> {
        self.entries().results.values().map(|result| result.point).collect()
    }

    fn counts(&self) -> Counts {
        let Entries { results, failures, played } = &*self.entries();
        Counts { measured: results.len(), failed: failures.len(), played: *played }
    }

    /// All results, in the order of the points.
    fn close(self) -> Vec<PointResult> {
        let entries = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        entries.results.into_values().collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    ledger: &'a Ledger,
}

impl<'a> Work<'a> {
    fn measure_with(self, sequence: &mut Study, backend: Backend) -> Result<(), Failure> {
        let session = self.player.session;
        match backend {
            Backend::Virtual => {
                let mut runner = VirtualRunner { session, kept: None };
                self.measure_points(sequence, &mut |job| runner.measure(job))
            }
            Backend::Live { sides, restart_timeout: timeout } => {
                let command = self.manifest.campaign.repetition.restart.clone();
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
            self.ledger.measured(point, summary, is_new);
        }
        Ok(())
    }

    fn measure_next(
        self,
        point: &Point,
        sequence: &Study,
        measure: &mut dyn FnMut(&Job<'_>) -> Result<Summary, Failure>,
    ) -> Result<Summary, Failure> {
        let (session, study) = (self.player.session, &self.manifest.campaign);
        let counts = self.ledger.counts();
        if counts.played == 0 && 0 < counts.measured {
            session.talk(&format!("{} already; resuming", stored_runs(counts.measured)));
        }
        let rest = study.repetition.cool_down;
        if counts.played == 0 || rest.is_zero() || self.manifest.simulated {
            session.interruption.check()?;
        } else {
            session.talk(&format!("resting for {rest:?} …"));
            session.interruption.rest(rest)?;
        }
        session.talk(&progress::opening(study, sequence, point));
        let results = self.ledger.points();
        let is_suite = matches!(study.question, Question::Suite(_));
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
        session.talk(&progress::headline(sequence, &summary));
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
        let study = &self.manifest.campaign;
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
        let why = match stored::find(&directory)? {
            Ok(summary) if options.rejects(point, &summary) => {
                set.unseal()?;
                let failed = summary.attempted - summary.count(Outcome::Ok);
                format!("it has {failed} requests that failed")
            }
            Ok(summary) => {
                let spec = self.job(point, None)?.spec;
                stored::check_fits(&directory, &spec, self.manifest.simulated)?;
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
