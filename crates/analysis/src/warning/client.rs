//! Warnings in which the instrument doubts itself: its clock, its loop, its machine.

use std::fmt;

use inferometer_model::Observations;
use inferometer_model::outcome::Cause;

use super::{Percent, degraded_above};
use crate::client::{ClientHealth, share};
use crate::measured::{Measured, Series};
use crate::verdict::Severity;

#[derive(Clone, Debug, PartialEq)]
pub enum ClientWarning {
    SentLate {
        p99_ms: f64,
    },
    ClientLag {
        p99_ms: f64,
    },
    LoopLag {
        p99_ms_at_most: f64,
    },
    LoopPaused {
        max_ms: f64,
    },
    /// Over all events of ok answers; those that came alone are exact.
    ArrivalWidth {
        p99_ms: f64,
    },
    ClockJump {
        jumps: u64,
    },
    ClockOrder {
        distances: u64,
    },
    CpuStolen {
        share: f64,
    },
    /// Of what its calibration says it can carry.
    CapacityUsed {
        share: f64,
    },
    JournalWaits {
        waits: u64,
        attempted: u64,
    },
    ClientResource {
        requests: u64,
    },
    /// The share of reads that have the kernel's stamp.
    NoKernelStamps {
        share: f64,
    },
}

/// From where on a quantity degrades a run, and from where on it spoils it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) degraded: f64,
    pub(crate) invalid: f64,
}

/// An open loop whose requests leave this late is another load than the one planned.
pub(crate) const SENT_LATE_MS: Limit = Limit { degraded: 10.0, invalid: 100.0 };
/// What the client may add to a latency, or hide in it.
pub(crate) const CLIENT_MS: Limit = Limit { degraded: 5.0, invalid: 50.0 };
/// Hiccups of the scheduler stay below the first; above, the process or the machine was suspended.
const PAUSE_MS: Limit = Limit { degraded: 100.0, invalid: 1_000.0 };
/// The share of the machine's processor time that its host gave away.
const STOLEN_SHARE: Limit = Limit { degraded: 0.02, invalid: 0.10 };
/// The share of its capacity from which on a client adds its own queueing.
pub(crate) const CAPACITY_SHARE: Limit = Limit { degraded: 0.5, invalid: 0.8 };
/// The share of attempted requests above which waiting for the journal slowed the drivers.
const JOURNAL_WAITS_SHARE: f64 = 0.01;

impl Limit {
    fn passed(self, value: Option<f64>) -> Option<f64> {
        value.filter(|value| self.degraded < *value)
    }

    fn severity(self, value: f64) -> Severity {
        if self.invalid < value { Severity::Invalid } else { Severity::Degraded }
    }
}

impl ClientWarning {
    pub(super) fn found(observations: &Observations, measured: &Measured) -> Vec<Self> {
        // In virtual time there is no client that could be late.
        if observations.manifest.simulated.is_some() {
            return Vec::new();
        }
        let health = ClientHealth::of(observations, measured);
        let mut found = lags(observations, measured, &health);
        // Looks tell it where the run's own totals do not.
        let looked = measured.machines.figures.client.as_ref().and_then(|it| it.steal_share);
        let stolen = health.cpu_stolen.or(looked.map(|steal| steal.mean));
        found.extend(STOLEN_SHARE.passed(stolen).map(|share| Self::CpuStolen { share }));
        let used = health.capacity.as_ref().map(|capacity| capacity.used);
        found.extend(CAPACITY_SHARE.passed(used).map(|share| Self::CapacityUsed { share }));
        let jumps = health.clock_jumps.unwrap_or(0);
        let distances = measured.out_of_order;
        let waits = health.journal_waits;
        let requests = measured.oddities.client_resource + not_sent_for_want(observations);
        found.extend((0 < jumps).then_some(Self::ClockJump { jumps }));
        found.extend((0 < distances).then_some(Self::ClockOrder { distances }));
        found.extend(
            (0 < waits).then_some(Self::JournalWaits { waits, attempted: measured.attempted }),
        );
        found.extend((0 < requests).then_some(Self::ClientResource { requests }));
        found.extend(
            share(measured.oddities.reads_stamped, measured.oddities.reads)
                .filter(|share| *share < 1.0)
                .map(|share| Self::NoKernelStamps { share }),
        );
        found
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::SentLate { .. } => "sent-late",
            Self::ClientLag { .. } => "client-lag",
            Self::LoopLag { .. } => "loop-lag",
            Self::LoopPaused { .. } => "loop-paused",
            Self::ArrivalWidth { .. } => "arrival-width",
            Self::ClockJump { .. } => "clock-jump",
            Self::ClockOrder { .. } => "clock-order",
            Self::CpuStolen { .. } => "cpu-stolen",
            Self::CapacityUsed { .. } => "capacity-used",
            Self::JournalWaits { .. } => "journal-waits",
            Self::ClientResource { .. } => "client-resource",
            Self::NoKernelStamps { .. } => "no-kernel-stamps",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            Self::SentLate { p99_ms } => SENT_LATE_MS.severity(*p99_ms),
            Self::ClientLag { p99_ms } | Self::ArrivalWidth { p99_ms } => {
                CLIENT_MS.severity(*p99_ms)
            }
            Self::LoopLag { p99_ms_at_most } => CLIENT_MS.severity(*p99_ms_at_most),
            Self::LoopPaused { max_ms } => PAUSE_MS.severity(*max_ms),
            Self::CpuStolen { share } => STOLEN_SHARE.severity(*share),
            Self::CapacityUsed { share } => CAPACITY_SHARE.severity(*share),
            Self::ClockJump { .. } => Severity::Degraded,
            Self::ClockOrder { .. } | Self::ClientResource { .. } => Severity::Invalid,
            Self::JournalWaits { waits, attempted } => {
                degraded_above(JOURNAL_WAITS_SHARE, *waits, *attempted)
            }
            Self::NoKernelStamps { .. } => Severity::Note,
        }
    }

    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::SentLate { .. } => "give the client more cores, or lower the rate",
            Self::ClientLag { .. }
            | Self::LoopLag { .. }
            | Self::ArrivalWidth { .. }
            | Self::CapacityUsed { .. } => {
                "give the client more cores or a machine of its own, or lower the load"
            }
            Self::LoopPaused { .. } => {
                "keep the client from being suspended or starved of CPU, and run it again"
            }
            Self::ClockJump { .. } => {
                "let time synchronisation settle (slewing, not stepping) and run it again"
            }
            Self::ClockOrder { .. } => {
                "do not use these numbers; run it again, and report the run directory as a bug"
            }
            Self::CpuStolen { .. } => {
                "measure from a machine, or a virtual machine, that has its processors to itself"
            }
            Self::JournalWaits { .. } => "write the run to a faster disk",
            Self::ClientResource { .. } => {
                "raise the limit of open files, widen the range of local ports, or lower the load"
            }
            Self::NoKernelStamps { .. } => {
                "none needed while the loop lag is small; the kernel's stamps need Linux and HTTP/1"
            }
        }
    }
}

