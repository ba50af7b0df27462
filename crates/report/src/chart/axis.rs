//! The axes of a panel: ticks, their labels, light lines across, and what is measured.

use super::frame::Area;
use super::lettering::{LABEL, TICK};
use super::palette::Paint;
use super::plot::{Measure, ScaleKind};
use super::scale::{Scale, Spacing};
use super::svg::{Anchor, Drawing, Place};
use super::ticks::Ticks;

/// What an axis below needs of height, with and without its label.
pub(super) const BELOW: f64 = 46.0;
const BETWEEN_LABELS: f64 = 9.0;
/// Labels on the left stand at least this far apart.
const LABEL_HEIGHT: f64 = 15.0;

impl Measure {
    pub(super) fn spacing(&self) -> Spacing {
        match self.scale {
            ScaleKind::Linear => Spacing::Even,
            ScaleKind::Log => Spacing::Log,
        }
    }

    /// Such as `time to first token (ms)`.
    pub(super) fn title(&self) -> String {
        if self.unit.is_empty() || self.label.is_empty() {
            format!("{}{}", self.label, self.unit)
        } else {
            format!("{} ({})", self.label, self.unit)
        }
    }
}

/// The room that the labels of an axis need left of an area.
pub(super) fn left_width(ticks: &Ticks) -> f64 {
    let widest = ticks.named.iter().map(|(_, label)| TICK.width(label)).fold(0.0, f64::max);
    widest + 10.0
}

/// Ticks below the area, with their labels and what is measured.
pub(super) fn draw_below(
    drawing: &mut Drawing,
    ticks: &Ticks,
    (area, scale): (Area, Scale),
    label: &str,
) {
    draw_line_below(drawing, area);
    let mut free_from = f64::NEG_INFINITY;
    let last = ticks.named.last().map(|(value, text)| (scale.place(*value), TICK.width(text)));
    let count = ticks.named.len();
    for (number, (value, text)) in ticks.named.iter().enumerate() {
        let x = scale.place(*value);
        let half_width = TICK.width(text) / 2.0;
        // A label that would touch its neighbour is left out with its tick, which would only ask what
        // it stands for; but not the last, which says where the axis ends.
        let is_last = number + 1 == count;
        let leaves_last = last.is_none_or(|(end, width)| {
            is_last || x + half_width + BETWEEN_LABELS <= end - width / 2.0
        });
        if free_from <= x - half_width && leaves_last {
            let bottom = Place { x, y: area.bottom };
            drawing.line(bottom, Place { y: area.bottom + 5.0, ..bottom }, Paint::Frame);
            drawing.text(Place { y: area.bottom + 19.0, ..bottom }, TICK, text);
            free_from = x + half_width + BETWEEN_LABELS;
        }
    }
    let label_width = 2.0 * (area.right - area.left);
    let short = LABEL.shortened(label, label_width.min(700.0));
    let middle = Place { x: area.middle_x(), y: area.bottom + 38.0 };
    drawing.short_text(middle, LABEL, (&short, label));
}

/// The line at the bottom of an area.
pub(super) fn draw_line_below(drawing: &mut Drawing, area: Area) {
    let (from, to) = (area.left, area.right);
    drawing.line(Place { x: from, y: area.bottom }, Place { x: to, y: area.bottom }, Paint::Frame);
}

/// Labels left of the area, and lines across it.
pub(super) fn draw_left(drawing: &mut Drawing, ticks: &Ticks, (area, scale): (Area, Scale)) {
    let letters = TICK.anchored(Anchor::End);
    let mut free_below = f64::INFINITY;
    for (value, text) in &ticks.named {
        let y = scale.place(*value);
        drawing.line(Place { x: area.left, y }, Place { x: area.right, y }, Paint::Grid);
        if y <= free_below {
            drawing.text(Place { x: area.left - 8.0, y: y + 4.0 }, letters, text);
            free_below = y - LABEL_HEIGHT;
        }
    }
}

/// Lines from top to bottom, where values lie beside each other.
pub(super) fn draw_upright_grid(
    drawing: &mut Drawing,
    ticks: &Ticks,
    (area, scale): (Area, Scale),
) {
    for (value, _) in &ticks.named {
        let x = scale.place(*value);
        drawing.line(Place { x, y: area.top }, Place { x, y: area.bottom }, Paint::Grid);
    }
}
