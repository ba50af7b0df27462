//! The page of a file of another tool: its results, the definitions of its metrics, and what could not be
//! imported.

use inferometer_analysis::tool_result::{ResultLatency, Tool};
use inferometer_model::import::ImportManifest;

use super::lines::definition_text;
use super::{in_order, mark_notice, measured};
use crate::document::terminal;
use crate::lines::page_width;
use crate::pages::prelude::*;
use crate::terminal::Style;

/// Characters of a name; it comes from another tool's file.
const NAME_CHARS_MAX: usize = 60;
const NAMES_SHOWN_MAX: usize = 3;
/// Rows of all tables together; a file may have a hundred thousand.
const ROWS_MAX: usize = 200;
const TABLES_MAX: usize = 20;
/// Lines of a list.
const LINES_MAX: usize = 12;
const LINE_CHARS_MAX: usize = 300;
/// Columns that are removed in this order until the table fits the page.
const OPTIONAL_COLUMNS: [&str; 4] = ["ITL mean", "line", "E2E mean", "request/s"];

/// Everything that the page shows of an import.
#[derive(Clone, Debug)]
pub struct ImportPage<'a> {
    pub manifest: &'a ImportManifest,
    /// Where it is stored.
    pub folder: &'a str,
    /// The tool that wrote the file.
    pub tool: Tool,
    /// In the order of the file.
    pub results: Vec<&'a ToolResult>,
    pub broken: Vec<BrokenLine<'a>>,
    /// Definitions that hold for all files of the tool.
    pub notes: Vec<&'a str>,
}

/// A record that could not be read.
#[derive(Clone, Copy, Debug)]
pub struct BrokenLine<'a> {
    pub line: u32,
    pub reason: &'a str,
}

/// A result with its number in the file.
type Numbered<'a> = (usize, &'a ToolResult);

/// The page for a terminal.
pub fn render(page: &ImportPage<'_>, style: Style) -> String {
    terminal::render(&document(page), style)
}

fn document(page: &ImportPage<'_>) -> Document {
    let manifest = page.manifest;
    let numbered = page.results.iter().copied().enumerate();
    let configurations = grouped(numbered, |(_, result)| result.configuration.as_str());
    let within = match configurations.len() {
        0 | 1 => String::new(),
        several => format!(" in {several} configurations"),
    };
    let broken = match page.broken.len() as u64 {
        0 => String::new(),
        broken => format!("; {} cannot be read", counted(broken, "record")),
    };
    let name = terminal_line(&manifest.file.name, NAME_CHARS_MAX);
    let results = counted(page.results.len() as u64, "result");
    let found = format!("{name}: {results} of {}{within}{broken}", page.tool.program());
    let folder = page.folder;
    let files = [
        folder.to_owned(),
        format!("{folder}/foreign is the original file"),
        format!("one result is named {}/N, with N from the column #", manifest.import),
    ];
    let mut sections = vec![section("", "", [Block::paragraph(found)])];
    sections.extend(configuration_sections(page, &configurations));
    sections.extend([
        section("", "definitions", definitions(page)),
        section("", "not in the file", absent(&page.results).map(Block::paragraph)),
        section("", "in the file, but not imported", unmapped(&page.results)),
        section("", "cannot be read", self::broken(page)),
        section("", "files", files.map(Block::paragraph)),
    ]);
    sections.retain(|section| !section.blocks.is_empty());
    let title = format!("Inferometer {} · import {}", manifest.tool_version, manifest.import);
    Document::new(title, sections)
}

