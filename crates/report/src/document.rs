//! A report as a document, for every output format.
//!
//! A page about a run, a sweep or a suite is made once, as a [`Document`] of sections, tables and
//! charts, and then written as Markdown, as HTML or for a terminal. Texts are plain here; each writer
//! escapes them, because model names and answers come from servers.

pub mod html;
pub mod markdown;
pub mod terminal;

use std::collections::BTreeSet;

use crate::chart::Chart;
use crate::fmt::Join;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// For programs: keys and values at the very top of the page, in this order.
    pub header: Vec<(String, String)>,
    pub title: String,
    pub lead: Lead,
    pub sections: Vec<Section>,
    pub footer: Text,
    /// Files that readers can take with them; for HTML only.
    pub downloads: Vec<Download>,
}

/// A file that belongs to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// What a reader sees, such as `CSV`.
    pub title: String,
    /// The name of the file.
    pub name: String,
    /// Its media type and text, where the page carries it; else it lies beside the page.
    pub inside: Option<(&'static str, String)>,
}

/// The part above the sections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lead {
    /// Shown before the title in a terminal, where readers would miss it in the subject: that no
    /// server was measured.
    pub alert: Option<Text>,
    /// Such as `Model` and its name; in print one below the other.
    pub subject: Vec<(String, Text)>,
    pub verdict: Option<Badge>,
    /// The few numbers that the page is about.
    pub headline: Vec<Card>,
}

/// A word with a mood, such as the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Badge {
    pub mood: Mood,
    pub word: String,
    /// Why, in one sentence.
    pub text: Text,
    /// The reasons, one below the other; may be empty.
    pub points: Vec<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Good,
    Note,
    Doubt,
    Bad,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    pub label: String,
    pub value: String,
    pub unit: String,
    /// Its interval, its level, or what it means.
    pub detail: String,
    /// Why it is not reliable, where it is not.
    pub doubt: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Lower-case words joined by hyphens; links go there.
    pub id: String,
    pub title: String,
    pub blocks: Vec<Block>,
    pub sections: Vec<Section>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Paragraph(Text),
    /// `Key: value`, one below the other.
    Facts(Vec<(String, Text)>),
    List(Vec<Text>),
    Table(Table),
    Figure(Figure),
    Code {
        language: &'static str,
        text: String,
    },
    /// A warning with its remedy.
    Notice {
        mood: Mood,
        text: Text,
        /// The reasons, one below the other; may be empty.
        points: Vec<Text>,
        remedy: Option<Text>,
    },
    /// A word with a mood and its reasons, such as the decision about one of several things.
    Verdict(Badge),
    /// Folded until it is opened.
    Details {
        summary: String,
        blocks: Vec<Block>,
    },
}

/// A chart with the table of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub chart: Chart,
    /// The same as text, where readers of Markdown expect it.
    pub mermaid: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub id: String,
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// Below the table.
    pub notes: Vec<Text>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub title: String,
    pub align: Align,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub text: String,
    /// The key for sorting, where it is a number.
    pub number: Option<f64>,
    /// More about it, such as its interval or why it is missing.
    pub detail: Option<String>,
    /// Not reliable, for the reason in `detail`.
    pub doubtful: bool,
    /// The reason alone, where `detail` has more: it is printed below the table, once for all cells that
    /// share it.
    pub reason: Option<String>,
    /// Whether its word is good or bad news.
    pub mood: Option<Mood>,
}

pub type Text = Vec<Span>;

#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Text as it is.
    Plain(String),
    /// Emphasized text.
    Strong(String),
    /// Text in a fixed-width font.
    Code(String),
    /// To a section, table or chart of the same page, by its id.
    Link { text: String, to: String },
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

/// Each item once, in the order of the first ones.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// A text of one plain span.
pub fn plain(text: impl Into<String>) -> Text {
    vec![Span::Plain(text.into())]
}

/// The words of a text.
pub(crate) fn text_of(text: &[Span]) -> String {
    let words = text.iter().map(|span| match span {
        Span::Plain(text) | Span::Strong(text) | Span::Code(text) | Span::Link { text, .. } => {
            &**text
        }
    });
    words.collect()
}

pub fn strong(text: impl Into<String>) -> Span {
    Span::Strong(text.into())
}

/// A strong label and its text: **Purpose:** latency of one user.
pub fn labelled(label: &str, text: &str) -> Text {
    vec![strong(format!("{label}:")), Span::Plain(format!(" {text}"))]
}

/// Keys and plain values, without those that are not known.
pub fn facts<K: Into<String>, V: Into<Option<String>>>(
    facts: impl IntoIterator<Item = (K, V)>,
) -> Vec<(String, Text)> {
    facts.into_iter().filter_map(|(key, value)| Some((key.into(), plain(value.into()?)))).collect()
}

