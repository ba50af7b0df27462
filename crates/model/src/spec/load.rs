//! `[load]`: when requests are sent, as flags, as a table of a file, and resolved. Every
//! contradiction is refused by name.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::error::{Result, SpecError, at_most, refuse_first};
use super::text::{Grammar, PerSecond, Ramp, Share, Time, count};
use super::workload::{Replay, Ticks};
use crate::PlannedRequest;
use crate::whole::{spread, to_u64};

pub(super) const RATE_MAX: f64 = 1e6;
/// One request in eleven days: a lower rate is a typing error.
const RATE_MIN: f64 = 1e-6;
pub(super) const SEGMENTS_MAX: usize = 64;
/// From a thousandth of the recorded speed to a thousand times it.
pub(super) const SPEED: RangeInclusive<f64> = 1e-3..=1e3;
/// Gaps that vary ten times as much as Poisson's, to gaps that hardly vary.
pub(super) const BURSTINESS: RangeInclusive<f64> = 0.01..=1_000.0;
pub(super) const DURATION_MAX: Duration = Duration::from_hours(24 * 31);
const CANCEL_AFTER: u32 = 16;
const THINK_MAX: Duration = Duration::from_hours(24);
/// Arrivals of an open loop are drawn beforehand, so their number is bounded.
const ARRIVALS_MAX: f64 = 1e8;

/// When requests are sent.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Load")]
pub struct LoadTable {
    /// Closed loop: keep this many requests in flight [default: 8]
    #[arg(short = 'c')]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub concurrency: Option<u32>,
    /// Closed loop: pause of each user after a reply, such as 2s [default: none]
    pub think_time: Option<Time>,
    /// Closed loop: whether the think time is always the same or the mean of random ones
    /// [default: fixed]
    pub think: Option<ThinkKind>,
    /// Closed loop: spread the first requests over this time, such as 2s, instead of sending them all
    /// at once [default: none]
    pub ramp_up: Option<Time>,
    /// Open loop: send this many requests per second, whatever is in flight; `inf` sends all at
    /// once
    #[arg(short = 'r', visible_aliases = ["request-rate", "rps"])]
    pub rate: Option<PerSecond>,
    /// Open loop: a rate that changes, such as 2..20:60s or 2..20:60s,20..5:30s; after its last
    /// segment it stays as it ended
    #[arg(long, value_name = "SEGMENTS")]
    pub ramp: Option<Ramp>,
    /// How a ramp gets from rate to rate [default: linear]
    pub ramp_curve: Option<RampCurve>,
    /// Open loop: hold back what is due while this many are in flight (capped-open)
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_concurrency: Option<u32>,
    /// How the requests of an open loop are spaced; stretched is gamma with the last of --requests
    /// at exactly their number over --rate, as in `vllm bench serve` [default: poisson]
    pub arrivals: Option<ArrivalsKind>,
    /// Shape of gamma and stretched arrivals, as in `vllm bench serve`: 1 is Poisson, below 1 is
    /// burstier, above more even
    #[schemars(range(min = 0.01, max = 1000))]
    pub burstiness: Option<f64>,
    /// Speed of a recorded load: above 1 its gaps shrink [default: 1]
    #[schemars(range(max = 1000), extend("exclusiveMinimum" = 0))]
    pub speed: Option<f64>,
    /// How times that were recorded on a coarse grid are spread [default: auto]
    pub ticks: Option<Ticks>,
    /// Stop after this many requests [default: 100, or ten for each slot of a closed loop if that is
    /// more; a ramp or a trace is played to its end]
    #[arg(short = 'n', visible_alias = "num-prompts")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub requests: Option<u64>,
    /// Stop releasing requests after this time, such as 30s or 5m
    pub duration: Option<Time>,
    /// With both --requests and --duration: continue until both are reached, or the first [default:
    /// both]
    pub until: Option<Until>,
    /// Share of the requests that the client ends before their answers are whole, as users do, such as
    /// 10%: they are neither successes nor failures [default: none]
    #[arg(long, value_name = "SHARE")]
    pub cancel: Option<Share>,
    /// Output tokens after which --cancel ends a request [default: 16]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub cancel_after: Option<u32>,
    /// Requests to send before the run, which are not counted: a number, or for how long to send them,
    /// such as 10s [default: 0]
    #[arg(long, value_name = "N|TIME", visible_alias = "warmup")]
    pub warm_up: Option<WarmUp>,
}

