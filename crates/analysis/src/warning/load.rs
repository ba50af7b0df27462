//! Warnings about the load as a whole: whether it was the one asked for, and came to a level.

use std::fmt;

use super::Percent;
use crate::delivered::{Delivered, RATE_APART_GRAVE, ScheduleDelivered};
use crate::measured::Measured;
use crate::steady::SteadyKind;
use crate::verdict::Severity;

#[derive(Clone, Debug, PartialEq)]
pub enum LoadWarning {
    /// Sent less intended, as a share of it.
    RateMissed {
        apart: f64,
        intended_per_s: f64,
        sent_per_s: f64,
        /// Of those due, the share that never left.
        unsent_share: f64,
    },
    /// Slots of a closed loop that nobody used.
    SlotsEmpty {
        asked: u32,
        in_use_mean: f64,
    },
    /// Requests left in other bunches than planned.
    ArrivalsBunched {
        over_s: f64,
        intended: f64,
        sent: f64,
    },
    /// Our own schedule is not what was asked for.
    ArrivalsUnlike {
        process: String,
        p: f64,
    },
    /// The server does not keep up with an open loop.
    PilingUp {
        per_s: f64,
    },
    NeverSettled {
        reason: String,
    },
    /// Requests in flight less what arrivals and times say, as a share of that.
    LittlesLaw {
        apart: f64,
        lost: u64,
    },
    /// On average: running and waiting by the server's gauges, and in flight by our records.
    ServerInFlight {
        server: f64,
        ours: f64,
    },
}

impl LoadWarning {
    pub(super) fn found(measured: &Measured) -> Vec<Self> {
        let mut found = match &measured.delivered {
            Delivered::Schedule(schedule) => Self::of_schedule(schedule),
            Delivered::Slots(slots) => {
                let (asked, in_use_mean) = (slots.asked, slots.in_use_mean);
                slots
                    .missed()
                    .map(|_| Self::SlotsEmpty { asked, in_use_mean })
                    .into_iter()
                    .collect()
            }
            Delivered::NotChecked { .. } => Vec::new(),
        };
        let steady = &measured.steady;
        found.extend(match (steady.piling_up(), steady.state, &steady.reason) {
            (Some(per_s), ..) => Some(Self::PilingUp { per_s }),
            (None, SteadyKind::NeverSettled, Some(reason)) => {
                Some(Self::NeverSettled { reason: reason.clone() })
            }
            (None, ..) => None,
        });
        let (apart, lost) = (measured.littles_law.broken(), measured.littles_law.lost);
        found.extend(apart.map(|apart| Self::LittlesLaw { apart, lost }));
        let disagrees = measured.littles_law.server_disagrees();
        found.extend(disagrees.map(|(server, ours)| Self::ServerInFlight { server, ours }));
        found
    }

