//! The numbers of a chart as a table.

use super::lines::UNLIMITED;
use super::plane::is_named;
use super::{
    Bar, BarGroup, Bars, Chart, Curve, Distribution, Gantt, GanttRow, HeatMap, LinePoint, Lines,
    Pareto, ParetoPoint, Plot, ShareRow, Shares, Tile, TileRow, Tiles, Timeline,
};
use crate::document::{Cell, Columns, Table, plain};
use crate::fmt;

const INTERVAL: &str = "95 % interval";

impl Chart {
    /// All that the chart shows, for whoever wants the numbers.
    pub fn table(&self) -> Table {
        let table = match &self.plot {
            Plot::Lines(lines) => lines.table(),
            Plot::Distribution(distribution) => distribution.table(),
            Plot::Timeline(timeline) => timeline.table(),
            Plot::Gantt(gantt) => gantt.table(),
            Plot::HeatMap(heat_map) => heat_map.table(),
            Plot::Pareto(pareto) => pareto.table(),
            Plot::Bars(bars) => bars.table(),
            Plot::Shares(shares) => shares.table(),
            Plot::Tiles(tiles) => tiles.table(),
        };
        Table { id: format!("{}-data", self.id), caption: self.title.clone(), ..table }
    }
}

fn number_cell(value: impl Into<Option<f64>>) -> Cell {
    match value.into().filter(|value| value.is_finite()) {
        Some(value) => Cell::number(fmt::compact(value), value),
        None => Cell::text(fmt::NOTHING),
    }
}

fn noted_cell(value: impl Into<Option<f64>>, hollow: bool, note: Option<&String>) -> Cell {
    Cell { detail: note.cloned(), doubtful: hollow, ..number_cell(value) }
}

fn count_cell(count: u64) -> Cell {
    Cell::number(fmt::count(count), count as f64)
}

fn interval_cell(interval: Option<(f64, f64)>) -> Cell {
    Cell::text(interval.map_or_else(|| fmt::NOTHING.to_owned(), fmt::ends))
}

