//! Charts as SVG, written by ourselves: the same numbers give the same bytes.
//!
//! A [`Chart`] has a title, one sentence that states what it shows, and a [`Plot`] of numbers.
//! Colours are told apart by people who see fewer of them, and marks differ in shape too, so that
//! a print without colour still reads.

mod canvas;
pub mod card;
mod lines;
pub mod picture;
mod rows;

use canvas::Canvas;
pub(crate) use canvas::colours;
pub use canvas::variables;

use crate::document::{Cell, Table};
use crate::fmt;

/// A picture of numbers that can be read without its page.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Lower-case words joined by hyphens: the name of its file and of its place on a page.
    pub id: String,
    pub title: String,
    /// One sentence that states what it shows, with numbers.
    pub finding: String,
    /// How many of what it is made of, such as `30 requests at each level`.
    pub n: String,
    pub plot: Plot,
}

/// In whose colours a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
    /// In those of the page around it, by CSS variables. The page prints the title, the finding
    /// and `n` beside it, as text that keeps its size.
    Page,
    /// The same on a page that is not ours and has no script: marks say what they are by titles.
    Site,
}

impl Chart {
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        finding: impl Into<String>,
        n: impl Into<String>,
        plot: Plot,
    ) -> Self {
        let (id, title, finding) = (id.into(), title.into(), finding.into());
        Self { id, title, finding, n: n.into(), plot }
    }

    /// The whole picture. The same numbers give the same bytes.
    pub fn to_svg(&self, theme: Theme) -> String {
        self.drawn(theme, false)
    }

    /// The same for a page on a phone: half as wide, with letters of the same size.
    pub(crate) fn to_narrow_svg(&self) -> String {
        let id = format!("{}-narrow", self.id);
        Self { id, ..self.clone() }.drawn(Theme::Page, true)
    }

    fn drawn(&self, theme: Theme, narrow: bool) -> String {
        let mut canvas = Canvas::new(self, theme, narrow);
        self.plot.drawing().draw(&mut canvas);
        canvas.finish(self)
    }

    /// All that the chart shows, for whoever wants the numbers.
    pub fn table(&self) -> Table {
        let (id, caption) = (format!("{}-data", self.id), self.title.clone());
        Table { id, caption, ..self.plot.drawing().table() }
    }
}

/// What each kind of chart can do.
trait Drawing {
    fn draw(&self, canvas: &mut Canvas);

    /// The numbers, without an id and a caption.
    fn table(&self) -> Table;
}

/// What is drawn in the frame of a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    Lines(Lines),
    Distribution(Distribution),
    Timeline(Timeline),
    Gantt(Gantt),
    HeatMap(HeatMap),
    Histogram(Histogram),
    Pareto(Pareto),
    Bars(Bars),
    Shares(Shares),
    Tiles(Tiles),
}

impl Plot {
    fn drawing(&self) -> &dyn Drawing {
        match self {
            Self::Lines(lines) => lines,
            Self::Distribution(distribution) => distribution,
            Self::Timeline(timeline) => timeline,
            Self::Gantt(gantt) => gantt,
            Self::HeatMap(heat_map) => heat_map,
            Self::Histogram(histogram) => histogram,
            Self::Pareto(pareto) => pareto,
            Self::Bars(bars) => bars,
            Self::Shares(shares) => shares,
            Self::Tiles(tiles) => tiles,
        }
    }
}

/// What an axis measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    pub label: String,
    /// Such as `ms`; empty for a plain number.
    pub unit: String,
    pub scale: ScaleKind,
}

pub(crate) fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
}

pub(crate) fn linear(label: &str, unit: &str) -> Measure {
    measure(label, unit, ScaleKind::Linear)
}

impl Measure {
    /// A measured value with the unit of this axis, in the digits of the tables; a plain number has no
    /// fraction of zeros.
    pub(crate) fn show(&self, value: f64) -> String {
        if self.unit.is_empty() {
            return fmt::compact(value);
        }
        format!("{} {}", fmt::number(value), self.unit)
    }

    fn show_range(&self, low: f64, high: f64) -> String {
        let low = self.show(low);
        format!("{} to {}", low.trim_end_matches(&self.unit).trim_end(), self.show(high))
    }

