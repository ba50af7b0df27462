//! Requests that wait for a place, in the order in which they will get one.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::assemble::Until;
use super::config::Policy;
use super::entry::Entry;

/// Places of the requests that wait.
#[derive(Debug)]
pub(super) enum Waiting {
    Fcfs(Line),
    Priority(BTreeMap<Rank, usize>),
}

/// The smaller goes first. No two are equal: equals that take blocks from each other in turn would
/// do so for ever.
pub(super) type Rank = (i32, u64, u64);

pub(super) fn rank(entry: &Entry) -> Rank {
    (entry.priority, entry.arrived_ns(), entry.serial)
}

impl Waiting {
    pub(super) fn new(policy: Policy) -> Self {
        match policy {
            Policy::Fcfs => Self::Fcfs(Line::default()),
            Policy::Priority => Self::Priority(BTreeMap::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fcfs(line) => line.len(),
            Self::Priority(places) => places.len(),
        }
    }

    /// Who is next. By priority, one that came after `until` holds nobody up that came before.
    pub(super) fn first(&self, until: Until) -> Option<usize> {
        match (self, until) {
            (Self::Fcfs(line), _) => line.first(),
            (Self::Priority(places), None) => places.values().next().copied(),
            (Self::Priority(places), Some(until)) => {
                let known = places.iter().find(|((_, arrived_ns, _), _)| *arrived_ns <= until);
                known.map(|(_, place)| *place)
            }
        }
    }

    pub(super) fn push(&mut self, place: usize, entry: &Entry) {
        match self {
            Self::Fcfs(line) => line.places.push_back((place, entry.serial)),
            Self::Priority(places) => drop(places.insert(rank(entry), place)),
        }
    }

    /// One that had its place before and goes ahead of those that had none.
    pub(super) fn push_again(&mut self, place: usize, entry: &Entry) {
        match self {
            Self::Fcfs(line) => line.places.push_front((place, entry.serial)),
            Self::Priority(_) => self.push(place, entry),
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        match self {
            Self::Fcfs(line) => line.remove(entry.serial),
            Self::Priority(places) => drop(places.remove(&rank(entry))),
        }
    }
}

/// Places in order, with the serials of their requests. Who leaves from the middle is only struck
/// off, and dropped when all before it are gone, so that leaving a long line takes no longer than
/// leaving a short one. The first is never one that was struck off.
#[derive(Debug, Default)]
pub(super) struct Line {
    places: VecDeque<(usize, u64)>,
    struck: HashSet<u64>,
}

impl Line {
    fn len(&self) -> usize {
        self.places.len() - self.struck.len()
    }

    fn first(&self) -> Option<usize> {
        self.places.front().map(|(place, _)| *place)
    }

    fn remove(&mut self, serial: u64) {
        if self.places.front().is_some_and(|(_, first)| *first == serial) {
            self.places.pop_front();
        } else {
            self.struck.insert(serial);
        }
        while let Some((_, first)) = self.places.front()
            && self.struck.remove(first)
        {
            self.places.pop_front();
        }
        // A first that stays for long must not let those who come and leave behind it pile up.
        if self.places.len() < 2 * self.struck.len() {
            let struck = std::mem::take(&mut self.struck);
            self.places.retain(|(_, serial)| !struck.contains(serial));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(serials: std::ops::Range<u64>) -> Line {
        let places = serials.map(|serial| (usize::try_from(serial).unwrap() + 100, serial));
        Line { places: places.collect(), struck: HashSet::new() }
    }

    #[test]
    fn who_leaves_the_line_is_never_first() {
        let mut line = line(0..6);
        for serial in [1, 4] {
            line.remove(serial);
        }
        assert_eq!((line.len(), line.first()), (4, Some(100)));
        line.remove(0);
        assert_eq!((line.len(), line.first()), (3, Some(102)));
        for serial in [2, 3] {
            line.remove(serial);
        }
        assert_eq!((line.len(), line.first()), (1, Some(105)));
        line.remove(5);
        assert_eq!((line.len(), line.first()), (0, None));
    }

    #[test]
    fn those_who_come_and_leave_behind_one_that_stays_do_not_pile_up() {
        let mut line = line(0..1);
        for serial in 1..10_000 {
            line.places.push_back((7, serial));
            line.remove(serial);
        }
        assert_eq!((line.len(), line.first()), (1, Some(100)));
        assert!(line.places.len() < 4, "{}", line.places.len());
    }
}
