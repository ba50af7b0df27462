//! A measured result: the load under it, and its figures.

use inferometer_engine::profile::Choice;
use inferometer_model::{Moment, Segment};

/// One row of a table of results.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) requests: Vec<RowRequest>,
    pub(crate) load: RowLoad,
    pub(crate) figures: Figures,
    /// How its server differed from the profile's.
    pub(crate) server: Choice,
    /// Whether it was measured on the server of the row before, whose prefix cache was still warm.
    pub(crate) continues: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRequest {
    pub(crate) prompt: Segment,
    pub(crate) output_tokens: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum RowLoad {
    /// So many at a time. A client that tests the server first sends it the first prompt alone.
    Closed { slots: u32, tests_first: bool },
    /// Poisson arrivals at a rate. Where the server kept up, its duration tells how fast they
    /// really came.
    Poisson { rate: f64, took_s: Option<f64> },
    /// All at once.
    AtOnce,
    /// As they were sent.
    Recorded(Vec<Moment>),
}

impl RowLoad {
    /// How much load it is, where that is a number.
    pub(crate) fn level(&self) -> Option<f64> {
        match self {
            Self::Closed { slots, .. } => Some(f64::from(*slots)),
            Self::Poisson { rate, .. } => Some(*rate),
            Self::AtOnce | Self::Recorded(_) => None,
        }
    }

    /// Whether more came than was served: then latencies are those of a queue that grew.
    pub(crate) fn is_saturated(&self) -> bool {
        match self {
            Self::Closed { .. } | Self::Recorded(_) => false,
            Self::Poisson { took_s, .. } => took_s.is_none(),
            Self::AtOnce => true,
        }
    }
}

/// The figures that are compared, each where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) output_throughput: Option<f64>,
    pub(crate) ttft_mean_ms: Option<f64>,
    pub(crate) tpot_mean_ms: Option<f64>,
}

impl Figures {
    pub(crate) const NAMES: [&'static str; 3] =
        ["output_throughput", "ttft_mean_ms", "tpot_mean_ms"];

    pub(crate) fn values(&self) -> [Option<f64>; 3] {
        [self.output_throughput, self.ttft_mean_ms, self.tpot_mean_ms]
    }

    /// How far each is from what was measured, as a share of that; `None` where either is missing.
    pub(crate) fn errors(&self, measured: &Self) -> [Option<f64>; 3] {
        let (ours, theirs) = (self.values(), measured.values());
        std::array::from_fn(|index| {
            let (ours, theirs) = (ours[index]?, theirs[index]?);
            Some(ours / theirs - 1.0)
        })
    }
}
