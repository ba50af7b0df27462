//! The tables over all scenarios.

use crate::document::{Block, Cell, Column, Table};
use crate::fmt::count;
use crate::pages::cells::{known, missing, quantity_cell};
use crate::pages::charts;
use crate::pages::rows::Row;
use inferometer_analysis::metric;

const AS_DATA: &str = "the data says it, request by request";

pub(super) fn performance(rows: &[Row<'_>]) -> Vec<Block> {
    let table = Table {
        id: "performance-summary".to_owned(),
        caption: "All scenarios".to_owned(),
        columns: vec![
            Column::left("Scenario"),
            Column::left("Category"),
            Column::right("Input (tok)"),
            Column::right("Output (tok)"),
            Column::right("Concurrency"),
            Column::right("Output Throughput (tok/s)"),
            Column::right("TTFT mean (ms)"),
            Column::right("TPOT mean (ms)"),
            Column::right("TPOT p99 (ms)"),
        ],
        rows: rows.iter().map(performance_row).collect(),
        notes: Vec::new(),
    };
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(charts::by_scenario(rows, "scenario").map(charts::figure));
    blocks
}

fn performance_row(row: &Row<'_>) -> Vec<Cell> {
    let asked = row.scenario;
    let length = |text: Option<&String>| match text {
        Some(text) => match text.parse::<u64>() {
            Ok(tokens) => Cell::number(count(tokens), tokens as f64),
            Err(_) => Cell::text(text.clone()),
        },
        None => missing(AS_DATA),
    };
    vec![
        name(row),
        known(asked.map(|asked| asked.category.as_str()), "it is no scenario of a suite"),
        length(asked.and_then(|asked| asked.input_tokens.as_ref())),
        length(asked.and_then(|asked| asked.output_tokens.as_ref())),
        concurrency(row),
        quantity_cell(row, metric::OUTPUT_THROUGHPUT.quantity()),
        quantity_cell(row, metric::TTFT.mean()),
        quantity_cell(row, metric::TPOT.mean()),
        quantity_cell(row, metric::TPOT.p99()),
    ]
}

/// Marked where its numbers are to be taken with care.
fn name(row: &Row<'_>) -> Cell {
    let reservation = row.reservation();
    let doubtful = reservation.is_some();
    Cell { detail: reservation, doubtful, ..Cell::text(row.name.clone()) }
}

pub(super) fn concurrency(row: &Row<'_>) -> Cell {
    match row.scenario.and_then(|asked| asked.concurrency) {
        Some(users) => Cell {
            detail: row.rate().map(|rate| format!("at most; requests come at {rate}")),
            ..Cell::number(count(users.into()), f64::from(users))
        },
        // Where requests come at a rate, it says what a concurrency would.
        None => row.rate().map_or_else(|| missing("an open loop without a cap"), Cell::text),
    }
}

pub(super) fn prefill_decode(rows: &[Row<'_>]) -> Vec<Block> {
    let table = Table {
        id: "prefill-decode".to_owned(),
        caption: "Prompt tokens over TTFT, and tokens of one stream over time".to_owned(),
        columns: vec![
            Column::left("Scenario"),
            Column::right("Prefill (PP) tok/s"),
            Column::right("Token Generation (TG) tok/s"),
        ],
        rows: rows
            .iter()
            .map(|row| {
                vec![
                    name(row),
                    quantity_cell(row, metric::PP.quantity()),
                    quantity_cell(row, metric::TG.quantity()),
                ]
            })
            .collect(),
        notes: Vec::new(),
    };
    vec![Block::Table(table)]
}
