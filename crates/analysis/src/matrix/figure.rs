//! What rows are compared by, and whose count of tokens that is.

use serde::{Deserialize, Serialize};

use super::MatrixRow;
use crate::metric::Better;
use crate::set::Across;
use crate::statistics::UPPER;
use crate::statistics::ratio::{self, RatioEstimate};

/// What rows are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatrixFigure {
    /// Tokens per second, by [`TpsBy`].
    PromptTps,
    GenerationTps,
    /// Seconds.
    Latency,
    /// Milliseconds.
    Ttft,
    /// Money per million generated tokens.
    Cost,
    /// Joules per generated token.
    Energy,
}

/// Whose count of tokens compares the rows of a matrix. It is the same for all of them: the server's
/// time reaches from before the load to when it was idle again, and the client's does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpsBy {
    /// Every row that was measured has the server's counters.
    Server,
    /// Some row has not.
    Client,
}

impl TpsBy {
    pub fn of(rows: &[MatrixRow]) -> Self {
        let has_both = |row: &MatrixRow| {
            row.client_generation_tps.n <= row.generation_tps.n
                && row.client_prompt_tps.n <= row.prompt_tps.n
        };
        if rows.iter().all(has_both) { Self::Server } else { Self::Client }
    }
}

impl MatrixFigure {
    pub const ALL: [Self; 6] =
        [Self::PromptTps, Self::GenerationTps, Self::Latency, Self::Ttft, Self::Cost, Self::Energy];

    pub const fn of(self, row: &MatrixRow, tps_by: TpsBy) -> &Across {
        match (self, tps_by) {
            (Self::PromptTps, TpsBy::Server) => &row.prompt_tps,
            (Self::PromptTps, TpsBy::Client) => &row.client_prompt_tps,
            (Self::GenerationTps, TpsBy::Server) => &row.generation_tps,
            (Self::GenerationTps, TpsBy::Client) => &row.client_generation_tps,
            (Self::Latency, _) => &row.latency_s,
            (Self::Ttft, _) => &row.ttft_ms,
            (Self::Cost, _) => &row.cost_per_million,
            (Self::Energy, _) => &row.energy_per_token_j,
        }
    }

    pub const fn better(self) -> Better {
        match self {
            Self::PromptTps | Self::GenerationTps => Better::Higher,
            Self::Latency | Self::Ttft | Self::Cost | Self::Energy => Better::Lower,
        }
    }

    /// The best of these rows that may win, with its value; the first of equals.
    pub fn best<'a>(
        self,
        rows: impl IntoIterator<Item = (u32, &'a MatrixRow)>,
        tps_by: TpsBy,
    ) -> Option<(u32, f64)> {
        let mut best: Option<(u32, f64)> = None;
        for (place, row) in rows {
            let Some(value) = self.of(row, tps_by).mean.filter(|_| row.may_win()) else { continue };
            if best.is_none_or(|(_, found)| self.is_ahead(value, found)) {
                best = Some((place, value));
            }
        }
        best
    }

    pub(super) fn is_ahead(self, value: f64, other: f64) -> bool {
        match self.better() {
            Better::Higher => other < value,
            Better::Lower | Better::Neither => value < other,
        }
    }
}

/// Runs of a simulation without noise differ by rounding alone.
const ROUNDING_SHARE: f64 = 1e-12;

/// Whether its runs differ by rounding at most. So does a single one, which says nothing of others.
pub(super) fn is_still(across: &Across) -> bool {
    across.extremes().is_none_or(|(low, high)| high - low <= ROUNDING_SHARE * high.abs())
}

/// The values of the runs that have one.
pub(super) fn values(across: &Across) -> Vec<f64> {
    across.values.iter().flatten().copied().collect()
}

/// How many times `base` the other is, with its 95 % interval where both have several runs and not all
/// of them are equal.
pub(super) fn times(base: &Across, other: &Across) -> Option<(f64, Option<RatioEstimate>)> {
    let (below, above) = (base.mean?, other.mean?);
    let found = || ratio::unpaired(&values(base), &values(other), UPPER);
    let found = || found().filter(|_| !(is_still(base) && is_still(other)));
    (0.0 < below).then(|| (above / below, found()))
}
