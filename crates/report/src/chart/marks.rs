//! How series are told apart: by colour, by shape, by dashes and by hatching, so that a print
//! without colour still reads.

use super::palette::Paint;
use super::svg::{Drawing, Hatching, Place};

/// How a series looks, by its place among all of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    place: usize,
    dashes: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Hanging,
    Star,
    Pentagon,
}

const SHAPES: [Shape; 7] = [
    Shape::Circle,
    Shape::Square,
    Shape::Triangle,
    Shape::Diamond,
    Shape::Hanging,
    Shape::Star,
    Shape::Pentagon,
];
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "12 4"];
pub(super) const RADIUS: f64 = 4.5;

/// The names of series in the order in which they appear, each once.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

impl Look {
    /// Of the series of this name among the distinct ones.
    pub(super) fn of(name: &str, names: &[&str]) -> Self {
        Self::at(names.iter().position(|known| *known == name).unwrap_or_default())
    }

    pub(super) const fn at(place: usize) -> Self {
        Self { place, dashes: DASHES[place % DASHES.len()] }
    }

    /// Alone in its panel, a line needs no dashes.
    pub(super) const fn among(self, series: usize) -> Self {
        if series < 2 { Self { dashes: "", ..self } } else { self }
    }

    pub(super) const fn paint(self) -> Paint {
        Paint::Series(self.place)
    }

    /// The first surface is plain.
    pub(super) fn hatching(self) -> Option<Hatching> {
        let place = self.place % (Hatching::ALL.len() + 1);
        place.checked_sub(1).map(|place| Hatching::ALL[place])
    }

    pub(super) fn draw_line(self, drawing: &mut Drawing, places: &[Place]) {
        let mut line = drawing
            .element("polyline")
            .points(places)
            .word("fill", "none")
            .paint("stroke", self.paint())
            .word("stroke-width", "2")
            .word("stroke-linejoin", "round");
        if !self.dashes.is_empty() {
            line = line.word("stroke-dasharray", self.dashes);
        }
        line.end();
    }

    /// An outline where it is `hollow`; a mark without a tip is one of a legend.
    pub(super) fn draw_mark(
        self,
        drawing: &mut Drawing,
        at: Place,
        hollow: bool,
        tip: Option<&str>,
    ) {
        let shape = SHAPES[self.place % SHAPES.len()];
        let element = if shape == Shape::Circle {
            drawing.element("circle").number("cx", at.x).number("cy", at.y).number("r", RADIUS)
        } else {
            drawing.element("polygon").points(&shape.corners(at))
        };
        let element = match tip {
            Some(tip) => element.tip(tip),
            None => element,
        };
        // A rim in the colour of the ground keeps marks on a line apart.
        if hollow {
            element
                .paint("fill", Paint::Surface)
                .paint("stroke", self.paint())
                .word("stroke-width", "2")
                .end();
        } else {
            element.paint("fill", self.paint()).paint("stroke", Paint::Surface).end();
        }
    }
}

impl Shape {
    fn corners(self, at: Place) -> Vec<Place> {
        let r = RADIUS;
        let corners: &[(f64, f64)] = match self {
            Self::Circle => &[],
            Self::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Self::Triangle => &[(0.0, -1.25), (1.2, 0.95), (-1.2, 0.95)],
            Self::Diamond => &[(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)],
            Self::Hanging => &[(0.0, 1.25), (1.2, -0.95), (-1.2, -0.95)],
            Self::Star => &[
                (0.0, -1.5),
                (0.45, -0.45),
                (1.5, 0.0),
                (0.45, 0.45),
                (0.0, 1.5),
                (-0.45, 0.45),
                (-1.5, 0.0),
                (-0.45, -0.45),
            ],
            Self::Pentagon => {
                &[(0.0, -1.2), (1.15, -0.35), (0.7, 1.0), (-0.7, 1.0), (-1.15, -0.35)]
            }
        };
        corners.iter().map(|(x, y)| Place { x: at.x + r * x, y: at.y + r * y }).collect()
    }
}

/// A line from `from` to `to` with a bar across each end: where a value lies with confidence.
pub(super) fn draw_interval(drawing: &mut Drawing, from: Place, to: Place, paint: Paint) {
    const HALF_BAR: f64 = 4.0;
    let (wide, high) = ((from.x - to.x).abs(), (from.y - to.y).abs());
    // Narrower than the line that would show it.
    if wide.max(high) < 1.0 {
        return;
    }
    let upright = wide < high;
    let across = |at: Place| {
        if upright {
            (Place { x: at.x - HALF_BAR, ..at }, Place { x: at.x + HALF_BAR, ..at })
        } else {
            (Place { y: at.y - HALF_BAR, ..at }, Place { y: at.y + HALF_BAR, ..at })
        }
    };
    for (from, to) in [(from, to), across(from), across(to)] {
        drawing.line(from, to, paint);
    }
}

/// The same over a bar, with a rim in the colour of the ground.
pub(super) fn draw_interval_over(drawing: &mut Drawing, from: Place, to: Place, paint: Paint) {
    if 1.0 <= (from.x - to.x).abs() {
        let rim = drawing.element("line").ends(from, to).paint("stroke", Paint::Surface);
        rim.word("stroke-width", "4").end();
    }
    draw_interval(drawing, from, to, paint);
}

/// Where something was tried and came to nothing.
pub(super) fn draw_cross(drawing: &mut Drawing, at: Place) {
    const REACH: f64 = 4.0;
    for slope in [REACH, -REACH] {
        let from = Place { x: at.x - REACH, y: at.y - slope };
        let to = Place { x: at.x + REACH, y: at.y + slope };
        let line = drawing.element("line").ends(from, to).paint("stroke", Paint::Bad);
        line.word("stroke-width", "2").end();
    }
}
