//! Two or more sides of runs, set against each other: what changed, how surely, and whether that
//! is good news.
//!
//! [`Comparison::of`] is a pure function of the sides' summaries. The rule of its verdicts is in
//! `judgement.rs`; what forbids a comparison, in `objection.rs`.

mod change;
mod document;
mod hardware;
mod judgement;
mod layout;
mod level;
mod objection;
mod quantities;
mod sheets;
mod suites;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod truth;

pub use self::change::Basis;
pub use self::document::{
    COMPARISON_SCHEMA, Comparison, LevelComparison, LevelWithout, PermutationTest,
    QuantityComparison, SideComparison, SideFacts, SideOutcome, SideRun, SideValue, UnmatchedLevel,
};
pub use self::judgement::{Change, Judgement, Margins};
pub use self::layout::{
    LAYOUT_QUANTITY, LayoutFigures, LayoutProblem, LayoutSide, Layouts, Scaled,
};
pub use self::objection::{Objection, Weight};
pub use self::quantities::primary_of;
pub use self::sheets::SheetSide;

pub(crate) use self::change::{Scale, Values, upper_among};

use std::collections::BTreeSet;

use self::change::{mean_ratio, overall};
use self::level::{Group, groups, level_of};
use self::quantities::Asked;
use crate::judge::Verdict;
use crate::quantity::Quantity;
use crate::statistics::multiplicity;
use crate::summary::Summary;

/// One condition: a run, or the runs of one condition of a set.
#[derive(Clone, Debug)]
pub struct Side {
    pub name: String,
    /// The run or set that it comes from.
    pub source: String,
    pub runs: Vec<Summary>,
    /// Of a suite or a matrix, whose runs are of several workloads or servers, and stand against those
    /// of the same row.
    pub rows: Option<Rows>,
    pub suite: Option<SuiteSide>,
}

/// The rows of a side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// That of each run, in their order, such as `Concurrency Scaling (c=4)`.
    pub of_runs: Vec<String>,
    /// Those that came to nothing, and why.
    pub failed: Vec<(String, String)>,
}

/// What a side that is a suite was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteSide {
    pub name: String,
    /// Equal for suites that ask the same.
    pub hash: String,
}

/// What is asked about the sides.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The quantity that decides; `None`: as the load suggests.
    pub primary: Option<Quantity>,
    pub margins: Margins,
    /// Compare although something forbids it.
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

impl Comparison {
    pub fn of(sides: &[Side], terms: &Terms) -> Result<Self, ComparisonProblem> {
        let others = beyond_the_base(sides)?;
        let (groups, unmatched) = groups(sides);
        if groups.is_empty() && sides.iter().all(|side| left_out(side) < side.runs.len()) {
            return Err(ComparisonProblem::NoCommonLevel(levels_told(&unmatched)));
        }
        let objections = objection::objections(sides, &groups);
        permitted(&objections, terms)?;
        let primary = terms.primary.unwrap_or_else(|| primary_of(sides));
        let margins = terms.margins;
        let asked = Asked { primary, margins, others: others.len(), objections: &objections };
        let levels = groups.iter().map(|group| level_comparison(&asked, others, group)).collect();
        let facts = sides.iter().map(SideFacts::of).collect();
        Ok(Self { unmatched, ..concluded(&asked, terms, facts, levels) })
    }
}

fn beyond_the_base<S>(sides: &[S]) -> Result<&[S], ComparisonProblem> {
    match sides {
        [_, others @ ..] if !others.is_empty() => Ok(others),
        few => Err(ComparisonProblem::FewSides(few.len())),
    }
}

fn forbidden(objections: &[Objection]) -> impl Iterator<Item = &Objection> {
    objections.iter().filter(|objection| objection.weight == Weight::Forbids)
}

