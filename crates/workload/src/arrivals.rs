//! When the requests of an open loop leave: drawn before the run, in whole nanoseconds.

use inferometer_model::spec::{Arrivals, Extent, Rate};
use inferometer_model::{Moment, RequestId};

use crate::curve::{Curve, nanos};
use crate::gamma::Gamma;
use crate::stream::Stream;

/// The moments of all arrivals, never decreasing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Vec<u64>);

impl Schedule {
    pub fn draw(rate: &Rate, arrivals: Arrivals, extent: Extent, seed: u64) -> Self {
        match (rate, Gaps::new(arrivals, seed)) {
            (Rate::Unlimited | Rate::Recorded(_), _) => Self::collect(std::iter::repeat(0), extent),
            (Rate::Steady { per_s }, None) => Self::collect(even(*per_s), extent),
            (Rate::Steady { per_s }, Some(gaps)) => match stretched_to(arrivals, extent) {
                Some(count) => Self(stretched(*per_s, count, gaps)),
                None => Self::collect(steady(*per_s, gaps), extent),
            },
            (Rate::Ramp { segments, curve }, gaps) => {
                let curve = Curve::new(segments, *curve);
                match gaps {
                    None => Self::collect(ramped(curve, (0_u64..).map(|n| n as f64)), extent),
                    Some(gaps) => Self::collect(ramped(curve, gaps.sums()), extent),
                }
            }
        }
    }

    /// Moments that were recorded, as far as the extent reaches.
    pub fn recorded(moments_ns: &[u64], extent: Extent) -> Self {
        Self::collect(moments_ns.iter().copied(), extent)
    }

    fn collect(moments_ns: impl Iterator<Item = u64>, extent: Extent) -> Self {
        let (requests, duration) = match extent {
            Extent::Whole => (u64::MAX, None),
            Extent::Requests(requests) => (requests.get(), None),
            Extent::Duration(duration) => (u64::MAX, Some(duration)),
            Extent::UntilBoth { requests, duration }
            | Extent::UntilFirst { requests, duration } => (requests.get(), Some(duration)),
        };
        let end =
            duration.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let until_both = matches!(extent, Extent::UntilBoth { .. });
        let goes_on = |(n, moment): &(u64, u64)| {
            let (counted, timed) = (*n < requests, *moment < end || duration.is_none());
            if until_both { counted || timed } else { counted && timed }
        };
        Self((0..).zip(moments_ns).take_while(goes_on).map(|(_, moment)| moment).collect())
    }

    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn last(&self) -> Option<Moment> {
        self.0.last().copied().map(Moment::from_nanos)
    }

    pub fn moment(&self, id: RequestId) -> Option<Moment> {
        let position = usize::try_from(id.0).ok()?;
        self.0.get(position).copied().map(Moment::from_nanos)
    }
}

/// Random gaps with a mean of one.
struct Gaps {
    stream: Stream,
    gamma: Option<Gamma>,
    per_shape: f64,
}

impl Gaps {
    /// `None` when the gaps do not vary.
    fn new(arrivals: Arrivals, seed: u64) -> Option<Self> {
        let (gamma, shape) = match arrivals {
            Arrivals::Constant => return None,
            // A gamma shape of one is equal in law to Poisson, which is drawn sooner.
            Arrivals::Poisson | Arrivals::Stretched { burstiness: 1.0 } => (None, 1.0),
            Arrivals::Gamma { burstiness } | Arrivals::Stretched { burstiness } => {
                (Some(Gamma::new(burstiness)), burstiness)
            }
        };
        Some(Self { stream: Stream::new(seed, "arrivals", 0), gamma, per_shape: 1.0 / shape })
    }

    fn next(&mut self) -> f64 {
        match &self.gamma {
            None => self.stream.exponential(),
            Some(gamma) => gamma.upper_quantile(self.stream.unit()) * self.per_shape,
        }
    }

    fn sums(mut self) -> impl Iterator<Item = f64> {
        let mut sum = 0.0;
        std::iter::repeat_with(move || {
            sum += self.next();
            sum
        })
    }
}

/// The n-th arrival at n / rate: computed from n, so that no rounding adds up.
fn even(per_s: f64) -> impl Iterator<Item = u64> {
    (0_u64..).map(move |n| nanos(n as f64 / per_s))
}

/// Sums of whole nanoseconds, as published plans have them.
fn steady(per_s: f64, mut gaps: Gaps) -> impl Iterator<Item = u64> {
    let mut at = 0_u64;
    std::iter::repeat_with(move || {
        at = at.saturating_add(nanos(gaps.next() / per_s));
        at
    })
}

/// The number of requests that a schedule is stretched to fit, where it is.
fn stretched_to(arrivals: Arrivals, extent: Extent) -> Option<u64> {
    match (arrivals, extent) {
        (Arrivals::Stretched { .. }, Extent::Requests(requests)) => Some(requests.get()),
        _ => None,
    }
}

/// The last of them at exactly their number over the rate.
fn stretched(per_s: f64, count: u64, gaps: Gaps) -> Vec<u64> {
    let places: Vec<f64> = (0..count).zip(gaps.sums()).map(|(_, sum)| sum).collect();
    let whole = places.last().copied().unwrap_or(0.0);
    let end_s = count as f64 / per_s;
    // Gaps of a very bursty shape may all be rounded to nothing.
    let share = |place: f64| if 0.0 < whole { place / whole } else { 1.0 };
    places.into_iter().map(|place| nanos(share(place) * end_s)).collect()
}

/// Arrivals at a rate of one, moved to where the area under the rate reaches them. Ends where the
/// rate has fallen to zero for good.
fn ramped(curve: Curve, unit: impl Iterator<Item = f64>) -> impl Iterator<Item = u64> {
    let mut last = 0_u64;
    unit.map_while(move |area| {
        // Where two pieces meet, roundings may differ by a nanosecond.
        last = curve.nanos_at(area)?.max(last);
        Some(last)
    })
}

#[cfg(test)]
mod tests;
