//! Sentences made from the numbers by rules. A rule speaks only where its numbers are there, and
//! every sentence says which they are.
//!
//! To add a rule: a function from the page to a sentence or none, in the file of what it is about,
//! its name in the list there, and its threshold with a reason in `thresholds`.

mod advice;
mod doubts;
mod page;
mod scaling;
mod scenario;
mod sentence;
mod summary;
mod thresholds;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};

use self::page::Page;
use super::{Author, Facts, Narrative};

/// Of a suite, a sweep or a repetition; the facts are those of the same set.
pub fn of_set(set: &SetSummary, points: &[PointResult], facts: &Facts) -> Narrative {
    of_page(&Page::from_set(set, points, facts))
}

/// Of a single run; the facts are those of the same run. What is found about it stands in the
/// scenario without a name.
pub fn of_run(summary: &Summary, facts: &Facts) -> Narrative {
    of_page(&Page::from_run(summary, facts))
}

/// Of numbers that others have published.
pub fn of_published(facts: &Facts) -> Narrative {
    of_page(&Page::from_published(facts))
}

/// The rows that are the sweet spots of their levels, with their concurrency.
pub(super) fn published_sweet_spots(facts: &Facts) -> Vec<(String, u32)> {
    let page = Page::from_published(facts);
    let spots = page.families.iter().filter_map(|family| {
        let row = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
        row.name.clone().zip(row.concurrency)
    });
    spots.collect()
}

fn of_page(page: &Page<'_>) -> Narrative {
    let scenarios = page
        .rows
        .iter()
        .map(|row| (row.name.clone().unwrap_or_default(), scenario::findings(page, row)));
    Narrative {
        author: Author::Rules,
        summary: summary::findings(page),
        scenarios: scenarios.filter(|(_, said)| !said.is_empty()).collect(),
        scaling: scaling::findings(page),
        doubts: doubts::findings(page),
        recommendations: advice::findings(page),
    }
}
