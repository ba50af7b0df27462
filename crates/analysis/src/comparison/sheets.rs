//! Sides of which only figures are known, such as results of other tools.
//!
//! Their figures are compared where they mean the same. One result a side says how far apart they
//! are and not how surely, so that is shown and not judged; several are judged as runs of ours are.

mod objections;
#[cfg(test)]
mod tests;

use super::change::{Basis, Scale, Values, upper_among};
use super::document::{
    Comparison, LevelComparison, QuantityComparison, SideComparison, SideFacts, SideRun,
};
use super::judgement::Judgement;
use super::level::{Group, sheet_groups};
use super::quantities::{Asked, compared};
use super::{ComparisonProblem, LayoutSide, Terms, beyond_the_base, concluded, permitted};
use crate::estimate::Estimate;
use crate::judge::Verdict;
use crate::metric::{self, Better, Metric, Unit};
use crate::quantity::Quantity;
use crate::sample::Percentile;
use crate::sheet::{Sheet, Tool};
use crate::statistic::Statistic;
use crate::statistics::UPPER;
use inferometer_model::campaign::Level;

/// One configuration: a result, or several of it.
#[derive(Clone, Debug)]
pub struct SheetSide {
    pub name: String,
    /// The import, run or set that it comes from.
    pub source: String,
    pub sheets: Vec<Sheet>,
}

impl SheetSide {
    /// What one of its servers is spread over, where all results that say it agree.
    pub fn layout(&self) -> LayoutSide<'_> {
        let mut said = self.sheets.iter().filter_map(|sheet| sheet.tensor_parallel);
        let first = said.next();
        let tensor_parallel = first.filter(|first| said.all(|other| other == *first));
        LayoutSide { name: &self.name, tensor_parallel }
    }

    /// Without those of our own that are invalid.
    pub(super) fn compared(&self) -> impl Iterator<Item = &Sheet> {
        self.sheets.iter().filter(|sheet| sheet.verdict != Some(Verdict::Invalid))
    }

    fn left_out(&self) -> usize {
        self.sheets.len() - self.compared().count()
    }

    /// The tool of all its results, where they have one.
    fn tool(&self) -> Option<Tool> {
        let first = self.sheets.first()?.source.tool;
        self.sheets.iter().all(|sheet| sheet.source.tool == first).then_some(first)
    }
}

impl Comparison {
    /// Of sides of which figures are all that is known.
    pub fn of_sheets(sides: &[SheetSide], terms: &Terms) -> Result<Self, ComparisonProblem> {
        let others = beyond_the_base(sides)?;
        let (groups, unmatched) = sheet_groups(sides);
        if groups.is_empty() && sides.iter().all(|side| side.left_out() < side.sheets.len()) {
            return Err(ComparisonProblem::NoCommonLevel(super::levels_told(&unmatched)));
        }
        let objections = objections::objections(sides, &groups);
        permitted(&objections, terms)?;
        let primary = terms.primary.unwrap_or_else(|| primary_of(sides));
        let margins = terms.margins;
        let asked = Asked { primary, margins, others: others.len(), objections: &objections };
        let levels = groups.iter().map(|group| level_comparison(&asked, others, group)).collect();
        let facts = sides.iter().map(SideFacts::of_sheets).collect();
        Ok(Self { unmatched, ..concluded(&asked, terms, facts, levels) })
    }
}

impl SideFacts {
    fn of_sheets(side: &SheetSide) -> Self {
        let first = side.sheets.first();
        let runs = side.sheets.iter().map(|sheet| SideRun {
            scenario: None,
            id: sheet.source.name.clone(),
            seed: None,
            level: sheet.level(),
            verdict: sheet.verdict,
            partial: sheet.is_cut(),
        });
        let simulated = first.is_some_and(|sheet| sheet.source.simulated);
        Self {
            name: side.name.clone(),
            source: side.source.clone(),
            model: first.and_then(|sheet| sheet.model.clone()).unwrap_or_default(),
            target: String::new(),
            simulated: simulated.then(|| "virtual time".to_owned()),
            tool: side.tool().filter(|tool| *tool != Tool::Inferometer),
            runs: runs.collect(),
            left_out: u32::try_from(side.left_out()).unwrap_or(u32::MAX),
        }
    }
}

/// What decides when nobody says it: of a given rate the wait, from the schedule where all say it,
/// else the throughput. The first that every result has.
fn primary_of(sides: &[SheetSide]) -> Quantity {
    let all = || sides.iter().flat_map(SheetSide::compared);
    let is_rate = all().next().is_some_and(|sheet| matches!(sheet.level(), Level::Rate(_)));
    let wait =
        [metric::TTFT_SCHEDULE.p99(), metric::TTFT.p99(), metric::TTFT.p50(), metric::TTFT.mean()];
    let throughput =
        [&metric::OUTPUT_THROUGHPUT, &metric::REQUEST_THROUGHPUT, &metric::TOTAL_THROUGHPUT];
    let candidates =
        wait.into_iter().filter(|_| is_rate).chain(throughput.into_iter().map(Quantity::from));
    let is_known = |quantity: &Quantity| all().all(|sheet| sheet.figure(quantity).is_ok());
    candidates.into_iter().find(is_known).unwrap_or_else(|| super::primary_of(&[]))
}

