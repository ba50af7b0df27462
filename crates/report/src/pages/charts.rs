//! The charts of the pages: which numbers are drawn, and the one sentence that says what they show.
//!
//! Each function gives `None` where there is nothing to draw. A sentence is made from the numbers of
//! its chart, so that it cannot say more than the chart does.

mod client;
mod course;
mod energy;
mod levels;
mod machines;
mod outcomes;
mod pareto;
mod requests;
mod scenarios;
mod tails;

use inferometer_analysis::set::AcrossRuns;

pub(super) use self::client::client_health;
pub(super) use self::course::course;
pub(super) use self::energy::energy;
pub(super) use self::levels::{latency, mermaid, throughput};
pub(super) use self::machines::{client_machine, gpus};
pub(super) use self::outcomes::outcomes;
pub(super) use self::pareto::pareto;
pub(super) use self::requests::{gaps, requests};
pub(super) use self::scenarios::by_scenario;
pub(super) use self::tails::{first_token_metric, first_tokens, token_gaps};
use crate::chart::{Chart, Measure, ScaleKind};
use crate::document::{Block, Figure};

/// A chart's name on the page: what it shows, and of what where there are several.
fn id(of: &str, what: &str) -> String {
    // What begins with `scenario-` is a scenario's own place.
    if of.is_empty() { what.to_owned() } else { format!("{what}-of-{of}") }
}

/// Whether two values differ by more than their doubt; without intervals, by more than runs do.
fn is_apart(one: &AcrossRuns, other: &AcrossRuns) -> bool {
    /// Of the larger value.
    const TELLING: f64 = 0.05;
    match (one.doubt(), other.doubt(), one.mean, other.mean) {
        (Some(one), Some(other), _, _) => one.high < other.low || other.high < one.low,
        (_, _, Some(one), Some(other)) => {
            TELLING * one.abs().max(other.abs()) < (one - other).abs()
        }
        _ => false,
    }
}

pub(super) fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
}

pub(super) fn figure(chart: Chart) -> Block {
    Block::Figure(Figure { chart, mermaid: None })
}

pub(super) fn pair(interval: Option<inferometer_analysis::Interval>) -> Option<(f64, f64)> {
    interval.map(|interval| (interval.low, interval.high))
}
