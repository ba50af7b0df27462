//! Waits for a server that is still starting.

use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::Clock;

use crate::failure::Failure;

/// Between two questions to it.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Asks until there is an answer, a failure that will not pass, or no time left.
pub(crate) fn until_ready<T>(
    patience: Duration,
    mut ask: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let clock = SystemClock::new();
    loop {
        let waited = Duration::from_nanos(clock.now().as_nanos());
        match ask() {
            Err(failure) if failure.is_passing() && waited < patience => {
                std::thread::sleep(ASK_AGAIN.min(patience.saturating_sub(waited)));
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_asked_again_until_there_is_no_time() {
        let mut asked = 0;
        let found = until_ready(Duration::from_mins(1), || {
            asked += 1;
            if asked < 2 { Err(Failure::target("starting").passing_if(true)) } else { Ok(asked) }
        });
        assert_eq!(found.ok(), Some(2));
        let mut asked = 0;
        let mut failing = |passing: bool| {
            until_ready::<()>(Duration::ZERO, || {
                asked += 1;
                Err(Failure::target("no").passing_if(passing))
            })
        };
        assert!(failing(true).is_err() && failing(false).is_err());
        assert_eq!(asked, 2, "once each");
    }
}
