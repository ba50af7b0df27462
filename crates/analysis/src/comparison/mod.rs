//! Two or more sides of runs compared: what changed, how certain that is, and whether it is good news.
//!
//! [`Comparison::new`] is a pure function of the sides' results. They are runs of our own or results of
//! any tool: the difference between the two is in [`Compared`], with an implementation in `runs.rs` and
//! one in `tool_results.rs`. The rule of the verdicts is in `change.rs`; the fields of the document are
//! its JSON keys, in this order.

mod change;
mod layout;
mod runs;
#[cfg(test)]
mod tests;
mod tool_results;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use inferometer_model::study::Level;
use serde::{Deserialize, Serialize};

pub use self::change::{Basis, Change, Judgement, Margins, Scale};
pub(crate) use self::change::{Values, upper_among};
pub use self::layout::{LayoutFigures, Layouts};
use crate::judge::Verdict;
use crate::metric::{self, Better, Metric, Quantity, Statistic, Unit};
use crate::statistics::{Estimate, Interval, UPPER, multiplicity, permutation};
use crate::summary::write_document;
use crate::tool_result::Tool;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The form of the document. Adding keys leaves it; changing what a key means raises it.
    pub schema: String,
    /// The first is the base; every other is set against it.
    pub sides: Vec<SideFacts>,
    /// Objections to the comparison, the most severe first.
    pub objections: Vec<Objection>,
    /// Whether it was made although they forbid it.
    pub forced: bool,
    /// The name of the one quantity that decides.
    pub primary: String,
    pub margins: Margins,
    /// Confidence level of the intervals of that quantity: 0.95 against one side, more against several,
    /// so that 0.95 holds for all of them together. Those of the other quantities have 0.95 each.
    #[serde(default = "one_side")]
    pub primary_confidence: f64,
    /// The decision about each side but the base; empty when no runs are left to compare.
    pub outcomes: Vec<SideOutcome>,
    /// From the lowest to the highest; rows in their order.
    pub levels: Vec<LevelComparison>,
    /// Levels that not all sides have.
    pub unmatched: Vec<UnmatchedLevel>,
    /// Changes that were judged, the primary ones included.
    pub comparisons: u32,
    /// Figures of a node full of replicas; empty when not requested.
    pub layouts: Vec<LayoutFigures>,
}

const fn one_side() -> f64 {
    2.0 * UPPER - 1.0
}

/// How much an objection weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Worth knowing; it may be what is compared.
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
    /// The side that differs from the base, or that has the problem.
    pub side: String,
    pub text: String,
    pub remedy: String,
}

/// Keys of objections that withhold quantities.
const OUTPUT_COUNTS: &str = "output_token_source";
const INPUT_COUNTS: &str = "input_token_source";
const TOKENIZER: &str = "tokenizer";
const SLO: &str = "slo";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideFacts {
    pub name: String,
    /// The run or set that it comes from.
    pub source: String,
    pub model: String,
    pub target: String,
    /// The simulated profile; absent for measured runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<String>,
    /// The tool that measured it, where that is not Inferometer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
    pub runs: Vec<SideRun>,
    /// Invalid runs, which are in no number.
    pub left_out: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideRun {
    /// The row of a suite or a matrix, such as `Concurrency Scaling (c=4)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    pub id: String,
    /// Null of imported results: other tools seldom report it, and give no verdict.
    pub seed: Option<u64>,
    pub level: Level,
    pub verdict: Option<Verdict>,
    pub partial: bool,
}

/// The row or level at which runs are compared with each other. It displays as the row, which has its
/// level in its name, or else as the level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedLevel {
    /// The row of a suite or a matrix, such as `Concurrency Scaling (c=4)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    pub level: Level,
}

impl fmt::Display for ComparedLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scenario {
            Some(row) => f.write_str(row),
            None => self.level.fmt(f),
        }
    }
}

