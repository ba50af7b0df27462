//! The tables of both pages.

use inferometer_analysis::comparison::{
    Comparison, LayoutFigures, LevelComparison, QuantityComparison, SideComparison,
};

use super::grid::{Cell, Grid};
use super::names::Names;
use super::words;
use crate::fmt::{NOTHING, number};
use crate::terminal::Ink;

/// What the speed-up table is about: prompts and answers.
const SPEED_UPS: [&str; 2] = ["input_throughput", "output_throughput"];

/// More levels than these are told by what decides alone: two matrices would be pages of tables.
const LEVELS_MAX: usize = 16;

/// Every table of the comparison, in the order of the page.
pub(super) fn all(comparison: &Comparison, names: &Names) -> Vec<Grid> {
    let mut grids = Vec::new();
    if LEVELS_MAX < comparison.levels.len() {
        grids.push(deciding(comparison, names));
    } else {
        for level in &comparison.levels {
            let of_side = |side| quantities(comparison, names, level, side);
            grids.extend(level.against.iter().map(of_side));
        }
    }
    // With one level and one side it would only repeat the table above it, and of many rows too.
    let several = 1 < comparison.levels.len() || 1 < comparison.outcomes.len();
    if several && comparison.levels.len() <= LEVELS_MAX {
        grids.extend(speed_ups(comparison, names));
    }
    grids.extend(layouts(comparison, names));
    grids
}

fn quantities(
    comparison: &Comparison,
    names: &Names,
    level: &LevelComparison,
    side: &SideComparison,
) -> Grid {
    let (base, name) = (names.base(), names.of(&side.side));
    let several = 1 < comparison.levels.len();
    let title = match (several, 1 < comparison.outcomes.len()) {
        (false, false) => None,
        (false, true) => Some(format!("{name} against {base}")),
        (true, false) => Some(names.place(&level.told())),
        (true, true) => Some(format!("{}: {name} against {base}", names.place(&level.told()))),
    };
    let heads = ["", base, name, "change", "95 % interval", "verdict"];
    Grid {
        title,
        heads: heads.map(str::to_owned).to_vec(),
        rows: side.quantities.iter().map(quantity).collect(),
        remarks: words::other_confidence(comparison)
            .into_iter()
            .chain(words::reasons(side))
            .collect(),
    }
}

/// What decides at every level, a line for each.
fn deciding(comparison: &Comparison, names: &Names) -> Grid {
    let several = 1 < comparison.outcomes.len();
    let mut title = words::title(&comparison.primary);
    let (mut rows, mut reasons) = (Vec::new(), Vec::new());
    for level in &comparison.levels {
        for side in &level.against {
            let Some(found) = side.quantities.iter().find(|found| found.primary) else { continue };
            title = titled(found);
            let of = if several { format!(", {}", names.of(&side.side)) } else { String::new() };
            let place = Cell::plain(format!("{}{of}", names.place(&level.told())));
            rows.push([vec![place], figures(found)].concat());
            reasons.extend(words::reason_of(found).filter(|reason| !reasons.contains(reason)));
        }
    }
    let other = comparison.outcomes.first().filter(|_| !several);
    let other = other.map_or("other", |outcome| names.of(&outcome.side));
    let heads = ["", names.base(), other, "change", "95 % interval", "verdict"];
    let folded = "of so many rows only what decides is told: --primary takes another quantity, and \
                  --json has them all";
    Grid {
        title: Some(title),
        heads: heads.map(str::to_owned).to_vec(),
        rows,
        remarks: words::other_confidence(comparison)
            .into_iter()
            .chain(names.shared.as_ref().map(|shared| format!("every row: {shared}")))
            .chain(reasons)
            .chain([folded.to_owned()])
            .collect(),
    }
}

fn quantity(found: &QuantityComparison) -> Vec<Cell> {
    let title = titled(found);
    let title = if found.primary { Cell::painted(title, Ink::Bold) } else { Cell::plain(title) };
    [vec![title], figures(found)].concat()
}

