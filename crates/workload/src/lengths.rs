//! Drawing lengths: by inverting distributions, with functions that are equal on every machine.

mod zipf;

use inferometer_model::spec::{Lengths, TOKENS_MAX};

use crate::stream::Stream;

pub(crate) use zipf::Zipf;

/// A distribution, ready to be drawn from. A length takes one number from its stream.
#[derive(Clone, Debug)]
pub(crate) enum Draw {
    Fixed(u32),
    Uniform {
        low: u32,
        high: u32,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    LogNormal {
        median: f64,
        sigma: f64,
    },
    Zipf {
        low: u32,
        ranks: Zipf,
    },
    /// Lengths, each with the weight of all up to and with it.
    Histogram(Vec<(f64, u32)>),
}

impl Draw {
    pub(crate) fn new(lengths: &Lengths) -> Self {
        match lengths {
            Lengths::Fixed(length) => Self::Fixed(*length),
            Lengths::Around { mean, share } => {
                let (low, high) = ends_around(*mean, *share);
                Self::Uniform { low: low.max(1), high: high.max(1) }
            }
            Lengths::Uniform { low, high } => Self::Uniform { low: *low, high: *high },
            Lengths::Normal { mean, deviation } => {
                Self::Normal { mean: *mean, deviation: *deviation }
            }
            Lengths::LogNormal { median, sigma } => {
                Self::LogNormal { median: *median, sigma: *sigma }
            }
            Lengths::Zipf { exponent, low, high } => {
                Self::Zipf { low: *low, ranks: Zipf::new(high - low + 1, *exponent) }
            }
            Lengths::Histogram(bars) => Self::Histogram(
                bars.iter()
                    .scan(0.0, |sum, (length, weight)| {
                        *sum += weight;
                        Some((*sum, *length))
                    })
                    .collect(),
            ),
        }
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Uniform { low, high } => low + below(high - low + 1, stream),
            Self::Normal { mean, deviation } => {
                length(mean + deviation * normal_quantile(share(stream)))
            }
            Self::LogNormal { median, sigma } => {
                length(median * libm::exp(sigma * normal_quantile(share(stream))))
            }
            Self::Zipf { low, ranks } => low + ranks.draw(stream),
            Self::Histogram(bars) => {
                let all = bars.last().map_or(0.0, |bar| bar.0);
                let reached = share(stream) * all;
                let place = bars.partition_point(|bar| bar.0 <= reached);
                bars[place.min(bars.len() - 1)].1
            }
        }
    }
}

/// The ends of a range around a mean, rounded outwards.
pub(crate) fn ends_around(mean: u32, share: f64) -> (u32, u32) {
    let mean = f64::from(mean);
    (whole(libm::floor(mean * (1.0 - share))), whole(libm::ceil(mean * (1.0 + share))))
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
    whole(libm::round(drawn).clamp(1.0, TOKENS_MAX.into()))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers have rounded it, and keep it between zero and the bounds of lengths"
)]
fn whole(number: f64) -> u32 {
    number as u32
}

/// Where the standard normal distribution has this share below it.
fn normal_quantile(share: f64) -> f64 {
    // In the lower half small shares keep all their digits; the upper half mirrors it.
    if 0.5 < share {
        return -normal_quantile(1.0 - share);
    }
    let root = libm::sqrt(-2.0 * libm::log(share));
    // A rational guess that is right to three digits (Hastings 1955) …
    let above = 2.515_517 + root * (0.802_853 + root * 0.010_328);
    let beneath = 1.0 + root * (1.432_788 + root * (0.189_269 + root * 0.001_308));
    let mut quantile = above / beneath - root;
    // … and Newton's steps, of which each doubles the digits.
    for _ in 0..3 {
        let reached = 0.5 * libm::erfc(-quantile * std::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * quantile * quantile) * 0.398_942_280_401_432_7;
        quantile -= (reached - share) / density;
    }
    quantile
}

#[cfg(test)]
mod tests;
