//! All cells of a matrix: everything times everything, less what is excluded, and what is included
//! beside it.

use std::collections::BTreeMap;

use inferometer_model::campaign::{Cell, Strategy};

use super::file::MatrixFile;
use super::rule::Rule;
use crate::failure::Failure;

/// A limit against mistakes.
pub(super) const CELLS_MAX: usize = 4_096;

/// The cells, and the rules that had no effect, by the numbers that people count them with.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) cells: Vec<Cell>,
    pub(super) idle_excludes: Vec<usize>,
    pub(super) idle_includes: Vec<usize>,
}

pub(super) fn expand(file: &MatrixFile) -> Result<Expanded, Failure> {
    let mut cells = product(file, &Rule::default())?;
    let idle = |(number, rule): (usize, &Rule)| {
        let takes_none = !cells.iter().any(|cell| rule.takes(cell));
        takes_none.then_some(number)
    };
    let idle_excludes = (1..).zip(&file.excludes).filter_map(idle).collect();
    cells.retain(|cell| !file.excludes.iter().any(|rule| rule.takes(cell)));
    let mut idle_includes = Vec::new();
    for (number, rule) in (1..).zip(&file.includes) {
        let before = cells.len();
        for cell in product(file, rule)? {
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        if cells.len() == before {
            idle_includes.push(number);
        }
    }
    if cells.is_empty() {
        return Err(Failure::usage(format!("every cell of `{}` is excluded", file.name))
            .hint("leave out an [[exclude]], or narrow it"));
    }
    check_count(file, cells.len())?;
    // Presets stay together, and the models of each: that is how they are deployed and read.
    cells.sort_by_key(|cell| (cell.preset, cell.model));
    Ok(Expanded { cells, idle_excludes, idle_includes })
}

fn check_count(file: &MatrixFile, count: usize) -> Result<(), Failure> {
    if count <= CELLS_MAX {
        return Ok(());
    }
    Err(Failure::usage(format!("`{}` has {count} cells, more than {CELLS_MAX}", file.name))
        .hint("cut it into several files, or [[exclude]] what is not needed"))
}

/// Every value of every axis that the rule does not narrow.
fn product(file: &MatrixFile, rule: &Rule) -> Result<Vec<Cell>, Failure> {
    let axes = &file.axes;
    let all = |count: usize| (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    let presets = rule.presets.clone().unwrap_or_else(|| all(axes.presets.len()));
    let models = rule.models.clone().unwrap_or_else(|| all(axes.models.len()));
    let contexts = options(rule.contexts.as_ref().unwrap_or(&axes.contexts));
    let strategies = options(rule.strategies.as_ref().unwrap_or(&axes.strategies));
    let flag = |(name, all): (&String, &Vec<String>)| {
        (name.clone(), rule.flags.get(name).unwrap_or(all).clone())
    };
    let flags: Vec<(String, Vec<String>)> = axes.flags.iter().map(flag).collect();
    let lengths = [presets.len(), models.len(), contexts.len(), strategies.len()];
    let lengths = lengths.into_iter().chain(flags.iter().map(|(_, values)| values.len()));
    check_count(file, lengths.fold(1, usize::saturating_mul))?;
    let mut cells = Vec::new();
    for &preset in &presets {
        for &model in &models {
            for &context in &contexts {
                for &strategy in &strategies {
                    for flags in combinations(&flags) {
                        let (tp, pp) = spread(file, preset, strategy);
                        cells.push(Cell { preset, model, context, strategy, tp, pp, flags });
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// An axis that is not varied has one place.
fn options<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

fn combinations(flags: &[(String, Vec<String>)]) -> Vec<BTreeMap<String, String>> {
    flags.iter().fold(vec![BTreeMap::new()], |before, (name, values)| {
        let with = |chosen: &BTreeMap<String, String>| {
            let with = |value: &String| {
                let mut chosen = chosen.clone();
                chosen.insert(name.clone(), value.clone());
                chosen
            };
            values.iter().map(with).collect::<Vec<_>>()
        };
        before.iter().flat_map(with).collect()
    })
}

/// All GPUs of a preset serve one model: side by side, or one after the other.
fn spread(
    file: &MatrixFile,
    preset: u32,
    strategy: Option<Strategy>,
) -> (Option<u32>, Option<u32>) {
    let preset = usize::try_from(preset).ok().and_then(|place| file.presets.get(place));
    let Some(gpus) = preset.and_then(|it| it.preset.gpus) else { return (None, None) };
    match strategy {
        None | Some(Strategy::Tensor) => (Some(gpus), Some(1)),
        Some(Strategy::Pipeline) => (Some(1), Some(gpus)),
    }
}
