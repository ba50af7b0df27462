//! The page of a file of another tool: its results, the definitions of its metrics, and what could not be
//! imported.

use inferometer_analysis::tool_result::{
    LatencyDefinition, LatencyKind, Mark, ResultLatency, ResultRate, Tool, ToolResult,
};
use inferometer_model::import::ImportManifest;

use super::lines::definition_text;
use super::{in_order, mark_notice, measured};
use crate::document::{
    Block, Cell, Columns, Document, Section, Span, Table, Text, plain, terminal,
};
use crate::escape::terminal_line;
use crate::fmt::{NOTHING, count, counted, number};
use crate::lines::PAGE_WIDTH;
use crate::pages::grouped;
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

const NO_INTERVALS: &str = "latencies are in ms; the file has no confidence intervals, so the variation \
     between runs is not known; values that are not shown here are in the JSON document";
const WITH_INTERVALS: &str = "latencies are in ms; the confidence intervals of the file, and values that \
     are not shown here, are in the JSON document";

/// Everything that the page shows of an import.
#[derive(Clone, Debug)]
pub struct ImportPage<'a> {
    pub manifest: &'a ImportManifest,
    /// Where it is stored.
    pub folder: &'a str,
    /// The tool that wrote the file.
    pub tool: Tool,
    /// In the order of the file.
    pub sheets: Vec<&'a ToolResult>,
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
    let numbered = page.sheets.iter().copied().enumerate();
    let configurations = grouped(numbered, |(_, result)| result.configuration.as_str());
    let within = match configurations.len() {
        0 | 1 => String::new(),
        several => format!(" in {several} configurations"),
    };
    let broken = match page.broken.len() as u64 {
        0 => String::new(),
        broken => format!("; {} cannot be read", counted(broken, "record")),
    };
    let found = format!(
        "{}: {} of {}{within}{broken}",
        terminal_line(&manifest.file.name, NAME_CHARS_MAX),
        counted(page.sheets.len() as u64, "result"),
        page.tool.program(),
    );
    let mut sections = vec![Section::new("", vec![Block::paragraph(found)])];
    sections.extend(results(page, &configurations));
    sections.push(Section::new("definitions", definitions(page)));
    let missing = missing(&page.sheets).map(Block::paragraph);
    sections.push(Section::new("not in the file", Vec::from_iter(missing)));
    sections.push(Section::new("in the file, but not imported", unmapped(&page.sheets)));
    sections.push(Section::new("cannot be read", self::broken(page)));
    let named = format!("one result is named {}/N, with N from the column #", manifest.import);
    let folder = page.folder;
    let files = [folder.to_owned(), format!("{folder}/foreign is the original file"), named];
    sections.push(Section::new("files", files.into_iter().map(Block::paragraph).collect()));
    sections.retain(|section| !section.blocks.is_empty());
    let title = format!("Inferometer {} · import {}", manifest.tool_version, manifest.import);
    Document::new(title, sections)
}

/// A table for each configuration, and the consequences of the marks.
fn results(page: &ImportPage<'_>, all: &[(&str, Vec<Numbered<'_>>)]) -> Vec<Section> {
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
        sections.push(Section::new(
            title,
            [Block::Table(table(shown))].into_iter().chain(about).collect(),
        ));
    }
    let left = (page.sheets.len() - (ROWS_MAX - room)) as u64;
    let has_intervals = |sheet: &&ToolResult| {
        !sheet.intervals.is_empty()
            || sheet.latencies.iter().any(|latency| !latency.intervals_ms.is_empty())
    };
    let has_intervals = page.sheets.iter().any(has_intervals);
    let mut blocks = Vec::new();
    if 0 < left {
        let more = counted(left, "more result");
        blocks.push(Block::paragraph(format!("{more} not shown here; --json has all")));
    }
    blocks.push(Block::paragraph(if has_intervals { WITH_INTERVALS } else { NO_INTERVALS }));
    let marks = page.sheets.iter().flat_map(|sheet| &sheet.marks);
    blocks.extend(grouped(marks, |mark| mark.key()).into_iter().map(|(key, marks)| {
        let prefix = format!("{key} ({} of {}): ", marks.len(), page.sheets.len());
        mark_notice(marks[0], &prefix, Vec::new())
    }));
    sections.push(Section::new("", blocks));
    sections
}

