//! Tables of published results: in Markdown and HTML, in plain text below a line of column names, as lists
//! of figures below a heading, and typed into TOML as one `[[row]]` for each result.
//!
//! A row is a result if it has a throughput or a latency under a column name that is known. Rows of one
//! name that contradict each other in nothing are parts of the same result.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use inferometer_analysis::plausibility::{Claim, ClaimKind};
use inferometer_analysis::tool_result::{CountsFrom, Grain, LatencyKind, Tool, ToolResult, extra};
use serde::Deserialize;

use super::{Imported, Records, document_source, shown};
use crate::json::Json;
use crate::vllm::field;

/// What stands above or beside the results of a text and is about all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageFacts {
    pub model: Option<String>,
    pub hardware: Option<String>,
    pub claims: Vec<Claim>,
}

/// Longer texts are no pages.
const TEXT_BYTES_MAX: usize = 8 << 20;
const COLUMNS_MAX: usize = 32;
const WORDS_MAX: usize = 16;
const CLAIMS_MAX: usize = 64;

/// What columns fill, each with the names that it has.
#[derive(Deserialize)]
struct Columns {
    settings: BTreeMap<String, Vec<String>>,
    figures: BTreeMap<String, Vec<String>>,
    texts: BTreeMap<String, Vec<String>>,
}

static COLUMNS: LazyLock<Columns> = LazyLock::new(|| {
    toml::from_str(include_str!("columns.toml")).expect("tests read the embedded table")
});

/// What a column of this name fills.
fn filled_by<'a>(columns: &'a BTreeMap<String, Vec<String>>, name: &str) -> Option<&'a str> {
    let mut columns = columns.iter();
    let found = columns.find(|(_, names)| names.iter().any(|known| known == name));
    found.map(|(key, _)| key.as_str())
}

const CONCURRENCY: &str = "max_concurrency";
const PLANNED: &str = "num_prompts";
const OUTPUT_THROUGHPUT: &str = "output_throughput";

const CLAIMS: [(&str, ClaimKind); 5] = [
    ("sub-millisecond", ClaimKind::BelowMs(1.0)),
    ("submillisecond", ClaimKind::BelowMs(1.0)),
    ("less than a millisecond", ClaimKind::BelowMs(1.0)),
    ("fixed prompt", ClaimKind::SamePrompt),
    ("same prompt for every request", ClaimKind::SamePrompt),
];

/// What a known column is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Column(&'static str),
    /// A latency and its statistic: `mean`, `std`, `min`, `max` or a rank.
    Latency(LatencyKind, String),
}

#[derive(Clone, Debug, Default)]
struct Row {
    line: u32,
    /// The heading above it.
    heading: String,
    name: String,
    model: Option<String>,
    hardware: Option<String>,
    gpus: Option<String>,
    figures: BTreeMap<Key, f64>,
}

/// The results in the tables of a text; none where there is no table of results.
pub(crate) fn read(text: &str) -> Vec<Imported> {
    let mut records = Records::default();
    if TEXT_BYTES_MAX < text.len() {
        return Vec::new();
    }
    let typed = text.lines().any(|line| line.trim() == "[[row]]");
    let rows = if typed { typed_rows(text) } else { Page::new(text).rows() };
    let facts = page_facts(text);
    for row in merged(rows) {
        if !records.are_too_many() {
            records.push(row.result(&facts));
        }
    }
    records.finish().unwrap_or_default()
}

impl Row {
    fn is_result(&self) -> bool {
        self.figures.keys().any(|key| match key {
            Key::Column(column) => COLUMNS.figures.contains_key(*column),
            Key::Latency(..) => true,
        })
    }

