//! The documents: what stands on the page of a run, of a set, of a suite and of a matrix.
//!
//! A page is a function of what is stored: it reads no clock and opens nothing, so that the same
//! files always make the same bytes. Sentences beside charts are made from the numbers that the
//! charts show.

mod audit;

mod card;
mod cells;
mod charts;
pub mod csv;
mod findings;
mod frame;
pub mod matrix;
pub mod results;
pub(crate) mod rows;
mod run;
mod set;
mod suite;
mod system;
mod validity;

use std::collections::BTreeMap;

use inferometer_analysis::set::{PointResult, SetSummary};

pub use self::run::{run, run_brief, run_reservations};
pub use self::set::{SetFiles, set, set_brief};
pub use self::suite::suite;
use crate::document::Document;
use crate::narrative::Narrative;

/// How much a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Everything, for HTML and Markdown.
    Full,
    /// What fits on a screen, for a terminal.
    Brief,
}

/// What the page of a suite is made of.
#[derive(Clone, Copy, Debug)]
pub struct SuiteInput<'a> {
    pub set: &'a SetSummary,
    /// Runs that are not here are told by the set alone, without charts of their requests.
    pub points: &'a [PointResult],
    pub narrative: &'a Narrative,
}

/// The page that fits what the set asked.
pub fn of_set(input: &SuiteInput<'_>) -> Document {
    if input.set.suite.is_some() {
        return suite(input);
    }
    matrix::page(input).unwrap_or_else(|| set(input))
}

/// Each value once, in the order of its first appearance.
fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Groups by key, in the order in which the keys appear.
fn grouped<T, K: Clone + Ord>(
    items: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    for item in items {
        let place = *places.entry(key(&item)).or_insert_with_key(|key| {
            groups.push((key.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(item);
    }
    groups
}
