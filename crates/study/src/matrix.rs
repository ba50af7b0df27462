//! The points of a matrix, all of which are known in advance: which there are, which share a server,
//! and which server is next when several presets are measured at the same time.

use std::collections::{BTreeSet, VecDeque};

use inferometer_model::study::{Level, Order, Point, Stage, StudySpec};

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
        Order::Listed => {
            (0..cells).flat_map(|cell| (0..runs).map(move |round| (cell, round))).collect()
        }
        Order::Interleaved => (0..runs)
            .flat_map(|round| {
                let draws = grid::round_draws(spec.seed, Stage::Planned, round);
                let shuffled = grid::shuffled(spec.conditions.len(), draws);
                let cells = shuffled.into_iter().filter_map(|cell| u32::try_from(cell).ok());
                cells.map(move |cell| (cell, round))
            })
            .collect(),
    }
}

/// Whether a preset can run several servers at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Servers on the same hardware would disturb each other.
    OneAtATime,
    /// In virtual time servers do not disturb each other.
    Free,
}

/// The deployments that are left, shared by several lanes.
#[derive(Clone, Debug)]
pub struct Queue {
    left: VecDeque<Deployment>,
    /// Presets that are being measured.
    busy: BTreeSet<u32>,
    sharing: Sharing,
}

impl Queue {
    pub fn new(left: Vec<Deployment>, sharing: Sharing) -> Self {
        Self { left: left.into(), busy: BTreeSet::new(), sharing }
    }

    /// The first deployment whose preset is free. The preset is busy until [`Self::finished`]. `None`
    /// when nothing is left, or when all that is left waits for a preset that is busy.
    pub fn take(&mut self) -> Option<Deployment> {
        let is_free = |it: &Deployment| !self.busy.contains(&it.preset);
        let place = match self.sharing {
            Sharing::Free => 0,
            Sharing::OneAtATime => self.left.iter().position(is_free)?,
        };
        let deployment = self.left.remove(place)?;
        self.busy.insert(deployment.preset);
        Some(deployment)
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub fn finished(&mut self, preset: u32) {
        self.busy.remove(&preset);
    }

    /// Deploys nothing more.
    pub fn give_up(&mut self) {
        self.left.clear();
    }
}
