//! Waits until a server reports that it is idle.

use std::time::Duration;

use inferometer_load::{SystemClock, Target};
use inferometer_model::Clock;
use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::telemetry::{Gauges, MissReason};
use inferometer_runner::Exit;
use inferometer_runner::interruption::Interruption;
use inferometer_runner::preflight::fetching;
use inferometer_target::metrics;

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Drained {
    /// It was idle after so many seconds.
    Idle(f64),
    /// It does not report what it does.
    Unsaid,
    /// It was still busy when we stopped waiting.
    Busy,
    /// A signal came.
    Stopped(Exit),
}

/// For servers that keep generating for clients that left.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A signal is noticed between two looks, so a look must be short.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// A server that finishes its work answers late, or not at once.
const LOST_MAX: u32 = 3;

/// `path` is where the server has its metrics; `None` without telemetry.
pub(super) fn until_idle(
    target: &Target,
    path: Option<&str>,
    interruption: &Interruption,
) -> Drained {
    let Some(path) = path else { return Drained::Unsaid };
    let clock = SystemClock::new();
    let waited = || Duration::from_nanos(clock.now().as_nanos());
    wait(path, waited, |path| look(target, path), |time| interruption.wait(time))
}

/// What one look brought: the server's gauges, or why there are none.
type Look = Result<Gauges, MissReason>;

fn wait(
    path: &str,
    waited: impl Fn() -> Duration,
    mut look: impl FnMut(&str) -> Look,
    mut rest: impl FnMut(Duration) -> Option<Exit>,
) -> Drained {
    let mut path = path;
    let mut lost = 0;
    loop {
        let found = look(path);
        let waited = waited();
        match found.map(is_at_work) {
            Ok(None) => return Drained::Unsaid,
            Ok(Some(false)) => return Drained::Idle(waited.as_secs_f64()),
            Ok(Some(true)) => lost = 0,
            Err(missed) => match metrics::other_path(path, missed) {
                Some(other) => path = other,
                None => lost += 1,
            },
        }
        if lost == LOST_MAX {
            return Drained::Unsaid;
        }
        if PATIENCE <= waited {
            return Drained::Busy;
        }
        if let Some(exit) = rest(LOOK_EVERY) {
            return Drained::Stopped(exit);
        }
    }
}

fn look(target: &Target, path: &str) -> Look {
    let request = FetchRequest { path, body_limit: metrics::BODY_BYTES_MAX };
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is measured here, and the module for time-outs is the client's own"
    )]
    let answered = fetching(target, async |fetch| {
        tokio::time::timeout(LOOK_LIMIT, fetch.fetch(request)).await
    });
    let reply = answered.map_err(|_no_runtime| MissReason::Transport)?;
    let reply = reply.map_err(|_elapsed| MissReason::Timeout)?;
    let reply = reply.map_err(|_failed| MissReason::Transport)?;
    metrics::read_reply(&reply).map(|reading| reading.gauges)
}

/// `None` if the server does not report how many requests it has.
fn is_at_work(gauges: Gauges) -> Option<bool> {
    let Gauges { running, waiting, swapped, .. } = gauges;
    running.map(|running| 0.0 < running + waiting.unwrap_or(0.0) + swapped.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_is_not_said_is_neither_idle_nor_at_work() {
        let of = |running, waiting| Gauges { running, waiting, ..Gauges::default() };
        assert_eq!(is_at_work(of(None, Some(0.0))), None);
        assert_eq!(is_at_work(of(Some(0.0), None)), Some(false));
        assert_eq!(is_at_work(of(Some(0.0), Some(2.0))), Some(true));
        assert_eq!(is_at_work(of(Some(1.0), Some(0.0))), Some(true));
    }

    const BUSY: Look = Ok(Gauges { running: Some(1.0), ..NOTHING });
    const IDLE: Look = Ok(Gauges { running: Some(0.0), ..NOTHING });
    const NOTHING: Gauges =
        Gauges { running: None, waiting: None, swapped: None, kv_usage: None, cpu_kv_usage: None };

    /// Looks in turn, each of which takes so many seconds, and the paths that were asked.
    fn waited(looks: &[Look], each_s: u64) -> (Drained, Vec<String>) {
        let now = Cell::new(Duration::ZERO);
        let mut asked = Vec::new();
        let mut left = looks.iter();
        let look = |path: &str| {
            asked.push(path.to_owned());
            now.set(now.get() + Duration::from_secs(each_s));
            *left.next().unwrap()
        };
        let found = wait("/metrics", || now.get(), look, |_| None);
        (found, asked)
    }

    #[test]
    fn a_look_that_fails_is_not_the_last_and_many_are() {
        let slow = Err(MissReason::Timeout);
        assert_eq!(waited(&[BUSY, slow, slow, BUSY, slow, IDLE], 1).0, Drained::Idle(6.0));
        assert_eq!(waited(&[BUSY, slow, slow, slow], 1).0, Drained::Unsaid);
        assert_eq!(waited(&[BUSY, BUSY, BUSY], 20).0, Drained::Busy);
        assert_eq!(waited(&[Ok(NOTHING)], 1).0, Drained::Unsaid);
    }

    #[test]
    fn metrics_at_the_other_place_are_found_there() {
        let (found, asked) = waited(&[Err(MissReason::Status(404)), BUSY, IDLE], 1);
        assert_eq!(found, Drained::Idle(3.0));
        let other = "/prometheus/metrics";
        assert_eq!(asked, ["/metrics", other, other]);
    }
}
