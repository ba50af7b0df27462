//! Panels above each other over the same axis: something against load, or over time. Each line has its
//! name at its end, or in a legend where a page may be narrow.

use super::axis::{Axis, BELOW, INSET, draw_base, draw_tick};
use super::canvas::{
    Anchor, Area, Canvas, Entry, Fill, HEADING, LABEL, Look, MARGIN, NAME, Point, RIGHT, Swatch,
    distinct, xy,
};
use super::palette::Paint;
use super::{
    Drawing, INTERVAL, LinePoint, LineSeries, Lines, LinesPanel, Measure, Panel, Series, Timeline,
    TimelinePanel, TimelineSeries, interval_cell, noted_cell, number_cell, sorted, titled,
};
use crate::document::{Cell, Columns, Table, plain};
use crate::fmt;

/// What an infinite load is called.
const UNLIMITED: &str = "unlimited";
pub(super) const TIME_LABEL: &str = "time since the run began (s)";
/// From the end of the scale to the place of what has no limit.
const TO_UNLIMITED: f64 = 72.0;
const NAME_WIDTH_MAX: f64 = 210.0;
const NAME_HEIGHT: f64 = 17.0;
/// Between a plot and the names right of it, with their swatches.
const BEFORE_NAME: f64 = 34.0;
const GAP_FILL: Fill = Fill { strength: 0.55, ..Fill::solid(Paint::Grid) };

/// Where a line ends: its name, its look and its last point.
type LineEnd<'a> = (&'a str, Look, Point);

/// What the panels of a chart share.
struct Frame<'a> {
    names: Vec<&'a str>,
    /// Whether names stand at the ends of their lines.
    has_names_at_ends: bool,
    height: f64,
    /// Between which panels lie.
    sides: (f64, f64),
}

impl<'a> Frame<'a> {
    /// Draws a legend unless the names can stand at the ends of their lines. A page has a legend always:
    /// where it is narrow, its right end is out of sight, and names would take a quarter of what is left.
    fn new<T>(canvas: &mut Canvas, panels: &'a [Panel<T>], left: &[Axis], height: f64) -> Self {
        let names = distinct(all_series(panels).map(|(_, series)| series.name.as_str()));
        // What is alone needs no name: the title has it.
        let are_named = 1 < names.len();
        let has_room = names.len() as f64 * NAME_HEIGHT <= height;
        let has_names_at_ends = are_named && has_room && !canvas.is_within_page();
        if are_named && !has_names_at_ends {
            canvas.series_legend(&names, Swatch::Line);
        }
        let labels = left.iter().map(Axis::label_width).fold(0.0, f64::max);
        let widest = if has_names_at_ends { NAME.widest(names.iter().copied()) } else { 0.0 };
        let name_room = if widest == 0.0 { 12.0 } else { BEFORE_NAME + widest.min(NAME_WIDTH_MAX) };
        let sides = (MARGIN + labels, RIGHT - name_room);
        Self { names, has_names_at_ends, height, sides }
    }

    /// The area of the next panel, below its heading.
    fn panel<T>(&self, canvas: &mut Canvas, panel: &Panel<T>) -> Area {
        let (heading, y) = (panel.heading.as_str(), &panel.y);
        canvas.top += HEADING.size;
        let at = xy(MARGIN, canvas.top);
        let room = RIGHT - MARGIN;
        let short = HEADING.shortened(heading, 0.6 * room);
        // A measure that is named like its panel adds no more than its unit.
        let is_same = y.label.eq_ignore_ascii_case(heading);
        let unit = if is_same { y.unit.clone() } else { y.title() };
        if heading.is_empty() {
            canvas.text(at, LABEL.anchored(Anchor::Start), &LABEL.shortened(&unit, room));
        } else if unit.is_empty() {
            canvas.titled_text(at, HEADING, &short, heading);
        } else {
            let room = room - HEADING.width(&short) - 20.0;
            canvas.heading(at, &short, &LABEL.shortened(&unit, room));
        }
        canvas.top += 12.0;
        canvas.area(self.sides, self.height)
    }

