//! The statistics that a distribution may be asked for by name.

use crate::sample::Percentile;
use crate::value::Distribution;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    Mean,
    Max,
    Percentile(Percentile),
}

impl Statistic {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "max" => Some(Self::Max),
            _ => Percentile::ALL
                .into_iter()
                .find(|percentile| percentile.name() == name)
                .map(Self::Percentile),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Percentile(percentile) => percentile.name(),
        }
    }

    /// The number, as a summary has it.
    pub fn stored(self, distribution: &Distribution) -> Option<f64> {
        match self {
            Self::Mean => distribution.mean,
            Self::Max => distribution.max,
            Self::Percentile(percentile) => distribution.percentile(percentile),
        }
    }

    /// The fewest values that it can be judged from.
    pub const fn certified_from(self) -> u64 {
        match self {
            Self::Mean | Self::Max => 1,
            Self::Percentile(percentile) => percentile.certified_from(),
        }
    }
}