    /// Takes a cell under its column name; whether the column is known.
    fn put(&mut self, column: &str, cell: &str) -> bool {
        let words = words_of(column);
        let name = words.join(" ");
        let cell = cell.trim();
        let place = match filled_by(&COLUMNS.texts, &name) {
            Some("model") => &mut self.model,
            Some("hardware") => &mut self.hardware,
            Some("gpus") => &mut self.gpus,
            Some(_) => {
                self.name = shown(cell);
                return true;
            }
            None => {
                let found = key_of(&words, &name).zip(parse_number(cell));
                let Some(((key, factor), number)) = found else { return false };
                self.figures.entry(key).or_insert(number * factor);
                return true;
            }
        };
        *place = Some(shown(cell));
        true
    }

    fn result(mut self, facts: &PageFacts) -> ToolResult {
        for (column, number) in facts_in_heading(&self.heading) {
            self.figures.entry(Key::Column(column)).or_insert(number);
        }
        let mut result =
            ToolResult { source: document_source(Tool::Table, self.line), ..ToolResult::default() };
        result.source.name = self.name;
        result.configuration = shown(&self.heading);
        result.model = self.model.or_else(|| facts.model.clone());
        let gpus = self.gpus.map_or_else(String::new, |gpus| format!("{gpus} × "));
        let hardware = self.hardware.map(|name| gpus + &name).or_else(|| facts.hardware.clone());
        result.metadata.extend(hardware.map(|name| (extra::HARDWARE.to_owned(), name)));
        for (key, value) in self.figures {
            match key {
                Key::Column(column) => match field(column) {
                    // A number that the field does not take is none.
                    Some(field) => drop((field.set)(&mut result, &Json::Number(value))),
                    None => drop(result.further.insert(column.to_owned(), value)),
                },
                Key::Latency(kind, statistic) => {
                    let latency = result.latency_mut(kind, CountsFrom::Unknown, Grain::Unknown);
                    latency.set(&statistic, value);
                }
            }
        }
        result
    }
}

/// Joins the parts of one result, and gives rows the hardware that a table has for their name.
fn merged(rows: Vec<Row>) -> Vec<Row> {
    let (results, others): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(Row::is_result);
    let mut merged: Vec<Row> = Vec::new();
    for row in results {
        let is_same = |known: &&mut Row| {
            let agrees = |key: &Key| {
                known
                    .figures
                    .get(key)
                    .is_none_or(|value| value.total_cmp(&row.figures[key]).is_eq())
            };
            let shared = [CONCURRENCY, OUTPUT_THROUGHPUT].map(Key::Column);
            let is_level = || {
                shared
                    .iter()
                    .all(|key| known.figures.contains_key(key) && row.figures.contains_key(key))
            };
            let is_named = !row.name.is_empty() && known.name.eq_ignore_ascii_case(&row.name);
            row.figures.keys().all(agrees) && (is_named || row.name.is_empty() && is_level())
        };
        match merged.iter_mut().find(is_same) {
            Some(known) => known.figures.extend(row.figures),
            None => merged.push(row),
        }
    }
    for row in &mut merged {
        let is_of = |it: &&Row| it.hardware.is_some() && !it.name.is_empty() && it.name == row.name;
        if let Some(facts) = others.iter().find(is_of).filter(|_| row.hardware.is_none()) {
            row.hardware.clone_from(&facts.hardware);
            row.gpus.clone_from(&facts.gpus);
        }
    }
    merged
}

/// Lower-case words and numbers, without marks.
fn words_of(name: &str) -> Vec<String> {
    let parts = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    parts.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).take(WORDS_MAX).collect()
}