impl Card {
    /// What stands beside the number, in one line.
    fn more(&self) -> String {
        let detail = Some(self.detail.as_str()).filter(|detail| !detail.is_empty());
        detail.into_iter().chain(self.doubt.as_deref()).join("; ")
    }
}

impl Document {
    /// Every chart, folded ones too, each with an id of its own.
    pub fn charts(&self) -> Vec<Chart> {
        let (mut found, mut ids) = (Vec::new(), Ids::default());
        visit_charts(&mut self.sections.clone(), &mut |chart| {
            found.push(Chart { id: ids.give(&chart.id), ..chart.clone() });
        });
        found
    }

    /// A page without a header, a lead and a footer.
    pub fn new(title: impl Into<String>, sections: Vec<Section>) -> Self {
        Self { title: title.into(), sections, ..Self::default() }
    }
}

/// Calls `visit` with every chart, folded ones too, in their order.
pub(crate) fn visit_charts(sections: &mut [Section], visit: &mut dyn FnMut(&mut Chart)) {
    fn within(blocks: &mut [Block], visit: &mut dyn FnMut(&mut Chart)) {
        for block in blocks {
            if let Block::Figure(figure) = block {
                visit(&mut figure.chart);
            } else if let Block::Details { blocks, .. } = block {
                within(blocks, visit);
            }
        }
    }
    for section in sections {
        within(&mut section.blocks, visit);
        visit_charts(&mut section.sections, visit);
    }
}

impl Section {
    /// A section that nothing links to.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id: String::new(), title: title.into(), blocks, sections: Vec::new() }
    }

    /// Adds blocks at the end; an `Option` or a list may be empty.
    #[must_use]
    pub fn with(mut self, blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        self.blocks.extend(blocks.into_iter().map(Into::into));
        self
    }

    /// `None` for a section without blocks.
    pub fn filled(self) -> Option<Self> {
        (!self.blocks.is_empty()).then_some(self)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Self {
        Self::Figure(Figure { chart, mermaid: None })
    }
}

impl From<Vec<Text>> for Block {
    fn from(items: Vec<Text>) -> Self {
        Self::List(items)
    }
}

impl Block {
    /// Facts without those that are not known.
    pub fn facts<K: Into<String>, V: Into<Option<String>>>(
        known: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self::Facts(facts(known))
    }

    pub fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph(plain(text))
    }

    /// Blocks behind a summary; `None` where there are none.
    pub fn folded(summary: impl Into<String>, blocks: Vec<Self>) -> Option<Self> {
        (!blocks.is_empty()).then(|| Self::Details { summary: summary.into(), blocks })
    }
}

impl Table {
    /// A table without notes.
    pub fn new(
        id: impl Into<String>,
        caption: impl Into<String>,
        columns: Vec<Column>,
        rows: Vec<Vec<Cell>>,
    ) -> Self {
        Self { id: id.into(), caption: caption.into(), columns, rows, notes: Vec::new() }
    }

    /// Adds notes below the table.
    #[must_use]
    pub fn noted(mut self, notes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.notes.extend(notes.into_iter().map(plain));
        self
    }

    /// The notes of its cells, each once, in the order of the cells.
    fn reasons(&self) -> Vec<&str> {
        distinct(self.rows.iter().flatten().filter_map(Cell::footnote))
    }

    pub fn remove_column(&mut self, column: usize) {
        self.columns.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }
}

impl Column {
    pub fn left(title: impl Into<String>) -> Self {
        Self { title: title.into(), align: Align::Left }
    }

    pub fn right(title: impl Into<String>) -> Self {
        Self { title: title.into(), align: Align::Right }
    }

    /// A column of names and columns of numbers.
    pub fn names_and_numbers<'a>(
        names: &str,
        numbers: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Self> {
        [Self::left(names)].into_iter().chain(numbers.into_iter().map(Self::right)).collect()
    }
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn number(text: impl Into<String>, number: f64) -> Self {
        Self { text: text.into(), number: Some(number), ..Self::default() }
    }

    pub fn count(count: u64) -> Self {
        Self::number(crate::fmt::count(count), count as f64)
    }

    /// Sets what a tooltip says about it.
    #[must_use]
    pub fn detailed(self, detail: impl Into<Option<String>>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// Marks it as not reliable where there is a reason, which is printed below the table.
    #[must_use]
    pub fn doubted(self, reason: Option<String>) -> Self {
        Self { doubtful: reason.is_some(), reason, ..self }
    }

    /// The note below the table: why it is doubtful, or why there is no value.
    fn footnote(&self) -> Option<&str> {
        let needs_reason = self.doubtful || self.text == crate::fmt::NOTHING;
        self.reason.as_deref().or(self.detail.as_deref()).filter(|_| needs_reason)
    }
}

type MakeCell<'a, T> = Box<dyn Fn(&T) -> Cell + 'a>;

/// Columns of a table whose rows are values of `T`.
pub struct Columns<'a, T>(Vec<(Column, MakeCell<'a, T>)>);

