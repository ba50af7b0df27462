//! The tables of a matrix, and which deployment is best at what.
//!
//! A row is certainly the best when it is ahead of every other deployment by more than chance would
//! explain. Which row is tested was found by looking, so its chance is that of any of the others
//! being taken for the best (Bonferroni within a question); a matrix asks many questions at once, so
//! chances are raised for their number (Holm). Fewer than one matrix in forty then calls any row
//! certainly the best that is not.
//!
//! Contexts are questions of their own: their loads are not the same load.

use std::collections::BTreeMap;

use inferometer_model::study::{Level, Preset, Strategy};

use super::{
    Certainty, Highest, LoadTable, MatrixFigure, MatrixRow, MatrixSection, Speedup, StrategyRow,
    StrategyTable, TpsBy, Winner, is_still, values,
};
use crate::metric::Better;
use crate::set::AcrossRuns;
use crate::statistics::{Interval, UPPER, multiplicity::holm, ratio};

/// All rows, and what they are put in order by.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) rows: &'a [MatrixRow],
    pub(super) levels: &'a [Level],
    pub(super) presets: &'a [Preset],
    pub(super) tps_by: TpsBy,
}

/// What a section's rows have in common, in the order of the sections. The last is the level by its
/// place.
type SectionKey<'a> =
    (Option<u32>, u32, Option<Strategy>, &'a BTreeMap<String, String>, Option<usize>);

impl<'a> Table<'a> {
    pub(super) fn sections(self) -> Vec<MatrixSection> {
        let key = |row: &'a MatrixRow| -> SectionKey<'a> {
            (row.context, row.model, row.strategy, &row.flags, self.level(row))
        };
        self.gathered(key).into_values().filter_map(|places| self.section(places)).collect()
    }

    fn section(self, places: Vec<u32>) -> Option<MatrixSection> {
        let first = self.row(*places.first()?)?;
        let own = || places.iter().filter_map(|place| Some((*place, self.row(*place)?)));
        let stands = |(_, row): &(u32, &MatrixRow)| !row.has_tensor_twin(self.rows, self.presets);
        let highest = MatrixFigure::ALL.into_iter().filter_map(|figure| {
            let (row, value) = figure.best(own().filter(stands), self.tps_by)?;
            Some(Highest { figure, row, value })
        });
        Some(MatrixSection {
            context: first.context,
            model: first.model,
            strategy: first.strategy,
            flags: flags(first),
            level: first.level,
            highest: highest.collect(),
            errors: own()
                .filter(|(_, row)| 0 < row.errors)
                .map(|(place, row)| (place, row.errors))
                .collect(),
            failed: own().filter(|(_, row)| row.is_failed()).map(|(place, _)| place).collect(),
            rows: places,
        })
    }

    pub(super) fn strategies(self) -> Vec<StrategyTable> {
        let has = |strategy| self.rows.iter().any(|row| row.strategy == Some(strategy));
        if !has(Strategy::Tensor) || !has(Strategy::Pipeline) {
            return Vec::new();
        }
        let key = |row: &'a MatrixRow| (row.context, row.model, &row.flags, self.level(row));
        let tables = self.gathered(key).into_values();
        tables.filter_map(|places| self.strategy_table(&places)).collect()
    }

    /// `None` where no cell has a strategy.
    fn strategy_table(self, places: &[u32]) -> Option<StrategyTable> {
        let first = self.row(*places.first()?)?;
        let mut rows: BTreeMap<u32, [Option<u32>; 2]> = BTreeMap::new();
        for place in places {
            let Some(row) = self.row(*place) else { continue };
            let Some(strategy) = row.strategy else { continue };
            let sides = rows.entry(row.preset).or_default();
            sides[usize::from(strategy == Strategy::Pipeline)] = Some(*place);
        }
        (!rows.is_empty()).then(|| StrategyTable {
            context: first.context,
            model: first.model,
            flags: flags(first),
            level: first.level,
            rows: rows
                .into_iter()
                .map(|(preset, sides)| self.strategy_row(preset, sides))
                .collect(),
        })
    }

    fn strategy_row(self, preset: u32, [tensor, pipeline]: [Option<u32>; 2]) -> StrategyRow {
        let both = tensor
            .zip(pipeline)
            .and_then(|(tensor, pipeline)| Some((self.row(tensor)?, self.row(pipeline)?)));
        let speedup = |figure: MatrixFigure| {
            let (tensor, pipeline) =
                both.filter(|(tensor, pipeline)| tensor.may_win() && pipeline.may_win())?;
            Speedup::between(
                figure.in_row(pipeline, self.tps_by),
                figure.in_row(tensor, self.tps_by),
            )
        };
        StrategyRow {
            preset,
            tensor,
            pipeline,
            same_deployment: both
                .is_some_and(|(one, other)| one.is_same_deployment(other, self.presets)),
            prompt_speedup: speedup(MatrixFigure::PromptTps),
            generation_speedup: speedup(MatrixFigure::GenerationTps),
        }
    }

    pub(super) fn loads(self) -> Vec<LoadTable> {
        if self.levels.len() < 2 {
            return Vec::new();
        }
        let key = |row: &'a MatrixRow| (row.context, row.model, row.strategy, &row.flags);
        self.gathered(key).into_values().filter_map(|places| self.load_table(&places)).collect()
    }

    fn load_table(self, places: &[u32]) -> Option<LoadTable> {
        let first = self.row(*places.first()?)?;
        let mut presets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for place in places {
            let Some(row) = self.row(*place) else { continue };
            presets.entry(row.preset).or_default().push(*place);
        }
        let load = |place: &u32| {
            let level = self.row(*place).and_then(|row| row.level.place());
            level.unwrap_or(f64::NEG_INFINITY)
        };
        for own in presets.values_mut() {
            own.sort_by(|one, other| load(one).total_cmp(&load(other)));
        }
        Some(LoadTable {
            context: first.context,
            model: first.model,
            strategy: first.strategy,
            flags: flags(first),
            presets: presets.into_iter().collect(),
        })
    }

    /// The places of the rows that have the same key, in the order of their presets.
    pub(super) fn gathered<K: Ord>(
        self,
        key: impl Fn(&'a MatrixRow) -> K,
    ) -> BTreeMap<K, Vec<u32>> {
        let mut groups: BTreeMap<K, Vec<u32>> = BTreeMap::new();
        for (place, row) in (0_u32..).zip(self.rows) {
            groups.entry(key(row)).or_default().push(place);
        }
        for places in groups.values_mut() {
            places.sort_by_key(|place| self.row(*place).map(|row| row.preset));
        }
        groups
    }

    pub(super) fn row(self, place: u32) -> Option<&'a MatrixRow> {
        self.rows.get(place as usize)
    }

    /// The place of its level in the plan.
    pub(super) fn level(self, row: &MatrixRow) -> Option<usize> {
        self.levels.iter().position(|level| *level == row.level)
    }
}

impl Speedup {
    /// How much more the other has than the base.
    pub(super) fn between(base: &AcrossRuns, other: &AcrossRuns) -> Option<Self> {
        let (times, found) = super::times(base, other)?;
        let less_one = |it: Interval| Interval { low: it.low - 1.0, high: it.high - 1.0 };
        Some(Self { share: times - 1.0, interval: found.map(|found| less_one(found.interval)) })
    }

    /// How much less, where it is how much more.
    fn mirrored(self) -> Self {
        let mirrored = |it: Interval| Interval { low: -it.high, high: -it.low };
        Self { share: -self.share, interval: self.interval.map(mirrored) }
    }
}

fn flags(row: &MatrixRow) -> Vec<(String, String)> {
    row.flags.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

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
        let is_told = figure.in_row(row, all.tps_by).mean.is_some();
        is_told && row.may_win() && !row.has_tensor_twin(all.rows, all.presets)
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
        let (base, best) = (figure.in_row(other, all.tps_by), figure.in_row(best, all.tps_by));
        let more = Speedup::between(base, best);
        if figure.better() == Better::Higher { more } else { more.map(Speedup::mirrored) }
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
    let own = figure.in_row(best, tps_by);
    let leads =
        rivals.iter().map(|(_, rival)| Lead::between(figure, own, figure.in_row(rival, tps_by)));
    Some(match leads.reduce(|one, other| if one < other { other } else { one })? {
        Lead::Chance(largest) => Lead::Chance((largest * rivals.len() as f64).min(1.0)),
        unknown @ (Lead::NoSpread | Lead::OneRun) => unknown,
    })
}

impl Lead {
    fn between(figure: MatrixFigure, own: &AcrossRuns, rival: &AcrossRuns) -> Self {
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