    /// Names right of their lines, pushed apart; a thin line leads to one that is not beside its end.
    fn draw_names(&self, canvas: &mut Canvas, area: Area, mut ends: Vec<LineEnd<'_>>) {
        if !self.has_names_at_ends {
            return;
        }
        ends.retain(|(name, _, _)| !name.is_empty());
        ends.sort_by(|one, other| one.2.y.total_cmp(&other.2.y));
        let wanted: Vec<f64> = ends.iter().map(|(_, _, at)| at.y).collect();
        let places = apart(&wanted, NAME_HEIGHT, (area.top, area.bottom));
        for ((name, look, end), y) in ends.into_iter().zip(places) {
            canvas.series(name, |canvas| {
                let x = area.right + BEFORE_NAME - 24.0;
                let swatch = xy(x - 2.0, y);
                if 14.0 < x - end.x - INSET || 5.0 < (y - end.y).abs() {
                    let line = canvas.stroke(end, swatch, look.paint());
                    line.set("stroke-dasharray", "1 3").end();
                }
                Swatch::Mark(look).draw(canvas, swatch);
                canvas.fitted_text(xy(x + 18.0, y + 4.5), NAME, name, NAME_WIDTH_MAX);
            });
        }
    }
}

/// Every series with its panel.
fn all_series<T>(panels: &[Panel<T>]) -> impl Iterator<Item = (&Panel<T>, &Series<T>)> {
    panels.iter().flat_map(|panel| panel.series.iter().map(move |series| (panel, series)))
}

/// Sorted places pushed apart until each has `room`, as near to where they want to be as that
/// allows, and none of them outside `within` as long as there is room for all.
fn apart(wanted: &[f64], room: f64, within: (f64, f64)) -> Vec<f64> {
    // Without their room, places that overlap are the same place: the mean of what they want.
    let mut heaps: Vec<(f64, f64)> = Vec::new();
    for (index, at) in wanted.iter().enumerate() {
        let (mut sum, mut count) = (at - index as f64 * room, 1.0);
        while let Some(before) = heaps.pop_if(|before| sum / count < before.0 / before.1) {
            sum += before.0;
            count += before.1;
        }
        heaps.push((sum, count));
    }
    let highest = within.1 - room * (wanted.len() as f64 - 1.0);
    let places = heaps.into_iter().flat_map(|(sum, count)| {
        let at = (sum / count).min(highest).max(within.0);
        std::iter::successors(Some(1.0), |n| Some(n + 1.0))
            .take_while(move |n| *n <= count)
            .map(move |_| at)
    });
    places.enumerate().map(|(index, at)| at + index as f64 * room).collect()
}

/// The axis of load, with a place of its own for a load without a limit.
struct LoadAxis {
    /// Without labels where every load is without a limit.
    axis: Axis,
    unlimited: Option<f64>,
}

impl LoadAxis {
    fn new(lines: &Lines, (left, right): (f64, f64)) -> Self {
        /// So that the word below that place stays below the plot.
        const UNLIMITED_INSET: f64 = 26.0;
        let loads = || lines.panels.iter().flat_map(LinesPanel::points).map(|point| point.x);
        let finite: Vec<f64> = loads().filter(|x| x.is_finite()).collect();
        let axis = if finite.is_empty() {
            Axis::new(lines.x.scale, (0.0, 1.0), Vec::new())
        } else if lines.ticks_at_points {
            Axis::at_values(lines.x.scale, &finite)
        } else {
            Axis::up_to(lines.x.scale, &finite)
        };
        let is_bare = axis.named.is_empty();
        let alone = if is_bare { f64::midpoint(left, right) } else { right - UNLIMITED_INSET };
        let unlimited = loads().any(|x| x == f64::INFINITY).then_some(alone);
        let end = unlimited.map_or(right - INSET, |unlimited| unlimited - TO_UNLIMITED);
        Self { axis: axis.across((left + INSET, end)), unlimited }
    }

    fn draw(&self, canvas: &mut Canvas, area: Area, title: &str) {
        self.axis.draw_below(canvas, area, title);
        let Some(unlimited) = self.unlimited else { return };
        draw_tick(canvas, unlimited, area, UNLIMITED);
        if self.axis.named.is_empty() {
            return;
        }
        // Two strokes through the axis: what lies right of them is not to scale.
        let (x, y) = (unlimited - TO_UNLIMITED / 2.0, area.bottom);
        let gap = canvas.stroke(xy(x - 3.0, y), xy(x + 3.0, y), Paint::Surface);
        gap.set("stroke-width", "3").end();
        for x in [x - 3.0, x + 3.0] {
            canvas.stroke(xy(x - 3.0, y + 5.0), xy(x + 3.0, y - 5.0), Paint::Frame).end();
        }
    }

    fn place(&self, load: f64) -> f64 {
        self.unlimited.filter(|_| !load.is_finite()).unwrap_or_else(|| self.axis.place(load))
    }
}

