//! From what was typed to what is asked: every cell as a whole spec, all checked before the first
//! server is deployed.

use std::num::NonZeroU32;

use inferometer_model::campaign::{
    CampaignSpec, Cell, Condition, Matrix, MatrixModel, Preset, Question, Repetition, Strategy,
};
use inferometer_model::spec::TargetSpec;
use serde_json::{Map, Value};

use super::axes::engine_key;
use super::builtin;
use super::cell::{self, CellSpecs};
use super::expand::{Expanded, expand};
use super::file::{MatrixFile, Over};
use super::only::Selection;
use super::sameness;
use crate::arguments::MatrixArguments;
use crate::failure::Failure;
use crate::study::StudyPlan;

/// Cells times loads, and those times repetitions, of one set.
const ROWS_MAX: usize = 4_096;
const RUNS_MAX: usize = 20_000;

pub(crate) fn plan(arguments: &MatrixArguments) -> Result<StudyPlan, Failure> {
    let name = arguments.matrix.as_deref().unwrap_or(builtin::DEFAULT);
    let flags = flags(arguments);
    let file = MatrixFile::named(name, Over { sets: &arguments.sets, flags: &flags })?;
    if file.is_deployed() && arguments.virtual_time {
        return Err(Failure::usage("servers that are deployed have no virtual time")
            .hint("leave out --virtual, or write [engine] instead of [deploy]"));
    }
    planned(&file, &arguments.only, &arguments.headers, arguments.virtual_time)
}

fn flags(arguments: &MatrixArguments) -> Map<String, Value> {
    let numbers = [
        ("repeat", arguments.repeat.map(Value::from)),
        ("lanes", arguments.lanes.map(Value::from)),
        ("seed", arguments.seed.map(Value::from)),
    ];
    numbers.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

pub(super) fn planned(
    file: &MatrixFile,
    only: &[String],
    headers: &[String],
    simulated: bool,
) -> Result<StudyPlan, Failure> {
    let expanded = expand(file)?;
    let mut notes = notes(file, &expanded);
    let mut all = matrix(file, expanded.cells);
    let selection = Selection::read(only, &all)?;
    let (total, cells) = (all.cells.len(), all.cells.iter().filter(|cell| selection.takes(cell)));
    let cells: Vec<Cell> = cells.cloned().collect();
    if cells.len() < total {
        notes.push(format!("{} of {total} cells were asked for", cells.len()));
    }
    all.levels.retain(|level| selection.takes_load(level));
    check_runs(&all, cells.len(), file.runs)?;
    let mut secrets = Vec::new();
    let mut conditions = Vec::new();
    let mut foreseen = Vec::new();
    for (condition, cell) in cells.iter().enumerate() {
        let CellSpecs { drafted, first: spec } = CellSpecs::of(file, cell, headers, simulated)?;
        if spec.target == TargetSpec::Embedded
            && let Some(reason) = cell::foreseen(file, cell, &spec.engine)?
        {
            foreseen.push((condition, reason));
        }
        conditions.push(Condition { name: cell::name(file, cell), spec });
        secrets.push(drafted.secrets);
    }
    let seed = conditions.first().map_or(0, |condition| condition.spec.seed);
    let matrix = pruned(all, cells);
    notes.extend(notes_on_cells(&matrix, simulated));
    let question = Question::Matrix(matrix.clone());
    let repetition =
        Repetition { runs: file.runs, cool_down: file.cool_down, restart: None, stop_at: None };
    let campaign = CampaignSpec { question, conditions, repetition, order: file.order, seed };
    let warnings = warnings(&matrix, &campaign, &foreseen);
    Ok(StudyPlan { warnings, foreseen, ..StudyPlan::new(campaign, secrets, notes) })
}

/// The summary of a set has every cell at every load, and must stay small enough to be read.
fn check_runs(matrix: &Matrix, cells: usize, runs: NonZeroU32) -> Result<(), Failure> {
    let loads = matrix.levels.len();
    let rows = cells.saturating_mul(loads);
    let points = rows.saturating_mul(usize::try_from(runs.get()).unwrap_or(usize::MAX));
    if rows <= ROWS_MAX && points <= RUNS_MAX {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "`{}` has {cells} cells at {loads} load{}, {runs} time{} each: {points} runs, and a set has \
         at most {ROWS_MAX} cells and loads and {RUNS_MAX} runs",
        matrix.name,
        if loads == 1 { "" } else { "s" },
        if runs.get() == 1 { "" } else { "s" },
    ))
    .hint("measure it in parts with --only, at fewer loads, or less often"))
}

