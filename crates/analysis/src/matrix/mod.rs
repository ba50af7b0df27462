//! The summary of a matrix of deployments: a row for each cell and load, what is best, what failed,
//! and how certain it is that one is ahead of another.
//!
//! A cell that failed is a row like any other and has no figures. A cell with failed requests keeps
//! its figures, is marked, and wins nothing.

mod method;
mod rows;
mod tables;
#[cfg(test)]
mod tests;

use inferometer_model::study::{
    DeploymentRecord, Level, MatrixModel, PointFailure, Preset, Question, SetManifest, Strategy,
};
use serde::{Deserialize, Serialize};

pub use self::method::MatrixMethod;
pub(crate) use self::rows::Unfit;
pub use self::rows::{MatrixRow, RowEnding};
use self::rows::{cost, rows};
use self::tables::{Table, winners};
use crate::metric::Better;
use crate::set::{AcrossRuns, PointResult};
use crate::statistics::ratio::{self, RatioEstimate};
use crate::statistics::{Interval, UPPER};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixSummary {
    pub name: String,
    pub title: String,
    pub currency: Option<String>,
    pub presets: Vec<Preset>,
    pub models: Vec<MatrixModel>,
    /// One for each cell and level, in the order of the plan.
    pub rows: Vec<MatrixRow>,
    /// One for each context length and model (and strategy and flags, where they are varied), in the
    /// order of the plan.
    pub sections: Vec<MatrixSection>,
    /// Tensor against pipeline parallel, where both were asked for.
    pub strategies: Vec<StrategyTable>,
    /// Loads side by side, where there are several.
    pub loads: Vec<LoadTable>,
    /// Which deployment is best at what.
    pub winners: Vec<Winner>,
    /// What became of each deployment.
    #[serde(default)]
    pub deployments: Vec<DeploymentRecord>,
    /// How the cells were asked.
    #[serde(default)]
    pub method: MatrixMethod,
}

/// Rows that differ in their presets alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixSection {
    pub context: Option<u32>,
    /// Its place among the models.
    pub model: u32,
    pub strategy: Option<Strategy>,
    /// Other flags that are varied, such as `enforce-eager=true`.
    pub flags: Vec<(String, String)>,
    pub level: Level,
    /// Places of the rows, in the order of the presets.
    pub rows: Vec<u32>,
    /// The best rows without errors, one for each figure that has one. A row of pipeline parallel that
    /// is deployed as its tensor twin is, as on one GPU, spreads nothing and is not the best of its kind:
    /// the twin represents both.
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
    /// Places of the rows; null where the cell is not in the matrix.
    pub tensor: Option<u32>,
    pub pipeline: Option<u32>,
    /// Both are the same deployment, as on one GPU: what differs is chance.
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
    /// For each preset the places of its rows, from the lowest load to the highest.
    pub presets: Vec<(u32, Vec<u32>)>,
}

/// Which row is best at something, and how surely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    pub figure: MatrixFigure,
    /// Null where context lengths are not varied: loads of several of them are not the same load.
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
    /// Repeated runs say so, whatever else was compared.
    Certain,
    /// The runs scatter too much for their distance.
    Undecided,
    /// A side has one run: what a restart changes is not known.
    OneRun,
    /// No run differs from another by more than rounding, as in a simulation without noise: nothing
    /// says how far chance reaches.
    NoSpread,
    /// No other deployment could be compared.
    Alone,
}

impl MatrixSummary {
    /// `None` where no matrix was asked. A pure function of what is stored.
    pub fn summarize(
        manifest: &SetManifest,
        results: &[PointResult],
        failures: &[PointFailure],
        deployments: &[DeploymentRecord],
    ) -> Option<Self> {
        let Question::Matrix(matrix) = &manifest.study.question else { return None };
        let mut rows = rows(matrix, results, failures);
        let tps_by = TpsBy::for_rows(&rows);
        for row in &mut rows {
            let preset = matrix.presets.get(row.preset as usize);
            let price = preset.and_then(|preset| preset.price_per_hour);
            row.cost_per_million = cost(MatrixFigure::GenerationTps.in_row(row, tps_by), price);
        }
        let (levels, presets) = (&matrix.levels, &matrix.presets);
        let all = Table { rows: &rows, levels, presets, tps_by };
        let specs: Vec<_> = manifest.study.conditions.iter().map(|one| &one.spec).collect();
        Some(Self {
            name: matrix.name.clone(),
            title: matrix.title.clone(),
            currency: matrix.currency.clone(),
            presets: matrix.presets.clone(),
            models: matrix.models.clone(),
            sections: all.sections(),
            strategies: all.strategies(),
            loads: all.loads(),
            winners: winners(all),
            deployments: deployments.to_vec(),
            method: MatrixMethod::from_specs(matrix, &specs),
            rows,
        })
    }

    /// Whose count of tokens its rows are compared by.
    pub fn tps_by(&self) -> TpsBy {
        TpsBy::for_rows(&self.rows)
    }
}

/// What rows are compared by.
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

/// Whose count of tokens compares the rows of a matrix. It is the same for all of them: the server's
/// time reaches from before the load to when it was idle again, and the client's does not.
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
        let mut best: Option<(u32, f64)> = None;
        for (place, row) in rows {
            let Some(value) = self.in_row(row, tps_by).mean.filter(|_| row.may_win()) else {
                continue;
            };
            if best.is_none_or(|(_, found)| self.is_ahead(value, found)) {
                best = Some((place, value));
            }
        }
        best
    }

    fn is_ahead(self, value: f64, other: f64) -> bool {
        match self.better() {
            Better::Higher => other < value,
            Better::Lower | Better::Neither => value < other,
        }
    }
}

/// Runs of a simulation without noise differ by rounding alone.
const ROUNDING_SHARE: f64 = 1e-12;

/// Whether its runs differ by rounding at most. So does a single one, which says nothing of others.
fn is_still(across: &AcrossRuns) -> bool {
    across.extremes().is_none_or(|(low, high)| high - low <= ROUNDING_SHARE * high.abs())
}

/// The values of the runs that have one.
fn values(across: &AcrossRuns) -> Vec<f64> {
    across.values.iter().flatten().copied().collect()
}

/// How many times `base` the other is, with its 95 % interval where both have several runs and not all
/// of them are equal.
fn times(base: &AcrossRuns, other: &AcrossRuns) -> Option<(f64, Option<RatioEstimate>)> {
    let (below, above) = (base.mean?, other.mean?);
    let found = || ratio::unpaired(&values(base), &values(other), UPPER);
    let found = || found().filter(|_| !(is_still(base) && is_still(other)));
    (0.0 < below).then(|| (above / below, found()))
}
