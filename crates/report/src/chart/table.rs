//! The numbers of a chart as a table.

use super::plot::{LinePoint, Lines, Measure, Plot};
use super::{Chart, words};
use crate::document::{Cell, Column, Table};
use crate::number;

/// Columns with their rows.
type Grid = (Vec<Column>, Vec<Vec<Cell>>);

impl Chart {
    /// All that the chart shows, for whoever wants the numbers.
    pub fn table(&self) -> Table {
        let (columns, rows) = match &self.plot {
            Plot::Lines(lines) => lines.grid(),
            _ => Default::default(),
        };
        Table {
            id: format!("{}-data", self.id),
            caption: self.title.clone(),
            columns,
            rows,
            notes: Vec::new(),
        }
    }
}

fn nothing() -> Cell {
    Cell::text(number::NOTHING)
}

fn number_cell(value: f64) -> Cell {
    if value.is_finite() { Cell::number(words::value(value), value) } else { nothing() }
}

fn interval_cell(interval: Option<(f64, f64)>) -> Cell {
    interval.map_or_else(nothing, |interval| Cell::text(words::interval(interval)))
}

fn titled(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

impl Measure {
    fn column(&self) -> Column {
        Column::right(self.title())
    }
}

impl Lines {
    /// A row for each measured place, a column for each line.
    fn grid(&self) -> Grid {
        let series = || {
            self.panels
                .iter()
                .flat_map(|panel| panel.series.iter().map(move |series| (panel, series)))
        };
        let mut places: Vec<f64> =
            series().flat_map(|(_, series)| &series.points).map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut columns = vec![self.x.column()];
        let mut rows: Vec<Vec<Cell>> = places.iter().map(|x| vec![number_cell(*x)]).collect();
        for (panel, series) in series() {
            let name = words::sentence(&[panel.heading.clone(), series.name.clone()]);
            columns.push(Column::right(titled(&name, &panel.y.unit)));
            let has_intervals = series.points.iter().any(|point| point.interval.is_some());
            if has_intervals {
                columns.push(Column::right("95 % interval"));
            }
            for (x, row) in places.iter().zip(&mut rows) {
                let point = series.points.iter().find(|point| point.x.total_cmp(x).is_eq());
                row.push(point.map_or_else(nothing, LinePoint::cell));
                if has_intervals {
                    row.push(interval_cell(point.and_then(|point| point.interval)));
                }
            }
        }
        (columns, rows)
    }
}

impl LinePoint {
    fn cell(&self) -> Cell {
        Cell { detail: self.note.clone(), doubtful: self.hollow, ..number_cell(self.y) }
    }
}
