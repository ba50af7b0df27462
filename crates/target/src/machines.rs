//! What machines do while a run goes on: the GPUs and the client's own
//! processors and network.
//!
//! The readers of GPUs are in [`gpu`](crate::gpu); the client's own figures come from the kernel's
//! files. A [`Sampler`] reads all of them periodically.

#[cfg(test)]
mod tests;

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use inferometer_model::telemetry::{
    ClientSample, DeviceReading, DeviceSource, DevicesAbsence, DevicesSample, LookMiss, MissedLook,
    TelemetryEntry,
};
use inferometer_model::{Clock, Moment};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::gpu::{DEVICES_MAX, GpuProbe, LOOK_LIMIT};
use crate::system::memory_bytes;

/// Moments at whole periods after the beginning, whatever the looks take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) begin: Moment,
    pub(crate) every: Duration,
}

impl Grid {
    /// The tick to wait for after that of number `last`: never one that has passed, and not before
    /// the server had as much rest as the last look took.
    pub(crate) fn next(self, last: u64, now: Moment, took: Duration) -> u64 {
        let rested = (now + took).since(self.begin).unwrap_or_default();
        let due = rested.as_nanos().div_ceil(self.every.as_nanos().max(1));
        u64::try_from(due).unwrap_or(u64::MAX).max(last + 1)
    }

    pub(crate) fn moment(self, tick: u64) -> Moment {
        let every = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX);
        self.begin + Duration::from_nanos(every.saturating_mul(tick))
    }
}

/// Remembers the totals of the look before, for the shares of the time between.
#[derive(Debug, Default)]
struct ClientWatch {
    before: Option<Totals>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    at: Moment,
    cpu: Option<CpuTicks>,
    own: Option<Duration>,
}

/// Time of all hardware threads together, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTicks {
    all: u64,
    idle: u64,
    steal: u64,
}

impl ClientWatch {
    fn look(&mut self, at: Moment) -> ClientSample {
        let text = |path: &str| fs::read_to_string(path).ok();
        let now = Totals { at, cpu: text("/proc/stat").as_deref().and_then(ticks), own: own() };
        let net = text("/proc/net/dev").as_deref().and_then(traffic);
        let memory = text("/proc/meminfo");
        let memory_available_bytes =
            memory.as_deref().and_then(|text| memory_bytes(text, "MemAvailable:"));
        let (cpu_share, steal_share, own_cpus) = self.since(&now);
        self.before = Some(now);
        ClientSample {
            at,
            cpu_share,
            steal_share,
            own_cpus,
            received_bytes: net.map(|(received, _)| received),
            sent_bytes: net.map(|(_, sent)| sent),
            memory_available_bytes,
        }
    }

    /// Share of all, share stolen, and processors of our own since the look before.
    fn since(&self, now: &Totals) -> (Option<f64>, Option<f64>, Option<f64>) {
        let Some(before) = self.before else { return (None, None, None) };
        let ticks = before.cpu.zip(now.cpu);
        let share = |part: fn(CpuTicks) -> u64| {
            let (then, now) = ticks?;
            let all = now.all.checked_sub(then.all).filter(|all| 0 < *all)?;
            // The kernel counts waiting for disks so that it may go back.
            Some((part(now).saturating_sub(part(then)) as f64 / all as f64).min(1.0))
        };
        let own = || {
            let used = now.own?.checked_sub(before.own?)?;
            let passed = now.at.since(before.at).filter(|passed| !passed.is_zero())?;
            Some(used.as_secs_f64() / passed.as_secs_f64())
        };
        (share(|ticks| ticks.all - ticks.idle), share(|ticks| ticks.steal), own())
    }
}

/// The line of all processors. Guests are counted within the user's time already.
fn ticks(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> =
        line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, _, _, idle, waiting, ..] = *fields.as_slice() else { return None };
    let all = fields.iter().copied().fold(0, u64::saturating_add);
    let idle = idle.saturating_add(waiting);
    Some(CpuTicks { all, idle, steal: fields.get(7).copied().unwrap_or(0) })
}

