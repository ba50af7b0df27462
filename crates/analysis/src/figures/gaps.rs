//! Gaps between tokens over time, counted in even steps and in rows on a logarithmic axis.

use crate::metric::Metric;
use inferometer_model::{Moment, RequestRecord};
use serde::{Deserialize, Serialize};

use super::steps::{Cursor, Steps};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapsFigure {
    /// `itl` where tokens can be told apart, else `icl`.
    pub metric: String,
    pub from_ms: f64,
    pub step_ms: f64,
    /// Of the rows, in milliseconds, rising evenly on a logarithmic axis; one more than rows. A gap
    /// that equals an edge lies above it; the last row has the longest gap, and the first has those
    /// that have no logarithm too.
    pub edges_ms: Vec<f64>,
    /// One for each step, each with a count for each row. A gap is where it ends.
    pub columns: Vec<Vec<u64>>,
}

const STEPS_MAX: u32 = 60;
const ROWS_MAX: u32 = 24;
/// Shorter gaps are in the first row: an axis down to the clock's last digit has no room for the
/// rest.
const EDGE_MS_MIN: f64 = 1e-3;
/// From edge to edge at least: thinner rows show nothing more.
const ROW_RATIO_MIN: f64 = 1.02;

/// In which step each value of a list lies, in runs of equal ones: the values of a request follow
/// each other in time, so there are few.
#[derive(Debug)]
pub(crate) struct GapSteps {
    /// `None` without requests.
    cursor: Option<Cursor>,
    runs: Vec<(usize, usize)>,
}

impl GapSteps {
    pub(crate) fn new(records: &[&RequestRecord]) -> Self {
        let steps = Steps::over(records.iter().copied(), STEPS_MAX);
        Self { cursor: steps.map(Cursor::new), runs: Vec::new() }
    }

    /// The next value of the list is of a gap that ends at `at`.
    pub(crate) fn push(&mut self, at: Moment) {
        let Some(cursor) = &mut self.cursor else { return };
        let step = cursor.place(at);
        match self.runs.last_mut() {
            Some((last, length)) if *last == step => *length += 1,
            _ => self.runs.push((step, 1)),
        }
    }

    /// Of values in the order in which they were pushed, and the measurements that each stands for;
    /// no counts where each stands for one. `None` without values.
    pub(crate) fn figure(
        self,
        metric: &Metric,
        (values, counts): (&[f64], &[u64]),
    ) -> Option<GapsFigure> {
        let steps = self.cursor?.steps;
        let rows = Rows::over(values)?;
        let mut columns = vec![vec![0_u64; rows.count()]; steps.count];
        let mut from = 0;
        for (step, length) in self.runs {
            let range = from..from + length;
            from = range.end;
            let column = &mut columns[step];
            let here = &values[range.clone()];
            if counts.is_empty() {
                for value in here {
                    column[rows.place(*value)] += 1;
                }
            } else {
                for (value, count) in here.iter().zip(&counts[range]) {
                    let row = &mut column[rows.place(*value)];
                    *row = row.saturating_add(*count);
                }
            }
        }
        Some(GapsFigure {
            metric: metric.name.to_owned(),
            from_ms: steps.begin_ms(),
            step_ms: steps.step_ms(),
            edges_ms: rows.edges,
            columns,
        })
    }
}

/// Rows of equal height on a logarithmic axis. The row of a value is looked up by the first bits of
/// the value, which cut the axis finer than the rows do.
#[derive(Debug)]
struct Rows {
    edges: Vec<f64>,
    first_key: u64,
    row_of_key: Vec<u8>,
}

/// Leaves seven bits of the fraction: slices of less than a hundredth, so at most one edge is in each.
const KEY_SHIFT: u32 = 45;

impl Rows {
    fn over(values: &[f64]) -> Option<Self> {
        let least = |one: f64, other: &f64| one.min(*other);
        let (first, others) = values.split_first()?;
        let low = others.iter().fold(*first, least).max(EDGE_MS_MIN);
        let high = others.iter().fold(*first, |one, other| one.max(*other)).max(low);
        Some(Self::with_edges(edges(low, high)))
    }

