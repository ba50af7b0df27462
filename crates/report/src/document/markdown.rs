//! A document as Markdown for forges, with its charts as files beside it.

mod inline;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::ids::{Ids, anchor};
use super::{Badge, Block, Document, Figure, Lead, Mood, Section, Span, Text};
use crate::chart::{Plot, Theme};
use crate::escape;
use inline::{html, rest, text};

/// The page and the files that it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownReport {
    pub text: String,
    /// The path of each from the page, such as `charts/scaling-light.svg`, and what is in it.
    pub files: Vec<(String, String)>,
}

/// The folder of a page's charts, where no other is named.
pub const CHARTS: &str = "charts";

pub fn render(document: &Document) -> MarkdownReport {
    render_with(document, CHARTS)
}

/// The same, with the charts in another folder beside the page.
pub fn render_with(document: &Document, charts: &str) -> MarkdownReport {
    let charts = charts.to_owned();
    let mut page = Page { linked: linked(document), charts, ..Page::default() };
    page.header(&document.header);
    page.part(format!("# {}", rest(&document.title)));
    page.lead(&document.lead);
    for section in &document.sections {
        page.section(section, 2);
    }
    if !document.footer.is_empty() {
        page.part(format!("---\n\n{}", text(&document.footer)));
    }
    MarkdownReport { text: page.parts.join("\n\n") + "\n", files: page.files }
}

/// A page in the making: its parts have an empty line between them.
#[derive(Debug, Default)]
struct Page {
    parts: Vec<String>,
    files: Vec<(String, String)>,
    ids: Ids,
    /// Of the files.
    names: Ids,
    /// Their folder.
    charts: String,
    /// Where links go: only these places need a name.
    linked: BTreeSet<String>,
}

impl Page {
    fn part(&mut self, text: impl Into<String>) {
        self.parts.push(text.into());
    }

    fn header(&mut self, header: &[(String, String)]) {
        if header.is_empty() {
            return;
        }
        let lines: Vec<String> = header
            .iter()
            .map(|(key, value)| format!("{}: {}", escape::comment(key), escape::comment(value)))
            .collect();
        self.part(format!("<!--\n{}\n-->", lines.join("\n")));
    }

    fn lead(&mut self, lead: &Lead) {
        for (key, value) in &lead.subject {
            self.part(format!("**{}:** {}", rest(key), inline::spans(value)));
        }
        if let Some(badge) = &lead.verdict {
            self.badge(badge);
        }
        if !lead.headline.is_empty() {
            self.part(table::headline(&lead.headline));
        }
    }

    fn badge(&mut self, Badge { mood, word, text: why, points }: &Badge) {
        let words = format!("{} **{}**", sign(*mood), rest(word));
        let why = inline::spans(why);
        self.part(if why.is_empty() { words } else { format!("{words}: {why}") });
        if !points.is_empty() {
            self.part(list(points));
        }
    }

    fn section(&mut self, section: &Section, level: usize) {
        self.place(&section.id);
        if !section.title.is_empty() {
            // Markdown has no seventh level.
            self.part(format!("{} {}", "#".repeat(level.min(6)), rest(&section.title)));
        }
        for block in &section.blocks {
            self.block(block);
        }
        for inner in &section.sections {
            self.section(inner, level + 1);
        }
    }

    /// A name for the next part, where somebody links to it.
    fn place(&mut self, id: &str) {
        let id = self.ids.give(id);
        if self.linked.contains(&id) {
            self.part(format!("<a id=\"{id}\"></a>"));
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(words) => self.part(text(words)),
            Block::Facts(facts) => {
                let lines = facts
                    .iter()
                    .map(|(key, value)| format!("- **{}:** {}", rest(key), inline::spans(value)));
                self.part(lines.collect::<Vec<_>>().join("\n"));
            }
            Block::List(items) => {
                self.part(list(items));
            }
            Block::Table(table) => {
                self.place(&table.id);
                self.parts.extend(table::parts(table));
            }
            Block::Figure(figure) => self.figure(figure),
            Block::Code { language, text } => self.part(fenced(language, text)),
            Block::Notice { mood, text: words, points, remedy } => {
                self.part(notice(*mood, words, points, remedy.as_ref()));
            }
            Block::Verdict(badge) => self.badge(badge),
            Block::Details { summary, blocks } => self.details(summary, |page| {
                for block in blocks {
                    page.block(block);
                }
            }),
        }
    }

