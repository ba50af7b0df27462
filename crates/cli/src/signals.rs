//! Ctrl-C once drains and saves, twice cuts and saves. Being told to terminate drains for a while.

use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inferometer_load::{Control, Stop};
use nix::sys::signal::{Signal as Sent, killpg};
use nix::unistd::Pid;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Exit, Failure};
use crate::output;

/// Which signal ended the run, if one did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// In the order in which they came.
    signals: Mutex<Vec<i32>>,
    came: Condvar,
    /// The command that finishes what was begun.
    remedy: Mutex<Option<String>>,
    /// Groups of processes that end with this one.
    companions: Mutex<Vec<Pid>>,
    /// What is being sent, by each that sends.
    sending: Mutex<Vec<Sending>>,
}

/// Whose requests are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sending {
    /// Of a warm-up: nothing of them is kept.
    Unstored,
    Stored,
}

impl Interruption {
    /// The first signal names the exit code.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.wait(Duration::ZERO)
    }

    /// Waits for this long, or until a signal comes. Returns at once where one came before.
    pub(crate) fn wait(&self, time: Duration) -> Option<Exit> {
        self.next(0, time).map(exit_of)
    }

    /// Waits for this long for a signal after so many that are known.
    pub(crate) fn next(&self, known: usize, time: Duration) -> Option<i32> {
        let Shared { signals, came, .. } = &*self.0;
        let (signals, _) = came
            .wait_timeout_while(locked(signals), time, |signals| signals.len() <= known)
            .unwrap_or_else(PoisonError::into_inner);
        signals.get(known).copied()
    }

    /// How to finish what was begun, for a user who will not wait.
    pub(crate) fn remember(&self, remedy: String) {
        *locked(&self.0.remedy) = Some(remedy);
    }

    /// A group of processes of ours. A user who will not wait for its end does not have it left
    /// behind.
    pub(crate) fn accompanied_by(&self, group: Option<i32>) -> Companion {
        let group = group.map(Pid::from_raw);
        locked(&self.0.companions).extend(group);
        Companion { shared: self.0.clone(), group }
    }

    /// The same of a child that leads a group.
    pub(crate) fn accompanied_by_child(&self, child: &Child) -> Companion {
        self.accompanied_by(i32::try_from(child.id()).ok())
    }

    /// Until it is dropped, requests of this kind are in flight: a signal is answered accordingly.
    pub(crate) fn sending(&self, sending: Sending) -> Sender {
        locked(&self.0.sending).push(sending);
        Sender { shared: self.0.clone(), sending }
    }

    /// What the next signal does, to those who are told.
    fn words(&self, before: Stop) -> Option<&'static str> {
        let sending = locked(&self.0.sending).iter().max().copied();
        match (before, sending) {
            (Stop::Run, None) => Some("\nstopping: nothing more is begun"),
            (Stop::Run, Some(_)) => Some(
                "\nstopping: nothing more is sent\nrequests in flight may finish; Ctrl-C again cuts them",
            ),
            (Stop::Drain, None) => Some("\nstill stopping; Ctrl-C again leaves at once"),
            (Stop::Drain, Some(Sending::Unstored)) => Some("\ncutting the requests in flight"),
            (Stop::Drain, Some(Sending::Stored)) => {
                Some("\ncutting the requests in flight; what was measured is being saved")
            }
            (Stop::Cut, _) => None,
        }
    }

    fn remedy(&self) -> Option<String> {
        locked(&self.0.remedy).clone()
    }

    fn end_companions(&self) {
        for group in &*locked(&self.0.companions) {
            let _ = killpg(*group, Sent::SIGKILL);
        }
    }

    fn note(&self, kind: SignalKind) {
        locked(&self.0.signals).push(kind.as_raw_value());
        self.0.came.notify_all();
    }
}

/// Until it is dropped its group ends with this process, if that leaves at once.
#[derive(Debug)]
pub(crate) struct Companion {
    shared: Arc<Shared>,
    group: Option<Pid>,
}

impl Drop for Companion {
    fn drop(&mut self) {
        locked(&self.shared.companions).retain(|group| Some(*group) != self.group);
    }
}

