//! A whole chart: what it is, what it shows, and its panels beside each other.

use super::axis::{INK, Plot, SOFT_INK};
use super::line::LinePanel;
use super::svg::{Anchor, Drawing, Letters, Place};

#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub title: String,
    /// One sentence with the numbers that matter.
    pub finding: String,
    pub panels: Vec<LinePanel>,
    /// Where and when it was measured.
    pub footnote: String,
}

const SIZE: (u32, u32) = (900, 500);
const MARGIN: f64 = 28.0;
/// Left of a plot: ticks and the axis's label.
const AXIS_WIDTH: f64 = 66.0;
const TOP: f64 = 112.0;
/// Between two panels.
const GAP: f64 = 24.0;
const BOTTOM: f64 = 84.0;

impl Figure {
    pub fn to_svg(&self) -> String {
        let mut drawing = Drawing::default();
        let letters = Letters { size: 20, bold: true, colour: INK, anchor: Anchor::Start };
        drawing.text(Place { x: MARGIN, y: 38.0 }, letters, &self.title);
        let letters = Letters { size: 14, bold: false, colour: SOFT_INK, ..letters };
        drawing.text(Place { x: MARGIN, y: 62.0 }, letters, &self.finding);
        let (width, height) = (f64::from(SIZE.0), f64::from(SIZE.1));
        let count = self.panels.len().max(1) as f64;
        let share = (width - 2.0 * MARGIN - (count - 1.0) * GAP) / count;
        let mut left = MARGIN;
        for panel in &self.panels {
            let plot = Plot {
                left: left + AXIS_WIDTH,
                right: left + share - panel.name_width(),
                top: TOP,
                bottom: height - BOTTOM,
            };
            panel.draw(&mut drawing, plot);
            left += share + GAP;
        }
        let letters = Letters { size: 11, ..letters };
        drawing.text(Place { x: MARGIN, y: height - 16.0 }, letters, &self.footnote);
        drawing.document(SIZE, &self.title, &self.finding)
    }
}