    fn figure(&mut self, figure: &Figure) {
        let chart = &figure.chart;
        self.place(&chart.id);
        let name = self.names.give(&chart.id);
        let file = |theme: &str| format!("{}/{name}-{theme}.svg", self.charts);
        let (light, dark) = (file("light"), file("dark"));
        self.part(format!(
            "<picture>\n  <source media=\"(prefers-color-scheme: dark)\" srcset=\"{}\">\n  \
             <img alt=\"{}\" src=\"{}\">\n</picture>",
            link(&dark),
            escape::xml(&chart.finding),
            link(&light),
        ));
        self.files.push((light, chart.to_svg(Theme::Light)));
        self.files.push((dark, chart.to_svg(Theme::Dark)));
        let n = if chart.n.is_empty() { String::new() } else { format!(" ({})", rest(&chart.n)) };
        self.part(format!("**{}.** {}{n}", rest(&chart.title), rest(&chart.finding)));
        if let Some(mermaid) = &figure.mermaid {
            self.part(fenced("mermaid", mermaid));
        }
        // A line for each moment is for spreadsheets.
        if matches!(chart.plot, Plot::Timeline(_) | Plot::HeatMap(_)) {
            return;
        }
        let numbers = chart.table();
        self.details(&format!("The numbers of: {}", chart.title), |page| {
            page.place(&numbers.id);
            page.parts.extend(table::parts(&numbers));
        });
    }

    fn details(&mut self, summary: &str, inside: impl FnOnce(&mut Self)) {
        self.part(format!("<details>\n<summary>{}</summary>", html(summary)));
        inside(self);
        self.part("</details>");
    }
}

/// A path as the page names it: whatever has a meaning in a URL or a list of them is encoded.
pub fn link(path: &str) -> String {
    let mut link = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
                link.push(char::from(byte));
            }
            _ => {
                let _ = write!(link, "%{byte:02X}");
            }
        }
    }
    link
}

/// Text as it is, in a fence that nothing inside can close.
fn fenced(language: &str, text: &str) -> String {
    let text = escape::terminal_lines(text);
    let fence = "`".repeat(inline::longest_run_of_backticks(&text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// As the forges show warnings.
fn notice(mood: Mood, words: &Text, points: &[Text], remedy: Option<&Text>) -> String {
    let kind = match mood {
        Mood::Good => "TIP",
        Mood::Note => "NOTE",
        Mood::Doubt => "WARNING",
        Mood::Bad => "CAUTION",
    };
    let remedy = remedy
        .map_or(String::new(), |words| format!("\n>\n> **What to do:** {}", inline::spans(words)));
    let lines: Vec<String> = points.iter().map(|point| format!("> - {}", text(point))).collect();
    let points =
        if lines.is_empty() { String::new() } else { format!("\n>\n{}", lines.join("\n")) };
    format!("> [!{kind}]\n> {}{points}{remedy}", text(words))
}

fn list(items: &[Text]) -> String {
    let lines: Vec<String> = items.iter().map(|item| format!("- {}", text(item))).collect();
    lines.join("\n")
}

const fn sign(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "✅",
        Mood::Note => "ℹ️",
        Mood::Doubt => "⚠️",
        Mood::Bad => "❌",
    }
}

/// Every place that a link of the document goes to.
fn linked(document: &Document) -> BTreeSet<String> {
    let mut texts: Vec<&Text> = vec![&document.footer];
    texts.extend(document.lead.subject.iter().map(|(_, text)| text));
    if let Some(badge) = &document.lead.verdict {
        texts.extend([&badge.text].into_iter().chain(&badge.points));
    }
    for section in &document.sections {
        texts_of_section(section, &mut texts);
    }
    let links = texts.into_iter().flatten().filter_map(|span| match span {
        Span::Link { to, .. } => Some(anchor(to)),
        Span::Plain(_) | Span::Strong(_) | Span::Code(_) => None,
    });
    links.collect()
}

fn texts_of_section<'a>(section: &'a Section, texts: &mut Vec<&'a Text>) {
    for block in &section.blocks {
        texts_of_block(block, texts);
    }
    for inner in &section.sections {
        texts_of_section(inner, texts);
    }
}

fn texts_of_block<'a>(block: &'a Block, texts: &mut Vec<&'a Text>) {
    match block {
        Block::Paragraph(text) => texts.push(text),
        Block::Facts(facts) => texts.extend(facts.iter().map(|(_, text)| text)),
        Block::List(items) => texts.extend(items),
        Block::Table(table) => texts.extend(&table.notes),
        Block::Notice { text, points, remedy, .. } => {
            texts.extend([text].into_iter().chain(points).chain(remedy));
        }
        Block::Verdict(badge) => texts.extend([&badge.text].into_iter().chain(&badge.points)),
        Block::Details { blocks, .. } => {
            for block in blocks {
                texts_of_block(block, texts);
            }
        }
        Block::Figure(_) | Block::Code { .. } => {}
    }
}
