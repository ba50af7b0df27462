//! How requests fall into conversations: each conversation's turns stand one behind the other.

use inferometer_model::RequestId;
use inferometer_model::spec::TURNS_MAX;

use crate::lengths::Draw;
use crate::stream::Stream;

/// The numbers of turns of conversations. They repeat after a cycle; their words do not.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    /// The first request of each conversation of a cycle, and the cycle's length at the end.
    firsts: Vec<u64>,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The conversation, from zero.
    pub(crate) conversation: u64,
    pub(crate) turn: u16,
    pub(crate) is_last: bool,
}

const CYCLE: u64 = 1 << 16;

impl Turns {
    pub(crate) fn draw(turns: &Draw, seed: u64) -> Self {
        let mut firsts = vec![0];
        let mut next = 0_u64;
        for conversation in 0..CYCLE {
            let turns = turns.draw(&mut Stream::new(seed, "turns", conversation));
            // The tails of distributions reach beyond any bound.
            next += u64::from(turns.clamp(1, TURNS_MAX));
            firsts.push(next);
        }
        Self { firsts }
    }

    fn cycle(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(1)
    }

    pub(crate) fn of(&self, id: RequestId) -> Standing {
        let (cycles, within) = (id.0 / self.cycle(), id.0 % self.cycle());
        let place = self.firsts.partition_point(|first| *first <= within) - 1;
        let turn = u16::try_from(within - self.firsts[place]).unwrap_or(u16::MAX);
        let is_last = self.firsts.get(place + 1) == Some(&(within + 1));
        Standing { conversation: cycles * CYCLE + place as u64, turn, is_last }
    }

    /// How many requests so many conversations have.
    pub(crate) fn requests_of(&self, conversations: u64) -> u64 {
        let place = usize::try_from(conversations % CYCLE).unwrap_or(0);
        conversations / CYCLE * self.cycle() + self.firsts[place]
    }

    /// How many whole conversations it takes to have at least so many requests.
    pub(crate) fn conversations_for(&self, requests: u64) -> u64 {
        match requests.checked_sub(1) {
            None => 0,
            Some(last) => self.of(RequestId(last)).conversation + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fall_into_conversations_in_order() {
        let turns = Turns::draw(&Draw::Fixed(3), 1);
        let standing = |id| {
            let standing = turns.of(RequestId(id));
            (standing.conversation, standing.turn)
        };
        assert_eq!(
            (0..7).map(standing).collect::<Vec<_>>(),
            [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]
        );
        assert_eq!(standing(3 * CYCLE + 4), (CYCLE + 1, 1));
        assert_eq!(turns.requests_of(4), 12);
        assert_eq!(turns.requests_of(CYCLE + 2), 3 * CYCLE + 6);
        assert_eq!([0, 1, 3, 4].map(|requests| turns.conversations_for(requests)), [0, 1, 1, 2]);
    }
}
