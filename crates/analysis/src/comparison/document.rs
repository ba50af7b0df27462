//! The comparison as a document: its field names are its JSON keys, in this order.

use inferometer_model::campaign::Level;
use serde::{Deserialize, Serialize};

use super::change::{Basis, Change, Judgement, Margins};
use super::layout::LayoutFigures;
use crate::judge::Verdict;
use crate::statistics::{Interval, UPPER};
use crate::tool_result::Tool;

/// The form of the document. Adding keys leaves it; changing what a key means raises it.
pub const COMPARISON_SCHEMA: &str = "inferometer.comparison/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub schema: String,
    /// The first is the base; every other is set against it.
    pub sides: Vec<SideFacts>,
    /// What speaks against the comparison, the most severe first.
    pub objections: Vec<Objection>,
    /// Whether it was made although they forbid it.
    pub forced: bool,
    /// The name of the one quantity that decides.
    pub primary: String,
    pub margins: Margins,
    /// Of the intervals of that quantity's changes: 0.95 against one side, and more against several,
    /// so that 0.95 holds for all of them together. Those of the other quantities have 0.95 each.
    #[serde(default = "one_side")]
    pub primary_confidence: f64,
    /// What it decides, for each side but the base; empty when no runs are left to compare.
    pub outcomes: Vec<SideOutcome>,
    /// From the lowest to the highest; rows in their order.
    pub levels: Vec<LevelComparison>,
    /// Levels that not all sides have.
    pub unmatched: Vec<UnmatchedLevel>,
    /// Changes that were judged, the primary ones included.
    pub comparisons: u32,
    /// Figures of a node full of replicas; empty when not asked for.
    pub layouts: Vec<LayoutFigures>,
}

/// How much an objection weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Worth knowing; it may be the very question.
    Note,
    /// The comparison holds with a reservation.
    Warning,
    /// Some quantities are not compared.
    Withholds,
    /// Nothing is compared unless it is forced.
    Forbids,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    pub key: String,
    pub weight: Weight,
    /// The side that differs from the base, or that has the trouble.
    pub side: String,
    pub text: String,
    pub remedy: String,
}

/// Keys of objections that withhold quantities.
pub(super) const OUTPUT_COUNTS: &str = "output_token_source";
pub(super) const INPUT_COUNTS: &str = "input_token_source";
pub(super) const TOKENIZER: &str = "tokenizer";
pub(super) const PROMISES: &str = "promises";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideFacts {
    pub name: String,
    /// The run or set that it comes from.
    pub source: String,
    pub model: String,
    pub target: String,
    /// What answered, where no server did; absent for what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<String>,
    /// Who measured it, where that was not Inferometer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
    pub runs: Vec<SideRun>,
    /// Invalid runs, which are in no number.
    pub left_out: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideRun {
    /// Of a suite or a matrix: its row, such as `Concurrency Scaling (c=4)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    pub id: String,
    /// Null of what was imported: other tools seldom say it, and do not judge themselves.
    pub seed: Option<u64>,
    pub level: Level,
    pub verdict: Option<Verdict>,
    pub partial: bool,
}

/// What the primary quantity says of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideOutcome {
    pub side: String,
    pub judgement: Judgement,
    /// Of several levels the mean change, each counted once. Null when nothing was decided; the
    /// reason says why.
    pub change: Option<Change>,
    /// The other side over the base where nothing says how sure that is; of several levels their
    /// geometric mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_ratio: Option<f64>,
    pub basis: Basis,
    /// Worse, and known from at least two runs a side.
    pub regression: bool,
    /// Why nothing is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Levels that have no part in the judgement, of a side that is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<LevelWithout>,
}

