//! The summary of a matrix of deployments: a row for each cell and load, the winners, the failures, and
//! the certainty of each lead.
//!
//! A cell that failed is a row like any other and has no figures. A cell with failed requests keeps
//! its figures, is marked, and wins nothing.
//!
//! A row is certainly the best when it is ahead of every other deployment by more than chance would
//! explain. The tested row was selected by its value, so its chance is that of any of the others being
//! taken for the best (Bonferroni within a comparison); a matrix makes many comparisons at once, so
//! chances are corrected for their number (Holm). Fewer than one matrix in forty then calls any row
//! certainly the best that is not.
//!
//! Each context length is a separate comparison: their loads are not the same load.

mod method;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use inferometer_model::study::{
    DeploymentRecord, Level, Matrix, MatrixModel, PointFailure, Preset, Question, SetManifest,
    Strategy,
};
use serde::{Deserialize, Serialize};

pub use self::method::MatrixMethod;
pub use self::rows::{MatrixRow, RowEnding};
use self::rows::{cost, rows};
use crate::metric::Better;
use crate::set::{AcrossRuns, PointResult};
use crate::statistics::{Interval, UPPER, multiplicity::holm, ratio};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixSummary {
    pub name: String,
    pub title: String,
    /// What its author says about its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub currency: Option<String>,
    pub presets: Vec<Preset>,
    pub models: Vec<MatrixModel>,
    /// One for each cell and level, in the order of the plan.
    pub rows: Vec<MatrixRow>,
    /// One for each context length and model (and strategy and flags, where they are varied), in the
    /// order of the plan.
    pub sections: Vec<MatrixSection>,
    /// Tensor against pipeline parallel, where both are in the matrix.
    pub strategies: Vec<StrategyTable>,
    /// Loads side by side, where there are several.
    pub loads: Vec<LoadTable>,
    /// The best deployment of each comparison.
    pub winners: Vec<Winner>,
    /// How each deployment started and stopped.
    #[serde(default)]
    pub deployments: Vec<DeploymentRecord>,
    /// How the cells were measured.
    #[serde(default)]
    pub method: MatrixMethod,
}

/// Rows that differ in their presets alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixSection {
    pub context: Option<u32>,
    /// Its index in the models.
    pub model: u32,
    pub strategy: Option<Strategy>,
    /// Other flags that are varied, such as `enforce-eager=true`.
    pub flags: Vec<(String, String)>,
    pub level: Level,
    /// Indices of the rows, in the order of the presets.
    pub rows: Vec<u32>,
    /// The best rows without errors, one for each figure that has one. A row of pipeline parallel that
    /// is the same deployment as its tensor twin, as on one GPU, is not listed: the twin represents both.
    pub highest: Vec<Highest>,
    /// Rows with failed requests, with their number.
    pub errors: Vec<(u32, u64)>,
    /// Rows that failed.
    pub failed: Vec<u32>,
}

/// The best row of a section at one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Highest {
    pub figure: MatrixFigure,
    pub row: u32,
    pub value: f64,
}

/// One table: a model, a context length and a load, with a row for each preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrategyTable {
    pub context: Option<u32>,
    pub model: u32,
    pub flags: Vec<(String, String)>,
    pub level: Level,
    pub rows: Vec<StrategyRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrategyRow {
    pub preset: u32,
    /// Indices of the rows; null where the cell is not in the matrix.
    pub tensor: Option<u32>,
    pub pipeline: Option<u32>,
    /// Both are the same deployment, as on one GPU: the difference is chance.
    pub same_deployment: bool,
    /// Tensor over pipeline less one, where both are without errors.
    pub prompt_speedup: Option<Speedup>,
    pub generation_speedup: Option<Speedup>,
}

/// A share: 0.134 is 13.4 % faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    pub share: f64,
    /// 95 %; null where a side has one run, and where runs have no spread.
    pub interval: Option<Interval>,
}

