//! Which deployment is best at what, and how surely.
//!
//! A row is certainly the best when it is ahead of every other deployment by more than chance would
//! explain. Which row is tested was found by looking, so its chance is that of any of the others
//! being taken for the best (Bonferroni within a question); a matrix asks many questions at once, so
//! chances are raised for their number (Holm). Fewer than one matrix in forty then calls any row
//! certainly the best that is not.
//!
//! Contexts are questions of their own: their loads are not the same load.

use super::figure::{TpsBy, is_still, values};
use super::tables::Table;
use super::{Certainty, MatrixFigure, MatrixRow, Speedup, Winner};
use crate::metric::Better;
use crate::set::Across;
use crate::statistics::multiplicity::holm;
use crate::statistics::{UPPER, ratio};

pub(super) fn winners(all: Table<'_>) -> Vec<Winner> {
    let questions = all.gathered(|row| (row.context, row.model, all.level(row)));
    let mut found: Vec<(Winner, Option<Lead>)> = questions
        .into_values()
        .flat_map(|places| {
            MatrixFigure::ALL.into_iter().filter_map(move |figure| winner(all, figure, &places))
        })
        .collect();
    let chances: Vec<f64> =
        found.iter().filter_map(|(_, lead)| lead.and_then(Lead::chance)).collect();
    let mut raised = holm(&chances).into_iter();
    for (winner, lead) in &mut found {
        let chance = lead.and_then(Lead::chance).and_then(|_| raised.next());
        if chance.is_some_and(|chance| chance < 1.0 - UPPER) {
            winner.certainty = Certainty::Certain;
        }
    }
    found.into_iter().map(|(winner, _)| winner).collect()
}

/// What runs say of a row that is ahead of others; what says less is greater.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Lead {
    /// That it is not ahead.
    Chance(f64),
    NoSpread,
    OneRun,
}

/// Of the rows that have the figure, with what several runs say of its lead.
fn winner(all: Table<'_>, figure: MatrixFigure, places: &[u32]) -> Option<(Winner, Option<Lead>)> {
    let is_candidate = |row: &MatrixRow| {
        let is_told = figure.of(row, all.tps_by).mean.is_some();
        is_told && row.may_win() && !all.has_tensor_twin(row)
    };
    let candidates = || {
        let rows = places.iter().filter_map(|place| Some((*place, all.row(*place)?)));
        rows.filter(|(_, row)| is_candidate(row))
    };
    let (place, value) = figure.best(candidates(), all.tps_by)?;
    let best = all.row(place)?;
    let rivals: Vec<(u32, &MatrixRow)> = candidates()
        .filter(|(other, row)| *other != place && !row.is_same_deployment(best, all.presets))
        .collect();
    let runner_up = figure.best(rivals.iter().copied(), all.tps_by).map(|(place, _)| place);
    let lead = lead(figure, best, &rivals, all.tps_by);
    let certainty = match lead {
        None => Certainty::Alone,
        Some(Lead::OneRun) => Certainty::OneRun,
        Some(Lead::NoSpread) => Certainty::NoSpread,
        Some(Lead::Chance(_)) => Certainty::Undecided,
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
    Some((winner, lead))
}

/// Over all of these together; `None` without a rival.
fn lead(
    figure: MatrixFigure,
    best: &MatrixRow,
    rivals: &[(u32, &MatrixRow)],
    tps_by: TpsBy,
) -> Option<Lead> {
    let own = figure.of(best, tps_by);
    let leads = rivals.iter().map(|(_, rival)| Lead::of(figure, own, figure.of(rival, tps_by)));
    Some(match leads.reduce(|one, other| if one < other { other } else { one })? {
        Lead::Chance(largest) => Lead::Chance((largest * rivals.len() as f64).min(1.0)),
        unknown @ (Lead::NoSpread | Lead::OneRun) => unknown,
    })
}

impl Lead {
    fn of(figure: MatrixFigure, own: &Across, rival: &Across) -> Self {
        if own.n < 2 || rival.n < 2 {
            return Self::OneRun;
        }
        if is_still(own) && is_still(rival) {
            return Self::NoSpread;
        }
        let (lower, higher) = match figure.better() {
            Better::Higher => (rival, own),
            Better::Lower | Better::Neither => (own, rival),
        };
        // A mean of zero has no relative spread either.
        ratio::chance_above(&values(lower), &values(higher)).map_or(Self::NoSpread, Self::Chance)
    }

    const fn chance(self) -> Option<f64> {
        match self {
            Self::Chance(chance) => Some(chance),
            Self::NoSpread | Self::OneRun => None,
        }
    }
}
