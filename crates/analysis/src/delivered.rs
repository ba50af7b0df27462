//! Whether the load that was asked for is the one that left.
//!
//! On an open loop the requests that left are compared with the schedule, and the schedule with the
//! process that was asked for, which is a check of ourselves. On a closed loop it is how many of the
//! slots were in use from when each could have taken its first request to the drain. Figures are of
//! first turns where there are conversations: a later turn waits for an answer, and its moment is not
//! planned.

mod gaps;
mod slots;

use inferometer_model::Observations;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Arrivals, LoadShape, Rate, Source, Think};
use serde::{Deserialize, Serialize};

pub use self::gaps::{ArrivalFit, Dispersion, GapFigures};
pub(crate) use self::slots::SLOTS_SHARE;
pub use self::slots::SlotsDelivered;
use crate::client::share;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Delivered {
    /// Against a schedule.
    Schedule(ScheduleDelivered),
    /// Against a number of slots.
    Slots(SlotsDelivered),
    NotChecked {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleDelivered {
    /// First turns that were sent.
    pub requests: u64,
    /// Those that were due and never left.
    #[serde(default)]
    pub unsent: u64,
    /// All that were due, from the first planned moment to the last.
    pub intended_per_s: Option<f64>,
    /// Those that left, over the same time or over that of sending, whichever is longer.
    pub sent_per_s: Option<f64>,
    /// The sent rate less the intended one, as a share of it.
    pub rate_apart: Option<f64>,
    /// What counts as late, after the planned moment or after the cap let it go.
    pub late_from_ms: f64,
    pub late_share: Option<f64>,
    /// Whether a cap may have held requests back: then rates part by design.
    pub capped: bool,
    pub intended: GapFigures,
    pub sent: GapFigures,
    /// How well the schedule fits the process that was asked for; null where there is none to fit.
    pub fit: Option<ArrivalFit>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit_reason: Option<String>,
}

/// A request that leaves later than this is late.
pub(crate) const LATE_MS: f64 = 10.0;
/// A rate that is off by more is another rate, and by much more another run.
pub(crate) const RATE_APART: f64 = 0.02;
pub(crate) const RATE_APART_GRAVE: f64 = 0.10;
/// Of the index of dispersion, and at least this much of one.
pub(crate) const DISPERSION_APART: f64 = 0.25;
/// Chance makes a schedule of ours as unlike once in a million runs.
pub(crate) const FIT_P: f64 = 1e-6;
/// Fewer do not make a rate.
const FEWEST: usize = 20;

impl Default for Delivered {
    fn default() -> Self {
        Self::not_checked("the version that made this summary did not look")
    }
}

impl Delivered {
    pub(crate) fn of(observations: &Observations) -> Self {
        match &observations.manifest.spec.load.shape {
            LoadShape::Closed { concurrency, think } => {
                if *think != Think::None || turns_think(observations) {
                    return Self::not_checked("users think between requests, so slots rest");
                }
                SlotsDelivered::of(&observations.records, concurrency.get())
                    .map_or_else(Self::not_checked, Self::Slots)
            }
            LoadShape::Open { rate: Rate::Unlimited, .. } => {
                Self::not_checked("everything was due at once, so there is no rate to keep")
            }
            LoadShape::Open { rate, arrivals, cap } => {
                let process = Process { rate, arrivals: *arrivals };
                ScheduleDelivered::of(observations, process, cap.is_some()).map_or_else(
                    || Self::not_checked("too few requests were sent to make a rate"),
                    Self::Schedule,
                )
            }
        }
    }

    fn not_checked(reason: &str) -> Self {
        Self::NotChecked { reason: reason.to_owned() }
    }
}

fn turns_think(observations: &Observations) -> bool {
    let thinks = |source: &Source| matches!(source, Source::Conversations(talk) if talk.think != Think::None);
    let source = &observations.manifest.spec.workload.source;
    let parts = if let Source::Mix(parts) = source { parts.as_slice() } else { &[] };
    thinks(source) || parts.iter().any(|part| thinks(&part.source))
}

/// What a schedule was to be.
#[derive(Clone, Copy)]
struct Process<'spec> {
    rate: &'spec Rate,
    arrivals: Arrivals,
}

impl Process<'_> {
    /// The fit of the planned moments, or why there is none.
    fn fit(self, intended_ns: &[u64], has_holes: bool) -> Result<ArrivalFit, &'static str> {
        let per_s = match self.rate {
            Rate::Steady { per_s } => *per_s,
            Rate::Ramp { .. } => {
                return Err("the rate was asked to change, so gaps have no one law");
            }
            Rate::Recorded(_) => return Err("a trace is its own process"),
            Rate::Unlimited => return Err("everything was due at once"),
        };
        if has_holes {
            return Err("the moments of requests that were never attempted are not known");
        }
        ArrivalFit::of(intended_ns, per_s, self.arrivals).ok_or("too few gaps to tell")
    }
}

