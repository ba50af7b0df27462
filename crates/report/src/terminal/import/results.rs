//! The results of a file: a table for each configuration, with the marks of its rows.

use inferometer_analysis::sheet::{LatencyKind, Mark, Sheet, SheetLatency, SheetRate};

use super::{ImportPage, NAME_CHARS_MAX, distinct};
use crate::escape::terminal_line;
use crate::fmt::{NOTHING, count, number};
use crate::lines::{PAGE_WIDTH, hanging};
use crate::table::Table;
use crate::terminal::Style;

/// Rows of all tables together; a file may have a hundred thousand.
const ROWS_MAX: usize = 200;
const TABLES_MAX: usize = 20;
/// Left out in this order where the page is too narrow for all.
const DISPENSABLE: [&str; 4] = ["ITL mean", "line", "E2E mean", "request/s"];

const NO_INTERVALS: &str = "latencies are in ms; there are no intervals: the file has none, so \
     nothing tells how far a figure would move in another run; figures that are not shown here are \
     in the JSON document";

const THEIR_INTERVALS: &str = "latencies are in ms; the intervals that the file has, and figures \
     that are not shown here, are in the JSON document";

/// A result with its number in the file.
pub(super) type Numbered<'a> = (usize, &'a Sheet);

/// The results of each configuration, in the order of their first coming.
pub(super) fn configurations<'a>(sheets: &[&'a Sheet]) -> Vec<(&'a str, Vec<Numbered<'a>>)> {
    let mut found: Vec<(&str, Vec<Numbered<'_>>)> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for (number, sheet) in sheets.iter().copied().enumerate() {
        let name = sheet.configuration.as_str();
        let place = *places.entry(name).or_insert_with(|| {
            found.push((name, Vec::new()));
            found.len() - 1
        });
        found[place].1.push((number, sheet));
    }
    found
}

pub(super) fn tables(page: &ImportPage<'_>, style: Style) -> Vec<String> {
    let mut sections = Vec::new();
    let mut room = ROWS_MAX;
    for (name, results) in configurations(&page.sheets).into_iter().take(TABLES_MAX) {
        let shown = &results[..results.len().min(room)];
        if shown.is_empty() {
            break;
        }
        room -= shown.len();
        sections.push(table(name, shown).to_terminal(style) + &about(&results));
    }
    let left = page.sheets.len() - (ROWS_MAX - room);
    if 0 < left {
        sections.push(hanging(
            "",
            0,
            &format!("{} more results are not shown here; --json has them all", count(left as u64)),
        ));
    }
    let has_intervals = |sheet: &&Sheet| {
        !sheet.intervals.is_empty()
            || sheet.latencies.iter().any(|latency| !latency.intervals_ms.is_empty())
    };
    let doubt = if page.sheets.iter().any(has_intervals) { THEIR_INTERVALS } else { NO_INTERVALS };
    sections.push(hanging("", 0, doubt) + &legend(&page.sheets));
    sections
}

