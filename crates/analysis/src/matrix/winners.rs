//! Which deployment is best at what, and how surely.
//!
//! A row is certainly the best when it is ahead of every other deployment by more than chance would
//! explain. Which row is tested was found by looking, so its chance is that of any of the others
//! being taken for the best (Bonferroni within a question); a matrix asks many questions at once, so
//! chances are raised for their number (Holm). Fewer than one matrix in forty then calls any row
//! certainly the best that is not.

use super::figure::{TpsBy, values};
use super::tables::Table;
use super::{Certainty, MatrixFigure, MatrixRow, Speedup, Winner};
use crate::metric::Better;
use crate::statistics::multiplicity::holm;
use crate::statistics::{UPPER, ratio};

pub(super) fn winners(all: Table<'_>) -> Vec<Winner> {
    let questions = all.gathered(|row| (row.context, row.model, all.level(row)));
    let mut found: Vec<(Winner, Option<f64>)> = questions
        .into_values()
        .flat_map(|places| {
            MatrixFigure::ALL.into_iter().filter_map(move |figure| winner(all, figure, &places))
        })
        .collect();
    let chances: Vec<f64> = found.iter().filter_map(|(_, chance)| *chance).collect();
    let mut raised = holm(&chances).into_iter();
    for (winner, chance) in &mut found {
        if chance.is_some() && raised.next().is_some_and(|chance| chance < 1.0 - UPPER) {
            winner.certainty = Certainty::Certain;
        }
    }
    found.into_iter().map(|(winner, _)| winner).collect()
}

/// With the chance that it is none, where several runs tell.
fn winner(all: Table<'_>, figure: MatrixFigure, places: &[u32]) -> Option<(Winner, Option<f64>)> {
    let rows = || places.iter().filter_map(|place| Some((*place, all.row(*place)?)));
    let (place, value) = figure.best(rows(), all.tps_by)?;
    let best = all.row(place)?;
    let is_candidate = |row: &MatrixRow| row.may_win() && figure.of(row, all.tps_by).mean.is_some();
    let others = || rows().filter(|(other, row)| *other != place && is_candidate(row));
    let rivals: Vec<(u32, &MatrixRow)> =
        others().filter(|(_, row)| !row.is_same_deployment(best, all.presets)).collect();
    let runner_up = figure.best(rivals.iter().copied(), all.tps_by).map(|(place, _)| place);
    let chance = chance(figure, best, &rivals, all.tps_by);
    let certainty = match (rivals.is_empty(), chance) {
        (true, _) if others().next().is_some() => Certainty::Same,
        (true, _) => Certainty::Alone,
        (false, None) => Certainty::OneRun,
        (false, Some(_)) => Certainty::Undecided,
    };
    let ahead = runner_up.and_then(|place| all.row(place)).and_then(|other| {
        let (base, best) = (figure.of(other, all.tps_by), figure.of(best, all.tps_by));
        match figure.better() {
            Better::Higher => Speedup::of(base, best),
            Better::Lower | Better::Neither => Speedup::of_less(base, best),
        }
    });
    let (context, model, level) = (best.context, best.model, best.level);
    let winner =
        Winner { figure, context, model, level, row: place, value, runner_up, ahead, certainty };
    Some((winner, chance))
}

/// The chance that a row so far ahead of all of these is not the best. `None` without a rival, or
/// where a side has one run or no run differs from another.
fn chance(
    figure: MatrixFigure,
    best: &MatrixRow,
    rivals: &[(u32, &MatrixRow)],
    tps_by: TpsBy,
) -> Option<f64> {
    let own = values(figure.of(best, tps_by));
    let mut largest: Option<f64> = None;
    for (_, rival) in rivals {
        let other = values(figure.of(rival, tps_by));
        let chance = match figure.better() {
            Better::Higher => ratio::chance_above(&other, &own),
            Better::Lower | Better::Neither => ratio::chance_above(&own, &other),
        }?;
        largest = Some(largest.map_or(chance, |largest| largest.max(chance)));
    }
    largest.map(|largest| (largest * rivals.len() as f64).min(1.0))
}