/// The decision about one side by the primary quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideOutcome {
    pub side: String,
    pub judgement: Judgement,
    /// The mean change over the levels, each counted once. Null when nothing was decided; then there
    /// is a reason.
    pub change: Option<Change>,
    /// The other side over the base where its uncertainty is not known; of several levels their
    /// geometric mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_ratio: Option<f64>,
    pub basis: Basis,
    /// Worse, and known from at least two runs a side.
    pub regression: bool,
    /// Why nothing is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Levels that are not part of the judgement, of a side that is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<LevelWithout>,
}

/// A level at which the primary quantity has no change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelWithout {
    #[serde(flatten)]
    pub at: ComparedLevel,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelComparison {
    #[serde(flatten)]
    pub at: ComparedLevel,
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
    /// Null when there is none; then there is a reason.
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

/// How often chance alone would divide the same values into two sides at least this far apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermutationTest {
    pub p: f64,
    /// No runs of these numbers can give less.
    pub smallest_attainable: f64,
    /// Corrected by Holm's rule for all but the primary; null of that one.
    pub holm: Option<f64>,
    /// The same by Benjamini and Hochberg's rule, which lets more through: of those below 0.05 about
    /// one in twenty is chance.
    pub false_discovery: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnmatchedLevel {
    #[serde(flatten)]
    pub at: ComparedLevel,
    /// The sides that have a run at it that may be compared.
    pub sides: Vec<String>,
}

/// One condition: a run or a result, or several of it.
#[derive(Clone, Debug)]
pub struct Side<R> {
    pub name: String,
    /// The run, set or import that it comes from.
    pub source: String,
    pub results: Vec<R>,
    /// The row of each result of a suite or a matrix, such as `Concurrency Scaling (c=4)`: they are
    /// compared with results of the same row. Empty of other sides.
    pub rows: Vec<String>,
    /// Rows that failed, and why.
    pub failed: Vec<(String, String)>,
    /// The name of the suite, and its hash, which is equal for suites that send the same requests.
    pub suite: Option<(String, String)>,
}

/// The question to the sides.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The quantity that decides; `None`: as the load suggests.
    pub primary: Option<Quantity>,
    pub margins: Margins,
    /// Compare although an objection forbids it.
    pub force: bool,
    pub layouts: Option<Layouts>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ComparisonProblem {
    #[error("a comparison needs at least two sides, and there are {0}")]
    FewSides(usize),
    #[error("these runs are not comparable")]
    NotComparable(Vec<Objection>),
    #[error("the sides have no level in common: {0}")]
    NoCommonLevel(String),
}

/// What is wrong with results, by its key in `facts.json`, and with how many of them.
pub type Trouble = (&'static str, usize);

/// A result that can be compared with others of its kind.
pub trait Compared: PartialEq + Sized {
    /// What one of them is called.
    const NOUN: &'static str;
    /// Whether only figures are known: then only those that both sides have are compared, and a
    /// difference without an interval is shown.
    const FIGURES_ONLY: bool;

    /// The result in the document, without its row.
    fn run(&self) -> SideRun;
    fn estimate(&self, quantity: &Quantity) -> Option<Estimate>;
    /// Model, target, simulator and foreign tool of a side.
    fn subject(side: &Side<Self>) -> SideFacts;
    /// The quantity that decides when none is set.
    fn primary(sides: &[Side<Self>]) -> Quantity;
    fn quantities(base: &[&Self]) -> Vec<Quantity>;
    /// Problems of one side besides invalid and degraded results.
    fn troubles(side: &Side<Self>) -> Vec<Trouble>;
    /// Differences at one level: those of every result from the first of the base.
    fn differences(base: &[&Self], results: &[&Self], side: &str) -> Vec<Objection>;

    /// GPUs that one server is spread over, where the result states it.
    fn tensor_parallel(&self) -> Option<u32> {
        None
    }

    /// The other side's runs in the order of the base's, when each has exactly one partner with the
    /// same stimulus.
    fn in_pairs<'a>(_base: &[&Self], _other: &[&'a Self]) -> Option<Vec<&'a Self>> {
        None
    }

    fn asks_the_same(&self, _other: &Self) -> bool {
        true
    }

    /// Whether the figures of all these results count the same thing.
    fn means_the_same(_metric: &Metric, _base: &[&Self], _other: &[&Self]) -> bool {
        true
    }
}

