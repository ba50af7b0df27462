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

use self::answer::{Section, Sentences, sentences};
pub use self::prompt::{prompt, questions};
use super::claims::{Reason, Ruling, Scope, check};
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
        let mut sections: Vec<String> = Vec::new();
        let mut kept = 0;
        for read in read(&self.answers, facts) {
            let facts = match read.outcome {
                Ok(facts) => facts,
                Err(dropped) => {
                    *rejected.entry(dropped.name().to_owned()).or_default() += read.sentences;
                    continue;
                }
            };
            let name = read.section.name();
            let section = match read.section {
                Section::Summary => &mut written.summary,
                Section::Recommendations => &mut written.recommendations,
                Section::Scenario(name) => written.scenarios.entry(name).or_default(),
                // What stands there is dropped when it is read.
                Section::Unknown => continue,
            };
            section.push(Sentence { text: plain(read.text), facts });
            kept += 1;
            if !sections.contains(&name) {
                sections.push(name);
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
            author: Author::Model { name: self.model.clone(), kept, rejected, sections },
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

/// What became of a sentence, or of several that are told together.
struct Read {
    section: Section,
    text: String,
    sentences: u32,
    /// The facts that it rests on, or why it is not on the page.
    outcome: Result<Vec<usize>, Dropped>,
}

enum Dropped {
    /// By the checker.
    Ruled(Reason),
    UnknownSection,
    Twice,
    SectionFull,
    Preamble,
    Beyond,
}

impl Dropped {
    /// What it is counted under.
    const fn name(&self) -> &'static str {
        match self {
            Self::Ruled(reason) => reason.name(),
            Self::UnknownSection => "under a heading that the page does not have",
            Self::Twice => "said before in the same section",
            Self::SectionFull => "more than a section has room for",
            Self::Preamble => "words around the report",
            Self::Beyond => "past what is read of one answer",
        }
    }
}

impl Section {
    fn name(&self) -> String {
        match self {
            Self::Summary => "summary".to_owned(),
            Self::Recommendations => "recommendations".to_owned(),
            Self::Scenario(name) => name.clone(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

impl Read {
    fn dropped(text: String, sentences: usize, dropped: Dropped) -> Self {
        let sentences = u32::try_from(sentences).unwrap_or(u32::MAX);
        Self { section: Section::Unknown, text, sentences, outcome: Err(dropped) }
    }

    fn ruled(self) -> Ruled {
        let rejected = self.outcome.err().map(|dropped| {
            let name = dropped.name();
            if let Dropped::Ruled(reason) = dropped { reason.to_string() } else { name.to_owned() }
        });
        Ruled { section: self.section.name(), sentence: self.text, rejected }
    }
}

/// Every sentence that was written is in it once: on the page, or dropped for a reason.
fn read(answers: &[Answer], facts: &Facts) -> Vec<Read> {
    let names: Vec<&str> = facts.scenarios().into_iter().filter_map(|(name, _)| name).collect();
    let mut found: Vec<Read> = Vec::new();
    for answer in answers {
        let Sentences { read, preamble, beyond } = sentences(answer, &names);
        for text in preamble {
            found.push(Read::dropped(text, 1, Dropped::Preamble));
        }
        for (section, text) in read {
            let outcome = outcome(&section, &text, &found, facts);
            found.push(Read { section, text, sentences: 1, outcome });
        }
        if 0 < beyond {
            found.push(Read::dropped(format!("{beyond} more"), beyond, Dropped::Beyond));
        }
    }
    found
}

fn outcome(
    section: &Section,
    text: &str,
    before: &[Read],
    facts: &Facts,
) -> Result<Vec<usize>, Dropped> {
    let scope = match section {
        Section::Summary | Section::Recommendations => Scope::Page,
        Section::Scenario(name) => Scope::Scenario(name),
        Section::Unknown => return Err(Dropped::UnknownSection),
    };
    let rests = match check(text, scope, facts) {
        Ruling::Holds { facts } => facts,
        Ruling::Uncheckable { reason } => return Err(Dropped::Ruled(reason)),
        Ruling::Fails { reasons } => {
            let first = reasons.into_iter().next();
            return Err(Dropped::Ruled(first.unwrap_or(Reason::NoClaim)));
        }
    };
    let kept = || before.iter().filter(|read| read.outcome.is_ok() && read.section == *section);
    if kept().any(|read| read.text == text) {
        return Err(Dropped::Twice);
    }
    if SECTION_SENTENCES_MAX <= kept().count() {
        return Err(Dropped::SectionFull);
    }
    Ok(rests)
}

fn or(written: Vec<Sentence>, by_rules: Vec<Sentence>) -> Vec<Sentence> {
    if written.is_empty() { by_rules } else { written }
}
