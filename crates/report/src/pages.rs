//! The pages of a run, of a set, of a suite and of a matrix.
//!
//! A page is a function of what is stored: it reads no clock and opens nothing, so that the same
//! files always make the same bytes. Sentences beside charts are made from the numbers that the
//! charts show.

mod anatomy;
mod audit;
pub(crate) mod cells;
mod charts;
pub mod csv;
mod findings;
pub(crate) mod frame;
pub mod judgement;
pub mod matrix;
pub mod plausibility;
pub mod results;
pub(crate) mod rows;
mod run;
mod set;
mod suite;
mod system;
mod validity;

use std::collections::BTreeMap;

use inferometer_analysis::set::{PointResult, SetSummary};

pub use self::anatomy::{anatomy, step_charts};
pub use self::frame::simulated;
pub(crate) use self::run::{requests_ok, slo_value};
pub use self::run::{run, run_brief, run_reservations, run_summary};
pub use self::set::{SetFiles, set, set_brief};
pub use self::suite::suite;
use crate::document::Document;
use crate::narrative::Narrative;

/// The parts of most pages.
pub(crate) mod prelude {
    pub(crate) use std::collections::{BTreeMap, BTreeSet};
    pub(crate) use std::fmt::Write;

    pub(crate) use inferometer_analysis::matrix::MatrixRow;
    pub(crate) use inferometer_analysis::set::{
        AcrossRuns, ConditionSummary, Contaminated, LevelSummary, PointResult, SetSummary, Tally,
    };
    pub(crate) use inferometer_analysis::tool_result::{LatencyKind, Mark, ResultRate, ToolResult};
    pub(crate) use inferometer_analysis::{
        CheckState, Interval, LatencyOrigin, METRICS, Metric, Percentile, Quantity, ServerSide,
        Severity, Shape, Statistic, Summary, ThresholdVerdict, Unit, Verdict, Warning, metric,
    };
    pub(crate) use inferometer_model::Outcome;
    pub(crate) use inferometer_model::spec::Lengths;
    pub(crate) use inferometer_model::study::{Dimension, Level};

    pub(crate) use super::cells::{
        self, UNCERTIFIED, brief_cell, card, known, missing, number_cell, quantity_cell,
        quantity_columns, uncertified,
    };
    pub(crate) use super::frame::{self, About, section};
    pub(crate) use super::rows::{self, Row, Series};
    pub(crate) use super::{Detail, SuiteInput, grouped};
    pub(super) use super::{anatomy, audit, charts, system, validity};
    pub(crate) use crate::chart::{
        Bar, BarGroup, Bars, Chart, INTERVAL, LinePoint, LineSeries, Lines, LinesPanel, Measure,
        Panel, Plot, ScaleKind, linear, measure,
    };
    pub(crate) use crate::document::{
        Badge, Block, Card, Cell, Column, Columns, Document, Figure, Lead, Mood, Section, Span,
        Table, Text, distinct, facts, labelled, plain, strong,
    };
    pub(crate) use crate::escape;
    pub(crate) use crate::escape::terminal_line;
    pub(crate) use crate::fmt::{
        self, Join, NOTHING, count, counted, level_name, list, load, memory, number, percent,
        setting, signed_percent, uncertainty, whole,
    };
    pub(crate) use crate::narrative::Narrative;
    pub(crate) use crate::texts::{fill, text};

    pub(crate) const MEAN: Statistic = Statistic::Mean;
    pub(crate) const P50: Statistic = Statistic::Percentile(Percentile::P50);
    pub(crate) const P90: Statistic = Statistic::Percentile(Percentile::P90);
    pub(crate) const P95: Statistic = Statistic::Percentile(Percentile::P95);
    pub(crate) const P99: Statistic = Statistic::Percentile(Percentile::P99);
    pub(crate) const MAX: Statistic = Statistic::Max;
}

/// How much a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything, for HTML and Markdown.
    Full,
    /// All that a terminal can show.
    Brief,
    /// What fits on one screen of a terminal.
    Summary,
}

/// What the page of a suite is made of.
#[derive(Clone, Copy, Debug)]
pub struct SuiteInput<'a> {
    pub set: &'a SetSummary,
    /// Runs that are missing here have no charts of their requests.
    pub points: &'a [PointResult],
    pub narrative: &'a Narrative,
}

/// The page for the question of the set.
pub fn of_set(input: &SuiteInput<'_>) -> Document {
    if input.set.suite.is_some() {
        return suite(input);
    }
    matrix::page(input).unwrap_or_else(|| set(input))
}

/// Groups by key, in the order in which the keys appear.
pub(crate) fn grouped<T, K: Clone + Ord>(
    items: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    let mut positions: BTreeMap<K, usize> = BTreeMap::new();
    for item in items {
        let position = *positions.entry(key(&item)).or_insert_with_key(|key| {
            groups.push((key.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[position].1.push(item);
    }
    groups
}
