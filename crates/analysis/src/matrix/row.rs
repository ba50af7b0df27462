//! One cell at one load.

use crate::metric;
use std::collections::BTreeMap;

use inferometer_model::campaign::{Cell, Level, Matrix, PointFailure, Preset, Strategy};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause};
use serde::{Deserialize, Serialize};

use super::measure;
use crate::judge::Verdict;
use crate::set::{Across, PointResult, Tally};
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Its place among the conditions of the set.
    pub cell: u32,
    pub preset: u32,
    pub model: u32,
    pub context: Option<u32>,
    pub strategy: Option<Strategy>,
    pub tp: Option<u32>,
    pub pp: Option<u32>,
    pub flags: BTreeMap<String, String>,
    pub level: Level,
    pub ending: RowEnding,
    /// Runs that were measured, by their numbers.
    pub points: Vec<u32>,
    /// Runs that came to nothing, by their numbers.
    pub failed_points: Vec<u32>,
    /// The worst of its runs; null while none was measured. Figures are of the runs that are not
    /// invalid, and of invalid ones where there is nothing else.
    pub verdict: Option<Verdict>,
    /// Of all its runs.
    pub requests: u64,
    /// Requests that did not end well.
    pub errors: u64,
    /// By the server's counters, over the time from before the load to when it was idle again.
    pub prompt_tps: Across,
    pub generation_tps: Across,
    /// The same by what the client saw.
    pub client_prompt_tps: Across,
    pub client_generation_tps: Across,
    /// Mean over requests that ended well.
    pub latency_s: Across,
    pub ttft_ms: Across,
    pub tpot_ms: Across,
    /// A request's tokens over its own time, mean over requests.
    pub request_generation_tps: Across,
    pub request_prompt_tps: Across,
    /// Means over the scrapes inside the runs; null where the server does not say.
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    pub swapped: Option<f64>,
    /// Shares from 0 to 1.
    pub kv_usage: Option<f64>,
    pub cpu_cache_usage: Option<f64>,
    /// Of all GPUs together, a mean over the runs.
    pub power_w: Option<f64>,
    pub gpu_memory_bytes: Option<f64>,
    /// Joules per generated token.
    pub energy_per_token_j: Across,
    /// Money per million generated tokens; needs a price.
    pub cost_per_million: Across,
}

/// How a row ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RowEnding {
    /// Every run was measured so far, and every request ended well.
    Clean,
    /// Every run was measured so far; some requests did not end well.
    WithErrors,
    /// Some runs were measured, and others came to nothing: the first that is a fault, else the first.
    Partly { failure: DeploymentFailure },
    /// No run was measured; the failure is chosen likewise.
    Failed { failure: DeploymentFailure },
    /// Not measured yet.
    Missing,
}

/// How a model does not fit the deployment that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    Memory,
    /// It cannot be divided among so many GPUs.
    Spread,
}

/// Of a server that was never up.
fn unfit(failure: &DeploymentFailure) -> Option<Unfit> {
    let is_before = match failure.stage {
        DeploymentStage::Start
        | DeploymentStage::Ended
        | DeploymentStage::Ready
        | DeploymentStage::Generate => true,
        DeploymentStage::Died | DeploymentStage::Measure | DeploymentStage::Stop => false,
    };
    match failure.cause {
        Some(LikelyCause::OutOfMemory) if is_before => Some(Unfit::Memory),
        Some(LikelyCause::CannotSpread) if is_before => Some(Unfit::Spread),
        _ => None,
    }
}

/// In the order of the cells, and of the levels within each.
pub(super) fn rows(
    matrix: &Matrix,
    results: &[PointResult],
    failures: &[PointFailure],
) -> Vec<MatrixRow> {
    let mut results: Vec<&PointResult> = results.iter().collect();
    results.sort_by_key(|result| result.point.number);
    let mut failures: Vec<&PointFailure> = failures.iter().collect();
    failures.sort_by_key(|failure| failure.point.number);
    (0_u32..)
        .zip(&matrix.cells)
        .flat_map(|(place, cell)| matrix.levels.iter().map(move |level| (place, cell, *level)))
        .map(|(place, cell, level)| {
            let measured: Vec<&PointResult> = results
                .iter()
                .copied()
                .filter(|result| result.point.condition == place && result.point.level == level)
                .collect();
            let failed: Vec<&PointFailure> = failures
                .iter()
                .copied()
                .filter(|failure| failure.point.condition == place && failure.point.level == level)
                // What was measured after all is no failure.
                .filter(|failure| !has_run(&measured, failure))
                .collect();
            MatrixRow::of((place, cell), level, &measured, &failed)
        })
        .collect()
}

fn has_run(measured: &[&PointResult], failure: &PointFailure) -> bool {
    measured.iter().any(|result| result.point.number == failure.point.number)
}

