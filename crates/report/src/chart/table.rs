//! The numbers of a chart as a table.

use super::Chart;
use super::distribution::named;
use super::load_axis::UNLIMITED;
use super::plot::{
    Bar, BarGroup, Bars, Distribution, Gantt, GanttRow, HeatMap, LinePoint, Lines, Measure, Pareto,
    ParetoPoint, Plot, Shares, Tile, TileRow, Tiles, Timeline,
};
use crate::document::{Cell, Column, Table, Text, plain};
use crate::fmt;

/// Columns with their rows, and what is to be said below them.
#[derive(Debug, Default)]
struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    notes: Vec<Text>,
}

/// More steps of time than these are thinned out.
const STEPS_MAX: usize = 60;
/// So many shares of a distribution are all shown; of more, those that people name.
const SHARES_MAX: usize = 16;

impl Chart {
    /// All that the chart shows, for whoever wants the numbers.
    pub fn table(&self) -> Table {
        let Grid { columns, rows, notes } = match &self.plot {
            Plot::Lines(lines) => lines.grid(),
            Plot::Distribution(distribution) => distribution.grid(),
            Plot::Timeline(timeline) => timeline.grid(),
            Plot::Gantt(gantt) => gantt.grid(),
            Plot::HeatMap(heat_map) => heat_map.grid(),
            Plot::Pareto(pareto) => pareto.grid(),
            Plot::Bars(bars) => bars.grid(),
            Plot::Shares(shares) => shares.grid(),
            Plot::Tiles(tiles) => tiles.grid(),
        };
        Table { id: format!("{}-data", self.id), caption: self.title.clone(), columns, rows, notes }
    }
}

fn nothing() -> Cell {
    Cell::text(fmt::NOTHING)
}

fn number_cell(value: f64) -> Cell {
    if value.is_finite() { Cell::number(fmt::compact(value), value) } else { nothing() }
}

fn load_cell(load: f64) -> Cell {
    if load == f64::INFINITY { Cell::text(UNLIMITED) } else { number_cell(load) }
}

fn optional_cell(value: Option<f64>) -> Cell {
    value.map_or_else(nothing, number_cell)
}

fn count_cell(count: u64) -> Cell {
    Cell::number(fmt::count(count), count as f64)
}

fn interval_cell(interval: Option<(f64, f64)>) -> Cell {
    interval.map_or_else(nothing, |interval| Cell::text(fmt::ends(interval)))
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
                .filter(|(_, series)| !series.points.is_empty())
        };
        let mut places: Vec<f64> =
            series().flat_map(|(_, series)| &series.points).map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut columns = vec![self.x.column()];
        let mut rows: Vec<Vec<Cell>> = places.iter().map(|x| vec![load_cell(*x)]).collect();
        for (panel, series) in series() {
            let name = fmt::joined(&[panel.heading.clone(), series.name.clone()]);
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
        Grid { columns, rows, ..Grid::default() }
    }
}

impl LinePoint {
    fn cell(&self) -> Cell {
        Cell { detail: self.note.clone(), doubtful: self.hollow, ..number_cell(self.y) }
    }
}

impl Distribution {
    /// A row for each share, a column for each curve.
    fn grid(&self) -> Grid {
        let mut shares: Vec<f64> =
            self.curves.iter().flat_map(|curve| curve.known().map(|(share, _)| share)).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        if SHARES_MAX < shares.len() {
            shares.retain(|share| named(*share).is_some() || 1.0 <= *share);
        }
        let curve_columns = self.curves.iter().map(|curve| {
            let name = format!("{}, n = {}", curve.name, fmt::count(curve.n));
            Column::right(titled(&name, &self.x.unit))
        });
        let columns = [Column::left("Percentile")].into_iter().chain(curve_columns).collect();
        let row = |share: &f64| {
            let values = self.curves.iter().map(|curve| {
                let same = curve.known().find(|point| (point.0 - share).abs() < 1e-12);
                optional_cell(same.map(|(_, value)| value))
            });
            let first = Cell { number: Some(*share), ..Cell::text(fmt::percentile_name(*share)) };
            [first].into_iter().chain(values).collect()
        };
        Grid { columns, rows: shares.iter().map(row).collect(), ..Grid::default() }
    }
}

impl Timeline {
    /// A row for each step, or for every so many where there are many.
    fn grid(&self) -> Grid {
        let steps = self.steps();
        let stride = steps.div_ceil(STEPS_MAX).max(1);
        let mut columns = vec![Column::right("Time (s)")];
        columns.extend(self.series().map(|(panel, series)| {
            let name = fmt::joined(&[panel.heading.clone(), series.name.clone()]);
            Column::right(titled(&name, &panel.y.unit))
        }));
        let row = |step: usize| {
            let values = self.series().map(|(_, series)| optional_cell(series.at(step)));
            [number_cell(self.moment(step))].into_iter().chain(values).collect()
        };
        let notes = if stride == 1 {
            Vec::new()
        } else {
            let steps = fmt::count(steps as u64);
            vec![plain(format!("One row for every {stride} of the {steps} steps of the chart."))]
        };
        Grid { columns, rows: (0..steps).step_by(stride).map(row).collect(), notes }
    }
}

