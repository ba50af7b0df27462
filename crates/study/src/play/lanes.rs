//! The deployments of a matrix, measured by several lanes, each with one server at a time.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use inferometer_analysis::set::PointResult;
use inferometer_analysis::{RunFigures, Summary};
use inferometer_load::SystemClock;
use inferometer_model::campaign::{Point, PointFailure, Question};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage};
use inferometer_model::spec::TargetSpec;
use inferometer_runner::{Failure, Session};

use super::virtual_time::VirtualRunner;
use super::{Backend, PointRunner, Work, cell, progress, unfit};
use crate::matrix::{Deployment, Next, Queue, Sharing};

/// Every lane has a run in memory.
const LANES_MAX: usize = 64;

/// The results so far, from all lanes.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    results: BTreeMap<u32, PointResult>,
    failures: BTreeMap<u32, PointFailure>,
    /// Points that this process has measured.
    played: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) measured: usize,
    pub(super) failed: usize,
    /// By this process.
    pub(super) played: usize,
}

impl Counts {
    pub(super) fn known(self) -> usize {
        self.measured + self.failed
    }
}

impl Ledger {
    /// Starts with the failures that are stored.
    pub(super) fn new(failures: Vec<PointFailure>) -> Self {
        let failures = failures.into_iter().map(|failure| (failure.point.number, failure));
        Self(Mutex::new(Entries { failures: failures.collect(), ..Entries::default() }))
    }

    pub(super) fn measured(&self, point: Point, summary: Summary, is_new: bool) {
        let mut entries = self.entries();
        entries.results.insert(point.number, PointResult { point, summary });
        entries.played += usize::from(is_new);
    }

    fn failed(&self, failure: PointFailure) {
        let mut entries = self.entries();
        entries.failures.insert(failure.point.number, failure);
        entries.played += 1;
    }

    fn has_failed(&self, point: &Point) -> bool {
        self.entries().failures.contains_key(&point.number)
    }

    pub(super) fn knows(&self, point: &Point) -> bool {
        self.entries().results.contains_key(&point.number) || self.has_failed(point)
    }

    /// The points that were measured, in their order.
    pub(super) fn points(&self) -> Vec<Point> {
        self.entries().results.values().map(|result| result.point).collect()
    }

    pub(super) fn counts(&self) -> Counts {
        let Entries { results, failures, played } = &*self.entries();
        Counts { measured: results.len(), failed: failures.len(), played: *played }
    }

    /// Everything, in the order of the points.
    pub(super) fn close(self) -> (Vec<PointResult>, Vec<PointFailure>) {
        let entries = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        (entries.results.into_values().collect(), entries.failures.into_values().collect())
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
        let desk = &Desk { queue: Mutex::new(Queue::new(planned, sharing)), freed: Condvar::new() };
        let lane = || {
            let mut rest = Duration::ZERO;
            while let Some(taken) = desk.take() {
                let measured = self.measure_deployment(&taken.deployment, backend, &quiet, rest);
                if measured.inspect_err(|_| desk.queue().give_up())? {
                    rest = self.manifest.campaign.repetition.cool_down;
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
        let Question::Matrix(matrix) = &self.manifest.campaign.question else { return 1 };
        let lanes = self.player.options.lanes.unwrap_or(matrix.lanes).get();
        let lanes = usize::try_from(lanes).unwrap_or(usize::MAX);
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
        let (session, campaign) = (self.player.session, &self.manifest.campaign);
        session.interruption.check()?;
        let mut left = Vec::new();
        for point in deployment.points.iter().filter(|point| !self.ledger.has_failed(point)) {
            match self.stored(point)? {
                Some(summary) => self.ledger.measured(*point, without_figures(summary), false),
                None if self.player.options.wants(point) => left.push(*point),
                None => {}
            }
        }
        let Some(first) = left.first() else { return Ok(false) };
        if let Backend::Live { .. } = backend {
            session.interruption.rest(rest)?;
        }
        session.talk(&progress::opening_cell(campaign, first));
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
                cell::measure(self, side.secrets(), deployment, &left, quiet)?;
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
        let mut runner = VirtualRunner::new(quiet);
        for point in left {
            let before = deployment.points.iter().take_while(|it| it.number < point.number);
            let before = before.filter_map(|it| self.manifest.campaign.spec_of(it)).collect();
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
        let campaign = &self.manifest.campaign;
        self.player.session.talk(&progress::measured_cell(campaign, point, &summary));
        self.ledger.measured(*point, without_figures(summary), true);
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
            let line = progress::failed_cell(&self.manifest.campaign, point, failure);
            self.player.session.talk(&line);
            self.ledger.failed(noted);
        }
        Ok(())
    }
}

/// A matrix has hundreds of runs: what only the charts of a single run need is dropped.
fn without_figures(summary: Summary) -> Summary {
    Summary { figures: RunFigures::default(), ..summary }
}

/// A measurement that failed, as the failure of a cell.
pub(super) fn not_measured(failure: &Failure) -> DeploymentFailure {
    DeploymentFailure {
        stage: DeploymentStage::Measure,
        what: failure.message().to_owned(),
        cause: None,
        log: failure.lines(),
    }
}

/// RFC 3339, UTC.
fn now() -> Option<String> {
    let nanos = SystemClock::new().anchor().realtime_ns;
    let now = jiff::Timestamp::from_nanosecond(nanos.into()).ok()?;
    Some(now.round(jiff::Unit::Second).unwrap_or(now).to_string())
}

/// Hands out the deployments.
struct Desk {
    queue: Mutex<Queue>,
    /// Notified whenever a preset is free again.
    freed: Condvar,
}

impl Desk {
    fn take(&self) -> Option<Taken<'_>> {
        let mut queue = self.queue();
        loop {
            match queue.take() {
                Next::Deployment(deployment) => return Some(Taken { desk: self, deployment }),
                Next::Done => return None,
                Next::Wait => {
                    queue = self.freed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A deployment that a lane works on. Its preset is free when this is dropped, whatever happened.
struct Taken<'desk> {
    desk: &'desk Desk,
    deployment: Deployment,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut queue = self.desk.queue();
        queue.finished(self.deployment.preset);
        if thread::panicking() {
            queue.give_up();
        }
        drop(queue);
        self.desk.freed.notify_all();
    }
}
