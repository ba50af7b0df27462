//! A document as Markdown for forges, with its charts as files beside it.

use std::fmt::Write as _;

use super::{
    Align, Badge, Block, Card, Cell, Column, Document, Figure, Ids, Mood, Section, Span, Table,
    Text, anchor,
};
use crate::chart::{Plot, Theme};
use crate::escape;
use crate::fmt::Join;

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
    let mut page = Page { charts: charts.to_owned(), ..Page::default() };
    if !document.header.is_empty() {
        let comment = |(key, value): &(String, String)| {
            format!("{}: {}", escape::comment(key), escape::comment(value))
        };
        page.part(format!("<!--\n{}\n-->", lines(&document.header, comment)));
    }
    page.part(format!("# {}", rest(&document.title)));
    for (key, value) in &document.lead.subject {
        page.part(format!("**{}:** {}", rest(key), spans(value)));
    }
    if let Some(badge) = &document.lead.verdict {
        page.badge(badge);
    }
    if !document.lead.headline.is_empty() {
        page.part(headline(&document.lead.headline));
    }
    for section in &document.sections {
        page.section(section, 2);
    }
    if !document.footer.is_empty() {
        page.part(format!("---\n\n{}", text(&document.footer)));
    }
    // Only the places that are linked to need a name.
    let page_text = page.parts.join("\n\n");
    page.parts.retain(|part| {
        let id = part.strip_prefix("<a id=\"").and_then(|rest| rest.strip_suffix("\"></a>"));
        id.is_none_or(|id| page_text.contains(&format!("](#{id})")))
    });
    MarkdownReport { text: page.parts.join("\n\n") + "\n", files: page.files }
}

fn lines<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    items.iter().map(line).join("\n")
}

/// A page in the making: its parts have an empty line between them.
#[derive(Debug, Default)]
struct Page {
    parts: Vec<String>,
    files: Vec<(String, String)>,
    ids: Ids,
    /// The names of the files.
    names: Ids,
    /// The folder of the files.
    charts: String,
}

impl Page {
    fn part(&mut self, text: impl Into<String>) {
        self.parts.push(text.into());
    }

