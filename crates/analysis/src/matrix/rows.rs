//! The rows of a matrix: one cell at one load, and the figures of its runs.

use std::collections::BTreeMap;

use inferometer_model::Outcome;
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause};
use inferometer_model::study::{Cell, Level, Matrix, Point, PointFailure, Preset, Strategy};
use serde::{Deserialize, Serialize};

use crate::judge::Verdict;
use crate::machines::{DeviceFigures, GpuFigures};
use crate::metric::{self, LatencyOrigin, Metric, Quantity, Unit};
use crate::record::RequestRates;
use crate::server::{CounterFigures, GaugeFigures, ServerSide};
use crate::set::{AcrossRuns, PointResult, Tally};
use crate::statistics::{Estimate, Interval, runs::mean};
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Its index in the conditions of the set.
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
    /// Failed runs, by their numbers.
    pub failed_points: Vec<u32>,
    /// The worst of its runs; null while none was measured. Figures are of the runs that are not
    /// invalid, and of invalid ones where there is nothing else.
    pub verdict: Option<Verdict>,
    /// Requests of all its runs.
    pub requests: u64,
    /// Failed requests.
    pub errors: u64,
    /// By the server's counters, over the time from before the load until it was idle again.
    pub prompt_tps: AcrossRuns,
    pub generation_tps: AcrossRuns,
    /// The same by the client's counts.
    pub client_prompt_tps: AcrossRuns,
    pub client_generation_tps: AcrossRuns,
    /// Mean over successful requests.
    pub latency_s: AcrossRuns,
    pub ttft_ms: AcrossRuns,
    pub tpot_ms: AcrossRuns,
    /// A request's tokens over its own time, mean over requests.
    pub request_generation_tps: AcrossRuns,
    pub request_prompt_tps: AcrossRuns,
    /// Means over the scrapes inside the runs; null where the server does not report it.
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    pub swapped: Option<f64>,
    /// Shares from 0 to 1.
    pub kv_usage: Option<f64>,
    pub cpu_cache_usage: Option<f64>,
    /// Power of all GPUs together, a mean over the runs.
    pub power_w: Option<f64>,
    pub gpu_memory_bytes: Option<f64>,
    /// Joules per generated token.
    pub energy_per_token_j: AcrossRuns,
    /// Money per million generated tokens; needs a price.
    pub cost_per_million: AcrossRuns,
}

/// How a row ended; files write it as its `&str`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum RowEnding {
    /// Every run was measured so far, and every request succeeded.
    Clean,
    /// Every run was measured so far; some requests failed.
    #[strum(serialize = "with errors")]
    WithErrors,
    /// Some runs were measured and others failed: the first failure that is a fault, else the first.
    Partly { failure: DeploymentFailure },
    /// No run was measured; the failure is chosen likewise.
    Failed { failure: DeploymentFailure },
    /// Not measured yet.
    Missing,
}

/// The cause, where the model does not fit the deployment: too little memory, or it cannot be divided
/// among so many GPUs. `None` of a server that had been ready.
fn unfit(failure: &DeploymentFailure) -> Option<LikelyCause> {
    let is_before = match failure.stage {
        DeploymentStage::Start
        | DeploymentStage::Ended
        | DeploymentStage::Ready
        | DeploymentStage::Generate => true,
        DeploymentStage::Died | DeploymentStage::Measure | DeploymentStage::Stop => false,
    };
    let is_unfit = |it: &LikelyCause| {
        is_before && matches!(it, LikelyCause::OutOfMemory | LikelyCause::CannotSpread)
    };
    failure.cause.filter(is_unfit)
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
    let mut rows = Vec::new();
    for (index, cell) in (0_u32..).zip(&matrix.cells) {
        for level in matrix.levels.iter().copied() {
            let is_own = |point: &Point| point.condition == index && point.level == level;
            let measured: Vec<&PointResult> =
                results.iter().copied().filter(|result| is_own(&result.point)).collect();
            // A failed point that was measured later is not a failure.
            let is_failed = |point: &Point| {
                is_own(point) && measured.iter().all(|it| it.point.number != point.number)
            };
            let failed: Vec<&PointFailure> =
                failures.iter().copied().filter(|failure| is_failed(&failure.point)).collect();
            rows.push(MatrixRow::new((index, cell), level, &measured, &failed));
        }
    }
    rows
}

