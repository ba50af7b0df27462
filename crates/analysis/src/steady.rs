//! The steady stretch of a run: after it has warmed up and before it drains.
//!
//! Three series are looked at: requests in flight and output tokens, over even steps of time, and
//! TTFT in the order of sending. Each is cut by MSER-5 and tested for a trend
//! ([`crate::statistics::steady`]); the window begins after the latest cut. It ends where the drain
//! begins: when an open loop sends its last request, and when a closed loop has nothing new for a slot
//! to take. Endings play no part in that, or slow requests would be left out.
//!
//! A run never settled when
//!
//! - an open loop piles up requests faster than chance arrivals make: in the second half the line
//!   through those in flight rises by more than [`CHANCE`] times the root of the arrivals there. Up
//!   to its capacity a server keeps below that, whatever its queue does; or
//! - neither requests in flight nor TTFT settle on an open loop: one of them alone fails to in a few
//!   of a hundred steady runs; or
//! - the output of a closed loop does not settle: its load follows the server.

mod figures;
mod series;

use inferometer_model::spec::{LoadShape, Rate, Think};
use serde::{Deserialize, Serialize};

pub use self::figures::{SteadyFigures, ThroughputIntervals};
pub(crate) use self::series::{Course, SentAnswer};
use self::series::{Grid, Reading, STEPS};
use crate::concurrency::Flight;
use crate::ruler::ns_to_ms;
use crate::statistics::steady::{Settling, Unsettled};
use crate::statistics::trend::{mann_kendall, ols_hac};
use crate::throughput::{Window, WindowKind};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    pub state: SteadyKind,
    /// Why there is no window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Null unless it settled.
    pub window: Option<Window>,
    /// What was looked at; empty where nothing could be.
    pub trends: Vec<SeriesTrend>,
    /// How requests pile up in the second half of an open loop; null elsewhere.
    pub growth: Option<Growth>,
    /// Over the window; null without one. Boxed: it is most of a summary's size.
    pub figures: Option<Box<SteadyFigures>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyKind {
    Settled,
    NeverSettled,
    /// Too little to tell.
    TooShort,
    /// The load was not meant to be steady.
    NotJudged,
}

/// What became of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesTrend {
    pub series: SeriesName,
    /// Null when it did not settle, or was too short.
    pub settled_from_ms: Option<f64>,
    /// Change over what is left of it, as a share of its level; null without a trend.
    pub drift: Option<f64>,
    pub p: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesName {
    InFlight,
    OutputTokens,
    /// E2E where answers are not streamed.
    Ttft,
}

/// A line through the requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    pub per_s: f64,
    /// From the half of the run to where it drains.
    pub requests: f64,
    /// What chance arrivals may make of it.
    pub chance: f64,
    /// Whether it rises by more than that, and steadily.
    pub beyond_chance: bool,
}

/// Fewer requests before the drain say nothing about a level. Of an open loop a random queue must be
/// told from one that grows: below this it is called growing too often.
const FEWEST_OPEN: usize = 100;
/// The output of slots is judged, which hardly varies by itself.
const FEWEST_SLOTTED: usize = 60;
/// Standard deviations of the number of arrivals.
const CHANCE: f64 = 2.0;
const SIGNIFICANT: f64 = 0.05;

impl Default for SteadyState {
    fn default() -> Self {
        Self::without(SteadyKind::NotJudged, "the version that made this summary did not look")
    }
}

impl SteadyState {
    pub(crate) fn of(shape: &LoadShape, course: &Course<'_>) -> Self {
        let horizon = match horizon(shape, course) {
            Ok(horizon) => horizon,
            Err(unsteady) => return Self::without(SteadyKind::NotJudged, unsteady),
        };
        let before_drain = horizon.map_or(0, |horizon| course.sent_within(horizon));
        let fewest = if is_slotted(shape) { FEWEST_SLOTTED } else { FEWEST_OPEN };
        let (Some(horizon), true) = (horizon, fewest <= before_drain) else {
            let reason = format!(
                "{before_drain} requests left before the drain; {fewest} tell whether a run settles"
            );
            return Self::without(SteadyKind::TooShort, &reason);
        };
        let Some(grid) = Grid::over(horizon, STEPS) else {
            return Self::without(SteadyKind::TooShort, "the run has no length");
        };
        Self::over(course, grid, !is_slotted(shape))
    }

    fn over(course: &Course<'_>, grid: Grid, open: bool) -> Self {
        let readings = course.readings(grid);
        let in_flight = &readings[0];
        let growth = if open { Growth::of(in_flight, course, grid) } else { None };
        let trends = readings.iter().map(SeriesTrend::of).collect();
        let never = if open { never_open(&readings, growth) } else { never_slotted(&readings) };
        if let Some(reason) = never {
            let never = Self::without(SteadyKind::NeverSettled, &reason);
            return Self { trends, growth, ..never };
        }
        let cuts = readings.iter().filter_map(Reading::settled_from_ns);
        let from_ns = cuts.max().unwrap_or(grid.begin_ns());
        let stretch = Flight { from_ns, to_ns: grid.end_ns() };
        Self {
            state: SteadyKind::Settled,
            reason: None,
            window: Some(window(stretch)),
            trends,
            growth,
            figures: Some(Box::new(SteadyFigures::over(stretch, course))),
        }
    }

