//! Driving a plan: the threads, and what they bring back together.

use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_model::journal::{ClientFacts, JournalBatch};
use inferometer_model::spec::Limits;
use inferometer_model::{Clock, Plan, RequestId, RunEnding};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedSender;

use crate::bodies::Bodies;
use crate::clock::SystemClock;
use crate::conductor::{Conductor, Report, Watch};
use crate::control::Control;
use crate::cores::pin_to;
use crate::dispatcher::Dispatcher;
use crate::driver::{Part, play, runtime};
use crate::feed::{Feed, JournalClosed};
use crate::progress::Progress;
use crate::resources::{CpuReading, SmallPages};
use crate::socket::switch_stamps_on;
use crate::target::Target;
use crate::wire::Turn;

/// All that a run needs. Driving blocks the calling thread until the run is over.
#[derive(Clone)]
pub struct Drive {
    pub plan: Arc<dyn Plan>,
    pub target: Arc<Target>,
    pub clock: SystemClock,
    pub control: Control,
    pub progress: Arc<Progress>,
    /// Requests that this machine can hold in flight.
    pub ceiling: usize,
    pub drivers: Drivers,
    /// How much longer than a request's own limits a run without output may go on.
    pub stall_grace: Duration,
    pub journal: SyncSender<JournalBatch>,
}

impl Drive {
    /// The usual grace: long enough for any server that is only slow.
    pub const STALL_GRACE: Duration = Duration::from_mins(1);
}

/// How many threads drive, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drivers {
    pub count: NonZeroUsize,
    /// The cores that they are pinned to, in turn; empty leaves them to the scheduler.
    pub cores: Vec<usize>,
}

impl Drivers {
    pub const ONE: Self = Self { count: NonZeroUsize::MIN, cores: Vec::new() };
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("target", &self.target).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("a driver could not start: {0}")]
    Start(#[from] io::Error),
    #[error("the journal stopped taking records; the run was cut short")]
    JournalClosed,
    #[error("the task of request {0} ended abnormally")]
    Task(RequestId),
    #[error("a driver ended abnormally")]
    Driver,
}

impl From<JournalClosed> for LoadError {
    fn from(_: JournalClosed) -> Self {
        Self::JournalClosed
    }
}

/// Plays the plan to its end, or to the user's.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the journal's sender ends with the drive, and with it the writer"
)]
pub fn drive(drive: Drive) -> Result<RunEnding, LoadError> {
    switch_stamps_on();
    let _small_pages = SmallPages::keep();
    let bodies = Arc::new(Bodies::start(Arc::clone(&drive.plan), Arc::clone(&drive.target))?);
    let conducting = runtime(drive.clock, Turn::default())?;
    let drivers = Dispatcher::lanes_of(&drive.plan.bounds(), drive.drivers.count.get());
    let prepared = prepare(&drive, drivers)?;
    let cpu_before = CpuReading::take();
    // The plan's moments count from here: a little ahead, so that every driver is there by then.
    let began = drive.clock.now() + START_AHEAD + START_AHEAD_PER_DRIVER * part_count(drivers);
    let dispatcher = Dispatcher::new(Arc::clone(&drive.plan), drive.ceiling, began, drivers);
    let conductor = Arc::new(Conductor::new(dispatcher));
    let turns: Vec<Turn> = prepared.iter().map(|(_, turn)| turn.clone()).collect();
    let (sender, reports) = tokio::sync::mpsc::unbounded_channel();
    let mut threads = Vec::new();
    for (lane, prepared) in prepared.into_iter().enumerate() {
        let (conductor, bodies) = (Arc::clone(&conductor), Arc::clone(&bodies));
        let part = Part { lane, drivers, conductor, bodies };
        threads.push(start(drive.clone(), part, prepared, sender.clone())?);
    }
    drop(sender);
    let limits = (drive.target.limits.drain, output_limit(&drive.target) + drive.stall_grace);
    let feed = Feed::new(drive.journal.clone());
    let mut watch = Watch::new(&conductor, drive.clock, &drive.control, turns, limits, feed);
    let reports = conducting.block_on(watch.until_all_reported(reports))?;
    for thread in threads {
        thread.join().map_err(|_| LoadError::Driver)?;
    }
    let cpu = cpu_before.and_then(CpuReading::until_now);
    let mut client = ClientFacts { cpu, ..ClientFacts::default() };
    for report in reports {
        client.merge(&report?);
    }
    Ok(watch.write_ending(began, client)?)
}

type Prepared = (Runtime, Turn);

/// What starting a thread and making its driver takes, generously.
const START_AHEAD: Duration = Duration::from_millis(2);
const START_AHEAD_PER_DRIVER: Duration = Duration::from_micros(500);

fn part_count(drivers: usize) -> u32 {
    u32::try_from(drivers).unwrap_or(u32::MAX)
}

fn prepare(drive: &Drive, drivers: usize) -> io::Result<Vec<Prepared>> {
    let prepare_one = |_| {
        let turn = Turn::default();
        Ok((runtime(drive.clock, turn.clone())?, turn))
    };
    (0..drivers).map(prepare_one).collect()
}

fn start(
    drive: Drive,
    part: Part,
    (runtime, turn): Prepared,
    reports: UnboundedSender<Report>,
) -> io::Result<JoinHandle<()>> {
    let cores = &drive.drivers.cores;
    let core = cores.get(part.lane % cores.len().max(1)).copied();
    std::thread::Builder::new().name(format!("driver-{}", part.lane)).spawn(move || {
        if let Some(core) = core {
            pin_to(core);
        }
        let playing = AssertUnwindSafe(|| play(&runtime, drive, part, turn));
        // A driver that panics must say so: the others would play on for a run that is lost.
        let report = catch_unwind(playing).unwrap_or(Err(LoadError::Driver));
        // A closed channel means that nobody waits for the report.
        let _ = reports.send(report);
    })
}

/// How long the limits let a request wait for output.
fn output_limit(target: &Target) -> Duration {
    let Limits { connect, first_token, idle, total, .. } = target.limits;
    let longest = if target.streams() { connect + first_token.max(idle) } else { total };
    longest.min(total)
}
