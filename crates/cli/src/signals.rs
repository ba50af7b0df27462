//! Ctrl-C once drains and saves, twice cuts and saves. Being told to terminate drains for a while.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use inferometer_load::{Control, Stop};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Exit, Failure};
use crate::output;

/// Which signal ended the run, if one did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    signal: Mutex<Option<i32>>,
    came: Condvar,
    /// The command that finishes what was begun.
    remedy: Mutex<Option<String>>,
}

impl Interruption {
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.wait(Duration::ZERO)
    }

    /// Waits for this long, or until a signal comes.
    pub(crate) fn wait(&self, time: Duration) -> Option<Exit> {
        let Shared { signal, came, .. } = &*self.0;
        let signal = signal.lock().unwrap_or_else(PoisonError::into_inner);
        let (signal, _) = came
            .wait_timeout_while(signal, time, |signal| signal.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        signal.map(exit_of)
    }

    /// How to finish what was begun, for a user who will not wait.
    pub(crate) fn remember(&self, remedy: String) {
        *self.0.remedy.lock().unwrap_or_else(PoisonError::into_inner) = Some(remedy);
    }

    fn remedy(&self) -> Option<String> {
        self.0.remedy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first signal names the exit code.
    fn note(&self, kind: SignalKind) {
        let Shared { signal, came, .. } = &*self.0;
        signal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(kind.as_raw_value());
        came.notify_all();
    }
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
        match control.stop_harder() {
            Stop::Run => talk(
                "\nstopping: nothing more is sent\nrequests in flight may finish; Ctrl-C again cuts them",
            ),
            Stop::Drain => {
                talk("\ncutting the requests in flight; what was measured is being saved");
            }
            Stop::Cut => leave(kind, noted.remedy()),
        }
    }
}

/// Asked a third time: something hangs, a disk perhaps. The journal can be recovered.
#[expect(clippy::exit, reason = "the user does not want to wait for anything any more")]
fn leave(kind: SignalKind, remedy: Option<String>) {
    let later =
        remedy.map_or_else(String::new, |remedy| format!("; finish it later with: {remedy}"));
    output::talk(&format!("leaving at once{later}"));
    std::process::exit(exit_of(kind.as_raw_value()) as i32);
}

#[expect(clippy::disallowed_methods, reason = "a grace period is no pacing")]
async fn grace() {
    tokio::time::sleep(TERMINATION_GRACE).await;
}
