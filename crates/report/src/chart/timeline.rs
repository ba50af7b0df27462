//! Panels over the same time. Where nothing is known there is no line, and the ground is shaded.

use super::axis::{BELOW, draw_below, draw_left, draw_line_below};
use super::frame::{Area, Canvas, Entry, Swatch};
use super::lines::{draw_heading, draw_names, names_at_ends, sides};
use super::marks::{Look, distinct};
use super::palette::Paint;
use super::plot::{Timeline, TimelinePanel, TimelineSeries};
use super::scale::Scale;
use super::svg::{Drawing, Place};
use super::ticks::Ticks;
use crate::fmt;

const GAP_STRENGTH: f64 = 0.55;
/// More marks to point at than these would be narrower than a pointer.
const BANDS_MAX: usize = 240;

impl Timeline {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let steps = self.steps();
        if steps == 0 || !self.series().any(|(_, series)| series.known().next().is_some()) {
            return canvas.nothing("Nothing is known about this time.");
        }
        if self.panels.iter().any(|panel| !panel.gaps().is_empty()) {
            let swatch =
                Swatch::Surface { paint: Paint::Grid, strength: GAP_STRENGTH, hatching: None };
            canvas.legend(&[Entry::key("shaded: not known", swatch)]);
        }
        let names = distinct(self.series().map(|(_, series)| series.name.as_str()));
        let to = self.from_s + steps as f64 * self.step_s;
        let below = Ticks::between(from_zero(self.from_s, to), to);
        let left: Vec<Ticks> = self.panels.iter().map(TimelinePanel::ticks).collect();
        let height = if self.panels.len() < 2 { 220.0 } else { 130.0 };
        let at_ends = names_at_ends(canvas, &names, height);
        let sides = sides(&left, at_ends);
        let (x, top, mut bottom) = (below.scale(sides), canvas.top, canvas.top);
        for (place, (panel, ticks)) in self.panels.iter().zip(&left).enumerate() {
            draw_heading(canvas, &panel.heading, &panel.y);
            let area = canvas.area(sides, height);
            let y = ticks.scale((area.bottom, area.top));
            self.draw_gaps(&mut canvas.drawing, panel, (area, x));
            draw_left(&mut canvas.drawing, ticks, (area, y));
            if place + 1 == self.panels.len() {
                let label = "time since the run began (s)";
                draw_below(&mut canvas.drawing, &below, (area, x), label);
                canvas.top += BELOW;
            } else {
                draw_line_below(&mut canvas.drawing, area);
                canvas.top += 22.0;
            }
            let ends = self.draw_series(&mut canvas.drawing, panel, &names, (x, y, area.bottom));
            if !at_ends.is_empty() {
                draw_names(&mut canvas.drawing, area, &ends);
            }
            bottom = area.bottom;
        }
        // Over all else, so that nothing is between a pointer and a moment.
        self.draw_bands(&mut canvas.drawing, x, (top, bottom));
    }

    pub(super) fn series(&self) -> impl Iterator<Item = (&TimelinePanel, &TimelineSeries)> {
        self.panels.iter().flat_map(|panel| panel.series.iter().map(move |series| (panel, series)))
    }

    pub(super) fn steps(&self) -> usize {
        self.series().map(|(_, series)| series.values.len()).max().unwrap_or_default()
    }

    /// The middle of a step.
    pub(super) fn moment(&self, step: usize) -> f64 {
        self.from_s + (step as f64 + 0.5) * self.step_s
    }

    fn draw_gaps(&self, drawing: &mut Drawing, panel: &TimelinePanel, (area, x): (Area, Scale)) {
        for (first, last) in panel.gaps() {
            let place = |step: usize| x.place(self.from_s + step as f64 * self.step_s);
            let corners = (
                Place { x: place(first), y: area.top },
                Place { x: place(last + 1), y: area.bottom },
            );
            let shade = drawing.element("rect").word("class", "gap").corners(corners.0, corners.1);
            let strength = format!("{GAP_STRENGTH:.2}");
            shade.paint("fill", Paint::Grid).word("fill-opacity", &strength).end();
        }
    }

    fn draw_series<'a>(
        &self,
        drawing: &mut Drawing,
        panel: &'a TimelinePanel,
        names: &[&str],
        (x, y, bottom): (Scale, Scale, f64),
    ) -> Vec<(&'a str, Look, Place)> {
        let mut ends = Vec::new();
        for series in &panel.series {
            let look = Look::of(&series.name, names).among(panel.series.len());
            let place = |(step, value): (usize, f64)| Place {
                x: x.place(self.moment(step)),
                y: y.place(value),
            };
            drawing.open_series(&series.name);
            for stretch in series.stretches() {
                let places: Vec<Place> = stretch.into_iter().map(place).collect();
                match places[..] {
                    // A line needs two ends.
                    [alone] => {
                        let dot = drawing.element("circle").number("cx", alone.x);
                        dot.number("cy", alone.y)
                            .number("r", 3.0)
                            .paint("fill", look.paint())
                            .end();
                    }
                    [first, .., last] => {
                        if panel.series.len() == 1 {
                            let ground = [last, first].map(|end| Place { y: bottom, ..end });
                            let places = [&places[..], &ground].concat();
                            let fill = drawing.element("polygon").points(&places);
                            fill.paint("fill", look.paint()).word("fill-opacity", "0.12").end();
                        }
                        look.draw_line(drawing, &places);
                    }
                    [] => {}
                }
            }
            drawing.close_group();
            if let Some(last) = series.known().last() {
                ends.push((series.name.as_str(), look, place(last)));
            }
        }
        ends
    }

    /// One mark for each step through all panels, so that a pointer reads all values of a moment.
    fn draw_bands(&self, drawing: &mut Drawing, x: Scale, (top, bottom): (f64, f64)) {
        let steps = self.steps();
        let stride = steps.div_ceil(BANDS_MAX).max(1);
        for step in (0..steps).step_by(stride) {
            let mut parts = vec![fmt::seconds(self.moment(step))];
            for (panel, series) in self.series() {
                let value = series.values.get(step).copied().flatten();
                let value =
                    value.map_or_else(|| fmt::NOTHING.to_owned(), |value| panel.y.show(value));
                parts.push(format!("{}: {value}", series.name));
            }
            let place = |step: usize| x.place(self.from_s + step as f64 * self.step_s);
            let corners =
                (Place { x: place(step), y: top }, Place { x: place(step + stride), y: bottom });
            let band = drawing.element("rect").corners(corners.0, corners.1).unseen();
            band.tip(&fmt::joined(&parts)).end();
        }
    }
}

