//! Plays a matrix: several lanes take one deployment at a time. Each is deployed, measured at every
//! load, drained and stopped. A cell that fails is a result; only a problem of this machine, or a
//! signal, stops a matrix.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use inferometer_analysis::{RunFigures, Summary};
use inferometer_engine::profile::{Profile, ProfileError, Shortage};
use inferometer_load::{SystemClock, Target};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause};
use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::{EngineTable, TargetSpec};
use inferometer_model::study::{DeploymentRecord, Point, PointFailure};
use inferometer_model::telemetry::{Gauges, MissReason};
use inferometer_model::{Clock, Outcome, Spec};
use inferometer_runner::deployed::{self, Deployed, Reason};
use inferometer_runner::interruption::Interruption;
use inferometer_runner::live::{Live, Server};
use inferometer_runner::measurement::Planned;
use inferometer_runner::preflight::fetching;
use inferometer_runner::secrets::Secrets;
use inferometer_runner::{Exit, Failure, Session, embedded};
use inferometer_target::metrics;

use super::{
    Backend, Job, VirtualRunner, Work, failed_cell, found_nobody, measured_cell, opening_cell,
    was_cut,
};
use crate::matrix::{Deployment, Queue, Sharing};

/// Every lane has a run in memory.
const LANES_MAX: usize = 64;
const GIB: f64 = (1_u64 << 30) as f64;

