//! What a file does not say, what it says beyond a sheet, and what in it cannot be read.

use std::collections::BTreeMap;

use inferometer_analysis::sheet::{LatencyKind, Sheet};

use super::meaning::name;
use super::{ImportPage, NAME_CHARS_MAX, plural};
use crate::escape::terminal_line;
use crate::fmt::count;
use crate::lines::hanging;
use crate::terminal::{Ink, Style};

/// Lines of a list that a stranger's file makes as long as it likes.
const LINES_MAX: usize = 12;
const LINE_CHARS_MAX: usize = 300;

/// Whether a result says it.
type Known = fn(&Sheet) -> bool;

/// What pages and comparisons would want to know, and no result says.
pub(super) fn missing(page: &ImportPage<'_>, style: Style) -> String {
    let nowhere = |known: Known| !page.sheets.iter().any(|sheet| known(sheet));
    let figures: [(&str, Known); 13] = [
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
    let mut missing: Vec<&str> =
        figures.into_iter().filter(|(_, known)| nowhere(*known)).map(|(what, _)| what).collect();
    let kinds = [LatencyKind::Ttft, LatencyKind::Tpot, LatencyKind::Itl, LatencyKind::E2e];
    let unknown =
        |kind: &LatencyKind| page.sheets.iter().all(|sheet| sheet.latency(*kind).is_none());
    missing.extend(kinds.into_iter().filter(unknown).map(name));
    if missing.is_empty() {
        return String::new();
    }
    titled("not in the file", style) + &hanging("  ", 2, &missing.join(", "))
}

/// One line for each thing, however many results say it.
pub(super) fn unmapped(page: &ImportPage<'_>, style: Style) -> String {
    let mut found: Vec<(&str, &str, usize)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for said in page.sheets.iter().flat_map(|sheet| &sheet.unmapped) {
        let (place, what) = placed(said);
        let known = *places.entry(what).or_insert_with(|| {
            found.push((place, what, 0));
            found.len() - 1
        });
        found[known].2 += 1;
    }
    if found.is_empty() {
        return String::new();
    }
    let mut text = titled("in the file, and not taken over", style);
    for (place, what, times) in found.iter().take(LINES_MAX) {
        let what = terminal_line(what, LINE_CHARS_MAX);
        let place = terminal_line(place, NAME_CHARS_MAX);
        let line = match (place.is_empty(), *times) {
            (true, 1) => what,
            (false, 1) => format!("{place}: {what}"),
            (true, times) => format!("{what} ({} times)", count(times as u64)),
            (false, times) => {
                format!("{what} ({} times, first in {place})", count(times as u64))
            }
        };
        text += &hanging("  ", 2, &line);
    }
    text + &more(found.len())
}

/// Records that could not be read, with their places.
pub(super) fn broken(page: &ImportPage<'_>, style: Style) -> String {
    if page.broken.is_empty() {
        return String::new();
    }
    let mut text = titled("cannot be read", style);
    for broken in page.broken.iter().take(LINES_MAX) {
        let reason = terminal_line(broken.reason, LINE_CHARS_MAX);
        let place = match broken.line {
            0 => "a record".to_owned(),
            line => format!("line {line}"),
        };
        text += &hanging("  ", 4, &format!("{place} {reason}"));
    }
    text += &more(page.broken.len());
    let remedy = format!(
        "{} could be read; mend the file and import it again to have all",
        plural(page.sheets.len(), "result")
    );
    text + &hanging("  → ", 4, &remedy)
}

/// `line 12` and what stands there.
fn placed(said: &str) -> (&str, &str) {
    match said.split_once(": ") {
        Some((place, what)) if is_line(place) => (place, what),
        Some(_) | None => ("", said),
    }
}

fn is_line(place: &str) -> bool {
    place.strip_prefix("line ").is_some_and(|number| number.parse::<u32>().is_ok())
}

fn titled(title: &str, style: Style) -> String {
    style.paint(Ink::Bold, title) + "\n"
}

fn more(found: usize) -> String {
    let left = found.saturating_sub(LINES_MAX);
    if left == 0 {
        return String::new();
    }
    format!("  and {} more, all in the JSON document\n", count(left as u64))
}
