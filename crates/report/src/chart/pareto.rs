//! Two things that are wanted at once, each point with its name, and a line along those that
//! nothing beats in both.

use super::axis::{BELOW, draw_below, draw_left, draw_upright_grid, left_width};
use super::frame::{Area, Canvas, MARGIN, RIGHT, Swatch};
use super::lettering::{LABEL, TICK};
use super::lines::lowest_place;
use super::marks::{Look, distinct, draw_interval};
use super::palette::Paint;
use super::plot::{Measure, Pareto, ParetoPoint};
use super::scale::Scale;
use super::svg::{Anchor, Drawing, Place};
use super::ticks::Ticks;
use crate::fmt;

const HEIGHT: f64 = 340.0;
const NAME_WIDTH_MAX: f64 = 160.0;
/// Between a mark and its name.
const CLEAR: f64 = 9.0;
const INSET: f64 = 12.0;

impl Pareto {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let points: Vec<&ParetoPoint> =
            self.points.iter().filter(|point| point.is_known()).collect();
        if points.is_empty() {
            return canvas.nothing("No point was measured.");
        }
        let names = distinct(points.iter().map(|point| point.series.as_str()));
        if 1 < names.len() {
            canvas.legend_of(&names, Swatch::Mark);
        }
        canvas.top += LABEL.size;
        let at = Place { x: MARGIN, y: canvas.top };
        canvas.drawing.text(at, LABEL.anchored(Anchor::Start), &self.y.title());
        canvas.top += 15.0;
        let ys: Vec<f64> =
            points.iter().flat_map(|point| ends(point.y, point.y_interval)).collect();
        let xs: Vec<f64> =
            points.iter().flat_map(|point| ends(point.x, point.x_interval)).collect();
        let left = Ticks::round(self.y.spacing(), &ys);
        let below = Ticks::round(self.x.spacing(), &xs);
        let area = canvas.area((MARGIN + left_width(&left), RIGHT - 12.0), HEIGHT);
        canvas.top += BELOW;
        let scales = (
            below.scale((area.left, area.right - INSET)),
            left.scale((lowest_place(&left, area), area.top)),
        );
        let drawing = &mut canvas.drawing;
        draw_upright_grid(drawing, &below, (area, scales.0));
        draw_left(drawing, &left, (area, scales.1));
        draw_below(drawing, &below, (area, scales.0), &self.x.title());
        draw_frontier(drawing, &frontier(&points, scales));
        let labels = labels(&points, area, scales);
        for (place, name) in names.iter().enumerate() {
            drawing.open_series(name);
            for (point, label) in points.iter().zip(&labels) {
                if point.series == *name {
                    self.draw_point(drawing, (point, Look::at(place)), scales, *label);
                }
            }
            drawing.close_group();
        }
    }

    fn draw_point(
        &self,
        drawing: &mut Drawing,
        (point, look): (&ParetoPoint, Look),
        scales: (Scale, Scale),
        label: Option<(Place, Anchor)>,
    ) {
        let at = point.place(scales);
        if let Some((low, high)) = point.x_interval {
            let ends = [low, high].map(|end| Place { x: scales.0.place(end), ..at });
            draw_interval(drawing, ends[0], ends[1], look.paint());
        }
        if let Some((low, high)) = point.y_interval {
            let ends = [low, high].map(|end| Place { y: scales.1.place(end), ..at });
            draw_interval(drawing, ends[0], ends[1], look.paint());
        }
        look.draw_mark(drawing, at, point.hollow, Some(&self.tip(point)));
        if let Some((place, anchor)) = label {
            let letters = TICK.painted(Paint::Ink).anchored(anchor);
            let short = letters.shortened(&point.label, NAME_WIDTH_MAX);
            drawing.short_text(place, letters, (&short, &point.label));
        }
    }

    fn tip(&self, point: &ParetoPoint) -> String {
        let along = |value: f64, interval: Option<(f64, f64)>, measure: &Measure| {
            format!("{}{}", measure.show(value), fmt::confidence(interval))
        };
        fmt::joined(&[
            point.series.clone(),
            point.label.clone(),
            along(point.x, point.x_interval, &self.x),
            along(point.y, point.y_interval, &self.y),
            if point.on_frontier { "no other is better in both".to_owned() } else { String::new() },
            point.note.clone().unwrap_or_default(),
        ])
    }
}

impl ParetoPoint {
    fn is_known(&self) -> bool {
        self.x.is_finite() && self.y.is_finite()
    }

    fn place(&self, (x, y): (Scale, Scale)) -> Place {
        Place { x: x.place(self.x), y: y.place(self.y) }
    }
}

/// A value with the ends of its interval.
fn ends(value: f64, interval: Option<(f64, f64)>) -> impl Iterator<Item = f64> {
    [Some(value), interval.map(|ends| ends.0), interval.map(|ends| ends.1)].into_iter().flatten()
}

/// The points that nothing beats, from left to right.
fn frontier(points: &[&ParetoPoint], scales: (Scale, Scale)) -> Vec<Place> {
    let best = points.iter().filter(|point| point.on_frontier);
    let mut places: Vec<Place> = best.map(|point| point.place(scales)).collect();
    places.sort_by(|one, other| one.x.total_cmp(&other.x).then(other.y.total_cmp(&one.y)));
    places
}