fn own() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    u64::try_from(micros).ok().map(Duration::from_micros)
}

/// Bytes received and sent over all interfaces.
fn traffic(table: &str) -> Option<(u64, u64)> {
    let of_line = |line: &str| {
        let (_, counts) = line.split_once(':')?;
        let counts: Vec<&str> = counts.split_whitespace().collect();
        Some((counts.first()?.parse::<u64>().ok()?, counts.get(8)?.parse::<u64>().ok()?))
    };
    table
        .lines()
        .filter_map(of_line)
        .reduce(|sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)))
}

/// How often, and how long a look may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    pub every: Duration,
    /// Until the GPUs have been seen for the first time; a driver that sleeps takes seconds.
    pub open_limit: Duration,
    pub look_limit: Duration,
}

/// How the GPUs are read, or why they are not.
#[derive(Debug)]
pub enum Devices {
    Asked(GpuProbe),
    Absent(DevicesAbsence),
}

#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    #[error("cannot start the thread that samples the machines: {0}")]
    Thread(io::Error),
    #[error("the thread that samples the machines ended abnormally")]
    Panicked,
}

/// A thread that looks until it is stopped. `J` is where it writes things down, and `E` what can go
/// wrong with that.
#[derive(Debug)]
pub struct Sampler<J, E> {
    events: Sender<Event>,
    thread: Option<JoinHandle<Result<J, E>>>,
}

impl Sampling {
    pub fn new(every: Duration) -> Self {
        Self { every, open_limit: Duration::from_secs(10), look_limit: LOOK_LIMIT }
    }
}

impl<J: Send + 'static, E: Send + 'static> Sampler<J, E> {
    /// Returns after the first look, so that a run which begins now lies between two of them, or when
    /// it takes too long.
    pub fn start(
        sampling: Sampling,
        clock: impl Clock + Clone + Send + 'static,
        devices: Devices,
        journal: J,
        append: fn(&mut J, &TelemetryEntry) -> Result<(), E>,
    ) -> Result<Self, SamplerError> {
        let (events, received) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel::<()>();
        let reader = match devices {
            Devices::Absent(absence) => Err(absence),
            Devices::Asked(opening) => Ok(Watcher::start(opening, clock.clone(), events.clone())
                .map_err(SamplerError::Thread)?),
        };
        let body = move || {
            let mut rounds = Rounds {
                sampling,
                clock,
                client: ClientWatch::default(),
                reader: None,
                journal,
                append,
            };
            rounds.begin(reader, &received)?;
            drop(ready);
            rounds.play(&received)
        };
        let thread =
            Builder::new().name("machines".to_owned()).spawn(body).map_err(SamplerError::Thread)?;
        // Nothing is ever sent: the wait ends when the thread lets go of its end.
        let _ = is_ready.recv();
        Ok(Self { events, thread: Some(thread) })
    }

    /// Looks once more, and gives the journal back, or the first error of writing.
    pub fn stop(mut self) -> Result<Result<J, E>, SamplerError> {
        let _ = self.events.send(Event::Stop);
        let thread = self.thread.take().ok_or(SamplerError::Panicked)?;
        thread.join().map_err(|_panic| SamplerError::Panicked)
    }
}

impl<J, E> Drop for Sampler<J, E> {
    fn drop(&mut self) {
        // After `stop` it is not received any more.
        let _ = self.events.send(Event::Stop);
    }
}

/// What the thread waits for.
#[derive(Debug)]
enum Event {
    Stop,
    /// The GPUs are not read.
    Blind(DevicesAbsence),
    Looked {
        source: DeviceSource,
        began: Moment,
        ended: Moment,
        /// `None` when it failed.
        devices: Option<Vec<DeviceReading>>,
    },
}

/// The thread that looks at the GPUs. It may hang in a driver; then it is left behind.
#[derive(Debug)]
struct Watcher {
    /// Each message asks for one look.
    ask: Sender<()>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Asked at this moment, and not answered yet.
    Busy(Moment),
    /// Asked, and given up.
    Late,
    /// Not to be asked before this moment.
    Resting(Moment),
}

