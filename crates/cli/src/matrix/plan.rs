//! From what was typed to what is asked: every cell as a whole spec, all checked before the first
//! server is put up.

use inferometer_model::campaign::{
    CampaignSpec, Cell, Condition, Matrix, MatrixModel, Preset, Question, Repetition, Strategy,
};
use inferometer_model::spec::TargetSpec;
use serde_json::{Map, Value};

use super::builtin;
use super::cell::{self, CellSpecs};
use super::expand::{Expanded, expand};
use super::file::{MatrixFile, Over};
use super::only::Selection;
use crate::arguments::MatrixArguments;
use crate::failure::Failure;
use crate::secrets::Secrets;

/// A matrix, ready to be measured.
#[derive(Debug)]
pub(crate) struct MatrixPlan {
    pub(crate) campaign: CampaignSpec,
    /// The same for all cells.
    pub(crate) secrets: Secrets,
    /// What was understood otherwise than it was written.
    pub(crate) notes: Vec<String>,
    /// What will be wrong with its results, each with its remedy.
    pub(crate) warnings: Vec<String>,
    /// Cells of the embedded engine that cannot be, by their places in the campaign.
    pub(crate) foreseen: Vec<Foreseen>,
}

/// A cell that will fail, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Foreseen {
    pub(crate) condition: usize,
    /// In the engine's own words: what it is, and then its arithmetic.
    pub(crate) reason: Vec<String>,
}

pub(crate) fn plan(arguments: &MatrixArguments) -> Result<MatrixPlan, Failure> {
    let name = arguments.matrix.as_deref().unwrap_or(builtin::DEFAULT);
    let flags = flags(arguments);
    let file = MatrixFile::named(name, Over { sets: &arguments.sets, flags: &flags })?;
    if file.is_deployed() && arguments.virtual_time {
        return Err(Failure::usage("servers that are put up have no virtual time")
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
) -> Result<MatrixPlan, Failure> {
    let expanded = expand(file)?;
    let mut notes = notes(file, &expanded);
    let all = matrix(file, expanded.cells);
    let selection = Selection::read(only, &all)?;
    let (total, cells) = (all.cells.len(), all.cells.iter().filter(|cell| selection.takes(cell)));
    let cells: Vec<Cell> = cells.cloned().collect();
    if cells.len() < total {
        notes.push(format!("{} of {total} cells were asked for", cells.len()));
    }
    let mut secrets = None;
    let mut conditions = Vec::new();
    let mut foreseen = Vec::new();
    for (condition, cell) in cells.iter().enumerate() {
        let CellSpecs { drafted, first: spec } = CellSpecs::of(file, cell, headers, simulated)?;
        if spec.target == TargetSpec::Embedded
            && let Some(reason) = cell::foreseen(&spec.engine)?
        {
            foreseen.push(Foreseen { condition, reason });
        }
        conditions.push(Condition { name: cell::name(file, cell), spec });
        secrets.get_or_insert(drafted.secrets);
    }
    let secrets = secrets.ok_or_else(|| Failure::internal("a matrix without cells"))?;
    let seed = conditions.first().map_or(0, |condition| condition.spec.seed);
    let question = Question::Matrix(pruned(all, cells));
    let repetition =
        Repetition { runs: file.runs, cool_down: file.cool_down, restart: None, stop_at: None };
    let campaign = CampaignSpec { question, conditions, repetition, order: file.order, seed };
    let warnings = warnings(file, &campaign, &foreseen);
    Ok(MatrixPlan { campaign, secrets, notes, warnings, foreseen })
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
    let single = (0_u32..).zip(&file.presets).filter(|(place, it)| {
        let has = |strategy| {
            let is_so = |cell: &Cell| cell.preset == *place && cell.strategy == Some(strategy);
            expanded.cells.iter().any(is_so)
        };
        it.preset.gpus == Some(1) && has(Strategy::Tensor) && has(Strategy::Pipeline)
    });
    let single: Vec<&str> = single.map(|(_, it)| it.preset.name.as_str()).collect();
    if !single.is_empty() {
        notes.push(format!(
            "on one GPU both strategies are the same server, measured twice: {}",
            single.join(", ")
        ));
    }
    let (lanes, presets) = (file.lanes.get(), file.presets.len());
    if usize::try_from(lanes).is_ok_and(|lanes| presets < lanes) {
        notes.push(format!("{lanes} lanes, and no more than {presets} presets to be in them"));
    }
    notes
}

fn warnings(file: &MatrixFile, campaign: &CampaignSpec, foreseen: &[Foreseen]) -> Vec<String> {
    let mut warnings = Vec::new();
    if campaign.repetition.runs.get() == 1 {
        warnings.push(
            "each cell is measured once, so that no difference has an interval; add --repeat 5"
                .to_owned(),
        );
    }
    let is_priced = |price: Option<f64>| price.is_some();
    let priced = file.presets.iter().filter(|it| is_priced(it.preset.price_per_hour)).count();
    if 0 < priced && priced < file.presets.len() {
        warnings.push(
            "not all presets have a price, so that costs cannot be compared; write price_per_hour \
             into each"
                .to_owned(),
        );
    }
    if foreseen.len() == campaign.conditions.len() {
        warnings.push(
            "no cell can be put up; use shorter contexts, larger presets or smaller models"
                .to_owned(),
        );
    }
    warnings
}
