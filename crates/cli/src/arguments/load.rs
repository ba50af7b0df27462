//! `[load]`: when it is asked.

use std::time::Duration;

use clap::Args;
use inferometer_model::spec::{ArrivalsKind, RampCurve, ThinkKind, Ticks, Until};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::written::{Written, named};
use crate::rates::{PerSecond, Ramp};

/// When it is asked.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "When it is asked")]
pub(crate) struct LoadTable {
    /// Closed loop: keep this many requests in flight [default: 8]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) concurrency: Option<u32>,
    /// Closed loop: how long each of them rests after its reply, such as 2s [default: not at all]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) think_time: Option<Written<Duration>>,
    /// Whether that time is always the same or the mean of random ones [default: fixed]
    #[arg(long, value_name = "KIND", value_parser = named::<ThinkKind>())]
    pub(crate) think: Option<Written<ThinkKind>>,
    /// Open loop: send this many requests per second, whatever is in flight; `inf` sends all at
    /// once
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) rate: Option<Written<PerSecond>>,
    /// Open loop: a rate that changes, such as 2..20:60s or 2..20:60s,20..5:30s; after its last
    /// segment it stays as it ended
    #[arg(long, value_name = "SEGMENTS")]
    pub(crate) ramp: Option<Written<Ramp>>,
    /// How a ramp gets from rate to rate [default: linear]
    #[arg(long, value_name = "CURVE", value_parser = named::<RampCurve>())]
    pub(crate) ramp_curve: Option<Written<RampCurve>>,
    /// Open loop: hold back what is due while this many are in flight (capped-open)
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_concurrency: Option<u32>,
    /// How the requests of an open loop are spaced; stretched is gamma with the last of --requests
    /// at exactly their number over --rate, as in `vllm bench serve` [default: poisson]
    #[arg(long, value_name = "KIND", value_parser = named::<ArrivalsKind>())]
    pub(crate) arrivals: Option<Written<ArrivalsKind>>,
    /// Shape of gamma and stretched arrivals, as in `vllm bench serve`: 1 is Poisson, below 1 is
    /// burstier, above more even
    #[arg(long, value_name = "K")]
    #[schemars(range(min = 0.01, max = 1000))]
    pub(crate) burstiness: Option<f64>,
    /// Speed of a recorded load: above 1 its gaps shrink [default: 1]
    #[arg(long, value_name = "FACTOR")]
    #[schemars(range(max = 1000), extend("exclusiveMinimum" = 0))]
    pub(crate) speed: Option<f64>,
    /// What becomes of moments that were recorded on a coarse grid [default: auto]
    #[arg(long, value_name = "HOW", value_parser = named::<Ticks>())]
    pub(crate) ticks: Option<Written<Ticks>>,
    /// Stop after this many requests [default: 100; a ramp or a trace is played to its end]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// Stop releasing requests after this time, such as 30s or 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) duration: Option<Written<Duration>>,
    /// With both --requests and --duration: go on until both are reached, or the first [default:
    /// both]
    #[arg(long, value_name = "WHICH", value_parser = named::<Until>())]
    pub(crate) until: Option<Written<Until>>,
    /// Requests to send before the run, which are not counted [default: 0]
    #[arg(long, value_name = "N")]
    #[schemars(range(max = 1_000_000))]
    pub(crate) warm_up: Option<u64>,
}
