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
}

/// Each sentence with the section that it stands in, as plain text.
pub(super) fn sentences(answer: &Answer, scenarios: &[&str]) -> Vec<(Section, String)> {
    let text = without_reasoning(beginning(&answer.said, ANSWER_BYTES_MAX));
    let mut section = match &answer.question {
        Question::Whole | Question::Page => Section::Summary,
        Question::Scenario(name) => Section::Scenario(name.clone()),
    };
    let mut found = Vec::new();
    for line in text.lines() {
        let line = plain(line);
        if line.is_empty() || is_preamble(&line) {
            continue;
        }
        match (heading(&line, scenarios), &answer.question) {
            (Some(named), Question::Whole | Question::Page) => section = named,
            // Headings within one scenario's answer change nothing.
            (Some(_), Question::Scenario(_)) => {}
            (None, _) => {
                found.extend(split(&line).into_iter().map(|text| (section.clone(), text)));
            }
        }
    }
    found.truncate(SENTENCES_MAX);
    found
}

fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
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

/// A line without the marks of Markdown.
fn plain(line: &str) -> String {
    let kept: String = line.chars().filter(|c| !matches!(c, '*' | '`' | '_' | '#')).collect();
    let line = kept.trim();
    let bare = line.trim_start_matches(['-', '+', '\u{2022}', '>', '|']).trim_start();
    let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < bare.len() && number.starts_with([')', '.']);
    match number.strip_prefix(". ").or_else(|| number.strip_prefix(") ")) {
        Some(rest) if is_numbered => rest.trim().to_owned(),
        _ => bare.trim().to_owned(),
    }
}

/// `Here is the report:` and the like, which is no part of it.
fn is_preamble(line: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["here is", "here are", "here's", "sure", "certainly", "okay", "of course", "let me"];
    let lower = line.to_lowercase();
    BEGINNINGS.iter().any(|beginning| lower.starts_with(beginning))
        || matches!(lower.as_str(), "json" | "markdown" | "text")
        || !line.chars().any(char::is_alphabetic)
}

fn heading(line: &str, scenarios: &[&str]) -> Option<Section> {
    let title = line.trim_end_matches(':').trim().to_lowercase();
    match title.as_str() {
        "summary" | "executive summary" => return Some(Section::Summary),
        "recommendations" | "recommendation" => return Some(Section::Recommendations),
        _ => {}
    }
    let title = title
        .strip_prefix("scenario")
        .map_or(title.as_str(), |rest| rest.trim_start_matches([':', ' ']));
    let named = scenarios.iter().find(|name| name.to_lowercase() == title)?;
    Some(Section::Scenario((*named).to_owned()))
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
