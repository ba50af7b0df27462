//! A measured result: the load under it, and its figures.

use inferometer_model::spec::EngineTable;
use inferometer_model::{Moment, Segment};

/// One row of a table of results.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub requests: Vec<RowRequest>,
    pub load: RowLoad,
    pub figures: Figures,
    /// How its server differed from the profile's.
    pub server: EngineTable,
    /// Whether it was measured on the server of the row before, whose prefix cache was still warm.
    pub continues: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct RowRequest {
    pub prompt: Segment,
    pub output_tokens: u32,
}

#[derive(Clone, Debug)]
pub enum RowLoad {
    /// So many at a time. A client that tests the server first sends it the first prompt alone.
    Closed { slots: u32, tests_first: bool },
    /// Poisson arrivals at a rate, and how long the row took.
    Poisson { rate: f64, took_s: Option<f64>, kept_up: Option<bool> },
    /// All at once.
    AtOnce,
    /// As they were sent.
    Recorded(Vec<Moment>),
}

impl RowLoad {
    /// How much load it is, where that is a number.
    pub fn level(&self) -> Option<f64> {
        match self {
            Self::Closed { slots, .. } => Some(f64::from(*slots)),
            Self::Poisson { rate, .. } => Some(*rate),
            Self::AtOnce | Self::Recorded(_) => None,
        }
    }

    /// The duration that arrivals are stretched to: how fast they really came, where the server
    /// kept up with them.
    pub fn stretched_to_s(&self) -> Option<f64> {
        match self {
            Self::Poisson { took_s, kept_up: Some(true), .. } => *took_s,
            Self::Poisson { .. } | Self::Closed { .. } | Self::AtOnce | Self::Recorded(_) => None,
        }
    }

    /// Whether more came than was served, as far as is known: then latencies are those of a queue
    /// that grew.
    pub fn is_saturated(&self) -> bool {
        match self {
            Self::Closed { .. } | Self::Recorded(_) => false,
            Self::Poisson { kept_up, .. } => *kept_up == Some(false),
            Self::AtOnce => true,
        }
    }
}

/// The figures that are compared, each where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub output_throughput: Option<f64>,
    pub ttft_mean_ms: Option<f64>,
    pub tpot_mean_ms: Option<f64>,
}

impl Row {
    /// How far each figure is from what was measured, as a share of that; `None` where either is
    /// missing, and for a throughput that is given: that of arrivals stretched to the duration.
    pub fn errors(&self, played: &Figures) -> [Option<f64>; 3] {
        let (ours, theirs) = (played.values(), self.figures.values());
        let errors = std::array::from_fn(|index| Some(ours[index]? / theirs[index]? - 1.0));
        let [throughput, ttft, tpot] = errors;
        [throughput.filter(|_| !self.is_throughput_given()), ttft, tpot]
    }

    pub fn is_throughput_given(&self) -> bool {
        self.load.stretched_to_s().is_some()
    }
}

impl Figures {
    pub const NAMES: [&'static str; 3] = ["output_throughput", "ttft_mean_ms", "tpot_mean_ms"];

    pub fn values(&self) -> [Option<f64>; 3] {
        [self.output_throughput, self.ttft_mean_ms, self.tpot_mean_ms]
    }
}

/// The seed of a prompt that no other row has.
pub fn own_seed(row: usize, index: u64) -> u64 {
    ((row as u64 + 1) << 40) | index
}
