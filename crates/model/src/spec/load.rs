//! When requests are sent: loops, rates and arrivals, and how long.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::workload::Replay;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub shape: LoadShape,
    pub extent: Extent,
    /// Requests that are sent before the run and not counted.
    pub warm_up: u64,
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
    Steady {
        per_s: f64,
    },
    /// One segment after another; after the last the rate stays as it ended.
    Ramp {
        segments: Vec<RampSegment>,
        curve: RampCurve,
    },
    /// Everything at moment zero.
    Unlimited,
    /// At the moments of a trace.
    Recorded(Replay),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampSegment {
    pub from_per_s: f64,
    pub to_per_s: f64,
    pub over: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    Constant,
    Poisson,
    /// Gaps of this gamma shape: 1 is Poisson, below is burstier, above more even. Their
    /// coefficient of variation is one over its square root.
    Gamma {
        burstiness: f64,
    },
    /// Gaps of this gamma shape, stretched so that the last of n requests leaves at exactly n over
    /// the rate: the rate of a schedule is then no matter of chance. So does `vllm bench serve`.
    Stretched {
        burstiness: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// To the end of what was recorded.
    Whole,
    Requests(NonZeroU64),
    Duration(Duration),
    /// Until both are reached.
    UntilBoth {
        requests: NonZeroU64,
        duration: Duration,
    },
    /// Until either is reached.
    UntilFirst {
        requests: NonZeroU64,
        duration: Duration,
    },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(segments: &[(f64, f64, u64)], curve: RampCurve) -> Rate {
        let segment = |&(from_per_s, to_per_s, seconds): &(f64, f64, u64)| RampSegment {
            from_per_s,
            to_per_s,
            over: Duration::from_secs(seconds),
        };
        Rate::Ramp { segments: segments.iter().map(segment).collect(), curve }
    }

    #[test]
    fn the_area_under_a_rate_is_what_to_expect() {
        let assert_expected = |rate: &Rate, seconds, area: f64| {
            let found = rate.expected_within(Duration::from_secs(seconds));
            assert!((found - area).abs() < 1e-12 * area, "{found} instead of {area}");
        };
        assert_expected(&Rate::Steady { per_s: 3.0 }, 20, 60.0);
        let up_and_down = ramp(&[(2.0, 20.0, 60), (20.0, 5.0, 30)], RampCurve::Linear);
        assert_expected(&up_and_down, 30, 30.0 * (2.0 + 11.0) / 2.0);
        assert_expected(&up_and_down, 60, 660.0);
        assert_expected(&up_and_down, 90, 660.0 + 375.0);
        // After its end it stays as it ended.
        assert_expected(&up_and_down, 100, 660.0 + 375.0 + 50.0);
        let doubling = ramp(&[(1.0, 4.0, 10), (4.0, 4.0, 10)], RampCurve::Exponential);
        let area = 3.0 * 10.0 / 4.0_f64.ln();
        assert_expected(&doubling, 5, 5.0 / 2.0_f64.ln());
        assert_expected(&doubling, 10, area);
        assert_expected(&doubling, 25, area + 60.0);
    }
}
