//! The results themselves, one row each.

use inferometer_analysis::sheet::{LatencyKind, Mark, Sheet};
use inferometer_analysis::{Estimate, Percentile, Statistic};

use super::figures::{Meaning, Quantity, statistic_name, uncertified_words};
use super::lines::{Line, load_words};
use super::words::{mark_words, unsaid};
use crate::document::{Cell, Column, Table, plain};
use crate::fmt::{self, count, number};
use crate::pages::cells::missing;

/// A longer table is no page; files of data have all rows.
const ROWS_MAX: usize = 400;
/// Names come from files: longer ones are cut.
pub(super) const NAME_MAX: usize = 80;

const STATISTICS: [Statistic; 3] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P99),
];

const RATES: [(&str, &str); 4] = [
    ("Requests/s", "request_throughput"),
    ("Goodput (req/s)", "request_goodput"),
    ("Output tok/s", "output_throughput"),
    ("Total tok/s", "total_token_throughput"),
];

pub(super) fn results(lines: &[Line<'_>]) -> Table {
    let sheets = || lines.iter().flat_map(Line::sheets);
    let quantities = quantities(&sheets().collect::<Vec<_>>());
    let has_failed = sheets().any(|sheet| sheet.failed.is_some());
    let mut columns = vec![
        Column::left("Configuration"),
        Column::right("Load"),
        Column::left("Marks"),
        Column::right("Completed"),
        Column::right("Planned"),
    ];
    columns.extend(has_failed.then(|| Column::right("Failed")));
    columns.push(Column::right("Duration (s)"));
    columns.extend(quantities.iter().map(|(title, _)| Column::right(title.clone())));
    columns.push(Column::left("From"));
    let row = |(line, load, sheet): (&Line<'_>, Option<f64>, &Sheet)| {
        let name = crate::escape::terminal_line(&line.name, NAME_MAX);
        let load_cell = Cell { number: load, ..Cell::text(load_words(line.kind, load)) };
        let mut row = vec![Cell::text(name), load_cell, marks_cell(&sheet.marks)];
        row.extend([sheet.completed, sheet.requests_planned].map(count_cell));
        row.extend(has_failed.then(|| count_cell(sheet.failed)));
        row.push(number_cell(sheet.duration_s));
        row.extend(quantities.iter().map(|(_, quantity)| figure_cell(sheet, *quantity)));
        row.push(source_cell(sheet));
        row
    };
    let all =
        lines.iter().flat_map(|line| line.results().map(move |(load, sheet)| (line, load, sheet)));
    let rows: Vec<Vec<Cell>> = all.take(ROWS_MAX).map(row).collect();
    let total = sheets().count();
    let cut = format!(
        "The first {} of {} results; `--format csv` and `--format json` have all.",
        count(rows.len() as u64),
        count(total as u64)
    );
    let mut notes = vec![plain("Latencies are in milliseconds.")];
    notes.extend((rows.len() < total).then(|| plain(cut)));
    let (id, caption) = ("results-table".to_owned(), "Every result".to_owned());
    Table { id, caption, columns, rows, notes }
}

/// Those that at least one result has.
pub(super) fn quantities(sheets: &[&Sheet]) -> Vec<(String, Quantity)> {
    let rates = RATES.map(|(title, field)| (title.to_owned(), Quantity::Throughput(field)));
    let kinds = [LatencyKind::Ttft, LatencyKind::Tpot, LatencyKind::Itl, LatencyKind::E2e];
    let meanings = kinds.into_iter().flat_map(|kind| Meaning::all(kind, sheets.iter().copied()));
    let latencies = meanings.flat_map(|meaning| {
        STATISTICS.map(|statistic| {
            let title = format!("{} {}", statistic_name(statistic), meaning.name());
            (title, Quantity::Latency(meaning, statistic))
        })
    });
    let all = rates.into_iter().chain(latencies);
    all.filter(|(_, it)| sheets.iter().any(|sheet| it.of(sheet).is_some())).collect()
}

fn count_cell(value: Option<u64>) -> Cell {
    value.map_or_else(
        || missing("its source does not say it"),
        |value| Cell::number(count(value), value as f64),
    )
}

fn number_cell(value: Option<f64>) -> Cell {
    value.map_or_else(
        || missing("its source does not say it"),
        |value| Cell::number(number(value), value),
    )
}

fn figure_cell(sheet: &Sheet, quantity: Quantity) -> Cell {
    let Some(Estimate { value, interval, n, certified, .. }) = quantity.of(sheet) else {
        return missing("its source does not say it");
    };
    let known = interval.map(|interval| format!("95 % {} within the run", fmt::interval(interval)));
    let few = (!certified).then(|| uncertified_words(n).to_owned());
    let detail: Vec<String> = known.into_iter().chain(few.clone()).collect();
    Cell {
        detail: (!detail.is_empty()).then(|| detail.join("; ")),
        doubtful: !certified,
        reason: few,
        ..number_cell(Some(value))
    }
}

fn marks_cell(marks: &[Mark]) -> Cell {
    let names: Vec<&str> = marks.iter().map(Mark::key).collect();
    let words: Vec<String> = marks.iter().map(mark_words).collect();
    let detail = (!words.is_empty()).then(|| words.join("; "));
    Cell { detail, ..Cell::text(names.join(", ")) }
}

/// Whose number it is, and where it stands in its file.
fn source_cell(sheet: &Sheet) -> Cell {
    let source = &sheet.source;
    let name = if source.name.is_empty() { unsaid("name") } else { source.name.clone() };
    let place = source.line.map(|line| format!("line {line}"));
    let parts: Vec<String> =
        [Some(source.tool.told().to_owned()), place].into_iter().flatten().collect();
    let started = sheet.started.clone().map(|time| format!("started {time}"));
    let detail: Vec<String> = [Some(name), started].into_iter().flatten().collect();
    let short = |text: String| crate::escape::terminal_line(&text, 2 * NAME_MAX);
    Cell { detail: Some(short(detail.join("; "))), ..Cell::text(parts.join(", ")) }
}