    fn with_edges(edges: Vec<f64>) -> Self {
        let first_key = key(edges[0]);
        let last_key = key(edges[edges.len() - 1]);
        let mut row = 0;
        let row_of_key = (first_key..=last_key)
            .map(|key| {
                // The last edge closes a row and opens none.
                while usize::from(row) + 2 < edges.len()
                    && edges[usize::from(row) + 1] <= f64::from_bits(key << KEY_SHIFT)
                {
                    row += 1;
                }
                row
            })
            .collect();
        Self { edges, first_key, row_of_key }
    }

    fn count(&self) -> usize {
        self.edges.len() - 1
    }

    fn place(&self, value: f64) -> usize {
        if value < self.edges[0] {
            return 0;
        }
        let slice = usize::try_from(key(value) - self.first_key).unwrap_or(usize::MAX);
        let row = usize::from(self.row_of_key[slice.min(self.row_of_key.len() - 1)]);
        (row + usize::from(self.edges[row + 1] <= value)).min(self.count() - 1)
    }
}

/// Of a value above zero. Rises with it.
fn key(value: f64) -> u64 {
    value.to_bits() >> KEY_SHIFT
}

/// As many rows as fit, from `low` to `high`; one row around them where they are too close for it.
fn edges(low: f64, high: f64) -> Vec<f64> {
    let (from, to) = (libm::log(low), libm::log(high));
    let thinnest = libm::log(ROW_RATIO_MIN);
    if to - from <= thinnest {
        let half = libm::sqrt(ROW_RATIO_MIN);
        return vec![low / half, high * half];
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    let fitting = ((to - from) / thinnest).min(f64::from(ROWS_MAX)) as u32;
    let height = (to - from) / f64::from(fitting);
    let inner = (1..fitting).map(|row| libm::exp(from + height * f64::from(row)));
    [low].into_iter().chain(inner).chain([high]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_reach_from_the_shortest_gap_to_the_longest() {
        let edges = edges(10.0, 1_000.0);
        assert_eq!((edges.len(), edges[0], edges[24]), (25, 10.0, 1_000.0));
        assert!((edges[12] - 100.0).abs() < 1e-9, "{}", edges[12]);
        let narrow = super::edges(10.0, 10.5);
        assert_eq!((narrow.len(), narrow[0], narrow[2]), (3, 10.0, 10.5));
    }

    #[test]
    fn gaps_that_are_all_equal_lie_in_one_row() {
        let rows = Rows::over(&[20.0, 20.0]).unwrap();
        assert_eq!((rows.count(), rows.place(20.0)), (1, 0));
        assert!(rows.edges[0] < 20.0 && 20.0 < rows.edges[1]);
        assert!(Rows::over(&[]).is_none());
    }

    #[test]
    fn a_gap_without_a_logarithm_lies_in_the_first_row() {
        let rows = Rows::over(&[-0.05, 0.0, 30.0]).unwrap();
        assert_eq!((rows.place(-0.05), rows.place(0.0), rows.place(30.0)), (0, 0, 23));
        let none = Rows::over(&[-0.05]).unwrap();
        assert_eq!((none.count(), none.place(-0.05)), (1, 0));
    }

    proptest! {
        #[test]
        fn the_row_that_is_looked_up_is_the_row_between_its_edges(
            values in prop::collection::vec(
                prop_oneof![1e-4_f64..1e-2, 1.0_f64..1.1, 5.0_f64..80.0, 1e3_f64..1e13], 1..200,
            ),
        ) {
            let rows = Rows::over(&values).unwrap();
            prop_assert!(rows.edges.is_sorted_by(|one, other| one < other));
            prop_assert!(rows.count() <= 24);
            for value in values.iter().chain(&rows.edges) {
                let below = rows.edges.iter().filter(|edge| *edge <= value).count();
                let expected = below.clamp(1, rows.count()) - 1;
                prop_assert_eq!(rows.place(*value), expected, "{} in {:?}", value, &rows.edges);
            }
        }
    }
}
