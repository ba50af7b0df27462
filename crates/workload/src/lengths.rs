//! Drawing lengths: by inverting distributions, with functions that are equal on every machine.

#[cfg(test)]
mod tests;

use inferometer_model::spec::{Lengths, TOKENS_MAX};
use inferometer_model::whole::to_u32;

use crate::plan::Stream;

/// A distribution, ready to be drawn from. A length takes one number from its stream.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    lengths: Lengths,
    /// The ranks of a Zipf distribution.
    ranks: Option<Zipf>,
    /// For each bar of a histogram, the weight of all bars up to it.
    weights: Vec<f64>,
}

impl Draw {
    pub(crate) fn new(lengths: &Lengths) -> Self {
        let (mut ranks, mut weights) = (None, Vec::new());
        if let Lengths::Zipf { exponent, low, high } = lengths {
            ranks = Some(Zipf::new(high - low + 1, *exponent));
        }
        if let Lengths::Histogram(bars) = lengths {
            for (_, weight) in bars {
                weights.push(weights.last().copied().unwrap_or_default() + weight);
            }
        }
        Self { lengths: lengths.clone(), ranks, weights }
    }

    /// The length at one place of a named stream. A fixed length takes no number, so no stream is
    /// made for it: its hash would cost more than the rest of a recipe.
    pub(crate) fn draw_at(&self, seed: u64, name: &str, index: u64) -> u32 {
        if let Lengths::Fixed(length) = &self.lengths {
            return *length;
        }
        self.draw(&mut Stream::new(seed, name, index))
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        let uniform =
            |low: u32, high: u32, stream: &mut Stream| low + below(high - low + 1, stream);
        match &self.lengths {
            Lengths::Fixed(length) => *length,
            Lengths::Around { mean, share } => {
                let (low, high) = ends_around(*mean, *share);
                uniform(low.max(1), high.max(1), stream)
            }
            Lengths::Uniform { low, high } => uniform(*low, *high, stream),
            Lengths::Normal { mean, deviation } => {
                length(mean + deviation * normal_quantile(share(stream)))
            }
            Lengths::LogNormal { median, sigma } => {
                length(median * libm::exp(sigma * normal_quantile(share(stream))))
            }
            Lengths::Zipf { low, .. } => {
                low + self.ranks.as_ref().map_or(0, |ranks| ranks.draw(stream))
            }
            Lengths::Histogram(bars) => {
                let reached = share(stream) * self.weights.last().copied().unwrap_or_default();
                let place = self.weights.partition_point(|weight| *weight <= reached);
                bars[place.min(bars.len() - 1)].0
            }
        }
    }
}

/// The ends of a range around a mean, rounded outwards.
pub(crate) fn ends_around(mean: u32, share: f64) -> (u32, u32) {
    let mean = f64::from(mean);
    (to_u32(libm::floor(mean * (1.0 - share))), to_u32(libm::ceil(mean * (1.0 + share))))
}

/// A whole number below `count`, from one draw: the product's upper half. Of 2^64 draws each
/// number gets as many as any other, but for one.
#[expect(clippy::cast_possible_truncation, reason = "half of the product is below `count`")]
fn below(count: u32, stream: &mut Stream) -> u32 {
    ((u128::from(stream.bits()) * u128::from(count)) >> 64) as u32
}

/// Uniform inside of (0, 1): both ends left out, and as far from one as from the other.
fn share(stream: &mut Stream) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 52) as f64;
    ((stream.bits() >> 12) as f64 + 0.5) * STEP
}

fn length(drawn: f64) -> u32 {
    to_u32(libm::round(drawn).clamp(1.0, TOKENS_MAX.into()))
}

/// Where the standard normal distribution has this share below it.
fn normal_quantile(share: f64) -> f64 {
    // In the lower half small shares keep all their digits; the upper half mirrors it.
    if 0.5 < share {
        return -normal_quantile(1.0 - share);
    }
    // A rational guess that is right to three digits, and Newton's steps, of which each doubles the
    // digits.
    let mut quantile = -crate::gamma::normal(libm::log(share));
    for _ in 0..3 {
        let reached = 0.5 * libm::erfc(-quantile * std::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * quantile * quantile) * 0.398_942_280_401_432_7;
        quantile -= (reached - share) / density;
    }
    quantile
}

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
        to_u32(rank.clamp(f64::from(RANKS_SUMMED) + 1.0, self.count.into())) - 1
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