impl ScheduleDelivered {
    fn of(observations: &Observations, process: Process<'_>, capped: bool) -> Option<Self> {
        let first_turns = || observations.records.iter().filter(|record| record.asked.turn == 0);
        let mut intended: Vec<u64> =
            first_turns().map(|record| record.intended.as_nanos()).collect();
        let mut sent = Vec::new();
        let mut late = 0;
        for record in first_turns() {
            let Some(left) = record.sent else { continue };
            sent.push(left.as_nanos());
            let due = if capped { record.admitted } else { record.intended };
            let late_ms = left.since(due).map_or(0.0, |lag| lag.as_secs_f64() * 1e3);
            late += u64::from(LATE_MS < late_ms);
        }
        if sent.len() < FEWEST {
            return None;
        }
        intended.sort_unstable();
        sent.sort_unstable();
        let requests = sent.len() as u64;
        // Due and not even attempted, so that their moments were not written down.
        let wanting = observations.not_sent_because(Cause::ClientResource);
        let due = intended.len() as u64 + wanting;
        let rates = rates((due, &intended), &sent);
        let fit = process.fit(&intended, 0 < wanting);
        Some(Self {
            requests,
            unsent: due - requests,
            intended_per_s: rates.map(|(intended, _)| intended),
            sent_per_s: rates.map(|(_, sent)| sent),
            rate_apart: rates.map(|(intended, sent)| sent / intended - 1.0),
            late_from_ms: LATE_MS,
            late_share: share(late, requests),
            capped,
            intended: GapFigures::of(&intended),
            sent: GapFigures::of(&sent),
            fit_reason: fit.as_ref().err().map(|reason| (*reason).to_owned()),
            fit: fit.ok(),
        })
    }

    /// Of those that were due.
    pub(crate) fn unsent_share(&self) -> f64 {
        share(self.unsent, self.requests + self.unsent).unwrap_or(0.0)
    }

    /// How far the rate was missed, where it is more than a late first or last request makes.
    pub(crate) fn rate_missed(&self) -> Option<f64> {
        let (intended, sent) = (self.intended_per_s?, self.sent_per_s?);
        let gaps = self.requests as f64 - 1.0;
        let longer_ms = (gaps / sent - gaps / intended).abs() * 1e3;
        let missed = |apart: &f64| RATE_APART < apart.abs() && LATE_MS < longer_ms;
        self.rate_apart.filter(missed).filter(|_| !self.capped)
    }

    /// The fit, where chance does not explain it.
    pub(crate) fn unlike(&self) -> Option<&ArrivalFit> {
        self.fit.as_ref().filter(|fit| fit.p < FIT_P)
    }

    /// The stretch over which requests left more, or less, in bunches than planned, if there is one.
    pub(crate) fn bunched(&self) -> Option<(Dispersion, Dispersion)> {
        let pairs = self.intended.dispersion.iter().zip(&self.sent.dispersion);
        let apart = |(intended, sent): &(&Dispersion, &Dispersion)| {
            let allowed = DISPERSION_APART * intended.index.max(1.0);
            intended.over_s.total_cmp(&sent.over_s).is_eq()
                && allowed < (sent.index - intended.index).abs()
        };
        let found = pairs.filter(|_| !self.capped).find(apart);
        found.map(|(intended, sent)| (*intended, *sent))
    }
}

/// Per second: all that were due, and those that left. A request that never left lowers the second,
/// and so does a schedule that took longer than planned.
fn rates((due, intended_ns): (u64, &[u64]), sent_ns: &[u64]) -> Option<(f64, f64)> {
    let planned_s = gaps::span_s(intended_ns).filter(|span_s| 0.0 < *span_s)?;
    let took_s = gaps::span_s(sent_ns)?.max(planned_s);
    let intended_per_s = (due as f64 - 1.0) / planned_s;
    Some((intended_per_s, (sent_ns.len() as f64 - 1.0) / took_s))
}

#[cfg(test)]
mod tests;