impl Gantt {
    fn grid(&self) -> Grid {
        let columns = vec![
            Column::left("Request"),
            Column::left("Ending"),
            Column::right("Intended (s)"),
            Column::right("Sent (s)"),
            Column::right("First token (s)"),
            Column::right("Ended (s)"),
        ];
        let shown = fmt::count(self.rows.len() as u64);
        let note = format!("{shown} of {} requests: {}", fmt::count(self.of), self.choice);
        let rows = self.rows.iter().map(GanttRow::cells).collect();
        Grid { columns, rows, notes: vec![plain(note)] }
    }
}

impl GanttRow {
    fn cells(&self) -> Vec<Cell> {
        let detail = (!self.note.is_empty()).then(|| self.note.clone());
        vec![
            Cell::text(self.label.clone()),
            Cell { detail, ..Cell::text(self.ending.name()) },
            optional_cell(self.intended_s),
            number_cell(self.sent_s),
            optional_cell(self.first_s),
            number_cell(self.ended_s),
        ]
    }
}

impl HeatMap {
    /// Over all time, because a row for each cell would be longer than any page.
    fn grid(&self) -> Grid {
        let columns = vec![
            Column::right(titled("From", &self.y.unit)),
            Column::right(titled("To", &self.y.unit)),
            Column::right(self.counted.clone()),
        ];
        let row = |row: usize| {
            let edges = [self.edges[row], self.edges[row + 1]].map(number_cell);
            edges.into_iter().chain([count_cell(self.row_count(row))]).collect()
        };
        let rows = self.used_rows().into_iter().map(row).collect();
        Grid { columns, rows, notes: vec![plain("Counted over the whole time of the chart.")] }
    }
}

impl Pareto {
    fn grid(&self) -> Grid {
        let points = || self.points.iter();
        let across = points().any(|point| point.x_interval.is_some());
        let upwards = points().any(|point| point.y_interval.is_some());
        let mut columns = vec![Column::left("Series"), Column::left("Point"), self.x.column()];
        if across {
            columns.push(Column::right("95 % interval"));
        }
        columns.push(self.y.column());
        if upwards {
            columns.push(Column::right("95 % interval"));
        }
        columns.push(Column::left("Best"));
        let row = |point: &ParetoPoint| {
            let doubtful = |value: f64| Cell {
                doubtful: point.hollow,
                detail: point.note.clone(),
                ..number_cell(value)
            };
            let mut cells = vec![
                Cell::text(point.series.clone()),
                Cell::text(point.label.clone()),
                doubtful(point.x),
            ];
            cells.extend(across.then(|| interval_cell(point.x_interval)));
            cells.push(doubtful(point.y));
            cells.extend(upwards.then(|| interval_cell(point.y_interval)));
            cells.push(Cell::text(if point.on_frontier { "yes" } else { "no" }));
            cells
        };
        let note = plain("Best: no other point is better in both.");
        Grid { columns, rows: points().map(row).collect(), notes: vec![note] }
    }
}

impl Bars {
    fn grid(&self) -> Grid {
        let bars = || {
            let of = |group| move |bar| (group, bar);
            self.groups.iter().flat_map(move |group| group.bars.iter().map(of(group)))
        };
        let has_interval = bars().any(|(_, bar)| bar.interval.is_some());
        let mut columns = vec![Column::left("Group"), Column::left("Series"), self.y.column()];
        if has_interval {
            columns.push(Column::right("95 % interval"));
        }
        let row = |(group, bar): (&BarGroup, &Bar)| {
            let mut cells = vec![
                Cell::text(group.label.clone()),
                Cell::text(bar.series.clone()),
                Cell { detail: bar.note.clone(), doubtful: bar.hollow, ..optional_cell(bar.value) },
            ];
            cells.extend(has_interval.then(|| interval_cell(bar.interval)));
            cells
        };
        Grid { columns, rows: bars().map(row).collect(), ..Grid::default() }
    }
}

impl Shares {
    fn grid(&self) -> Grid {
        let classes = self.classes.iter().map(|class| Column::right(class.name.clone()));
        let columns = [Column::left("Group")]
            .into_iter()
            .chain(classes)
            .chain([Column::right(format!("all {}", self.counted))])
            .collect();
        let rows = self.rows.iter().map(|row| {
            let counts = (0..self.classes.len()).map(|class| count_cell(row.count(class)));
            let label = [Cell::text(row.label.clone())];
            label.into_iter().chain(counts).chain([count_cell(row.total())]).collect()
        });
        Grid { columns, rows: rows.collect(), ..Grid::default() }
    }
}

impl Tiles {
    fn grid(&self) -> Grid {
        let heads = self.columns.iter().map(|column| Column::right(column.clone()));
        let columns = [Column::left(self.value.title())].into_iter().chain(heads).collect();
        let cell = |tile: Option<&Tile>| match tile {
            None => Cell::default(),
            Some(tile) => Cell {
                detail: tile.note.clone(),
                doubtful: tile.hollow,
                ..optional_cell(tile.known())
            },
        };
        let row = |row: &TileRow| {
            let tiles = (0..self.columns.len()).map(|place| row.tiles.get(place)?.as_ref());
            [Cell::text(row.label.clone())].into_iter().chain(tiles.map(cell)).collect()
        };
        Grid { columns, rows: self.rows.iter().map(row).collect(), ..Grid::default() }
    }
}