/// What a column name means, and what its numbers are multiplied by.
fn key_of(words: &[String], name: &str) -> Option<(Key, f64)> {
    let Columns { settings, figures, .. } = &*COLUMNS;
    if let Some(column) = filled_by(settings, name).or_else(|| filled_by(figures, name)) {
        return Some((Key::Column(column), 1.0));
    }
    let (mut kind, mut statistic, mut unit) = (None, None, None);
    for word in words {
        let is_twice = match word.as_str() {
            "ttft" => kind.replace(LatencyKind::Ttft).is_some(),
            "tpot" => kind.replace(LatencyKind::Tpot).is_some(),
            "itl" => kind.replace(LatencyKind::Itl).is_some(),
            "e2e" | "e2el" | "latency" => kind.replace(LatencyKind::E2e).is_some(),
            "mean" | "avg" | "average" => statistic.replace("mean").is_some(),
            "median" => statistic.replace("50").is_some(),
            "std" | "min" | "max" => statistic.replace(word).is_some(),
            "ms" => unit.replace(1.0).is_some(),
            "s" => unit.replace(1e3).is_some(),
            rank => match rank.strip_prefix('p').filter(|_| super::plain_rank(rank).is_some()) {
                Some(rank) => statistic.replace(rank).is_some(),
                None => return None,
            },
        };
        if is_twice {
            return None;
        }
    }
    // A percentile in a unit of time is one of whole requests.
    let kind = kind.or_else(|| unit.and(statistic).map(|_| LatencyKind::E2e))?;
    Some((Key::Latency(kind, statistic.unwrap_or("mean").to_owned()), unit.unwrap_or(1.0)))
}

/// A number with separators of thousands, a sign of per cent or a unit behind it.
fn parse_number(cell: &str) -> Option<f64> {
    let first = cell.trim_matches(['*', '`', '~', ' ']).split_whitespace().next()?;
    let number: f64 = first.trim_end_matches('%').replace(',', "").parse().ok()?;
    (number.is_finite() && 0.0 <= number).then_some(number)
}

/// The load that a heading states: `@10req at a time for 100 total requests`.
fn facts_in_heading(heading: &str) -> Vec<(&'static str, f64)> {
    let words: Vec<&str> = heading.split_whitespace().collect();
    let at_once =
        words.iter().find_map(|word| word.strip_prefix('@')?.strip_suffix("req")?.parse().ok());
    let total = words
        .windows(3)
        .find_map(|it| (it[1..] == ["total", "requests"]).then(|| it[0].parse().ok()).flatten());
    at_once.map(|n| (CONCURRENCY, n)).into_iter().chain(total.map(|n| (PLANNED, n))).collect()
}

/// `[[row]]`s with column names as keys; keys above them are about all rows.
fn typed_rows(text: &str) -> Vec<Row> {
    let Ok(document) = toml::from_str::<toml::Table>(text) else { return Vec::new() };
    let lines = (1..).zip(text.lines()).filter(|(_, line)| line.trim() == "[[row]]");
    let typed = document.get("row").and_then(toml::Value::as_array).into_iter().flatten();
    let row = |((line, _), value): ((u32, &str), &toml::Value)| {
        let mut row = Row { line, ..Row::default() };
        for (key, value) in value.as_table().into_iter().flatten() {
            let number =
                || Some(value.as_float().or(value.as_integer().map(|n| n as f64))?.to_string());
            if let Some(cell) = value.as_str().map(str::to_owned).or_else(number) {
                row.put(key, &cell);
            }
        }
        row
    };
    lines.zip(typed).map(row).collect()
}

/// A text while its lines are read.
struct Page<'a> {
    lines: Vec<&'a str>,
    heading: String,
    rows: Vec<Row>,
}

impl<'a> Page<'a> {
    fn new(text: &'a str) -> Self {
        Self { lines: text.lines().collect(), heading: String::new(), rows: Vec::new() }
    }

    fn rows(mut self) -> Vec<Row> {
        let mut at = 0;
        while at < self.lines.len() {
            let line = self.lines[at].trim();
            at += if let Some(heading) = heading(line) {
                self.heading = heading;
                1
            } else if line.to_ascii_lowercase().contains("<table") {
                self.take_html(at)
            } else if line.starts_with('|') {
                let cells =
                    |line: &str| line.trim_matches('|').split('|').map(str::to_owned).collect();
                self.take_table(at, cells, |line| line.starts_with('|'))
            } else if line.starts_with("- ") {
                self.take_list(at)
            } else {
                self.take_plain(at)
            };
        }
        self.rows
    }

    fn row(&self, at: usize) -> Row {
        let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
        Row { line, heading: self.heading.clone(), ..Row::default() }
    }

