//! `[load]`: when requests are sent, as flags, as a table of a file, and resolved. Every
//! contradiction is refused by name.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SpecError;
use super::bounds::{
    ARRIVALS_MAX, BURSTINESS, CONCURRENCY, CONCURRENCY_MAX, DURATION_MAX, RATE_MAX, RATE_MIN,
    REQUESTS, REQUESTS_MAX, SEGMENTS_MAX, SPEED, THINK_MAX, WARM_UP_MAX, at_most,
};
use super::load::{Arrivals, Extent, Load, LoadShape, RampCurve, RampSegment, Rate, Think};
use super::text::{PerSecond, Ramp, Time, Written};
use super::workload::{Replay, Ticks};

/// When requests are sent.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Load")]
pub struct LoadTable {
    /// Closed loop: keep this many requests in flight [default: 8]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub concurrency: Option<u32>,
    /// Closed loop: pause of each user after a reply, such as 2s [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub think_time: Option<Time>,
    /// Whether that time is always the same or the mean of random ones [default: fixed]
    #[arg(long, value_name = "KIND")]
    pub think: Option<ThinkKind>,
    /// Open loop: send this many requests per second, whatever is in flight; `inf` sends all at
    /// once
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<PerSecond>,
    /// Open loop: a rate that changes, such as 2..20:60s or 2..20:60s,20..5:30s; after its last
    /// segment it stays as it ended
    #[arg(long, value_name = "SEGMENTS")]
    pub ramp: Option<Ramp>,
    /// How a ramp gets from rate to rate [default: linear]
    #[arg(long, value_name = "CURVE")]
    pub ramp_curve: Option<RampCurve>,
    /// Open loop: hold back what is due while this many are in flight (capped-open)
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_concurrency: Option<u32>,
    /// How the requests of an open loop are spaced; stretched is gamma with the last of --requests
    /// at exactly their number over --rate, as in `vllm bench serve` [default: poisson]
    #[arg(long, value_name = "KIND")]
    pub arrivals: Option<ArrivalsKind>,
    /// Shape of gamma and stretched arrivals, as in `vllm bench serve`: 1 is Poisson, below 1 is
    /// burstier, above more even
    #[arg(long, value_name = "K")]
    #[schemars(range(min = 0.01, max = 1000))]
    pub burstiness: Option<f64>,
    /// Speed of a recorded load: above 1 its gaps shrink [default: 1]
    #[arg(long, value_name = "FACTOR")]
    #[schemars(range(max = 1000), extend("exclusiveMinimum" = 0))]
    pub speed: Option<f64>,
    /// How times that were recorded on a coarse grid are spread [default: auto]
    #[arg(long, value_name = "HOW")]
    pub ticks: Option<Ticks>,
    /// Stop after this many requests [default: 100; a ramp or a trace is played to its end]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub requests: Option<u64>,
    /// Stop releasing requests after this time, such as 30s or 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Time>,
    /// With both --requests and --duration: continue until both are reached, or the first [default:
    /// both]
    #[arg(long, value_name = "WHICH")]
    pub until: Option<Until>,
    /// Requests to send before the run, which are not counted [default: 0]
    #[arg(long, value_name = "N")]
    #[schemars(range(max = 1_000_000))]
    pub warm_up: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsKind {
    Constant,
    Poisson,
    Gamma,
    Stretched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkKind {
    Fixed,
    Exponential,
}

/// Which of `--requests` and `--duration` ends a run that has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    Both,
    First,
}

impl LoadTable {
    /// `recorded` says whether the workload brings moments of its own.
    pub(super) fn resolve(&self, recorded: bool) -> Result<Load, SpecError> {
        let shape = self.shape(recorded)?;
        let extent = self.extent(&shape)?;
        if let LoadShape::Open { rate, arrivals, .. } = &shape {
            check_schedule(rate, extent)?;
            check_stretched(rate, *arrivals, extent)?;
        }
        let warm_up = self.warm_up.unwrap_or(0);
        at_most("--warm-up", warm_up, WARM_UP_MAX)?;
        Ok(Load { shape, extent, warm_up })
    }

