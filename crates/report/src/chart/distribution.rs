//! How latencies are distributed: shares against values, with as much room for the slowest
//! hundredth as for the rest.

use super::axis::{BELOW, draw_below, draw_left, draw_upright_grid, left_width};
use super::frame::{Canvas, Entry, MARGIN, RIGHT, Swatch};
use super::lettering::LABEL;
use super::marks::{Look, RADIUS};
use super::plot::{Curve, Distribution, Measure};
use super::scale::Scale;
use super::svg::{Anchor, Drawing, Place};
use super::ticks::Ticks;
use crate::fmt;

/// Shares that people name.
pub(super) const NAMED: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];
/// So few points are all marked.
const MARKED_MAX: usize = 10;
const HEIGHT: f64 = 310.0;

impl Distribution {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let points: Vec<(f64, f64)> = self.curves.iter().flat_map(Curve::known).collect();
        if points.is_empty() {
            return canvas.nothing("No values were measured.");
        }
        self.draw_legend(canvas);
        let (shares, values): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let left = Ticks::percentiles(&shares);
        let below = self.ticks(&values);
        canvas.top += LABEL.size;
        let at = Place { x: MARGIN, y: canvas.top };
        canvas.drawing.text(at, LABEL.anchored(Anchor::Start), "share of values at or below");
        canvas.top += 15.0;
        let area = canvas.area((MARGIN + left_width(&left), RIGHT - 16.0), HEIGHT);
        canvas.top += BELOW;
        let scales = (below.scale((area.left, area.right)), left.scale((area.bottom, area.top)));
        let drawing = &mut canvas.drawing;
        draw_upright_grid(drawing, &below, (area, scales.0));
        draw_left(drawing, &left, (area, scales.1));
        draw_below(drawing, &below, (area, scales.0), &self.x.title());
        for (place, curve) in self.curves.iter().enumerate() {
            drawing.open_series(&curve.name);
            curve.draw(drawing, Look::at(place), scales, &self.x);
            drawing.close_group();
        }
    }

    /// Values close to each other have the axis to themselves: between round values they would be
    /// one upright line.
    fn ticks(&self, values: &[f64]) -> Ticks {
        const CLOSE: f64 = 2.0;
        const MARGIN_SHARE: f64 = 0.02;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if CLOSE * low < high {
            return Ticks::round(self.x.spacing(), values);
        }
        let ends = [low * (1.0 - MARGIN_SHARE), high * (1.0 + MARGIN_SHARE)];
        Ticks::within(self.x.spacing(), &ends)
    }

    fn draw_legend(&self, canvas: &mut Canvas) {
        // One that is alone is named by the title, and what is the same for all by the line below.
        let [first, _, ..] = self.curves.as_slice() else { return };
        let same_n = self.curves.iter().all(|curve| curve.n == first.n);
        let entry = |(place, curve): (usize, &Curve)| Entry {
            name: if same_n {
                curve.name.clone()
            } else {
                format!("{} (n = {})", curve.name, fmt::count(curve.n))
            },
            ..Entry::series(curve.name.as_str(), Swatch::Line(Look::at(place)))
        };
        let entries: Vec<Entry> = self.curves.iter().enumerate().map(entry).collect();
        canvas.legend(&entries);
    }
}

/// The share that people name, if it is one.
pub(super) fn named(share: f64) -> Option<f64> {
    NAMED.into_iter().find(|known| (known - share).abs() < 1e-9)
}

impl Curve {
    /// Numbers that have a place.
    pub(super) fn known(&self) -> impl Iterator<Item = (f64, f64)> {
        let is_known = |point: &&(f64, f64)| (0.0..=1.0).contains(&point.0) && point.1.is_finite();
        self.points.iter().filter(is_known).copied()
    }

    fn draw(&self, drawing: &mut Drawing, look: Look, (x, y): (Scale, Scale), measure: &Measure) {
        let place = |(share, value): (f64, f64)| Place { x: x.place(value), y: y.place(share) };
        let places: Vec<Place> = self.known().map(place).collect();
        look.draw_line(drawing, &places);
        for point in self.known() {
            let (share, value) = point;
            let value = measure.show(value);
            let tip = fmt::joined(&[self.name.clone(), fmt::percentile_name(share), value]);
            let at = place(point);
            if named(share).is_some() || places.len() <= MARKED_MAX {
                look.draw_mark(drawing, at, false, Some(&tip));
            } else {
                let hit = drawing.element("circle").number("cx", at.x).number("cy", at.y);
                hit.number("r", RADIUS).unseen().tip(&tip).end();
            }
        }
    }
}
