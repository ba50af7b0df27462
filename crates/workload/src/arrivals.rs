//! When the requests of an open loop leave: drawn before the run, in whole nanoseconds.

use inferometer_model::spec::{Arrivals, Extent};
use inferometer_model::{Moment, RequestId};

use crate::stream::Stream;

/// The moments of all arrivals, never decreasing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Vec<u64>);

impl Schedule {
    pub fn draw(rate_per_s: f64, arrivals: Arrivals, extent: Extent, seed: u64) -> Self {
        match arrivals {
            Arrivals::Constant => Self::collect(constant(rate_per_s), extent),
            Arrivals::Poisson => Self::collect(poisson(rate_per_s, seed), extent),
        }
    }

    fn collect(moments_ns: impl Iterator<Item = u64>, extent: Extent) -> Self {
        match extent {
            Extent::Requests(requests) => {
                let count = usize::try_from(requests.get()).unwrap_or(usize::MAX);
                Self(moments_ns.take(count).collect())
            }
            Extent::Duration(duration) => {
                let end = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                Self(moments_ns.take_while(|moment| *moment < end).collect())
            }
        }
    }

    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn moment(&self, id: RequestId) -> Option<Moment> {
        let position = usize::try_from(id.0).ok()?;
        self.0.get(position).copied().map(Moment::from_nanos)
    }
}

/// The n-th arrival at n / rate: computed from n, so that no rounding adds up.
fn constant(rate_per_s: f64) -> impl Iterator<Item = u64> {
    (0_u64..).map(move |n| nanos(n as f64 / rate_per_s))
}

fn poisson(rate_per_s: f64, seed: u64) -> impl Iterator<Item = u64> {
    let mut stream = Stream::new(seed, "arrivals", 0);
    let mut at = 0_u64;
    std::iter::repeat_with(move || {
        at = at.saturating_add(nanos(stream.exponential() / rate_per_s));
        at
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and a cast saturates at the end of the clock"
)]
fn nanos(seconds: f64) -> u64 {
    libm::round(seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::time::Duration;

    use super::*;

    #[test]
    fn constant_arrivals_do_not_drift() {
        let requests = Extent::Requests(NonZeroU64::new(300_001).unwrap());
        let schedule = Schedule::draw(3.0, Arrivals::Constant, requests, 1);
        assert_eq!(schedule.moment(RequestId(1)), Some(Moment::from_nanos(333_333_333)));
        let last = schedule.moment(RequestId(300_000)).unwrap();
        assert_eq!(last, Moment::from_nanos(100_000 * 1_000_000_000));
    }

    #[test]
    fn a_duration_holds_what_arrives_before_its_end() {
        let second = Extent::Duration(Duration::from_secs(1));
        assert_eq!(Schedule::draw(10.0, Arrivals::Constant, second, 1).len(), 10);
        let schedule = Schedule::draw(1_000.0, Arrivals::Poisson, second, 1);
        assert!((900..1_100).contains(&schedule.len()), "{}", schedule.len());
    }

    #[test]
    fn poisson_arrivals_never_decrease_and_vary_as_they_should() {
        let requests = Extent::Requests(NonZeroU64::new(50_000).unwrap());
        let schedule = Schedule::draw(100.0, Arrivals::Poisson, requests, 3);
        let gaps: Vec<f64> =
            schedule.0.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance =
            gaps.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 100.0 - 1.0).abs() < 0.02, "mean gap {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "coefficient of variation");
    }
}