impl Watcher {
    /// Opens, and looks for the first time without being asked.
    fn start(
        opening: GpuProbe,
        clock: impl Clock + Send + 'static,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        let asked_at = clock.now();
        let body = move || {
            let mut reader = match (opening.0)() {
                Ok(reader) => reader,
                Err(absence) => return drop(events.send(Event::Blind(absence))),
            };
            loop {
                let began = clock.now();
                let devices = (reader.look)().ok().filter(|devices| !devices.is_empty());
                let (source, ended) = (reader.source, clock.now());
                let looked = Event::Looked { source, began, ended, devices };
                if events.send(looked).is_err() || asked.recv().is_err() {
                    return;
                }
            }
        };
        Builder::new().name("gpus".to_owned()).spawn(body)?;
        Ok(Self { ask, state: State::Busy(asked_at) })
    }
}

/// The thread's work.
struct Rounds<C, J, E> {
    sampling: Sampling,
    clock: C,
    client: ClientWatch,
    reader: Option<Watcher>,
    journal: J,
    append: fn(&mut J, &TelemetryEntry) -> Result<(), E>,
}

impl<C: Clock, J, E> Rounds<C, J, E> {
    /// The first look at everything.
    fn begin(
        &mut self,
        reader: Result<Watcher, DevicesAbsence>,
        received: &Receiver<Event>,
    ) -> Result<(), E> {
        self.look_at_client()?;
        match reader {
            Err(absence) => self.write(&TelemetryEntry::DevicesAbsent(absence)),
            Ok(watcher) => {
                self.reader = Some(watcher);
                match received.recv_timeout(self.sampling.open_limit) {
                    Ok(event) => self.handle(event).map(drop),
                    Err(_) => Ok(()),
                }
            }
        }
    }

    fn play(mut self, received: &Receiver<Event>) -> Result<J, E> {
        let grid = Grid { begin: self.clock.now(), every: self.sampling.every };
        let mut tick = 0;
        loop {
            tick = grid.next(tick, self.clock.now(), Duration::ZERO);
            loop {
                let wait = grid.moment(tick).since(self.clock.now()).unwrap_or_default();
                let Ok(event) = received.recv_timeout(wait) else { break };
                if self.handle(event)? {
                    return self.end(received);
                }
            }
            self.look_at_client()?;
            self.look_at_devices()?;
        }
    }

    /// One look more, which may take as long as any.
    fn end(mut self, received: &Receiver<Event>) -> Result<J, E> {
        self.look_at_client()?;
        if let Some(watcher) = &mut self.reader {
            let now = self.clock.now();
            if matches!(watcher.state, State::Resting(_)) && watcher.ask.send(()).is_ok() {
                watcher.state = State::Busy(now);
            }
            if matches!(watcher.state, State::Busy(_)) {
                match received.recv_timeout(self.sampling.look_limit) {
                    Ok(event) => drop(self.handle(event)?),
                    Err(_) => self.miss(now, LookMiss::Timeout)?,
                }
            }
        }
        Ok(self.journal)
    }

    /// Writes an event; returns true when it is the last.
    fn handle(&mut self, event: Event) -> Result<bool, E> {
        let (source, began, ended, devices) = match event {
            Event::Stop => return Ok(true),
            Event::Blind(absence) => {
                self.reader = None;
                return self.write(&TelemetryEntry::DevicesAbsent(absence)).map(|()| false);
            }
            Event::Looked { source, began, ended, devices } => (source, began, ended, devices),
        };
        let Some(watcher) = &mut self.reader else { return Ok(false) };
        let took = ended.since(began).unwrap_or_default();
        let was_late = watcher.state == State::Late;
        watcher.state = State::Resting(ended + took);
        let at = began + took / 2;
        match devices {
            // A late reading is as good: it has its time and duration.
            Some(mut devices) => {
                devices.truncate(DEVICES_MAX as usize);
                devices.sort_by_key(|device| device.index);
                self.write(&TelemetryEntry::Devices(DevicesSample { at, took, source, devices }))?;
            }
            // It was counted when it was given up.
            None if was_late => {}
            None => self.miss(at, LookMiss::Failed)?,
        }
        Ok(false)
    }