/// A level at which the primary quantity has no change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelWithout {
    /// Of a suite or a matrix: its row, such as `Concurrency Scaling (c=4)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    pub level: Level,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelComparison {
    /// Of a suite or a matrix: its row, such as `Concurrency Scaling (c=4)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    pub level: Level,
    /// Each side but the base.
    pub against: Vec<SideComparison>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideComparison {
    pub side: String,
    pub base_runs: u32,
    pub runs: u32,
    /// The primary one first.
    pub quantities: Vec<QuantityComparison>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantityComparison {
    /// Such as `ttft.p99`.
    pub quantity: String,
    pub primary: bool,
    pub unit: String,
    pub base: SideValue,
    pub other: SideValue,
    /// Null when there is none; the reason says why.
    pub change: Option<Change>,
    /// The other side over the base where no interval is known, as of imported results: it is shown
    /// and never judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_ratio: Option<f64>,
    pub basis: Basis,
    pub margin: f64,
    pub judgement: Judgement,
    /// Why nothing is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Advice only: it decides nothing. Null where a side has a single run, and where there is no
    /// change.
    pub permutation: Option<PermutationTest>,
}

/// A quantity over the runs of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideValue {
    pub mean: Option<f64>,
    /// Between runs; of a single run within it.
    pub interval: Option<Interval>,
    /// One for each run; null where it has none.
    pub values: Vec<Option<f64>>,
    /// Whether every run that has it has enough independent samples; false when none has it.
    pub certified: bool,
}

/// How often chance alone deals the same values to two sides at least so far apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermutationTest {
    pub p: f64,
    /// No runs of these numbers can give less.
    pub smallest_attainable: f64,
    /// Raised by Holm's rule to what it is worth among all but the primary; null of that one.
    pub holm: Option<f64>,
    /// The same by Benjamini and Hochberg's rule, which lets more through: of those below 0.05 about
    /// one in twenty is chance.
    #[serde(default)]
    pub false_discovery: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnmatchedLevel {
    /// Of a suite or a matrix: its row, such as `Concurrency Scaling (c=4)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    pub level: Level,
    /// The sides that have a run at it that may be compared.
    pub sides: Vec<String>,
}

impl Comparison {
    /// Whether a side is worse than the base in what decides.
    pub fn is_regression(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.regression)
    }

    /// Whether the primary quantity said nothing of any side: neither that it is worse nor that it
    /// is not.
    pub fn decides_nothing(&self) -> bool {
        self.outcomes.iter().all(|outcome| outcome.change.is_none())
    }

    /// Whether there were runs to compare at all.
    pub fn has_runs(&self) -> bool {
        !self.levels.is_empty()
    }

    /// The document as it is printed: indented, with a line feed at its end.
    ///
    /// # Panics
    ///
    /// Never: it has no maps and no number that is not finite.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a comparison has no maps");
        bytes.push(b'\n');
        bytes
    }
}

const fn one_side() -> f64 {
    2.0 * UPPER - 1.0
}

/// A row by its name, which has its level; a level of anything else by itself.
pub(super) fn told(scenario: Option<&String>, level: Level) -> String {
    scenario.map_or_else(|| level.to_string(), Clone::clone)
}

impl LevelWithout {
    pub fn told(&self) -> String {
        told(self.scenario.as_ref(), self.level)
    }
}

impl UnmatchedLevel {
    pub fn told(&self) -> String {
        told(self.scenario.as_ref(), self.level)
    }
}

impl LevelComparison {
    pub fn told(&self) -> String {
        told(self.scenario.as_ref(), self.level)
    }

    /// The quantity of this name for one of its sides.
    pub fn quantity(&self, side: usize, name: &str) -> Option<&QuantityComparison> {
        self.against.get(side)?.quantities.iter().find(|found| found.quantity == name)
    }
}

pub(super) fn objection(
    key: &str,
    weight: Weight,
    side: &str,
    text: impl Into<String>,
    remedy: &str,
) -> Objection {
    let (key, side, remedy) = (key.to_owned(), side.to_owned(), remedy.to_owned());
    Objection { key, weight, side, text: text.into(), remedy }
}