    fn shape(&self, recorded: bool) -> Result<LoadShape, SpecError> {
        let rate = self.rate()?;
        let replays = recorded && rate.is_none() && self.concurrency.is_none();
        if replays {
            self.refuse_arrivals(SpecError::ArrivalsWithoutRate)?;
            return self.open(self.replay()?, self.max_concurrency);
        }
        let stray = [(self.speed.is_some(), "--speed"), (self.ticks.is_some(), "--ticks")];
        if let Some((_, flag)) = stray.into_iter().find(|(is_set, _)| *is_set) {
            return Err(SpecError::ReplayWithoutTrace(flag));
        }
        match (rate, self.max_concurrency) {
            (Some(_), _) if self.concurrency.is_some() => Err(SpecError::TwoShapes),
            (Some(Rate::Unlimited), Some(slots)) => {
                self.refuse_arrivals(SpecError::ArrivalsAtOnce)?;
                self.closed("--max-concurrency", slots)
            }
            (Some(rate), cap) => self.open(rate, cap),
            (None, Some(_)) => Err(SpecError::CapWithoutRate),
            (None, None) => {
                self.refuse_arrivals(SpecError::ArrivalsWithoutRate)?;
                self.closed("--concurrency", self.concurrency.unwrap_or(CONCURRENCY))
            }
        }
    }

    fn replay(&self) -> Result<Rate, SpecError> {
        let speed = self.speed.unwrap_or(1.0);
        if !SPEED.contains(&speed) {
            return Err(SpecError::BadSpeed);
        }
        Ok(Rate::Recorded(Replay { speed, ticks: self.ticks.unwrap_or_default() }))
    }

    fn closed(&self, name: &'static str, slots: u32) -> Result<LoadShape, SpecError> {
        Ok(LoadShape::Closed { concurrency: in_flight(name, slots)?, think: self.think()? })
    }

    fn open(&self, rate: Rate, cap: Option<u32>) -> Result<LoadShape, SpecError> {
        if self.think_time.is_some() || self.think.is_some() {
            return Err(SpecError::ThinkOnOpenLoop);
        }
        let arrivals = match rate {
            Rate::Unlimited => {
                self.refuse_arrivals(SpecError::ArrivalsAtOnce)?;
                Arrivals::Constant
            }
            Rate::Recorded(_) => Arrivals::Constant,
            Rate::Steady { .. } | Rate::Ramp { .. } => self.arrivals()?,
        };
        let cap = cap.map(|cap| in_flight("--max-concurrency", cap)).transpose()?;
        Ok(LoadShape::Open { rate, arrivals, cap })
    }

