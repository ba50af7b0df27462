//! The sentences of an answer, without what models put around them.

use super::{Answer, Question};

/// The most of one answer that is read, and the most sentences of it.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const SENTENCES_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Summary,
    Recommendations,
    /// By its name.
    Scenario(String),
    /// Under a heading that nobody asked for.
    Unknown,
}

/// The words of an answer.
#[derive(Debug, Default)]
pub(super) struct Sentences {
    /// Each with the section that it stands in, as plain text.
    pub(super) read: Vec<(Section, String)>,
    /// Around the report: `Here it is.`
    pub(super) preamble: Vec<String>,
    /// How many are past what is read.
    pub(super) beyond: usize,
}

pub(super) fn sentences(answer: &Answer, scenarios: &[&str]) -> Sentences {
    let (begun, rest) = answer.said.split_at(end_of_reading(&answer.said));
    let mut section = match &answer.question {
        Question::Whole | Question::Page => Section::Summary,
        Question::Scenario(name) => Section::Scenario(name.clone()),
    };
    let mut found = Sentences::default();
    for written in without_reasoning(begun).lines() {
        let line = plain(written);
        if !has_words(&line) {
            continue;
        }
        if is_preamble(&line) {
            found.preamble.extend(split(&line));
        } else if let Some(named) = heading(written, &line, scenarios) {
            match (&answer.question, named) {
                (Question::Whole | Question::Page, named) => section = named,
                (Question::Scenario(own), Section::Scenario(name)) if *own != name => {
                    section = Section::Unknown;
                }
                (Question::Scenario(own), Section::Scenario(_)) => {
                    section = Section::Scenario(own.clone());
                }
                // Other headings within one scenario's answer change nothing.
                (Question::Scenario(_), _) => {}
            }
        } else {
            found.read.extend(split(&line).into_iter().map(|text| (section.clone(), text)));
        }
    }
    let cut = rest.lines().map(plain).filter(|line| has_words(line));
    found.beyond = found.read.len().saturating_sub(SENTENCES_MAX)
        + cut.map(|line| split(&line).len()).sum::<usize>();
    found.read.truncate(SENTENCES_MAX);
    found
}

/// Where the reading of a long answer ends: behind a whole sentence, since half of one may say
/// something else.
fn end_of_reading(text: &str) -> usize {
    let limit = text.floor_char_boundary(ANSWER_BYTES_MAX);
    if limit == text.len() {
        return limit;
    }
    let begun = &text[..limit];
    let stop = [". ", "! ", "? ", "\n"].iter().filter_map(|stop| begun.rfind(stop)).max();
    stop.map_or(0, |stop| stop + 1)
}

/// Drops what stands between `<think>` and `</think>`, all before an end without a beginning, and
/// all after a beginning without an end.
fn without_reasoning(text: &str) -> String {
    const NAMES: [&str; 3] = ["think", "thinking", "reasoning"];
    let mut text = text.to_owned();
    for name in NAMES {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        // Lower-casing ASCII alone keeps the places of all bytes.
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
    let is_numbered = number.len() < bare.len() && number.starts_with([')', '.']);
    match number.strip_prefix(". ").or_else(|| number.strip_prefix(") ")) {
        Some(rest) if is_numbered => rest.trim().to_owned(),
        _ => bare.trim().to_owned(),
    }
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

/// At a full stop before a space; a stop within a number has none behind it.
fn split(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    let stop = |text: &str| {
        text.char_indices()
            .find(|(at, c)| matches!(c, '.' | '!' | '?') && text[at + 1..].starts_with(' '))
            .map(|(at, _)| at)
    };
    while let Some(end) = stop(rest) {
        found.push(rest[..=end].trim().to_owned());
        rest = &rest[end + 2..];
    }
    found.push(rest.trim().to_owned());
    found.retain(|sentence| !sentence.is_empty());
    found
}
