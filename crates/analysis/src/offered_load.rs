//! Whether the requested load was delivered.
//!
//! On an open loop the sent requests are compared with the schedule, and the schedule with the requested
//! arrival process, which is a check of this program. On a closed loop it is the number of requests on
//! the wire, from when each slot could have taken its first request to the drain: a slot whose client
//! has not yet sent its next request, or has not yet read an answer that has arrived, is empty. With conversations only first turns
//! count: a later turn waits for an answer, and its time is not planned. A rate with a cap is neither an
//! open loop nor a closed one: the requests that the cap delayed are counted.

use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Arrivals, LoadShape, Rate, Source, Think};
use inferometer_model::{Moment, Observations, Records};
use serde::{Deserialize, Serialize};

use crate::client::share;
use crate::judge::Limits;
use crate::record::{Concurrency, Flight, ns_to_ms};
use crate::statistics::incomplete_gamma;
use crate::statistics::runs::{mean, variance};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Delivered {
    /// Against a schedule.
    Schedule(ScheduleDelivered),
    /// Against a number of slots.
    Slots(SlotsDelivered),
    /// Why there is nothing to compare with.
    NotChecked { reason: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleDelivered {
    /// First turns that were sent.
    pub requests: u64,
    /// Those that were due and never left.
    #[serde(default)]
    pub unsent: u64,
    /// All that were due, from the first planned time to the last.
    pub intended_per_s: Option<f64>,
    /// Those that left, over the same time or over that of sending, whichever is longer.
    pub sent_per_s: Option<f64>,
    /// The sent rate less the intended one, as a share of it.
    pub rate_apart: Option<f64>,
    /// What counts as late, after the planned time or after the release by the cap.
    pub late_from_ms: f64,
    pub late_share: Option<f64>,
    /// Whether a cap may have delayed requests: then rates differ by design.
    pub capped: bool,
    pub intended: GapFigures,
    pub sent: GapFigures,
    /// How well the schedule fits the requested arrival process; null where there is none to fit.
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
/// Relative difference of the index of dispersion that is tolerated, and at least this much of one.
pub(crate) const DISPERSION_APART: f64 = 0.25;
/// Chance makes a planned schedule fit this badly once in a million runs.
pub(crate) const FIT_P: f64 = 1e-6;
/// Fewer requests have no rate.
const FEWEST: usize = 20;

impl Default for Delivered {
    fn default() -> Self {
        Self::not_checked("the version that wrote this summary did not check it")
    }
}

impl Delivered {
    pub(crate) fn from_observations(observations: &Observations) -> Self {
        if observations.manifest.stripe.is_some() {
            return Self::not_checked("this is the share of one of several workers");
        }
        match &observations.manifest.spec.load.shape {
            LoadShape::Closed { concurrency, think } => {
                if *think != Think::None || turns_think(observations) {
                    return Self::not_checked(
                        "users have think time, so slots are empty in between",
                    );
                }
                let began = observations.ending.began.unwrap_or_default();
                let full_from = began + observations.manifest.spec.load.ramp_up;
                SlotsDelivered::from_records(&observations.records, concurrency.get(), full_from)
                    .map_or_else(Self::not_checked, Self::Slots)
            }
            LoadShape::Open { rate: Rate::Unlimited, .. } => {
                Self::not_checked("all requests were due at once, so there is no rate")
            }
            LoadShape::Open { rate, arrivals, cap } => {
                ScheduleDelivered::new(observations, (rate, *arrivals), cap.is_some()).map_or_else(
                    || Self::not_checked("too few requests were sent to measure a rate"),
                    Self::Schedule,
                )
            }
        }
    }

    fn not_checked(reason: &str) -> Self {
        Self::NotChecked { reason: reason.to_owned() }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only these sources have sessions")]
fn turns_think(observations: &Observations) -> bool {
    let thinks = |source: &Source| match source {
        Source::Conversations(talk) => talk.think != Think::None,
        // Whether a recorded session rests is not known here: it may.
        Source::Sessions(_) => true,
        // Sub-agents share the slot of their session.
        Source::Agents(agents) => agents.tool_time != Think::None || 0.0 < agents.fan_out,
        _ => false,
    };
    let source = &observations.manifest.spec.workload.source;
    let parts = if let Source::Mix(parts) = source { parts.as_slice() } else { &[] };
    thinks(source) || parts.iter().any(|part| thinks(&part.source))
}

impl ScheduleDelivered {
    /// `None` where too few requests were sent.
    fn new(
        observations: &Observations,
        (rate, arrivals): (&Rate, Arrivals),
        capped: bool,
    ) -> Option<Self> {
        let room = || Vec::with_capacity(observations.records.len());
        let (mut intended, mut sent) = (room(), room());
        let (mut ids, mut late) = (None, 0);
        for record in observations.records.iter().filter(|record| record.asked.turn == 0) {
            intended.push(record.intended.as_nanos());
            let (first, last): (u64, u64) = ids.unwrap_or((record.id.0, record.id.0));
            ids = Some((first.min(record.id.0), last.max(record.id.0)));
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
        // Due and not even attempted, so that their times were not recorded.
        let died = observations.manifest.merged.as_ref().map(|_| Cause::RunCrashed);
        let causes = [Cause::ClientResource, Cause::WorkerMissing, Cause::WorkerLate];
        let causes = causes.into_iter().chain(died);
        let wanting: u64 = causes.map(|cause| observations.not_sent_because(cause)).sum();
        let due = intended.len() as u64 + wanting;
        // A request that never left lowers the sent rate, and so does a schedule that took longer than
        // planned.
        let planned_s = span_s(&intended).filter(|span_s| 0.0 < *span_s);
        // The recorded times span only the requests between them: the others were due before or after.
        let between = unattempted_between(observations, ids.unwrap_or_default());
        let recorded = intended.len() as u64 + between;
        let beyond = (due as f64 - 1.0) / (recorded as f64 - 1.0);
        let planned_s = planned_s.map(|planned_s| planned_s * beyond);
        let took_s = planned_s.and_then(|planned_s| Some(span_s(&sent)?.max(planned_s)));
        let intended_per_s = planned_s.map(|planned_s| (due as f64 - 1.0) / planned_s);
        let sent_per_s = took_s.map(|took_s| (sent.len() as f64 - 1.0) / took_s);
        let rates = intended_per_s.zip(sent_per_s);
        let fit = match rate {
            Rate::Ramp { .. } => {
                Err("the rate changes, so the gaps do not follow one distribution")
            }
            Rate::Recorded(_) => Err("a trace has no arrival process"),
            Rate::Unlimited => Err("all requests were due at once"),
            Rate::Steady { .. } if 0 < wanting => {
                Err("the planned times of requests that were never attempted are not known")
            }
            Rate::Steady { per_s } => {
                ArrivalFit::fit(&intended, *per_s, arrivals).ok_or("too few gaps for a test")
            }
        };
        Some(Self {
            requests,
            unsent: due - requests,
            intended_per_s,
            sent_per_s,
            rate_apart: rates.map(|(intended, sent)| sent / intended - 1.0),
            late_from_ms: LATE_MS,
            late_share: share(late, requests),
            capped,
            intended: GapFigures::from_moments(&intended),
            sent: GapFigures::from_moments(&sent),
            fit_reason: fit.as_ref().err().map(|reason| (*reason).to_owned()),
            fit: fit.ok(),
        })
    }

    /// Share of the due requests that were not sent.
    pub(crate) fn unsent_share(&self) -> f64 {
        share(self.unsent, self.requests + self.unsent).unwrap_or(0.0)
    }

    /// How far the rate was missed, where a late first or last request does not explain it.
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

    /// The planned and the sent dispersion over the first length of time where they differ.
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

/// The gaps of one list of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapFigures {
    /// Standard deviation of the gaps over their mean: 0 for even ones, 1 for Poisson.
    pub cv: Option<f64>,
    /// Over a few lengths of time, as far as the times reach.
    pub dispersion: Vec<Dispersion>,
}

/// Variance of the counts over their mean: 0 for even arrivals, 1 for Poisson, more for bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    pub over_s: f64,
    pub index: f64,
}

/// How well gaps fit a process: a test of Kolmogorov and Smirnov, and of even gaps whether each is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalFit {
    /// What the gaps were compared with.
    pub process: String,
    /// The largest distance between the two distributions; of even gaps the most that one is off, in
    /// gaps.
    pub distance: f64,
    /// How often chance alone makes it as large.
    pub p: f64,
    pub n: u64,
}

/// From the step of a busy server to what users notice.
const STRETCHES_NS: [u64; 3] = [100_000_000, 1_000_000_000, 10_000_000_000];
/// Fewer counts do not make a variance.
const STRETCHES_MIN: usize = 20;
/// With fewer arrivals in a stretch, the index is near one for any process.
const PER_STRETCH_MIN: f64 = 1.0;
/// Beyond, the times are corrupt.
const STRETCHES_MAX: usize = 10_000_000;
/// The approximation of `p` holds from here on.
const FIT_MIN: usize = 50;
/// Moments are whole nanoseconds.
const ROUNDED_S: f64 = 1e-9;

/// Requests without a record that lie between the ids of the first and the last that have one.
fn unattempted_between(observations: &Observations, (first, last): (u64, u64)) -> u64 {
    let parts = observations.not_sent.iter().filter(|part| part.cause == Cause::ClientResource);
    let between = parts.map(|part| {
        let end = part.first.0.saturating_add(part.count);
        end.min(last).saturating_sub(part.first.0.max(first))
    });
    between.sum()
}

/// Between the first and the last of sorted moments.
fn span_s(moments_ns: &[u64]) -> Option<f64> {
    let (first, last) = (moments_ns.first()?, moments_ns.last()?);
    Some((last - first) as f64 / 1e9)
}

impl GapFigures {
    /// The statistics of sorted moments.
    fn from_moments(moments_ns: &[u64]) -> Self {
        let gaps: Vec<f64> = moments_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let varies = 2 <= gaps.len() && 0.0 < mean(&gaps);
        Self {
            cv: varies.then(|| variance(&gaps).sqrt() / mean(&gaps)),
            dispersion: STRETCHES_NS
                .into_iter()
                .filter_map(|over_ns| Dispersion::from_moments(moments_ns, over_ns))
                .collect(),
        }
    }
}

impl Dispersion {
    fn from_moments(moments_ns: &[u64], over_ns: u64) -> Option<Self> {
        let (first, last) = (moments_ns.first()?, moments_ns.last()?);
        // The last stretch is not whole.
        let stretches = usize::try_from((last - first) / over_ns).ok()?;
        if !(STRETCHES_MIN..=STRETCHES_MAX).contains(&stretches) {
            return None;
        }
        let mut counts = vec![0.0; stretches];
        for moment in moments_ns {
            let place = usize::try_from((moment - first) / over_ns).ok()?;
            if let Some(count) = counts.get_mut(place) {
                *count += 1.0;
            }
        }
        let index = variance(&counts) / mean(&counts);
        let enough = PER_STRETCH_MIN <= mean(&counts);
        enough.then_some(Self { over_s: over_ns as f64 / 1e9, index })
    }
}

impl ArrivalFit {
    /// The gaps of sorted moments against those of arrivals at this rate; `None` where they are too
    /// few.
    fn fit(moments_ns: &[u64], per_s: f64, arrivals: Arrivals) -> Option<Self> {
        let gaps_s: Vec<f64> =
            moments_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
        if gaps_s.len() < FIT_MIN {
            return None;
        }
        // The gaps of a stretched schedule share one factor: there must be enough of them to average
        // out.
        if let Arrivals::Stretched { burstiness } = arrivals
            && burstiness * (gaps_s.len() as f64) < FIT_MIN as f64
        {
            return None;
        }
        Some(match arrivals {
            Arrivals::Constant => Self::even(&gaps_s, per_s),
            Arrivals::Poisson => {
                Self::drawn("Poisson", gaps_s, |gap_s| -libm::expm1(-per_s * gap_s))
            }
            // The mean of stretched gaps is exactly that of the rate.
            Arrivals::Gamma { burstiness } | Arrivals::Stretched { burstiness } => {
                let is_drawn = matches!(arrivals, Arrivals::Gamma { .. });
                let name = if is_drawn { "gamma" } else { "stretched gamma" };
                Self::drawn(name, gaps_s, |gap_s| {
                    incomplete_gamma::lower(burstiness, burstiness * per_s * gap_s)
                })
            }
        })
    }

    /// Constant gaps are either exact or wrong.
    fn even(gaps_s: &[f64], per_s: f64) -> Self {
        let off = |gap_s: &f64| (gap_s * per_s - 1.0).abs();
        let distance = gaps_s.iter().map(off).fold(0.0, f64::max);
        let p = if distance <= 2.0 * ROUNDED_S * per_s { 1.0 } else { 0.0 };
        Self { process: "even".to_owned(), distance, p, n: gaps_s.len() as u64 }
    }

    /// Gaps are rounded, so that many may be equal: differences within the rounding are ignored.
    fn drawn(process: &str, mut gaps_s: Vec<f64>, below: impl Fn(f64) -> f64) -> Self {
        gaps_s.sort_unstable_by(f64::total_cmp);
        let n = gaps_s.len() as f64;
        let (mut smaller, mut distance) = (0, 0.0_f64);
        for equal in gaps_s.chunk_by(|one, other| one.total_cmp(other).is_eq()) {
            let until = smaller + equal.len();
            let fewer = below(equal[0] - ROUNDED_S) - smaller as f64 / n;
            let more = until as f64 / n - below(equal[0] + ROUNDED_S);
            distance = distance.max(fewer).max(more);
            smaller = until;
        }
        let p = kolmogorov(distance, n);
        Self { process: process.to_owned(), distance, p, n: gaps_s.len() as u64 }
    }
}

/// How often the distance of `n` values is at least this, with the correction of Stephens.
fn kolmogorov(distance: f64, n: f64) -> f64 {
    let root = n.sqrt();
    let scaled = (root + 0.12 + 0.11 / root) * distance;
    // The series does not converge where `p` is one to many places.
    if scaled < 0.2 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * libm::exp(-2.0 * f64::from(k * k) * scaled * scaled)
    };
    (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// A slot is in use while its request is on the wire: from its first byte sent to its last byte received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotsDelivered {
    pub asked: u32,
    /// On average over the stretch.
    pub in_use_mean: f64,
    /// Share of the requested slots that were in use.
    pub share: f64,
    /// From when each slot could have taken its first request to when there was nothing new to take.
    pub from_ms: f64,
    pub to_ms: f64,
    pub requests: u64,
}

/// The share of empty slots above which the concurrency was lower than requested.
pub(crate) const SLOTS_EMPTY: Limits = Limits { degraded: Some(0.05), invalid: Some(0.20) };
/// Fewest requests, and fewest requests for each slot.
const FEWEST_IN_SLOTS: usize = 50;
const FEWEST_PER_SLOT: usize = 3;

impl SlotsDelivered {
    /// `full_from` is when the plan fills the last slot.
    fn from_records(
        records: &Records,
        asked: u32,
        full_from: Moment,
    ) -> Result<Self, &'static str> {
        let slots = usize::try_from(asked).unwrap_or(usize::MAX);
        let mut uses = Vec::with_capacity(records.len());
        let mut taken_ns = Vec::with_capacity(records.len());
        for record in records {
            uses.extend(Flight::on_the_wire(&record));
            // A later turn of a conversation keeps its slot.
            if record.asked.turn == 0 {
                taken_ns.push(record.admitted.as_nanos());
            }
        }
        if uses.len() < FEWEST_IN_SLOTS.max(FEWEST_PER_SLOT.saturating_mul(slots)) {
            return Err("too few requests for this number of slots");
        }
        // From the first request of every slot to the drain.
        taken_ns.sort_unstable();
        let last_ns = *taken_ns.last().ok_or("no slot was in use")?;
        let from_ns = taken_ns.get(slots.saturating_sub(1)).copied().unwrap_or(last_ns);
        let from_ns = from_ns.max(full_from.as_nanos());
        drop(taken_ns);
        let drain_ns = Concurrency::drain_begins_ns(uses.iter().copied(), last_ns);
        let to_ns = drain_ns.ok_or("no slot was in use")?;
        let loaded = Flight { from_ns, to_ns };
        let length_ns = loaded.to_ns.saturating_sub(loaded.from_ns);
        if length_ns == 0 {
            return Err("no slot took a second request, so the run drains from its beginning");
        }
        let inside = uses.iter().filter_map(|used| used.within(loaded));
        let swept = Concurrency::sweep(inside).ok_or("no slot was in use")?;
        let in_use_mean = swept.request_ns as f64 / length_ns as f64;
        Ok(Self {
            asked,
            in_use_mean,
            share: in_use_mean / f64::from(asked),
            from_ms: ns_to_ms(loaded.from_ns),
            to_ms: ns_to_ms(loaded.to_ns),
            requests: uses.len() as u64,
        })
    }
}

/// Attempted requests that waited for the concurrency cap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldByCap {
    pub requests: u64,
    /// Share of the attempted requests; null when there were none.
    pub share: Option<f64>,
}

impl HeldByCap {
    pub(crate) fn from_observations(observations: &Observations) -> Option<Self> {
        let LoadShape::Open { cap: Some(_), .. } = observations.manifest.spec.load.shape else {
            return None;
        };
        let records = observations.records.iter();
        let requests = records.filter(|record| record.intended < record.admitted).count() as u64;
        Some(Self { requests, share: share(requests, observations.records.len() as u64) })
    }
}

#[cfg(test)]
mod tests;
