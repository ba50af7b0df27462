//! What the runs of a row say of one figure each.

use inferometer_model::Outcome;

use crate::estimate::{Estimate, Interval};
use crate::machines::{DeviceFigures, GpuFigures};
use crate::metric::{self, Metric, Unit};
use crate::quantity::{LatencyOrigin, Quantity};
use crate::request_rates::RequestRates;
use crate::server::{CounterFigures, GaugeFigures, ServerSide};
use crate::set::Across;
use crate::statistics::runs::mean;
use crate::summary::Summary;

/// Which tokens are counted: by the server, and the same by the client.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    tokens: &'static str,
    server: fn(&ServerSide) -> Option<CounterFigures>,
    client: &'static Metric,
}

pub(super) static PROMPT: Counted = Counted {
    tokens: "prompt",
    server: |server| server.prompt_tokens,
    client: &metric::INPUT_THROUGHPUT,
};
pub(super) static GENERATION: Counted = Counted {
    tokens: "generated",
    server: |server| server.generation_tokens,
    client: &metric::OUTPUT_THROUGHPUT,
};

/// Tokens per second by the server's counters. They have no series of their own to judge by, so a
/// run's doubt is that of the client's throughput, which is of the same tokens, in proportion.
pub(super) fn server_tps(runs: &[&Summary], of: Counted) -> Across {
    across(runs, Unit::TokensPerSecond, |run| {
        answered(run)?;
        let missing = || run.server_missing.clone().unwrap_or_else(|| "it says nothing".to_owned());
        let server = run.server.as_ref().ok_or_else(missing)?;
        let per_s = (of.server)(server)
            .and_then(|counter| counter.per_s)
            .ok_or_else(|| format!("the server does not count {} tokens", of.tokens))?;
        let client =
            Quantity::from(of.client).value_in(run).ok().filter(|client| 0.0 < client.value);
        let interval = client.and_then(|client| {
            let share = per_s / client.value;
            let own = client.interval?;
            Interval::new(own.low * share, own.high * share)
        });
        Ok(estimate(per_s, interval, run.attempted))
    })
}

/// The same by what the client saw.
pub(super) fn client_tps(runs: &[&Summary], of: Counted) -> Across {
    across(runs, Unit::TokensPerSecond, |run| {
        answered(run)?;
        Quantity::from(of.client).value_in(run)
    })
}

/// A server that failed every request has no speed, and not one of zero.
fn answered(run: &Summary) -> Result<(), String> {
    match run.count(Outcome::Ok) {
        0 => Err("no request ended well".to_owned()),
        _ => Ok(()),
    }
}

/// Of a latency, which summaries have in milliseconds.
pub(super) fn seconds(runs: &[&Summary], quantity: fn(LatencyOrigin) -> Quantity) -> Across {
    across(runs, Unit::Milliseconds, |run| {
        let found = quantity(run.latency_origin()).value_in(run)?;
        let scaled = |it: Interval| Interval { low: it.low / 1e3, high: it.high / 1e3 };
        Ok(Estimate { value: found.value / 1e3, interval: found.interval.map(scaled), ..found })
    })
}

pub(super) fn milliseconds(runs: &[&Summary], quantity: fn(LatencyOrigin) -> Quantity) -> Across {
    across(runs, Unit::Milliseconds, |run| quantity(run.latency_origin()).value_in(run))
}

pub(super) fn request_tps(runs: &[&Summary], of: fn(&RequestRates) -> Option<Estimate>) -> Across {
    across(runs, Unit::TokensPerSecond, |run| {
        of(&run.request_rates).ok_or_else(|| "no request ended well with output".to_owned())
    })
}

pub(super) fn energy_per_token(runs: &[&Summary]) -> Across {
    across(runs, Unit::TokensPerSecond, |run| {
        let unknown = "the GPUs tell neither energy nor power, or nothing was generated";
        let missing = || run.machines.gpus_missing.clone().unwrap_or_else(|| unknown.to_owned());
        let found = run.machines.gpus.as_ref().and_then(|gpus| gpus.energy_per_output_token_j);
        Ok(estimate(found.ok_or_else(missing)?, None, run.attempted))
    })
}

/// Money per million tokens at so many tokens per second, run by run.
pub(super) fn cost(tps: &Across, price_per_hour: Option<f64>) -> Across {
    let price = price_per_hour.filter(|price| price.is_finite() && 0.0 <= *price);
    let Some(price) = price else {
        return Across::of(&[Err("the preset has no price".to_owned())]);
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
            Ok(estimate(money(value), interval, 1))
        })
        .collect();
    Across::of(&runs).possible(Unit::TokensPerSecond, &runs)
}

/// A mean over the runs whose servers say it.
pub(super) fn gauge(runs: &[&Summary], of: fn(&ServerSide) -> Option<GaugeFigures>) -> Option<f64> {
    mean_of(runs, |run| Some(of(run.server.as_ref()?)?.mean))
}

/// Of all GPUs together; nothing where one of them does not tell.
pub(super) fn of_devices(
    runs: &[&Summary],
    of: fn(&DeviceFigures) -> Option<GaugeFigures>,
) -> Option<f64> {
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

fn across(
    runs: &[&Summary],
    unit: Unit,
    of: impl Fn(&Summary) -> Result<Estimate, String>,
) -> Across {
    let runs: Vec<Result<Estimate, String>> = runs.iter().map(|run| of(run)).collect();
    Across::of(&runs).possible(unit, &runs)
}

const fn estimate(value: f64, interval: Option<Interval>, n: u64) -> Estimate {
    Estimate { value, interval, n, effective_n: None, certified: true }
}