/// What is sent before a run and not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    Requests(u64),
    Time(Duration),
}

impl Grammar for WarmUp {
    fn read(text: &str) -> Result<Self, String> {
        // One minute, and not a million requests.
        if let Ok(time) = Duration::read(text) {
            return Ok(Self::Time(time));
        }
        let wanted = |_| format!("`{text}` is neither a number of requests nor a time such as 10s");
        count(text).map(Self::Requests).map_err(wanted)
    }

    fn write(&self) -> String {
        match self {
            Self::Requests(requests) => requests.to_string(),
            Self::Time(time) => time.write(),
        }
    }

    fn schema() -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": 1_000_000,
            "examples": [16, "10s"],
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsKind {
    Constant,
    Poisson,
    Gamma,
    Stretched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkKind {
    Fixed,
    Exponential,
}

/// Which of `--requests` and `--duration` ends a run that has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    Both,
    First,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub shape: LoadShape,
    pub extent: Extent,
    /// Requests that are sent before the run and not counted.
    pub warm_up: u64,
    /// For how long such requests are sent instead of their number; zero where that is set.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub warm_up_time: Duration,
    /// The time over which the first requests of a closed loop are spread; zero sends them at once.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub ramp_up: Duration,
    /// Requests that the client ends before their answers are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
}

/// Requests that the client ends early.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cancel {
    /// Of all requests, from 0 to 1.
    pub share: f64,
    /// Output tokens that one of them has received by then.
    pub after: u32,
}