/// One deployment at several loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadTable {
    pub context: Option<u32>,
    pub model: u32,
    pub strategy: Option<Strategy>,
    pub flags: Vec<(String, String)>,
    /// For each preset the indices of its rows, from the lowest load to the highest.
    pub presets: Vec<(u32, Vec<u32>)>,
}

/// The best row of a comparison, and the certainty of its lead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    pub figure: MatrixFigure,
    /// Null where context lengths are not varied; each length is a separate comparison.
    pub context: Option<u32>,
    pub model: u32,
    pub level: Level,
    pub row: u32,
    pub value: f64,
    /// The best of the other deployments that have the figure; null where there is none.
    pub runner_up: Option<u32>,
    /// How far ahead, as a share of the runner-up.
    pub ahead: Option<Speedup>,
    pub certainty: Certainty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Repeated runs confirm it, after a correction for the number of comparisons.
    Certain,
    /// The runs vary too much to tell which is ahead.
    Undecided,
    /// A side has one run: the variation between starts of the server is not known.
    OneRun,
    /// No run differs from another by more than rounding, as in a simulation without noise: the variation
    /// by chance is not known.
    NoSpread,
    /// No other deployment could be compared.
    Alone,
}

impl MatrixSummary {
    /// `None` where the set is no matrix. A pure function of the stored files.
    pub fn summarize(
        manifest: &SetManifest,
        results: &[PointResult],
        failures: &[PointFailure],
        deployments: &[DeploymentRecord],
    ) -> Option<Self> {
        let Question::Matrix(matrix) = &manifest.study.question else { return None };
        let mut rows = rows(matrix, results, failures);
        let tps_by = TpsBy::for_rows(&rows);
        let Matrix { name, title, description, currency, presets, models, levels, .. } =
            matrix.clone();
        for row in &mut rows {
            let price = presets.get(row.preset as usize).and_then(|it| it.price_per_hour);
            row.cost_per_million = cost(MatrixFigure::GenerationTps.in_row(row, tps_by), price);
        }
        let all = Table { rows: &rows, levels: &levels, presets: &presets, tps_by };
        let specs: Vec<_> = manifest.study.conditions.iter().map(|one| &one.spec).collect();
        Some(Self {
            sections: all.sections(),
            strategies: all.strategies(),
            loads: all.loads(),
            winners: winners(all),
            deployments: deployments.to_vec(),
            method: MatrixMethod::from_specs(matrix, &specs),
            name,
            title,
            description,
            currency,
            presets,
            models,
            rows,
        })
    }

    /// The source of the token counts that its rows are compared by.
    pub fn tps_by(&self) -> TpsBy {
        TpsBy::for_rows(&self.rows)
    }
}

/// The figures that rows are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatrixFigure {
    /// Tokens per second, by [`TpsBy`].
    PromptTps,
    GenerationTps,
    /// Seconds.
    Latency,
    /// Milliseconds.
    Ttft,
    /// Money per million generated tokens.
    Cost,
    /// Joules per generated token.
    Energy,
}

/// The source of the token counts that compare the rows of a matrix. It is the same for all of them: the
/// server's time lasts from before the load until it was idle again, and the client's does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpsBy {
    /// Every row that was measured has the server's counters.
    Server,
    /// Some row has not.
    Client,
}

impl TpsBy {
    pub fn for_rows(rows: &[MatrixRow]) -> Self {
        let has_both = |row: &MatrixRow| {
            row.client_generation_tps.n <= row.generation_tps.n
                && row.client_prompt_tps.n <= row.prompt_tps.n
        };
        if rows.iter().all(has_both) { Self::Server } else { Self::Client }
    }
}

impl MatrixFigure {
    pub const ALL: [Self; 6] =
        [Self::PromptTps, Self::GenerationTps, Self::Latency, Self::Ttft, Self::Cost, Self::Energy];

