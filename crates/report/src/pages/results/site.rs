//! Results as a fragment of a static site: a page with front matter, the charts as files that it
//! includes, and the raw results as lines of JSON.
//!
//! Site generators look for templates in every file, so braces of names are escaped.

use maud::{PreEscaped, html};

use super::charts::{self, Drawn};
use super::lines::{self, Line};
use super::{PageWords, TITLE, common_facts, limited, marked};
use crate::chart::{Theme, variables};
use crate::pages::prelude::*;

const INDEX: &str = "index.md";
/// Limit of listed results; charts have all.
const MARKED_MAX: usize = 50;

/// Files by their names. `raw` writes a result as one line of JSON.
pub fn site(
    results: &[ToolResult],
    words: &PageWords,
    raw: impl Fn(&ToolResult) -> String,
) -> Vec<(String, String)> {
    let lines = lines::lines(results);
    let drawn = charts::charts(&lines);
    // Lines of JSON, folded away, with an empty one between configurations.
    let parts: Vec<String> = lines
        .iter()
        .map(|line| line.results().map(|result| json_line(&raw(result)) + "\n").collect())
        .collect();
    let page = format!(
        "{}\n<details>\n<summary>Raw benchmark results</summary>\n\n<pre>\n{}</pre>\n\n</details>\n",
        index(results, &lines, words, &drawn),
        parts.join("\n")
    );
    let mut files = vec![(INDEX.to_owned(), page)];
    files.extend(
        drawn.iter().map(|Drawn { chart, file, .. }| (format!("{file}.html"), included(chart))),
    );
    files
}

fn index(results: &[ToolResult], lines: &[Line<'_>], words: &PageWords, drawn: &[Drawn]) -> String {
    let title = words.title.as_deref().unwrap_or(TITLE);
    // In double quotes, YAML reads a backslash as JSON does.
    let quoted = escape::xml(title).replace('\\', "\\\\");
    let mut text = format!("---\nlayout: default\ntitle: \"{}\"\n---\n\n", unbraced(&quoted));
    for (key, value) in common_facts(results, lines) {
        let _ = writeln!(text, "- {key}: {}", worded(&value));
    }
    text.push('\n');
    for Drawn { file, .. } in drawn {
        let _ = writeln!(text, "{{% include_relative {file}.html %}}");
    }
    let reservations = marked(lines).into_iter().filter(|(_, mark)| mark.is_reservation());
    let reservations: Vec<Text> = reservations.map(|(text, _)| text).collect();
    if !reservations.is_empty() {
        text += "\nHollow marks are results with reservations:\n\n";
    }
    for words in limited(reservations.into_iter(), MARKED_MAX) {
        let _ = writeln!(text, "- {}", markdown(&words));
    }
    text
}

fn markdown(words: &Text) -> String {
    let span = |span: &Span| match span {
        Span::Strong(text) => format!("**{}**", worded(text)),
        Span::Plain(text) | Span::Code(text) | Span::Link { text, .. } => worded(text),
    };
    words.iter().map(span).collect()
}

/// One line whose strings have nothing that HTML or a template would interpret. Two braces, or a brace and
/// a per cent, are adjacent only inside a string.
fn json_line(json: &str) -> String {
    let joined: String = json.lines().collect();
    let safe = escape::json_in_html(&joined);
    let next = safe.chars().skip(1).map(Some).chain([None]);
    let mut line = String::with_capacity(safe.len());
    for (character, next) in safe.chars().zip(next) {
        match (character, next) {
            ('{', Some('{' | '%' | '#')) => line.push_str("\\u007b"),
            _ => line.push(character),
        }
    }
    line
}

/// A chart with its texts, its table and its colours, for any page.
fn included(chart: &Chart) -> String {
    let colours = variables(Theme::Site).filter(|(name, _)| !name.starts_with("--heat"));
    let colours = colours.map(|(name, value)| format!("{name}:{value}")).join(";");
    let safe = |text: &str| PreEscaped(escape::xml(text));
    let numbers = chart.table();
    let text = html! {
        figure.inferometer-chart style=(format!("{colours};{FRAME}")) {
            figcaption { strong { (safe(&chart.title)) } br; (safe(&chart.finding)) }
            div style=(SCROLLED) {
                div style="min-width:34rem" { (PreEscaped(chart.to_svg(Theme::Site))) }
            }
            p { (safe(&chart.n)) }
            details {
                summary { "The numbers as a table" }
                div style="overflow-x:auto" {
                    table {
                        thead { tr {
                            @for column in &numbers.columns { th scope="col" { (safe(&column.title)) } }
                        } }
                        tbody {
                            @for row in &numbers.rows { tr { @for cell in row {
                                td title=[cell.detail.as_deref().map(safe)] {
                                    (safe(&cell.text)) @if cell.doubtful { " ○" }
                                }
                            } } }
                        }
                    }
                }
            }
        }
    };
    // An empty line would end the markup where Markdown is around it.
    unbraced(&text.0.lines().filter(|line| !line.trim().is_empty()).join("\n")) + "\n"
}

/// A shadow at an edge that can be scrolled: a phone shows no scroll bar there.
const SCROLLED: &str = "overflow-x:auto;scrollbar-width:thin;background:\
                        linear-gradient(to right,var(--surface) 30%,transparent) left/2.5rem 100% \
                        no-repeat local,linear-gradient(to left,var(--surface) 30%,transparent) \
                        right/2.5rem 100% no-repeat local,linear-gradient(to right,var(--frame),\
                        transparent) left/0.5rem 100% no-repeat scroll,linear-gradient(to left,\
                        var(--frame),transparent) right/0.5rem 100% no-repeat scroll,var(--surface)";

/// With a background, so that it is readable on any page.
const FRAME: &str = "background:var(--surface);color:var(--ink);max-width:56rem;margin:1.5rem 0;\
                     padding:1rem;font:15px/1.45 system-ui,sans-serif";

/// Words of Markdown. Not every builder knows a tag by its backslash.
fn worded(text: &str) -> String {
    unbraced(&escape::markdown(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")
}

/// For HTML and Markdown, where a brace has a name.
fn unbraced(text: &str) -> String {
    text.replace('{', "&#123;").replace('}', "&#125;")
}
