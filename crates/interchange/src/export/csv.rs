//! A table for spreadsheets: one row for each result, one column for each figure that any of them has.
//!
//! A text that a spreadsheet would take for a formula is kept one by an apostrophe: names come from
//! servers and files. Numbers are left alone, and what is not known is an empty cell.

use std::collections::BTreeMap;

use inferometer_analysis::tool_result::{Mark, ResultRate, ToolResult};
use inferometer_model::spreadsheet::guarded;

use super::figure::{self, Figure};

enum Cell {
    Text(String),
    Number(f64),
    Nothing,
}

/// The whole table, with its head; lines end as RFC 4180 has it.
pub fn render(sheets: &[ToolResult]) -> String {
    let figures: Vec<Vec<Figure>> = sheets.iter().map(figure::figures).collect();
    let columns = columns(&figures);
    let facts = FACTS.iter().map(|(name, _)| (*name).to_owned());
    let mut text = line(facts.chain(columns.iter().cloned()).map(Cell::Text));
    for (sheet, figures) in sheets.iter().zip(&figures) {
        let cells: BTreeMap<String, f64> = figures.iter().flat_map(cells_of).collect();
        let facts = FACTS.iter().map(|(_, fact)| fact(sheet));
        let values =
            columns.iter().map(|name| cells.get(name).map_or(Cell::Nothing, |v| Cell::Number(*v)));
        text += &line(facts.chain(values));
    }
    text
}

type Fact = (&'static str, fn(&ToolResult) -> Cell);

const FACTS: [Fact; 14] = [
    ("result", |sheet| Cell::Text(sheet.source.name.clone())),
    ("tool", |sheet| Cell::Text(sheet.source.tool.key().to_owned())),
    ("tool_version", |sheet| text(sheet.source.version.as_ref())),
    ("configuration", |sheet| Cell::Text(sheet.configuration.clone())),
    ("model", |sheet| text(sheet.model.as_ref())),
    ("tokenizer", |sheet| text(sheet.tokenizer.as_ref())),
    ("backend", |sheet| text(sheet.backend.as_ref())),
    ("started", |sheet| text(sheet.started.as_ref())),
    ("request_rate_per_s", |sheet| match sheet.request_rate {
        Some(ResultRate::PerSecond(rate)) => Cell::Number(rate),
        Some(ResultRate::Unlimited) => Cell::Text("inf".to_owned()),
        None => Cell::Nothing,
    }),
    ("burstiness", |sheet| sheet.burstiness.map_or(Cell::Nothing, Cell::Number)),
    ("max_concurrency", |sheet| whole(sheet.max_concurrency)),
    ("tensor_parallel", |sheet| whole(sheet.tensor_parallel)),
    ("verdict", |sheet| text(sheet.verdict.map(|verdict| verdict.to_string()).as_ref())),
    ("marks", |sheet| Cell::Text(sheet.marks.iter().map(Mark::key).collect::<Vec<_>>().join(" "))),
];

fn text(text: Option<&String>) -> Cell {
    text.map_or(Cell::Nothing, |text| Cell::Text(text.clone()))
}

fn whole(count: Option<u32>) -> Cell {
    count.map_or(Cell::Nothing, |count| Cell::Number(count.into()))
}

/// Those of all results, each once, in the order of the first result that has it; a later result's
/// own stand behind the one that they follow there.
fn columns(figures: &[Vec<Figure>]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in figures {
        let mut place = 0;
        for (name, _) in row.iter().flat_map(cells_of) {
            let known = columns.iter().position(|known| *known == name);
            if known.is_none() {
                columns.insert(place, name);
            }
            place = known.unwrap_or(place) + 1;
        }
    }
    columns
}

/// The value, and the ends of its interval where it has one.
fn cells_of(figure: &Figure) -> Vec<(String, f64)> {
    let statistic = figure.statistic.as_ref().map_or_else(String::new, |word| format!("_{word}"));
    let (stem, unit) = (format!("{}{statistic}", figure.name), figure.unit.suffix);
    let mut cells = vec![(format!("{stem}{unit}"), figure.value)];
    if let Some(interval) = figure.interval {
        cells.push((format!("{stem}_low{unit}"), interval.low));
        cells.push((format!("{stem}_high{unit}"), interval.high));
    }
    cells
}

fn line(cells: impl Iterator<Item = Cell>) -> String {
    cells.map(|cell| written(&cell)).collect::<Vec<_>>().join(",") + "\r\n"
}

fn written(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Number(value) => value.to_string(),
        Cell::Text(text) => format!("\"{}\"", guarded(text).replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::Interval;

    use super::*;

    fn sheet(name: &str) -> ToolResult {
        let mut sheet = ToolResult { completed: Some(3), ..ToolResult::default() };
        name.clone_into(&mut sheet.source.name);
        sheet
    }

    #[test]
    fn columns_are_those_of_all_results_and_nothing_is_an_empty_cell() {
        let first = ToolResult { request_throughput: Some(0.5), ..sheet("a") };
        let mut second =
            ToolResult { failed: Some(1), request_throughput: Some(2.0), ..sheet("b") };
        let interval = Interval { low: 1.0, high: 3.0 };
        second.intervals.insert("request_throughput".to_owned(), interval);
        let table = render(&[first, second]);
        let lines: Vec<&str> = table.split("\r\n").collect();
        let head = "\"completed\",\"failed\",\"request_throughput_per_s\",\
                    \"request_throughput_low_per_s\",\"request_throughput_high_per_s\"";
        assert!(lines[0].ends_with(head), "{}", lines[0]);
        assert!(lines[1].starts_with("\"a\",\"inferometer\",,"), "{}", lines[1]);
        assert!(lines[1].ends_with(",3,,0.5,,"), "{}", lines[1]);
        assert!(lines[2].ends_with(",3,1,2,1,3"), "{}", lines[2]);
        assert_eq!(lines[3..], [""]);
    }

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        for hostile in ["=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =x", ";=x", "＝x"] {
            let table = render(&[sheet(hostile)]);
            assert!(table.contains(&format!("\r\n\"'{hostile}\",")), "{hostile:?}: {table}");
        }
        assert!(render(&[sheet("a \"b\", c=4")]).contains("\r\n\"a \"\"b\"\", c=4\","));
    }
}
