//! Requests that wait for a place, in the order in which they will get one.

use std::collections::{BTreeMap, VecDeque};

use super::config::Policy;
use super::entry::Entry;

/// Places of the requests that wait.
#[derive(Debug)]
pub(super) enum Waiting {
    Fcfs(VecDeque<usize>),
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
            Policy::Fcfs => Self::Fcfs(VecDeque::new()),
            Policy::Priority => Self::Priority(BTreeMap::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fcfs(places) => places.len(),
            Self::Priority(places) => places.len(),
        }
    }

    pub(super) fn first(&self) -> Option<usize> {
        match self {
            Self::Fcfs(places) => places.front().copied(),
            Self::Priority(places) => places.first_key_value().map(|(_, place)| *place),
        }
    }

    pub(super) fn pop(&mut self) {
        match self {
            Self::Fcfs(places) => drop(places.pop_front()),
            Self::Priority(places) => drop(places.pop_first()),
        }
    }

    pub(super) fn push(&mut self, place: usize, entry: &Entry) {
        match self {
            Self::Fcfs(places) => places.push_back(place),
            Self::Priority(places) => drop(places.insert(rank(entry), place)),
        }
    }

    /// One that had its place before and goes ahead of those that had none.
    pub(super) fn push_again(&mut self, place: usize, entry: &Entry) {
        match self {
            Self::Fcfs(places) => places.push_front(place),
            Self::Priority(_) => self.push(place, entry),
        }
    }

    pub(super) fn remove(&mut self, place: usize, entry: &Entry) {
        match self {
            Self::Fcfs(places) => places.retain(|other| *other != place),
            Self::Priority(places) => drop(places.remove(&rank(entry))),
        }
    }
}