    fn of_schedule(schedule: &ScheduleDelivered) -> Vec<Self> {
        let rates = schedule.intended_per_s.zip(schedule.sent_per_s);
        let missed =
            schedule.rate_missed().zip(rates).map(|(apart, (intended_per_s, sent_per_s))| {
                let unsent_share = schedule.unsent_share();
                Self::RateMissed { apart, intended_per_s, sent_per_s, unsent_share }
            });
        let bunched = schedule.bunched().map(|(intended, sent)| Self::ArrivalsBunched {
            over_s: intended.over_s,
            intended: intended.index,
            sent: sent.index,
        });
        let unlike = schedule.unlike();
        let unlike =
            unlike.map(|fit| Self::ArrivalsUnlike { process: fit.process.clone(), p: fit.p });
        missed.into_iter().chain(bunched).chain(unlike).collect()
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::RateMissed { .. } => "rate-missed",
            Self::SlotsEmpty { .. } => "slots-empty",
            Self::ArrivalsBunched { .. } => "arrivals-bunched",
            Self::ArrivalsUnlike { .. } => "arrivals-unlike",
            Self::PilingUp { .. } => "piling-up",
            Self::NeverSettled { .. } => "never-settled",
            Self::LittlesLaw { .. } => "littles-law",
            Self::ServerInFlight { .. } => "server-in-flight",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            // What never left is judged where it belongs: as errors, or as the client's want.
            Self::RateMissed { apart, unsent_share, .. }
                if RATE_APART_GRAVE < apart.abs() - unsent_share =>
            {
                Severity::Invalid
            }
            Self::RateMissed { .. }
            | Self::SlotsEmpty { .. }
            | Self::ArrivalsUnlike { .. }
            | Self::PilingUp { .. }
            | Self::LittlesLaw { .. } => Severity::Degraded,
            Self::ArrivalsBunched { .. }
            | Self::NeverSettled { .. }
            | Self::ServerInFlight { .. } => Severity::Note,
        }
    }

    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::RateMissed { unsent_share, .. } if 0.0 < *unsent_share => {
                "look at why requests never left (the errors by cause), or lower the rate: the server \
                 met another load than the one asked for"
            }
            Self::RateMissed { .. } | Self::ArrivalsBunched { .. } => {
                "give the client more cores or a machine of its own, or lower the rate"
            }
            Self::SlotsEmpty { .. } => {
                "give the client more cores, or look for requests that fail before they leave: the \
                 server met fewer users than asked for"
            }
            Self::ArrivalsUnlike { .. } => {
                "use another --seed, and report the run directory as a bug if it happens again"
            }
            Self::PilingUp { .. } => {
                "lower the rate: latencies grow for as long as the run goes on, so they are about \
                 its length; measure the capacity with a closed loop"
            }
            Self::NeverSettled { .. } => {
                "run longer, or warm the server up first (--warm-up), to see whether it comes to a \
                 level"
            }
            Self::LittlesLaw { .. } => {
                "requests were lost, or their records make no sense: run it again, and report the run directory as a \
                 bug if it happens again"
            }
            Self::ServerInFlight { .. } => {
                "see whether others use the server, whether a proxy holds requests back, and whether \
                 the metrics are of the server that answers"
            }
        }
    }
}

impl fmt::Display for LoadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateMissed { apart, intended_per_s, sent_per_s, unsent_share } => {
                write!(
                    f,
                    "requests left at {sent_per_s:.2} per second and were planned at \
                     {intended_per_s:.2} ({} apart)",
                    Percent(apart.abs())
                )?;
                if 0.0 < *unsent_share {
                    write!(f, "; {} of them never left", Percent(*unsent_share))?;
                }
                Ok(())
            }
            Self::SlotsEmpty { asked, in_use_mean } => write!(
                f,
                "of {asked} slots {in_use_mean:.2} were in use on average while the load was on"
            ),
            Self::ArrivalsBunched { over_s, intended, sent } => write!(
                f,
                "over {over_s} s the number of requests that left varies {sent:.2} times its mean, and \
                 was planned to vary {intended:.2} times"
            ),
            Self::ArrivalsUnlike { process, p } => write!(
                f,
                "the gaps of the schedule are not those of {process} arrivals at this rate (p = {p:.1e})"
            ),
            Self::PilingUp { per_s } => write!(
                f,
                "requests in flight grow by {per_s:.2} per second: the server does not keep up with \
                 this rate"
            ),
            Self::NeverSettled { reason } => write!(f, "the run never settled: {reason}"),
            Self::LittlesLaw { apart, lost } => {
                write!(
                    f,
                    "requests in flight are {} apart from arrivals times time in flight",
                    Percent(apart.abs())
                )?;
                match lost {
                    0 => Ok(()),
                    lost => write!(f, "; {lost} requests were started and never heard of again"),
                }
            }
            Self::ServerInFlight { server, ours } => write!(
                f,
                "the server's gauges say {server:.2} requests running and waiting on average, and \
                 {ours:.2} of ours were in flight"
            ),
        }
    }
}
