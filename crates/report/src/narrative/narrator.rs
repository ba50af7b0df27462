//! A model writes the page: the questions to it, and the check of its answers.
//!
//! The model gets the facts and nothing else. Every sentence of its answer is checked against them
//! ([`super::claims`]); sentences that fail are dropped and counted. The answers are stored beside the
//! results, so that the same page can be made again without the model; they are checked again then.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use inferometer_analysis::{Unit, metric};
use serde::{Deserialize, Serialize};

use super::claims::{Ruling, Scope, check, quantity_name};
use super::{Author, Fact, FactUnit, Facts, Narrative, Sentence};
use crate::document;
use crate::fmt::Join;

/// The most sentences of one section that reach a page.
const SECTION_SENTENCES_MAX: usize = 12;
/// The most of one answer that is read, and the most sentences of it.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const SENTENCES_MAX: usize = 200;
/// Facts of more bytes than this are asked about scenario by scenario.
const WHOLE_BYTES_MAX: usize = 16 << 10;

/// The part of a page that one request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// The whole page, where the facts are few.
    Whole,
    /// The summary and the recommendations.
    Page,
    /// By its name.
    Scenario(String),
}

/// The answer of a model as it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub question: Question,
    pub said: String,
}

/// The stored file: the model, its answers, and the verdict on each sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narration {
    pub schema: u32,
    pub model: String,
    pub answers: Vec<Answer>,
    /// Why there is no answer, or not every one.
    pub failure: Option<String>,
    /// For readers; pages are made from a fresh check.
    pub rulings: Vec<Ruled>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruled {
    /// `summary`, `recommendations` or the name of a scenario.
    pub section: String,
    pub sentence: String,
    /// Why it was rejected; null for one that is on the page.
    pub rejected: Option<String>,
}

pub const SCHEMA: u32 = 1;

impl Narration {
    /// Checks the answers.
    pub fn new(model: &str, answers: Vec<Answer>, failure: Option<String>, facts: &Facts) -> Self {
        let ruled = |read: ReadSentence| Ruled {
            section: read.section.name().to_owned(),
            sentence: read.text,
            rejected: read.outcome.err().map(|(_, reason)| reason),
        };
        let rulings = read_answers(&answers, facts).into_iter().map(ruled).collect();
        Self { schema: SCHEMA, model: model.to_owned(), answers, failure, rulings }
    }

