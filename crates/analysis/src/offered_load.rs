//! Whether the load that was asked for is the one that left.
//!
//! On an open loop the requests that left are compared with the schedule, and the schedule with the
//! process that was asked for, which is a check of ourselves. On a closed loop it is how many of the
//! slots were in use from when each could have taken its first request to the drain. Figures are of
//! first turns where there are conversations: a later turn waits for an answer, and its moment is not
//! planned. A rate with a cap is neither an open loop nor a closed one: what the cap held back is
//! counted.

use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Arrivals, LoadShape, Rate, Source, Think};
use inferometer_model::{Observations, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::client::share;
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
    pub(crate) fn from_observations(observations: &Observations) -> Self {
        match &observations.manifest.spec.load.shape {
            LoadShape::Closed { concurrency, think } => {
                if *think != Think::None || turns_think(observations) {
                    return Self::not_checked("users think between requests, so slots rest");
                }
                SlotsDelivered::from_records(&observations.records, concurrency.get())
                    .map_or_else(Self::not_checked, Self::Slots)
            }
            LoadShape::Open { rate: Rate::Unlimited, .. } => {
                Self::not_checked("everything was due at once, so there is no rate to keep")
            }
            LoadShape::Open { rate, arrivals, cap } => {
                ScheduleDelivered::new(observations, (rate, *arrivals), cap.is_some()).map_or_else(
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

impl ScheduleDelivered {
    /// Against the process that the schedule was to be; `None` where too few requests were sent.
    fn new(
        observations: &Observations,
        (rate, arrivals): (&Rate, Arrivals),
        capped: bool,
    ) -> Option<Self> {
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
        // A request that never left lowers the sent rate, and so does a schedule that took longer than
        // planned.
        let planned_s = span_s(&intended).filter(|span_s| 0.0 < *span_s);
        let took_s = planned_s.and_then(|planned_s| Some(span_s(&sent)?.max(planned_s)));
        let intended_per_s = planned_s.map(|planned_s| (due as f64 - 1.0) / planned_s);
        let sent_per_s = took_s.map(|took_s| (sent.len() as f64 - 1.0) / took_s);
        let rates = intended_per_s.zip(sent_per_s);
        let fit = match rate {
            Rate::Ramp { .. } => Err("the rate was asked to change, so gaps have no one law"),
            Rate::Recorded(_) => Err("a trace is its own process"),
            Rate::Unlimited => Err("everything was due at once"),
            Rate::Steady { .. } if 0 < wanting => {
                Err("the moments of requests that were never attempted are not known")
            }
            Rate::Steady { per_s } => {
                ArrivalFit::fit(&intended, *per_s, arrivals).ok_or("too few gaps to tell")
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

/// Of one list of moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapFigures {
    /// Standard deviation of the gaps over their mean: 0 for even ones, 1 for Poisson.
    pub cv: Option<f64>,
    /// Over a few lengths of time, as far as the moments reach.
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

/// From a busy server's step to what users feel.
const STRETCHES_NS: [u64; 3] = [100_000_000, 1_000_000_000, 10_000_000_000];
/// Fewer counts do not make a variance.
const STRETCHES_MIN: usize = 20;
/// With fewer arrivals a stretch, the index is near one whatever the process.
const PER_STRETCH_MIN: f64 = 1.0;
/// Beyond, the moments are damage.
const STRETCHES_MAX: u64 = 10_000_000;
/// The approximation of `p` holds from here on.
const FIT_MIN: usize = 50;
/// Moments are whole nanoseconds.
const ROUNDED_S: f64 = 1e-9;

/// Between the first and the last of sorted moments.
fn span_s(moments_ns: &[u64]) -> Option<f64> {
    let (first, last) = (moments_ns.first()?, moments_ns.last()?);
    Some((last - first) as f64 / 1e9)
}

impl GapFigures {
    /// Of sorted moments.
    fn from_moments(moments_ns: &[u64]) -> Self {
        let gaps: Vec<f64> = moments_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let cv = |gaps: &[f64]| variance(gaps).sqrt() / mean(gaps);
        let varies = 2 <= gaps.len() && 0.0 < mean(&gaps);
        Self {
            cv: varies.then(|| cv(&gaps)),
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
        let stretches = (last - first) / over_ns;
        if STRETCHES_MAX < stretches {
            return None;
        }
        let mut counts = vec![0.0; usize::try_from(stretches).ok()?];
        if counts.len() < STRETCHES_MIN {
            return None;
        }
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
        // What one stretched schedule has in common, all its gaps have: there must be enough of it
        // to average out.
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
            // The mean of stretched gaps is the rate's own, which chance would only come near to.
            Arrivals::Gamma { burstiness } | Arrivals::Stretched { burstiness } => {
                let is_drawn = matches!(arrivals, Arrivals::Gamma { .. });
                let name = if is_drawn { "gamma" } else { "stretched gamma" };
                Self::drawn(name, gaps_s, |gap_s| {
                    incomplete_gamma::lower(burstiness, burstiness * per_s * gap_s)
                })
            }
        })
    }

    /// Even gaps leave nothing to chance: they are, or they are not.
    fn even(gaps_s: &[f64], per_s: f64) -> Self {
        let off = |gap_s: &f64| (gap_s * per_s - 1.0).abs();
        let distance = gaps_s.iter().map(off).fold(0.0, f64::max);
        let p = if distance <= 2.0 * ROUNDED_S * per_s { 1.0 } else { 0.0 };
        Self { process: "even".to_owned(), distance, p, n: gaps_s.len() as u64 }
    }

    /// Gaps are rounded, so that many may be equal: what lies within the rounding counts for the fit.
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

/// A slot is in use from when it takes a request to when that ends: dialling is part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotsDelivered {
    pub asked: u32,
    /// On average over the stretch.
    pub in_use_mean: f64,
    /// Of those asked for.
    pub share: f64,
    /// From when each slot could have taken its first request to when there was nothing new to take.
    pub from_ms: f64,
    pub to_ms: f64,
    pub requests: u64,
}

/// Below this share, fewer users were there than asked for.
pub(crate) const SLOTS_SHARE: f64 = 0.95;
/// Requests, and requests for each slot, that it takes to tell.
const FEWEST_IN_SLOTS: usize = 100;
const FEWEST_PER_SLOT: usize = 10;

impl SlotsDelivered {
    fn from_records(records: &[RequestRecord], asked: u32) -> Result<Self, &'static str> {
        let slots = usize::try_from(asked).unwrap_or(usize::MAX);
        let slot_use = |record: &RequestRecord| Flight::new(record.admitted, record.ending.at);
        let uses: Vec<Flight> = records.iter().filter_map(slot_use).collect();
        if uses.len() < FEWEST_IN_SLOTS.max(FEWEST_PER_SLOT.saturating_mul(slots)) {
            return Err("too few requests for the slots to tell");
        }
        // From the first request of every slot to the drain. A later turn of a conversation takes no
        // slot of its own.
        let first_turns = records.iter().filter(|record| record.asked.turn == 0);
        let mut taken_ns: Vec<u64> = first_turns.map(|record| record.admitted.as_nanos()).collect();
        taken_ns.sort_unstable();
        let last_ns = *taken_ns.last().ok_or("no slot was in use")?;
        let from_ns = taken_ns.get(slots.saturating_sub(1)).copied().unwrap_or(last_ns);
        let to_ns = Concurrency::drain_begins_ns(&uses, last_ns).ok_or("no slot was in use")?;
        let loaded = Flight { from_ns, to_ns };
        let length_ns = loaded.to_ns.saturating_sub(loaded.from_ns);
        if length_ns == 0 {
            return Err("no slot was handed on, so the run drains from its beginning");
        }
        let inside: Vec<Flight> = uses.iter().filter_map(|used| used.within(loaded)).collect();
        let swept = Concurrency::sweep(&inside).ok_or("no slot was in use")?;
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

/// Attempted requests that had to wait for a slot of the cap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldByCap {
    pub requests: u64,
    /// Of the attempted requests; null when there were none.
    pub share: Option<f64>,
}

impl HeldByCap {
    pub(crate) fn from_observations(observations: &Observations) -> Option<Self> {
        let LoadShape::Open { cap: Some(_), .. } = observations.manifest.spec.load.shape else {
            return None;
        };
        let held = |record: &&RequestRecord| record.intended < record.admitted;
        let requests = observations.records.iter().filter(held).count() as u64;
        Some(Self { requests, share: share(requests, observations.records.len() as u64) })
    }
}

#[cfg(test)]
mod tests;