#[derive(Debug)]
pub(crate) struct Sender {
    shared: Arc<Shared>,
    sending: Sending,
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut sending = locked(&self.shared.sending);
        if let Some(place) = sending.iter().position(|one| *one == self.sending) {
            sending.swap_remove(place);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn exit_of(signal: i32) -> Exit {
    if signal == SignalKind::interrupt().as_raw_value() {
        Exit::Interrupted
    } else {
        Exit::Terminated
    }
}

/// Whoever sends SIGTERM will send SIGKILL soon after.
const TERMINATION_GRACE: Duration = Duration::from_secs(10);

/// Listens until the process ends.
pub(crate) fn listen(control: Control, quiet: bool) -> Result<Interruption, Failure> {
    let interruption = Interruption::default();
    let noted = interruption.clone();
    let failed = |error: std::io::Error| Failure::internal(format!("signals: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let entered = runtime.enter();
    let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let hang_up = signal(SignalKind::hangup()).map_err(failed)?;
    drop(entered);
    std::thread::spawn(move || {
        let talk = |line: &str| {
            if !quiet {
                output::talk(line);
            }
        };
        runtime.block_on(obey(&control, &noted, talk, [interrupt, terminate, hang_up]));
    });
    Ok(interruption)
}

async fn obey(
    control: &Control,
    noted: &Interruption,
    talk: impl Fn(&str),
    [mut interrupt, mut terminate, mut hang_up]: [Signal; 3],
) {
    let mut grace_ends = false;
    loop {
        let kind = tokio::select! {
            _ = interrupt.recv() => SignalKind::interrupt(),
            _ = terminate.recv() => SignalKind::terminate(),
            _ = hang_up.recv() => SignalKind::hangup(),
            () = grace(), if grace_ends => {
                control.stop_harder();
                grace_ends = false;
                continue;
            }
        };
        noted.note(kind);
        grace_ends = kind != SignalKind::interrupt();
        match noted.words(control.stop_harder()) {
            Some(words) => talk(words),
            None => leave(kind, noted),
        }
    }
}

/// For a server that we are: the first signal that asks for the end calls `end`, the second leaves
/// at once. As the first process of a container we would be deaf to them otherwise.
pub(crate) fn end_with(end: impl FnOnce() + Send + 'static) -> Result<Interruption, Failure> {
    let interruption = Interruption::default();
    let noted = interruption.clone();
    let failed = |error: std::io::Error| Failure::internal(format!("signals: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let entered = runtime.enter();
    // Not hanging up: `nohup` means it.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    drop(entered);
    std::thread::spawn(move || {
        let mut next = || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => SignalKind::interrupt(),
                    _ = terminate.recv() => SignalKind::terminate(),
                }
            })
        };
        noted.note(next());
        end();
        leave(next(), &noted);
    });
    Ok(interruption)
}

/// Asked a third time: something hangs, a disk perhaps. The journal can be recovered.
#[expect(clippy::exit, reason = "the user does not want to wait for anything any more")]
fn leave(kind: SignalKind, noted: &Interruption) {
    noted.end_companions();
    let remedy = noted.remedy().map(|remedy| format!("; finish it later with: {remedy}"));
    let later = remedy.unwrap_or_default();
    output::talk(&format!("leaving at once{later}"));
    std::process::exit(exit_of(kind.as_raw_value()) as i32);
}

#[expect(clippy::disallowed_methods, reason = "a grace period is no pacing")]
async fn grace() {
    tokio::time::sleep(TERMINATION_GRACE).await;
}

#[cfg(test)]
mod tests {
    use inferometer_load::SystemClock;
    use inferometer_model::Clock;

    use super::*;

    #[test]
    fn a_signal_that_is_known_does_not_end_the_waiting_for_the_next() {
        let interruption = Interruption::default();
        interruption.note(SignalKind::terminate());
        assert_eq!(interruption.next(0, Duration::from_hours(1)), Some(15));
        let (clock, time) = (SystemClock::new(), Duration::from_millis(30));
        assert_eq!(interruption.next(1, time), None);
        assert!(time <= Duration::from_nanos(clock.now().as_nanos()), "it is waited, not spun");
        interruption.note(SignalKind::interrupt());
        assert_eq!(interruption.next(1, Duration::from_hours(1)), Some(2));
        assert_eq!(interruption.exit(), Some(Exit::Terminated), "the first names the code");
    }

    #[test]
    fn a_signal_is_answered_by_what_it_does() {
        let interruption = Interruption::default();
        let said = |before| interruption.words(before).unwrap_or_default();
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
        assert_eq!(interruption.words(Stop::Cut), None);
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
