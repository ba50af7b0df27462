//! What leaves the measuring path during a run.

use serde::{Deserialize, Serialize};

use crate::outcome::{Cause, Outcome};
use crate::record::RequestedLengths;
use crate::whole::to_u64;
use crate::{Moment, RequestId, RequestRecord};

/// One fact, in the order in which it became true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalEntry {
    Started(StartedRequest),
    Ended(Box<RequestRecord>),
    NotSent(NotSent),
    RunEnded(RunEnding),
}

/// Facts that travel together, so that one request costs no wake-up of the writer.
pub type JournalBatch = Vec<JournalEntry>;

/// A request that was handed to a connection; a crash after this leaves it `cancelled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedRequest {
    pub id: RequestId,
    pub intended: Moment,
    pub admitted: Moment,
    pub asked: RequestedLengths,
}

/// Requests that were scheduled and never attempted: `count` of them, from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSent {
    pub first: RequestId,
    pub count: u64,
    pub cause: Cause,
    pub at: Moment,
}

/// How the run as a whole ended, and how the client itself performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnding {
    /// When the driver began to play the plan: its moments count from here. `None` when the run
    /// died before it could say so.
    pub began: Option<Moment>,
    pub at: Moment,
    pub stop: RunStop,
    pub client: ClientFacts,
}

texts! {
    /// The stored numbers are positions, so a new way to stop goes to the end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunStop, text {
        /// The plan was played to its end.
        PlanDone: "the plan was played to its end";
        /// The user asked for the end; what was in flight finished or met the drain limit.
        Drained: "stopped on request, requests in flight were allowed to finish";
        /// The user asked twice, or the drain limit passed: what was in flight was cut.
        Cut: "stopped on request, requests in flight were cut";
        /// The server refused our key again and again; going on would only repeat it.
        Unauthorized: "stopped because the server refused the key";
        /// The run died and `recover` finished it.
        Recovered: "the run ended without sealing and was recovered from its journal";
        /// No connection could be made again and again; going on would only fill the journal.
        Unreachable: "stopped because the server could not be reached any more";
        /// This machine had no port, descriptor or memory left, again and again.
        ClientExhausted: "stopped because this machine ran out of ports, descriptors or memory";
        /// No output came for longer than any request may wait, while some were in flight.
        Stalled: "stopped because the server sent no output any more";
        /// A merged run: not all of its workers played their whole share.
        WorkersLost: "workers are missing or ended early";
        /// A condition of `--abort-on`: more requests failed than it allows.
        ErrorBudget: "stopped by --abort-on, because too many requests failed";
        /// A condition of `--abort-on`: a latency, or the share of requests that meet the SLOs.
        SloMissed: "stopped by --abort-on, because an SLO was missed";
        /// A condition of `--abort-on`: requests came faster than the server answered them.
        Saturated: "stopped by --abort-on, because requests piled up";
    }
}

impl RunStop {
    /// Whether the plan was not played to its end.
    pub const fn is_partial(self) -> bool {
        !matches!(self, Self::PlanDone)
    }

    /// Whether a condition of `--abort-on` ended the run.
    pub const fn is_abort(self) -> bool {
        matches!(self, Self::ErrorBudget | Self::SloMissed | Self::Saturated)
    }
}

/// The instrument's view of itself, over all of its drivers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFacts {
    /// Threads that drove the load.
    pub drivers: u32,
    /// How the kernel's realtime stamps were mapped to the run's clock; `None` without stamps.
    pub mapping: Option<ClockMapping>,
    /// How late the driver's loop woke, from a regular tick.
    pub loop_lag: LagHistogram,
    /// Entries that found the journal's queue full, so that a driver had to wait.
    pub journal_waits: u64,
    /// `None` where the system does not say.
    pub cpu: Option<CpuFacts>,
    /// CPU time of the busiest driver in its busiest second, in microseconds per second; `None` where
    /// it was not measured. Stored in an entry of its own kind since format 2.
    #[serde(skip)]
    pub driver_cpu_us: Option<u32>,
    /// The connections that were opened before the plan began; `None` when there was no reason to open
    /// any. Stored in an entry of its own kind since format 2.
    #[serde(skip)]
    pub dialling: Option<Dialling>,
}

/// Connections that were opened before the plan began, so that no request waits for its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialling {
    /// Connections that the plan needs from its first moment on.
    pub wanted: u32,
    /// From the first attempt to the last connection, over all drivers.
    pub took_ns: u64,
    /// How long each connection took to open, TLS included.
    pub connect_ns: Vec<u64>,
    /// Attempts that failed, by their reason.
    pub failures: Vec<DialFailure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialFailure {
    pub outcome: Outcome,
    pub cause: Option<Cause>,
    pub count: u32,
}

impl Dialling {
    /// Attempts that failed.
    pub fn failed(&self) -> u32 {
        self.failures.iter().map(|failure| failure.count).sum()
    }

    pub fn add_failure(&mut self, outcome: Outcome, cause: Option<Cause>, count: u32) {
        let same = |known: &&mut DialFailure| (known.outcome, known.cause) == (outcome, cause);
        match self.failures.iter_mut().find(same) {
            Some(known) => known.count = known.count.saturating_add(count),
            None => self.failures.push(DialFailure { outcome, cause, count }),
        }
    }

    /// Takes in what another driver opened at the same time.
    pub fn merge(&mut self, other: Self) {
        self.wanted = self.wanted.saturating_add(other.wanted);
        self.took_ns = self.took_ns.max(other.took_ns);
        self.connect_ns.extend(other.connect_ns);
        for DialFailure { outcome, cause, count } in other.failures {
            self.add_failure(outcome, cause, count);
        }
    }
}

