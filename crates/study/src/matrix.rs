//! The points of a matrix, all of which are known in advance: which there are, which share a server,
//! and which server is next when several presets are measured at the same time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use inferometer_model::study::{Level, Point, RunOrder, Stage, StudySpec};

use crate::grid;

/// A server that is deployed once, and the points that are measured on it one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Index of its cell.
    pub condition: u32,
    pub repetition: u32,
    /// Index of the preset that it runs on.
    pub preset: u32,
    /// In the order of their numbers; at least one.
    pub points: Vec<Point>,
}

/// The servers of a matrix in the order in which they are deployed. Empty for any other question.
///
/// Listed, a cell has all its repetitions before the next; interleaved, every repetition visits all
/// cells in its own order. The loads of a cell are never separated: they share its server.
pub fn deployments(spec: &StudySpec) -> Vec<Deployment> {
    let Some(matrix) = spec.matrix() else { return Vec::new() };
    let mut number = 0..;
    let deployment = |(condition, repetition)| {
        let point = |&level: &Level| Point {
            number: number.next().unwrap_or(u32::MAX),
            condition,
            level,
            repetition,
            seed: grid::swept_seed(spec.seed, level, Stage::Planned, repetition),
            stage: Stage::Planned,
        };
        let points = matrix.levels.iter().map(point).collect();
        let preset = matrix.cells.get(condition as usize).map_or(0, |cell| cell.preset);
        Deployment { condition, repetition, preset, points }
    };
    in_order(spec).into_iter().map(deployment).collect()
}

/// Every cell with every repetition.
fn in_order(spec: &StudySpec) -> Vec<(u32, u32)> {
    let runs = spec.repetition.runs.get();
    let cells = u32::try_from(spec.conditions.len()).unwrap_or(u32::MAX);
    match spec.order {
        RunOrder::Listed => {
            (0..cells).flat_map(|cell| (0..runs).map(move |round| (cell, round))).collect()
        }
        RunOrder::Interleaved => (0..runs)
            .flat_map(|round| {
                let draws = grid::round_draws(spec.seed, Stage::Planned, round);
                let shuffled = grid::shuffled(spec.conditions.len(), draws);
                let cells = shuffled.into_iter().filter_map(|cell| u32::try_from(cell).ok());
                cells.map(move |cell| (cell, round))
            })
            .collect(),
    }
}

/// The deployments that are left, shared by several lanes.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    /// Notified whenever a preset is free again.
    freed: Condvar,
}

#[derive(Debug)]
struct QueueState {
    left: VecDeque<Deployment>,
    /// Presets that are being measured.
    busy: BTreeSet<u32>,
    /// Whether a preset runs several servers at the same time: in virtual time they do not disturb
    /// each other.
    is_shared: bool,
}

impl QueueState {
    /// The first deployment whose preset is free.
    fn take(&mut self) -> Option<Deployment> {
        let is_free = |it: &Deployment| self.is_shared || !self.busy.contains(&it.preset);
        let index = self.left.iter().position(is_free)?;
        let deployment = self.left.remove(index)?;
        self.busy.insert(deployment.preset);
        Some(deployment)
    }
}

impl Queue {
    pub(crate) fn new(left: Vec<Deployment>, is_shared: bool) -> Self {
        let state = QueueState { left: left.into(), busy: BTreeSet::new(), is_shared };
        Self { state: Mutex::new(state), freed: Condvar::new() }
    }

    /// Waits for the first deployment whose preset is free; `None` when nothing is left.
    pub(crate) fn take(&self) -> Option<TakenDeployment<'_>> {
        let mut state = self.lock();
        while !state.left.is_empty() {
            if let Some(deployment) = state.take() {
                return Some(TakenDeployment { queue: self, deployment });
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Deploys nothing more.
    pub(crate) fn give_up(&self) {
        self.lock().left.clear();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A deployment that a lane works on. Its preset is free when this is dropped, whatever happened.
pub(crate) struct TakenDeployment<'queue> {
    queue: &'queue Queue,
    pub(crate) deployment: Deployment,
}

impl Drop for TakenDeployment<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.queue.give_up();
        }
        self.queue.lock().busy.remove(&self.deployment.preset);
        self.queue.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_serves_one_at_a_time_unless_time_is_virtual() {
        let planned = |(condition, preset)| {
            let points = Vec::new();
            Deployment { condition, repetition: 0, preset, points }
        };
        let planned: Vec<Deployment> = [(0, 0), (1, 0), (2, 1), (3, 0)].map(planned).into();
        let queue = Queue::new(planned.clone(), false);
        let condition = |taken: &Option<TakenDeployment<'_>>| {
            taken.as_ref().map(|taken| taken.deployment.condition)
        };
        // Whether all that is left waits for a preset that is busy.
        let waits = || {
            let mut state = queue.lock();
            state.take().is_none() && !state.left.is_empty()
        };
        let (first, second) = (queue.take(), queue.take());
        assert_eq!(condition(&first), Some(0));
        assert_eq!(condition(&second), Some(2), "the first of a preset that is free");
        assert!(waits());
        drop(second);
        assert!(waits(), "nothing is left for that preset");
        drop(first);
        let third = queue.take();
        assert_eq!(condition(&third), Some(1));
        queue.give_up();
        assert!(queue.take().is_none());

        let queue = Queue::new(planned, true);
        let taken: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
        let all: Vec<u32> = taken.iter().map(|taken| taken.deployment.condition).collect();
        assert_eq!(all, [0, 1, 2, 3]);
    }
}
