//! A model writes the page: what it is asked, and what of its answer is believed.
//!
//! The model gets the facts and nothing else. Every sentence of its answer is held against them
//! ([`super::claims`]); what does not hold is dropped and counted. What it said is kept beside the
//! results, so that the same page can be made again without asking; it is checked again then.

mod answer;
mod prompt;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::answer::{Section, sentences};
pub use self::prompt::{prompt, questions};
use super::claims::{Ruling, Scope, check};
use super::{Author, Facts, Narrative, Sentence};
use crate::document::plain;

/// The most sentences of one section that reach a page.
const SECTION_SENTENCES_MAX: usize = 12;

/// What a model is asked to write about at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Everything: where the facts are few.
    Whole,
    /// The summary and the recommendations.
    Page,
    /// By its name.
    Scenario(String),
}

/// What a model said, as it said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub question: Question,
    pub said: String,
}

/// What is stored: who spoke, what was said, and what became of each sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narration {
    pub schema: u32,
    pub model: String,
    pub answers: Vec<Answer>,
    /// Why nothing, or not all, was said.
    pub failure: Option<String>,
    /// For readers; pages are made from a fresh check.
    pub rulings: Vec<Ruled>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruled {
    /// `summary`, `recommendations` or the name of a scenario.
    pub section: String,
    pub sentence: String,
    /// Why it was rejected; null for one that stands on the page.
    pub rejected: Option<String>,
}

pub const SCHEMA: u32 = 1;

impl Narration {
    /// Checks what was said.
    pub fn of(model: &str, answers: Vec<Answer>, failure: Option<String>, facts: &Facts) -> Self {
        let rulings = read(&answers, facts).into_iter().map(Read::ruled).collect();
        Self { schema: SCHEMA, model: model.to_owned(), answers, failure, rulings }
    }

    /// The words of the page: what holds of the model's, and those of the rules where it left
    /// nothing, or where only rules may speak (what is not certain).
    pub fn narrative(&self, facts: &Facts, rules: Narrative) -> Narrative {
        let mut written = Narrative::default();
        let mut rejected: BTreeMap<String, u32> = BTreeMap::new();
        let mut kept = 0;
        for read in read(&self.answers, facts) {
            match read.ruling {
                Ruling::Holds { facts } => {
                    let sentence = Sentence { text: plain(read.text), facts };
                    let section = match read.section {
                        Section::Summary => &mut written.summary,
                        Section::Recommendations => &mut written.recommendations,
                        Section::Scenario(name) => written.scenarios.entry(name).or_default(),
                    };
                    if section.len() < SECTION_SENTENCES_MAX && !section.contains(&sentence) {
                        section.push(sentence);
                        kept += 1;
                    }
                }
                ref ruling @ (Ruling::Fails { .. } | Ruling::Uncheckable { .. }) => {
                    let reason = ruling.rejected().map_or("", |reason| reason.name());
                    *rejected.entry(reason.to_owned()).or_default() += 1;
                }
            }
        }
        if kept == 0 {
            let why = self.why_nothing(rejected.values().sum());
            return Narrative {
                author: Author::RulesInstead { name: self.model.clone(), why },
                ..rules
            };
        }
        let mut scenarios = rules.scenarios;
        scenarios.append(&mut written.scenarios);
        Narrative {
            author: Author::Model { name: self.model.clone(), kept, rejected },
            summary: or(written.summary, rules.summary),
            scenarios,
            recommendations: or(written.recommendations, rules.recommendations),
            ..rules
        }
    }

    fn why_nothing(&self, rejected: u32) -> String {
        match (&self.failure, rejected) {
            (Some(failure), 0) => failure.clone(),
            (None, 0) => "it wrote no sentence".to_owned(),
            (_, 1) => "its one sentence did not stand up to the data".to_owned(),
            (_, several) => format!("none of its {several} sentences stood up to the data"),
        }
    }
}

struct Read {
    section: Section,
    text: String,
    ruling: Ruling,
}

impl Read {
    fn ruled(self) -> Ruled {
        let section = match self.section {
            Section::Summary => "summary".to_owned(),
            Section::Recommendations => "recommendations".to_owned(),
            Section::Scenario(name) => name,
        };
        let rejected = self.ruling.rejected().map(ToString::to_string);
        Ruled { section, sentence: self.text, rejected }
    }
}

fn read(answers: &[Answer], facts: &Facts) -> Vec<Read> {
    let names: Vec<&str> = facts.scenarios().into_iter().filter_map(|(name, _)| name).collect();
    let mut found = Vec::new();
    for answer in answers {
        for (section, text) in sentences(answer, &names) {
            let scope = match &section {
                Section::Summary | Section::Recommendations => Scope::Page,
                Section::Scenario(name) => Scope::Scenario(name),
            };
            let ruling = check(&text, scope, facts);
            found.push(Read { section, text, ruling });
        }
    }
    found
}

fn or(written: Vec<Sentence>, by_rules: Vec<Sentence>) -> Vec<Sentence> {
    if written.is_empty() { by_rules } else { written }
}
