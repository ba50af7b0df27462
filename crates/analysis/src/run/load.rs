//! When it was asked, as the summary repeats it: lengths of time are seconds.

use inferometer_model::observations;
use inferometer_model::spec::{Arrivals, Extent, LoadShape, RampCurve, Rate, Replay, Think, Ticks};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadFacts {
    Closed {
        concurrency: u32,
        think: ThinkFacts,
    },
    /// With a cap it is capped-open.
    Open {
        rate: RateFacts,
        arrivals: Arrivals,
        max_concurrency: Option<u32>,
    },
}

/// How long a slot rests after each reply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThinkFacts {
    None,
    Fixed { time_s: f64 },
    Exponential { mean_s: f64 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RateFacts {
    Steady {
        per_s: f64,
    },
    Ramp {
        segments: Vec<RampSegmentFacts>,
        curve: RampCurve,
    },
    Unlimited,
    /// At the moments of a trace.
    Recorded {
        speed: f64,
        ticks: Ticks,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampSegmentFacts {
    pub from_per_s: f64,
    pub to_per_s: f64,
    pub over_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtentFacts {
    /// To the end of what was recorded.
    Whole,
    Requests(u64),
    DurationS(f64),
    UntilBoth {
        requests: u64,
        duration_s: f64,
    },
    UntilFirst {
        requests: u64,
        duration_s: f64,
    },
}

/// What was sent before the run. It is in no other number of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmUpFacts {
    pub requests: u64,
    pub ok: u64,
    pub failed: u64,
    pub took_s: f64,
}

impl LoadFacts {
    pub fn of(shape: &LoadShape) -> Self {
        match shape {
            LoadShape::Closed { concurrency, think } => {
                Self::Closed { concurrency: concurrency.get(), think: ThinkFacts::of(*think) }
            }
            LoadShape::Open { rate, arrivals, cap } => Self::Open {
                rate: RateFacts::of(rate),
                arrivals: *arrivals,
                max_concurrency: cap.map(std::num::NonZeroU32::get),
            },
        }
    }

    /// Whether there was a schedule, capped or not.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

impl ThinkFacts {
    pub(crate) fn of(think: Think) -> Self {
        match think {
            Think::None => Self::None,
            Think::Fixed(time) => Self::Fixed { time_s: time.as_secs_f64() },
            Think::Exponential { mean } => Self::Exponential { mean_s: mean.as_secs_f64() },
        }
    }
}

impl RateFacts {
    fn of(rate: &Rate) -> Self {
        match rate {
            Rate::Steady { per_s } => Self::Steady { per_s: *per_s },
            Rate::Unlimited => Self::Unlimited,
            Rate::Recorded(Replay { speed, ticks }) => {
                Self::Recorded { speed: *speed, ticks: *ticks }
            }
            Rate::Ramp { segments, curve } => {
                let facts = segments.iter().map(|segment| RampSegmentFacts {
                    from_per_s: segment.from_per_s,
                    to_per_s: segment.to_per_s,
                    over_s: segment.over.as_secs_f64(),
                });
                Self::Ramp { segments: facts.collect(), curve: *curve }
            }
        }
    }
}

impl ExtentFacts {
    pub fn of(extent: Extent) -> Self {
        match extent {
            Extent::Whole => Self::Whole,
            Extent::Requests(requests) => Self::Requests(requests.get()),
            Extent::Duration(duration) => Self::DurationS(duration.as_secs_f64()),
            Extent::UntilBoth { requests, duration } => {
                Self::UntilBoth { requests: requests.get(), duration_s: duration.as_secs_f64() }
            }
            Extent::UntilFirst { requests, duration } => {
                Self::UntilFirst { requests: requests.get(), duration_s: duration.as_secs_f64() }
            }
        }
    }
}

impl WarmUpFacts {
    pub(super) fn of(facts: observations::WarmUpFacts) -> Self {
        let observations::WarmUpFacts { requests, ok, failed, took } = facts;
        Self { requests, ok, failed, took_s: took.as_secs_f64() }
    }
}
