//! The points of a matrix, all of which are known beforehand: which there are, which share a server,
//! and which server comes next where several presets are measured at once.

use std::collections::{BTreeSet, VecDeque};

use inferometer_model::campaign::{CampaignSpec, Level, Matrix, Order, Point, Question, Stage};

use crate::error::CampaignError;
use crate::{order, seeds};

/// A server that is put up once, and the points that are measured on it, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Its cell, by its place.
    pub condition: u32,
    pub repetition: u32,
    /// The place of what it is put up on.
    pub preset: u32,
    /// In the order of their numbers; at least one.
    pub points: Vec<Point>,
}

/// The servers of a matrix in the order in which they are put up. Empty where none is asked for.
///
/// Listed, a cell has all its repetitions before the next; interleaved, every repetition goes through
/// all cells in an order of its own. The loads of a cell are never apart: they share its server.
pub fn deployments(spec: &CampaignSpec) -> Vec<Deployment> {
    let Question::Matrix(matrix) = &spec.question else { return Vec::new() };
    let mut number = 0..;
    let deployment = |(condition, repetition)| {
        let point = |&level: &Level| Point {
            number: number.next().unwrap_or(u32::MAX),
            condition,
            level,
            repetition,
            seed: seeds::swept(spec.seed, level, Stage::Planned, repetition),
            stage: Stage::Planned,
        };
        let points = matrix.levels.iter().map(point).collect();
        Deployment { condition, repetition, preset: preset_of(matrix, condition), points }
    };
    in_order(spec).into_iter().map(deployment).collect()
}

/// Every cell with every repetition.
fn in_order(spec: &CampaignSpec) -> Vec<(u32, u32)> {
    let runs = spec.repetition.runs.get();
    let cells = u32::try_from(spec.conditions.len()).unwrap_or(u32::MAX);
    match spec.order {
        Order::Listed => {
            (0..cells).flat_map(|cell| (0..runs).map(move |round| (cell, round))).collect()
        }
        Order::Interleaved => (0..runs)
            .flat_map(|round| {
                let draws = seeds::order(spec.seed, Stage::Planned, round);
                let shuffled = order::shuffled(spec.conditions.len(), draws);
                let cells = shuffled.into_iter().filter_map(|cell| u32::try_from(cell).ok());
                cells.map(move |cell| (cell, round))
            })
            .collect(),
    }
}

fn preset_of(matrix: &Matrix, condition: u32) -> u32 {
    let cell = usize::try_from(condition).ok().and_then(|place| matrix.cells.get(place));
    cell.map_or(0, |cell| cell.preset)
}

/// Whether a preset can serve several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Servers on the same hardware would disturb each other.
    OneAtATime,
    /// In virtual time nobody disturbs anybody.
    Free,
}

/// What is left to put up, for several hands.
#[derive(Clone, Debug)]
pub struct Queue {
    left: VecDeque<Deployment>,
    /// Presets that are being measured.
    busy: BTreeSet<u32>,
    sharing: Sharing,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Deployment(Deployment),
    /// All that is left waits for a preset that is busy.
    Wait,
    Done,
}

impl Queue {
    pub fn new(left: Vec<Deployment>, sharing: Sharing) -> Self {
        Self { left: left.into(), busy: BTreeSet::new(), sharing }
    }

    /// The first whose preset is free. It is busy until [`Self::finished`] is told of it.
    pub fn take(&mut self) -> Next {
        let is_free = |it: &Deployment| !self.busy.contains(&it.preset);
        let place = match self.sharing {
            Sharing::Free => Some(0),
            Sharing::OneAtATime => self.left.iter().position(is_free),
        };
        match place.and_then(|place| self.left.remove(place)) {
            Some(deployment) => {
                self.busy.insert(deployment.preset);
                Next::Deployment(deployment)
            }
            None if self.left.is_empty() => Next::Done,
            None => Next::Wait,
        }
    }

    pub fn finished(&mut self, preset: u32) {
        self.busy.remove(&preset);
    }

    /// Nothing more is put up.
    pub fn give_up(&mut self) {
        self.left.clear();
    }
}

pub(crate) fn check(spec: &CampaignSpec, matrix: &Matrix) -> Result<(), CampaignError> {
    let (cells, conditions) = (matrix.cells.len(), spec.conditions.len());
    if cells != conditions {
        return Err(CampaignError::Cells { cells, conditions });
    }
    if matrix.levels.is_empty() {
        return Err(CampaignError::NoLoad);
    }
    for (place, level) in matrix.levels.iter().enumerate() {
        if matrix.levels[..place].contains(level) {
            return Err(CampaignError::TwiceTheLevel(*level));
        }
    }
    if spec.repetition.stop_at.is_some() {
        return Err(CampaignError::StopAtOfMatrix);
    }
    let mut names = BTreeSet::new();
    for (condition, cell) in spec.conditions.iter().zip(&matrix.cells) {
        let name = || condition.name.clone();
        if !names.insert(&condition.name) {
            return Err(CampaignError::TwiceTheCell(name()));
        }
        let is_listed = |place: u32, list: usize| (place as usize) < list;
        if !is_listed(cell.preset, matrix.presets.len())
            || !is_listed(cell.model, matrix.models.len())
        {
            return Err(CampaignError::CellOfNothing(name()));
        }
    }
    Ok(())
}