/// Where processor time went while the plan was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// Used by this process, over all of its threads.
    pub process_ns: u64,
    /// CPU time of the whole machine, in the system's ticks.
    pub ticks: u64,
    /// Those of them that the host of a virtual machine gave to others.
    pub stolen_ticks: u64,
}

impl ClientFacts {
    /// Takes in what another driver found.
    pub fn merge(&mut self, other: &Self) {
        self.drivers += other.drivers;
        self.mapping = match (self.mapping, other.mapping) {
            // Two drivers see the same jumps, each with an error of its own.
            (Some(mine), Some(theirs)) => Some(ClockMapping {
                estimates: mine.estimates + theirs.estimates,
                error_ns_max: mine.error_ns_max.max(theirs.error_ns_max),
                jumps: mine.jumps.max(theirs.jumps),
            }),
            (mine, theirs) => mine.or(theirs),
        };
        self.loop_lag.merge(&other.loop_lag);
        self.journal_waits += other.journal_waits;
        self.cpu = self.cpu.or(other.cpu);
        self.driver_cpu_us = self.driver_cpu_us.max(other.driver_cpu_us);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMapping {
    pub estimates: u64,
    /// The worst half-width of an estimate: stamps are off by at most this, between jumps.
    pub error_ns_max: u64,
    /// Jumps of the wall clock against the monotonic one.
    pub jumps: u64,
}

/// Counts of lags in microseconds, eight steps to each doubling: bounded, mergeable, and never more
/// than an eighth too high.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagHistogram {
    /// `counts[i]` lags were below the limit of step `i` and not below that of the step before.
    pub counts: Vec<u64>,
    pub max_ns: u64,
}

impl LagHistogram {
    const STEP_BITS: u32 = 3;
    /// The last step holds everything from an hour on.
    const STEPS: usize = 240;

    pub fn add(&mut self, lag_ns: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; Self::STEPS];
        }
        let step = log_step(lag_ns / 1_000, Self::STEP_BITS);
        self.counts[step.min(Self::STEPS - 1)] += 1;
        self.max_ns = self.max_ns.max(lag_ns);
    }

    /// Takes in another's counts.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// An upper limit of the share's quantile: no lag of that share was above it.
    pub fn quantile_ns_at_most(&self, share: f64) -> Option<u64> {
        quantile_step(&self.counts, share).map(|step| self.limit_ns(step))
    }

    /// The steps that hold a lag: an upper limit, and how many lags are within it and above the one
    /// before.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| 0 < **count);
        filled.map(|(step, count)| (self.limit_ns(step), *count))
    }

    fn limit_ns(&self, step: usize) -> u64 {
        // The last step has no limit of its own, and a stored histogram may be longer than ours.
        let is_bounded = step + 1 < Self::STEPS;
        let limit_us = if is_bounded { log_step_limits(step, Self::STEP_BITS).1 } else { u64::MAX };
        limit_us.saturating_mul(1_000).min(self.max_ns)
    }
}

/// The step that holds the share's quantile; `None` of a histogram without counts.
pub fn quantile_step(counts: &[u64], share: f64) -> Option<usize> {
    let total = counts.iter().fold(0, |sum, count| u64::saturating_add(sum, *count));
    let wanted = to_u64((share * total as f64).ceil()).max(1);
    let mut seen = 0;
    counts.iter().position(|count| {
        seen = u64::saturating_add(seen, *count);
        wanted <= seen
    })
}

/// The step of a value where each doubling has `1 << bits` steps; small values have one each.
pub fn log_step(value: u64, bits: u32) -> usize {
    let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(bits);
    usize::try_from((u64::from(shift) << bits) + (value >> shift)).unwrap_or(usize::MAX)
}

/// The smallest value of such a step, and the smallest that is past it.
pub fn log_step_limits(step: usize, bits: u32) -> (u64, u64) {
    let step = step as u64;
    let shift = (step >> bits).saturating_sub(1);
    let within = step - (shift << bits);
    let shifted = |value: u64| {
        u32::try_from(shift).ok().and_then(|shift| value.checked_mul(1_u64.checked_shl(shift)?))
    };
    (shifted(within).unwrap_or(u64::MAX), shifted(within + 1).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_quantile_never_understates() {
        let mut lags = LagHistogram::default();
        for lag in [500, 1_500, 3_000, 900_000] {
            lags.add(lag);
        }
        assert_eq!(lags.quantile_ns_at_most(0.25), Some(1_000));
        assert_eq!(lags.quantile_ns_at_most(0.5), Some(2_000));
        assert_eq!(lags.quantile_ns_at_most(1.0), Some(900_000));
        assert_eq!(LagHistogram::default().quantile_ns_at_most(0.5), None);
    }

    #[test]
    fn every_lag_lies_in_its_step_and_a_step_is_an_eighth_wide() {
        let some = (0..2_000).chain((0..31).map(|n| 1 << n)).chain((4..31).map(|n| (1 << n) - 1));
        for micros in some {
            let step = log_step(micros, LagHistogram::STEP_BITS);
            let (_, limit) = log_step_limits(step, LagHistogram::STEP_BITS);
            assert!(micros < limit, "{micros} µs in step {step}");
            assert!(limit <= micros + micros / 8 + 1, "{micros} µs has the limit {limit}");
            if 0 < step {
                let (_, before) = log_step_limits(step - 1, LagHistogram::STEP_BITS);
                assert!(before <= micros, "{micros} µs is past {step}");
            }
        }
        let mut long = LagHistogram::default();
        long.add(u64::MAX);
        assert_eq!(long.quantile_ns_at_most(0.5), Some(u64::MAX));
    }
}
