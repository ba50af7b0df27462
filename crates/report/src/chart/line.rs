//! Lines over a common axis, each with its name at its end.

use super::axis::{Axis, INK, Plot, SOFT_INK};
use super::scale::Scale;
use super::svg::{Anchor, Drawing, Letters, Place};

/// One plot of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePanel {
    pub heading: Option<String>,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub mark: Mark,
    pub points: Vec<(f64, f64)>,
    pub callout: Option<Callout>,
}

/// Words at one point of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Callout {
    pub point: (f64, f64),
    pub text: String,
}

/// Colour and shape; the colours are those of Okabe and Ito.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    BlueCircle,
    GreenSquare,
    VermilionTriangle,
}

const RADIUS: f64 = 4.5;
const NAME_SIZE: u32 = 13;
/// Names closer than this are pushed apart.
const NAME_HEIGHT: f64 = 16.0;
/// A guess that is never too small: the fonts of others cannot be measured here.
const CHARACTER_WIDTH: f64 = 7.2;

impl Mark {
    const fn colour(self) -> &'static str {
        match self {
            Self::BlueCircle => "#0072b2",
            Self::GreenSquare => "#009e73",
            Self::VermilionTriangle => "#d55e00",
        }
    }

    fn draw(self, drawing: &mut Drawing, at: Place) {
        let corner = |dx: f64, dy: f64| Place { x: at.x + dx, y: at.y + dy };
        match self {
            Self::BlueCircle => drawing.circle(at, RADIUS, self.colour()),
            Self::GreenSquare => {
                let r = RADIUS - 0.5;
                let corners = [corner(-r, -r), corner(r, -r), corner(r, r), corner(-r, r)];
                drawing.polygon(&corners, self.colour());
            }
            Self::VermilionTriangle => {
                let r = RADIUS + 1.0;
                let corners = [corner(0.0, -r), corner(r, r - 1.0), corner(-r, r - 1.0)];
                drawing.polygon(&corners, self.colour());
            }
        }
    }
}

impl LinePanel {
    /// Draws the panel; names stand right of the plot.
    pub(super) fn draw(&self, drawing: &mut Drawing, plot: Plot) {
        if let Some(heading) = &self.heading {
            let letters = Letters { size: 14, bold: true, colour: INK, anchor: Anchor::Start };
            drawing.text(Place { x: plot.left, y: plot.top - 14.0 }, letters, heading);
        }
        let highest = |of: fn(&(f64, f64)) -> f64| {
            let points = self.series.iter().flat_map(|series| &series.points);
            points.map(of).fold(0.0, f64::max)
        };
        let y = self.y.draw_left(drawing, plot, highest(|point| point.1));
        let x = self.x.draw_below(drawing, plot, highest(|point| point.0));
        for series in &self.series {
            series.draw(drawing, x, y);
        }
        self.draw_names(drawing, plot, y);
    }

    /// The room that names need right of a plot.
    pub(super) fn name_width(&self) -> f64 {
        let longest = self.series.iter().map(|series| series.name.chars().count()).max();
        longest.unwrap_or(0) as f64 * CHARACTER_WIDTH + 14.0
    }

    fn draw_names(&self, drawing: &mut Drawing, plot: Plot, y: Scale) {
        let mut names: Vec<(f64, &Series)> = self
            .series
            .iter()
            .filter_map(|series| series.points.last().map(|last| (y.place(last.1), series)))
            .collect();
        names.sort_by(|left, right| left.0.total_cmp(&right.0));
        let wanted: Vec<f64> = names.iter().map(|(at, _)| *at).collect();
        for ((_, series), at) in names.iter().zip(apart(&wanted, plot.bottom)) {
            let colour = series.mark.colour();
            let letters = Letters { size: NAME_SIZE, bold: true, colour, anchor: Anchor::Start };
            drawing.text(Place { x: plot.right + 12.0, y: at + 4.0 }, letters, &series.name);
        }
    }
}

impl Series {
    fn draw(&self, drawing: &mut Drawing, x: Scale, y: Scale) {
        let place = |point: &(f64, f64)| Place { x: x.place(point.0), y: y.place(point.1) };
        let places: Vec<Place> = self.points.iter().map(place).collect();
        drawing.polyline(&places, self.mark.colour());
        for at in &places {
            self.mark.draw(drawing, *at);
        }
        if let Some(callout) = &self.callout {
            let at = place(&callout.point);
            let letters =
                Letters { size: 12, bold: false, colour: SOFT_INK, anchor: Anchor::Middle };
            drawing.text(Place { y: at.y - 11.0, ..at }, letters, &callout.text);
        }
    }
}

/// Sorted places pushed apart until names fit, none of them below `lowest`.
fn apart(wanted: &[f64], lowest: f64) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.to_vec();
    let mut floor = lowest;
    for place in places.iter_mut().rev() {
        *place = place.min(floor);
        floor = *place - NAME_HEIGHT;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_overlap_are_pushed_apart() {
        assert_eq!(apart(&[10.0, 100.0], 300.0), [10.0, 100.0]);
        assert_eq!(apart(&[98.0, 100.0, 105.0], 300.0), [73.0, 89.0, 105.0]);
        assert_eq!(apart(&[305.0, 310.0], 300.0), [284.0, 300.0]);
        assert_eq!(apart(&[], 300.0), Vec::<f64>::new());
    }
}
