//! Rows of the matrix as tables: numbers with their doubt, and a dash with its reason.

use inferometer_analysis::matrix::{MatrixFigure, MatrixRow};
use inferometer_analysis::set::Across;

use super::view::{self, CountedBy, View};
use crate::document::{Cell, Column, Table, plain};
use crate::number::{count, fixed, percent};
use crate::pages::cells::{Behind, missing, of_across};

/// A number of a row, marked where the row is.
pub(super) fn number(row: &MatrixRow, across: &Across, places: usize) -> Cell {
    if let Some(reason) = view::nothing(row) {
        return missing(&reason);
    }
    let cell = of_across(across, Behind::default(), places);
    // Rows are sorted by what is printed: further digits would be half of a large page.
    let number = cell.number.and_then(|_| cell.text.parse().ok());
    reserved(row, Cell { number, ..cell })
}

/// The same where another table has its interval.
pub(super) fn repeated(row: &MatrixRow, across: &Across, places: usize) -> Cell {
    let cell = number(row, across, places);
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

/// The rows of one section: a line for each preset.
pub(super) fn of_rows(view: View<'_>, id: String, caption: String, rows: &[&MatrixRow]) -> Table {
    let by = match view.counted_by() {
        CountedBy::Server => "",
        CountedBy::Client => " by the client",
    };
    let mut columns = vec![Column::left("Preset")];
    let heads = [
        format!("Prompt TPS{by}"),
        format!("Generation TPS{by}"),
        "Mean latency (s)".to_owned(),
        "Mean TTFT (s)".to_owned(),
        "Generation TPS of a request".to_owned(),
        "Prompt TPS of a request".to_owned(),
    ];
    columns.extend(heads.map(Column::right));
    let further: Vec<(MatrixFigure, String)> = [
        (MatrixFigure::Cost, format!("Cost ({} per million)", view.currency())),
        (MatrixFigure::Energy, "Energy (J per token)".to_owned()),
    ]
    .into_iter()
    .filter(|(figure, _)| view.has(*figure))
    .collect();
    columns.extend(further.iter().map(|(_, head)| Column::right(head.clone())));
    columns.push(Column::right("Errors"));
    let cells = |row: &&MatrixRow| {
        let of = |figure| number(row, view.figure(row, figure), 2);
        let mut cells = vec![
            Cell::text(view.preset(row.preset)),
            of(MatrixFigure::PromptTps),
            of(MatrixFigure::GenerationTps),
            of(MatrixFigure::Latency),
            number(row, &row.ttft_s, 3),
            number(row, &row.request_generation_tps, 2),
            number(row, &row.request_prompt_tps, 2),
        ];
        cells.extend(further.iter().map(|(figure, _)| of(*figure)));
        cells.push(errors(row));
        cells
    };
    Table { id, caption, columns, rows: rows.iter().map(cells).collect(), notes: Vec::new() }
}

fn errors(row: &MatrixRow) -> Cell {
    match view::nothing(row) {
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
            (_, Some(reason)) => missing(&reason),
            (None, None) => missing("the server does not say"),
            (Some(value), None) => Cell::number(gauge.2(value), value),
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