fn permitted(objections: &[Objection], terms: &Terms) -> Result<(), ComparisonProblem> {
    let forbidden: Vec<Objection> = forbidden(objections).cloned().collect();
    if forbidden.is_empty() || terms.force {
        return Ok(());
    }
    Err(ComparisonProblem::NotComparable(forbidden))
}

/// What all levels together come to.
fn concluded(
    asked: &Asked<'_>,
    terms: &Terms,
    sides: Vec<SideFacts>,
    mut levels: Vec<LevelComparison>,
) -> Comparison {
    correct_for_many(&mut levels);
    let judged = levels.iter().flat_map(|level| &level.against).flat_map(|side| &side.quantities);
    let comparisons = judged.filter(|found| found.change.is_some()).count();
    let base = sides.first().map_or("", |side| side.name.as_str());
    let layouts = terms
        .layouts
        .iter()
        .flat_map(|layouts| levels.iter().flat_map(|level| layouts.figures(base, level)));
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        objections: asked.objections.to_vec(),
        forced: forbidden(asked.objections).next().is_some(),
        primary: asked.primary.to_string(),
        margins: terms.margins,
        primary_confidence: 2.0 * upper_among(asked.others) - 1.0,
        outcomes: outcomes(asked, sides.get(1..).unwrap_or_default(), &levels),
        unmatched: Vec::new(),
        comparisons: u32::try_from(comparisons).unwrap_or(u32::MAX),
        layouts: layouts.collect(),
        levels,
        sides,
    }
}

impl SideFacts {
    fn of(side: &Side) -> Self {
        // Rows of a suite, and repeated runs, are of one server, which may have another port each time.
        let is_matrix = side.rows.is_some() && side.suite.is_none();
        let all = |noun, of: fn(&Summary) -> Option<&str>| {
            let runs = if is_matrix { side.runs.as_slice() } else { side.runs.get(..1)? };
            told(noun, runs.iter().filter_map(of))
        };
        let runs = side.runs.iter().enumerate().map(|(place, run)| SideRun {
            scenario: side.row_of(place).map(str::to_owned),
            id: run.run.id.clone(),
            seed: Some(run.run.seed),
            level: level_of(run),
            verdict: Some(run.verdict),
            partial: run.run.partial,
        });
        Self {
            name: side.name.clone(),
            source: side.source.clone(),
            model: all("models", |run| Some(run.run.model.as_str())).unwrap_or_default(),
            target: all("servers", |run| Some(run.run.target.as_str())).unwrap_or_default(),
            simulated: all("profiles", |run| Some(run.run.simulated.as_ref()?.profile.as_str())),
            tool: None,
            runs: runs.collect(),
            left_out: u32::try_from(left_out(side)).unwrap_or(u32::MAX),
        }
    }
}

impl Side {
    /// Nobody says yet what the servers of our own runs are spread over.
    pub fn layout(&self) -> LayoutSide<'_> {
        LayoutSide { name: &self.name, tensor_parallel: None }
    }

    /// The row that one of its runs is of.
    fn row_of(&self, run: usize) -> Option<&str> {
        self.rows.as_ref()?.of_runs.get(run).map(String::as_str)
    }
}

/// The one that all share, or how many there are: the rows of a matrix are of many.
fn told<'a>(noun: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
    let distinct: BTreeSet<&str> = all.collect();
    match distinct.len() {
        0 => None,
        1 => distinct.first().map(|one| (*one).to_owned()),
        several => Some(format!("{several} {noun}")),
    }
}

fn left_out(side: &Side) -> usize {
    side.runs.iter().filter(|run| run.verdict == Verdict::Invalid).count()
}

fn levels_told(unmatched: &[UnmatchedLevel]) -> String {
    let told =
        unmatched.iter().map(|found| format!("{} ({})", found.told(), found.sides.join(", ")));
    told.collect::<Vec<_>>().join(", ")
}

