//! The findings of a page in sentences.
//!
//! [`Facts`] are the numbers of a page, each with its subject, its unit and its table. Sentences are
//! made from them by rules, or by a model; every sentence of a model is checked against them before it
//! reaches a page.

pub mod claims;
pub mod facts;
pub mod findings;
pub mod narrator;

use std::collections::BTreeMap;

use inferometer_analysis::{Better, Unit};

use crate::document::Text;

/// All numbers of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub facts: Vec<Fact>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub about: About,
    pub value: f64,
    /// As the table prints it, such as `1,082.2`.
    pub printed: String,
    pub unit: FactUnit,
    pub better: Better,
    /// The confidence interval, where it is known.
    pub interval: Option<(f64, f64)>,
    /// The id of its table.
    pub table: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactUnit {
    /// The unit of a metric.
    Metric(Unit),
    Tokens,
    /// A plain number, such as a concurrency.
    Number,
}

/// The subject of a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// The name on the page, such as `Concurrency Scaling (c=4)`; `None` for the whole page.
    pub scenario: Option<String>,
    /// The concurrency of the level, where the scenario has one.
    pub concurrency: Option<u32>,
    /// The name of a metric, such as `ttft`, or another number of the page, such as
    /// `input_tokens`, `requests` or `concurrency`.
    pub quantity: String,
    /// Such as `mean` or `p99`; `None` for a single number.
    pub statistic: Option<String>,
}

/// One statement with the facts that it states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence {
    pub text: Text,
    /// The facts that it rests on, by their indices in [`Facts`].
    pub facts: Vec<usize>,
}

/// The sentences of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrative {
    pub author: Author,
    /// The executive summary.
    pub summary: Vec<Sentence>,
    /// By the name of the scenario in [`About`].
    pub scenarios: BTreeMap<String, Vec<Sentence>>,
    /// The changes from level to level; empty where there is one level.
    pub scaling: Vec<Sentence>,
    /// The uncertainties.
    pub uncertainties: Vec<Sentence>,
    pub recommendations: Vec<Sentence>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Author {
    /// Made from the numbers by rules.
    #[default]
    Rules,
    /// Written by a model and checked.
    Model {
        name: String,
        /// Sentences that are on the page.
        kept: u32,
        /// Rejected sentences by the reason.
        rejected: BTreeMap<String, u32>,
        /// The sections that the model wrote, in its order: `summary`, `recommendations` or the name
        /// of a scenario. The other sections are made by rules.
        sections: Vec<String>,
    },
    /// Made by rules, because no sentence of the model was accepted.
    RulesInstead { name: String, why: String },
}
