//! Waits until a server has nothing to do any more, by its own word.

use std::time::Duration;

use inferometer_load::{SystemClock, Target};
use inferometer_model::Clock;
use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::telemetry::Gauges;
use inferometer_target::metrics;

use crate::failure::Exit;
use crate::preflight::fetching;
use crate::signals::Interruption;

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Drained {
    /// It was idle after so many seconds.
    Idle(f64),
    /// It does not say what it does.
    Unsaid,
    /// It was still at work when we stopped waiting.
    Busy,
    /// A signal came.
    Stopped(Exit),
}

/// For servers that go on generating for clients that left.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(250);
const BODY_BYTES_MAX: usize = 16 << 20;

/// `path` is where the server has its metrics; `None` where nobody asked for them.
pub(super) fn until_idle(
    target: &Target,
    path: Option<&str>,
    interruption: &Interruption,
) -> Drained {
    let Some(path) = path else { return Drained::Unsaid };
    let clock = SystemClock::new();
    loop {
        let waited = Duration::from_nanos(clock.now().as_nanos());
        match at_work(target, path) {
            None => return Drained::Unsaid,
            Some(false) => return Drained::Idle(waited.as_secs_f64()),
            Some(true) if PATIENCE <= waited => return Drained::Busy,
            Some(true) => {}
        }
        if let Some(exit) = interruption.wait(LOOK_EVERY) {
            return Drained::Stopped(exit);
        }
    }
}

fn at_work(target: &Target, path: &str) -> Option<bool> {
    let request = FetchRequest { path, body_limit: BODY_BYTES_MAX };
    let reply = fetching(target, async |fetch| fetch.fetch(request).await).ok()?.ok()?;
    is_at_work(metrics::read(&reply.body).ok()?.gauges)
}

/// `None` of a server that does not say how many requests it has.
fn is_at_work(gauges: Gauges) -> Option<bool> {
    let Gauges { running, waiting, swapped, .. } = gauges;
    running.map(|running| 0.0 < running + waiting.unwrap_or(0.0) + swapped.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_neither_idle_nor_at_work() {
        let of = |running, waiting| Gauges { running, waiting, ..Gauges::default() };
        assert_eq!(is_at_work(of(None, Some(0.0))), None);
        assert_eq!(is_at_work(of(Some(0.0), None)), Some(false));
        assert_eq!(is_at_work(of(Some(0.0), Some(2.0))), Some(true));
        assert_eq!(is_at_work(of(Some(1.0), Some(0.0))), Some(true));
    }
}
