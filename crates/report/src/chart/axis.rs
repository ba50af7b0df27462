//! The two axes of a panel: ticks, their labels, light lines across, and what is measured.

use super::scale::{RoundTicks, Scale, label};
use super::svg::{Anchor, Drawing, Letters, Place};

/// What an axis measures, with its unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub label: String,
    pub ticks: Ticks,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ticks {
    /// Round values from zero.
    Round,
    /// These values, from zero on: the places where something was measured.
    At(Vec<f64>),
}

/// The rectangle in which lines are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

pub(super) const INK: &str = "#222222";
pub(super) const SOFT_INK: &str = "#555555";
const GRID: &str = "#e4e4e4";
const FRAME: &str = "#888888";

const TICK_SIZE: u32 = 12;
/// A guess that is never too small.
const TICK_CHARACTER_WIDTH: f64 = 7.5;
const LABEL_SIZE: u32 = 13;

impl Axis {
    /// Ticks with their labels, and the end of the axis.
    fn resolved(&self, highest: f64) -> (Vec<(f64, String)>, f64) {
        match &self.ticks {
            Ticks::Round => {
                let ticks = RoundTicks::up_to(highest);
                let labelled = ticks.values().map(|value| (value, ticks.label(value))).collect();
                (labelled, ticks.last())
            }
            Ticks::At(values) => {
                let end = values.iter().copied().fold(highest, f64::max);
                (values.iter().map(|value| (*value, label(*value, 0))).collect(), end)
            }
        }
    }

    /// Draws the axis below the plot and returns its scale.
    pub(super) fn draw_below(&self, drawing: &mut Drawing, plot: Plot, highest: f64) -> Scale {
        let (ticks, end) = self.resolved(highest);
        let scale = Scale::new((0.0, end), (plot.left, plot.right));
        let letters =
            Letters { size: TICK_SIZE, bold: false, colour: SOFT_INK, anchor: Anchor::Middle };
        let mut free_from = f64::NEG_INFINITY;
        for (value, text) in ticks {
            let x = scale.place(value);
            let bottom = Place { x, y: plot.bottom };
            drawing.line(bottom, Place { y: plot.bottom + 5.0, ..bottom }, FRAME);
            let half_width = text.chars().count() as f64 * TICK_CHARACTER_WIDTH / 2.0;
            // A label that would touch its neighbour is left out; its tick stays.
            if free_from <= x - half_width {
                drawing.text(Place { x, y: plot.bottom + 20.0 }, letters, &text);
                free_from = x + half_width + TICK_CHARACTER_WIDTH;
            }
        }
        let (left, right) = (plot.left, plot.right);
        let bottom = plot.bottom;
        drawing.line(Place { x: left, y: bottom }, Place { x: right, y: bottom }, FRAME);
        let middle = Place { x: f64::midpoint(left, right), y: bottom + 42.0 };
        drawing.text(middle, Letters { size: LABEL_SIZE, ..letters }, &self.label);
        scale
    }

    /// Draws the axis left of the plot, with lines across it, and returns its scale.
    pub(super) fn draw_left(&self, drawing: &mut Drawing, plot: Plot, highest: f64) -> Scale {
        let (ticks, end) = self.resolved(highest);
        let scale = Scale::new((0.0, end), (plot.bottom, plot.top));
        let letters =
            Letters { size: TICK_SIZE, bold: false, colour: SOFT_INK, anchor: Anchor::End };
        for (value, text) in ticks {
            let y = scale.place(value);
            if 0.0 < value {
                drawing.line(Place { x: plot.left, y }, Place { x: plot.right, y }, GRID);
            }
            drawing.text(Place { x: plot.left - 8.0, y: y + 4.0 }, letters, &text);
        }
        let at = Place { x: plot.left - 58.0, y: f64::midpoint(plot.top, plot.bottom) };
        let letters = Letters { size: LABEL_SIZE, anchor: Anchor::Middle, ..letters };
        drawing.text_upwards(at, letters, &self.label);
        scale
    }
}