fn table(results: &[Numbered<'_>]) -> Table {
    type Get = fn(&ResultLatency) -> Option<f64>;
    let (mean, p99): (Get, Get) = (|it| it.mean_ms, |it| it.percentile_ms("99"));
    let latency = |kind: LatencyKind, get: Get| {
        move |(_, sheet): &Numbered<'_>| Cell::text(number(sheet.latency(kind).and_then(get)))
    };
    let columns = Columns::number("#", |(index, _): &Numbered<'_>| Cell::text(index.to_string()))
        .right("line", |(_, sheet)| {
            let line = sheet.source.line;
            Cell::text(line.map_or_else(|| NOTHING.to_owned(), |line| line.to_string()))
        })
        .right("load", |(_, sheet)| Cell::text(load(sheet)))
        .right("ok", |(_, sheet)| {
            Cell::text(match (sheet.completed, sheet.requests_planned) {
                (Some(done), Some(planned)) => format!("{}/{}", count(done), count(planned)),
                (Some(done), None) => count(done),
                (None, _) => NOTHING.to_owned(),
            })
        })
        .right("request/s", |(_, sheet)| Cell::text(number(sheet.request_throughput)))
        .right("output tok/s", |(_, sheet)| Cell::text(number(sheet.output_throughput)))
        .right("TTFT mean", latency(LatencyKind::Ttft, mean))
        .right("TTFT p99", latency(LatencyKind::Ttft, p99))
        .right("TPOT mean", latency(LatencyKind::Tpot, mean))
        .right("TPOT p99", latency(LatencyKind::Tpot, p99))
        .right("ITL mean", latency(LatencyKind::Itl, mean))
        .right("E2E mean", latency(LatencyKind::E2e, mean))
        .right("marks", |(_, sheet)| {
            Cell::text(sheet.marks.iter().map(Mark::key).collect::<Vec<_>>().join(", "))
        });
    let mut table = columns.table("", "", results.iter().copied());
    let is_empty = |rows: &[Vec<Cell>], column: usize| {
        rows.iter().all(|row| row[column].text.is_empty() || row[column].text == NOTHING)
    };
    for column in (0..table.columns.len()).rev() {
        if is_empty(&table.rows, column) {
            table.remove_column(column);
        }
    }
    for title in OPTIONAL_COLUMNS {
        let known = table.columns.iter().position(|column| column.title == title);
        if let Some(column) = known.filter(|_| PAGE_WIDTH < terminal::width(&table)) {
            table.remove_column(column);
        }
    }
    table
}

fn load(sheet: &ToolResult) -> String {
    let rate = |rate: f64| {
        let typed = rate.to_string();
        if typed.len() <= 6 { typed } else { number(rate) }
    };
    match (sheet.request_rate, sheet.max_concurrency) {
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
        let values = results.iter().filter_map(move |(_, sheet)| get(sheet));
        let found = in_order(values.filter(|value| !value.is_empty()));
        let shown = found.iter().take(NAMES_SHOWN_MAX);
        let shown: Vec<String> = shown.map(|value| terminal_line(value, NAME_CHARS_MAX)).collect();
        let more = if NAMES_SHOWN_MAX < found.len() { " and others" } else { "" };
        (!shown.is_empty()).then(|| format!("{label} {}{more}", shown.join(", ")))
    };
    let mut tensor: Vec<u32> =
        results.iter().filter_map(|(_, sheet)| sheet.tensor_parallel).collect();
    tensor.dedup();
    let tensor: Vec<String> = tensor.iter().take(4).map(u32::to_string).collect();
    // Tools write dates in different ways; an unknown one is shown as it is.
    let written = results.iter().find_map(|(_, sheet)| sheet.started.as_deref());
    let measured = measured(results.iter().map(|(_, sheet)| *sheet))
        .or_else(|| written.map(|written| terminal_line(written, NAME_CHARS_MAX)));
    let facts = [
        each("model", |sheet| sheet.model.as_deref()),
        each("tokenizer", |sheet| {
            let tokenizer = sheet.tokenizer.as_deref();
            tokenizer.filter(|tokenizer| sheet.model.as_deref() != Some(*tokenizer))
        }),
        each("backend", |sheet| sheet.backend.as_deref()),
        (!tensor.is_empty()).then(|| format!("tensor parallel {}", tensor.join(", "))),
        each("version", |sheet| sheet.source.version.as_deref()),
        measured.map(|span| format!("measured {span}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| facts.join("; "))
}

/// The definition of each latency, and of the tool's other metrics.
fn definitions(page: &ImportPage<'_>) -> Vec<Block> {
    let mut found: Vec<LatencyDefinition> = Vec::new();
    for latency in page.sheets.iter().flat_map(|sheet| &sheet.latencies) {
        let definition = latency.definition();
        if !found.contains(&definition) {
            found.push(definition);
        }
    }
    // The sort is stable: tables show the first definition of a kind.
    found.sort_by_key(|definition| definition.kind);
    let mut shown = None;
    let mut items: Vec<Text> = Vec::new();
    for definition in found {
        let mut text = definition_text(definition);
        if shown == Some(definition.kind) {
            text.push(Span::Plain(" Not in the table.".to_owned()));
        }
        shown = Some(definition.kind);
        items.push(text);
    }
    items.extend(page.notes.iter().map(|note| plain(*note)));
    if items.is_empty() { Vec::new() } else { vec![Block::List(items)] }
}

/// Facts that no result of the file has.
fn missing(sheets: &[&ToolResult]) -> Option<String> {
    type Has = fn(&ToolResult) -> bool;
    const FACTS: [(&str, Has); 13] = [
        ("model", |sheet| sheet.model.is_some()),
        ("request rate or concurrency", |sheet| {
            sheet.request_rate.is_some() || sheet.max_concurrency.is_some()
        }),
        ("requests planned", |sheet| sheet.requests_planned.is_some()),
        ("requests completed", |sheet| sheet.completed.is_some()),
        ("requests failed", |sheet| sheet.failed.is_some()),
        ("duration", |sheet| sheet.duration_s.is_some()),
        ("input tokens", |sheet| sheet.input_tokens.is_some()),
        ("output tokens", |sheet| sheet.output_tokens.is_some()),
        ("request throughput", |sheet| sheet.request_throughput.is_some()),
        ("output throughput", |sheet| sheet.output_throughput.is_some()),
        ("total token throughput", |sheet| sheet.total_token_throughput.is_some()),
        ("goodput", |sheet| sheet.request_goodput.is_some()),
        ("single requests", |sheet| sheet.requests.is_some()),
    ];
    let facts = FACTS.iter().filter(|(_, has)| !sheets.iter().any(|sheet| has(sheet)));
    let is_missing = |kind: &LatencyKind| sheets.iter().all(|it| it.latency(*kind).is_none());
    let kinds = LatencyKind::ALL.into_iter().filter(is_missing).map(LatencyKind::name);
    let missing: Vec<&str> = facts.map(|(fact, _)| *fact).chain(kinds).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// Keys without a metric, each once with its number.
fn unmapped(sheets: &[&ToolResult]) -> Vec<Block> {
    let is_line =
        |text: &str| text.strip_prefix("line ").is_some_and(|number| number.parse::<u32>().is_ok());
    let texts = sheets
        .iter()
        .flat_map(|sheet| &sheet.unmapped)
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
        let read = counted(page.sheets.len() as u64, "result");
        format!("→ {read} could be read; repair the file and import it again to get all")
    });
    words.chain(more(page.broken.len())).chain(remedy).map(Block::paragraph).collect()
}

fn more(found: usize) -> Option<String> {
    let left = found.saturating_sub(LINES_MAX) as u64;
    (0 < left).then(|| format!("and {} more, all in the JSON document", count(left)))
}
