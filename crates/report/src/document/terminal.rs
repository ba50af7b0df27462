//! A document as a page of a terminal, at most [`page_width`] columns wide.
//!
//! A table that is too wide is written in several parts with the same first column. Charts over
//! loads become bars, and other charts their finding. Folded blocks are left out: files have them.

use std::fmt::Write;

use inferometer_model::whole::to_usize;

use super::{
    Align, Badge, Block, Card, Cell, Column, Document, Figure, Mood, Section, Span, Table, Text,
    distinct, text_of,
};
use crate::chart::{Chart, Lines, Plot};
use crate::escape::{terminal, terminal_ends};
use crate::fmt::{Join, NOTHING, setting};
use crate::lines::{broken, hanging, page_width};
use crate::terminal::{Ink, Style};

/// Columns of the longest bar.
const BAR_WIDTH: u32 = 30;
/// A column of text is not cut to less than this.
const TEXT_MIN: usize = 12;

/// The whole page, without trailing spaces.
pub fn render(document: &Document, style: Style) -> String {
    let mut parts = vec![lead(document, style)];
    parts.extend(document.sections.iter().map(|section| self::section(section, style)));
    if !document.footer.is_empty() {
        parts.push(text("", 0, &document.footer, style));
    }
    trimmed(parts)
}

/// A page of sections alone.
pub fn sections(sections: &[Section], style: Style) -> String {
    trimmed(sections.iter().map(|section| self::section(section, style)).collect())
}