impl<T> std::fmt::Debug for Columns<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(column, _)| column)).finish()
    }
}

impl<'a, T> Columns<'a, T> {
    /// Begins with a column of texts.
    pub fn new(title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        Self(Vec::new()).left(title, cell)
    }

    /// Begins with a column of numbers.
    pub fn number(title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        Self(Vec::new()).right(title, cell)
    }

    /// Adds a column that is aligned to the left.
    #[must_use]
    pub fn left(mut self, title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.0.push((Column::left(title), Box::new(cell)));
        self
    }

    /// Adds a column that is aligned to the right, as numbers are.
    #[must_use]
    pub fn right(mut self, title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.0.push((Column::right(title), Box::new(cell)));
        self
    }

    /// Removes the column that was added last unless `keep` is set.
    #[must_use]
    pub fn only_if(mut self, keep: bool) -> Self {
        if !keep {
            self.0.pop();
        }
        self
    }

    /// The table with one row for each item.
    pub fn table(
        self,
        id: impl Into<String>,
        caption: impl Into<String>,
        items: impl IntoIterator<Item = T>,
    ) -> Table {
        let (columns, cells): (Vec<Column>, Vec<MakeCell<'a, T>>) = self.0.into_iter().unzip();
        let row = |item: T| cells.iter().map(|cell| cell(&item)).collect();
        let rows = items.into_iter().map(row).collect();
        Table { id: id.into(), caption: caption.into(), columns, rows, notes: Vec::new() }
    }
}

/// The ids of a page.
#[derive(Debug, Default)]
struct Ids {
    given: BTreeSet<String>,
}

impl Ids {
    /// The id as a link names it, or with a number where it is taken.
    fn give(&mut self, wanted: &str) -> String {
        let wanted = anchor(wanted);
        let mut id = wanted.clone();
        let mut number = 2;
        while !self.given.insert(id.clone()) {
            id = format!("{wanted}-{number}");
            number += 1;
        }
        id
    }
}

/// Names of files may not be much longer.
const LONGEST: usize = 80;

/// Lower-case letters, digits and single hyphens; whatever else it held is a hyphen. Letters of other
/// scripts are distinguished by a number made from the whole.
fn anchor(id: &str) -> String {
    let mut anchor = String::with_capacity(id.len());
    for character in id.chars() {
        if character.is_ascii_alphanumeric() {
            anchor.push(character.to_ascii_lowercase());
        } else if !anchor.is_empty() && !anchor.ends_with('-') {
            anchor.push('-');
        }
    }
    let is_foreign = |letter: char| !letter.is_ascii() && letter.is_alphanumeric();
    let is_cut = LONGEST < anchor.len();
    let mark = if is_cut || id.contains(is_foreign) {
        // FNV-1a: short and the same everywhere; it protects nothing.
        let mix = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        format!("-{:08x}", id.bytes().fold(0x811c_9dc5, mix))
    } else {
        String::new()
    };
    anchor.truncate(LONGEST - mark.len());
    let anchor = anchor.trim_end_matches('-');
    format!("{}{mark}", if anchor.is_empty() { "place" } else { anchor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_path_and_no_markup() {
        assert_eq!(anchor("performance-summary"), "performance-summary");
        assert_eq!(anchor("../../etc/passwd"), "etc-passwd");
        assert_eq!(anchor("\"><script>"), "script");
        assert!(anchor("模型").starts_with("place-"), "{}", anchor("模型"));
        assert!(anchor(&"long ".repeat(99)).len() <= LONGEST, "no file has a longer name");
    }

    #[test]
    fn names_of_other_scripts_have_places_of_their_own() {
        let ids = ["scenario-模型", "scenario-速度", "scenario-müll", "scenario-mall"];
        let mut anchors: Vec<String> = ids.iter().map(|id| anchor(id)).collect();
        assert!(
            anchors.iter().all(|id| id.is_ascii() && id.starts_with("scenario-")),
            "{anchors:?}"
        );
        anchors.sort_unstable();
        anchors.dedup();
        assert_eq!(anchors.len(), ids.len(), "a link would lead to another's place");
        let long = |end: &str| anchor(&format!("{}{end}", "long-".repeat(30)));
        assert_ne!(long("a"), long("b"));
    }

    #[test]
    fn no_id_is_given_twice() {
        let mut ids = Ids::default();
        assert_eq!(ids.give("a b"), "a-b");
        assert_eq!(ids.give("a-b"), "a-b-2");
        assert_eq!(ids.give("a-b-2"), "a-b-2-2");
    }
}
