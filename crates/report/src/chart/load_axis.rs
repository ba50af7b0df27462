//! The axis of load below lines, with a place of its own for a load without a limit.

use super::axis::draw_below;
use super::frame::Area;
use super::lettering::TICK;
use super::palette::Paint;
use super::plot::{Lines, LinesPanel};
use super::scale::Scale;
use super::svg::{Drawing, Place};
use super::ticks::Ticks;

/// What an infinite load is called.
pub(super) const UNLIMITED: &str = "unlimited";
/// Marks stand this far inside the ends of their axis.
pub(super) const INSET: f64 = 12.0;
/// From the end of the scale to the place of what has no limit.
const TO_UNLIMITED: f64 = 72.0;
/// So that the word below that place stays below the plot.
const UNLIMITED_INSET: f64 = 26.0;

pub(super) struct LoadAxis {
    /// None named where every load is without a limit.
    ticks: Ticks,
    has_unlimited: bool,
}

/// From loads to pixels.
#[derive(Clone, Copy)]
pub(super) struct LoadScale {
    scale: Scale,
    unlimited: f64,
}

impl LoadAxis {
    pub(super) fn of(lines: &Lines) -> Self {
        let loads = || lines.panels.iter().flat_map(LinesPanel::points).map(|point| point.x);
        let places: Vec<f64> = loads().filter(|x| x.is_finite()).collect();
        let spacing = lines.x.spacing();
        let ticks = if places.is_empty() {
            Ticks { named: Vec::new(), ..Ticks::round(spacing, &[]) }
        } else if lines.ticks_at_points {
            Ticks::at_values(spacing, &places)
        } else {
            Ticks::up_to(spacing, &places)
        };
        Self { ticks, has_unlimited: loads().any(|x| x == f64::INFINITY) }
    }

    pub(super) fn within(&self, area: Area) -> LoadScale {
        let unlimited = if self.is_bare() { area.middle_x() } else { area.right - UNLIMITED_INSET };
        let right = if self.has_unlimited { unlimited - TO_UNLIMITED } else { area.right - INSET };
        LoadScale { scale: self.ticks.scale((area.left + INSET, right)), unlimited }
    }

    pub(super) fn draw(&self, drawing: &mut Drawing, area: Area, title: &str) {
        let LoadScale { scale, unlimited } = self.within(area);
        draw_below(drawing, &self.ticks, (area, scale), title);
        if !self.has_unlimited {
            return;
        }
        let at = Place { x: unlimited, y: area.bottom };
        drawing.line(at, Place { y: at.y + 5.0, ..at }, Paint::Frame);
        drawing.text(Place { y: at.y + 19.0, ..at }, TICK, UNLIMITED);
        if !self.is_bare() {
            draw_break(drawing, Place { x: unlimited - TO_UNLIMITED / 2.0, ..at });
        }
    }

    fn is_bare(&self) -> bool {
        self.ticks.named.is_empty()
    }
}

impl LoadScale {
    pub(super) fn place(&self, load: f64) -> f64 {
        if load.is_finite() { self.scale.place(load) } else { self.unlimited }
    }
}

/// Two strokes through the axis: what lies right of them is not to scale.
fn draw_break(drawing: &mut Drawing, at: Place) {
    let gap = drawing.element("line").paint("stroke", Paint::Surface);
    let (from, to) = (Place { x: at.x - 3.0, ..at }, Place { x: at.x + 3.0, ..at });
    gap.word("stroke-width", "3").ends(from, to).end();
    for dx in [-3.0, 3.0] {
        let low = Place { x: at.x + dx - 3.0, y: at.y + 5.0 };
        let high = Place { x: at.x + dx + 3.0, y: at.y - 5.0 };
        drawing.line(low, high, Paint::Frame);
    }
}