impl Drawing for Lines {
    fn draw(&self, canvas: &mut Canvas) {
        if self.panels.iter().flat_map(LinesPanel::points).next().is_none() {
            return canvas.nothing("No level was measured.");
        }
        let height = match self.panels.len() {
            0 | 1 => 300.0,
            2 => 200.0,
            _ => 160.0,
        };
        let left: Vec<Axis> = self.panels.iter().map(LinesPanel::axis).collect();
        let frame = Frame::new(canvas, &self.panels, &left, height);
        let x = LoadAxis::new(self, frame.sides);
        for (index, (panel, y)) in self.panels.iter().zip(left).enumerate() {
            let area = frame.panel(canvas, panel);
            let y = y.upwards(area, INSET);
            y.draw_left(canvas, area);
            if index + 1 == self.panels.len() {
                x.draw(canvas, area, &self.x.title());
                canvas.top += BELOW;
            } else {
                draw_base(canvas, area);
                canvas.top += 26.0;
            }
            let mut ends = Vec::new();
            for series in &panel.series {
                let Some(last) = series.known().last() else { continue };
                let look = Look::in_panel(&series.name, &frame.names, panel.series.len());
                canvas.series(&series.name, |canvas| {
                    series.draw(canvas, look, (&x, &y), (&self.x, &panel.y));
                });
                ends.push((series.name.as_str(), look, xy(x.place(last.x), y.place(last.y))));
            }
            frame.draw_names(canvas, area, ends);
        }
    }

    /// A row for each measured place, a column for each line.
    fn table(&self) -> Table {
        let series = || all_series(&self.panels).filter(|(_, series)| !series.points.is_empty());
        let load = |x: &f64| match *x {
            f64::INFINITY => Cell::text(UNLIMITED),
            x => number_cell(x),
        };
        let mut columns = Columns::number(self.x.title(), load);
        for (panel, series) in series() {
            let find = move |x: &f64| {
                series.points.iter().find(|point: &&LinePoint| point.x.total_cmp(x).is_eq())
            };
            let name = fmt::joined(&[&panel.heading, &series.name]);
            let has_intervals = series.points.iter().any(|point| point.interval.is_some());
            columns = columns
                .right(titled(&name, &panel.y.unit), move |x| match find(x) {
                    Some(point) => noted_cell(point.y, point.hollow, point.note.as_ref()),
                    None => number_cell(None),
                })
                .right(INTERVAL, move |x| interval_cell(find(x).and_then(|it| it.interval)))
                .only_if(has_intervals);
        }
        let loads = sorted(series().flat_map(|(_, series)| &series.points).map(|point| point.x));
        columns.table("", "", loads)
    }
}

impl LinesPanel {
    fn points(&self) -> impl Iterator<Item = &LinePoint> {
        self.series.iter().flat_map(LineSeries::known)
    }

    fn axis(&self) -> Axis {
        let values: Vec<f64> =
            self.points().flat_map(|point| with_ends(point.y, point.interval)).collect();
        Axis::round(self.y.scale, &values)
    }
}

/// A value with the ends of its interval.
pub(super) fn with_ends(value: f64, interval: Option<(f64, f64)>) -> impl Iterator<Item = f64> {
    [value].into_iter().chain(interval.into_iter().flat_map(|(low, high)| [low, high]))
}

impl LineSeries {
    /// Numbers that have a place.
    fn known(&self) -> impl Iterator<Item = &LinePoint> {
        let has_place = |x: f64| x.is_finite() || x == f64::INFINITY;
        self.points.iter().filter(move |point| has_place(point.x) && point.y.is_finite())
    }

    fn draw(
        &self,
        canvas: &mut Canvas,
        look: Look,
        (x, y): (&LoadAxis, &Axis),
        measures: (&Measure, &Measure),
    ) {
        /// More points than these have their intervals as a ribbon.
        const BARS_MAX: usize = 16;
        let place = |point: &LinePoint| xy(x.place(point.x), y.place(point.y));
        let is_ribbon = BARS_MAX < self.points.len();
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for point in self.known() {
            let Some((low, high)) = point.interval else { continue };
            let [low, high] = [low, high].map(|end| xy(x.place(point.x), y.place(end)));
            if !is_ribbon {
                canvas.interval(low, high, look.paint());
            } else if point.x.is_finite() {
                above.push(high);
                below.insert(0, low);
            }
        }
        if !above.is_empty() {
            let ribbon = canvas.path("polygon", &[above, below].concat());
            ribbon.paint("fill", look.paint()).set("fill-opacity", "0.18").end();
        }
        // The line only leads on to a point without a limit: it is not to scale.
        let (limited, unlimited): (Vec<&LinePoint>, Vec<&LinePoint>) =
            self.known().partition(|point| point.x.is_finite());
        let points: Vec<Point> = limited.into_iter().map(place).collect();
        look.draw_line(canvas, &points);
        if let (Some(last), Some(point)) = (points.last(), unlimited.first()) {
            let lead = canvas.stroke(*last, place(point), look.paint());
            lead.set("stroke-dasharray", "1 4").end();
        }
        for point in self.known() {
            look.draw_mark(canvas, place(point), point.hollow, &self.tip(point, measures));
        }
    }