    /// The sentences of the page: those of the model that hold, and those of the rules in sections
    /// where none does, and in the sections that only rules write (uncertainties).
    pub fn narrative(&self, facts: &Facts, rules: Narrative) -> Narrative {
        let mut written = Narrative::default();
        let mut rejected: BTreeMap<String, u32> = BTreeMap::new();
        let mut sections: Vec<String> = Vec::new();
        let mut kept = 0;
        for read in read_answers(&self.answers, facts) {
            let facts = match read.outcome {
                Ok(facts) => facts,
                Err((counted_as, _)) => {
                    let sentences = u32::try_from(read.sentences).unwrap_or(u32::MAX);
                    *rejected.entry(counted_as.to_owned()).or_default() += sentences;
                    continue;
                }
            };
            let name = read.section.name().to_owned();
            let section = match read.section {
                Section::Summary => &mut written.summary,
                Section::Recommendations => &mut written.recommendations,
                Section::Scenario(name) => written.scenarios.entry(name).or_default(),
                // Such sentences are rejected when they are read.
                Section::Unknown => continue,
            };
            section.push(Sentence { text: document::plain(read.text), facts });
            kept += 1;
            if !sections.contains(&name) {
                sections.push(name);
            }
        }
        let name = self.model.clone();
        if kept == 0 {
            let why = match (&self.failure, rejected.values().sum()) {
                (Some(failure), 0) => failure.clone(),
                (None, 0) => "it wrote no sentence".to_owned(),
                (_, 1) => "its one sentence failed the check against the data".to_owned(),
                (_, several) => format!("none of its {several} sentences passed the check"),
            };
            return Narrative { author: Author::RulesInstead { name, why }, ..rules };
        }
        let or = |written: Vec<Sentence>, by_rules| {
            if written.is_empty() { by_rules } else { written }
        };
        let mut scenarios = rules.scenarios;
        scenarios.append(&mut written.scenarios);
        Narrative {
            author: Author::Model { name, kept, rejected, sections },
            summary: or(written.summary, rules.summary),
            scenarios,
            recommendations: or(written.recommendations, rules.recommendations),
            ..rules
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Section {
    Summary,
    Recommendations,
    /// By its name.
    Scenario(String),
    /// Under a heading that was not requested.
    Unknown,
}

impl Section {
    fn name(&self) -> &str {
        match self {
            Self::Summary => "summary",
            Self::Recommendations => "recommendations",
            Self::Scenario(name) => name,
            Self::Unknown => "unknown",
        }
    }
}

/// A sentence, or several that are counted together, with its verdict.
struct ReadSentence {
    section: Section,
    text: String,
    sentences: usize,
    /// The facts that it rests on, or why it is not on the page: the reason that it is counted under,
    /// and the whole reason.
    outcome: Result<Vec<usize>, (&'static str, String)>,
}

/// Every sentence of the answers is in it once: on the page, or rejected for a reason.
fn read_answers(answers: &[Answer], facts: &Facts) -> Vec<ReadSentence> {
    let names: Vec<&str> = facts.scenarios().into_iter().filter_map(|(name, _)| name).collect();
    let dropped = |text: String, sentences: usize, why: &'static str| {
        let outcome = Err((why, why.to_owned()));
        ReadSentence { section: Section::Unknown, text, sentences, outcome }
    };
    let mut found: Vec<ReadSentence> = Vec::new();
    for answer in answers {
        let (read, preamble, beyond) = sentences(answer, &names);
        found.extend(preamble.into_iter().map(|text| dropped(text, 1, "text around the report")));
        for (section, text) in read {
            let outcome = check_sentence(&section, &text, &found, facts);
            found.push(ReadSentence { section, text, sentences: 1, outcome });
        }
        if 0 < beyond {
            let why = "beyond the part of an answer that is read";
            found.push(dropped(format!("{beyond} more"), beyond, why));
        }
    }
    found
}

fn check_sentence(
    section: &Section,
    text: &str,
    before: &[ReadSentence],
    facts: &Facts,
) -> Result<Vec<usize>, (&'static str, String)> {
    let rejected = |why: &'static str| Err((why, why.to_owned()));
    let scope = match section {
        Section::Summary | Section::Recommendations => Scope::Page,
        Section::Scenario(name) => Scope::Scenario(name),
        Section::Unknown => return rejected("under a heading that the page does not have"),
    };
    let reason = match check(text, scope, facts) {
        Ruling::Holds { facts } => Ok(facts),
        Ruling::Uncheckable { reason } => Err(reason),
        Ruling::Fails { mut reasons } => Err(reasons.swap_remove(0)),
    };
    let rests = reason.map_err(|reason| (reason.kind.name(), reason.to_string()))?;
    let kept = || before.iter().filter(|read| read.outcome.is_ok() && read.section == *section);
    if kept().any(|read| read.text == text) {
        return rejected("repeated in the same section");
    }
    if SECTION_SENTENCES_MAX <= kept().count() {
        return rejected("more sentences than a section may have");
    }
    Ok(rests)
}

/// The sentences of an answer as plain text, each with its section; those around the report (`Here it
/// is.`); and how many are beyond the part that is read.
fn sentences(answer: &Answer, scenarios: &[&str]) -> (Vec<(Section, String)>, Vec<String>, usize) {
    let (begun, rest) = answer.said.split_at(end_of_reading(&answer.said));
    let own = match &answer.question {
        Question::Whole | Question::Page => None,
        Question::Scenario(name) => Some(Section::Scenario(name.clone())),
    };
    let mut section = own.clone().unwrap_or(Section::Summary);
    let (mut read, mut preamble) = (Vec::new(), Vec::new());
    for written in without_reasoning(begun).lines() {
        let line = plain(written);
        if !has_words(&line) {
            continue;
        }
        if is_preamble(&line) {
            preamble.extend(split(&line));
        } else if let Some(named) = heading(written, &line, scenarios) {
            match (&own, named) {
                (None, named) => section = named,
                (Some(own), named @ Section::Scenario(_)) => {
                    section = if named == *own { named } else { Section::Unknown };
                }
                // Other headings within one scenario's answer change nothing.
                (Some(_), _) => {}
            }
        } else {
            read.extend(split(&line).into_iter().map(|text| (section.clone(), text)));
        }
    }
    let cut = rest.lines().map(plain).filter(|line| has_words(line));
    let cut: usize = cut.map(|line| split(&line).len()).sum();
    let beyond = read.len().saturating_sub(SENTENCES_MAX) + cut;
    read.truncate(SENTENCES_MAX);
    (read, preamble, beyond)
}

/// Where the reading of a long answer ends: behind a whole sentence, since half of one may have another
/// meaning.
fn end_of_reading(text: &str) -> usize {
    let limit = text.floor_char_boundary(ANSWER_BYTES_MAX);
    if limit == text.len() {
        return limit;
    }
    let begun = &text[..limit];
    let stop = [". ", "! ", "? ", "\n"].iter().filter_map(|stop| begun.rfind(stop)).max();
    stop.map_or(0, |stop| stop + 1)
}

/// Drops the text between `<think>` and `</think>`, all before an end without a beginning, and
/// all after a beginning without an end.
fn without_reasoning(text: &str) -> String {
    let mut text = text.to_owned();
    for name in ["think", "thinking", "reasoning"] {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        // Lower-casing ASCII alone keeps the positions of all bytes.
        let lower = |text: &str| text.to_ascii_lowercase();
        while let Some(end) = lower(&text).find(&close) {
            let start = lower(&text[..end]).find(&open).unwrap_or(0);
            text.replace_range(start..end + close.len(), "\n");
        }
        if let Some(start) = lower(&text).find(&open) {
            text.truncate(start);
        }
    }
    text
}

/// A line without the marks of Markdown; within a word they belong to it, as in `rag_8k`.
fn plain(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric())
    };
    let is_mark = |at: usize| match characters[at] {
        '`' => true,
        '*' | '_' | '#' => !(is_letter(at.checked_sub(1)) && is_letter(Some(at + 1))),
        _ => false,
    };
    let kept: String =
        (0..characters.len()).filter(|at| !is_mark(*at)).map(|at| characters[at]).collect();
    let line = kept.trim();
    let bare = line.trim_start_matches(['-', '+', '\u{2022}', '>', '|']).trim_start();
    let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = number.strip_prefix(". ").or_else(|| number.strip_prefix(") "));
    rest.filter(|_| number.len() < bare.len()).unwrap_or(bare).trim().to_owned()
}

/// Lines and fences of Markdown have none.
fn has_words(line: &str) -> bool {
    line.chars().any(char::is_alphabetic) && !matches!(line, "json" | "markdown" | "text")
}

/// `Here is the report:` and the like, which is no part of it.
fn is_preamble(line: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["here is", "here are", "here's", "sure", "certainly", "okay", "of course", "let me"];
    let lower = line.to_lowercase();
    BEGINNINGS.iter().any(|beginning| {
        lower.strip_prefix(beginning).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    })
}

/// The section that a line begins; unknown for a heading of something else.
fn heading(written: &str, line: &str, scenarios: &[&str]) -> Option<Section> {
    let title = line.trim_end_matches(':').trim().to_lowercase();
    match title.as_str() {
        "summary" | "executive summary" => return Some(Section::Summary),
        "recommendations" | "recommendation" => return Some(Section::Recommendations),
        _ => {}
    }
    let named = title.strip_prefix("scenario:").map(str::trim);
    let name = named.or_else(|| title.strip_prefix("scenario ")).unwrap_or(&title);
    let is_it =
        |scenario: &&&str| [name, &title].contains(&plain(scenario).to_lowercase().as_str());
    if let Some(scenario) = scenarios.iter().find(is_it) {
        return Some(Section::Scenario((**scenario).to_owned()));
    }
    let is_heading = named.is_some() || written.trim_start().starts_with('#');
    is_heading.then_some(Section::Unknown)
}

/// At a space behind a full stop; a stop within a number has none behind it.
fn split(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut before = ' ';
    for character in line.chars() {
        if character == ' ' && matches!(before, '.' | '!' | '?') {
            found.push(String::new());
        }
        found.last_mut().into_iter().for_each(|sentence| sentence.push(character));
        before = character;
    }
    let trimmed = found.iter().map(|sentence| sentence.trim().to_owned());
    trimmed.filter(|sentence| !sentence.is_empty()).collect()
}

/// The facts for the page as a whole, where the facts are many.
static HEADLINES: [(&str, Option<&str>); 6] = [
    ("sweet_spot", None),
    ("concurrency", None),
    (metric::OUTPUT_THROUGHPUT.name, None),
    (metric::PER_USER_THROUGHPUT.name, None),
    (metric::TTFT.name, Some("p99")),
    (metric::TPOT.name, Some("p99")),
];

const RULES: &str = include_str!("narrator/rules.md");

/// The questions to the model, so that none is too long.
pub fn questions(facts: &Facts) -> Vec<Question> {
    if table(facts, |_| true).len() <= WHOLE_BYTES_MAX {
        return vec![Question::Whole];
    }
    let scenarios = facts.scenarios().into_iter().filter_map(|(name, _)| name);
    let scenarios = scenarios.map(|name| Question::Scenario(name.to_owned()));
    std::iter::once(Question::Page).chain(scenarios).collect()
}

pub fn prompt(facts: &Facts, question: &Question) -> String {
    let (asked, table) = match question {
        Question::Whole => (
            "Write three sections with exactly these headings, and a hyphen before each \
             sentence.\nSUMMARY\n(3 to 6 sentences)\nSCENARIO: name as in the facts\n(2 to 5 \
             sentences, one such section for each scenario)\nRECOMMENDATIONS\n(1 to 3 sentences)"
                .to_owned(),
            table(facts, |_| true),
        ),
        Question::Page => (
            "Write two sections with exactly these headings, and a hyphen before each \
             sentence.\nSUMMARY\n(3 to 6 sentences)\nRECOMMENDATIONS\n(1 to 3 sentences)"
                .to_owned(),
            table(facts, |fact| fact.about.scenario.is_none() || is_headline(fact)),
        ),
        Question::Scenario(name) => (
            format!("Write 2 to 5 sentences about {name}, a hyphen before each."),
            table(facts, |fact| fact.about.scenario.as_ref() == Some(name) || is_headline(fact)),
        ),
    };
    format!("{RULES}\n{asked}\n\nFACTS\n{table}")
}

fn is_headline(fact: &Fact) -> bool {
    let about = &fact.about;
    HEADLINES.contains(&(about.quantity.as_str(), about.statistic.as_deref()))
}

/// One line for each scenario, with the quantities that the checker knows.
fn table(facts: &Facts, is_shown: impl Fn(&Fact) -> bool) -> String {
    let mut text = String::new();
    for (scenario, _) in facts.scenarios() {
        let own = facts.facts.iter().filter(|fact| fact.about.scenario.as_deref() == scenario);
        if let Some(shown) = own.filter(|fact| is_shown(fact)).filter_map(words).try_join("; ") {
            let _ = writeln!(text, "{}: {shown}", scenario.unwrap_or("The whole page"));
        }
    }
    text
}

fn words(fact: &Fact) -> Option<String> {
    let name = quantity_name(&fact.about.quantity)?;
    let statistic = match fact.about.statistic.as_deref() {
        None => "",
        Some("p50") => " median",
        Some("mean") => " mean",
        Some("p99") => " p99",
        Some(_) => return None,
    };
    // Tokens and requests are part of the name.
    let is_named = matches!(fact.unit, FactUnit::Tokens | FactUnit::Metric(Unit::Requests));
    let unit = if is_named { String::new() } else { fact.unit.suffix() };
    Some(format!("{name}{statistic} {}{unit}", fact.printed))
}
