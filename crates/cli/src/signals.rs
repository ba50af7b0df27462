//! Ctrl-C once drains and saves, twice cuts and saves. SIGTERM drains for a while.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use inferometer_runner::Session;
pub(crate) use inferometer_runner::interruption::{Companion, Interruption};
use tokio::runtime::Runtime;
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
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut signals = Signals::new(&kinds)?;
    std::thread::spawn(move || {
        let Session { control, interruption, .. } = &session;
        let mut grace = None;
        loop {
            let Some(kind) = signals.next(grace) else {
                control.stop_harder();
                grace = None;
                continue;
            };
            interruption.note(kind.as_raw_value());
            grace = (kind != SignalKind::interrupt()).then_some(TERMINATION_GRACE);
            match interruption.stop_message(control.stop_harder()) {
                Some(words) => session.talk(words),
                None => leave(kind, interruption),
            }
        }
    });
    Ok(())
}

/// For a server that we are: the first signal that asks for the end calls `end`, the second leaves
/// at once. As the first process of a container we would be deaf to them otherwise.
pub(crate) fn end_with(end: impl FnOnce() + Send + 'static) -> Result<Interruption, Failure> {
    let interruption = Interruption::default();
    let noted = interruption.clone();
    // Not hanging up: `nohup` means it.
    let mut signals = Signals::new(&[SignalKind::interrupt(), SignalKind::terminate()])?;
    std::thread::spawn(move || {
        if let Some(first) = signals.next(None) {
            noted.note(first.as_raw_value());
            end();
        }
        if let Some(second) = signals.next(None) {
            leave(second, &noted);
        }
    });
    Ok(interruption)
}

/// Signals that are waited for on a thread of their own.
struct Signals {
    runtime: Runtime,
    signals: Vec<(SignalKind, Signal)>,
}

impl Signals {
    fn new(kinds: &[SignalKind]) -> Result<Self, Failure> {
        let made = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let entered = runtime.enter();
            let signals =
                kinds.iter().map(|kind| Ok((*kind, signal(*kind)?))).collect::<io::Result<_>>()?;
            drop(entered);
            Ok(Self { runtime, signals })
        };
        made().map_err(|error: io::Error| Failure::internal(format!("signals: {error}")))
    }

    /// Waits for the next signal; `None` when the time is over before one comes.
    #[expect(clippy::disallowed_methods, reason = "a grace period is no pacing")]
    fn next(&mut self, time: Option<Duration>) -> Option<SignalKind> {
        let Self { runtime, signals } = self;
        let mut came = |context: &mut Context<'_>| {
            let ready = |(kind, signal): &mut (SignalKind, Signal)| {
                signal.poll_recv(context).is_ready().then_some(*kind)
            };
            signals.iter_mut().find_map(ready).map_or(Poll::Pending, Poll::Ready)
        };
        runtime.block_on(async {
            tokio::select! {
                kind = poll_fn(&mut came) => Some(kind),
                () = tokio::time::sleep(time.unwrap_or_default()), if time.is_some() => None,
            }
        })
    }
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