    fn tip(&self, point: &LinePoint, (x, y): (&Measure, &Measure)) -> String {
        let load = if point.x.is_finite() { x.show(point.x) } else { UNLIMITED.to_owned() };
        fmt::joined(&[
            &self.name,
            &format!("{} {load}", x.label),
            &y.show_interval(point.y, point.interval),
            point.note.as_deref().unwrap_or_default(),
        ])
    }
}

impl Drawing for Timeline {
    fn draw(&self, canvas: &mut Canvas) {
        let steps = self.steps();
        if steps == 0
            || !all_series(&self.panels).any(|(_, series)| series.known().next().is_some())
        {
            return canvas.nothing("Nothing is known about this time.");
        }
        if self.panels.iter().any(|panel| !panel.gaps().is_empty()) {
            canvas.legend(vec![Entry::key("shaded: not known", GAP_FILL)]);
        }
        let height = if self.panels.len() < 2 { 220.0 } else { 130.0 };
        let left: Vec<Axis> = self.panels.iter().map(TimelinePanel::axis).collect();
        let frame = Frame::new(canvas, &self.panels, &left, height);
        let x = Axis::of_time(self.from_s, self.begin(steps)).across(frame.sides);
        let (top, mut bottom) = (canvas.top, canvas.top);
        for (index, (panel, y)) in self.panels.iter().zip(left).enumerate() {
            let area = frame.panel(canvas, panel);
            let y = y.upwards(area, 0.0);
            // Where nothing is known there is no line, and the ground is shaded.
            for (first, last) in panel.gaps() {
                let sides = (x.place(self.begin(first)), x.place(self.begin(last + 1)));
                let shade = canvas.rectangle(Area::new(sides, (area.top, area.bottom)));
                let shade = shade.set("class", "gap").paint("fill", GAP_FILL.paint);
                shade.set("fill-opacity", &format!("{:.2}", GAP_FILL.strength)).end();
            }
            y.draw_left(canvas, area);
            if index + 1 == self.panels.len() {
                x.draw_below(canvas, area, TIME_LABEL);
                canvas.top += BELOW;
            } else {
                draw_base(canvas, area);
                canvas.top += 22.0;
            }
            let ends = self.draw_series(canvas, panel, &frame.names, (&x, &y, area.bottom));
            frame.draw_names(canvas, area, ends);
            bottom = area.bottom;
        }
        // Over all else, so that nothing is between a pointer and a moment.
        self.draw_bands(canvas, &x, (top, bottom));
    }

    /// A row for each step, or for every so many where there are many.
    fn table(&self) -> Table {
        const STEPS_MAX: usize = 60;
        let steps = self.steps();
        let stride = steps.div_ceil(STEPS_MAX).max(1);
        let mut columns =
            Columns::number("Time (s)", |step: &usize| number_cell(self.moment(*step)));
        for (panel, series) in all_series(&self.panels) {
            let name = fmt::joined(&[&panel.heading, &series.name]);
            columns =
                columns.right(titled(&name, &panel.y.unit), |step| number_cell(series.at(*step)));
        }
        let mut table = columns.table("", "", (0..steps).step_by(stride));
        if 1 < stride {
            let steps = fmt::count(steps as u64);
            let note = format!("One row for every {stride} of the {steps} steps of the chart.");
            table.notes.push(plain(note));
        }
        table
    }
}

impl Timeline {
    fn steps(&self) -> usize {
        all_series(&self.panels).map(|(_, series)| series.points.len()).max().unwrap_or_default()
    }

    /// When a step begins.
    fn begin(&self, step: usize) -> f64 {
        self.from_s + step as f64 * self.step_s
    }

    /// The middle of a step.
    fn moment(&self, step: usize) -> f64 {
        self.from_s + (step as f64 + 0.5) * self.step_s
    }

