//! Something against load: panels above each other over the same axis, each line with its name at
//! its end, or in a legend where a page may be narrow.

use super::axis::{BELOW, draw_left, draw_line_below, left_width};
use super::frame::{Area, Canvas, MARGIN, RIGHT, Swatch};
use super::lettering::{HEADING, LABEL, NAME, apart};
use super::load_axis::{INSET, LoadAxis, LoadScale, UNLIMITED};
use super::marks::{Look, distinct, draw_interval};
use super::palette::Paint;
use super::plot::{LinePoint, LineSeries, Lines, LinesPanel, Measure};
use super::scale::{Scale, Spacing};
use super::svg::{Anchor, Drawing, Place};
use super::ticks::Ticks;
use crate::fmt;

/// More points than these have their intervals as a ribbon.
const BARS_MAX: usize = 16;
const NAME_WIDTH_MAX: f64 = 210.0;
const NAME_HEIGHT: f64 = 17.0;
/// Between a plot and the names right of it, with their swatches.
const BEFORE_NAME: f64 = 34.0;

impl Lines {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let points = || self.panels.iter().flat_map(LinesPanel::points);
        if points().next().is_none() {
            return canvas.nothing("No level was measured.");
        }
        let names = distinct(self.panels.iter().flat_map(LinesPanel::names));
        let below = LoadAxis::of(self);
        let left: Vec<Ticks> = self.panels.iter().map(LinesPanel::ticks).collect();
        let height = match self.panels.len() {
            0 | 1 => 300.0,
            2 => 200.0,
            _ => 160.0,
        };
        let at_ends = names_at_ends(canvas, &names, height);
        let sides = sides(&left, at_ends);
        for (place, (panel, ticks)) in self.panels.iter().zip(&left).enumerate() {
            draw_heading(canvas, &panel.heading, &panel.y);
            let area = canvas.area(sides, height);
            let x = below.within(area);
            let y = ticks.scale((lowest_place(ticks, area), area.top));
            draw_left(&mut canvas.drawing, ticks, (area, y));
            if place + 1 == self.panels.len() {
                below.draw(&mut canvas.drawing, area, &self.x.title());
                canvas.top += BELOW;
            } else {
                draw_line_below(&mut canvas.drawing, area);
                canvas.top += 26.0;
            }
            let ends = panel.draw(&mut canvas.drawing, &self.x, &names, (x, y));
            if !at_ends.is_empty() {
                draw_names(&mut canvas.drawing, area, &ends);
            }
        }
    }
}

/// A mark at the beginning of a logarithmic axis would lie on the ticks below it, and says nothing
/// by that: only zero belongs there.
pub(super) fn lowest_place(ticks: &Ticks, area: Area) -> f64 {
    match ticks.spacing {
        Spacing::Log => area.bottom - INSET,
        Spacing::Even | Spacing::Tail => area.bottom,
    }
}

/// The names that stand at the ends of their lines: all, or none where there is no room for them
/// and a legend has them instead. A page has a legend always: where it is narrow, its right end is
/// out of sight, and names would take a quarter of what is left.
pub(super) fn names_at_ends<'a>(
    canvas: &mut Canvas,
    names: &'a [&'a str],
    height: f64,
) -> &'a [&'a str] {
    // What is alone needs no name: the title has it.
    if names.len() < 2 {
        return &[];
    }
    let has_room = names.len() as f64 * NAME_HEIGHT <= height;
    if has_room && !canvas.drawing.theme().is_within_page() {
        return names;
    }
    canvas.legend_of(names, Swatch::Line);
    &[]
}

/// Where panels begin and end, so that all of them share an axis.
pub(super) fn sides(left: &[Ticks], names: &[&str]) -> (f64, f64) {
    let labels = left.iter().map(left_width).fold(0.0, f64::max);
    let widest = names.iter().map(|name| NAME.width(name)).fold(0.0, f64::max);
    let name_room = if widest == 0.0 { 12.0 } else { BEFORE_NAME + widest.min(NAME_WIDTH_MAX) };
    (MARGIN + labels, RIGHT - name_room)
}

/// What a panel shows, above it.
pub(super) fn draw_heading(canvas: &mut Canvas, heading: &str, y: &Measure) {
    canvas.top += HEADING.size;
    let at = Place { x: MARGIN, y: canvas.top };
    let heading_short = HEADING.shortened(heading, 0.6 * (RIGHT - MARGIN));
    let letters = LABEL.anchored(Anchor::Start);
    // A measure that is named like its panel adds no more than its unit.
    let is_same = y.label.eq_ignore_ascii_case(heading);
    let unit = if is_same { y.unit.clone() } else { y.title() };
    if heading.is_empty() {
        canvas.drawing.text(at, letters, &letters.shortened(&unit, RIGHT - MARGIN));
    } else if unit.is_empty() {
        canvas.drawing.short_text(at, HEADING, (&heading_short, heading));
    } else {
        let room = RIGHT - MARGIN - HEADING.width(&heading_short) - 20.0;
        let unit = letters.shortened(&unit, room);
        canvas.drawing.texts(at, (HEADING, &heading_short), (letters, &unit));
    }
    canvas.top += 12.0;
}