impl MatrixRow {
    fn new(
        (index, cell): (u32, &Cell),
        level: Level,
        measured: &[&PointResult],
        failed: &[&PointFailure],
    ) -> Self {
        let all: Vec<&Summary> = measured.iter().map(|result| &result.summary).collect();
        let tally =
            all.iter().map(|run| Tally::from_summary(run)).fold(Tally::default(), Tally::plus);
        let errors = tally.scheduled.saturating_sub(tally.ok);
        let counted: Vec<&Summary> =
            all.iter().copied().filter(|run| run.verdict != Verdict::Invalid).collect();
        let runs = if counted.is_empty() { &all } else { &counted };
        let (input, output) = (&metric::INPUT_THROUGHPUT, &metric::OUTPUT_THROUGHPUT);
        Self {
            cell: index,
            preset: cell.preset,
            model: cell.model,
            context: cell.context,
            strategy: cell.strategy,
            tp: cell.tp,
            pp: cell.pp,
            flags: cell.flags.clone(),
            level,
            ending: RowEnding::from_points(all.len(), errors, failed),
            points: measured.iter().map(|result| result.point.number).collect(),
            failed_points: failed.iter().map(|failure| failure.point.number).collect(),
            verdict: all.iter().map(|run| run.verdict).max(),
            requests: tally.scheduled,
            errors,
            prompt_tps: server_tps(runs, input, |server| server.prompt_tokens),
            generation_tps: server_tps(runs, output, |server| server.generation_tokens),
            client_prompt_tps: client_tps(runs, input),
            client_generation_tps: client_tps(runs, output),
            latency_s: latency(runs, 1e3, |origin| origin.e2e().mean()),
            ttft_ms: latency(runs, 1.0, |origin| origin.ttft().mean()),
            tpot_ms: latency(runs, 1.0, |_| metric::TPOT.mean()),
            request_generation_tps: request_tps(runs, |rates| rates.generation_tps),
            request_prompt_tps: request_tps(runs, |rates| rates.prompt_tps),
            running: gauge(runs, |server| server.running),
            waiting: gauge(runs, |server| server.waiting),
            swapped: gauge(runs, |server| server.swapped),
            kv_usage: gauge(runs, |server| server.kv_usage),
            cpu_cache_usage: gauge(runs, |server| server.cpu_kv_usage),
            power_w: of_devices(runs, |device| device.power_w),
            gpu_memory_bytes: of_devices(runs, |device| device.memory_used_bytes),
            energy_per_token_j: energy_per_token(runs),
            cost_per_million: AcrossRuns::from_runs(&[]),
        }
    }

    /// Whether it may be called best: failed runs and failed requests reduce the load of the others.
    pub fn may_win(&self) -> bool {
        self.ending == RowEnding::Clean && self.verdict.is_some_and(|it| it != Verdict::Invalid)
    }

    /// Whether nothing of it was measured and the reason is known.
    pub const fn is_failed(&self) -> bool {
        matches!(self.ending, RowEnding::Failed { .. })
    }

    /// Why its model does not fit, where this is the only reason that none of its runs was measured: that
    /// is a result, and no fault of the measurement.
    pub(crate) fn unfit(&self) -> Option<LikelyCause> {
        self.ending.failure().filter(|_| self.is_failed()).and_then(unfit)
    }

    /// Whether it is a pipeline parallel row that is the same deployment as a tensor parallel row of the
    /// matrix, which then represents both: which of two equal servers is ahead is chance.
    pub fn has_tensor_twin(&self, rows: &[Self], presets: &[Preset]) -> bool {
        let is_twin = |other: &Self| {
            other.strategy == Some(Strategy::Tensor)
                && other.level == self.level
                && other.is_same_deployment(self, presets)
        };
        self.strategy == Some(Strategy::Pipeline) && rows.iter().any(is_twin)
    }

