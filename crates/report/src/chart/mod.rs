//! Charts as SVG, written by ourselves: the same numbers give the same bytes.
//!
//! A [`Chart`] has a title, one sentence that states what it shows, and a [`Plot`] of numbers.
//! Colours are told apart by people who see fewer of them, and marks differ in shape too, so that
//! a print without colour still reads.

mod axis;
mod frame;
mod lettering;
mod lines;
mod marks;
pub mod palette;
mod plot;
mod scale;
mod svg;
mod table;
mod ticks;
mod words;

use frame::Canvas;
pub use plot::{
    Bar, BarGroup, Bars, Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap, LinePoint,
    LineSeries, Lines, LinesPanel, Measure, Pareto, ParetoPoint, Plot, ScaleKind, ShareClass,
    ShareRow, Shares, Timeline, TimelinePanel, TimelineSeries,
};

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
    /// In those of the page around it, by CSS variables.
    Page,
}

impl Chart {
    /// The whole picture. The same numbers give the same bytes.
    pub fn to_svg(&self, theme: Theme) -> String {
        let mut canvas = Canvas::begin(self, theme);
        match &self.plot {
            Plot::Lines(lines) => lines.draw(&mut canvas),
            _ => canvas.nothing("Not drawn."),
        }
        canvas.finish(self)
    }
}