impl Work<'_> {
    /// Measures all deployments. If a lane must stop, all do.
    pub(super) fn measure_deployments(
        self,
        planned: Vec<Deployment>,
        backend: &Backend,
    ) -> Result<(), Failure> {
        let lanes = self.lanes(backend, planned.len());
        let session = self.player.session;
        // Several lanes would report progress at the same time.
        let mut quiet = if 1 < lanes { session.only_warnings() } else { session.clone() };
        quiet.ceiling /= lanes;
        let sharing = match backend {
            Backend::Live { .. } => Sharing::OneAtATime,
            Backend::Virtual => Sharing::Free,
        };
        let queue =
            &SharedQueue { queue: Mutex::new(Queue::new(planned, sharing)), freed: Condvar::new() };
        let lane = || {
            let mut rest = Duration::ZERO;
            while let Some(taken) = queue.take() {
                let measured = self.measure_deployment(&taken.deployment, backend, &quiet, rest);
                if measured.inspect_err(|_| queue.queue().give_up())? {
                    rest = self.manifest.study.repetition.cool_down;
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
            let panicked = |_| Err(Failure::internal("a lane of the matrix panicked"));
            let ended = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(panicked));
            let ended: Vec<Result<(), Failure>> = ended.collect();
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
        lanes.min(deployments).clamp(1, LANES_MAX)
    }

    /// Measures the points of a deployment that are missing, and returns whether there were any. An
    /// error is never the server's.
    fn measure_deployment(
        self,
        deployment: &Deployment,
        backend: &Backend,
        quiet: &Session,
        rest: Duration,
    ) -> Result<bool, Failure> {
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
        session.talk(&opening_cell(&self.manifest.study, first));
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
                measure_cell(self, &side.secrets, deployment, &left, quiet)?;
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
    ) -> Result<(), Failure> {
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

    pub(super) fn measured(self, point: &Point, summary: Summary) {
        let line = measured_cell(&self.manifest.study, point, &summary);
        self.player.session.talk(&line);
        self.ledger().measured(*point, without_figures(summary), true);
    }

    /// Stores that these points failed, all for the same reason.
    pub(super) fn failed(
        self,
        points: &[Point],
        failure: &DeploymentFailure,
    ) -> Result<(), Failure> {
        let at = if self.manifest.simulated { None } else { now() };
        for point in points {
            let noted = PointFailure { point: *point, at: at.clone(), failure: failure.clone() };
            self.player.set.write_failure(&noted)?;
            let line = failed_cell(&self.manifest.study, point, failure);
            self.player.session.talk(&line);
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

fn failed_at(stage: DeploymentStage, what: &str) -> DeploymentFailure {
    DeploymentFailure { stage, what: what.to_owned(), cause: None, log: Vec::new() }
}

/// A measurement that failed, as the failure of a cell.
fn not_measured(failure: &Failure) -> DeploymentFailure {
    let failed = failed_at(DeploymentStage::Measure, failure.message());
    DeploymentFailure { log: failure.lines(), ..failed }
}

/// RFC 3339, UTC.
fn now() -> Option<String> {
    let nanos = SystemClock::new().anchor().realtime_ns;
    let now = jiff::Timestamp::from_nanosecond(nanos.into()).ok()?;
    Some(now.round(jiff::Unit::Second).unwrap_or(now).to_string())
}

/// Hands out the deployments.
struct SharedQueue {
    queue: Mutex<Queue>,
    /// Notified whenever a preset is free again.
    freed: Condvar,
}

impl SharedQueue {
    fn take(&self) -> Option<TakenDeployment<'_>> {
        let mut queue = self.queue();
        loop {
            if let Some(deployment) = queue.take() {
                return Some(TakenDeployment { queue: self, deployment });
            }
            if queue.is_empty() {
                return None;
            }
            queue = self.freed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A deployment that a lane works on. Its preset is free when this is dropped, whatever happened.
struct TakenDeployment<'queue> {
    queue: &'queue SharedQueue,
    deployment: Deployment,
}

impl Drop for TakenDeployment<'_> {
    fn drop(&mut self) {
        let mut queue = self.queue.queue();
        queue.finished(self.deployment.preset);
        if thread::panicking() {
            queue.give_up();
        }
        drop(queue);
        self.queue.freed.notify_all();
    }
}

/// Measures these points of a deployment. Whatever happens, the server is stopped.
fn measure_cell(
    work: Work<'_>,
    secrets: &Secrets,
    deployment: &Deployment,
    left: &[Point],
    session: &Session,
) -> Result<(), Failure> {
    let Some(first) = left.first() else { return Ok(()) };
    let spec = work.job(first, None)?.spec;
    let server = match start(work, secrets, deployment, &spec, session)? {
        Ok(server) => Arc::new(server),
        Err(failure) => return work.failed(left, &failure),
    };
    let mut cell = DeployedCell { work, secrets, session, server, drained: Drained::Unsaid };
    let died = cell.measure_all(left);
    cell.stop(deployment)?;
    match died? {
        None => Ok(()),
        Some(failure) => {
            let mut lost = left.to_vec();
            lost.retain(|point| !work.ledger().knows(point));
            work.failed(&lost, &failure)
        }
    }
}

/// Starts or deploys the server; the inner error is the result of the cell.
fn start(
    work: Work<'_>,
    secrets: &Secrets,
    deployment: &Deployment,
    spec: &Spec,
    session: &Session,
) -> Result<Result<Server, DeploymentFailure>, Failure> {
    let Deployment { condition, repetition, .. } = *deployment;
    match &spec.target {
        TargetSpec::Deployed(_) => {
            let set = work.player.set;
            let log = deployed::free(&set.deployment_log(condition, repetition));
            let not_up = match Deployed::start(spec, secrets, &log, session) {
                Ok(up) => return Ok(Ok(Server::Deployed(Box::new(up)))),
                Err(not_up) => *not_up,
            };
            if let Some(record) = not_up.record(condition, repetition, &log) {
                set.write_deployment(&record)?;
            }
            match not_up.reason {
                Reason::Interrupted(exit) => Err(Failure::interrupted(exit)),
                Reason::Failed { found, .. } => Ok(Err(found)),
            }
        }
        TargetSpec::Url(_) => Server::new(spec).map(Ok),
        TargetSpec::Embedded => {
            let failed = |failure: Failure| failed_at(DeploymentStage::Start, failure.message());
            Ok(Server::new(spec).map_err(failed))
        }
    }
}

fn as_death(failure: DeploymentFailure) -> DeploymentFailure {
    DeploymentFailure { stage: DeploymentStage::Died, ..failure }
}

/// A cell whose server is up.
struct DeployedCell<'a> {
    work: Work<'a>,
    secrets: &'a Secrets,
    session: &'a Session,
    server: Arc<Server>,
    /// After the last run.
    drained: Drained,
}

impl DeployedCell<'_> {
    /// Measures one load after the other. Returns why the server is gone, if it is.
    fn measure_all(&mut self, left: &[Point]) -> Result<Option<DeploymentFailure>, Failure> {
        for point in left {
            let died = self.measure(&self.work.job(point, None)?)?;
            if died.is_some() {
                return Ok(died);
            }
            if let Drained::Stopped(exit) = self.drained {
                return Err(Failure::interrupted(exit));
            }
        }
        Ok(None)
    }

    fn measure(&mut self, job: &Job<'_>) -> Result<Option<DeploymentFailure>, Failure> {
        let summary = match self.try_measure(job) {
            Ok(summary) => summary,
            Err(failure) if failure.is_our_own() => return Err(failure),
            Err(failure) => return self.not_measured(&job.point, &failure),
        };
        if was_cut(&summary) {
            self.session.interruption.check()?;
        }
        let is_spoilt = was_cut(&summary) || summary.count(Outcome::Ok) < summary.attempted;
        let died = self.died(&summary);
        if died.is_some() && is_spoilt {
            self.work.player.set.abandon(job.point.number)?;
        } else {
            self.work.measured(&job.point, summary);
        }
        Ok(died)
    }

    fn try_measure(&mut self, job: &Job<'_>) -> Result<Summary, Failure> {
        let planned = Planned::new(job.spec.clone())?;
        let live = Live::reach(Arc::clone(&self.server), self.secrets, &planned)?;
        self.drained = Drained::Unsaid;
        let measured = live.measure(planned, job.location, self.session)?;
        let path = job.spec.telemetry.as_ref().map(|telemetry| telemetry.path.as_str());
        self.drained = until_idle(live.target(), path, &self.session.interruption);
        Ok(measured.summary)
    }

    /// The server is to blame: it is gone, or its answers are of no use at this load.
    fn not_measured(
        &self,
        point: &Point,
        failure: &Failure,
    ) -> Result<Option<DeploymentFailure>, Failure> {
        let mut found = not_measured(failure);
        if let Some(deployed) = self.server.deployed() {
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
        let stop = if found_nobody(summary) { RunStop::Unreachable } else { summary.run.stop };
        match self.server.deployed() {
            Some(deployed) => deployed.lost(Some(stop)).map(as_death),
            None => (stop == RunStop::Unreachable)
                .then(|| failed_at(DeploymentStage::Died, "it could not be reached any more")),
        }
    }

    fn stop(self, deployment: &Deployment) -> Result<(), Failure> {
        let deployed = self.server.deployed();
        let mut departure = deployed.and_then(|deployed| deployed.stop(self.session));
        if let (Drained::Busy, Some(departure)) = (self.drained, &mut departure) {
            let trouble = format!("it was still busy {PATIENCE:?} after its last run");
            departure.troubles.push(trouble);
        }
        let drained_after_s = match self.drained {
            Drained::Idle(after_s) => Some(after_s),
            Drained::Unsaid | Drained::Busy | Drained::Stopped(_) => None,
        };
        Ok(self.work.player.set.write_deployment(&DeploymentRecord {
            condition: deployment.condition,
            repetition: deployment.repetition,
            facts: deployed.map(|deployed| deployed.facts.clone()),
            departure,
            drained_after_s,
            log: deployed.and_then(|deployed| deployed::name_of(&deployed.log)),
        })?)
    }
}

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drained {
    /// It was idle after so many seconds.
    Idle(f64),
    /// It does not report what it does.
    Unsaid,
    /// It was still busy when we stopped waiting.
    Busy,
    /// A signal came.
    Stopped(Exit),
}

/// For servers that keep generating for clients that left.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A signal is noticed between two looks, so a look must be short.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// A server that finishes its work answers late, or not at once.
const LOST_MAX: u32 = 3;

/// `path` is where the server has its metrics; `None` without telemetry.
fn until_idle(target: &Target, path: Option<&str>, interruption: &Interruption) -> Drained {
    let Some(path) = path else { return Drained::Unsaid };
    let clock = SystemClock::new();
    let waited = || Duration::from_nanos(clock.now().as_nanos());
    wait(path, waited, |path| look(target, path), |time| interruption.wait(time))
}

/// What one look brought: the server's gauges, or why there are none.
type Look = Result<Gauges, MissReason>;

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
            Ok(None) => return Drained::Unsaid,
            Ok(Some(false)) => return Drained::Idle(waited.as_secs_f64()),
            Ok(Some(true)) => lost = 0,
            Err(missed) => match metrics::other_path(path, missed) {
                Some(other) => path = other,
                None => lost += 1,
            },
        }
        if lost == LOST_MAX {
            return Drained::Unsaid;
        }
        if PATIENCE <= waited {
            return Drained::Busy;
        }
        if let Some(exit) = rest(LOOK_EVERY) {
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
    let answered = fetching(target, async |fetch| {
        tokio::time::timeout(LOOK_LIMIT, fetch.fetch(request)).await
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
pub fn unfit(spec: &EngineTable) -> Result<Option<DeploymentFailure>, Failure> {
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
            "{:.2} GiB are needed on each GPU before any KV cache, and {:.2} GiB may be used",
            before_cache / GIB,
            memory.budget / GIB
        );
    }
    let longest = remedies.iter().find_map(|remedy| remedy.strip_prefix("--max-model-len "));
    let enough = longest.map_or_else(String::new, |tokens| format!(", enough for {tokens} tokens"));
    format!(
        "{max_model_len} tokens need {:.2} GiB of KV cache on each GPU, and {:.2} GiB are \
         left{enough}",
        memory.needed / GIB,
        memory.left / GIB
    )
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
        assert_eq!(waited(&[BUSY, slow, slow, slow], 1).0, Drained::Unsaid);
        assert_eq!(waited(&[BUSY, BUSY, BUSY], 20).0, Drained::Busy);
        assert_eq!(waited(&[Ok(NOTHING)], 1).0, Drained::Unsaid);
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
        assert!(long.what.contains("128000 tokens need"), "{}", long.what);
        assert!(long.what.contains(", enough for "), "{}", long.what);

        let wide = EngineTable { tp: Some(3), ..engine("h100-pcie", large) };
        let wide = unfit(&wide).unwrap().unwrap();
        assert_eq!(wide.cause, Some(LikelyCause::CannotSpread));
        assert!(wide.what.contains("--tp 3 does not divide"), "{}", wide.what);
        let astray = format!("{:?}", unfit(&engine("h100-pcy", large)).unwrap_err());
        assert!(astray.contains("unknown") && astray.contains("h100-pcie"), "{astray}");
    }
}