/// Where an axis of time begins: at zero where the first step is near it.
pub(super) fn from_zero(from: f64, to: f64) -> f64 {
    /// Of what is drawn.
    const NEAR: f64 = 0.2;
    if 0.0 < from && from < NEAR * (to - from) { 0.0 } else { from }
}

impl TimelinePanel {
    fn ticks(&self) -> Ticks {
        let values: Vec<f64> =
            self.series.iter().flat_map(TimelineSeries::known).map(|(_, value)| value).collect();
        Ticks::round(self.y.spacing(), &values)
    }

    /// First and last steps of the times where some series has no value.
    fn gaps(&self) -> Vec<(usize, usize)> {
        let steps = self.series.iter().map(|series| series.values.len()).max().unwrap_or_default();
        let mut gaps: Vec<(usize, usize)> = Vec::new();
        for step in 0..steps {
            if self.series.iter().all(|series| series.is_rare() || series.at(step).is_some()) {
                continue;
            }
            match gaps.last_mut() {
                Some((_, last)) if *last + 1 == step => *last = step,
                _ => gaps.push((step, step)),
            }
        }
        gaps
    }
}

impl TimelineSeries {
    pub(super) fn at(&self, step: usize) -> Option<f64> {
        self.values.get(step).copied().flatten().filter(|value| value.is_finite())
    }

    fn known(&self) -> impl Iterator<Item = (usize, f64)> {
        (0..self.values.len()).filter_map(|step| Some((step, self.at(step)?)))
    }

    /// Whether its values stand alone, with steps between them in which nobody looked.
    fn is_rare(&self) -> bool {
        let stretches = self.stretches();
        let alone = stretches.iter().filter(|stretch| stretch.len() == 1).count();
        1 < stretches.len() && stretches.len() < 2 * alone
    }

    /// Steps with values, divided where some are missing.
    fn stretches(&self) -> Vec<Vec<(usize, f64)>> {
        let mut stretches: Vec<Vec<(usize, f64)>> = Vec::new();
        for (step, value) in self.known() {
            match stretches.last_mut() {
                Some(stretch) if stretch.last().is_some_and(|last| last.0 + 1 == step) => {
                    stretch.push((step, value));
                }
                _ => stretches.push(vec![(step, value)]),
            }
        }
        stretches
    }
}