    fn badge(&mut self, Badge { mood, word, text: why, points }: &Badge) {
        let sign = match mood {
            Mood::Good => "✅",
            Mood::Note => "ℹ️",
            Mood::Doubt => "⚠️",
            Mood::Bad => "❌",
        };
        let verdict = format!("{sign} **{}**", rest(word));
        let why = spans(why);
        self.part(if why.is_empty() { verdict } else { format!("{verdict}: {why}") });
        if !points.is_empty() {
            self.part(lines(points, |point| format!("- {}", text(point))));
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

    /// A name for the next part.
    fn place(&mut self, id: &str) {
        let id = self.ids.give(id);
        self.part(format!("<a id=\"{id}\"></a>"));
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(words) => self.part(text(words)),
            Block::Facts(facts) => {
                let fact = |(key, value): &(String, Text)| {
                    format!("- **{}:** {}", rest(key), spans(value))
                };
                self.part(lines(facts, fact));
            }
            Block::List(items) => self.part(lines(items, |item| format!("- {}", text(item)))),
            Block::Table(table) => self.table(table),
            Block::Figure(figure) => self.figure(figure),
            Block::Code { language, text } => self.part(fenced(language, text)),
            Block::Notice { mood, text: words, points, remedy } => {
                // As the forges show warnings.
                let kind = match mood {
                    Mood::Good => "TIP",
                    Mood::Note => "NOTE",
                    Mood::Doubt => "WARNING",
                    Mood::Bad => "CAUTION",
                };
                let mut notice = format!("> [!{kind}]\n> {}", text(words));
                if !points.is_empty() {
                    let points = lines(points, |point| format!("> - {}", text(point)));
                    let _ = write!(notice, "\n>\n{points}");
                }
                if let Some(remedy) = remedy {
                    let _ = write!(notice, "\n>\n> **What to do:** {}", spans(remedy));
                }
                self.part(notice);
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
        let [light, dark] =
            ["light", "dark"].map(|theme| format!("{}/{name}-{theme}.svg", self.charts));
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
        if !matches!(chart.plot, Plot::Timeline(_) | Plot::HeatMap(_)) {
            let summary = format!("The numbers of: {}", chart.title);
            self.details(&summary, |page| page.table(&chart.table()));
        }
    }

    fn details(&mut self, summary: &str, inside: impl FnOnce(&mut Self)) {
        // In HTML inside Markdown no user may be mentioned either.
        let summary = escape::xml(summary).replace('@', "@&#8203;");
        self.part(format!("<details>\n<summary>{summary}</summary>"));
        inside(self);
        self.part("</details>");
    }

    /// Caption, table and notes: doubts and reasons stand below the table, intervals in one of their own.
    fn table(&mut self, table: &Table) {
        self.place(&table.id);
        if !table.caption.is_empty() {
            self.part(format!("**{}**", rest(&table.caption)));
        }
        let reasons = table.reasons();
        if !table.columns.is_empty() {
            let row = |row: &Vec<Cell>| row.iter().map(|cell| self::cell(cell, &reasons)).collect();
            self.part(grid(&table.columns, table.rows.iter().map(row)));
        }
        self.parts.extend(table.notes.iter().map(text));
        for (index, reason) in reasons.iter().enumerate() {
            self.part(format!("<sup>{}</sup> {}", index + 1, rest(reason)));
        }
        if table.rows.iter().flatten().any(has_detail) {
            self.details("Details", |page| page.part(details(table)));
        }
    }
}

/// Whether a number has more to it, such as its interval.
fn has_detail(cell: &Cell) -> bool {
    cell.number.is_some() && cell.detail.is_some()
}

/// The same table with what there is to say of each number in its place. Columns of which nothing is to
/// be said are left out, but for the first, which names the rows.
fn details(table: &Table) -> String {
    let is_kept = |column: &usize| {
        *column == 0 || table.rows.iter().filter_map(|row| row.get(*column)).any(has_detail)
    };
    let kept: Vec<usize> = (0..table.columns.len()).filter(is_kept).collect();
    let columns: Vec<Column> = kept.iter().map(|column| table.columns[*column].clone()).collect();
    let row = |row: &Vec<Cell>| {
        let cells = kept.iter().filter_map(|column| Some((*column, row.get(*column)?)));
        let text = |(column, cell): (usize, &Cell)| match &cell.detail {
            Some(detail) if has_detail(cell) && column == 0 => {
                format!("{}: {}", rest(&cell.text), rest(detail))
            }
            Some(detail) if has_detail(cell) => rest(detail),
            _ if column == 0 => rest(&cell.text),
            _ => String::new(),
        };
        cells.map(text).collect()
    };
    grid(&columns, table.rows.iter().map(row))
}

/// The numbers that the page is about.
fn headline(cards: &[Card]) -> String {
    let columns = [Column::left("Headline"), Column::right("Value"), Column::left("")];
    let row = |card: &Card| {
        let value = format!("**{}** {}", rest(&card.value), rest(&card.unit));
        let sign = if card.doubt.is_some() { "⚠" } else { "" };
        vec![rest(&card.label), format!("{}{sign}", value.trim_end()), rest(&card.more())]
    };
    grid(&columns, cards.iter().map(row))
}

fn grid(columns: &[Column], rows: impl Iterator<Item = Vec<String>>) -> String {
    let titles = columns.iter().map(|column| rest(&column.title)).join(" | ");
    let rule = |column: &Column| if column.align == Align::Left { "---" } else { "---:" };
    let rules = columns.iter().map(rule).join("|");
    let rows = rows.map(|row| format!("| {} |", row.join(" | ")));
    [format!("| {titles} |"), format!("|{rules}|")].into_iter().chain(rows).join("\n")
}

/// The cell, with a number where a reason to doubt it, or why there is none, stands below.
fn cell(cell: &Cell, reasons: &[&str]) -> String {
    let mut text = rest(&cell.text);
    if cell.mood.is_some() {
        text = format!("**{text}**");
    }
    if cell.doubtful {
        text.push('⚠');
    }
    let note = cell.footnote().and_then(|own| reasons.iter().position(|known| *known == own));
    text + &note.map_or_else(String::new, |note| format!("<sup>{}</sup>", note + 1))
}

/// A path as the page names it: whatever has a meaning in a URL or a list of them is encoded.
pub fn link(path: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(encoded).collect()
}

/// Text as it is, in a fence that nothing inside can close.
fn fenced(language: &str, text: &str) -> String {
    let text = escape::terminal_lines(text);
    let fence = "`".repeat(longest_run_of_backticks(&text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// A text at the start of a line: a number or a hyphen there does not begin a list or a rule.
fn text(text: &Text) -> String {
    let words = spans(text);
    let words = words.trim_start();
    let digits = words.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = words.split_at(digits);
    let is_item = rest.starts_with(['.', ')']) && !rest[1..].starts_with(|c: char| c != ' ');
    if (digits > 0 && is_item) || (digits == 0 && rest.starts_with(['-', '+'])) {
        format!("{number}\\{rest}")
    } else {
        words.to_owned()
    }
}

/// A text behind something else on its line.
fn spans(text: &Text) -> String {
    text.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Plain(text) => rest(text),
        Span::Strong(text) if text.trim().is_empty() => rest(text),
        // Stars beside spaces are stars.
        Span::Strong(text) => format!("**{}**", rest(text.trim())),
        Span::Code(text) => code(text),
        Span::Link { text, to } => format!("[{}](#{})", rest(text), anchor(to)),
    }
}

/// Text that is not at the start of its line: no markup, no mention, no link. Forges make links of
/// schemes and of hosts that begin with `www.` in any case.
fn rest(text: &str) -> String {
    let text = escape::markdown(text).replace("://", "\\://");
    let mut safe = String::with_capacity(text.len());
    for part in text.split_inclusive('.') {
        let host = part.strip_suffix('.').filter(|it| it.to_ascii_lowercase().ends_with("www"));
        safe += &host.map_or_else(|| part.to_owned(), |host| format!("{host}\\."));
    }
    safe
}

/// As typed, between more backticks than it has itself.
fn code(text: &str) -> String {
    let text = escape::terminal(text);
    if text.trim().is_empty() {
        return text;
    }
    let fence = "`".repeat(longest_run_of_backticks(&text) + 1);
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

fn longest_run_of_backticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::plain;

    #[test]
    fn code_is_not_ended_by_what_it_holds() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(code(""), "");
    }

    #[test]
    fn a_sentence_does_not_begin_a_list() {
        assert_eq!(text(&plain("- one")), "\\- one");
        assert_eq!(text(&plain("12. one")), "12\\. one");
        assert_eq!(text(&plain("    indented")), "indented");
        assert_eq!(text(&plain("12.5 ms")), "12.5 ms");
        assert_eq!(text(&plain("---")), "\\---");
    }

    #[test]
    fn names_are_no_links() {
        assert_eq!(rest("https://example.org"), "https\\://example.org");
        assert_eq!(rest("a WwW.example.org www.b"), "a WwW\\.example.org www\\.b");
        assert_eq!(rest("x](javascript:alert(1))"), "x\\](javascript:alert(1))");
        let link = Span::Link { text: "a](b".to_owned(), to: "x) [y](z".to_owned() };
        assert_eq!(span(&link), "[a\\](b](#x-y-z)");
    }
}