fn level_comparison(
    asked: &Asked<'_>,
    others: &[Side],
    group: &Group<'_, Summary>,
) -> LevelComparison {
    let base = group.runs.first().map(Vec::as_slice).unwrap_or_default();
    let against = others.iter().zip(group.runs.iter().skip(1)).map(|(side, runs)| SideComparison {
        side: side.name.clone(),
        base_runs: u32::try_from(base.len()).unwrap_or(u32::MAX),
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        quantities: asked.compared(&side.name, base, runs),
    });
    let scenario = group.scenario.map(str::to_owned);
    LevelComparison { scenario, level: group.level, against: against.collect() }
}

/// Raises the p values of all but the primary quantity to what they are worth among so many.
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

fn outcomes(
    asked: &Asked<'_>,
    others: &[SideFacts],
    levels: &[LevelComparison],
) -> Vec<SideOutcome> {
    if levels.is_empty() {
        return Vec::new();
    }
    let primary = asked.primary.to_string();
    let outcome = |(place, side): (usize, &SideFacts)| {
        let found =
            levels.iter().filter_map(|level| Some((level, level.quantity(place, &primary)?)));
        outcome_of(asked, &side.name, &found.collect::<Vec<_>>())
    };
    others.iter().enumerate().map(outcome).collect()
}

/// One level decides by itself; several by their mean change, so that a sweep is one decision and
/// not as many chances of a false alarm as it has levels. Levels without a change are named.
fn outcome_of(
    asked: &Asked<'_>,
    side: &str,
    levels: &[(&LevelComparison, &QuantityComparison)],
) -> SideOutcome {
    let judged = || levels.iter().filter_map(|(_, found)| Some((found.change?, found.basis)));
    let changes: Vec<Change> = judged().map(|(change, _)| change).collect();
    let change = match changes.as_slice() {
        [only] => Some(*only),
        several => overall(several),
    };
    let bare: Vec<f64> = levels.iter().filter_map(|(_, found)| found.bare_ratio).collect();
    let bare_ratio = mean_ratio(&bare).filter(|_| change.is_none());
    let nothing = if bare_ratio.is_some() { Judgement::NotJudged } else { Judgement::NotCompared };
    let judgement = change.map_or(nothing, |change| {
        change.judged(asked.margins.of(&asked.primary), asked.primary.metric().better)
    });
    let grounds: Vec<Basis> = match change {
        Some(_) => judged().map(|(_, basis)| basis).collect(),
        None => levels.iter().map(|(_, found)| found.basis).collect(),
    };
    let basis = least_known(&grounds);
    let mut without: Vec<LevelWithout> = levels
        .iter()
        .filter(|(_, found)| found.change.is_none())
        .map(|(level, found)| LevelWithout {
            scenario: level.scenario.clone(),
            level: level.level,
            reason: found.reason.clone().unwrap_or_else(|| "it has no change".to_owned()),
        })
        .collect();
    let reason = match (change, bare_ratio, without.first()) {
        (Some(_), ..) => None,
        // It holds at every level alike.
        (None, Some(_), Some(first)) => Some(first.reason.clone()),
        (None, ..) => Some(why_nothing(&without)),
    };
    if change.is_none() {
        without.clear();
    }
    SideOutcome {
        side: side.to_owned(),
        judgement,
        change,
        bare_ratio,
        basis,
        regression: judgement == Judgement::Worse && basis != Basis::WithinRun,
        reason,
        without,
    }
}

/// What is known within runs at one level is not known between runs of them all.
fn least_known(bases: &[Basis]) -> Basis {
    [Basis::WithinRun, Basis::Unpaired]
        .into_iter()
        .find(|basis| bases.contains(basis))
        .unwrap_or(Basis::Paired)
}

/// The first reason stands for all; a sweep says at which level.
fn why_nothing(without: &[LevelWithout]) -> String {
    match without {
        [] => "no level has it".to_owned(),
        [only] => only.reason.clone(),
        [first, ..] => format!("{} ({})", first.reason, first.told()),
    }
}