impl Comparison {
    pub fn new<R: Compared>(sides: &[Side<R>], terms: &Terms) -> Result<Self, ComparisonProblem> {
        let others = match sides {
            [_, others @ ..] if !others.is_empty() => others,
            few => return Err(ComparisonProblem::FewSides(few.len())),
        };
        let (groups, unmatched) = matched_levels(sides);
        if groups.is_empty() && sides.iter().all(|side| 0 < side.compared().count()) {
            let levels =
                unmatched.iter().map(|found| format!("{} ({})", found.at, found.sides.join(", ")));
            return Err(ComparisonProblem::NoCommonLevel(levels.collect::<Vec<_>>().join(", ")));
        }
        let objections = objections(sides, &groups);
        let forbidding = objections.iter().filter(|found| found.weight == Weight::Forbids);
        let forbidding: Vec<Objection> = forbidding.cloned().collect();
        let forced = !forbidding.is_empty();
        if forced && !terms.force {
            return Err(ComparisonProblem::NotComparable(forbidding));
        }
        let primary = terms.primary.unwrap_or_else(|| R::primary(sides));
        let margins = terms.margins;
        let rule = Rule { primary, margins, others: others.len(), objections: &objections };
        let level = |(at, runs): &Group<'_, R>| LevelComparison {
            at: at.clone(),
            against: others
                .iter()
                .zip(&runs[1..])
                .map(|(side, own)| rule.compare_side(&side.name, &runs[0], own))
                .collect(),
        };
        let mut levels: Vec<LevelComparison> = groups.iter().map(level).collect();
        correct_for_many(&mut levels);
        let judged =
            levels.iter().flat_map(|level| &level.against).flat_map(|side| &side.quantities);
        let comparisons = judged.filter(|found| found.change.is_some()).count();
        let layouts = terms.layouts.iter().flat_map(|layouts| {
            levels.iter().flat_map(|level| layouts.figures(&sides[0].name, level))
        });
        let outcomes = others.iter().enumerate().filter(|_| !levels.is_empty());
        Ok(Self {
            schema: "inferometer.comparison/1".to_owned(),
            sides: sides.iter().map(Side::facts).collect(),
            forced,
            primary: primary.to_string(),
            margins,
            primary_confidence: 2.0 * upper_among(others.len()) - 1.0,
            outcomes: outcomes.map(|(at, side)| rule.outcome(at, &side.name, &levels)).collect(),
            unmatched,
            comparisons: to_u32(comparisons),
            layouts: layouts.collect(),
            levels,
            objections,
        })
    }

    /// Whether a side is worse than the base in the primary quantity.
    pub fn is_regression(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.regression)
    }

    /// Whether the primary quantity has a change for no side.
    pub fn decides_nothing(&self) -> bool {
        self.outcomes.iter().all(|outcome| outcome.change.is_none())
    }

    /// Whether there were runs to compare at all.
    pub fn has_runs(&self) -> bool {
        !self.levels.is_empty()
    }

    /// The document as it is printed: indented, with a line feed at its end.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        write_document(self)
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl LevelComparison {
    /// The quantity of this name for one of its sides.
    pub fn quantity(&self, side: usize, name: &str) -> Option<&QuantityComparison> {
        self.against.get(side)?.quantity(name)
    }
}

impl SideComparison {
    /// The quantity of this name.
    pub fn quantity(&self, name: &str) -> Option<&QuantityComparison> {
        self.quantities.iter().find(|found| found.quantity == name)
    }
}

impl Objection {
    fn new(key: &str, weight: Weight, side: &str, text: impl Into<String>, remedy: &str) -> Self {
        let (key, side, remedy) = (key.to_owned(), side.to_owned(), remedy.to_owned());
        Self { key, weight, side, text: text.into(), remedy }
    }
}