fn table(name: &str, results: &[Numbered<'_>]) -> Table {
    let title = if name.is_empty() {
        "results".to_owned()
    } else {
        format!("{}: results", terminal_line(name, NAME_CHARS_MAX))
    };
    let mut table = Table {
        title,
        heads: vec![
            "#",
            "line",
            "load",
            "ok",
            "request/s",
            "output tok/s",
            "TTFT mean",
            "TTFT p99",
            "TPOT mean",
            "TPOT p99",
            "ITL mean",
            "E2E mean",
            "marks",
        ],
        rows: results.iter().copied().map(row).collect(),
        remarks: Vec::new(),
    };
    for head in table.heads.clone() {
        let column = table.heads.iter().position(|found| *found == head).unwrap_or_default();
        if table.rows.iter().all(|row| row[column].is_empty() || row[column] == NOTHING) {
            table.remove_column(head);
        }
    }
    for head in DISPENSABLE {
        if PAGE_WIDTH < width(&table) {
            table.remove_column(head);
        }
    }
    table
}

fn width(table: &Table) -> usize {
    let page = table.to_terminal(Style::Plain);
    page.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
}

fn row((place, sheet): Numbered<'_>) -> Vec<String> {
    let of = |kind: LatencyKind, value: fn(&SheetLatency) -> Option<f64>| {
        number(sheet.latency(kind).and_then(value))
    };
    let mean = |kind| of(kind, |latency| latency.mean_ms);
    let p99 = |kind| of(kind, |latency| latency.percentile_ms("99"));
    vec![
        place.to_string(),
        sheet.source.line.map_or_else(|| NOTHING.to_owned(), |line| line.to_string()),
        load(sheet),
        done(sheet),
        number(sheet.request_throughput),
        number(sheet.output_throughput),
        mean(LatencyKind::Ttft),
        p99(LatencyKind::Ttft),
        mean(LatencyKind::Tpot),
        p99(LatencyKind::Tpot),
        mean(LatencyKind::Itl),
        mean(LatencyKind::E2e),
        marks(sheet),
    ]
}

/// What it was asked.
fn load(sheet: &Sheet) -> String {
    match (sheet.request_rate, sheet.max_concurrency) {
        (Some(SheetRate::PerSecond(rate)), None) => format!("{}/s", rate_text(rate)),
        // Capped-open: neither loop, and never shown as one.
        (Some(SheetRate::PerSecond(rate)), Some(cap)) => format!("{}/s ≤{cap}", rate_text(rate)),
        (Some(SheetRate::Unlimited), None) => "all at once".to_owned(),
        (Some(SheetRate::Unlimited) | None, Some(slots)) => format!("{slots} in flight"),
        (None, None) => NOTHING.to_owned(),
    }
}

/// As it was typed, as long as that is short.
fn rate_text(rate: f64) -> String {
    let typed = rate.to_string();
    if typed.len() <= 6 { typed } else { number(rate) }
}

fn done(sheet: &Sheet) -> String {
    match (sheet.completed, sheet.requests_planned) {
        (Some(done), Some(planned)) => format!("{}/{}", count(done), count(planned)),
        (Some(done), None) => count(done),
        (None, _) => NOTHING.to_owned(),
    }
}

fn marks(sheet: &Sheet) -> String {
    sheet.marks.iter().map(Mark::key).collect::<Vec<_>>().join(", ")
}

/// What its marks say, and what to do.
const fn words(mark: &Mark) -> &'static str {
    match mark {
        Mark::Cut { .. } => {
            "fewer requests completed than were planned: the figures are of those that were quick \
             enough; measure again with more time, or read them as the best part only"
        }
        Mark::Failures { .. } => {
            "some requests failed, and the latencies are of the others; look at the server's log, \
             and measure again"
        }
        Mark::Saturated { .. } => {
            "less than 95 % of the rate asked was served, by more than the chance of so few requests \
             (1 in √n): the queue grew, and the latencies tell how long the run was; compare \
             latencies at lower rates"
        }
        Mark::Invalid => "by the checks of the tool that measured it; measure again",
        Mark::Simulated => "no server was measured",
    }
}

/// Each kind of mark once, with how many results have it.
fn legend(sheets: &[&Sheet]) -> String {
    let mut found: Vec<(&Mark, usize)> = Vec::new();
    for mark in sheets.iter().flat_map(|sheet| &sheet.marks) {
        match found.iter_mut().find(|(known, _)| known.key() == mark.key()) {
            Some((_, times)) => *times += 1,
            None => found.push((mark, 1)),
        }
    }
    let lines = found.into_iter().map(|(mark, times)| {
        let told = format!("{} ({} of {}): {}", mark.key(), times, sheets.len(), words(mark));
        hanging("", 2, &told)
    });
    lines.collect()
}

/// What is the same for the whole table, or nearly.
fn about(results: &[Numbered<'_>]) -> String {
    let each = |value: fn(&Sheet) -> Option<&str>| {
        distinct(results.iter().filter_map(move |(_, sheet)| value(sheet)))
    };
    let mut tensor: Vec<u32> =
        results.iter().filter_map(|(_, sheet)| sheet.tensor_parallel).collect();
    tensor.dedup();
    let tensor: Vec<String> = tensor.iter().take(4).map(u32::to_string).collect();
    let facts = [
        each(|sheet| sheet.model.as_deref()).map(|model| format!("model {model}")),
        each(other_tokenizer).map(|name| format!("tokenizer {name}")),
        each(|sheet| sheet.backend.as_deref()).map(|backend| format!("backend {backend}")),
        (!tensor.is_empty()).then(|| format!("tensor parallel {}", tensor.join(", "))),
        each(|sheet| sheet.source.version.as_deref()).map(|version| format!("version {version}")),
        measured(results),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    if facts.is_empty() { String::new() } else { hanging("  ", 2, &facts.join("; ")) }
}

/// Mostly it is the model's own, and the same words again.
fn other_tokenizer(sheet: &Sheet) -> Option<&str> {
    sheet.tokenizer.as_deref().filter(|tokenizer| sheet.model.as_deref() != Some(*tokenizer))
}

/// Tools write moments in different ways; where none is known, the first is shown as it is written.
fn measured(results: &[Numbered<'_>]) -> Option<String> {
    let written = results.iter().find_map(|(_, sheet)| sheet.started.as_deref())?;
    let moments = || results.iter().filter_map(|(_, sheet)| sheet.started_at());
    let (Some(first), Some(last)) = (moments().min(), moments().max()) else {
        return Some(format!("measured {}", terminal_line(written, NAME_CHARS_MAX)));
    };
    let [first, last] = [first, last].map(|moment| moment.to_string());
    let span = if first == last { first } else { format!("{first} to {last}") };
    let undated = results.len() - moments().count();
    let rest = if undated == 0 { String::new() } else { format!(" ({undated} without a date)") };
    Some(format!("measured {span}{rest}"))
}