    fn refuse_arrivals(&self, why: fn(&'static str) -> SpecError) -> Result<(), SpecError> {
        match (self.arrivals, self.burstiness) {
            (Some(_), _) => Err(why("--arrivals")),
            (None, Some(_)) => Err(why("--burstiness")),
            (None, None) => Ok(()),
        }
    }

    fn arrivals(&self) -> Result<Arrivals, SpecError> {
        match (self.arrivals, self.burstiness) {
            (None | Some(ArrivalsKind::Poisson), None) => Ok(Arrivals::Poisson),
            (Some(ArrivalsKind::Constant), None) => Ok(Arrivals::Constant),
            (Some(ArrivalsKind::Gamma), None) => Err(SpecError::GammaWithoutBurstiness),
            (Some(ArrivalsKind::Stretched), burstiness) => {
                let burstiness = burstiness.unwrap_or(1.0);
                let is_shape = BURSTINESS.contains(&burstiness);
                is_shape
                    .then_some(Arrivals::Stretched { burstiness })
                    .ok_or(SpecError::BadBurstiness)
            }
            (Some(ArrivalsKind::Constant | ArrivalsKind::Poisson), Some(_)) => {
                Err(SpecError::BurstinessOfOthers)
            }
            (None | Some(ArrivalsKind::Gamma), Some(burstiness)) => {
                match burstiness {
                    // One name for one thing: equal workloads have equal fingerprints.
                    1.0 => Ok(Arrivals::Poisson),
                    _ if BURSTINESS.contains(&burstiness) => Ok(Arrivals::Gamma { burstiness }),
                    _ => Err(SpecError::BadBurstiness),
                }
            }
        }
    }

    fn rate(&self) -> Result<Option<Rate>, SpecError> {
        match (self.rate.map(|rate| rate.0), &self.ramp) {
            (Some(_), Some(_)) => Err(SpecError::TwoRates),
            (None, Some(Ramp(segments))) => self.checked_ramp(segments).map(Some),
            (_, None) if self.ramp_curve.is_some() => Err(SpecError::CurveWithoutRamp),
            (None, None) => Ok(None),
            (Some(f64::INFINITY), None) => Ok(Some(Rate::Unlimited)),
            (Some(per_s), None) if (RATE_MIN..=RATE_MAX).contains(&per_s) => {
                Ok(Some(Rate::Steady { per_s }))
            }
            (Some(_), None) => Err(SpecError::BadRate),
        }
    }

    fn checked_ramp(&self, segments: &[RampSegment]) -> Result<Rate, SpecError> {
        let curve = self.ramp_curve.unwrap_or(RampCurve::Linear);
        if segments.is_empty() || SEGMENTS_MAX < segments.len() {
            return Err(SpecError::RampSegments(segments.len()));
        }
        let mut length = Duration::ZERO;
        for (number, segment) in (1..).zip(segments) {
            let ends = [segment.from_per_s, segment.to_per_s];
            let is_rate = |rate: &f64| *rate == 0.0 || (RATE_MIN..=RATE_MAX).contains(rate);
            if !ends.iter().all(is_rate) {
                return Err(SpecError::RampRate(number));
            }
            if curve == RampCurve::Exponential && ends.contains(&0.0) {
                return Err(SpecError::RampZero(number));
            }
            if segment.over.is_zero() {
                return Err(SpecError::RampNoTime(number));
            }
            length = length.saturating_add(segment.over);
        }
        if DURATION_MAX < length {
            return Err(SpecError::RampTooLong(DURATION_MAX));
        }
        if segments.iter().all(|segment| segment.from_per_s == 0.0 && segment.to_per_s == 0.0) {
            return Err(SpecError::RampOfNothing);
        }
        Ok(Rate::Ramp { segments: segments.to_vec(), curve })
    }

    fn think(&self) -> Result<Think, SpecError> {
        match (self.think_time.map(|time| time.0), self.think) {
            (None, Some(_)) => Err(SpecError::ThinkWithoutTime),
            (Some(time), _) if THINK_MAX < time => Err(SpecError::ThinkTooLong(THINK_MAX)),
            (None | Some(Duration::ZERO), _) => Ok(Think::None),
            (Some(time), None | Some(ThinkKind::Fixed)) => Ok(Think::Fixed(time)),
            (Some(mean), Some(ThinkKind::Exponential)) => Ok(Think::Exponential { mean }),
        }
    }

    fn extent(&self, shape: &LoadShape) -> Result<Extent, SpecError> {
        let requests = self.requests.map(checked_requests).transpose()?;
        let duration = self.duration.map(|time| checked_duration(time.0)).transpose()?;
        match (requests, duration, self.until) {
            (Some(requests), Some(duration), None | Some(Until::Both)) => {
                Ok(Extent::UntilBoth { requests, duration })
            }
            (Some(requests), Some(duration), Some(Until::First)) => {
                Ok(Extent::UntilFirst { requests, duration })
            }
            (_, _, Some(_)) => Err(SpecError::UntilWithoutBoth),
            (Some(requests), None, None) => Ok(Extent::Requests(requests)),
            (None, Some(duration), None) => Ok(Extent::Duration(duration)),
            (None, None, None) => default_extent(shape),
        }
    }
}

/// A ramp and a recording are played to their end; everything else sends a number of requests.
fn default_extent(shape: &LoadShape) -> Result<Extent, SpecError> {
    match shape {
        LoadShape::Open { rate: Rate::Ramp { segments, .. }, .. } => {
            Ok(Extent::Duration(segments.iter().map(|segment| segment.over).sum()))
        }
        LoadShape::Open { rate: Rate::Recorded(_), .. } => Ok(Extent::Whole),
        LoadShape::Open { rate: Rate::Steady { .. } | Rate::Unlimited, .. }
        | LoadShape::Closed { .. } => checked_requests(REQUESTS).map(Extent::Requests),
    }
}

fn checked_requests(requests: u64) -> Result<NonZeroU64, SpecError> {
    at_most("--requests", requests, REQUESTS_MAX)?;
    NonZeroU64::new(requests).ok_or(SpecError::Zero("--requests"))
}

fn checked_duration(duration: Duration) -> Result<Duration, SpecError> {
    if duration.is_zero() || DURATION_MAX < duration {
        return Err(SpecError::BadDuration(DURATION_MAX));
    }
    Ok(duration)
}

fn in_flight(name: &'static str, count: u32) -> Result<NonZeroU32, SpecError> {
    at_most(name, count.into(), CONCURRENCY_MAX.into())?;
    NonZeroU32::new(count).ok_or(SpecError::Zero(name))
}

/// A schedule is drawn whole: it must have an end, and fit into memory.
fn check_schedule(rate: &Rate, extent: Extent) -> Result<(), SpecError> {
    let by_requests = matches!(extent, Extent::Requests(_) | Extent::UntilBoth { .. });
    if by_requests && rate.per_s_in_the_end() == 0.0 {
        return Err(SpecError::RampEndsAtZero);
    }
    let by_time = matches!(extent, Extent::Duration(_) | Extent::UntilBoth { .. });
    if by_time && *rate == Rate::Unlimited {
        return Err(SpecError::UnlimitedByTime);
    }
    let expected = match extent {
        Extent::Whole => 0.0,
        Extent::Requests(requests) => requests.get() as f64,
        Extent::Duration(duration) => rate.expected_within(duration),
        Extent::UntilBoth { requests, duration } => {
            rate.expected_within(duration).max(requests.get() as f64)
        }
        Extent::UntilFirst { requests, duration } => {
            rate.expected_within(duration).min(requests.get() as f64)
        }
    };
    if expected <= ARRIVALS_MAX {
        return Ok(());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shown in a message, and bounded by the rate and the duration"
    )]
    Err(SpecError::TooLarge {
        name: "the number of requests in the schedule",
        value: expected as u64,
        bound: ARRIVALS_MAX as u64,
    })
}

/// What is stretched has a length: so many requests at one rate.
fn check_stretched(rate: &Rate, arrivals: Arrivals, extent: Extent) -> Result<(), SpecError> {
    let has_length = matches!((rate, extent), (Rate::Steady { .. }, Extent::Requests(_)));
    match arrivals {
        Arrivals::Stretched { .. } if !has_length => Err(SpecError::NothingToStretchTo),
        Arrivals::Stretched { .. }
        | Arrivals::Constant
        | Arrivals::Poisson
        | Arrivals::Gamma { .. } => Ok(()),
    }
}

impl Load {
    /// Checks that a load that was read, such as that of a saved plan, could have been typed.
    pub fn check(&self) -> Result<(), SpecError> {
        let recorded = matches!(&self.shape, LoadShape::Open { rate: Rate::Recorded(_), .. });
        if self.table().resolve(recorded)? == *self { Ok(()) } else { Err(SpecError::OddLoad) }
    }