/// With its unit.
fn titled(found: &QuantityComparison) -> String {
    let name = &found.quantity;
    let unit = if words::is_share(name) { String::new() } else { format!(" ({})", found.unit) };
    format!("{}{unit}", words::title(name))
}

/// Both sides, the change and what is thought of it.
fn figures(found: &QuantityComparison) -> Vec<Cell> {
    let value = |side: &inferometer_analysis::comparison::SideValue| {
        let mark = if side.certified || side.mean.is_none() { "" } else { "~" };
        Cell::plain(format!("{mark}{}", words::value(&found.quantity, side.mean)))
    };
    let verdict = found.judgement.key();
    vec![
        value(&found.base),
        value(&found.other),
        Cell::plain(words::either(found.change, found.bare_ratio)),
        Cell::plain(found.change.map_or_else(dash, words::interval)),
        words::ink(found.judgement)
            .map_or_else(|| Cell::plain(verdict), |ink| Cell::painted(verdict, ink)),
    ]
}

/// Throughputs of prompts and of answers side by side, and how much faster in per cent.
fn speed_ups(comparison: &Comparison, names: &Names) -> Option<Grid> {
    let mut rows = Vec::new();
    for level in &comparison.levels {
        for (place, side) in level.against.iter().enumerate() {
            let found = SPEED_UPS.map(|name| level.quantity(place, name));
            if found.iter().all(Option::is_none) {
                continue;
            }
            let mean = |found: Option<&QuantityComparison>, is_base: bool| {
                let mean = found
                    .and_then(|found| if is_base { found.base.mean } else { found.other.mean });
                Cell::plain(number(mean))
            };
            let speed_up = |found: Option<&QuantityComparison>| {
                Cell::plain(
                    found.map_or_else(dash, |found| words::either(found.change, found.bare_ratio)),
                )
            };
            let [prompt, answers] = found;
            let place = names.narrow_place(&level.told());
            let label = match comparison.outcomes.len() {
                1 => place,
                _ => format!("{place}, {}", names.of(&side.side)),
            };
            rows.push(vec![
                Cell::plain(label),
                mean(prompt, true),
                mean(prompt, false),
                speed_up(prompt),
                mean(answers, true),
                mean(answers, false),
                speed_up(answers),
            ]);
        }
    }
    let heads =
        ["", "prompts, base", "prompts", "speed-up", "answers, base", "answers", "speed-up"];
    let mut grid = Grid {
        title: Some(format!("Speed-up over {} (tokens per second)", names.base())),
        heads: heads.map(str::to_owned).to_vec(),
        rows,
        remarks: Vec::new(),
    };
    grid.leave_out_columns_of(NOTHING);
    (1 < grid.heads.len()).then_some(grid)
}

fn layouts(comparison: &Comparison, names: &Names) -> Option<Grid> {
    let first = comparison.layouts.first()?;
    let gpus = first.replicas * first.tensor_parallel;
    let several = 1 < comparison.levels.len();
    let row = |found: &LayoutFigures| {
        let at = if several { format!(", {}", names.place(&found.told())) } else { String::new() };
        let layout =
            format!("{}×{} {}{at}", found.replicas, found.tensor_parallel, names.of(&found.side));
        vec![
            Cell::plain(layout),
            Cell::plain(number(found.per_gpu.value)),
            Cell::plain(number(found.node.value)),
            Cell::plain(words::either(found.change, found.bare_ratio)),
            Cell::plain(found.change.map_or_else(dash, words::interval)),
        ]
    };
    let heads = ["servers × GPUs", "per GPU", "node", "change", "95 % interval"];
    Some(Grid {
        title: Some(format!("A node of {gpus} GPUs (output tokens per second)")),
        heads: heads.map(str::to_owned).to_vec(),
        rows: comparison.layouts.iter().map(row).collect(),
        remarks: vec![
            "Tokens/s × GPUs / tensor-parallel size: replicas are taken to scale linearly, and \
             nobody measured them together."
                .to_owned(),
        ],
    })
}

fn dash() -> String {
    NOTHING.to_owned()
}