/// A fact that results should share: its key in `facts.json`, and how it is read from a result. Behind a
/// slash stands what distinguishes two facts of one key.
type Fact<R> = (&'static str, fn(&R) -> Option<String>);

/// What is said where a fact differs, or where results have a trouble.
#[derive(Deserialize)]
struct FactTexts {
    weight: Weight,
    what: String,
    remedy: String,
}

/// By what a result is called, and by key.
static FACTS: LazyLock<BTreeMap<String, BTreeMap<String, FactTexts>>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("facts.json")).expect("tests read the embedded table")
});

/// An objection for each fact that both have and that differs.
fn differing<R: Compared>(facts: &[Fact<R>], base: &R, other: &R, side: &str) -> Vec<Objection> {
    let objection = |(key, get): &Fact<R>| {
        let FactTexts { weight, what, remedy } = FACTS.get(R::NOUN)?.get(*key)?;
        let (a, b) = (get(base)?, get(other)?);
        let text = format!("{what} differs: {a} in the base, {b} in {side}");
        let key = key.split('/').next().unwrap_or_default();
        (a != b).then(|| Objection::new(key, *weight, side, text, remedy))
    };
    facts.iter().filter_map(objection).collect()
}

impl<R: Compared> Side<R> {
    /// Its name, and the GPUs of one of its servers where all results that state it agree.
    pub fn layout(&self) -> (&str, Option<u32>) {
        let mut known = self.results.iter().filter_map(R::tensor_parallel);
        let first = known.next();
        (&self.name, first.filter(|first| known.all(|other| other == *first)))
    }

    /// Every result with its row.
    fn runs(&self) -> Vec<SideRun> {
        let runs = self.results.iter().enumerate();
        runs.map(|(index, run)| SideRun { scenario: self.rows.get(index).cloned(), ..run.run() })
            .collect()
    }

    /// The results that are not invalid, each with its row and level.
    fn compared(&self) -> impl Iterator<Item = (ComparedLevel, &R)> {
        let runs = self.runs().into_iter().zip(&self.results);
        runs.filter(|(run, _)| run.verdict != Some(Verdict::Invalid)).map(
            |(SideRun { scenario, level, .. }, result)| (ComparedLevel { scenario, level }, result),
        )
    }

    fn facts(&self) -> SideFacts {
        SideFacts {
            name: self.name.clone(),
            source: self.source.clone(),
            runs: self.runs(),
            left_out: to_u32(self.results.len() - self.compared().count()),
            ..R::subject(self)
        }
    }
}

/// A level, and the runs of every side at it in the order of the sides. None is empty.
type Group<'a, R> = (ComparedLevel, Vec<Vec<&'a R>>);

/// Matches levels, from the lowest to the highest with rates and concurrencies apart and rows in their
/// order, and returns those that not all sides have. Sides of one level each are compared at any level:
/// the objections state whether they may be. Rows are matched by their names.
fn matched_levels<R: Compared>(sides: &[Side<R>]) -> (Vec<Group<'_, R>>, Vec<UnmatchedLevel>) {
    let valid: Vec<Vec<(ComparedLevel, &R)>> =
        sides.iter().map(|side| side.compared().collect()).collect();
    let mut levels: Vec<&ComparedLevel> = Vec::new();
    for (level, _) in valid.iter().flatten() {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let has_one_each = valid.iter().all(|runs| {
        runs.first().is_some_and(|(first, _)| {
            first.scenario.is_none() && runs.iter().all(|(at, _)| at == first)
        })
    });
    if has_one_each {
        levels.truncate(1);
    }
    levels.sort_by(|a, b| {
        let is_row = |at: &ComparedLevel| at.scenario.is_some();
        if is_row(a) || is_row(b) {
            return is_row(a).cmp(&is_row(b));
        }
        let kind = |at: &ComparedLevel| match at.level {
            Level::AsAsked => 0,
            Level::Rate(_) | Level::Unlimited => 1,
            Level::Concurrency(_) => 2,
        };
        let value = |at: &ComparedLevel| at.level.place().unwrap_or(0.0);
        kind(a).cmp(&kind(b)).then(value(a).total_cmp(&value(b)))
    });
    let (mut groups, mut unmatched) = (Vec::new(), Vec::new());
    for at in levels {
        let runs: Vec<Vec<&R>> = valid
            .iter()
            .map(|runs| {
                let own = runs.iter().filter(|(level, _)| has_one_each || level == at);
                own.map(|(_, run)| *run).collect()
            })
            .collect();
        if runs.iter().all(|own| !own.is_empty()) {
            groups.push((at.clone(), runs));
        } else {
            let names = sides.iter().zip(&runs).filter(|(_, own)| !own.is_empty());
            let sides = names.map(|(side, _)| side.name.clone()).collect();
            unmatched.push(UnmatchedLevel { at: at.clone(), sides });
        }
    }
    (groups, unmatched)
}

/// What decides, and what is compared at every level.
#[derive(Clone, Copy, Debug)]
struct Rule<'a> {
    primary: Quantity,
    margins: Margins,
    /// Sides that are set against the base.
    others: usize,
    objections: &'a [Objection],
}

