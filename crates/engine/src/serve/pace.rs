//! Wall time and engine time: the same clock, but the engine's may run faster.

use crate::clock::Moment;

/// Where the two clocks meet, and how much faster the engine's runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    start: Moment,
    /// Whole millionths, so that both ways are exact and a moment is never reached too early.
    speed_millionths: u64,
}

impl Pace {
    pub(crate) fn new(start: Moment, speed: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the options were checked: speeds are positive and far below 2^44"
        )]
        let speed_millionths = ((speed * 1e6) as u64).max(1);
        Self { start, speed_millionths }
    }

    /// Engine time at a moment; what lies ahead of the start is the start.
    pub(crate) fn engine_ns(&self, at: Moment) -> u64 {
        let since_ns = at.ns().saturating_sub(self.start.ns());
        scale(since_ns, self.speed_millionths, MILLION, Rounding::Down)
    }

    /// The first moment at which it is that late in the engine.
    pub(crate) fn moment(&self, engine_ns: u64) -> Moment {
        self.start.plus_ns(scale(engine_ns, MILLION, self.speed_millionths, Rounding::Up))
    }
}

#[derive(Clone, Copy, Debug)]
enum Rounding {
    Down,
    Up,
}

fn scale(value: u64, times: u64, over: u64, rounding: Rounding) -> u64 {
    if times == over {
        return value;
    }
    let product = u128::from(value) * u128::from(times);
    let over = u128::from(over);
    let scaled = match rounding {
        Rounding::Down => product / over,
        Rounding::Up => product.div_ceil(over),
    };
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_moment_is_the_first_at_which_the_engine_is_there() {
        for speed in [0.3, 1.0, 7.0, 20.0] {
            let pace = Pace::new(Moment::from_ns(1_000), speed);
            for engine_ns in [0, 1, 7, 999, 25_000_000, 86_400_000_000_001] {
                let due = pace.moment(engine_ns);
                assert!(engine_ns <= pace.engine_ns(due), "{speed} {engine_ns}");
                let before = Moment::from_ns(due.ns() - 1);
                assert!(engine_ns == 0 || pace.engine_ns(before) < engine_ns, "{speed}");
            }
        }
    }

    #[test]
    fn a_second_of_the_wall_is_twenty_of_a_fast_engine() {
        let pace = Pace::new(Moment::from_ns(5), 20.0);
        assert_eq!(pace.engine_ns(Moment::from_ns(1_000_000_005)), 20_000_000_000);
        assert_eq!(pace.engine_ns(Moment::from_ns(0)), 0);
    }
}
