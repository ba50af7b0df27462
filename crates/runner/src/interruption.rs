//! Which signals a benchmark received, and what has to happen before the process may leave.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inferometer_load::Stop;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::failure::{Exit, Failure, Result};

/// Which signal ended the run, if one did.
#[derive(Clone, Debug, Default)]
pub struct Interruption(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// In the order in which they came.
    signals: Mutex<Vec<i32>>,
    came: Condvar,
    /// The command that finishes what was begun.
    remedy: Mutex<Option<String>>,
    /// Groups of processes that end with this one.
    companions: Arc<Mutex<Vec<Pid>>>,
    /// What is being sent, by each that sends.
    sending: Arc<Mutex<Vec<Sending>>>,
}

/// Whose requests are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sending {
    /// Requests of a warm-up, which are not stored.
    Unstored,
    /// Requests of a run, which are stored.
    Stored,
}

impl Interruption {
    /// The first signal names the exit code.
    pub fn exit(&self) -> Option<Exit> {
        self.wait(Duration::ZERO)
    }

    /// Fails if a signal was received.
    pub fn check(&self) -> Result<()> {
        self.rest(Duration::ZERO)
    }

    /// Waits for this long; fails as soon as a signal was received.
    pub fn rest(&self, time: Duration) -> Result<()> {
        self.wait(time).map_or(Ok(()), |exit| Err(Failure::interrupted(exit)))
    }

    /// Waits for this long, or until a signal comes. Returns at once where one came before.
    pub fn wait(&self, time: Duration) -> Option<Exit> {
        self.next(0, time).map(Exit::from_signal)
    }

    /// Waits for this long for a signal after so many that are known.
    pub fn next(&self, known: usize, time: Duration) -> Option<i32> {
        let Shared { signals, came, .. } = &*self.0;
        let (signals, _) = came
            .wait_timeout_while(locked(signals), time, |signals| signals.len() <= known)
            .unwrap_or_else(PoisonError::into_inner);
        signals.get(known).copied()
    }

    /// How to finish what was begun, for a user who will not wait.
    pub fn remember(&self, remedy: String) {
        *locked(&self.0.remedy) = Some(remedy);
    }

    /// A group of processes of ours. A user who will not wait for its end does not have it left
    /// behind.
    pub fn accompanied_by(&self, group: Option<i32>) -> Companion {
        Held::new(&self.0.companions, group.map(Pid::from_raw))
    }

    /// The same of a child that leads a group.
    pub fn accompanied_by_child(&self, child: &std::process::Child) -> Companion {
        self.accompanied_by(i32::try_from(child.id()).ok())
    }

    /// Until it is dropped, requests of this kind are in flight: a signal is answered accordingly.
    pub fn sending(&self, sending: Sending) -> Held<Sending> {
        Held::new(&self.0.sending, Some(sending))
    }

    /// What the next signal does, as a message to the user.
    pub fn stop_message(&self, before: Stop) -> Option<&'static str> {
        let sending = locked(&self.0.sending).iter().max().copied();
        match (before, sending) {
            (Stop::Run, None) => Some("\nstopping: nothing more is begun"),
            (Stop::Run, Some(_)) => Some(
                "\nstopping: nothing more is sent\nrequests in flight may finish; Ctrl-C again cuts them",
            ),
            (Stop::RunOut | Stop::Drain, None) => {
                Some("\nstill stopping; Ctrl-C again leaves at once")
            }
            (Stop::RunOut | Stop::Drain, Some(Sending::Unstored)) => {
                Some("\ncutting the requests in flight")
            }
            (Stop::RunOut | Stop::Drain, Some(Sending::Stored)) => {
                Some("\ncutting the requests in flight; what was measured is being saved")
            }
            (Stop::Cut, _) => None,
        }
    }

    /// The command that finishes what was begun, if it is known.
    pub fn remedy(&self) -> Option<String> {
        locked(&self.0.remedy).clone()
    }

    /// Kills every process group that was to end with this process.
    pub fn end_companions(&self) {
        for group in &*locked(&self.0.companions) {
            let _ = killpg(*group, Signal::SIGKILL);
        }
    }

    /// Notes a signal by its number.
    pub fn note(&self, signal: i32) {
        locked(&self.0.signals).push(signal);
        self.0.came.notify_all();
    }
}

/// Until it is dropped its group ends with this process, if that leaves at once.
pub type Companion = Held<Pid>;

/// Until it is dropped its item is in a list.
#[derive(Debug)]
#[must_use]
pub struct Held<T: PartialEq> {
    list: Arc<Mutex<Vec<T>>>,
    item: Option<T>,
}

impl<T: PartialEq + Copy> Held<T> {
    fn new(list: &Arc<Mutex<Vec<T>>>, item: Option<T>) -> Self {
        locked(list).extend(item);
        Self { list: Arc::clone(list), item }
    }
}

impl<T: PartialEq> Drop for Held<T> {
    fn drop(&mut self) {
        let mut list = locked(&self.list);
        if let Some(place) = list.iter().position(|item| Some(item) == self.item.as_ref()) {
            list.swap_remove(place);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use inferometer_load::SystemClock;
    use inferometer_model::Clock;

    use super::*;

    #[test]
    fn a_signal_that_is_known_does_not_end_the_waiting_for_the_next() {
        let interruption = Interruption::default();
        interruption.note(15);
        assert_eq!(interruption.next(0, Duration::from_hours(1)), Some(15));
        let (clock, time) = (SystemClock::new(), Duration::from_millis(30));
        assert_eq!(interruption.next(1, time), None);
        assert!(time <= Duration::from_nanos(clock.now().as_nanos()), "it is waited, not spun");
        interruption.note(2);
        assert_eq!(interruption.next(1, Duration::from_hours(1)), Some(2));
        assert_eq!(interruption.exit(), Some(Exit::Terminated), "the first names the code");
    }

    #[test]
    fn a_signal_is_answered_by_what_it_does() {
        let interruption = Interruption::default();
        let said = |before| interruption.stop_message(before).unwrap_or_default();
        assert!(!said(Stop::Run).contains("in flight"), "a server may still be starting");
        assert!(!said(Stop::Drain).contains("saved"), "there is nothing to save");
        let warm_up = interruption.sending(Sending::Unstored);
        assert!(said(Stop::Run).contains("in flight may finish"));
        assert!(said(Stop::Drain).contains("cutting") && !said(Stop::Drain).contains("saved"));
        let run = interruption.sending(Sending::Stored);
        drop(warm_up);
        assert!(said(Stop::Drain).contains("saved"));
        drop(run);
        assert!(!said(Stop::Drain).contains("cutting"));
        assert_eq!(interruption.stop_message(Stop::Cut), None);
    }

    #[test]
    fn companions_end_unless_they_ended_before() {
        use std::os::unix::process::{CommandExt, ExitStatusExt};
        let start = || std::process::Command::new("sleep").arg("1000").process_group(0).spawn();
        let interruption = Interruption::default();
        let (mut left, mut kept) = (start().unwrap(), start().unwrap());
        drop(interruption.accompanied_by_child(&kept));
        let companion = interruption.accompanied_by_child(&left);
        interruption.end_companions();
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        assert_eq!(kept.try_wait().unwrap(), None);
        kept.kill().unwrap();
        kept.wait().unwrap();
        drop(companion);
    }
}
