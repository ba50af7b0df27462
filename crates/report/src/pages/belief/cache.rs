//! What the server took from its prefix cache, and what shows it.

use inferometer_analysis::metric;
use inferometer_analysis::set::Contaminated;
use inferometer_model::campaign::Prompts;

use crate::document::{Block, Cell, Column, Table, plain};
use crate::fmt::{counted, list, number, percent};
use crate::pages::cells::{missing, quantity_cell};
use crate::pages::rows::Row;

/// What the server answered from its prefix cache, with the figures in which it would show.
pub(in crate::pages) fn cache(rows: &[Row<'_>], prompts: Option<Prompts>) -> Vec<Block> {
    let words = match prompts {
        Some(Prompts::Fresh) => {
            "Every scenario and level had prompts of its own, so that none could meet in the cache \
             what another had left there."
        }
        Some(Prompts::Same) => {
            "All scenarios drew their prompts from one seed, so a later one may have met in the \
             cache what an earlier one had left there."
        }
        None => {
            "Prompts that the server has seen before cost it less; what it took from its cache:"
        }
    };
    let is_warm = rows.iter().any(|row| row.contaminated.is_some());
    let mut columns = vec![
        Column::left("Scenario"),
        Column::right("By its answers"),
        Column::right("By its counters"),
        Column::right("TTFT mean (ms)"),
        Column::right("TTFT p50 (ms)"),
        Column::right("Prefill (PP) tok/s"),
    ];
    if is_warm {
        columns.push(Column::right("PP of a cold scenario"));
        columns.push(Column::left("Same beginnings sent by"));
    }
    let line = |row: &Row<'_>| {
        let mut cells = cache_row(row);
        if is_warm {
            cells.extend(warm_cells(row, rows));
        }
        cells
    };
    let table = Table {
        id: "cache-evidence".to_owned(),
        caption: "Prompt tokens that the server took from its prefix cache".to_owned(),
        columns,
        rows: rows.iter().map(line).collect(),
        notes: Vec::new(),
    };
    vec![Block::Paragraph(plain(words)), Block::Table(table)]
}

fn cache_row(row: &Row<'_>) -> Vec<Cell> {
    let runs = || row.all_runs();
    let answers = row
        .scenario
        .and_then(|scenario| scenario.cached_share)
        .or_else(|| mean(runs().filter_map(|run| run.workload.audit.cache.share)));
    let why = runs().find_map(|run| run.workload.audit.cache.reason.clone());
    let counters =
        mean(runs().filter_map(|run| run.server.as_ref().and_then(|it| it.prefix_hit_share)));
    let silent = runs().find_map(|run| run.server_missing.clone());
    let share = |value: Option<f64>, reason: Option<String>| match value {
        Some(share) => Cell::number(percent(share), share),
        None => missing(&reason.unwrap_or_else(|| "the server does not say".to_owned())),
    };
    let reservation = row.contaminated.and_then(|_| row.reservation());
    vec![
        Cell {
            doubtful: reservation.is_some(),
            detail: reservation,
            ..Cell::text(row.name.clone())
        },
        share(answers, why),
        share(counters, silent),
        quantity_cell(row, metric::TTFT.mean()),
        quantity_cell(row, metric::TTFT.p50()),
        quantity_cell(row, metric::PP.quantity()),
    ]
}

/// What shows that prompts of this row were in the cache: a cold row, and who sent them before.
fn warm_cells(row: &Row<'_>, all: &[Row<'_>]) -> [Cell; 2] {
    const NOT_WARM: &str = "it was not found in the cache";
    let Some(found) = row.contaminated else { return [missing(NOT_WARM), missing(NOT_WARM)] };
    let name = |place: u32| {
        let found = all.iter().find(|other| other.suite_place == Some(place));
        found.map_or_else(String::new, |row| row.name.clone())
    };
    let cold = found.pp_cold.zip(found.cold).map_or_else(
        || missing("no cold scenario compares"),
        |(speed, place)| Cell {
            detail: Some(format!("of {}", name(place))),
            ..Cell::number(number(speed), speed)
        },
    );
    [cold, senders(found, name)]
}

/// Few are named; of many the first two with their number.
fn senders(found: &Contaminated, name: impl Fn(u32) -> String) -> Cell {
    let before = &found.sent_before;
    let is_all = before.len() as u64 == u64::from(found.row);
    match before.as_slice() {
        [] if found.suspected => missing(
            "no scenario before it sent the same beginnings: its speed alone makes it suspected",
        ),
        [] => missing(
            "no scenario before it sent the same beginnings: they were in the cache before the suite \
             began, or came there from elsewhere",
        ),
        [_, _, _, ..] if is_all => Cell::text("all before it"),
        [first, second, others @ ..] if !others.is_empty() => Cell::text(format!(
            "{}, {} and {}",
            name(*first),
            name(*second),
            counted(others.len() as u64, "other")
        )),
        few => Cell::text(list(&few.iter().map(|place| name(*place)).collect::<Vec<_>>())),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
