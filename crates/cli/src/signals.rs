//! Ctrl-C once drains and saves, twice cuts and saves. SIGTERM drains for a while.

use std::time::Duration;

use inferometer_load::Control;
use inferometer_runner::Session;
pub(crate) use inferometer_runner::interruption::{Companion, Interruption};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Exit, Failure};
use crate::{output, terminal};

/// A session that writes events to the terminal. Signals have their usual effect.
pub(crate) fn session(ceiling: usize, quiet: bool) -> Session {
    let session = Session::new(ceiling, terminal::observer());
    if quiet { session.only_warnings() } else { session }
}

/// The same, obeying signals from now on.
pub(crate) fn begin_session(ceiling: usize, quiet: bool) -> Result<Session, Failure> {
    let session = session(ceiling, quiet);
    listen(&session)?;
    Ok(session)
}

/// Whoever sends SIGTERM will send SIGKILL soon after.
const TERMINATION_GRACE: Duration = Duration::from_secs(10);

/// Drains, cuts or ends the work of this session when a signal is received.
pub(crate) fn listen(session: &Session) -> Result<(), Failure> {
    let session = session.clone();
    let failed = |error: std::io::Error| Failure::internal(format!("signals: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let entered = runtime.enter();
    let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let hang_up = signal(SignalKind::hangup()).map_err(failed)?;
    drop(entered);
    std::thread::spawn(move || {
        let Session { control, interruption, .. } = &session;
        let talk = |line: &str| session.talk(line);
        runtime.block_on(obey(control, interruption, talk, [interrupt, terminate, hang_up]));
    });
    Ok(())
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
        noted.note(kind.as_raw_value());
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
        noted.note(next().as_raw_value());
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
    std::process::exit(Exit::from_signal(kind.as_raw_value()) as i32);
}

#[expect(clippy::disallowed_methods, reason = "a grace period is no pacing")]
async fn grace() {
    tokio::time::sleep(TERMINATION_GRACE).await;
}