/// A table for each configuration, and the consequences of the marks.
fn configuration_sections(
    page: &ImportPage<'_>,
    all: &[(&str, Vec<Numbered<'_>>)],
) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut room = ROWS_MAX;
    for (name, results) in all.iter().take(TABLES_MAX) {
        let shown = &results[..results.len().min(room)];
        if shown.is_empty() {
            break;
        }
        room -= shown.len();
        let separator = if name.is_empty() { "" } else { ": " };
        let title = format!("{}{separator}results", terminal_line(name, NAME_CHARS_MAX));
        let about = about(results).map(Block::paragraph);
        sections.push(section("", title, [table(shown)]).with(about));
    }
    let left = (page.results.len() - (ROWS_MAX - room)) as u64;
    let left = (0 < left).then(|| {
        Block::paragraph(format!("{} not shown here; --json has all", counted(left, "more result")))
    });
    let has_intervals = page.results.iter().any(|it| {
        !it.intervals.is_empty() || it.latencies.iter().any(|it| !it.intervals_ms.is_empty())
    });
    let note = if has_intervals { "import-with-intervals" } else { "import-without-intervals" };
    let marks = page.results.iter().flat_map(|it| &it.marks);
    let marks = grouped(marks, |mark| mark.key()).into_iter().map(|(key, marks)| {
        let prefix = format!("{key} ({} of {}): ", marks.len(), page.results.len());
        mark_notice(marks[0], &prefix, Vec::new())
    });
    sections.push(section("", "", left).with([Block::paragraph(text(note))]).with(marks));
    sections
}

fn table(results: &[Numbered<'_>]) -> Table {
    type Get = fn(&ResultLatency) -> Option<f64>;
    let (mean, p99): (Get, Get) = (|it| it.mean_ms, |it| it.percentile_ms("99"));
    let latency = |kind: LatencyKind, get: Get| {
        move |(_, it): &Numbered<'_>| Cell::text(number(it.latency(kind).and_then(get)))
    };
    let columns = Columns::number("#", |(index, _): &Numbered<'_>| Cell::text(index.to_string()))
        .right("line", |(_, it)| {
            let line = it.source.line;
            Cell::text(line.map_or_else(|| NOTHING.to_owned(), |line| line.to_string()))
        })
        .right("load", |(_, it)| Cell::text(load(it)))
        .right("ok", |(_, it)| {
            Cell::text(match (it.completed, it.requests_planned) {
                (Some(done), Some(planned)) => format!("{}/{}", count(done), count(planned)),
                (Some(done), None) => count(done),
                (None, _) => NOTHING.to_owned(),
            })
        })
        .right("request/s", |(_, it)| Cell::text(number(it.request_throughput)))
        .right("output tok/s", |(_, it)| Cell::text(number(it.output_throughput)))
        .right("TTFT mean", latency(LatencyKind::Ttft, mean))
        .right("TTFT p99", latency(LatencyKind::Ttft, p99))
        .right("TPOT mean", latency(LatencyKind::Tpot, mean))
        .right("TPOT p99", latency(LatencyKind::Tpot, p99))
        .right("ITL mean", latency(LatencyKind::Itl, mean))
        .right("E2E mean", latency(LatencyKind::E2e, mean))
        .right("marks", |(_, it)| Cell::text(it.marks.iter().map(Mark::key).join(", ")));
    let mut table = columns.table("", "", results.iter().copied());
    for column in (0..table.columns.len()).rev() {
        let mut texts = table.rows.iter().map(|row| row[column].text.as_str());
        if texts.all(|text| text.is_empty() || text == NOTHING) {
            table.remove_column(column);
        }
    }
    for title in OPTIONAL_COLUMNS {
        let known = table.columns.iter().position(|column| column.title == title);
        if let Some(column) = known.filter(|_| page_width() < terminal::width(&table)) {
            table.remove_column(column);
        }
    }
    table
}

fn load(it: &ToolResult) -> String {
    let rate = |rate: f64| {
        let typed = rate.to_string();
        if typed.len() <= 6 { typed } else { number(rate) }
    };
    match (it.request_rate, it.max_concurrency) {
        (Some(ResultRate::PerSecond(per_s)), None) => format!("{}/s", rate(per_s)),
        // An open loop with a cap is neither an open nor a closed loop.
        (Some(ResultRate::PerSecond(per_s)), Some(cap)) => format!("{}/s ≤{cap}", rate(per_s)),
        (Some(ResultRate::Unlimited), None) => "all at once".to_owned(),
        (Some(ResultRate::Unlimited) | None, Some(slots)) => format!("{slots} in flight"),
        (None, None) => NOTHING.to_owned(),
    }
}

/// Properties that the results of a table share.
fn about(results: &[Numbered<'_>]) -> Option<String> {
    let each = |label: &str, get: fn(&ToolResult) -> Option<&str>| {
        let values = results.iter().filter_map(move |(_, it)| get(it));
        let found = in_order(values.filter(|value| !value.is_empty()));
        let shown = found.iter().take(NAMES_SHOWN_MAX);
        let shown = shown.map(|value| terminal_line(value, NAME_CHARS_MAX)).try_join(", ");
        let more = if NAMES_SHOWN_MAX < found.len() { " and others" } else { "" };
        shown.map(|shown| format!("{label} {shown}{more}"))
    };
    let tensor = distinct(results.iter().filter_map(|(_, it)| it.tensor_parallel));
    let tensor = tensor.iter().take(4).try_join(", ");
    // Tools write dates in different ways; an unknown one is shown as it is.
    let written = results.iter().find_map(|(_, it)| it.started.as_deref());
    let measured = measured(results.iter().map(|(_, it)| *it))
        .or_else(|| written.map(|written| terminal_line(written, NAME_CHARS_MAX)));
    let facts = [
        each("model", |it| it.model.as_deref()),
        each("tokenizer", |it| {
            let tokenizer = it.tokenizer.as_deref();
            tokenizer.filter(|tokenizer| it.model.as_deref() != Some(*tokenizer))
        }),
        each("backend", |it| it.backend.as_deref()),
        tensor.map(|tensor| format!("tensor parallel {tensor}")),
        each("version", |it| it.source.version.as_deref()),
        measured.map(|span| format!("measured {span}")),
    ];
    facts.into_iter().flatten().try_join("; ")
}

/// The definition of each latency, and of the tool's other metrics.
fn definitions(page: &ImportPage<'_>) -> Option<Block> {
    let latencies = page.results.iter().flat_map(|it| &it.latencies);
    let mut found = distinct(latencies.map(ResultLatency::definition));
    // The sort is stable: tables show the first definition of a kind.
    found.sort_by_key(|definition| definition.kind);
    let items = found.chunk_by(|one, other| one.kind == other.kind).flat_map(|same| {
        same.iter().enumerate().map(|(index, definition)| {
            let hidden = (0 < index).then(|| Span::Plain(" Not in the table.".to_owned()));
            definition_text(*definition).into_iter().chain(hidden).collect()
        })
    });
    let items: Vec<Text> = items.chain(page.notes.iter().map(|note| plain(*note))).collect();
    (!items.is_empty()).then_some(Block::List(items))
}

/// Facts that no result of the file has.
fn absent(results: &[&ToolResult]) -> Option<String> {
    type Has = fn(&ToolResult) -> bool;
    const FACTS: [(&str, Has); 13] = [
        ("model", |it| it.model.is_some()),
        ("request rate or concurrency", |it| {
            it.request_rate.is_some() || it.max_concurrency.is_some()
        }),
        ("requests planned", |it| it.requests_planned.is_some()),
        ("requests completed", |it| it.completed.is_some()),
        ("requests failed", |it| it.failed.is_some()),
        ("duration", |it| it.duration_s.is_some()),
        ("input tokens", |it| it.input_tokens.is_some()),
        ("output tokens", |it| it.output_tokens.is_some()),
        ("request throughput", |it| it.request_throughput.is_some()),
        ("output throughput", |it| it.output_throughput.is_some()),
        ("total token throughput", |it| it.total_token_throughput.is_some()),
        ("request goodput", |it| it.request_goodput.is_some()),
        ("single requests", |it| it.requests.is_some()),
    ];
    let facts = FACTS.iter().filter(|(_, has)| !results.iter().any(|it| has(it)));
    let is_missing = |kind: &LatencyKind| results.iter().all(|it| it.latency(*kind).is_none());
    let kinds = LatencyKind::ALL.into_iter().filter(is_missing).map(LatencyKind::name);
    facts.map(|(fact, _)| *fact).chain(kinds).try_join(", ")
}

/// Keys without a metric, each once with its number.
fn unmapped(results: &[&ToolResult]) -> Vec<Block> {
    let is_line =
        |text: &str| text.strip_prefix("line ").is_some_and(|number| number.parse::<u32>().is_ok());
    let texts = results.iter().flat_map(|it| &it.unmapped);
    let texts = texts
        .map(|text| text.split_once(": ").filter(|(line, _)| is_line(line)).unwrap_or(("", text)));
    let found = grouped(texts, |(_, what)| *what);
    let words = found.iter().take(LINES_MAX).map(|(what, texts)| {
        let (line, what) = (texts[0].0, terminal_line(what, LINE_CHARS_MAX));
        let times = count(texts.len() as u64);
        match (line.is_empty(), texts.len()) {
            (true, 1) => what,
            (false, 1) => format!("{line}: {what}"),
            (true, _) => format!("{what} ({times} times)"),
            (false, _) => format!("{what} ({times} times, first in {line})"),
        }
    });
    words.chain(more(found.len())).map(Block::paragraph).collect()
}

/// Records that could not be read, with their lines.
fn broken(page: &ImportPage<'_>) -> Vec<Block> {
    let words = page.broken.iter().take(LINES_MAX).map(|broken| {
        let reason = terminal_line(broken.reason, LINE_CHARS_MAX);
        match broken.line {
            0 => format!("a record {reason}"),
            line => format!("line {line} {reason}"),
        }
    });
    let remedy = (!page.broken.is_empty()).then(|| {
        let read = counted(page.results.len() as u64, "result");
        format!("→ {read} could be read; repair the file and import it again to get all")
    });
    words.chain(more(page.broken.len())).chain(remedy).map(Block::paragraph).collect()
}

fn more(found: usize) -> Option<String> {
    let left = found.saturating_sub(LINES_MAX) as u64;
    (0 < left).then(|| format!("and {} more, all in the JSON document", count(left)))
}