    fn push(&mut self, at: usize, columns: &[String], cells: &[String]) {
        let mut row = self.row(at);
        for (column, cell) in columns.iter().zip(cells).take(COLUMNS_MAX) {
            row.put(column, cell);
        }
        self.rows.push(row);
    }

    /// A table whose first line has the names of its columns; returns how many lines it has.
    fn take_table(
        &mut self,
        at: usize,
        cells: impl Fn(&str) -> Vec<String>,
        is_row: impl Fn(&str) -> bool,
    ) -> usize {
        let columns = cells(self.lines[at].trim());
        let mut next = at + 1;
        while let Some(line) =
            self.lines.get(next).map(|line| line.trim()).filter(|line| is_row(line))
        {
            if line.contains(|c: char| c.is_ascii_alphanumeric()) {
                self.push(next, &columns, &cells(line));
            }
            next += 1;
        }
        next - at
    }

    fn take_html(&mut self, at: usize) -> usize {
        let is_end = |line: &&str| line.to_ascii_lowercase().contains("</table");
        let length = self.lines[at..].iter().position(is_end).map_or(1, |end| end + 1);
        let text = self.lines[at..at + length].join(" ");
        let rows: Vec<Vec<String>> = text.split("<tr").skip(1).map(html_cells).collect();
        if let [columns, rows @ ..] = rows.as_slice() {
            for cells in rows {
                self.push(at, columns, cells);
            }
        }
        length
    }

    /// `- TTFT mean/median/p99: 1 / 2 / 3 ms`, one below the other: a result that is named by the heading.
    fn take_list(&mut self, at: usize) -> usize {
        let mut row = self.row(at);
        row.name = std::mem::take(&mut row.heading);
        let mut next = at;
        while let Some(item) = self.lines.get(next).and_then(|line| line.trim().strip_prefix("- "))
        {
            for (column, cell) in
                item.split_once(':').into_iter().flat_map(|(key, value)| spread(key, value))
            {
                row.put(&column, &cell);
            }
            next += 1;
        }
        if 1 < row.figures.len() {
            self.rows.push(row);
        }
        next - at
    }

    /// Lines of numbers below a line of column names, with spaces between them.
    fn take_plain(&mut self, at: usize) -> usize {
        let numbers = |line: &str| {
            let cells: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let is_row = (3..COLUMNS_MAX).contains(&cells.len())
                && cells.iter().all(|it| parse_number(it).is_some());
            is_row.then_some(cells)
        };
        let Some(first) = self.lines.get(at + 1).and_then(|line| numbers(line)) else { return 1 };
        let words: Vec<&str> = self.lines[at].split_whitespace().collect();
        let Some((_, columns)) =
            column_names(&words, first.len()).filter(|_| words.len() <= WORDS_MAX)
        else {
            return 1;
        };
        let mut next = at + 1;
        while let Some(cells) = self.lines.get(next).and_then(|line| numbers(line)) {
            self.push(next, &columns, &cells);
            next += 1;
        }
        next - at
    }
}