    fn without(state: SteadyKind, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        Self { state, reason, window: None, trends: Vec::new(), growth: None, figures: None }
    }

    /// Requests that pile up each second, where the server did not keep up with an open loop.
    pub(crate) fn piling_up(&self) -> Option<f64> {
        self.growth.filter(|growth| growth.beyond_chance).map(|growth| growth.per_s)
    }
}

/// Whether answers decide when the next request leaves: then the output tells of settling.
fn is_slotted(shape: &LoadShape) -> bool {
    match shape {
        LoadShape::Closed { .. } => true,
        LoadShape::Open { rate, cap, .. } => *rate == Rate::Unlimited && cap.is_some(),
    }
}

/// From the first request sent to where the drain begins, or why no level is to be looked for.
fn horizon(shape: &LoadShape, course: &Course<'_>) -> Result<Option<Flight>, &'static str> {
    let begins = || course.flights.iter().map(|flight| flight.from_ns);
    let sending = begins().min().zip(begins().max());
    let sending = sending.map(|(from_ns, to_ns)| Flight { from_ns, to_ns });
    match shape {
        LoadShape::Open { rate: Rate::Unlimited, cap: None, .. } => {
            Err("everything was sent at once, so the run drains from its beginning")
        }
        LoadShape::Open { rate: Rate::Ramp { .. }, .. } => {
            Err("the rate was asked to change, so there is no level")
        }
        LoadShape::Open { rate: Rate::Recorded(_), .. } => {
            Err("the load follows a trace, which need not have a level")
        }
        // Slots that rest are not in flight: that all of them are says nothing.
        LoadShape::Closed { think, .. } if *think != Think::None => Ok(sending),
        LoadShape::Closed { .. } | LoadShape::Open { rate: Rate::Unlimited, .. } => {
            let drain = course.drain_begins_ns();
            Ok(sending.zip(drain).map(|(sending, to_ns)| Flight { to_ns, ..sending }))
        }
        LoadShape::Open { rate: Rate::Steady { .. }, .. } => Ok(sending),
    }
}

fn never_open(readings: &[Reading; 3], growth: Option<Growth>) -> Option<String> {
    if let Some(growth) = growth.filter(|growth| growth.beyond_chance) {
        return Some(format!(
            "requests in flight grow by {:.2} per second: the server does not keep up",
            growth.per_s
        ));
    }
    let [in_flight, _, ttft] = readings;
    in_flight
        .unsettled()
        .and(ttft.unsettled())
        .map(|_| "neither requests in flight nor TTFT come to a level".to_owned())
}

fn never_slotted(readings: &[Reading; 3]) -> Option<String> {
    Some(match readings[1].unsettled()? {
        Unsettled::Truncation => "the output rate still changes after half of the run".to_owned(),
        Unsettled::Trend { drift, .. } => {
            let way = if drift < 0.0 { "falls" } else { "rises" };
            format!("the output rate {way} by {:.0} % over the run", drift.abs() * 100.0)
        }
    })
}

impl Growth {
    fn of(in_flight: &Reading, course: &Course<'_>, grid: Grid) -> Option<Self> {
        let half = STEPS / 2;
        let later = in_flight.values.get(half..)?;
        let from_ns = grid.moment_ns(half);
        let arrivals = course.sent_within(Flight { from_ns, to_ns: grid.end_ns() });
        let line = ols_hac(later)?;
        let rises = mann_kendall(later).is_some_and(|ranks| ranks.p < SIGNIFICANT);
        let chance = CHANCE * (arrivals as f64).sqrt();
        let over_s = (grid.end_ns() - from_ns) as f64 / 1e9;
        Some(Self {
            per_s: line.drift / over_s,
            requests: line.drift,
            chance,
            beyond_chance: chance < line.drift && line.p < SIGNIFICANT && rises,
        })
    }
}

impl SeriesTrend {
    fn of(reading: &Reading) -> Self {
        let (drift, p) = match reading.settling {
            Settling::NeverSettled(Unsettled::Trend { drift, p }) => (Some(drift), Some(p)),
            Settling::NeverSettled(Unsettled::Truncation)
            | Settling::Settled { .. }
            | Settling::TooShort { .. } => (None, None),
        };
        Self {
            series: reading.series,
            settled_from_ms: reading.settled_from_ns().map(ns_to_ms),
            drift: drift.filter(|drift| drift.is_finite()),
            p,
        }
    }
}

fn window(stretch: Flight) -> Window {
    let Flight { from_ns, to_ns } = stretch;
    Window {
        kind: WindowKind::Steady,
        from_ms: Some(ns_to_ms(from_ns)),
        to_ms: Some(ns_to_ms(to_ns)),
        duration_s: Some(ns_to_ms(to_ns.saturating_sub(from_ns)) / 1e3),
    }
}

#[cfg(test)]
mod tests;