fn titled(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

impl Lines {
    /// A row for each measured place, a column for each line.
    fn table(&self) -> Table {
        let series = || {
            self.panels
                .iter()
                .flat_map(|panel| panel.series.iter().map(move |series| (panel, series)))
                .filter(|(_, series)| !series.points.is_empty())
        };
        let load = |x: &f64| match *x {
            f64::INFINITY => Cell::text(UNLIMITED),
            x => number_cell(x),
        };
        let mut columns = Columns::number(self.x.title(), load);
        for (panel, series) in series() {
            let find = move |x: &f64| {
                series.points.iter().find(|point: &&LinePoint| point.x.total_cmp(x).is_eq())
            };
            let name = fmt::joined(&[&panel.heading, &series.name]);
            let has_intervals = series.points.iter().any(|point| point.interval.is_some());
            columns = columns
                .right(titled(&name, &panel.y.unit), move |x| match find(x) {
                    Some(point) => noted_cell(point.y, point.hollow, point.note.as_ref()),
                    None => number_cell(None),
                })
                .right(INTERVAL, move |x| interval_cell(find(x).and_then(|it| it.interval)))
                .only_if(has_intervals);
        }
        let loads = sorted(series().flat_map(|(_, series)| &series.points).map(|point| point.x));
        columns.table("", "", loads)
    }
}

impl Distribution {
    /// A row for each share, a column for each curve.
    fn table(&self) -> Table {
        /// So many shares are all shown; of more, those that people name.
        const SHARES_MAX: usize = 16;
        let known = |curve| Curve::known(curve).map(|(share, _)| share);
        let mut shares = sorted(self.curves.iter().flat_map(known));
        if SHARES_MAX < shares.len() {
            shares.retain(|share| is_named(*share) || 1.0 <= *share);
        }
        let mut columns = Columns::new("Percentile", |share: &f64| Cell {
            number: Some(*share),
            ..Cell::text(fmt::percentile_name(*share))
        });
        for curve in &self.curves {
            let name = format!("{}, n = {}", curve.name, fmt::count(curve.n));
            columns = columns.right(titled(&name, &self.x.unit), move |share| {
                let same = curve.known().find(|point| (point.0 - share).abs() < 1e-12);
                number_cell(same.map(|(_, value)| value))
            });
        }
        columns.table("", "", shares)
    }
}

impl Timeline {
    /// A row for each step, or for every so many where there are many.
    fn table(&self) -> Table {
        const STEPS_MAX: usize = 60;
        let steps = self.steps();
        let stride = steps.div_ceil(STEPS_MAX).max(1);
        let mut columns =
            Columns::number("Time (s)", |step: &usize| number_cell(self.moment(*step)));
        for (panel, series) in self.series() {
            let name = fmt::joined(&[&panel.heading, &series.name]);
            columns =
                columns.right(titled(&name, &panel.y.unit), |step| number_cell(series.at(*step)));
        }
        let mut table = columns.table("", "", (0..steps).step_by(stride));
        if 1 < stride {
            let steps = fmt::count(steps as u64);
            let note = format!("One row for every {stride} of the {steps} steps of the chart.");
            table.notes.push(plain(note));
        }
        table
    }
}

impl Gantt {
    fn table(&self) -> Table {
        let shown = fmt::count(self.rows.len() as u64);
        let note = format!("{shown} of {} requests: {}", fmt::count(self.of), self.choice);
        let ending = |row: &&GanttRow| {
            let detail = Some(row.note.clone()).filter(|note| !note.is_empty());
            Cell { detail, ..Cell::text(row.ending.name()) }
        };
        let table = Columns::new("Request", |row: &&GanttRow| Cell::text(row.label.as_str()))
            .left("Ending", ending)
            .right("Intended (s)", |row| number_cell(row.intended_s))
            .right("Sent (s)", |row| number_cell(row.sent_s))
            .right("First token (s)", |row| number_cell(row.first_s))
            .right("Ended (s)", |row| number_cell(row.ended_s))
            .table("", "", &self.rows);
        Table { notes: vec![plain(note)], ..table }
    }
}

impl HeatMap {
    /// Over all time, because a row for each cell would be longer than any page.
    fn table(&self) -> Table {
        let unit = &self.y.unit;
        let table =
            Columns::number(titled("From", unit), |row: &usize| number_cell(self.edges[*row]))
                .right(titled("To", unit), |row| number_cell(self.edges[row + 1]))
                .right(self.counted.as_str(), |row| count_cell(self.row_count(*row)))
                .table("", "", self.used_rows());
        Table { notes: vec![plain("Counted over the whole time of the chart.")], ..table }
    }
}

impl Pareto {
    fn table(&self) -> Table {
        let points = || self.points.iter();
        let noted =
            |point: &ParetoPoint, value: f64| noted_cell(value, point.hollow, point.note.as_ref());
        let table =
            Columns::new("Series", |point: &&ParetoPoint| Cell::text(point.series.as_str()))
                .left("Point", |point| Cell::text(point.label.as_str()))
                .right(self.x.title(), |point| noted(point, point.x))
                .right(INTERVAL, |point| interval_cell(point.x_interval))
                .only_if(points().any(|point| point.x_interval.is_some()))
                .right(self.y.title(), |point| noted(point, point.y))
                .right(INTERVAL, |point| interval_cell(point.y_interval))
                .only_if(points().any(|point| point.y_interval.is_some()))
                .left("Best", |point| Cell::text(if point.on_frontier { "yes" } else { "no" }))
                .table("", "", points());
        Table { notes: vec![plain("Best: no other point is better in both.")], ..table }
    }
}

impl Bars {
    fn table(&self) -> Table {
        type Row<'a> = (&'a BarGroup, &'a Bar);
        let bars =
            || self.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
        Columns::new("Group", |(group, _): &Row<'_>| Cell::text(group.label.as_str()))
            .left("Series", |(_, bar)| Cell::text(bar.series.as_str()))
            .right(self.y.title(), |(_, bar)| noted_cell(bar.value, bar.hollow, bar.note.as_ref()))
            .right(INTERVAL, |(_, bar)| interval_cell(bar.interval))
            .only_if(bars().any(|(_, bar)| bar.interval.is_some()))
            .table("", "", bars())
    }
}

impl Shares {
    fn table(&self) -> Table {
        let mut columns = Columns::new("Group", |row: &&ShareRow| Cell::text(row.label.as_str()));
        for (index, class) in self.classes.iter().enumerate() {
            columns = columns.right(class.name.as_str(), move |row| count_cell(row.count(index)));
        }
        let all = format!("all {}", self.counted);
        columns.right(all, |row| count_cell(row.total())).table("", "", &self.rows)
    }
}

impl Tiles {
    fn table(&self) -> Table {
        let cell = |tile: &Tile| noted_cell(tile.known(), tile.hollow, tile.note.as_ref());
        let mut columns =
            Columns::new(self.value.title(), |row: &&TileRow| Cell::text(row.label.as_str()));
        for (index, column) in self.columns.iter().enumerate() {
            columns = columns.right(column.as_str(), move |row| {
                row.tiles.get(index).and_then(Option::as_ref).map_or_else(Cell::default, cell)
            });
        }
        columns.table("", "", &self.rows)
    }
}
