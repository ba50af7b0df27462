//! The tables of a suite: one line for each level of each scenario, in its order.

use std::fmt::Write;

use inferometer_analysis::set::{Contaminated, LevelSummary, SetSummary, SuiteRow, SuiteSummary};
use inferometer_analysis::{Quantity, Verdict, metric};
use inferometer_model::campaign::{Dimension, Prompts};

use super::levels::{Cell, DOUBT_ELSEWHERE, doubt_remark, throughputs, width};
use super::{findings, subject_of};
use crate::escape::{terminal, terminal_line};
use crate::fmt::{NOTHING, across, count, marked_mean, mean, percent, percentile};
use crate::lines::{PAGE_WIDTH, hanging};
use crate::table::Table;
use crate::terminal::Style;

/// `Concurrency Scaling (c=32)` is as long.
const NAME_CHARS_MAX: usize = 26;
/// Names stand at the left, so their column is as wide as this.
const SCENARIO_HEAD: &str = "scenario                  ";
/// Digits of a hash that tell suites apart.
const HASH_CHARS: usize = 12;

/// What was played, and on which server.
pub(super) fn head(set: &SetSummary, suite: &SuiteSummary) -> String {
    let prompts = match suite.prompts {
        Prompts::Fresh => "prompts of their own",
        Prompts::Same => "the same prompts for all",
    };
    let mut scenarios = match set.conditions.len() {
        1 => "1 scenario".to_owned(),
        several => format!("{several} scenarios"),
    };
    if suite.rows.len() != set.conditions.len() {
        // Tables have a line for each.
        let _ = write!(scenarios, ", {} levels", count(suite.rows.len() as u64));
    }
    let mut text = hanging(
        "",
        0,
        &format!(
            "suite `{}` ({}): {scenarios}, {prompts}",
            terminal_line(&suite.name, 40),
            terminal_line(&suite.hash, HASH_CHARS),
        ),
    );
    if !suite.changes.is_empty() {
        let changes: Vec<String> = suite.changes.iter().map(|change| terminal(change)).collect();
        text += &hanging("", 0, &format!("changed by {}", changes.join(", ")));
    }
    let subject = set.conditions.iter().find_map(|condition| condition.subject.as_ref());
    text + &hanging("", 0, &subject.map_or_else(|| "no run yet".to_owned(), subject_of))
}

pub(super) fn tables(set: &SetSummary, suite: &SuiteSummary, style: Style) -> Vec<String> {
    let mut page =
        vec![performance(set, suite).to_terminal(style), speeds(set, suite).to_terminal(style)];
    let scaling = suite.scaling.and_then(|place| usize::try_from(place).ok());
    if let Some(condition) = scaling.and_then(|place| set.conditions.get(place)) {
        let name = terminal_line(&condition.name, NAME_CHARS_MAX);
        page.push(throughputs(condition, Some(&name), style));
        let concurrency = Some(Dimension::Concurrency);
        let findings = findings::findings(condition, concurrency, Some(&name), style);
        page.push(findings + &warmth(suite));
    }
    page
}

/// Whose numbers the findings are, where it is the cache's.
fn warmth(suite: &SuiteSummary) -> String {
    let is_of_scaling = |found: &Contaminated| {
        let row = usize::try_from(found.row).ok().and_then(|place| suite.rows.get(place));
        row.is_some_and(|row| Some(row.condition) == suite.scaling)
    };
    let is_warm = |found: &&Contaminated| !found.same_data && is_of_scaling(found);
    let found: Vec<&Contaminated> = suite.contaminated.iter().filter(is_warm).collect();
    if found.is_empty() {
        return String::new();
    }
    let words = if found.iter().all(|found| found.suspected) {
        "these levels may have been answered from a warm prefix cache, and their findings with them"
    } else {
        "these levels were answered from a warm prefix cache: their findings describe it"
    };
    findings::line("cache", words)
}

fn performance(set: &SetSummary, suite: &SuiteSummary) -> Table {
    let whole = performance_table(set, suite, across, percentile);
    if width(&whole) <= PAGE_WIDTH {
        return whole;
    }
    // The document has what is left out.
    let mut narrow = performance_table(set, suite, mean, marked_mean);
    narrow.remarks.retain(|remark| !remark.starts_with('±'));
    narrow.remarks.push(DOUBT_ELSEWHERE.to_owned());
    narrow
}