impl Rule<'_> {
    /// Every quantity that a run of either side has, or of figures alone both, the primary one first.
    fn compare_side<R: Compared>(&self, side: &str, base: &[&R], other: &[&R]) -> SideComparison {
        let paired = R::in_pairs(base, other);
        let (other, in_pairs) = (paired.as_deref().unwrap_or(other), paired.is_some());
        let rest = R::quantities(base).into_iter().filter(|quantity| *quantity != self.primary);
        let quantities = [self.primary]
            .into_iter()
            .chain(rest)
            .filter_map(|quantity| self.compare_quantity(side, &quantity, (base, other), in_pairs));
        SideComparison {
            side: side.to_owned(),
            base_runs: to_u32(base.len()),
            runs: to_u32(other.len()),
            quantities: quantities.collect(),
        }
    }

    /// `None` of a quantity that is not shown: where only figures are known, of one that a side does not
    /// have, or not with this definition; the objections name it.
    fn compare_quantity<R: Compared>(
        &self,
        side: &str,
        quantity: &Quantity,
        (base, other): (&[&R], &[&R]),
        in_pairs: bool,
    ) -> Option<QuantityComparison> {
        let estimates = |runs: &[&R]| -> Vec<Option<Estimate>> {
            runs.iter().map(|run| run.estimate(quantity)).collect()
        };
        let (metric, primary) = (quantity.metric(), *quantity == self.primary);
        let means_the_same = R::means_the_same(metric, base, other);
        let values = Values {
            base: estimates(base),
            other: estimates(other),
            in_pairs,
            floor: quantity.statistic().map_or(1, Statistic::certified_from),
            upper: if primary { upper_among(self.others) } else { UPPER },
        };
        let [in_base, in_other] =
            [&values.base, &values.other].map(|side| side.iter().any(Option::is_some));
        let is_shown = if R::FIGURES_ONLY {
            in_base && in_other && means_the_same
        } else {
            in_base || in_other
        };
        if !is_shown && !primary {
            return None;
        }
        let otherwise = || "the sides define it differently".to_owned();
        let withheld = self.withheld(side, metric).or_else(|| (!means_the_same).then(otherwise));
        let scale = if metric.unit == Unit::Share { Scale::Difference } else { Scale::Ratio };
        let margin = self.margins.margin_for(quantity);
        let may_be_bare = R::FIGURES_ONLY && withheld.is_none() && scale == Scale::Ratio;
        let change = match withheld.map_or_else(|| values.change(scale), Err) {
            Ok(_) if metric.better == Better::Neither => {
                Err("neither more nor less of it is better".to_owned())
            }
            found => found,
        };
        let basis = values.basis();
        let judged = |change: &Change| change.judged(margin, metric.better);
        let mut found = QuantityComparison {
            quantity: quantity.to_string(),
            primary,
            unit: metric.unit.name().to_owned(),
            base: SideValue::new(&values.base, scale),
            other: SideValue::new(&values.other, scale),
            bare_ratio: None,
            basis,
            margin,
            judgement: change.as_ref().map_or(Judgement::NotCompared, judged),
            permutation: (change.is_ok() && basis != Basis::WithinRun)
                .then(|| PermutationTest::new(&values)),
            change: change.as_ref().ok().copied(),
            reason: change.err(),
        };
        if may_be_bare
            && found.change.is_none()
            && let (Some(base), Some(other)) = (found.base.mean, found.other.mean)
            && 0.0 < base.min(other)
        {
            (found.bare_ratio, found.judgement) = (Some(other / base), Judgement::NotJudged);
            if basis == Basis::WithinRun {
                let why = "a side has one result, so its variation between runs is not known";
                found.reason = Some(why.to_owned());
            }
        }
        Some(found)
    }

    /// Why a quantity is not compared although both sides have it.
    fn withheld(&self, side: &str, metric: &'static Metric) -> Option<String> {
        let withholds = |found: &&Objection| {
            found.weight == Weight::Withholds
                && found.side == side
                && match found.key.as_str() {
                    TOKENIZER => counts_output(metric) || counts_input(metric),
                    OUTPUT_COUNTS => counts_output(metric),
                    INPUT_COUNTS => counts_input(metric),
                    SLO => [&metric::GOODPUT, &metric::ATTAINMENT].contains(&metric),
                    _ => false,
                }
        };
        self.objections.iter().find(withholds).map(|found| found.text.clone())
    }

    /// One level decides alone; several by their mean change, so that a sweep is one decision and
    /// not as many chances of a false alarm as it has levels. Levels without a change are named.
    fn outcome(&self, index: usize, side: &str, levels: &[LevelComparison]) -> SideOutcome {
        let primary = self.primary.to_string();
        let found: Vec<(&LevelComparison, &QuantityComparison)> = levels
            .iter()
            .filter_map(|level| Some((level, level.quantity(index, &primary)?)))
            .collect();
        let changes: Vec<Change> = found.iter().filter_map(|(_, found)| found.change).collect();
        let change = match changes.as_slice() {
            [only] => Some(*only),
            several => change::mean_change(several),
        };
        let bare: Vec<f64> = found.iter().filter_map(|(_, found)| found.bare_ratio).collect();
        let bare_ratio = change::mean_ratio(&bare).filter(|_| change.is_none());
        let nothing =
            if bare_ratio.is_some() { Judgement::NotJudged } else { Judgement::NotCompared };
        let judgement = change.map_or(nothing, |change| {
            change.judged(self.margins.margin_for(&self.primary), self.primary.metric().better)
        });
        // What is known within runs at one level is not known between runs of them all.
        let has = |basis: &Basis| {
            let counted = |found: &QuantityComparison| change.is_none() || found.change.is_some();
            found.iter().any(|(_, found)| counted(found) && found.basis == *basis)
        };
        let basis = [Basis::WithinRun, Basis::Unpaired].into_iter().find(has);
        let basis = basis.unwrap_or(Basis::Paired);
        let mut without = Vec::new();
        for (level, found) in found.iter().filter(|(_, found)| found.change.is_none()) {
            let reason = found.reason.clone().unwrap_or_else(|| "it has no change".to_owned());
            without.push(LevelWithout { at: level.at.clone(), reason });
        }
        // The first reason represents all; of a sweep with its level, unless it holds at every level.
        let reason = change.is_none().then(|| match without.as_slice() {
            [] => "no level has it".to_owned(),
            [first, others @ ..] if bare_ratio.is_some() || others.is_empty() => {
                first.reason.clone()
            }
            [first, ..] => format!("{} ({})", first.reason, first.at),
        });
        without.retain(|_| change.is_some());
        let regression = judgement == Judgement::Worse && basis != Basis::WithinRun;
        let side = side.to_owned();
        SideOutcome { side, judgement, change, bare_ratio, basis, regression, reason, without }
    }
}

