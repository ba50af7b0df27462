//! Rows of the matrix as tables: numbers with their doubt, and a dash with its reason.

use inferometer_analysis::matrix::{MatrixFigure, MatrixRow, TpsBy};
use inferometer_analysis::set::Across;

use super::view::{self, View};
use crate::document::{Cell, Column, Table, plain};
use crate::number::{count, fixed, percent};
use crate::pages::cells::{Behind, missing, of_across};
use crate::pages::words::level_name;

/// A number of a row, marked where the row is.
pub(super) fn number(row: &MatrixRow, across: &Across) -> Cell {
    if let Some(reason) = view::nothing(row) {
        return missing(&reason);
    }
    let cell = of_across(across, Behind::default(), 0);
    let text = across.mean.map_or_else(|| cell.text.clone(), view::digits);
    // Rows are sorted by what is printed: further digits would be half of a large page.
    let number = cell.number.and_then(|_| text.replace(',', "").parse().ok());
    reserved(row, Cell { text, number, ..cell })
}

/// The same where another table has its interval.
pub(super) fn repeated(row: &MatrixRow, across: &Across) -> Cell {
    let cell = number(row, across);
    if cell.doubtful || cell.number.is_none() { cell } else { Cell { detail: None, ..cell } }
}

fn reserved(row: &MatrixRow, cell: Cell) -> Cell {
    let Some(reason) = view::reservation(row).filter(|_| cell.number.is_some()) else {
        return cell;
    };
    let detail: Vec<String> = [cell.detail.unwrap_or_default(), reason.clone()]
        .into_iter()
        .filter(|words| !words.is_empty())
        .collect();
    Cell { detail: Some(detail.join("; ")), doubtful: true, reason: Some(reason), ..cell }
}

/// What a line of a table is called by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// A line for each preset.
    Presets,
    /// A line for each preset and load.
    Loads,
}

/// The rows of one section, or of one comparison of loads.
pub(super) fn of_rows(
    view: View<'_>,
    (id, caption): (String, String),
    lines: Lines,
    rows: &[&MatrixRow],
) -> Table {
    let has_load = lines == Lines::Loads;
    let further = further(view);
    let mut columns = vec![Column::left("Preset")];
    columns.extend(has_load.then(|| Column::left("Load")));
    columns.extend(heads(view).map(Column::right));
    columns.extend(further.iter().map(|(_, head)| Column::right(head.clone())));
    columns.push(Column::right("Errors"));
    let cells = |row: &&MatrixRow| {
        let of = |figure| number(row, view.figure(row, figure));
        let mut cells = vec![Cell::text(view.preset(row.preset))];
        cells.extend(has_load.then(|| Cell::text(level_name(row.level))));
        cells.extend([
            of(MatrixFigure::PromptTps),
            of(MatrixFigure::GenerationTps),
            of(MatrixFigure::Latency),
            of(MatrixFigure::Ttft),
            number(row, &row.request_generation_tps),
            number(row, &row.request_prompt_tps),
        ]);
        cells.extend(further.iter().map(|(figure, _)| of(*figure)));
        cells.push(errors(row));
        cells
    };
    Table { id, caption, columns, rows: rows.iter().map(cells).collect(), notes: Vec::new() }
}

fn heads(view: View<'_>) -> [String; 6] {
    let by = match view.tps_by() {
        TpsBy::Server => "",
        TpsBy::Client => " by the client",
    };
    [
        format!("Prompt TPS{by}"),
        format!("Generation TPS{by}"),
        "Mean latency (s)".to_owned(),
        "Mean TTFT (ms)".to_owned(),
        "Generation TPS of a request".to_owned(),
        "Prompt TPS of a request".to_owned(),
    ]
}

/// Columns that only some matrices have.
fn further(view: View<'_>) -> Vec<(MatrixFigure, String)> {
    let cost = view.currency().map_or_else(
        || "Cost per million (in the prices' unit)".to_owned(),
        |currency| format!("Cost ({currency} per million)"),
    );
    let columns =
        [(MatrixFigure::Cost, cost), (MatrixFigure::Energy, "Energy (J per token)".to_owned())];
    columns.into_iter().filter(|(figure, _)| view.has(*figure)).collect()
}

fn errors(row: &MatrixRow) -> Cell {
    match view::nothing(row).filter(|_| row.points.is_empty()) {
        Some(reason) => missing(&reason),
        None => Cell {
            detail: (0 < row.errors).then(|| format!("of {} requests", count(row.requests))),
            ..Cell::number(count(row.errors), row.errors as f64)
        },
    }
}

/// What the servers said of themselves, where one said anything.
pub(super) fn of_servers(view: View<'_>, id: String, rows: &[&MatrixRow]) -> Option<Table> {
    type Gauge = (&'static str, fn(&MatrixRow) -> Option<f64>, fn(f64) -> String);
    const GAUGES: [Gauge; 7] = [
        ("Running", |row| row.running, |value| fixed(Some(value), 2)),
        ("Waiting", |row| row.waiting, |value| fixed(Some(value), 2)),
        ("Swapped", |row| row.swapped, |value| fixed(Some(value), 2)),
        ("KV cache", |row| row.kv_usage, |value| percent(Some(value))),
        ("CPU cache", |row| row.cpu_cache_usage, |value| percent(Some(value))),
        ("GPU power (W)", |row| row.power_w, |value| fixed(Some(value), 1)),
        (
            "GPU memory (GiB)",
            |row| row.gpu_memory_bytes,
            |value| fixed(Some(value / 1_073_741_824.0), 1),
        ),
    ];
    let told: Vec<&Gauge> =
        GAUGES.iter().filter(|gauge| rows.iter().any(|row| gauge.1(row).is_some())).collect();
    if told.is_empty() {
        return None;
    }
    let heads = told.iter().map(|gauge| Column::right(gauge.0));
    let cells = |row: &&MatrixRow| {
        let of = |gauge: &&Gauge| match (gauge.1(row), view::nothing(row)) {
            (None, Some(reason)) => missing(&reason),
            (None, None) => missing("the server does not say"),
            // To three digits: all of them, of many rows, would be too much to send.
            (Some(value), _) => Cell::number(gauge.2(value), (value * 1e3).round() / 1e3),
        };
        [Cell::text(view.deployment(row))].into_iter().chain(told.iter().map(of)).collect()
    };
    Some(Table {
        id,
        caption: "What the server said, on average".to_owned(),
        columns: [Column::left("Preset")].into_iter().chain(heads).collect(),
        rows: rows.iter().map(cells).collect(),
        notes: vec![plain(
            "Means over the readings inside the runs. The spread between readings is in the runs.",
        )],
    })
}