    fn look_at_client(&mut self) -> Result<(), E> {
        let sample = self.client.look(self.clock.now());
        self.write(&TelemetryEntry::Client(sample))
    }

    /// Asks for a look, unless one is under way or was slow.
    fn look_at_devices(&mut self) -> Result<(), E> {
        let now = self.clock.now();
        let Some(watcher) = &mut self.reader else { return Ok(()) };
        match watcher.state {
            State::Resting(until) if until <= now => {
                if watcher.ask.send(()).is_err() {
                    self.reader = None;
                    return self.miss(now, LookMiss::Failed);
                }
                watcher.state = State::Busy(now);
                Ok(())
            }
            State::Busy(since) if since + self.sampling.look_limit <= now => {
                watcher.state = State::Late;
                self.miss(now, LookMiss::Timeout)
            }
            State::Busy(_) | State::Late | State::Resting(_) => self.miss(now, LookMiss::BackedOff),
        }
    }

    fn miss(&mut self, at: Moment, reason: LookMiss) -> Result<(), E> {
        self.write(&TelemetryEntry::DevicesMissed(MissedLook { at, reason }))
    }

    fn write(&mut self, entry: &TelemetryEntry) -> Result<(), E> {
        (self.append)(&mut self.journal, entry)
    }
}

#[cfg(test)]
mod client_tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read_and_others_are_not() {
        let stat = "cpu  100 0 50 800 20 0 5 25 7 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5\n";
        assert_eq!(ticks(stat), Some(CpuTicks { all: 1_000, idle: 820, steal: 25 }));
        assert_eq!(ticks("cpu  100 0 fifty 800 20\n"), None);
        assert_eq!(ticks("cpu0 1 2 3 4 5\n"), None);
        let net = "Inter-|   Receive |  Transmit\n face |bytes    packets\n    \
                   lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0\n  \
                   eth0:2000 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n";
        assert_eq!(traffic(net), Some((3_000, 1_030)));
        assert_eq!(traffic("nothing"), None);
        assert_eq!(
            memory_bytes("MemTotal: 9 kB\nMemAvailable:   2048 kB\n", "MemAvailable:"),
            Some(2 << 20)
        );
        assert_eq!(memory_bytes("MemTotal: 9 kB\n", "MemAvailable:"), None);
    }

    #[test]
    fn shares_are_of_the_time_between_two_looks() {
        let totals = |second: u64, all, idle, steal, own_ms| Totals {
            at: Moment::from_nanos(second * 1_000_000_000),
            cpu: Some(CpuTicks { all, idle, steal }),
            own: Some(Duration::from_millis(own_ms)),
        };
        let watch = ClientWatch { before: Some(totals(1, 1_000, 900, 10, 500)) };
        let (cpu, steal, own) = watch.since(&totals(3, 1_400, 1_000, 30, 4_500));
        assert_eq!((cpu, steal, own), (Some(0.75), Some(0.05), Some(2.0)));
        // No tick has passed, or the clock did not move: nothing is not zero.
        assert_eq!(watch.since(&totals(1, 1_000, 900, 10, 500)), (None, None, None));
        assert_eq!(ClientWatch::default().since(&totals(1, 1, 1, 0, 0)), (None, None, None));
    }

    #[test]
    fn this_machine_tells() {
        let mut watch = ClientWatch::default();
        let first = watch.look(Moment::ZERO);
        assert_eq!((first.cpu_share, first.own_cpus), (None, None));
        assert!(first.memory_available_bytes.is_some_and(|bytes| 0 < bytes));
        let second = watch.look(Moment::from_nanos(1_000_000_000));
        assert!(second.own_cpus.is_some_and(|own| 0.0 <= own));
    }
}