/// Whether its value depends on the source of the counts of output tokens.
fn counts_output(metric: &'static Metric) -> bool {
    [&metric::ITL, &metric::TPOT, &metric::FLUIDITY].contains(&metric)
        || matches!(
            metric.unit,
            Unit::JoulesPerToken | Unit::TokensPerJoule | Unit::PerMillionTokens
        )
        || metric.unit == Unit::TokensPerSecond
            && !metric.is_telemetry
            && ![&metric::INPUT_THROUGHPUT, &metric::PP].contains(&metric)
}

fn counts_input(metric: &'static Metric) -> bool {
    [&metric::INPUT_THROUGHPUT, &metric::TOTAL_THROUGHPUT, &metric::PP].contains(&metric)
}

impl PermutationTest {
    fn new(values: &Values) -> Self {
        let (base, other) = values.known();
        let found = permutation::two_sided(&base, &other);
        let (p, smallest_attainable) = (found.p, found.smallest_attainable);
        Self { p, smallest_attainable, holm: None, false_discovery: None }
    }
}

impl SideValue {
    fn new(runs: &[Option<Estimate>], scale: Scale) -> Self {
        let known: Vec<Estimate> = runs.iter().copied().flatten().collect();
        let found = (!known.is_empty()).then(|| change::side_figure(&known, scale));
        Self {
            mean: found.map(|found| found.value).filter(|mean| mean.is_finite()),
            interval: found.and_then(|found| found.interval),
            values: runs.iter().map(|run| run.map(|estimate| estimate.value)).collect(),
            certified: !known.is_empty() && known.iter().all(|estimate| estimate.certified),
        }
    }
}

