//! Ctrl-C once drains and saves, twice cuts and saves. SIGTERM drains for a while. A signal that was
//! ignored when the process started, as `nohup` does with SIGHUP, stays ignored.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use inferometer_runner::Session;
pub(crate) use inferometer_runner::interruption::Interruption;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Exit, Failure, Result};
use crate::{output, terminal};

/// A session that writes events to the terminal. Signals have their usual effect.
pub(crate) fn session(ceiling: usize, quiet: bool) -> Session {
    let session = Session::new(ceiling, terminal::observer());
    if quiet { session.only_warnings() } else { session }
}

/// The same, obeying signals from now on.
pub(crate) fn begin_session(ceiling: usize, quiet: bool) -> Result<Session> {
    let session = session(ceiling, quiet);
    listen(&session)?;
    Ok(session)
}

/// Drains, cuts or ends the work of this session when a signal is received.
pub(crate) fn listen(session: &Session) -> Result<()> {
    let session = session.clone();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals = receive(&kinds)?;
    std::thread::spawn(move || {
        let Session { control, interruption, .. } = &session;
        let mut grace = None;
        loop {
            let kind = match signals.recv_timeout(grace.unwrap_or(Duration::MAX)) {
                Ok(kind) => kind,
                Err(RecvTimeoutError::Timeout) => {
                    control.stop_harder();
                    grace = None;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            interruption.note(kind.as_raw_value());
            // SIGKILL usually follows SIGTERM soon after this.
            grace = (kind != SignalKind::interrupt()).then_some(Duration::from_secs(10));
            match interruption.stop_message(control.stop_harder()) {
                Some(words) => session.talk(words),
                None => leave(kind, interruption),
            }
        }
    });
    Ok(())
}

/// For a server of ours: the first signal to stop calls `end`, the second exits at once. The first
/// process of a container would ignore them otherwise.
pub(crate) fn end_with(end: impl FnOnce() + Send + 'static) -> Result<Interruption> {
    let interruption = Interruption::default();
    let noted = interruption.clone();
    // SIGHUP keeps its usual effect, for `nohup`.
    let signals = receive(&[SignalKind::interrupt(), SignalKind::terminate()])?;
    std::thread::spawn(move || {
        if let Ok(first) = signals.recv() {
            noted.note(first.as_raw_value());
            end();
        }
        if let Ok(second) = signals.recv() {
            leave(second, &noted);
        }
    });
    Ok(interruption)
}

/// A channel that receives these signals, except those that are ignored.
fn receive(kinds: &[SignalKind]) -> Result<Receiver<SignalKind>> {
    let (sender, receiver) = mpsc::channel();
    let begin = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let ignored = ignored_signals();
        let is_ignored = |kind: &SignalKind| ignored & (1 << (kind.as_raw_value() - 1)) != 0;
        for kind in kinds.iter().copied().filter(|kind| !is_ignored(kind)) {
            let (mut signals, sender) = (signal(kind)?, sender.clone());
            runtime.spawn(async move {
                while signals.recv().await.is_some() && sender.send(kind).is_ok() {}
            });
        }
        drop(entered);
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Ok(receiver)
    };
    begin().map_err(|error: std::io::Error| Failure::internal(format!("signals: {error}")))
}

/// A bit for each signal that this process ignores, the lowest for signal 1, as far as the system
/// reports them.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// After a third signal: something hangs, perhaps a disk. The journal can be recovered.
#[expect(clippy::exit, reason = "the user does not want to wait for anything any more")]
fn leave(kind: SignalKind, noted: &Interruption) {
    noted.end_companions();
    let remedy = noted.remedy().map(|remedy| format!("; finish it later with: {remedy}"));
    let later = remedy.unwrap_or_default();
    output::talk(&format!("leaving at once{later}"));
    std::process::exit(Exit::from_signal(kind.as_raw_value()) as i32);
}
