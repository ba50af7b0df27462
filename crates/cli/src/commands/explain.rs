//! `inferometer explain`: what a metric or a word means, here and elsewhere.

use std::process::ExitCode;

use inferometer_analysis::Topic;
use inferometer_report::{escape, explain};
use serde_json::Value;

use super::style;
use crate::arguments::ExplainArguments;
use crate::failure::{Failure, Result};
use crate::output;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<ExitCode> {
    let topics = topics(&arguments.words)?;
    let page = |(asked, topic): &(String, Topic)| {
        // Characters of what was typed, on the page.
        explain::page(&escape::terminal_line(asked, 60), topic, style())
    };
    let document = |(asked, topic): &(String, Topic)| explain::document(asked, topic);
    let text = match (topics.as_slice(), arguments.json) {
        ([], true) => format!("{:#}\n", explain::list_document()),
        ([], false) => explain::list(style()),
        ([one], true) => format!("{:#}\n", document(one)),
        (several, true) => {
            let documents: Vec<Value> = several.iter().map(document).collect();
            format!("{:#}\n", explain::documents(&documents))
        }
        (all, false) => all.iter().map(page).collect::<Vec<_>>().join("\n"),
    };
    output::result(&text)
}

/// Each with the words that asked for it. As many as make one name belong together and need no
/// quotes: `explain sweet spot` is one, `explain knee ttft` are two.
fn topics(words: &[String]) -> Result<Vec<(String, Topic)>> {
    let mut topics = Vec::new();
    let mut rest = words;
    while !rest.is_empty() {
        let mut longest_first = (1..=rest.len()).rev();
        let found = longest_first.find_map(|count| {
            let asked = rest[..count].join(" ");
            Topic::look_up(&asked).ok().map(|topic| (count, asked, topic))
        });
        let Some((count, asked, topic)) = found else { return Err(unknown(rest)) };
        topics.push((asked, topic));
        rest = &rest[count..];
    }
    Ok(topics)
}

/// All of it may be one misspelt name; otherwise its first word is unknown.
fn unknown(words: &[String]) -> Failure {
    let whole = Topic::look_up(&words.join(" ")).err().filter(|problem| problem.nearest.is_some());
    let first = || words.first().and_then(|word| Topic::look_up(word).err());
    let said = whole.or_else(first).map_or_else(String::new, |problem| problem.to_string());
    Failure::usage(said).hint("inferometer explain lists all names")
}