fn lags(
    observations: &Observations,
    measured: &Measured,
    health: &ClientHealth,
) -> Vec<ClientWarning> {
    // A closed loop has no moments that it planned: a request leaves when a slot is free.
    // What a cap holds back is not late: it is what was asked for, and is told apart.
    let delay = p99(&measured.send_lag).filter(|_| observations.manifest.spec.is_open_loop());
    let loop_lag = health.loop_lag_ms;
    let mut found = Vec::new();
    found.extend(SENT_LATE_MS.passed(delay).map(|p99_ms| ClientWarning::SentLate { p99_ms }));
    found.extend(
        CLIENT_MS
            .passed(p99(&measured.client_lag))
            .map(|p99_ms| ClientWarning::ClientLag { p99_ms }),
    );
    found.extend(
        CLIENT_MS
            .passed(loop_lag.p99_at_most)
            .map(|p99_ms_at_most| ClientWarning::LoopLag { p99_ms_at_most }),
    );
    found.extend(PAUSE_MS.passed(loop_lag.max).map(|max_ms| ClientWarning::LoopPaused { max_ms }));
    found.extend(
        CLIENT_MS
            .passed(p99(&measured.event_width))
            .map(|p99_ms| ClientWarning::ArrivalWidth { p99_ms }),
    );
    found
}

fn p99(series: &Series) -> Option<f64> {
    series.found.as_ref().and_then(|found| found.p99)
}

/// Requests that could not even be attempted on this machine.
fn not_sent_for_want(observations: &Observations) -> u64 {
    observations
        .not_sent
        .iter()
        .filter(|part| part.cause == Cause::ClientResource)
        .map(|part| part.count)
        .sum()
}

impl fmt::Display for ClientWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SentLate { p99_ms } => {
                let allowed = SENT_LATE_MS.degraded;
                write!(
                    f,
                    "1 % of requests left {p99_ms:.1} ms or more after their planned moment \
                     (allowed {allowed} ms)"
                )
            }
            Self::ClientLag { p99_ms } => {
                write!(
                    f,
                    "1 % of reads lay {p99_ms:.1} ms or more in the kernel before we read them"
                )
            }
            Self::LoopLag { p99_ms_at_most } => {
                write!(f, "the client's loop woke up to {p99_ms_at_most:.1} ms late (p99)")
            }
            Self::LoopPaused { max_ms } => {
                write!(f, "the client's loop stood still for {max_ms:.0} ms")
            }
            Self::ArrivalWidth { p99_ms } => write!(
                f,
                "1 % of the events may be {p99_ms:.1} ms or more older than their stamps: they were \
                 read together with later ones"
            ),
            Self::ClockJump { jumps } => {
                write!(f, "the wall clock jumped {jumps} times, so kernel stamps near it are off")
            }
            Self::ClockOrder { distances } => {
                write!(f, "{distances} times between recorded moments are negative or unknown")
            }
            Self::CpuStolen { share } => write!(
                f,
                "{} of this machine's processor time went to others on the same host",
                Percent(*share)
            ),
            Self::CapacityUsed { share } => write!(
                f,
                "this load used {} of what the client can carry on this machine",
                Percent(*share)
            ),
            Self::JournalWaits { waits, attempted } => write!(
                f,
                "{waits} entries of the journal had to wait for its writer, over {attempted} requests"
            ),
            Self::ClientResource { requests } => write!(
                f,
                "{requests} requests failed because this machine ran out of descriptors, ports or \
                 memory"
            ),
            Self::NoKernelStamps { share } => {
                let without = Percent(1.0 - share);
                write!(
                    f,
                    "{without} of the reads have no kernel stamp; the moment of the read is used"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