/// Names right of their lines, pushed apart; a thin line leads to one that is not beside its end.
pub(super) fn draw_names(drawing: &mut Drawing, area: Area, ends: &[(&str, Look, Place)]) {
    let mut ends: Vec<&(&str, Look, Place)> =
        ends.iter().filter(|(name, _, _)| !name.is_empty()).collect();
    ends.sort_by(|one, other| one.2.y.total_cmp(&other.2.y));
    let wanted: Vec<f64> = ends.iter().map(|(_, _, at)| at.y).collect();
    for ((name, look, end), y) in
        ends.into_iter().zip(apart(&wanted, NAME_HEIGHT, (area.top, area.bottom)))
    {
        drawing.open_series(name);
        let swatch = Place { x: area.right + BEFORE_NAME - 24.0, y };
        if 14.0 < swatch.x - end.x - INSET || 5.0 < (y - end.y).abs() {
            let line = drawing.element("line").ends(*end, Place { x: swatch.x - 2.0, y });
            line.paint("stroke", look.paint()).word("stroke-dasharray", "1 3").end();
        }
        Swatch::Mark(*look).draw(drawing, Place { x: swatch.x - 2.0, ..swatch });
        let short = NAME.shortened(name, NAME_WIDTH_MAX);
        let at = Place { x: area.right + BEFORE_NAME - 6.0, y: y + 4.5 };
        drawing.short_text(at, NAME, (&short, name));
        drawing.close_group();
    }
}

impl LinesPanel {
    pub(super) fn points(&self) -> impl Iterator<Item = &LinePoint> {
        self.series.iter().flat_map(LineSeries::known)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.series.iter().map(|series| series.name.as_str())
    }

    fn ticks(&self) -> Ticks {
        let values: Vec<f64> = self
            .points()
            .flat_map(|point| {
                [
                    Some(point.y),
                    point.interval.map(|ends| ends.0),
                    point.interval.map(|ends| ends.1),
                ]
            })
            .flatten()
            .collect();
        Ticks::round(self.y.spacing(), &values)
    }

    /// Draws the lines and returns where they end.
    fn draw(
        &self,
        drawing: &mut Drawing,
        x_of: &Measure,
        names: &[&str],
        (x, y): (LoadScale, Scale),
    ) -> Vec<(&str, Look, Place)> {
        let mut ends = Vec::new();
        for series in self.series.iter().filter(|series| series.known().next().is_some()) {
            let look = Look::of(&series.name, names).among(self.series.len());
            drawing.open_series(&series.name);
            series.draw(drawing, look, (x, y), (x_of, &self.y));
            drawing.close_group();
            if let Some(last) = series.known().last() {
                ends.push((
                    series.name.as_str(),
                    look,
                    Place { x: x.place(last.x), y: y.place(last.y) },
                ));
            }
        }
        ends
    }
}

impl LineSeries {
    /// Numbers that have a place.
    fn known(&self) -> impl Iterator<Item = &LinePoint> {
        let has_place = |x: f64| x.is_finite() || x == f64::INFINITY;
        self.points.iter().filter(move |point| has_place(point.x) && point.y.is_finite())
    }

    fn draw(
        &self,
        drawing: &mut Drawing,
        look: Look,
        (x, y): (LoadScale, Scale),
        measures: (&Measure, &Measure),
    ) {
        let place = |point: &LinePoint| Place { x: x.place(point.x), y: y.place(point.y) };
        if BARS_MAX < self.points.len() {
            self.draw_ribbon(drawing, look.paint(), (x, y));
        } else {
            for point in self.known() {
                let Some((low, high)) = point.interval else { continue };
                let ends = [low, high].map(|end| Place { x: x.place(point.x), y: y.place(end) });
                draw_interval(drawing, ends[0], ends[1], look.paint());
            }
        }
        self.draw_course(drawing, look, place);
        for point in self.known() {
            let tip = self.tip(point, measures);
            look.draw_mark(drawing, place(point), point.hollow, Some(&tip));
        }
    }

    /// The line through its points, which only leads on to one without a limit: it is not to scale.
    fn draw_course(&self, drawing: &mut Drawing, look: Look, place: impl Fn(&LinePoint) -> Place) {
        let (limited, unlimited): (Vec<&LinePoint>, Vec<&LinePoint>) =
            self.known().partition(|point| point.x.is_finite());
        let places: Vec<Place> = limited.into_iter().map(&place).collect();
        look.draw_line(drawing, &places);
        if let (Some(last), Some(point)) = (places.last(), unlimited.first()) {
            let lead = drawing.element("line").ends(*last, place(point));
            lead.paint("stroke", look.paint()).word("stroke-dasharray", "1 4").end();
        }
    }

    fn draw_ribbon(&self, drawing: &mut Drawing, paint: Paint, (x, y): (LoadScale, Scale)) {
        let known: Vec<(f64, f64, f64)> = self
            .known()
            .filter(|point| point.x.is_finite())
            .filter_map(|point| {
                point.interval.map(|(low, high)| (x.place(point.x), y.place(low), y.place(high)))
            })
            .collect();
        let above = known.iter().map(|(x, _, high)| Place { x: *x, y: *high });
        let below = known.iter().rev().map(|(x, low, _)| Place { x: *x, y: *low });
        let places: Vec<Place> = above.chain(below).collect();
        if !places.is_empty() {
            let ribbon = drawing.element("polygon").points(&places).paint("fill", paint);
            ribbon.word("fill-opacity", "0.18").end();
        }
    }

    fn tip(&self, point: &LinePoint, (x, y): (&Measure, &Measure)) -> String {
        let load = match point.x {
            f64::INFINITY => UNLIMITED.to_owned(),
            limited => x.show(limited),
        };
        fmt::joined(&[
            self.name.clone(),
            format!("{} {load}", x.label),
            format!("{}{}", y.show(point.y), fmt::confidence(point.interval)),
            point.note.clone().unwrap_or_default(),
        ])
    }
}