fn matrix(file: &MatrixFile, cells: Vec<Cell>) -> Matrix {
    Matrix {
        name: file.name.clone(),
        title: file.title.clone(),
        presets: file.presets.iter().map(|it| it.preset.clone()).collect(),
        models: file.models.iter().map(|it| it.model.clone()).collect(),
        cells,
        levels: file.levels.clone(),
        lanes: file.lanes,
        currency: file.currency.clone(),
    }
}

/// Presets and models that no cell has are left out: nothing will be known of them.
fn pruned(all: Matrix, cells: Vec<Cell>) -> Matrix {
    let (presets, preset_at) = used::<Preset>(all.presets, &cells, |cell| cell.preset);
    let (models, model_at) = used::<MatrixModel>(all.models, &cells, |cell| cell.model);
    let moved = |places: &[u32], place: u32| {
        usize::try_from(place).ok().and_then(|place| places.get(place)).copied().unwrap_or(place)
    };
    let cells = cells
        .into_iter()
        .map(|cell| Cell {
            preset: moved(&preset_at, cell.preset),
            model: moved(&model_at, cell.model),
            ..cell
        })
        .collect();
    Matrix { presets, models, cells, ..all }
}

/// Those that a cell has, and the new place of each.
fn used<T>(all: Vec<T>, cells: &[Cell], of: impl Fn(&Cell) -> u32) -> (Vec<T>, Vec<u32>) {
    let mut kept = Vec::new();
    let mut places = Vec::new();
    for (place, value) in (0_u32..).zip(all) {
        places.push(u32::try_from(kept.len()).unwrap_or(u32::MAX));
        if cells.iter().any(|cell| of(cell) == place) {
            kept.push(value);
        }
    }
    (kept, places)
}

fn notes(file: &MatrixFile, expanded: &Expanded) -> Vec<String> {
    let mut notes = Vec::new();
    if !file.rising {
        notes.push(
            "the numbers in flight did not rise: they are put in order, each once".to_owned(),
        );
    }
    for (kind, idle) in [("exclude", &expanded.idle_excludes), ("include", &expanded.idle_includes)]
    {
        let idle: Vec<String> = idle.iter().map(usize::to_string).collect();
        if !idle.is_empty() {
            notes.push(format!("[[{kind}]] {} changes nothing", idle.join(", ")));
        }
    }
    notes
}

/// Of the cells that were asked for.
fn notes_on_cells(matrix: &Matrix, simulated: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let single = (0_u32..).zip(&matrix.presets).filter(|(place, preset)| {
        let has = |strategy| {
            let is_so = |cell: &Cell| cell.preset == *place && cell.strategy == Some(strategy);
            matrix.cells.iter().any(is_so)
        };
        preset.gpus == Some(1) && has(Strategy::Tensor) && has(Strategy::Pipeline)
    });
    let single: Vec<&str> = single.map(|(_, preset)| preset.name.as_str()).collect();
    if !single.is_empty() {
        notes.push(format!(
            "on one GPU both strategies are the same server, measured twice: {}",
            single.join(", ")
        ));
    }
    let (lanes, presets) = (matrix.lanes.get(), matrix.presets.len());
    if usize::try_from(lanes).is_ok_and(|lanes| presets < lanes) {
        notes.push(format!("{lanes} lanes, and no more than {presets} presets to be in them"));
    }
    let has_speed = |cell: &Cell| cell.flags.keys().any(|flag| engine_key(flag) == "speed");
    if simulated && matrix.cells.iter().any(has_speed) {
        notes.push(
            "virtual time has no speed: cells that differ by `speed` come to the same".to_owned(),
        );
    }
    notes
}

fn warnings(
    matrix: &Matrix,
    campaign: &CampaignSpec,
    foreseen: &[(usize, Vec<String>)],
) -> Vec<String> {
    let mut warnings: Vec<String> =
        [sameness::warning(campaign, matrix), sameness::too_short(campaign, matrix)]
            .into_iter()
            .flatten()
            .collect();
    if campaign.repetition.runs.get() == 1 {
        warnings.push(
            "each cell is measured once, so that no difference has an interval; add --repeat 5"
                .to_owned(),
        );
    }
    let priced = matrix.presets.iter().filter(|it| it.price_per_hour.is_some()).count();
    if 0 < priced && priced < matrix.presets.len() {
        warnings.push(
            "not all presets have a price, so that costs cannot be compared; write price_per_hour \
             into each"
                .to_owned(),
        );
    }
    if foreseen.len() == campaign.conditions.len() {
        warnings.push(
            "no cell can start; use shorter contexts, larger presets or smaller models".to_owned(),
        );
    }
    warnings
}