    pub const fn in_row(self, row: &MatrixRow, tps_by: TpsBy) -> &AcrossRuns {
        match (self, tps_by) {
            (Self::PromptTps, TpsBy::Server) => &row.prompt_tps,
            (Self::PromptTps, TpsBy::Client) => &row.client_prompt_tps,
            (Self::GenerationTps, TpsBy::Server) => &row.generation_tps,
            (Self::GenerationTps, TpsBy::Client) => &row.client_generation_tps,
            (Self::Latency, _) => &row.latency_s,
            (Self::Ttft, _) => &row.ttft_ms,
            (Self::Cost, _) => &row.cost_per_million,
            (Self::Energy, _) => &row.energy_per_token_j,
        }
    }

    pub const fn better(self) -> Better {
        match self {
            Self::PromptTps | Self::GenerationTps => Better::Higher,
            Self::Latency | Self::Ttft | Self::Cost | Self::Energy => Better::Lower,
        }
    }

    /// The best of these rows that may win, with its value; the first of equals.
    pub fn best<'a>(
        self,
        rows: impl IntoIterator<Item = (u32, &'a MatrixRow)>,
        tps_by: TpsBy,
    ) -> Option<(u32, f64)> {
        let is_higher = self.better() == Better::Higher;
        let known = rows.into_iter().filter(|(_, row)| row.may_win());
        let known = known.filter_map(|(index, row)| Some((index, self.in_row(row, tps_by).mean?)));
        known.reduce(|best, other| {
            let is_ahead = if is_higher { best.1 < other.1 } else { other.1 < best.1 };
            if is_ahead { other } else { best }
        })
    }
}

/// All rows, and the lists that order them.
#[derive(Clone, Copy)]
struct Table<'a> {
    rows: &'a [MatrixRow],
    levels: &'a [Level],
    presets: &'a [Preset],
    tps_by: TpsBy,
}

/// A row with its index.
type Indexed<'a> = (u32, &'a MatrixRow);

impl<'a> Table<'a> {
    fn sections(self) -> Vec<MatrixSection> {
        let groups = self.grouped(|row| {
            (row.context, row.model, row.strategy, &row.flags, self.level_index(row))
        });
        let section = |(first, rows): (&MatrixRow, Vec<Indexed<'a>>)| {
            let highest = MatrixFigure::ALL.into_iter().filter_map(|figure| {
                let own = rows.iter().copied().filter(|(_, row)| !self.has_tensor_twin(row));
                let (row, value) = figure.best(own, self.tps_by)?;
                Some(Highest { figure, row, value })
            });
            let highest = highest.collect();
            let errors = rows.iter().filter(|(_, row)| 0 < row.errors);
            let errors = errors.map(|(index, row)| (*index, row.errors)).collect();
            let failed = indices(rows.iter().filter(|(_, row)| row.is_failed()));
            let (rows, flags) = (indices(&rows), flags(first));
            let &MatrixRow { context, model, strategy, level, .. } = first;
            MatrixSection { context, model, strategy, flags, level, rows, highest, errors, failed }
        };
        groups.map(section).collect()
    }

