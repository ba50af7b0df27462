//! A report as a document: what stands where, whoever prints it.
//!
//! A page about a run, a sweep or a suite is made once, as a [`Document`] of sections, tables and
//! charts, and then written as Markdown, as HTML or for a terminal. Texts are plain here; each writer escapes what
//! it writes, because model names and answers come from servers.

mod columns;
mod ids;

pub mod html;
pub mod markdown;
pub mod terminal;

pub use self::columns::Columns;
use crate::chart::Chart;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// For programs: keys and values at the very top of the page, in this order.
    pub header: Vec<(String, String)>,
    pub title: String,
    pub lead: Lead,
    pub sections: Vec<Section>,
    pub footer: Text,
}

/// What a reader in a hurry sees.
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
    /// What it rests on, one below the other; may be empty.
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
    /// Its interval, its place, or what it means.
    pub detail: String,
    /// Why it is not to be relied on, where it is not.
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
        /// What it rests on, one below the other; may be empty.
        points: Vec<Text>,
        remedy: Option<Text>,
    },
    /// A word with a mood and its reasons, such as the decision about one of several things.
    Verdict(Badge),
    /// Folded away until somebody wants it.
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
    /// What it is sorted by, where it is a number.
    pub number: Option<f64>,
    /// More about it, such as its interval or why it is missing.
    pub detail: Option<String>,
    /// Not to be relied on, for the reason in `detail`.
    pub doubtful: bool,
    /// The reason alone, where `detail` says more: it stands below the table, once for all cells that
    /// share it.
    pub reason: Option<String>,
    /// Whether its word is good or bad news.
    pub mood: Option<Mood>,
}

pub type Text = Vec<Span>;

#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    Plain(String),
    Strong(String),
    Code(String),
    /// To a section, table or chart of the same page, by its id.
    Link {
        text: String,
        to: String,
    },
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

/// A text of one plain span.
pub fn plain(text: impl Into<String>) -> Text {
    vec![Span::Plain(text.into())]
}

impl Document {
    /// A page without a header, a lead and a footer.
    pub fn new(title: impl Into<String>, sections: Vec<Section>) -> Self {
        Self { title: title.into(), sections, ..Self::default() }
    }
}

impl Section {
    /// A section that nothing links to.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id: String::new(), title: title.into(), blocks, sections: Vec::new() }
    }
}

impl Block {
    pub fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph(plain(text))
    }
}

impl Table {
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
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn number(text: impl Into<String>, number: f64) -> Self {
        Self { text: text.into(), number: Some(number), ..Self::default() }
    }

    /// What stands below the table for it: why it is doubtful, or why there is nothing.
    fn footnote(&self) -> Option<&str> {
        let needs_reason = self.doubtful || self.text == crate::fmt::NOTHING;
        self.reason.as_deref().or(self.detail.as_deref()).filter(|_| needs_reason)
    }
}
