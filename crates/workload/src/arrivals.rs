//! When the requests of an open loop leave: drawn before the run, in whole nanoseconds.

#[cfg(test)]
mod tests;

use inferometer_model::spec::{Arrivals, Extent, RampCurve, RampSegment, Rate};
use inferometer_model::whole::to_u64;
use inferometer_model::{Moment, RequestId};

use crate::fingerprint;
use crate::gamma::Gamma;
use crate::plan::Stream;

/// The moments of all arrivals, never decreasing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Vec<u64>);

impl Schedule {
    pub fn draw(rate: &Rate, arrivals: Arrivals, extent: Extent, seed: u64) -> Self {
        match (rate, Gaps::new(arrivals, seed)) {
            (Rate::Unlimited | Rate::Recorded(_), _) => Self::collect(std::iter::repeat(0), extent),
            // The n-th arrival at n / rate: computed from n, so that no rounding adds up.
            (Rate::Steady { per_s }, None) => {
                Self::collect((0_u64..).map(|n| nanos(n as f64 / per_s)), extent)
            }
            (Rate::Steady { per_s }, Some(gaps)) => match (arrivals, extent) {
                (Arrivals::Stretched { .. }, Extent::Requests(requests)) => {
                    Self(stretched(*per_s, requests.get(), gaps))
                }
                _ => Self::collect(steady(*per_s, gaps), extent),
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

/// Sums of whole nanoseconds, as published plans have them.
fn steady(per_s: f64, mut gaps: Gaps) -> impl Iterator<Item = u64> {
    let mut at = 0_u64;
    std::iter::repeat_with(move || {
        at = at.saturating_add(nanos(gaps.next() / per_s));
        at
    })
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

/// The area under a ramp, and the way back from it.
#[derive(Clone, Debug)]
pub struct Curve {
    pieces: Vec<Piece>,
    /// Where the last piece ends.
    end_ns: u64,
    area: f64,
    /// The rate from there on.
    per_s_after: f64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start_ns: u64,
    length_s: f64,
    from_per_s: f64,
    to_per_s: f64,
    curve: RampCurve,
    /// Areas under the rate up to this piece's beginning, and up to its end.
    area_before: f64,
    area_after: f64,
}

impl Curve {
    pub fn new(segments: &[RampSegment], curve: RampCurve) -> Self {
        let mut pieces = Vec::with_capacity(segments.len());
        let (mut end_ns, mut area) = (0_u64, 0.0);
        for segment in segments {
            let mut piece = Piece {
                start_ns: end_ns,
                length_s: segment.over.as_secs_f64(),
                from_per_s: segment.from_per_s,
                to_per_s: segment.to_per_s,
                curve,
                area_before: area,
                area_after: area,
            };
            area += piece.area();
            piece.area_after = area;
            end_ns = end_ns.saturating_add(fingerprint::nanos(segment.over));
            pieces.push(piece);
        }
        let per_s_after = segments.last().map_or(0.0, |last| last.to_per_s);
        Self { pieces, end_ns, area, per_s_after }
    }

    /// When the area passes `area`, in nanoseconds; `None` when it never does.
    pub fn nanos_at(&self, area: f64) -> Option<u64> {
        // A piece without area, where the rate is zero, is passed over.
        let place = self.pieces.partition_point(|piece| piece.area_after <= area);
        match self.pieces.get(place) {
            Some(piece) => {
                let seconds = piece.seconds_at((area - piece.area_before).max(0.0));
                Some(piece.start_ns.saturating_add(nanos(seconds.min(piece.length_s))))
            }
            None if self.per_s_after == 0.0 => None,
            None => {
                let seconds = (area - self.area) / self.per_s_after;
                Some(self.end_ns.saturating_add(nanos(seconds)))
            }
        }
    }
}

impl Piece {
    fn area(&self) -> f64 {
        match self.growth() {
            Some(growth) => (self.to_per_s - self.from_per_s) / growth,
            None => f64::midpoint(self.from_per_s, self.to_per_s) * self.length_s,
        }
    }

    /// The exponent per second of a rate that grows by a factor; `None` of all others.
    fn growth(&self) -> Option<f64> {
        let change = self.to_per_s - self.from_per_s;
        match self.curve {
            RampCurve::Exponential if change != 0.0 => {
                Some(libm::log1p(change / self.from_per_s) / self.length_s)
            }
            RampCurve::Exponential | RampCurve::Linear => None,
        }
    }

    /// When this area is reached, in seconds from this piece's beginning.
    fn seconds_at(&self, area: f64) -> f64 {
        if let Some(growth) = self.growth() {
            return libm::log1p(area * growth / self.from_per_s) / growth;
        }
        if area == 0.0 {
            return 0.0;
        }
        // area = from·t + slope·t²/2, solved without a difference of nearly equal numbers.
        let slope = (self.to_per_s - self.from_per_s) / self.length_s;
        let square = self.from_per_s * self.from_per_s + 2.0 * slope * area;
        2.0 * area / (self.from_per_s + libm::sqrt(square.max(0.0)))
    }
}

/// Whole nanoseconds of a length in seconds.
pub fn nanos(seconds: f64) -> u64 {
    to_u64(libm::round(seconds * 1e9))
}

#[cfg(test)]
mod curve_tests {
    use std::time::Duration;

    use inferometer_model::spec::Rate;
    use proptest::prelude::*;

    use super::*;

    fn segment(from_per_s: f64, to_per_s: f64, seconds: f64) -> RampSegment {
        RampSegment { from_per_s, to_per_s, over: Duration::from_secs_f64(seconds) }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_linear_rate_is_turned_round_exactly() {
        // From 0 to 10 in 10 s: the area is t²/2.
        let curve = Curve::new(&[segment(0.0, 10.0, 10.0)], RampCurve::Linear);
        for (area, second) in [(0.0, 0), (0.5, 1), (2.0, 2), (8.0, 4), (32.0, 8), (50.0, 10)] {
            assert_eq!(curve.nanos_at(area), Some(second * S));
        }
        assert_eq!(curve.nanos_at(70.0), Some(12 * S), "it stays at 10 per second");
    }

    #[test]
    fn a_rate_that_falls_to_zero_ends_the_arrivals() {
        // From 10 to 0 in 10 s: 50 - (10 - t)²/2.
        let curve = Curve::new(&[segment(10.0, 0.0, 10.0)], RampCurve::Linear);
        assert_eq!(curve.nanos_at(48.0), Some(8 * S));
        assert_eq!(curve.nanos_at(49.5), Some(9 * S));
        assert_eq!(curve.nanos_at(50.0), None);
    }

    #[test]
    fn a_pause_is_passed_over() {
        let segments = [segment(0.0, 0.0, 3.0), segment(5.0, 5.0, 1.0), segment(0.0, 0.0, 2.0)];
        let end = [segment(1.0, 1.0, 1.0)];
        let curve = Curve::new(&[&segments[..], &end].concat(), RampCurve::Linear);
        assert_eq!(curve.nanos_at(0.0), Some(3 * S));
        assert_eq!(curve.nanos_at(5.0), Some(6 * S));
    }

    #[test]
    fn an_exponential_rate_is_turned_round_exactly() {
        // Doubling each second from 1 to 8: the area is (2^t - 1) / ln 2.
        let curve = Curve::new(&[segment(1.0, 8.0, 3.0)], RampCurve::Exponential);
        let ln_2 = std::f64::consts::LN_2;
        for (area, second) in [(0.0, 0), (1.0 / ln_2, 1), (3.0 / ln_2, 2)] {
            let found = curve.nanos_at(area).unwrap();
            assert!(found.abs_diff(second * S) <= 1, "{area}: {found}");
        }
        let hardly = Curve::new(&[segment(5.0, 5.0 + 1e-12, 3.0)], RampCurve::Exponential);
        assert_eq!(hardly.nanos_at(10.0), Some(2 * S));
    }

    fn curves() -> impl Strategy<Value = (Vec<RampSegment>, RampCurve)> {
        let one = (0.01_f64..1e3, 0.01_f64..1e3, 0.001_f64..100.0)
            .prop_map(|(from, to, seconds)| segment(from, to, seconds));
        let curve = prop_oneof![Just(RampCurve::Linear), Just(RampCurve::Exponential)];
        (proptest::collection::vec(one, 1..6), curve)
    }

    proptest! {
        /// The model's area forwards, which knows nothing of this file, and ours back again.
        #[test]
        fn there_and_back_is_the_same_moment((segments, curve) in curves(), share in 0.0..1.5_f64) {
            let whole: f64 = segments.iter().map(|segment| segment.over.as_secs_f64()).sum();
            let time = Duration::from_secs_f64(whole * share);
            let rate = Rate::Ramp { segments: segments.clone(), curve };
            let found = Curve::new(&segments, curve).nanos_at(rate.expected_within(time)).unwrap();
            let expected = fingerprint::nanos(time);
            // A nanosecond of rounding, and what the area's last digits are worth in time.
            let slack = 2 + nanos(rate.expected_within(time) * 1e-13 / 0.01);
            prop_assert!(found.abs_diff(expected) <= slack, "{found} and {expected}");
        }
    }
}