/// All that a sheet may have, in the order of pages.
fn quantities() -> Vec<Quantity> {
    let metrics = [
        &metric::REQUEST_THROUGHPUT,
        &metric::OUTPUT_THROUGHPUT,
        &metric::TOTAL_THROUGHPUT,
        &metric::PEAK_OUTPUT_THROUGHPUT,
        &metric::GOODPUT,
        &metric::ERROR_RATE,
        &metric::TTFT_SCHEDULE,
        &metric::TTFT,
        &metric::TPOT,
        &metric::ITL,
        &metric::ICL,
        &metric::E2E_SCHEDULE,
        &metric::E2E,
    ];
    let statistics = [
        Statistic::Mean,
        Statistic::Percentile(Percentile::P50),
        Statistic::Percentile(Percentile::P99),
    ];
    let compared = metrics.into_iter().filter(|metric| metric.better != Better::Neither);
    compared.flat_map(|metric| metric.quantities(&statistics)).collect()
}

fn level_comparison(
    asked: &Asked<'_>,
    others: &[SheetSide],
    group: &Group<'_, Sheet>,
) -> LevelComparison {
    let base = group.runs.first().map(Vec::as_slice).unwrap_or_default();
    let against = others.iter().zip(group.runs.iter().skip(1)).map(|(side, sheets)| {
        let rest = quantities().into_iter().filter(|quantity| *quantity != asked.primary);
        let all = [asked.primary].into_iter().chain(rest);
        SideComparison {
            side: side.name.clone(),
            base_runs: u32::try_from(base.len()).unwrap_or(u32::MAX),
            runs: u32::try_from(sheets.len()).unwrap_or(u32::MAX),
            quantities: all
                .filter_map(|quantity| of_quantity(asked, &side.name, &quantity, base, sheets))
                .collect(),
        }
    });
    LevelComparison { scenario: None, level: group.level, against: against.collect() }
}

/// `None` of what one side does not have, or not in this meaning: the objections name it.
fn of_quantity(
    asked: &Asked<'_>,
    side: &str,
    quantity: &Quantity,
    base: &[&Sheet],
    other: &[&Sheet],
) -> Option<QuantityComparison> {
    let is_primary = *quantity == asked.primary;
    let means_the_same = means_the_same(quantity.metric(), base, other);
    let estimates = |sheets: &[&Sheet]| -> Vec<Option<Estimate>> {
        sheets.iter().map(|sheet| sheet.figure(quantity).ok()).collect()
    };
    let values = Values {
        base: estimates(base),
        other: estimates(other),
        in_pairs: false,
        floor: quantity.statistic().map_or(1, Statistic::certified_from),
        upper: if is_primary { upper_among(asked.others) } else { UPPER },
    };
    let has = |side: &[Option<Estimate>]| side.iter().any(Option::is_some);
    let is_shared = has(&values.base) && has(&values.other) && means_the_same;
    if !is_shared && !is_primary {
        return None;
    }
    let otherwise = || "the sides do not mean the same by it".to_owned();
    let withheld = asked.withheld(side, quantity).or_else(|| (!means_the_same).then(otherwise));
    let may_be_bare = withheld.is_none();
    let found = compared(quantity, &values, asked, withheld);
    Some(if may_be_bare { or_bare(found, quantity) } else { found })
}

/// Whether the figures of all these results count the same thing. What a tool leaves open is the
/// same in its own results alone.
fn means_the_same(metric: &Metric, base: &[&Sheet], other: &[&Sheet]) -> bool {
    let all = || base.iter().chain(other);
    let meant: Vec<_> =
        all().filter_map(|sheet| Some((sheet.latency_of(metric)?, sheet.source.tool))).collect();
    let Some(((first, tool), rest)) = meant.split_first() else { return true };
    rest.iter().all(|(latency, other)| {
        latency.meaning() == first.meaning() && (first.is_defined() || other == tool)
    })
}

/// What differs by so much and cannot be judged keeps the difference.
fn or_bare(found: QuantityComparison, quantity: &Quantity) -> QuantityComparison {
    let scale =
        if quantity.metric().unit == Unit::Share { Scale::Difference } else { Scale::Ratio };
    let (Some(base), Some(other), None, Scale::Ratio) =
        (found.base.mean, found.other.mean, found.change, scale)
    else {
        return found;
    };
    if base <= 0.0 || other <= 0.0 {
        return found;
    }
    let reason = match found.basis {
        Basis::WithinRun => Some(
            "a side has one result, and nothing says how far another would be from it".to_owned(),
        ),
        Basis::Paired | Basis::Unpaired => found.reason,
    };
    QuantityComparison {
        bare_ratio: Some(other / base),
        judgement: Judgement::NotJudged,
        reason,
        ..found
    }
}