fn performance_table(set: &SetSummary, suite: &SuiteSummary, mean: Cell, tail: Cell) -> Table {
    let row = |row: &SuiteRow| {
        let level = row.summary(&set.conditions);
        let of = |quantity: Quantity| level.and_then(|level| level.quantity(quantity));
        vec![
            name(row),
            row.concurrency.map_or_else(|| NOTHING.to_owned(), |users| count(users.into())),
            level.map_or_else(|| NOTHING.to_owned(), |level| count(level.requests.ok)),
            mean(of(metric::OUTPUT_THROUGHPUT.quantity())),
            mean(of(metric::TTFT.mean())),
            mean(of(metric::TPOT.mean())),
            tail(of(metric::TPOT.p99())),
            mark(level).to_owned(),
        ]
    };
    let levels: Vec<LevelSummary> =
        suite.rows.iter().filter_map(|row| row.summary(&set.conditions)).cloned().collect();
    let mut remarks = vec![doubt_remark(&levels)];
    let uncertain = |level: &LevelSummary| {
        level
            .quantity(metric::TPOT.p99())
            .is_some_and(|found| found.mean.is_some() && !found.certified)
    };
    if levels.iter().any(uncertain) {
        remarks.push("~ too few samples in a run to certify this percentile".to_owned());
    }
    remarks.extend(legend(suite.rows.iter().map(|row| mark(row.summary(&set.conditions)))));
    Table {
        title: "performance summary (times in ms)".to_owned(),
        heads: vec![SCENARIO_HEAD, "c", "ok", "tok/s", "TTFT mean", "TPOT mean", "TPOT p99", " "],
        rows: suite.rows.iter().map(row).collect(),
        remarks,
    }
}

/// How prompts are read and answers written, and how much of the former was not read at all.
fn speeds(set: &SetSummary, suite: &SuiteSummary) -> Table {
    let whole = speed_table(set, suite, across);
    if width(&whole) <= PAGE_WIDTH {
        return whole;
    }
    let mut narrow = speed_table(set, suite, mean);
    narrow.remarks.push(DOUBT_ELSEWHERE.to_owned());
    narrow
}

fn speed_table(set: &SetSummary, suite: &SuiteSummary, cell: Cell) -> Table {
    let row = |(place, row): (usize, &SuiteRow)| {
        let level = row.summary(&set.conditions);
        let of = |quantity: Quantity| cell(level.and_then(|level| level.quantity(quantity)));
        let length = |lengths: &Option<String>| {
            lengths.as_deref().map_or_else(|| NOTHING.to_owned(), |text| terminal_line(text, 14))
        };
        let found = suite.contaminated.iter().find(|found| found.row as usize == place);
        let cached = match (row.cached_share, found) {
            (None, Some(_)) => "suspected".to_owned(),
            (share, _) => percent(share),
        };
        vec![
            name(row),
            length(&row.input_tokens),
            length(&row.output_tokens),
            of(metric::PP.quantity()),
            of(metric::TG.quantity()),
            cached,
        ]
    };
    Table {
        title: "prefill (PP) and decode (TG), tokens/s".to_owned(),
        heads: vec![SCENARIO_HEAD, "in", "out", "PP", "TG", "from cache"],
        rows: suite.rows.iter().enumerate().map(row).collect(),
        remarks: Vec::new(),
    }
}

/// A name that is too long loses its own end, and not its level.
fn name(row: &SuiteRow) -> String {
    let width = SCENARIO_HEAD.len();
    let level = row.name.strip_prefix(row.scenario.as_str()).map(terminal).unwrap_or_default();
    let left = NAME_CHARS_MAX.saturating_sub(level.chars().count());
    let name = match row.name.strip_suffix(&level) {
        Some(name) if 1 < left => terminal_line(name, left) + &level,
        _ => terminal_line(&row.name, NAME_CHARS_MAX),
    };
    format!("{name:<width$}")
}

fn mark(level: Option<&LevelSummary>) -> &'static str {
    match level.map(|level| level.verdict) {
        Some(Verdict::Valid | Verdict::Degraded) if level.is_some_and(|it| !it.is_reached()) => "‡",
        Some(Verdict::Valid) => "✓",
        Some(Verdict::Degraded) => "!",
        Some(Verdict::Invalid) => "✗",
        None => NOTHING,
    }
}

fn legend(marks: impl Iterator<Item = &'static str>) -> Vec<String> {
    let seen: Vec<&str> = marks.collect();
    [
        ("!", "! holds with a reservation"),
        ("‡", "‡ never so many in flight: figures per user count users who were not there"),
        ("✗", "✗ invalid: its numbers are not about the server, and are left out"),
    ]
    .into_iter()
    .filter(|(mark, _)| seen.contains(mark))
    .map(|(_, words)| words.to_owned())
    .collect()
}