    /// The table that resolves to this load.
    fn table(&self) -> LoadTable {
        let mut table = match &self.shape {
            LoadShape::Closed { concurrency, think } => closed_table(*concurrency, *think),
            LoadShape::Open { rate, arrivals, cap } => {
                let max_concurrency = cap.map(NonZeroU32::get);
                LoadTable { max_concurrency, ..open_table(rate, *arrivals) }
            }
        };
        (table.requests, table.duration, table.until) = match self.extent {
            Extent::Whole => (None, None, None),
            Extent::Requests(requests) => (Some(requests.get()), None, None),
            Extent::Duration(duration) => (None, Some(Written(duration)), None),
            Extent::UntilBoth { requests, duration } => {
                (Some(requests.get()), Some(Written(duration)), Some(Until::Both))
            }
            Extent::UntilFirst { requests, duration } => {
                (Some(requests.get()), Some(Written(duration)), Some(Until::First))
            }
        };
        LoadTable { warm_up: Some(self.warm_up), ..table }
    }
}

fn closed_table(concurrency: NonZeroU32, think: Think) -> LoadTable {
    let (think_time, think) = match think {
        Think::None => (None, None),
        Think::Fixed(time) => (Some(Written(time)), Some(ThinkKind::Fixed)),
        Think::Exponential { mean } => (Some(Written(mean)), Some(ThinkKind::Exponential)),
    };
    LoadTable { concurrency: Some(concurrency.get()), think_time, think, ..LoadTable::default() }
}

fn open_table(rate: &Rate, arrivals: Arrivals) -> LoadTable {
    let (arrivals, burstiness) = match arrivals {
        Arrivals::Constant => (Some(ArrivalsKind::Constant), None),
        Arrivals::Poisson => (Some(ArrivalsKind::Poisson), None),
        Arrivals::Gamma { burstiness } => (Some(ArrivalsKind::Gamma), Some(burstiness)),
        Arrivals::Stretched { burstiness } => (Some(ArrivalsKind::Stretched), Some(burstiness)),
    };
    let spaced = LoadTable { arrivals, burstiness, ..LoadTable::default() };
    match rate {
        Rate::Steady { per_s } => LoadTable { rate: Some(PerSecond(*per_s)), ..spaced },
        Rate::Ramp { segments, curve } => {
            LoadTable { ramp: Some(Ramp(segments.clone())), ramp_curve: Some(*curve), ..spaced }
        }
        // These two leave no gaps to shape.
        Rate::Unlimited => {
            LoadTable { rate: Some(PerSecond(f64::INFINITY)), ..LoadTable::default() }
        }
        Rate::Recorded(replay) => LoadTable {
            speed: Some(replay.speed),
            ticks: Some(replay.ticks),
            ..LoadTable::default()
        },
    }
}

#[cfg(test)]
mod tests;