    fn strategies(self) -> Vec<StrategyTable> {
        let has = |strategy| self.rows.iter().any(|row| row.strategy == Some(strategy));
        if !has(Strategy::Tensor) || !has(Strategy::Pipeline) {
            return Vec::new();
        }
        let groups =
            self.grouped(|row| (row.context, row.model, &row.flags, self.level_index(row)));
        let table = |(first, rows): (&MatrixRow, Vec<Indexed<'a>>)| {
            let mut presets: BTreeMap<u32, [Option<Indexed<'a>>; 2]> = BTreeMap::new();
            for (index, row) in rows {
                let Some(strategy) = row.strategy else { continue };
                let sides = presets.entry(row.preset).or_default();
                sides[usize::from(strategy == Strategy::Pipeline)] = Some((index, row));
            }
            let rows = presets.into_iter().map(|it| self.strategy_row(it)).collect();
            let &MatrixRow { context, model, level, .. } = first;
            StrategyTable { context, model, flags: flags(first), level, rows }
        };
        groups.map(table).filter(|table| !table.rows.is_empty()).collect()
    }

    fn strategy_row(
        self,
        (preset, [tensor, pipeline]): (u32, [Option<Indexed<'a>>; 2]),
    ) -> StrategyRow {
        let both = tensor.zip(pipeline).map(|((_, tensor), (_, pipeline))| (tensor, pipeline));
        let speedup = |figure: MatrixFigure| {
            let (one, other) = both.filter(|(one, other)| one.may_win() && other.may_win())?;
            Speedup::between(figure.in_row(other, self.tps_by), figure.in_row(one, self.tps_by))
        };
        StrategyRow {
            preset,
            tensor: tensor.map(|(index, _)| index),
            pipeline: pipeline.map(|(index, _)| index),
            same_deployment: both
                .is_some_and(|(one, other)| one.is_same_deployment(other, self.presets)),
            prompt_speedup: speedup(MatrixFigure::PromptTps),
            generation_speedup: speedup(MatrixFigure::GenerationTps),
        }
    }

    fn loads(self) -> Vec<LoadTable> {
        let groups = self.grouped(|row| (row.context, row.model, row.strategy, &row.flags));
        let table = |(first, mut rows): (&MatrixRow, Vec<Indexed<'a>>)| {
            let load = |row: &MatrixRow| row.level.place().unwrap_or(f64::NEG_INFINITY);
            rows.sort_by(|(_, one), (_, other)| load(one).total_cmp(&load(other)));
            let mut presets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (index, row) in rows {
                presets.entry(row.preset).or_default().push(index);
            }
            let (flags, presets) = (flags(first), presets.into_iter().collect());
            let &MatrixRow { context, model, strategy, .. } = first;
            LoadTable { context, model, strategy, flags, presets }
        };
        groups.filter(|_| 1 < self.levels.len()).map(table).collect()
    }

    /// The rows that have the same key, in the order of their presets, behind the first of them.
    fn grouped<K: Ord>(
        self,
        key: impl Fn(&'a MatrixRow) -> K,
    ) -> impl Iterator<Item = (&'a MatrixRow, Vec<Indexed<'a>>)> {
        let mut groups: BTreeMap<K, Vec<Indexed<'a>>> = BTreeMap::new();
        for (index, row) in (0_u32..).zip(self.rows) {
            groups.entry(key(row)).or_default().push((index, row));
        }
        groups.into_values().map(|mut rows| {
            rows.sort_by_key(|(_, row)| row.preset);
            (rows[0].1, rows)
        })
    }

    fn has_tensor_twin(self, row: &MatrixRow) -> bool {
        row.has_tensor_twin(self.rows, self.presets)
    }

    /// The index of its level in the plan.
    fn level_index(self, row: &MatrixRow) -> Option<usize> {
        self.levels.iter().position(|level| *level == row.level)
    }

    /// The winner among the rows that have the figure, and the chance that it is not ahead, where several
    /// runs give one.
    fn winner(self, figure: MatrixFigure, rows: &[Indexed<'a>]) -> Option<(Winner, Option<f64>)> {
        let across = |row: &'a MatrixRow| figure.in_row(row, self.tps_by);
        let is_candidate = |(_, row): &Indexed<'a>| {
            across(row).mean.is_some() && row.may_win() && !self.has_tensor_twin(row)
        };
        let mut rivals: Vec<Indexed<'a>> = rows.iter().copied().filter(is_candidate).collect();
        let (row, value) = figure.best(rivals.iter().copied(), self.tps_by)?;
        let best = &self.rows[row as usize];
        rivals.retain(|(other, rival)| {
            *other != row && !rival.is_same_deployment(best, self.presets)
        });
        let runner_up = figure.best(rivals.iter().copied(), self.tps_by).map(|(index, _)| index);
        let chances = rivals.iter().map(|(_, rival)| chance(figure, across(best), across(rival)));
        let chance = combined_chance(&chances.collect::<Vec<_>>());
        let ahead = runner_up.and_then(|index| {
            let base = across(&self.rows[index as usize]);
            let more = Speedup::between(base, across(best))?;
            Some(if figure.better() == Better::Higher { more } else { more.mirrored() })
        });
        let &MatrixRow { context, model, level, .. } = best;
        let certainty = chance.err().unwrap_or(Certainty::Undecided);
        let winner =
            Winner { figure, context, model, level, row, value, runner_up, ahead, certainty };
        Some((winner, chance.ok()))
    }
}

fn indices<'a>(rows: impl IntoIterator<Item = &'a Indexed<'a>>) -> Vec<u32> {
    rows.into_iter().map(|(index, _)| *index).collect()
}

fn flags(row: &MatrixRow) -> Vec<(String, String)> {
    row.flags.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Speedup {
    /// How much more the other has than the base, with a 95 % interval where both have several runs and
    /// not all of them are equal.
    fn between(base: &AcrossRuns, other: &AcrossRuns) -> Option<Self> {
        let (below, above) = (base.mean?, other.mean?);
        let found = ratio::unpaired(&values(base), &values(other), UPPER)
            .filter(|_| !(is_still(base) && is_still(other)));
        let interval = found.map(|it| it.interval);
        let interval = interval.map(|it| Interval { low: it.low - 1.0, high: it.high - 1.0 });
        (0.0 < below).then(|| Self { share: above / below - 1.0, interval })
    }

    /// How much less, of how much more.
    fn mirrored(self) -> Self {
        let mirrored = |it: Interval| Interval { low: -it.high, high: -it.low };
        Self { share: -self.share, interval: self.interval.map(mirrored) }
    }
}

/// Whether its runs differ by rounding at most, as in a simulation without noise. A single run does not
/// differ either.
fn is_still(across: &AcrossRuns) -> bool {
    const ROUNDING_SHARE: f64 = 1e-12;
    across.extremes().is_none_or(|(low, high)| high - low <= ROUNDING_SHARE * high.abs())
}

/// The values of the runs that have one.
fn values(across: &AcrossRuns) -> Vec<f64> {
    across.values.iter().flatten().copied().collect()
}

fn winners(all: Table<'_>) -> Vec<Winner> {
    let questions = all.grouped(|row| (row.context, row.model, all.level_index(row)));
    let mut found: Vec<(Winner, Option<f64>)> = questions
        .flat_map(|(_, rows)| {
            MatrixFigure::ALL.into_iter().filter_map(move |figure| all.winner(figure, &rows))
        })
        .collect();
    let chances: Vec<f64> = found.iter().filter_map(|(_, chance)| *chance).collect();
    let known = found.iter_mut().filter(|(_, chance)| chance.is_some());
    for ((winner, _), chance) in known.zip(holm(&chances)) {
        if chance < 1.0 - UPPER {
            winner.certainty = Certainty::Certain;
        }
    }
    found.into_iter().map(|(winner, _)| winner).collect()
}

/// The chance that a row is not ahead of one rival, or why it is not known.
fn chance(figure: MatrixFigure, own: &AcrossRuns, rival: &AcrossRuns) -> Result<f64, Certainty> {
    if own.n < 2 || rival.n < 2 {
        return Err(Certainty::OneRun);
    }
    if is_still(own) && is_still(rival) {
        return Err(Certainty::NoSpread);
    }
    let (lower, higher) =
        if figure.better() == Better::Higher { (rival, own) } else { (own, rival) };
    // A mean of zero has no relative spread either.
    ratio::chance_above(&values(lower), &values(higher)).ok_or(Certainty::NoSpread)
}

/// The chance that a row is not ahead of all its rivals together.
fn combined_chance(chances: &[Result<f64, Certainty>]) -> Result<f64, Certainty> {
    for unknown in [Certainty::OneRun, Certainty::NoSpread] {
        if chances.contains(&Err(unknown)) {
            return Err(unknown);
        }
    }
    let largest = chances.iter().flatten().copied().reduce(f64::max).ok_or(Certainty::Alone)?;
    Ok((largest * chances.len() as f64).min(1.0))
}
