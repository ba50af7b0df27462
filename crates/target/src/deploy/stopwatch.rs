//! How long something takes that is no measurement of a run.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Instant);

#[expect(
    clippy::disallowed_methods,
    reason = "a server is put up before the clock of a run starts and taken down after it"
)]
impl Stopwatch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn passed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Looks again and again until it is so, at most so long. Whether it became so.
pub(super) fn until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let since = Stopwatch::start();
    loop {
        if is_so() {
            return true;
        }
        if limit <= since.passed() {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
