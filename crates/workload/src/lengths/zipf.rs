//! Popularity by rank: the k-th of many has weight `k^-exponent`.

use super::{share, whole};
use crate::stream::Stream;

/// Ranks whose weights are summed one by one; those beyond are a smooth tail.
const RANKS_SUMMED: u32 = 1 << 16;

/// Numbers from zero, the first the most popular.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: u32,
    exponent: f64,
    /// The weight of all ranks up to and with each.
    summed: Vec<f64>,
    /// The weight of the ranks beyond.
    tail: f64,
}

impl Zipf {
    pub(crate) fn new(count: u32, exponent: f64) -> Self {
        let count = count.max(1);
        let mut sum = 0.0;
        let summed: Vec<f64> = (1..=count.min(RANKS_SUMMED))
            .map(|rank| {
                sum += libm::pow(rank.into(), -exponent);
                sum
            })
            .collect();
        let tail = if RANKS_SUMMED < count {
            area(f64::from(count) + 0.5, exponent) - area(f64::from(RANKS_SUMMED) + 0.5, exponent)
        } else {
            0.0
        };
        Self { count, exponent, summed, tail }
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        let summed = self.summed.last().copied().unwrap_or(1.0);
        let reached = share(stream) * (summed + self.tail);
        if self.count <= RANKS_SUMMED || reached < summed {
            let place = self.summed.partition_point(|sum| *sum <= reached);
            return u32::try_from(place).unwrap_or(u32::MAX).min(self.count - 1);
        }
        let from = area(f64::from(RANKS_SUMMED) + 0.5, self.exponent);
        let rank = libm::round(end_of_area(from + reached - summed, self.exponent));
        whole(rank.clamp(f64::from(RANKS_SUMMED) + 1.0, self.count.into())) - 1
    }
}

/// The integral of `x^-exponent` from one on. Between the halves around a rank it is the rank's
/// weight, to nine digits where ranks are no longer summed.
fn area(end: f64, exponent: f64) -> f64 {
    let power = 1.0 - exponent;
    let log = libm::log(end);
    if power == 0.0 { log } else { libm::expm1(power * log) / power }
}

fn end_of_area(area: f64, exponent: f64) -> f64 {
    let power = 1.0 - exponent;
    libm::exp(if power == 0.0 { area } else { libm::log1p(power * area) / power })
}
