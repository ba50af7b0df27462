//! Looks at the machines again and again while a run goes on, and never disturbs it: the kernel's
//! files at every tick, and the GPUs by a thread that nobody waits for, one look at a time.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use inferometer_model::telemetry::{
    DeviceReading, DeviceSource, DevicesAbsence, DevicesSample, LookMiss, MissedLook,
    TelemetryEntry,
};
use inferometer_model::{Clock, Moment};

use super::client::ClientWatch;
use super::eyes::Opening;
use super::reading::{DEVICES_MAX, LOOK_LIMIT};
use crate::grid::Grid;

/// How often, and how long a look may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    pub every: Duration,
    /// Until the GPUs have been seen for the first time; a driver that sleeps takes seconds.
    pub open_limit: Duration,
    pub look_limit: Duration,
}

/// Who tells of the GPUs, or why nobody does.
#[derive(Debug)]
pub enum Devices {
    Asked(Opening),
    Absent(DevicesAbsence),
}

#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    #[error("cannot start the thread that looks at the machines: {0}")]
    Thread(io::Error),
    #[error("the thread that looks at the machines ended abnormally")]
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
    const OPEN_LIMIT: Duration = Duration::from_secs(10);

    pub fn new(every: Duration) -> Self {
        Self { every, open_limit: Self::OPEN_LIMIT, look_limit: LOOK_LIMIT }
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
        let (events, heard) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel::<()>();
        let eyes = match devices {
            Devices::Absent(absence) => Err(absence),
            Devices::Asked(opening) => Ok(Watcher::start(opening, clock.clone(), events.clone())
                .map_err(SamplerError::Thread)?),
        };
        let body = move || {
            let mut rounds = Rounds {
                sampling,
                clock,
                client: ClientWatch::default(),
                eyes: None,
                journal,
                append,
            };
            rounds.begin(eyes, &heard)?;
            drop(ready);
            rounds.play(&heard)
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
        // After `stop` nobody hears it any more.
        let _ = self.events.send(Event::Stop);
    }
}

/// What the thread waits for.
#[derive(Debug)]
enum Event {
    Stop,
    /// Nobody sees the GPUs.
    Blind(DevicesAbsence),
    Looked(Looked),
}

#[derive(Debug)]
struct Looked {
    source: DeviceSource,
    began: Moment,
    ended: Moment,
    /// `None` when it failed.
    devices: Option<Vec<DeviceReading>>,
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
    /// Asked at this moment.
    Busy(Moment),
    /// Asked, and given up.
    Late,
    /// Not to be asked before this moment.
    Resting(Moment),
}

impl Watcher {
    /// Opens, and looks for the first time without being asked.
    fn start(
        opening: Opening,
        clock: impl Clock + Send + 'static,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        let asked_at = clock.now();
        let body = move || {
            let mut eyes = match opening.open() {
                Ok(eyes) => eyes,
                Err(absence) => return drop(events.send(Event::Blind(absence))),
            };
            loop {
                let began = clock.now();
                let devices = eyes.look().ok().filter(|devices| !devices.is_empty());
                let looked = Looked { source: eyes.source, began, ended: clock.now(), devices };
                if events.send(Event::Looked(looked)).is_err() || asked.recv().is_err() {
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
    eyes: Option<Watcher>,
    journal: J,
    append: fn(&mut J, &TelemetryEntry) -> Result<(), E>,
}

impl<C: Clock, J, E> Rounds<C, J, E> {
    /// The first look at everything.
    fn begin(
        &mut self,
        eyes: Result<Watcher, DevicesAbsence>,
        heard: &Receiver<Event>,
    ) -> Result<(), E> {
        self.look_at_client()?;
        match eyes {
            Err(absence) => self.write(&TelemetryEntry::DevicesAbsent(absence)),
            Ok(watcher) => {
                self.eyes = Some(watcher);
                match heard.recv_timeout(self.sampling.open_limit) {
                    Ok(event) => self.hear(event).map(drop),
                    Err(_) => Ok(()),
                }
            }
        }
    }

    fn play(mut self, heard: &Receiver<Event>) -> Result<J, E> {
        let grid = Grid { begin: self.clock.now(), every: self.sampling.every };
        let mut tick = 0;
        loop {
            tick = grid.next(tick, self.clock.now(), Duration::ZERO);
            loop {
                let wait = grid.moment(tick).since(self.clock.now()).unwrap_or_default();
                let Ok(event) = heard.recv_timeout(wait) else { break };
                if self.hear(event)? {
                    return self.end(heard);
                }
            }
            self.look_at_client()?;
            self.look_at_devices()?;
        }
    }

    /// One look more, which may take as long as any.
    fn end(mut self, heard: &Receiver<Event>) -> Result<J, E> {
        self.look_at_client()?;
        if let Some(watcher) = &mut self.eyes {
            let now = self.clock.now();
            if matches!(watcher.state, State::Resting(_)) && watcher.ask.send(()).is_ok() {
                watcher.state = State::Busy(now);
            }
            if matches!(watcher.state, State::Busy(_)) {
                match heard.recv_timeout(self.sampling.look_limit) {
                    Ok(event) => drop(self.hear(event)?),
                    Err(_) => self.miss(now, LookMiss::Timeout)?,
                }
            }
        }
        Ok(self.journal)
    }

    /// Writes down what was heard; true when it is over.
    fn hear(&mut self, event: Event) -> Result<bool, E> {
        match event {
            Event::Stop => return Ok(true),
            Event::Blind(absence) => {
                self.eyes = None;
                self.write(&TelemetryEntry::DevicesAbsent(absence))?;
            }
            Event::Looked(looked) => self.hear_look(looked)?,
        }
        Ok(false)
    }

    fn hear_look(&mut self, looked: Looked) -> Result<(), E> {
        let Looked { source, began, ended, devices } = looked;
        let Some(watcher) = &mut self.eyes else { return Ok(()) };
        let took = ended.since(began).unwrap_or_default();
        let was_late = watcher.state == State::Late;
        watcher.state = State::Resting(ended + took);
        let at = began + took / 2;
        match devices {
            // What comes late is as good: it says when it was looked at, and how long that took.
            Some(mut devices) => {
                devices.truncate(DEVICES_MAX as usize);
                devices.sort_by_key(|device| device.index);
                self.write(&TelemetryEntry::Devices(DevicesSample { at, took, source, devices }))
            }
            // It was counted when it was given up.
            None if was_late => Ok(()),
            None => self.miss(at, LookMiss::Failed),
        }
    }

    fn look_at_client(&mut self) -> Result<(), E> {
        let sample = self.client.look(self.clock.now());
        self.write(&TelemetryEntry::Client(sample))
    }

    /// Asks for a look, unless one is under way or was slow.
    fn look_at_devices(&mut self) -> Result<(), E> {
        let now = self.clock.now();
        let Some(watcher) = &mut self.eyes else { return Ok(()) };
        match watcher.state {
            State::Resting(until) if until <= now => {
                if watcher.ask.send(()).is_err() {
                    self.eyes = None;
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
mod tests;
