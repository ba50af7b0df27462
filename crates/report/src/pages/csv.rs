//! The numbers as a spreadsheet reads them: one row for each level, all quantities with their
//! intervals.
//!
//! A cell that a spreadsheet would take for a formula is made text by an apostrophe: names come from
//! servers. Numbers are left alone.

use inferometer_analysis::set::{AcrossRuns, PointResult, SetSummary};
use inferometer_analysis::{METRICS, Percentile, Quantity, Statistic, Summary};
use inferometer_model::campaign::Level;
use inferometer_model::spreadsheet::guarded;

pub use super::matrix::csv::of_matrix;
pub use super::results::csv as of_sheets;
use super::rows::{self, Row};
use crate::fmt;

const STATISTICS: [Statistic; 7] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P90),
    Statistic::Percentile(Percentile::P95),
    Statistic::Percentile(Percentile::P99),
    Statistic::Percentile(Percentile::P999),
    Statistic::Max,
];

pub fn of_set(set: &SetSummary, points: &[PointResult]) -> String {
    let rows = match &set.suite {
        Some(_) => rows::of_suite(set, points),
        None => rows::of_conditions(set, points).concat(),
    };
    written(&set.set, &rows)
}

pub fn of_run(summary: &Summary) -> String {
    written(&summary.run.id, &[Row::of_run(summary)])
}

fn written(id: &str, rows: &[Row<'_>]) -> String {
    let quantities = quantities();
    let mut text = line(&head(&quantities));
    for row in rows {
        text += &line(&cells(id, row, &quantities));
    }
    text
}

fn quantities() -> Vec<Quantity> {
    METRICS.iter().flat_map(|metric| metric.quantities(&STATISTICS)).collect()
}

/// A level without separators of thousands.
pub(super) fn level_field(level: Level) -> String {
    fmt::level(level).replace(',', "")
}

pub(super) enum Field {
    Text(String),
    Number(Option<f64>),
}

const FACTS: [&str; 11] = [
    "source",
    "row",
    "category",
    "level",
    "model",
    "verdict",
    "runs",
    "scheduled",
    "ok",
    "failed",
    "cancelled",
];

fn head(quantities: &[Quantity]) -> Vec<Field> {
    let mut fields: Vec<Field> = FACTS.map(|name| Field::Text(name.to_owned())).into();
    for quantity in quantities {
        let unit = quantity.metric().unit.name();
        for name in [
            format!("{quantity} ({unit})"),
            format!("{quantity} low ({unit})"),
            format!("{quantity} high ({unit})"),
            format!("{quantity} certified"),
        ] {
            fields.push(Field::Text(name));
        }
    }
    fields
}

fn cells(id: &str, row: &Row<'_>, quantities: &[Quantity]) -> Vec<Field> {
    let tally = row.tally();
    let text = |text: Option<String>| Field::Text(text.unwrap_or_default());
    let number = |value: u64| Field::Number(Some(value as f64));
    let mut fields = vec![
        text(Some(id.to_owned())),
        text(Some(row.name.clone())),
        text(row.scenario.map(|scenario| scenario.category.clone())),
        text(row.level.map(|row| level_field(row.level))),
        text(row.drawn().map(|run| run.run.model.clone())),
        text(Some(row.verdict().to_string())),
        number(row.level.map_or(row.runs.len(), |level| level.points.len()) as u64),
        number(tally.scheduled),
        number(tally.ok),
        number(tally.failed),
        number(tally.cancelled),
    ];
    for quantity in quantities {
        fields.extend(fields_of(&row.quantity(*quantity)));
    }
    fields
}

fn fields_of(across: &AcrossRuns) -> [Field; 4] {
    let interval = across.doubt();
    let certified = across.mean.map(|_| if across.certified { "yes" } else { "no" });
    [
        Field::Number(across.mean),
        Field::Number(interval.map(|found| found.low)),
        Field::Number(interval.map(|found| found.high)),
        Field::Text(certified.unwrap_or_default().to_owned()),
    ]
}

pub(super) fn line(fields: &[Field]) -> String {
    let cells: Vec<String> = fields.iter().map(cell).collect();
    cells.join(",") + "\r\n"
}

/// Nothing is an empty cell.
fn cell(field: &Field) -> String {
    match field {
        Field::Number(value) => value.map_or_else(String::new, |value| value.to_string()),
        Field::Text(text) => quoted(&guarded(text)),
    }
}

/// Every text, so that none is divided whatever a spreadsheet takes for a separator.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_formula_is_text_and_numbers_stay_numbers() {
        let text = |text: &str| cell(&Field::Text(text.to_owned()));
        assert_eq!(text("=cmd()"), "\"'=cmd()\"");
        assert_eq!(text("@SUM(A1)"), "\"'@SUM(A1)\"");
        assert_eq!(text("\t=1"), "\"'\t=1\"");
        assert_eq!(text("-1+2"), "\"'-1+2\"");
        assert_eq!(text(" =x"), "\"' =x\"");
        assert_eq!(text(";=cmd()"), "\"';=cmd()\"");
        assert_eq!(text("c=4; fast"), "\"c=4; fast\"");
        assert_eq!(text("=a,\"b\""), "\"'=a,\"\"b\"\"\"");
        assert_eq!(cell(&Field::Number(Some(-1.5))), "-1.5");
        assert_eq!(cell(&Field::Number(None)), "");
    }
}
