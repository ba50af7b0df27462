//! Sentences made from the numbers by rules. A rule speaks only where its numbers are there, and
//! every sentence says which they are.
//!
//! To add a rule: a function from the page to a sentence or none in `rules`, its name in the list of
//! its section, and its threshold with a reason.

mod page;
mod rules;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};

use self::page::Page;
use super::{Author, Facts, Narrative};

/// The narrative of a suite, a sweep or a repetition; the facts are those of the same set.
pub fn from_set(set: &SetSummary, points: &[PointResult], facts: &Facts) -> Narrative {
    narrate(&Page::from_set(set, points, facts))
}

/// The narrative of a single run; the facts are those of the same run. What is found about it
/// stands in the scenario without a name.
pub fn from_run(summary: &Summary, facts: &Facts) -> Narrative {
    narrate(&Page::from_run(summary, facts))
}

fn narrate(page: &Page<'_>) -> Narrative {
    let scenarios = page
        .rows
        .iter()
        .map(|row| (row.name.clone().unwrap_or_default(), rules::scenario(page, row)));
    Narrative {
        author: Author::Rules,
        summary: rules::summary(page),
        scenarios: scenarios.filter(|(_, said)| !said.is_empty()).collect(),
        scaling: rules::scaling(page),
        uncertainties: rules::uncertainty(page),
        recommendations: rules::advice(page),
    }
}