/// All objections to these sides, the most severe first. Of equal weight: in the order of the sides.
fn objections<R: Compared>(sides: &[Side<R>], groups: &[Group<'_, R>]) -> Vec<Objection> {
    let mut found: Vec<Objection> = Vec::new();
    for side in sides {
        let (all, noun, name) = (side.results.len(), R::NOUN, &side.name);
        let runs = side.runs();
        let of = |verdict| runs.iter().filter(|run| run.verdict == Some(verdict)).count();
        let verdicts =
            [("invalid_runs", of(Verdict::Invalid)), ("degraded_runs", of(Verdict::Degraded))];
        let troubles = verdicts.into_iter().chain(R::troubles(side));
        for (key, count) in troubles.filter(|(_, count)| 0 < *count) {
            let texts = FACTS.get("troubles").and_then(|troubles| troubles.get(key));
            found.extend(texts.map(|FactTexts { weight, what, remedy }| {
                let text = format!("{count} of {all} {noun}s of {name} {what}");
                Objection::new(key, *weight, name, text, remedy)
            }));
        }
    }
    found.extend(named_twice(sides));
    found.extend(sides.iter().flat_map(|side| failed_rows(side, sides)));
    found.extend(suite_differences(sides, groups));
    for (at, runs) in groups {
        for (own, side) in runs[1..].iter().zip(&sides[1..]) {
            for mut objection in R::differences(&runs[0], own, &side.name) {
                if let Some(row) = &at.scenario {
                    objection.text = format!("{} (first at {row})", objection.text);
                }
                let is_same =
                    |known: &Objection| known.key == objection.key && known.side == objection.side;
                if !found.iter().any(is_same) {
                    found.push(objection);
                }
            }
        }
    }
    found.sort_by_key(|objection| std::cmp::Reverse(objection.weight));
    found
}

fn named_twice<R: Compared>(sides: &[Side<R>]) -> Option<Objection> {
    let mut seen: Vec<(&R, &Side<R>)> = Vec::new();
    for side in sides {
        for result in &side.results {
            // The same name in two stores, or in two files, is not the same result.
            let is_same = |(other, of): &&(&R, &Side<R>)| {
                (!R::FIGURES_ONLY || of.source == side.source) && *other == result
            };
            let Some((_, first)) = seen.iter().find(is_same) else { continue };
            let (noun, id) = (R::NOUN, result.run().id);
            let text = format!("{noun} {id} is in {} and in {}", first.name, side.name);
            let remedy = format!("name each {noun} once: a {noun} cannot be compared with itself");
            let is_whole = first.results == side.results;
            let weight = if is_whole { Weight::Forbids } else { Weight::Warning };
            return Some(Objection::new("same_run", weight, &side.name, text, &remedy));
        }
        seen.extend(side.results.iter().map(|result| (result, side)));
    }
    None
}

/// A cell that was measured before and fails now is a change that no figure shows.
fn failed_rows<R>(side: &Side<R>, sides: &[Side<R>]) -> Vec<Objection> {
    let is_elsewhere = |(row, _): &&(String, String)| {
        sides.iter().any(|other| other.name != side.name && other.rows.contains(row))
    };
    let (lost, nowhere): (Vec<_>, Vec<_>) = side.failed.iter().partition(is_elsewhere);
    let kinds = [
        ("failed_rows", Weight::Warning, lost, "failed, but not on every side", 6),
        ("rows_of_nobody", Weight::Note, nowhere, "failed, as on every side", 1),
    ];
    let name = &side.name;
    let remedy = format!("see the reasons and remedies: inferometer report {}", side.source);
    let mut found = Vec::new();
    for (key, weight, rows, which, most) in kinds {
        let named = rows.iter().take(most).map(|(row, why)| format!("{row} ({why})"));
        let more = rows.len().saturating_sub(most);
        let more = (0 < more).then(|| format!("and {more} more"));
        let listed = named.chain(more).collect::<Vec<_>>().join(", ");
        let noun = if rows.len() == 1 { "row" } else { "rows" };
        let text = format!("{} {noun} of {name} {which}: {listed}", rows.len());
        if !rows.is_empty() {
            found.push(Objection::new(key, weight, name, text, &remedy));
        }
    }
    found
}

/// Suites of equal hashes send the same requests. Of others, rows that both have may still be equal:
/// these are compared with a note; where one of them differs, nothing is.
fn suite_differences<R: Compared>(sides: &[Side<R>], groups: &[Group<'_, R>]) -> Vec<Objection> {
    let [base, others @ ..] = sides else { return Vec::new() };
    let Some((own_name, own_hash)) = &base.suite else { return Vec::new() };
    let of_side = |(index, side): (usize, &Side<R>)| {
        let (name, hash) = side.suite.as_ref().filter(|(_, hash)| hash != own_hash)?;
        let asks_something_else = |(_, runs): &&Group<'_, R>| {
            !runs[0].first().zip(runs[index + 1].first()).is_some_and(|(a, b)| a.asks_the_same(b))
        };
        let differing = groups.iter().filter(asks_something_else);
        let differing: Vec<&str> = differing.filter_map(|(at, _)| at.scenario.as_deref()).collect();
        let which = format!(
            "{} is the suite `{own_name}` ({own_hash}) and {} the suite `{name}` ({hash})",
            base.name, side.name
        );
        let (weight, text, remedy) = if differing.is_empty() {
            (
                Weight::Note,
                format!("{which}; the rows that both have are equal, and are compared"),
                "run the same suite on both sides to compare all of it",
            )
        } else {
            (
                Weight::Forbids,
                format!("{which}; the workload of these rows differs: {}", differing.join(", ")),
                "run the same suite, with the same flags, on both sides",
            )
        };
        Some(Objection::new("suite", weight, &side.name, text, remedy))
    };
    others.iter().enumerate().filter_map(of_side).collect()
}

/// Corrects the p values of all but the primary quantity for their number.
fn correct_for_many(levels: &mut [LevelComparison]) {
    let mut tests: Vec<&mut PermutationTest> = levels
        .iter_mut()
        .flat_map(|level| &mut level.against)
        .flat_map(|side| &mut side.quantities)
        .filter(|found| !found.primary)
        .filter_map(|found| found.permutation.as_mut())
        .collect();
    let p: Vec<f64> = tests.iter().map(|test| test.p).collect();
    let raised = multiplicity::holm(&p).into_iter().zip(multiplicity::benjamini_hochberg(&p));
    for (test, (holm, false_discovery)) in tests.iter_mut().zip(raised) {
        (test.holm, test.false_discovery) = (Some(holm), Some(false_discovery));
    }
}