impl Cancel {
    /// After how many tokens this request is ended. It follows from the recipe alone, so a plan that is
    /// played again ends the same requests.
    pub fn after(&self, request: &PlannedRequest) -> Option<u32> {
        let bits = spread(request.prompt_seed ^ spread(request.id.0));
        let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        (unit < self.share).then_some(self.after)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadShape {
    /// A number in flight: the next request leaves when a slot is free.
    Closed { concurrency: NonZeroU32, think: Think },
    /// A schedule, whatever is in flight. With a cap, what is due waits while that many are in
    /// flight: capped-open, which is neither loop.
    Open { rate: Rate, arrivals: Arrivals, cap: Option<NonZeroU32> },
}

/// How long a slot of a closed loop rests after each reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    None,
    Fixed(Duration),
    Exponential { mean: Duration },
}

/// Requests per second of an open loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// The same rate all the time.
    Steady { per_s: f64 },
    /// One segment after another; after the last the rate stays as it ended.
    Ramp { segments: Vec<RampSegment>, curve: RampCurve },
    /// Everything at the start.
    Unlimited,
    /// At the timestamps of a trace.
    Recorded(Replay),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampSegment {
    pub from_per_s: f64,
    pub to_per_s: f64,
    pub over: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum RampCurve {
    /// By the same amount each second.
    Linear,
    /// By the same factor each second.
    Exponential,
}

/// How the gaps between arrivals vary around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Equal gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
    /// Gaps of this gamma shape: 1 is Poisson, below is burstier, above more even. Their
    /// coefficient of variation is one over its square root.
    Gamma { burstiness: f64 },
    /// Gaps of this gamma shape, stretched so that the last of n requests leaves at exactly n over
    /// the rate: the rate of a schedule is then no matter of chance. So does `vllm bench serve`.
    Stretched { burstiness: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// To the end of what was recorded.
    Whole,
    /// A number of requests.
    Requests(NonZeroU64),
    /// Until this time has passed.
    Duration(Duration),
    /// Until both are reached.
    UntilBoth { requests: NonZeroU64, duration: Duration },
    /// Until either is reached.
    UntilFirst { requests: NonZeroU64, duration: Duration },
}

impl Rate {
    /// How many arrivals are expected before this time is over: the area under the rate.
    ///
    /// Bounds are checked against it; schedules are drawn by `workload`, with functions that are
    /// equal on every machine.
    pub fn expected_within(&self, time: Duration) -> f64 {
        match self {
            Self::Steady { per_s } => per_s * time.as_secs_f64(),
            // What was recorded is in memory already.
            Self::Recorded(_) => 0.0,
            Self::Unlimited => f64::INFINITY,
            Self::Ramp { segments, curve } => {
                let mut left = time;
                let mut expected = 0.0;
                for segment in segments {
                    expected += segment.expected_within(left.min(segment.over), *curve);
                    left = left.saturating_sub(segment.over);
                }
                expected + self.per_s_in_the_end() * left.as_secs_f64()
            }
        }
    }

    /// The rate after the last segment.
    pub fn per_s_in_the_end(&self) -> f64 {
        match self {
            Self::Steady { per_s } => *per_s,
            Self::Ramp { segments, .. } => segments.last().map_or(0.0, |last| last.to_per_s),
            Self::Unlimited | Self::Recorded(_) => f64::INFINITY,
        }
    }
}

impl RampSegment {
    fn expected_within(&self, time: Duration, curve: RampCurve) -> f64 {
        let (from, to) = (self.from_per_s, self.to_per_s);
        let (seconds, whole) = (time.as_secs_f64(), self.over.as_secs_f64());
        match curve {
            RampCurve::Exponential if to - from != 0.0 => {
                let growth = (to / from).ln() / whole;
                from * (growth * seconds).exp_m1() / growth
            }
            RampCurve::Linear | RampCurve::Exponential => {
                let reached = from + (to - from) * seconds / whole;
                f64::midpoint(from, reached) * seconds
            }
        }
    }
}

impl Think {
    pub(super) fn new(time: Option<Time>, kind: Option<ThinkKind>) -> Result<Self> {
        let think = match (time.map(|time| time.0), kind) {
            (None, Some(_)) => return Err(SpecError::ThinkWithoutTime),
            (None | Some(Duration::ZERO), _) => Self::None,
            (Some(time), None | Some(ThinkKind::Fixed)) => Self::Fixed(time),
            (Some(mean), Some(ThinkKind::Exponential)) => Self::Exponential { mean },
        };
        think.check()?;
        Ok(think)
    }

    fn check(self) -> Result<()> {
        match self {
            Self::Fixed(Duration::ZERO) | Self::Exponential { mean: Duration::ZERO } => {
                Err(SpecError::OddLoad)
            }
            Self::Fixed(time) | Self::Exponential { mean: time } if THINK_MAX < time => {
                Err(SpecError::ThinkTooLong(THINK_MAX))
            }
            Self::None | Self::Fixed(_) | Self::Exponential { .. } => Ok(()),
        }
    }
}

impl LoadTable {
    /// `recorded` says whether the workload has timestamps.
    pub(super) fn resolve(&self, recorded: bool) -> Result<Load> {
        let shape = self.shape(recorded)?;
        let extent = self.extent(&shape)?;
        let ramp_up = self.ramp_up.map_or(Duration::ZERO, |time| time.0);
        let (warm_up, warm_up_time) = (0, Duration::ZERO);
        let cancel = self.cancel()?;
        let load = Load { shape, extent, warm_up, warm_up_time, ramp_up, cancel };
        let load = load.warmed_up(self.warm_up);
        load.check()?;
        Ok(load)
    }

    fn cancel(&self) -> Result<Option<Cancel>> {
        match (self.cancel, self.cancel_after) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(SpecError::Stray { flag: "--cancel-after", needs: "--cancel" }),
            (Some(_), Some(0)) => Err(SpecError::Zero("--cancel-after")),
            (Some(Share(share)), after) => {
                let after = after.unwrap_or(CANCEL_AFTER);
                at_most("--cancel-after", after.into(), 1_000_000)?;
                Ok(Some(Cancel { share, after }))
            }
        }
    }

    fn shape(&self, recorded: bool) -> Result<LoadShape> {
        let rate = match (self.rate.map(|rate| rate.0), &self.ramp) {
            (Some(_), Some(_)) => return Err(SpecError::TwoRates),
            (_, None) if self.ramp_curve.is_some() => return Err(SpecError::CurveWithoutRamp),
            (None, None) => None,
            (None, Some(Ramp(segments))) => {
                let curve = self.ramp_curve.unwrap_or(RampCurve::Linear);
                Some(Rate::Ramp { segments: segments.clone(), curve })
            }
            (Some(f64::INFINITY), None) => Some(Rate::Unlimited),
            (Some(per_s), None) => Some(Rate::Steady { per_s }),
        };
        if recorded && rate.is_none() && self.concurrency.is_none() {
            self.refuse_arrivals(SpecError::ArrivalsWithoutRate)?;
            let (speed, ticks) = (self.speed.unwrap_or(1.0), self.ticks.unwrap_or_default());
            return self.open(Rate::Recorded(Replay { speed, ticks }));
        }
        let stray = [(self.speed.is_some(), "--speed"), (self.ticks.is_some(), "--ticks")];
        refuse_first(stray.map(|(is_set, flag)| (is_set, SpecError::ReplayWithoutTrace(flag))))?;
        match (rate, self.max_concurrency) {
            (Some(_), _) if self.concurrency.is_some() => Err(SpecError::TwoShapes),
            (Some(Rate::Unlimited), Some(slots)) => {
                self.refuse_arrivals(SpecError::ArrivalsAtOnce)?;
                self.closed("--max-concurrency", slots)
            }
            (Some(rate), _) => self.open(rate),
            (None, Some(_)) => Err(SpecError::CapWithoutRate),
            (None, None) => {
                self.refuse_arrivals(SpecError::ArrivalsWithoutRate)?;
                // Defaults: a run that says something about any server within a minute or so.
                self.closed("--concurrency", self.concurrency.unwrap_or(8))
            }
        }
    }

    fn closed(&self, name: &'static str, slots: u32) -> Result<LoadShape> {
        let think = Think::new(self.think_time, self.think)?;
        Ok(LoadShape::Closed { concurrency: in_flight(name, slots)?, think })
    }

    fn open(&self, rate: Rate) -> Result<LoadShape> {
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
        let cap =
            self.max_concurrency.map(|cap| in_flight("--max-concurrency", cap)).transpose()?;
        Ok(LoadShape::Open { rate, arrivals, cap })
    }

    fn refuse_arrivals(&self, why: fn(&'static str) -> SpecError) -> Result<()> {
        match (self.arrivals, self.burstiness) {
            (Some(_), _) => Err(why("--arrivals")),
            (None, Some(_)) => Err(why("--burstiness")),
            (None, None) => Ok(()),
        }
    }

    fn arrivals(&self) -> Result<Arrivals> {
        use ArrivalsKind::{Constant, Gamma, Poisson, Stretched};
        match (self.arrivals, self.burstiness) {
            // One name for one thing: equal workloads have equal fingerprints.
            (None | Some(Poisson), None) | (None | Some(Gamma), Some(1.0)) => Ok(Arrivals::Poisson),
            (Some(Constant), None) => Ok(Arrivals::Constant),
            (Some(Gamma), None) => Err(SpecError::GammaWithoutBurstiness),
            (Some(Stretched), shape) => {
                Ok(Arrivals::Stretched { burstiness: shape.unwrap_or(1.0) })
            }
            (Some(Constant | Poisson), Some(_)) => Err(SpecError::BurstinessOfOthers),
            (None | Some(Gamma), Some(burstiness)) => Ok(Arrivals::Gamma { burstiness }),
        }
    }

    fn extent(&self, shape: &LoadShape) -> Result<Extent> {
        let requests = |requests| NonZeroU64::new(requests).ok_or(SpecError::Zero("--requests"));
        let duration = self.duration.map(|time| time.0);
        Ok(match (self.requests.map(requests).transpose()?, duration, self.until) {
            (Some(requests), Some(duration), None | Some(Until::Both)) => {
                Extent::UntilBoth { requests, duration }
            }
            (Some(requests), Some(duration), Some(Until::First)) => {
                Extent::UntilFirst { requests, duration }
            }
            (_, _, Some(_)) => return Err(SpecError::UntilWithoutBoth),
            (Some(requests), None, None) => Extent::Requests(requests),
            (None, Some(duration), None) => Extent::Duration(duration),
            // A ramp and a recording are played to their end.
            (None, None, None) => match shape {
                LoadShape::Open { rate: Rate::Ramp { segments, .. }, .. } => {
                    Extent::Duration(length(segments))
                }
                LoadShape::Open { rate: Rate::Recorded(_), .. } => Extent::Whole,
                // Ten rounds of a closed loop: its start and its drain are no part of its steady state.
                LoadShape::Closed { concurrency: slots, .. }
                | LoadShape::Open { rate: Rate::Unlimited, cap: Some(slots), .. } => {
                    Extent::Requests(requests(u64::from(slots.get()).saturating_mul(10).max(100))?)
                }
                LoadShape::Open { rate: Rate::Steady { .. } | Rate::Unlimited, .. } => {
                    Extent::Requests(requests(100)?)
                }
            },
        })
    }
}

fn in_flight(name: &'static str, count: u32) -> Result<NonZeroU32> {
    at_most(name, count.into(), 1_000_000)?;
    NonZeroU32::new(count).ok_or(SpecError::Zero(name))
}

fn length(segments: &[RampSegment]) -> Duration {
    segments.iter().fold(Duration::ZERO, |length, next| length.saturating_add(next.over))
}

impl Load {
    /// With another warm-up, where one is given.
    pub(super) fn warmed_up(self, warm_up: Option<WarmUp>) -> Self {
        match warm_up {
            None => self,
            Some(WarmUp::Requests(warm_up)) => {
                Self { warm_up, warm_up_time: Duration::ZERO, ..self }
            }
            Some(WarmUp::Time(warm_up_time)) => Self { warm_up: 0, warm_up_time, ..self },
        }
    }

    /// Checks that a load, typed or read from a saved plan, is within its bounds.
    pub fn check(&self) -> Result<()> {
        match &self.shape {
            LoadShape::Closed { concurrency, think } => {
                in_flight("--concurrency", concurrency.get())?;
                think.check()?;
            }
            LoadShape::Open { rate, arrivals, cap } => {
                if let Some(cap) = cap {
                    in_flight("--max-concurrency", cap.get())?;
                }
                rate.check()?;
                arrivals.check(rate, self.extent)?;
            }
        }
        let (requests, duration) = match self.extent {
            Extent::Whole => (None, None),
            Extent::Requests(requests) => (Some(requests), None),
            Extent::Duration(duration) => (None, Some(duration)),
            Extent::UntilBoth { requests, duration }
            | Extent::UntilFirst { requests, duration } => (Some(requests), Some(duration)),
        };
        at_most("--requests", requests.map_or(0, NonZeroU64::get), 1_000_000_000)?;
        if duration.is_some_and(|duration| duration.is_zero() || DURATION_MAX < duration) {
            return Err(SpecError::BadDuration(DURATION_MAX));
        }
        let is_recorded = matches!(&self.shape, LoadShape::Open { rate: Rate::Recorded(_), .. });
        if self.extent == Extent::Whole && !is_recorded {
            return Err(SpecError::OddLoad);
        }
        if let LoadShape::Open { rate, .. } = &self.shape {
            check_schedule(rate, self.extent)?;
            if !self.ramp_up.is_zero() {
                return Err(SpecError::RampUpOnOpenLoop);
            }
        }
        if duration.is_some_and(|duration| duration <= self.ramp_up) || DURATION_MAX < self.ramp_up
        {
            return Err(SpecError::RampUpTooLong(duration.unwrap_or(DURATION_MAX)));
        }
        if DURATION_MAX < self.warm_up_time {
            return Err(SpecError::LimitTooLong("--warm-up", DURATION_MAX));
        }
        at_most("--warm-up", self.warm_up, 1_000_000)
    }
}

impl Rate {
    fn check(&self) -> Result<()> {
        let is_rate = |per_s: &f64| (RATE_MIN..=RATE_MAX).contains(per_s);
        let (segments, curve) = match self {
            Self::Steady { per_s } if !is_rate(per_s) => return Err(SpecError::BadRate),
            Self::Recorded(replay) if !SPEED.contains(&replay.speed) => {
                return Err(SpecError::BadSpeed);
            }
            Self::Steady { .. } | Self::Unlimited | Self::Recorded(_) => return Ok(()),
            Self::Ramp { segments, curve } => (segments, *curve),
        };
        if segments.is_empty() || SEGMENTS_MAX < segments.len() {
            return Err(SpecError::RampSegments(segments.len()));
        }
        for (number, segment) in (1..).zip(segments) {
            let ends = [segment.from_per_s, segment.to_per_s];
            if !ends.iter().all(|rate| *rate == 0.0 || is_rate(rate)) {
                return Err(SpecError::RampRate(number));
            }
            if curve == RampCurve::Exponential && ends.contains(&0.0) {
                return Err(SpecError::RampZero(number));
            }
            if segment.over.is_zero() {
                return Err(SpecError::RampNoTime(number));
            }
        }
        if DURATION_MAX < length(segments) {
            return Err(SpecError::RampTooLong(DURATION_MAX));
        }
        if segments.iter().all(|segment| segment.from_per_s == 0.0 && segment.to_per_s == 0.0) {
            return Err(SpecError::RampOfNothing);
        }
        Ok(())
    }
}

impl Arrivals {
    fn check(self, rate: &Rate, extent: Extent) -> Result<()> {
        let is_spaced = matches!(rate, Rate::Steady { .. } | Rate::Ramp { .. });
        // What is stretched has a length: so many requests at one rate.
        let has_length = matches!((rate, extent), (Rate::Steady { .. }, Extent::Requests(_)));
        match self {
            Self::Gamma { burstiness } | Self::Stretched { burstiness }
                if !BURSTINESS.contains(&burstiness) =>
            {
                Err(SpecError::BadBurstiness)
            }
            Self::Stretched { .. } if !has_length => Err(SpecError::NothingToStretchTo),
            Self::Gamma { burstiness: 1.0 } => Err(SpecError::OddLoad),
            Self::Poisson | Self::Gamma { .. } if !is_spaced => Err(SpecError::OddLoad),
            Self::Constant | Self::Poisson | Self::Gamma { .. } | Self::Stretched { .. } => Ok(()),
        }
    }
}

/// A schedule is drawn whole: it must have an end, and fit into memory.
fn check_schedule(rate: &Rate, extent: Extent) -> Result<()> {
    let by_requests = matches!(extent, Extent::Requests(_) | Extent::UntilBoth { .. });
    if by_requests && rate.per_s_in_the_end() == 0.0 {
        return Err(SpecError::RampEndsAtZero);
    }
    let by_time = matches!(extent, Extent::Duration(_) | Extent::UntilBoth { .. });
    if by_time && *rate == Rate::Unlimited {
        return Err(SpecError::UnlimitedByTime);
    }
    let within = |duration| rate.expected_within(duration);
    let expected = match extent {
        Extent::Whole => 0.0,
        Extent::Requests(requests) => requests.get() as f64,
        Extent::Duration(duration) => within(duration),
        Extent::UntilBoth { requests, duration } => within(duration).max(requests.get() as f64),
        Extent::UntilFirst { requests, duration } => within(duration).min(requests.get() as f64),
    };
    if expected <= ARRIVALS_MAX {
        return Ok(());
    }
    Err(SpecError::TooLarge {
        name: "the number of requests in the schedule",
        value: to_u64(expected),
        bound: to_u64(ARRIVALS_MAX),
    })
}

#[cfg(test)]
mod tests;
