//! The time-outs of all requests in flight, without a timer for each.
//!
//! A heap holds when to look at a place next. A limit that moved back is found when its old moment
//! comes, which is the case of every token: nothing is touched on its path.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use inferometer_model::Moment;

/// When to look at which place. Early is allowed, late is not.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    heap: BinaryHeap<Reverse<(Moment, usize)>>,
    /// The earliest moment in the heap for each place.
    armed: Vec<Option<Moment>>,
}

impl Limits {
    /// Looks at `place` at `at`, or before.
    pub(crate) fn arm(&mut self, place: usize, at: Moment) {
        if self.armed.len() <= place {
            self.armed.resize(place + 1, None);
        }
        let armed = &mut self.armed[place];
        if armed.is_none_or(|armed| at < armed) {
            *armed = Some(at);
            self.heap.push(Reverse((at, place)));
        }
    }

    /// A place whose moment has come. Whoever asks looks at it, and arms it again if need be.
    pub(crate) fn due(&mut self, now: Moment) -> Option<usize> {
        loop {
            let Reverse((at, place)) = *self.heap.peek().filter(|Reverse((at, _))| *at <= now)?;
            self.heap.pop();
            // Armed for an earlier moment meanwhile, and that one has been looked at.
            if self.armed[place] == Some(at) {
                self.armed[place] = None;
                return Some(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_place_is_looked_at_once_and_never_late() {
        let mut limits = Limits::default();
        limits.arm(3, ms(50));
        limits.arm(3, ms(80));
        limits.arm(0, ms(70));
        assert_eq!(limits.due(ms(49)), None);
        assert_eq!(limits.due(ms(50)), Some(3));
        limits.arm(3, ms(80));
        limits.arm(3, ms(60));
        assert_eq!(limits.due(ms(90)), Some(3));
        assert_eq!(limits.due(ms(90)), Some(0));
        assert_eq!(limits.due(ms(90)), None, "its later moment was overtaken");
    }
}