impl MatrixRow {
    fn of(
        (place, cell): (u32, &Cell),
        level: Level,
        measured: &[&PointResult],
        failed: &[&PointFailure],
    ) -> Self {
        let all: Vec<&Summary> = measured.iter().map(|result| &result.summary).collect();
        let tally = all.iter().map(|run| Tally::of(run)).fold(Tally::default(), Tally::plus);
        let errors = tally.scheduled.saturating_sub(tally.ok);
        let counted: Vec<&Summary> =
            all.iter().copied().filter(|run| run.verdict != Verdict::Invalid).collect();
        let runs = if counted.is_empty() { &all } else { &counted };
        Self {
            cell: place,
            preset: cell.preset,
            model: cell.model,
            context: cell.context,
            strategy: cell.strategy,
            tp: cell.tp,
            pp: cell.pp,
            flags: cell.flags.clone(),
            level,
            ending: RowEnding::of(all.len(), errors, failed),
            points: measured.iter().map(|result| result.point.number).collect(),
            failed_points: failed.iter().map(|failure| failure.point.number).collect(),
            verdict: all.iter().map(|run| run.verdict).max(),
            requests: tally.scheduled,
            errors,
            prompt_tps: measure::server_tps(runs, measure::PROMPT),
            generation_tps: measure::server_tps(runs, measure::GENERATION),
            client_prompt_tps: measure::client_tps(runs, measure::PROMPT),
            client_generation_tps: measure::client_tps(runs, measure::GENERATION),
            latency_s: measure::seconds(runs, |origin| origin.e2e().mean()),
            ttft_ms: measure::milliseconds(runs, |origin| origin.ttft().mean()),
            tpot_ms: measure::milliseconds(runs, |_| metric::TPOT.mean()),
            request_generation_tps: measure::request_tps(runs, |rates| rates.generation_tps),
            request_prompt_tps: measure::request_tps(runs, |rates| rates.prompt_tps),
            running: measure::gauge(runs, |server| server.running),
            waiting: measure::gauge(runs, |server| server.waiting),
            swapped: measure::gauge(runs, |server| server.swapped),
            kv_usage: measure::gauge(runs, |server| server.kv_usage),
            cpu_cache_usage: measure::gauge(runs, |server| server.cpu_kv_usage),
            power_w: measure::of_devices(runs, |device| device.power_w),
            gpu_memory_bytes: measure::of_devices(runs, |device| device.memory_used_bytes),
            energy_per_token_j: measure::energy_per_token(runs),
            cost_per_million: Across::of(&[]),
        }
    }

    /// Whether it may be called best: a run that failed, and a request that did, take away from the
    /// load that the others had.
    pub fn may_win(&self) -> bool {
        self.ending == RowEnding::Clean && self.verdict.is_some_and(|it| it != Verdict::Invalid)
    }

    /// Whether nothing was measured of it, and why is known.
    pub const fn is_failed(&self) -> bool {
        matches!(self.ending, RowEnding::Failed { .. })
    }

    /// How its model does not fit, where nothing else kept any of its runs from being measured: that is
    /// an answer, and no fault of the measurement.
    pub(super) fn unfit(&self) -> Option<Unfit> {
        self.ending.failure().filter(|_| self.is_failed()).and_then(unfit)
    }

    /// Whether both were put up alike, whatever their strategy is called: on one GPU there is nothing
    /// to spread.
    pub fn is_same_deployment(&self, other: &Self, presets: &[Preset]) -> bool {
        let gpus = usize::try_from(self.preset).ok().and_then(|place| presets.get(place)?.gpus);
        let spread = |row: &Self| {
            let is_known = row.tp.is_some() || row.pp.is_some();
            is_known.then(|| (row.tp.unwrap_or(1), row.pp.unwrap_or(1)))
        };
        let is_spread_alike = match (spread(self), spread(other)) {
            (Some(own), Some(others)) => own == others,
            _ => gpus == Some(1) || self.strategy == other.strategy,
        };
        is_spread_alike
            && (self.preset, self.model, self.context) == (other.preset, other.model, other.context)
            && self.flags == other.flags
    }
}

impl RowEnding {
    fn of(measured: usize, errors: u64, failed: &[&PointFailure]) -> Self {
        let failures = || failed.iter().map(|failed| &failed.failure);
        let told = failures().find(|failure| unfit(failure).is_none());
        match (measured, told.or_else(|| failures().next())) {
            (0, None) => Self::Missing,
            (0, Some(told)) => Self::Failed { failure: told.clone() },
            (_, Some(told)) => Self::Partly { failure: told.clone() },
            (_, None) if 0 < errors => Self::WithErrors,
            (_, None) => Self::Clean,
        }
    }

    /// Why its runs, or some of them, came to nothing.
    pub const fn failure(&self) -> Option<&DeploymentFailure> {
        match self {
            Self::Partly { failure } | Self::Failed { failure } => Some(failure),
            Self::Clean | Self::WithErrors | Self::Missing => None,
        }
    }
}