    fn show_interval(&self, value: f64, interval: Option<(f64, f64)>) -> String {
        format!("{}{}", self.show(value), fmt::confidence(interval))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ScaleKind {
    /// Equal differences are equally far, from zero.
    Linear,
    /// Equal ratios are equally far.
    Log,
    /// Shares, each further nine as far away as the one before: 90 %, 99 %, 99.9 %.
    Tail,
}

/// One of several plots over the same axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel<T> {
    pub heading: String,
    pub y: Measure,
    pub series: Vec<Series<T>>,
    /// Thresholds to draw across it.
    pub limits: Vec<PanelLimit>,
}

impl<T> Panel<T> {
    /// A panel without thresholds.
    pub(crate) fn new(heading: &str, y: Measure, series: Vec<Series<T>>) -> Self {
        Self { heading: heading.to_owned(), y, series, limits: Vec::new() }
    }
}

impl<T> Series<T> {
    pub(crate) fn new(name: &str, points: Vec<T>) -> Self {
        Self { name: name.to_owned(), points }
    }
}

/// A threshold on what a panel measures, such as an SLO.
#[derive(Clone, Debug, PartialEq)]
pub struct PanelLimit {
    pub name: String,
    pub value: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series<T> {
    pub name: String,
    pub points: Vec<T>,
}

/// Something against load: panels above each other or side by side over the same axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    pub x: Measure,
    /// Whether the axis has a tick at each measured place instead of round values.
    pub ticks_at_points: bool,
    pub panels: Vec<LinesPanel>,
}

pub type LinesPanel = Panel<LinePoint>;
pub type LineSeries = Series<LinePoint>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinePoint {
    /// Infinite for a load without a limit, which has a place of its own right of the axis.
    pub x: f64,
    pub y: f64,
    /// Where the true value lies with 95 % confidence.
    pub interval: Option<(f64, f64)>,
    /// Saturated, cut or invalid: drawn as an outline.
    pub hollow: bool,
    /// More than its numbers, such as why it is hollow.
    pub note: Option<String>,
}

/// How latencies are distributed, with room for the tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    pub x: Measure,
    pub curves: Vec<Curve>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub name: String,
    /// Values behind it.
    pub n: u64,
    /// Shares, each with the value at or below which it lies; both rising.
    pub points: Vec<(f64, f64)>,
}

/// Panels over the same time, in even steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub from_s: f64,
    pub step_s: f64,
    pub panels: Vec<TimelinePanel>,
}

pub type TimelinePanel = Panel<Option<f64>>;
/// A value is `None` where nothing is known: a gap, never a zero and never a line across.
pub type TimelineSeries = Series<Option<f64>>;

/// Requests as bars over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Gantt {
    pub rows: Vec<GanttRow>,
    /// Requests that the rows are a choice of.
    pub of: u64,
    /// How they were chosen, in words.
    pub choice: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GanttRow {
    pub label: String,
    /// When the plan wanted it to leave, where that is before it was sent.
    pub intended_s: Option<f64>,
    pub sent_s: f64,
    /// Its first token; `None` where none came.
    pub first_s: Option<f64>,
    pub ended_s: f64,
    pub ending: GanttEnding,
    pub note: String,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum GanttEnding {
    #[strum(serialize = "completed")]
    Ok,
    Slowest,
    Failed,
    Cancelled,
}

/// Counts over time and value.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    pub from_s: f64,
    pub step_s: f64,
    pub y: Measure,
    /// One more than there are rows, rising.
    pub edges: Vec<f64>,
    /// One column for each step of time, each with a count for each row.
    pub columns: Vec<Vec<u64>>,
    /// Such as `token gaps`.
    pub counted: String,
}

/// How many values lie in each step, one metric above the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub panels: Vec<HistogramPanel>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPanel {
    pub x: Measure,
    /// One more than there are counts, rising.
    pub edges: Vec<f64>,
    pub counts: Vec<u64>,
}

/// Two things that are wanted at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Pareto {
    pub x: Measure,
    pub y: Measure,
    pub points: Vec<ParetoPoint>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParetoPoint {
    pub series: String,
    pub label: String,
    pub x: f64,
    pub y: f64,
    pub x_interval: Option<(f64, f64)>,
    pub y_interval: Option<(f64, f64)>,
    /// Whether no other point is better in both.
    pub on_frontier: bool,
    pub hollow: bool,
    /// Why it is hollow.
    pub note: Option<String>,
}

/// Bars side by side in groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub y: Measure,
    pub groups: Vec<BarGroup>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    pub label: String,
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    pub series: String,
    /// `None` where there is none, which is not zero.
    pub value: Option<f64>,
    /// The value as the tables of the page write it, where that differs from the axis.
    pub text: Option<String>,
    pub interval: Option<(f64, f64)>,
    pub hollow: bool,
    /// It was tried and failed: a cross; an unknown value is a dash.
    pub failed: bool,
    pub note: Option<String>,
}

/// Values of pairs, such as of hardware and context length, in shades.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    /// What the shades mean.
    pub value: Measure,
    /// What the columns are, such as `Context length`.
    pub across: String,
    pub columns: Vec<String>,
    pub rows: Vec<TileRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TileRow {
    pub label: String,
    /// One for each column, with a shade unless it is hollow; `None` where there is no such pair.
    pub tiles: Vec<Option<Bar>>,
}

/// How a whole is divided, one bar for each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// The classes in the order in which they are drawn, with their mood.
    pub classes: Vec<ShareClass>,
    pub rows: Vec<ShareRow>,
    /// Such as `requests`.
    pub counted: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShareClass {
    pub name: String,
    pub is_good: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShareRow {
    pub label: String,
    /// One for each class.
    pub counts: Vec<u64>,
}

/// The title of a column of intervals.
pub(crate) const INTERVAL: &str = "95 % interval";

fn number_cell(value: impl Into<Option<f64>>) -> Cell {
    match value.into().filter(|value| value.is_finite()) {
        Some(value) => Cell::number(fmt::compact(value), value),
        None => Cell::text(fmt::NOTHING),
    }
}

fn noted_cell(value: impl Into<Option<f64>>, hollow: bool, note: Option<&String>) -> Cell {
    let value = value.into().filter(|value| value.is_finite());
    let shown = value.map_or_else(|| number_cell(None), |it| Cell::number(fmt::number(it), it));
    Cell { detail: note.cloned(), doubtful: hollow, ..shown }
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