fn trimmed(parts: Vec<String>) -> String {
    let page = parts.into_iter().filter(|part| !part.is_empty()).join("\n");
    page.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn lead(document: &Document, style: Style) -> String {
    let mut page = String::new();
    if let Some(alert) = &document.lead.alert {
        page += &(painted(&plain(alert), 0, Ink::Doubtful, style) + "\n");
    }
    if !document.title.is_empty() {
        page += &painted(&terminal(&document.title), 0, Ink::Bold, style);
    }
    page += &facts(&document.lead.subject, style);
    if let Some(badge) = &document.lead.verdict {
        if !page.is_empty() {
            page.push('\n');
        }
        page += &self::badge(badge, style);
    }
    let card = |card: &Card| {
        let more = card.more();
        let more = if more.is_empty() { more } else { format!(" ({more})") };
        (card.label.clone(), super::plain(format!("{} {}{more}", card.value, card.unit)))
    };
    let cards: Vec<(String, Text)> = document.lead.headline.iter().map(card).collect();
    page + &facts(&cards, style)
}

fn badge(badge: &Badge, style: Style) -> String {
    let word = terminal(&badge.word).to_uppercase();
    statement((&word, badge.mood), &badge.text, &badge.points, style)
}

/// A word in the colour of its mood, a text behind it, and below the text what it rests on.
fn statement((word, mood): (&str, Mood), text: &Text, points: &[Text], style: Style) -> String {
    let indent = word.chars().count() + 2;
    let head = format!("{}  ", style.paint(ink(mood), word));
    let mut page = hanging(&head, indent, &plain(text));
    for point in points {
        page += &hanging(&" ".repeat(indent), indent, &plain(point));
    }
    page
}

const fn ink(mood: Mood) -> Ink {
    match mood {
        Mood::Good => Ink::Good,
        Mood::Note => Ink::Dim,
        Mood::Doubt => Ink::Doubtful,
        Mood::Bad => Ink::Bad,
    }
}

fn section(section: &Section, style: Style) -> String {
    let (mut page, mut indent) = (String::new(), 0);
    if !section.title.is_empty() {
        page += &painted(&terminal(&section.title), 0, Ink::Bold, style);
        indent = 2;
    }
    let mut follows_table = false;
    for (index, block) in section.blocks.iter().enumerate() {
        let is_table = matches!(block, Block::Table(_));
        let has_caption = matches!(block, Block::Table(table) if !table.caption.is_empty());
        if 0 < index && (has_caption || (follows_table && is_table)) {
            page.push('\n');
        }
        page += &self::block(block, indent, style);
        follows_table = is_table;
    }
    let inner = section.sections.iter().map(|inner| self::section(inner, style));
    let own = [page].into_iter().chain(inner).filter(|part| !part.is_empty());
    own.join("\n")
}

fn block(block: &Block, indent: usize, style: Style) -> String {
    match block {
        Block::Paragraph(words) => text("", indent, words, style),
        Block::Facts(all) => facts(all, style),
        Block::List(items) => items.iter().map(|item| text("- ", indent, item, style)).collect(),
        Block::Table(table) => self::table(table, style),
        Block::Figure(Figure { chart: Chart { plot: Plot::Lines(lines), .. }, .. }) => {
            bars(lines, style)
        }
        Block::Figure(figure) => {
            let words = format!("{}: {}", figure.chart.title, figure.chart.finding);
            hanging(&" ".repeat(indent), indent, &terminal(&words))
        }
        Block::Code { text, .. } => {
            let line = |line: &str| format!("  {}\n", terminal(line));
            text.lines().map(line).collect()
        }
        Block::Notice { mood, text, points, remedy } => {
            let word = match mood {
                Mood::Good => "ok",
                Mood::Note => "note",
                Mood::Doubt => "warning",
                Mood::Bad => "invalid",
            };
            let remedy = remedy.iter().map(|remedy| hanging("  → ", 4, &plain(remedy)));
            statement((word, *mood), text, points, style) + &remedy.collect::<String>()
        }
        Block::Verdict(badge) => self::badge(badge, style),
        Block::Details { .. } => String::new(),
    }
}

/// Labels and their texts in two columns.
fn facts(all: &[(String, Text)], style: Style) -> String {
    /// A label takes no more columns than this; the text of a longer one begins below it.
    const LABEL_MAX: usize = 26;
    let labels: Vec<String> = all.iter().map(|(label, _)| terminal(label)).collect();
    let widths = labels.iter().map(|label| label.chars().count());
    let width = widths.filter(|width| *width <= LABEL_MAX).max().unwrap_or(0);
    let mut page = String::new();
    for (label, (_, words)) in labels.iter().zip(all) {
        if width < label.chars().count() {
            let _ = writeln!(page, "  {}", style.paint(Ink::Dim, label));
            page += &hanging("    ", 4, &plain(words));
        } else {
            let head = format!("  {}  ", style.paint(Ink::Dim, &format!("{label:<width$}")));
            page += &hanging(&head, width + 4, &plain(words));
        }
    }
    page
}

/// A text in lines behind a mark; a strong beginning is painted.
fn text(mark: &str, indent: usize, words: &Text, style: Style) -> String {
    let own = indent + mark.chars().count();
    let page = hanging(&format!("{:indent$}{mark}", ""), own, &plain(words));
    let Some(Span::Strong(strong)) = words.first() else { return page };
    let strong = terminal(strong);
    page.replacen(&strong, &style.paint(Ink::Bold, &strong), 1)
}

fn plain(text: &[Span]) -> String {
    terminal(&text_of(text))
}

fn painted(text: &str, indent: usize, ink: Ink, style: Style) -> String {
    let line = |line: String| format!("{:indent$}{}\n", "", style.paint(ink, &line));
    broken(text, page_width() - indent).into_iter().map(line).collect()
}

/// A table with its caption, its notes and the reasons for what is marked in it.
pub fn table(table: &Table, style: Style) -> String {
    let mut page = String::new();
    if !table.caption.is_empty() {
        page += &painted(&terminal(&table.caption), 0, Ink::Bold, style);
    }
    let texts = cell_texts(table);
    let widths = widths(&table.columns, &texts);
    for (index, part) in parts(&widths, &texts).iter().enumerate() {
        if 0 < index {
            page.push('\n');
        }
        page += &columns(table, (&texts, &widths), part, style);
    }
    page + &notes(table, style)
}

/// Columns that a table needs beside each other.
pub fn width(table: &Table) -> usize {
    total_width(&widths(&table.columns, &cell_texts(table)))
}

fn cell_texts(table: &Table) -> Vec<Vec<String>> {
    let text = |cell: &Cell| {
        let mark = if cell.doubtful { "~" } else { "" };
        format!("{mark}{}", terminal(&cell.text))
    };
    table.rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

/// The columns that fit beside each other; the first column begins each part. Columns without any
/// value are left out where not all fit.
fn parts(widths: &[usize], texts: &[Vec<String>]) -> Vec<Vec<usize>> {
    if total_width(widths) <= page_width() {
        return vec![(0..widths.len()).collect()];
    }
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    let mut used = 0;
    let nothing = |row: &Vec<String>, column| row.get(column).is_none_or(|it| it == NOTHING);
    for (column, width) in widths.iter().enumerate() {
        if 0 < column && !texts.is_empty() && texts.iter().all(|row| nothing(row, column)) {
            continue;
        }
        if 1 < column && page_width() < used + width + 2 {
            parts.push(vec![0]);
            used = widths[0] + 2;
        }
        parts.last_mut().into_iter().for_each(|part| part.push(column));
        used += width + 2;
    }
    parts
}

/// Some columns of a table.
fn columns(
    table: &Table,
    (texts, widths): (&[Vec<String>], &[usize]),
    part: &[usize],
    style: Style,
) -> String {
    let mut page = String::new();
    let last = table.columns.len().saturating_sub(1);
    let is_text = |column: usize| table.columns[column].align == Align::Left;
    let padded = |column: usize, text: &str| {
        let width = widths[column];
        if is_text(column) { format!("{text:<width$}") } else { format!("{text:>width$}") }
    };
    let title = |column: &usize| padded(*column, &terminal(&table.columns[*column].title));
    let titles = part.iter().map(title).join("  ");
    if !titles.trim().is_empty() {
        page += &(style.paint(Ink::Dim, &format!("  {}", titles.trim_end())) + "\n");
    }
    for (row, texts) in table.rows.iter().zip(texts) {
        let mut line = "  ".to_owned();
        let mut used = 2;
        for column in part.iter().copied() {
            let (Some(cell), Some(text)) = (row.get(column), texts.get(column)) else { continue };
            let room = page_width().saturating_sub(used).max(TEXT_MIN);
            let is_broken = column == last && is_text(column);
            if is_broken && room < text.chars().count() {
                line = hanging(&line, used, text);
                line.pop();
                break;
            }
            let width = if is_broken { room } else { widths[column] };
            let text = padded(column, &terminal_ends(text, width));
            line += &cell.mood.map_or_else(|| text.clone(), |mood| style.paint(ink(mood), &text));
            line += "  ";
            used += widths[column] + 2;
        }
        page += &(line.trim_end().to_owned() + "\n");
    }
    page
}

/// One bar for each point of the first panel.
fn bars(lines: &Lines, style: Style) -> String {
    let Some(panel) = lines.panels.first() else { return String::new() };
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let most = points().map(|point| point.y).fold(0.0, f64::max);
    let load = |x: f64| if x.is_finite() { setting(x) } else { "unlimited".to_owned() };
    let width = points().map(|point| load(point.x).chars().count()).max().unwrap_or(0);
    let mut page = String::new();
    for series in &panel.series {
        let name = if panel.series.len() == 1 { "" } else { series.name.as_str() };
        let heading = format!("{name} {} against {}", panel.heading, lines.x.label.to_lowercase());
        page += &("\n".to_owned() + &painted(&terminal(heading.trim()), 2, Ink::Dim, style));
        for point in &series.points {
            let (load, shown) = (load(point.x), terminal(&panel.y.show(point.y)));
            let _ = writeln!(page, "  {load:>width$}  {} {shown}", bar(point.y, most, BAR_WIDTH));
        }
    }
    page
}

/// A bar to an eighth of a character; a value above zero has at least one.
pub(crate) fn bar(value: f64, most: f64, width: u32) -> String {
    const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if most <= 0.0 || value <= 0.0 {
        return String::new();
    }
    let eighths = to_usize((value / most * f64::from(width * 8)).ceil());
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(EIGHTHS.get((eighths % 8).wrapping_sub(1)));
    bar
}

fn total_width(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum()
}

/// Widths of the columns. Where the page is too narrow, columns of text are cut, the widest first and
/// the first one, which names the rows, last; the last column is broken instead.
fn widths(columns: &[Column], rows: &[Vec<String>]) -> Vec<usize> {
    /// The first column names the rows; ids of runs have 20 characters.
    const NAME_MIN: usize = 28;
    let width = |(column, own): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
        cells.chain([own.title.as_str()]).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = columns.iter().enumerate().map(width).collect();
    if total_width(&widths) <= page_width() {
        return widths;
    }
    let last = columns.len().saturating_sub(1);
    if columns.last().is_some_and(|column| column.align == Align::Left) {
        let before: usize = widths[..last].iter().map(|width| width + 2).sum();
        let room = page_width().saturating_sub(2 + before).max(TEXT_MIN * 2);
        widths[last] = widths[last].min(room);
    }
    let mut cut = widths.clone();
    loop {
        let all = total_width(&cut);
        let is_wide = |column: &usize| {
            let narrowest = if *column == 0 { NAME_MIN } else { TEXT_MIN };
            columns[*column].align == Align::Left && narrowest < cut[*column]
        };
        let size = |column: &usize| if *column == 0 { 0 } else { cut[*column] };
        let widest = (0..columns.len()).filter(is_wide).max_by_key(size);
        match widest {
            Some(column) if page_width() < all => cut[column] -= 1,
            // In several parts there is room for all, and cuts would save nothing.
            None if page_width() < all => {
                widths[0] = widths[0].min(NAME_MIN);
                let room = page_width().saturating_sub(4 + widths[0]).max(TEXT_MIN);
                let shown = widths.into_iter().map(|width| width.min(room));
                let broken = cut[last];
                return shown.take(last).chain([broken]).collect();
            }
            _ => return cut,
        }
    }
}

fn notes(table: &Table, style: Style) -> String {
    /// Reasons below a table; more are left to the other formats.
    const FOOTNOTES_MAX: usize = 6;
    let reason = |cell: &Cell| {
        let mark = if cell.doubtful { "~" } else { cell.text.as_str() };
        Some(format!("{mark} {}", terminal(cell.footnote()?)))
    };
    let reasons = distinct(table.rows.iter().flatten().filter_map(reason)).into_iter();
    let notes = table.notes.iter().map(|note| plain(note)).chain(reasons.take(FOOTNOTES_MAX));
    notes.map(|note| painted(&note, 2, Ink::Dim, style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Columns, plain as words};
    use crate::lines::PAGE_WIDTH;

    #[test]
    fn numbers_are_aligned_to_the_right_and_long_texts_are_broken_below_themselves() {
        let long = "word ".repeat(30);
        let rows = [("a", 1_u32, long.as_str()), ("bc", 200, "short")];
        let table = Columns::new("name", |row: &(&str, u32, &str)| Cell::text(row.0))
            .right("n", |row| Cell { doubtful: row.1 == 1, ..Cell::number(row.1.to_string(), 1.0) })
            .left("text", |row| Cell::text(row.2))
            .table("t", "caption", rows);
        let page = self::table(&table, Style::Plain);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines[..2], ["caption", "  name    n  text"]);
        assert!(lines[2].starts_with("  a      ~1  word word"), "{page}");
        assert!(lines[3].starts_with("             word"), "{page}");
        assert_eq!(lines.last(), Some(&"  bc    200  short"));
        assert!(lines.iter().all(|line| line.chars().count() <= PAGE_WIDTH), "{page}");
    }

    #[test]
    fn bars_are_drawn_to_an_eighth_of_a_character() {
        let bar = |value| bar(value, 240.0, BAR_WIDTH);
        assert_eq!(bar(240.0), "█".repeat(30));
        assert_eq!(bar(12.0), "█▌");
        assert_eq!(bar(1.0), "▏");
        assert_eq!(bar(0.0), "");
    }

    #[test]
    fn a_table_that_is_too_wide_is_written_in_parts() {
        assert_eq!(parts(&[5, 30, 30, 30, 10], &[]), [vec![0, 1, 2], vec![0, 3, 4]]);
        assert_eq!(parts(&[5, 120], &[]), [[0, 1]]);
        let row = ["1", "2", NOTHING, NOTHING, "5"].map(str::to_owned).to_vec();
        assert_eq!(parts(&[5, 30, 30, 30, 10], &[row]), [[0, 1, 4]], "without values");
    }

    #[test]
    fn texts_are_cut_only_where_the_table_is_not_written_in_parts() {
        let rows = [vec!["word ".repeat(6); 8]];
        let widths_of = |texts: usize| {
            let columns = (0..texts).fold(
                Columns::new("name", |row: &Vec<String>| Cell::text(&row[0][..9])),
                |columns, place| columns.left("text", move |row| Cell::text(&row[place])),
            );
            let table = columns.right("n", |_| Cell::number("1", 1.0)).table("", "", rows.clone());
            widths(&table.columns, &cell_texts(&table))
        };
        assert!(total_width(&widths_of(3)) <= PAGE_WIDTH);
        assert!(widths_of(7)[1..8].iter().all(|width| 29 <= *width));
    }

    #[test]
    fn a_page_has_its_sections_and_no_folded_blocks() {
        let details =
            Block::Details { summary: "more".to_owned(), blocks: vec![Block::List(Vec::new())] };
        let facts = vec![("key".to_owned(), words("value")), ("longer".to_owned(), words("v"))];
        let notice = Block::Notice {
            mood: Mood::Doubt,
            text: words("too slow\u{1b}"),
            points: Vec::new(),
            remedy: Some(words("be faster")),
        };
        let section = Section {
            id: String::new(),
            title: "Title".to_owned(),
            blocks: vec![Block::Facts(facts), details, notice],
            sections: Vec::new(),
        };
        assert_eq!(
            sections(&[section], Style::Plain),
            "Title\n  key     value\n  longer  v\nwarning  too slow\\u{1b}\n  → be faster\n"
        );
    }
}