fn draw_frontier(drawing: &mut Drawing, places: &[Place]) {
    if 1 < places.len() {
        let line = drawing.element("polyline").word("class", "frontier").points(places);
        let line = line.word("fill", "none").paint("stroke", Paint::Frame);
        line.word("stroke-width", "1.5").word("stroke-dasharray", "5 4").end();
    }
}

/// Where each name stands: beside, above or below its mark, where nothing else does; on a line
/// only where nothing else is free. One for which there is no room at all is left out; its mark
/// still says it.
fn labels(
    points: &[&ParetoPoint],
    area: Area,
    scales: (Scale, Scale),
) -> Vec<Option<(Place, Anchor)>> {
    let marks = points.iter().map(|point| around(point.place(scales), 6.0));
    let mut taken: Vec<Area> = marks.collect();
    let lines = lines_of(points, scales);
    let bounds = Area { right: RIGHT, top: area.top - 12.0, ..area };
    let mut found = Vec::new();
    for point in points {
        let width = TICK.width(&TICK.shortened(&point.label, NAME_WIDTH_MAX));
        let free = |obstacles: &[&[Area]]| {
            candidates(point.place(scales)).into_iter().find(|(at, anchor)| {
                let held = held(*at, *anchor, width);
                let is_free = |other: &Area| !held.meets(*other);
                held.is_within(bounds) && obstacles.iter().copied().flatten().all(is_free)
            })
        };
        let chosen = free(&[&taken, &lines]).or_else(|| free(&[&taken]));
        taken.extend(chosen.map(|(at, anchor)| held(at, anchor, width)));
        found.push(chosen);
    }
    found
}

fn around(at: Place, reach: f64) -> Area {
    let (left, right) = (at.x - reach, at.x + reach);
    Area { left, right, top: at.y - reach, bottom: at.y + reach }
}

/// Intervals, and the frontier in short pieces.
fn lines_of(points: &[&ParetoPoint], (x, y): (Scale, Scale)) -> Vec<Area> {
    const PIECES: u32 = 60;
    let mut lines = Vec::new();
    for point in points {
        let at = around(point.place((x, y)), 3.0);
        if let Some((low, high)) = point.x_interval {
            lines.push(Area { left: x.place(low), right: x.place(high), ..at });
        }
        if let Some((low, high)) = point.y_interval {
            lines.push(Area { top: y.place(high), bottom: y.place(low), ..at });
        }
    }
    for pair in frontier(points, (x, y)).windows(2) {
        for piece in 0..=PIECES {
            let share = f64::from(piece) / f64::from(PIECES);
            let between = |one: f64, other: f64| one + share * (other - one);
            let at = Place { x: between(pair[0].x, pair[1].x), y: between(pair[0].y, pair[1].y) };
            lines.push(around(at, 1.0));
        }
    }
    lines
}

fn candidates(at: Place) -> [(Place, Anchor); 10] {
    let next =
        |dx: f64, dy: f64, anchor: Anchor| (Place { x: at.x + dx, y: at.y + 4.0 + dy }, anchor);
    [
        next(CLEAR, -10.0, Anchor::Start),
        next(CLEAR, 0.0, Anchor::Start),
        next(CLEAR, 12.0, Anchor::Start),
        next(-CLEAR, 12.0, Anchor::End),
        next(-CLEAR, 0.0, Anchor::End),
        next(-CLEAR, -10.0, Anchor::End),
        next(0.0, -14.0, Anchor::Middle),
        next(0.0, 18.0, Anchor::Middle),
        next(0.0, -28.0, Anchor::Middle),
        next(0.0, 32.0, Anchor::Middle),
    ]
}

/// What a text takes that stands at a place.
fn held(at: Place, anchor: Anchor, width: f64) -> Area {
    let left = match anchor {
        Anchor::Start => at.x,
        Anchor::Middle => at.x - width / 2.0,
        Anchor::End => at.x - width,
    };
    Area { left, right: left + width, top: at.y - 11.0, bottom: at.y + 3.0 }
}

impl Area {
    fn meets(&self, other: Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn is_within(&self, other: Self) -> bool {
        other.left <= self.left
            && self.right <= other.right
            && other.top <= self.top
            && self.bottom <= other.bottom
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::scale::Spacing;

    fn point(x: f64, y: f64) -> ParetoPoint {
        ParetoPoint {
            series: "a".to_owned(),
            label: "a name".to_owned(),
            x,
            y,
            x_interval: None,
            y_interval: None,
            on_frontier: true,
            hollow: false,
            note: None,
        }
    }

    #[test]
    fn names_never_stand_on_each_other_or_on_marks() {
        let points: Vec<ParetoPoint> = (0..12)
            .map(|n| point(50.0 + f64::from(n % 4) * 3.0, 50.0 + f64::from(n) * 2.0))
            .collect();
        let points: Vec<&ParetoPoint> = points.iter().collect();
        let area = Area { left: 80.0, right: 760.0, top: 100.0, bottom: 400.0 };
        let scale = |places| Scale::new(Spacing::Even, (0.0, 100.0), places);
        let scales = (scale((80.0, 760.0)), scale((400.0, 100.0)));
        let found: Vec<Area> = labels(&points, area, scales)
            .into_iter()
            .flatten()
            .map(|(at, anchor)| held(at, anchor, TICK.width("a name")))
            .collect();
        assert!(4 < found.len(), "{found:?}");
        for (place, one) in found.iter().enumerate() {
            assert!(found[..place].iter().all(|other| !one.meets(*other)), "{one:?}");
        }
    }
}
