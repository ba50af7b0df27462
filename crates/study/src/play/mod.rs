//! Plays a study over the folder of a set: runs that are stored and complete count, the others are
//! measured. Resuming is therefore the same as playing for the first time.
//!
//! A repeat, sweep or suite asks the [`Study`] for one point after the other. The points of a matrix
//! are known in advance, so several lanes take one deployment at a time (`lanes`). A cell that fails
//! is a result: only a problem of this machine, or a signal, stops a matrix.

mod cell;
mod drain;
mod lanes;
mod live;
mod progress;
mod restart;
mod stored;
mod unfit;
mod virtual_time;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_load::SystemClock;
use inferometer_model::campaign::{
    CampaignSpec, Condition, Level, Point, PointFailure, Question, SetManifest, Stage,
};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{Outcome, Spec};
use inferometer_runner::live::{ceiling, check_ceiling};
use inferometer_runner::location::RunLocation;
use inferometer_runner::secrets::Secrets;
use inferometer_runner::simulation::VirtualEngine;
use inferometer_runner::{Event, Exit, Failure, Session, embedded};
use inferometer_store::{NewSet, RunStore, SetDirectory};

use self::lanes::Ledger;
use self::live::LiveRunner;
pub use self::live::Side;
pub use self::stored::{Replay, found_nobody, replay, summarize_stored, was_cut};
pub use self::unfit::unfit;
use self::virtual_time::VirtualRunner;
use crate::Study;
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
            Self::Live { sides, .. } => Some(sides.iter().map(Side::secrets).cloned().collect()),
            Self::Virtual => None,
        }
    }

    /// Asks every server that is already running what it serves. A server that cannot be used is
    /// then found before a set is created.
    pub fn probe(&mut self, campaign: &CampaignSpec, talk: &dyn Fn(String)) -> Result<(), Failure> {
        match (self, &campaign.question) {
            (Self::Virtual, _) | (_, Question::Matrix(_)) => Ok(()),
            (Self::Live { sides, .. }, _) => live::probe(sides, campaign, talk),
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
pub fn check(campaign: &CampaignSpec, backend: &Backend) -> Result<(), Failure> {
    Study::new(campaign.clone()).map_err(Failure::from_usage)?;
    check_restart(campaign, backend)?;
    let is_matrix = matches!(campaign.question, Question::Matrix(_));
    for Condition { name, spec } in &campaign.conditions {
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

fn check_restart(campaign: &CampaignSpec, backend: &Backend) -> Result<(), Failure> {
    if campaign.repetition.restart.is_none() {
        return Ok(());
    }
    let any =
        |is: fn(&TargetSpec) -> bool| campaign.conditions.iter().any(|it| is(&it.spec.target));
    if any(|target| matches!(target, TargetSpec::Deployed(_))) {
        return Err(Failure::usage("--restart does not apply to a server that is deployed here")
            .hint("leave it out, and use --renew to choose when the server is deployed anew"));
    }
    if matches!(backend, Backend::Live { .. }) && !any(|target| *target == TargetSpec::Embedded) {
        return Ok(());
    }
    let when = match campaign.question {
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
pub fn checked_ceiling(campaign: &CampaignSpec, backend: &Backend) -> Result<usize, Failure> {
    let ceiling = match (backend, campaign.conditions.first()) {
        (Backend::Live { .. }, Some(condition)) => ceiling(&condition.spec),
        (Backend::Virtual, _) | (_, None) => usize::MAX,
    };
    known_specs(campaign).iter().try_for_each(|spec| check_ceiling(spec, ceiling))?;
    Ok(ceiling)
}

/// The specs of all levels that are known in advance, one for each condition of each level.
pub fn known_specs(campaign: &CampaignSpec) -> Vec<Spec> {
    let conditions = 0..u32::try_from(campaign.conditions.len()).unwrap_or(u32::MAX);
    let crossed = |levels: &[Level]| -> Vec<(u32, Level)> {
        let with_all = |&level: &Level| conditions.clone().map(move |condition| (condition, level));
        levels.iter().flat_map(with_all).collect()
    };
    let levels = match &campaign.question {
        Question::Repeat => crossed(&[Level::AsAsked]),
        Question::Sweep(sweep) => crossed(&sweep.levels),
        Question::Matrix(matrix) => crossed(&matrix.levels),
        Question::Suite(suite) => (0..)
            .zip(&suite.scenarios)
            .flat_map(|(condition, it)| it.levels.iter().map(move |&level| (condition, level)))
            .collect(),
    };
    let spec = |(condition, level)| {
        let (seed, stage) = (campaign.seed, Stage::Planned);
        campaign.spec_of(&Point { number: 0, condition, level, repetition: 0, seed, stage })
    };
    levels.into_iter().filter_map(spec).collect()
}

/// Creates the set of a study.
pub fn create(
    store: &RunStore,
    campaign: CampaignSpec,
    backend: &Backend,
) -> Result<SetDirectory, Failure> {
    Ok(store.create_set(NewSet {
        campaign,
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
        let study = Study::new(manifest.campaign.clone());
        let mut study = study.map_err(Failure::from_usage)?;
        self.session.interruption.remember(resume_command(self.set));
        let ledger = Ledger::new(self.failures()?);
        let work = Work { player: self, manifest: &manifest, ledger: &ledger };
        let planned = deployments(&manifest.campaign);
        let points: usize = planned.iter().map(|deployment| deployment.points.len()).sum();
        let is_matrix = matches!(manifest.campaign.question, Question::Matrix(_));
        let result = if is_matrix {
            work.measure_deployments(planned, &backend)
        } else {
            work.measure_points(&mut study, backend)
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
        self.finish(manifest, &study, ledger, is_complete)
    }

    fn finish(
        &self,
        manifest: SetManifest,
        study: &Study,
        ledger: Ledger,
        is_complete: bool,
    ) -> Result<Played, Failure> {
        let (points, failures) = ledger.close();
        let summary = if let Question::Matrix(_) = manifest.campaign.question {
            SetSummary::of_matrix(&manifest, &points, &failures, &self.set.deployments()?)
        } else {
            SetSummary::of(&manifest, &points).with_limits(study.limits())
        };
        for line in progress::precision(&summary) {
            self.session.talk(&line);
        }
        if is_complete {
            self.set.write_summary(&summary.to_json_bytes())?;
        }
        Ok(Played { manifest, summary, points, is_complete })
    }

    /// The failures that are stored. Those that are to be retried are moved aside, and with them the
    /// summary of the set.
    fn failures(&self) -> Result<Vec<PointFailure>, Failure> {
        let stored = self.set.failures().map_err(Failure::from_usage)?;
        let is_retried =
            |it: &PointFailure| self.options.retry_failed && self.options.wants(&it.point);
        let (retried, kept): (Vec<_>, Vec<_>) = stored.into_iter().partition(is_retried);
        if !retried.is_empty() {
            self.set.unseal()?;
        }
        for failure in &retried {
            self.set.abandon_failure(failure.point.number)?;
        }
        Ok(kept)
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

/// Measures one point after the other.
trait PointRunner {
    /// A signal before the first request is a failure, and nothing is stored.
    fn measure(&mut self, job: &Job<'_>) -> Result<Summary, Failure>;

    /// Stops what was started for the points: there are no more.
    fn finish(&mut self) {}
}

/// The state that all lanes share.
#[derive(Clone, Copy)]
struct Work<'a> {
    player: &'a Player<'a>,
    manifest: &'a SetManifest,
    ledger: &'a Ledger,
}

impl<'a> Work<'a> {
    /// Asks the study for one point after the other.
    fn measure_points(self, study: &mut Study, backend: Backend) -> Result<(), Failure> {
        let (session, campaign) = (self.player.session, &self.manifest.campaign);
        let mut runner: Box<dyn PointRunner + '_> = match backend {
            Backend::Virtual => Box::new(VirtualRunner::new(session)),
            Backend::Live { sides, restart_timeout } => {
                Box::new(LiveRunner::new(sides, restart_timeout, campaign, session))
            }
        };
        while let Some(point) = study.next() {
            let stored = self.stored(&point)?;
            let is_new = stored.is_none();
            let summary = match stored {
                Some(summary) => summary,
                None => self.measure_next(&point, study, runner.as_mut())?,
            };
            study.finished(&summary);
            self.ledger.measured(point, summary, is_new);
        }
        runner.finish();
        Ok(())
    }

    fn measure_next(
        self,
        point: &Point,
        study: &Study,
        runner: &mut dyn PointRunner,
    ) -> Result<Summary, Failure> {
        let (session, campaign) = (self.player.session, &self.manifest.campaign);
        let counts = self.ledger.counts();
        if counts.played == 0 && 0 < counts.measured {
            session.talk(&format!("{} already; resuming", stored_runs(counts.measured)));
        }
        let rest = campaign.repetition.cool_down;
        if counts.played == 0 || rest.is_zero() || self.manifest.simulated {
            session.interruption.check()?;
        } else {
            session.talk(&format!("resting for {rest:?} …"));
            session.interruption.rest(rest)?;
        }
        session.talk(&progress::opening(campaign, study, point));
        let results = self.ledger.points();
        let is_suite = matches!(campaign.question, Question::Suite(_));
        let in_round = results.iter().filter(|it| it.repetition == point.repetition);
        let before = is_suite.then(|| in_round.filter_map(|it| campaign.spec_of(it)).collect());
        let mut job = self.job(point, before)?;
        // A run that was moved aside has used the server, too.
        let abandoned = self.player.set.abandoned()?;
        let was_used = results.iter().any(|it| is_suite || it.condition == point.condition)
            || abandoned.iter().any(|(number, _)| point.number <= *number);
        job.needs_restart = was_used && job.before.as_ref().is_none_or(Vec::is_empty);
        let summary = runner.measure(&job)?;
        self.check_not_cut(&job, &summary)?;
        session.talk(&progress::headline(study, &summary));
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
        let campaign = &self.manifest.campaign;
        let index = usize::try_from(point.condition).unwrap_or(usize::MAX);
        let (Some(condition), Some(spec)) =
            (campaign.conditions.get(index), campaign.spec_of(point))
        else {
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
