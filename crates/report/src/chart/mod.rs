//! Charts as SVG, written by ourselves: the same numbers give the same bytes.
//!
//! A [`Chart`] has a title, one sentence that states what it shows, and a [`Plot`] of numbers.
//! Colours are told apart by people who see fewer of them, and marks differ in shape too, so that
//! a print without colour still reads.

mod axis;
mod bars;
mod distribution;
mod frame;
mod gantt;
mod heat_map;
mod lettering;
mod lines;
mod load_axis;
mod marks;
pub mod palette;
mod pareto;
mod plot;
mod scale;
mod shares;
mod svg;
mod table;
mod ticks;
mod tiles;
mod timeline;

use frame::Canvas;
pub use plot::{
    Bar, BarGroup, Bars, Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap, LinePoint,
    LineSeries, Lines, LinesPanel, Measure, Pareto, ParetoPoint, Plot, ScaleKind, ShareClass,
    ShareRow, Shares, Tile, TileRow, Tiles, Timeline, TimelinePanel, TimelineSeries,
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
    /// In those of the page around it, by CSS variables. The page prints the title, the finding
    /// and `n` beside it, as text that keeps its size.
    Page,
    /// The same on a page that is not ours and has no script: marks say what they are by titles.
    Site,
}

impl Theme {
    /// Whether the words around a picture are the page's, and the colours its variables.
    const fn is_within_page(self) -> bool {
        matches!(self, Self::Page | Self::Site)
    }
}

impl Chart {
    /// The whole picture. The same numbers give the same bytes.
    pub fn to_svg(&self, theme: Theme) -> String {
        let mut canvas = Canvas::begin(self, theme);
        match &self.plot {
            Plot::Lines(lines) => lines.draw(&mut canvas),
            Plot::Distribution(distribution) => distribution.draw(&mut canvas),
            Plot::Timeline(timeline) => timeline.draw(&mut canvas),
            Plot::Gantt(gantt) => gantt.draw(&mut canvas),
            Plot::HeatMap(heat_map) => heat_map.draw(&mut canvas),
            Plot::Pareto(pareto) => pareto.draw(&mut canvas),
            Plot::Bars(bars) => bars.draw(&mut canvas),
            Plot::Shares(shares) => shares.draw(&mut canvas),
            Plot::Tiles(tiles) => tiles.draw(&mut canvas),
        }
        canvas.finish(self, theme)
    }
}