    fn draw_series<'a>(
        &self,
        canvas: &mut Canvas,
        panel: &'a TimelinePanel,
        names: &[&str],
        (x, y, bottom): (&Axis, &Axis, f64),
    ) -> Vec<LineEnd<'a>> {
        let mut ends = Vec::new();
        let place = |(step, value): (usize, f64)| xy(x.place(self.moment(step)), y.place(value));
        for series in &panel.series {
            let look = Look::in_panel(&series.name, names, panel.series.len());
            canvas.series(&series.name, |canvas| {
                for stretch in series.stretches() {
                    let points: Vec<Point> = stretch.into_iter().map(place).collect();
                    match points[..] {
                        // A line needs two ends.
                        [alone] => canvas.circle(alone, 3.0).paint("fill", look.paint()).end(),
                        [first, .., last] => {
                            if panel.series.len() == 1 {
                                let ground = [xy(last.x, bottom), xy(first.x, bottom)];
                                let fill = canvas.path("polygon", &[&points[..], &ground].concat());
                                fill.paint("fill", look.paint()).set("fill-opacity", "0.12").end();
                            }
                            look.draw_line(canvas, &points);
                        }
                        [] => {}
                    }
                }
            });
            ends.extend(series.known().last().map(|last| (&*series.name, look, place(last))));
        }
        ends
    }

    /// One mark for each step through all panels, so that a pointer reads all values of a moment.
    fn draw_bands(&self, canvas: &mut Canvas, x: &Axis, vertical: (f64, f64)) {
        /// More marks to point at than these would be narrower than a pointer.
        const BANDS_MAX: usize = 240;
        let steps = self.steps();
        let stride = steps.div_ceil(BANDS_MAX).max(1);
        for step in (0..steps).step_by(stride) {
            let mut parts = vec![fmt::seconds(self.moment(step))];
            parts.extend(all_series(&self.panels).map(|(panel, series)| {
                let value = series.points.get(step).copied().flatten();
                let value = value.map_or_else(|| fmt::NOTHING.to_owned(), |it| panel.y.show(it));
                format!("{}: {value}", series.name)
            }));
            let sides = (x.place(self.begin(step)), x.place(self.begin(step + stride)));
            let band = canvas.rectangle(Area::new(sides, vertical)).unseen();
            band.tip(&parts.join(" · ")).end();
        }
    }
}

impl TimelinePanel {
    fn axis(&self) -> Axis {
        let known = self.series.iter().flat_map(TimelineSeries::known);
        let values: Vec<f64> = known.map(|(_, value)| value).collect();
        Axis::round(self.y.scale, &values)
    }

    /// First and last steps of the times where some series has no value.
    fn gaps(&self) -> Vec<(usize, usize)> {
        // Values that stand alone have steps between them in which nobody looked.
        let is_rare = |series: &&TimelineSeries| {
            let stretches = series.stretches();
            let alone = stretches.iter().filter(|stretch| stretch.len() == 1).count();
            1 < stretches.len() && stretches.len() < 2 * alone
        };
        let steps = self.series.iter().map(|series| series.points.len()).max().unwrap_or_default();
        let whole: Vec<&TimelineSeries> = self.series.iter().filter(|it| !is_rare(it)).collect();
        let mut gaps: Vec<(usize, usize)> = Vec::new();
        for step in (0..steps).filter(|step| whole.iter().any(|it| it.at(*step).is_none())) {
            match gaps.last_mut() {
                Some((_, last)) if *last + 1 == step => *last = step,
                _ => gaps.push((step, step)),
            }
        }
        gaps
    }
}

impl TimelineSeries {
    fn at(&self, step: usize) -> Option<f64> {
        self.points.get(step).copied().flatten().filter(|value| value.is_finite())
    }

    fn known(&self) -> impl Iterator<Item = (usize, f64)> {
        (0..self.points.len()).filter_map(|step| Some((step, self.at(step)?)))
    }

    /// Steps with values, divided where some are missing.
    fn stretches(&self) -> Vec<Vec<(usize, f64)>> {
        let known: Vec<(usize, f64)> = self.known().collect();
        known.chunk_by(|one, next| one.0 + 1 == next.0).map(<[_]>::to_vec).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_overlap_are_pushed_apart() {
        assert_eq!(apart(&[10.0, 100.0], 16.0, (0.0, 300.0)), [10.0, 100.0]);
        assert_eq!(apart(&[98.0, 100.0, 105.0], 16.0, (0.0, 300.0)), [85.0, 101.0, 117.0]);
        assert_eq!(apart(&[305.0, 310.0], 16.0, (0.0, 300.0)), [284.0, 300.0]);
        assert_eq!(apart(&[1.0, 2.0], 16.0, (0.0, 300.0)), [0.0, 16.0]);
        assert_eq!(apart(&[], 16.0, (0.0, 300.0)), Vec::<f64>::new());
    }
}
