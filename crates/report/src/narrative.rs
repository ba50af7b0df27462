//! What the numbers say, in sentences.
//!
//! [`Facts`] are the numbers of a page, each with its subject, its unit and the table where it
//! stands. Sentences are made from them by rules, or by a model whose every sentence is checked
//! against them before it reaches a page.

pub mod claims;
pub mod facts;
pub mod findings;
pub mod narrator;

use std::collections::BTreeMap;

use inferometer_analysis::Better;

use crate::document::Text;

/// All that a page knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub facts: Vec<Fact>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub about: About,
    pub value: f64,
    /// As the table has it, such as `1,082.2`.
    pub printed: String,
    pub unit: FactUnit,
    pub better: Better,
    /// Where the true value lies; `None` where nobody knows.
    pub interval: Option<(f64, f64)>,
    /// The id of the table where it stands.
    pub table: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactUnit {
    Milliseconds,
    Seconds,
    TokensPerSecond,
    RequestsPerSecond,
    Tokens,
    Requests,
    /// From 0 to 1.
    Share,
    Watts,
    JoulesPerToken,
    TokensPerJoule,
    /// A plain number, such as a concurrency.
    Number,
}

/// What a number is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// As the page has it, such as `Concurrency Scaling (c=4)`; `None` for the whole page.
    pub scenario: Option<String>,
    /// Of the level, where the scenario has one.
    pub concurrency: Option<u32>,
    /// The name of a metric, such as `ttft`, or another number of the page, such as
    /// `input_tokens`, `requests` or `concurrency`.
    pub quantity: String,
    /// Such as `mean` or `p99`; `None` for a single number.
    pub statistic: Option<String>,
}

/// One statement with where its numbers stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence {
    pub text: Text,
    /// The facts that it rests on, by their places in [`Facts`].
    pub facts: Vec<usize>,
}

/// The words of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrative {
    pub author: Author,
    /// The executive summary.
    pub summary: Vec<Sentence>,
    /// By the name of the scenario as [`About`] has it.
    pub scenarios: BTreeMap<String, Vec<Sentence>>,
    /// What changes from level to level; empty where nothing is varied.
    pub scaling: Vec<Sentence>,
    /// What is not certain.
    pub uncertainties: Vec<Sentence>,
    pub recommendations: Vec<Sentence>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Author {
    /// Made from the numbers by rules.
    #[default]
    Rules,
    /// Written by a model, and checked.
    Model {
        name: String,
        /// Sentences that stand on the page.
        kept: u32,
        /// Sentences that do not, by the reason.
        rejected: BTreeMap<String, u32>,
        /// What the model wrote, in its order: `summary`, `recommendations` or the name of a
        /// scenario. The rest of the page is by rules.
        sections: Vec<String>,
    },
    /// Made by rules because the model that was asked wrote nothing that stands.
    RulesInstead { name: String, why: String },
}