    /// Whether both are the same deployment, also under different strategies: on one GPU there is nothing
    /// to divide.
    pub fn is_same_deployment(&self, other: &Self, presets: &[Preset]) -> bool {
        let gpus = presets.get(self.preset as usize).and_then(|preset| preset.gpus);
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
    fn from_points(measured: usize, errors: u64, failed: &[&PointFailure]) -> Self {
        let mut failures = failed.iter().map(|failed| &failed.failure);
        let first = failures.clone().next();
        let failure = failures.find(|failure| unfit(failure).is_none()).or(first).cloned();
        match (measured, failure) {
            (0, None) => Self::Missing,
            (0, Some(failure)) => Self::Failed { failure },
            (_, Some(failure)) => Self::Partly { failure },
            (_, None) if 0 < errors => Self::WithErrors,
            (_, None) => Self::Clean,
        }
    }

    /// Why its runs, or some of them, failed.
    pub const fn failure(&self) -> Option<&DeploymentFailure> {
        match self {
            Self::Partly { failure } | Self::Failed { failure } => Some(failure),
            Self::Clean | Self::WithErrors | Self::Missing => None,
        }
    }
}

/// Tokens per second by the server's counters. They have no samples over time, so a run's interval is
/// that of the client's throughput of the same tokens, in proportion.
fn server_tps(
    runs: &[&Summary],
    client: &'static Metric,
    counter: fn(&ServerSide) -> Option<CounterFigures>,
) -> AcrossRuns {
    across(runs, |run| {
        answered(run)?;
        let missing = || run.server_missing.clone().unwrap_or_else(|| "no metrics".to_owned());
        let server = run.server.as_ref().ok_or_else(missing)?;
        let per_s = counter(server)
            .and_then(|counter| counter.per_s)
            .ok_or_else(|| "the server does not count these tokens".to_owned())?;
        let client = Quantity::from(client).value_in(run).ok().filter(|it| 0.0 < it.value);
        let interval = client.and_then(|client| {
            let share = per_s / client.value;
            let own = client.interval?;
            Interval::new(own.low * share, own.high * share)
        });
        Ok(Estimate::new(per_s, interval, run.attempted))
    })
}

/// The same by the client's counts.
fn client_tps(runs: &[&Summary], metric: &'static Metric) -> AcrossRuns {
    across(runs, |run| {
        answered(run)?;
        Quantity::from(metric).value_in(run)
    })
}

/// A server that failed every request has no throughput, rather than zero.
fn answered(run: &Summary) -> Result<(), String> {
    match run.count(Outcome::Ok) {
        0 => Err("no request succeeded".to_owned()),
        _ => Ok(()),
    }
}

/// A latency, which summaries have in milliseconds, in a unit of so many of them.
fn latency(runs: &[&Summary], unit_ms: f64, quantity: fn(LatencyOrigin) -> Quantity) -> AcrossRuns {
    across(runs, |run| {
        let found = quantity(run.latency_origin()).value_in(run)?;
        let scaled = |it: Interval| Interval { low: it.low / unit_ms, high: it.high / unit_ms };
        let (value, interval) = (found.value / unit_ms, found.interval.map(scaled));
        Ok(Estimate { value, interval, ..found })
    })
}

fn request_tps(runs: &[&Summary], of: fn(&RequestRates) -> Option<Estimate>) -> AcrossRuns {
    across(runs, |run| {
        of(&run.request_rates).ok_or_else(|| "no successful request had output".to_owned())
    })
}

fn energy_per_token(runs: &[&Summary]) -> AcrossRuns {
    across(runs, |run| {
        let unknown = "the GPUs report neither energy nor power, or nothing was generated";
        let missing = || run.machines.gpus_missing.clone().unwrap_or_else(|| unknown.to_owned());
        let found = run.machines.gpus.as_ref().and_then(|gpus| gpus.energy_per_output_token_j);
        Ok(Estimate::new(found.ok_or_else(missing)?, None, run.attempted))
    })
}

/// Money per million tokens at so many tokens per second, run by run.
pub(super) fn cost(tps: &AcrossRuns, price_per_hour: Option<f64>) -> AcrossRuns {
    let price = price_per_hour.filter(|price| price.is_finite() && 0.0 <= *price);
    let Some(price) = price else {
        return AcrossRuns::from_runs(&[Err("the preset has no price".to_owned())]);
    };
    let money = |tps: f64| price / 3_600.0 / tps * 1e6;
    let nothing = || tps.reason.clone().unwrap_or_else(|| "nothing was generated".to_owned());
    let runs: Vec<Result<Estimate, String>> = tps
        .values
        .iter()
        .map(|value| {
            let value = value.filter(|tps| 0.0 < *tps).ok_or_else(nothing)?;
            let within = tps.within.filter(|within| 0.0 < within.low);
            let interval =
                within.and_then(|within| Interval::new(money(within.high), money(within.low)));
            Ok(Estimate::new(money(value), interval, 1))
        })
        .collect();
    AcrossRuns::in_unit(Unit::TokensPerSecond, &runs)
}

/// A mean over the runs that have the gauge.
fn gauge(runs: &[&Summary], of: fn(&ServerSide) -> Option<GaugeFigures>) -> Option<f64> {
    mean_of(runs, |run| Some(of(run.server.as_ref()?)?.mean))
}

/// The sum over all GPUs; `None` where one of them does not report it.
fn of_devices(runs: &[&Summary], of: fn(&DeviceFigures) -> Option<GaugeFigures>) -> Option<f64> {
    let all = |gpus: &GpuFigures| -> Option<f64> {
        let mut own = gpus.devices.iter().filter(|device| device.counts()).peekable();
        own.peek()?;
        own.map(|device| of(device).map(|figures| figures.mean)).sum()
    };
    mean_of(runs, |run| all(run.machines.gpus.as_ref()?))
}

fn mean_of(runs: &[&Summary], of: impl Fn(&Summary) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
    (!values.is_empty()).then(|| mean(&values))
}

fn across(runs: &[&Summary], of: impl Fn(&Summary) -> Result<Estimate, String>) -> AcrossRuns {
    let runs: Vec<Result<Estimate, String>> = runs.iter().map(|run| of(run)).collect();
    // No figure is negative, as no rate is.
    AcrossRuns::in_unit(Unit::TokensPerSecond, &runs)
}