/// The heading in a line: one of Markdown, or a line in bold.
fn heading(line: &str) -> Option<String> {
    let is_bold = line.starts_with("**") && !line.contains(":**") && !line.contains('|');
    if !line.starts_with('#') && !is_bold {
        return None;
    }
    let text = line.replace("&#x20;", " ").replace("**", "");
    Some(text.trim_matches(['#', ' ']).split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The cells of a row of HTML, without elements in them.
fn html_cells(row: &str) -> Vec<String> {
    let cells = row.split("<t").skip(1).filter(|cell| cell.starts_with(['d', 'h']));
    let text = |cell: &str| {
        let inside = cell.split_once('>').map_or("", |(_, inside)| inside);
        let parts = inside.split('<').enumerate();
        let texts = parts.map(|(number, part)| {
            if number == 0 { part } else { part.split_once('>').map_or("", |(_, text)| text) }
        });
        texts
            .collect::<String>()
            .replace("&amp;", "&")
            .replace("&#x20;", " ")
            .replace("&nbsp;", " ")
    };
    cells.take(COLUMNS_MAX).map(text).collect()
}

/// The columns of an item: `TTFT mean/p99` and `1 / 2 ms` are two.
fn spread(key: &str, value: &str) -> Vec<(String, String)> {
    let key = key.replace("**", "");
    let (values, unit) =
        (value.split(" / ").map(str::trim).collect::<Vec<_>>(), value.split_whitespace().last());
    let names: Vec<&str> = key.split('/').collect();
    if names.len() != values.len() {
        return vec![(key, value.to_owned())];
    }
    let unit = unit.filter(|unit| matches!(*unit, "ms" | "s")).unwrap_or_default();
    let common = names[0].rsplit_once(' ').map_or("", |(common, _)| common);
    let column = |(number, name): (usize, &&str)| match number {
        0 => format!("{name} {unit}"),
        _ => format!("{common} {name} {unit}"),
    };
    names.iter().enumerate().map(column).zip(values.into_iter().map(str::to_owned)).collect()
}

/// Splits words into so many column names, as many as possible of them known, with their number.
fn column_names(words: &[&str], columns: usize) -> Option<(usize, Vec<String>)> {
    if columns == 0 || words.len() < columns {
        return words.is_empty().then_some((0, Vec::new()));
    }
    let rest = words.len() - (columns - 1);
    // A unit in brackets belongs to the name before it.
    if words[0].starts_with('(') {
        return None;
    }
    let split = |length: usize| {
        let name = words[..length].join(" ");
        let (known, mut names) = column_names(&words[length..], columns - 1)?;
        let words = words_of(&name);
        let is_known = key_of(&words, &words.join(" ")).is_some();
        names.insert(0, name);
        Some((known + usize::from(is_known), names))
    };
    // Of equals the last one counts, which is the shortest first name.
    (1..=rest.min(4))
        .rev()
        .filter_map(split)
        .max_by_key(|(known, _)| *known)
        .filter(|(known, _)| 0 < *known || columns == 1)
}

/// The model and the hardware that a text names, and what it claims.
pub fn page_facts(text: &str) -> PageFacts {
    let mut facts = PageFacts::default();
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    for (number, line) in (1..).zip(text.lines()) {
        let plain = line.replace(['*', '"'], "");
        let plain = plain.trim().trim_matches(['|', ' ']);
        let pair = plain.split_once([':', '|', '=']);
        if let Some((key, value)) = pair.filter(|(_, value)| value.len() <= 2 * super::SHOWN_CHARS)
        {
            let (key, value) = (words_of(key).join(" "), value.trim_matches(['|', ' ']));
            match filled_by(&COLUMNS.texts, &key) {
                Some("model") => drop(facts.model.get_or_insert_with(|| shown(value))),
                Some("hardware") => drop(facts.hardware.get_or_insert_with(|| shown(value))),
                _ => {}
            }
        }
        let lower = line.to_ascii_lowercase();
        for (phrase, kind) in CLAIMS {
            let Some(at) = lower.find(phrase).filter(|_| facts.claims.len() < CLAIMS_MAX) else {
                continue;
            };
            let from = line.floor_char_boundary(at.saturating_sub(20));
            facts.claims.push(Claim { line: number, text: shown(line[from..].trim()), kind });
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_fills_a_field_or_a_figure_beside_them() {
        let further = [extra::INPUT_LENGTH, extra::OUTPUT_LENGTH, extra::USER_THROUGHPUT];
        for key in COLUMNS.settings.keys().chain(COLUMNS.figures.keys()) {
            assert!(field(key).is_some() || further.contains(&key.as_str()), "{key}");
        }
        let known = |key| COLUMNS.settings.contains_key(key) || COLUMNS.figures.contains_key(key);
        assert!([CONCURRENCY, PLANNED, OUTPUT_THROUGHPUT].into_iter().all(known));
        assert_eq!(filled_by(&COLUMNS.texts, "gpu count"), Some("gpus"));
    }
}
