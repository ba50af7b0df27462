//! Charts between two axes: lines against load or over time in panels above each other, distributions,
//! counts over time and value, and pairs of goals.

use std::fmt::Write;

use inferometer_model::whole::to_u64;

use super::canvas::{
    Anchor, Area, Axis, BELOW, Canvas, Entry, Fill, HEADING, INSET, LABEL, Look, MARGIN, NAME,
    Paint, Point, RADIUS, Swatch, TICK, draw_base, draw_tick, pixels, xy,
};
use super::{
    Curve, Distribution, Drawing, HeatMap, Histogram, HistogramPanel, INTERVAL, LinePoint,
    LineSeries, Lines, LinesPanel, Measure, Panel, Pareto, ParetoPoint, ScaleKind, Series,
    Timeline, TimelinePanel, TimelineSeries, interval_cell, noted_cell, number_cell, sorted,
    titled,
};
use crate::document::{Cell, Columns, Table, distinct, plain};
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
        let sides = (MARGIN + labels, canvas.right() - name_room);
        Self { names, has_names_at_ends, height, sides }
    }

    /// The area of the next panel, below its heading.
    fn panel<T>(&self, canvas: &mut Canvas, panel: &Panel<T>) -> Area {
        let (heading, y) = (panel.heading.as_str(), &panel.y);
        canvas.top += HEADING.size;
        // A measure that is named like its panel adds no more than its unit.
        let is_same = y.label.eq_ignore_ascii_case(heading);
        let unit = if is_same { y.unit.clone() } else { y.title() };
        canvas.heading(xy(MARGIN, canvas.top), heading, &unit);
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
        } else if lines.x.scale == ScaleKind::Log {
            Axis::round(ScaleKind::Log, &finite)
        } else {
            Axis::between(0.0, finite.iter().copied().fold(0.0, f64::max))
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
            let y = y.upwards(area);
            canvas.open_panel(area, Some(&x.axis).filter(|_| x.unlimited.is_none()), &y);
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
            panel.draw_limits(canvas, area, &y);
            canvas.close_group();
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

    /// A threshold far above all values would press them together: it is not drawn.
    fn axis(&self) -> Axis {
        let mut values: Vec<f64> =
            self.points().flat_map(|point| with_ends(point.y, point.interval)).collect();
        let highest = values.iter().copied().fold(0.0, f64::max);
        let limits = self.limits.iter().map(|limit| limit.value);
        values.extend(limits.filter(|limit| *limit <= LIMIT_MOST * highest));
        Axis::round(self.y.scale, &values)
    }

    /// A line with its name for each threshold that the axis has.
    fn draw_limits(&self, canvas: &mut Canvas, area: Area, y: &Axis) {
        for limit in self.limits.iter().filter(|limit| y.holds(limit.value)) {
            let at = y.place(limit.value);
            canvas.element("g").set("class", "limit").open();
            let line = canvas.stroke(xy(area.left, at), xy(area.right, at), Paint::Bad);
            line.set("stroke-dasharray", "6 4").end();
            let letters = TICK.anchored(Anchor::Start).painted(Paint::Bad);
            canvas.fitted_text(xy(area.left + 4.0, at - 5.0), letters, &limit.name, 300.0);
            canvas.close_group();
        }
    }
}

/// The highest threshold that is drawn, as a multiple of the highest value.
const LIMIT_MOST: f64 = 3.0;

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
        let load = format!("{} {}", fmt::compact(point.x), x.unit);
        let load = if point.x.is_finite() { load.trim_end() } else { UNLIMITED };
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
            let y = y.upwards(area);
            canvas.open_panel(area, Some(&x), &y);
            // Where nothing is known there is no line, and the ground is shaded.
            for (first, last) in panel.gaps() {
                let sides = (x.place(self.begin(first)), x.place(self.begin(last + 1)));
                let shade = canvas.rectangle(Area::new(sides, (area.top, area.bottom)));
                let shade = shade.set("class", "gap").paint("fill", GAP_FILL.paint);
                shade.set("fill-opacity", &fmt::fixed(GAP_FILL.strength, 2)).end();
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
            canvas.close_group();
            frame.draw_names(canvas, area, ends);
            bottom = area.bottom;
        }
        // Above everything else, so that a pointer reaches every step.
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
        canvas.element("g").set("class", "bands").open();
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
        canvas.close_group();
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
        // Values that stand alone have steps between them without an observation.
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

/// Reserves the area of a chart below the title of its upright axis.
fn reserve_area(
    canvas: &mut Canvas,
    title: &str,
    left: &Axis,
    (before_edge, height): (f64, f64),
) -> Area {
    canvas.top += LABEL.size;
    canvas.text(xy(MARGIN, canvas.top), LABEL.anchored(Anchor::Start), title);
    canvas.top += 15.0;
    let area = canvas.area((MARGIN + left.label_width(), canvas.right() - before_edge), height);
    canvas.top += BELOW;
    area
}

/// Draws both axes with lines across the area.
fn draw_grid(canvas: &mut Canvas, area: Area, (x, y): (&Axis, &Axis), label: &str) {
    x.draw_upright_grid(canvas, area);
    y.draw_left(canvas, area);
    x.draw_below(canvas, area, label);
}

/// Shares that people name.
const NAMED: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// Whether people name a share.
fn is_named(share: f64) -> bool {
    NAMED.into_iter().any(|known| (known - share).abs() < 1e-9)
}

impl Drawing for Distribution {
    /// Shares against values, with as much room for the slowest hundredth as for the rest.
    fn draw(&self, canvas: &mut Canvas) {
        let points: Vec<(f64, f64)> = self.curves.iter().flat_map(Curve::known).collect();
        if points.is_empty() {
            return canvas.nothing("No values were measured.");
        }
        self.draw_legend(canvas);
        let (shares, values): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let y = Axis::percentiles(&shares);
        let area = reserve_area(canvas, "share of values at or below", &y, (16.0, 310.0));
        let x = self.axis(&values).across((area.left, area.right));
        let y = y.upwards(area);
        canvas.open_panel(area, Some(&x), &y);
        draw_grid(canvas, area, (&x, &y), &self.x.title());
        for (index, curve) in self.curves.iter().enumerate() {
            canvas.series(&curve.name, |canvas| {
                curve.draw(canvas, Look::new(index), (&x, &y), &self.x);
            });
        }
        canvas.close_group();
    }

    /// A row for each share, a column for each curve.
    fn table(&self) -> Table {
        /// So many shares are all shown; of more, those that people name.
        const SHARES_MAX: usize = 16;
        let known = |curve| Curve::known(curve).map(|(share, _)| share);
        let mut shares = sorted(self.curves.iter().flat_map(known));
        if SHARES_MAX < shares.len() {
            shares.retain(|share| is_named(*share) || 1.0 <= *share);
        }
        let mut columns = Columns::new("Percentile", |share: &f64| Cell {
            number: Some(*share),
            ..Cell::text(fmt::percentile_name(*share))
        });
        for curve in &self.curves {
            let name = format!("{}, n = {}", curve.name, fmt::count(curve.n));
            columns = columns.right(titled(&name, &self.x.unit), move |share| {
                let same = curve.known().find(|point| (point.0 - share).abs() < 1e-12);
                number_cell(same.map(|(_, value)| value))
            });
        }
        columns.table("", "", shares)
    }
}

impl Distribution {
    /// Values close to each other have the axis to themselves: between round values they would be
    /// one upright line.
    fn axis(&self, values: &[f64]) -> Axis {
        const CLOSE: f64 = 2.0;
        const MARGIN_SHARE: f64 = 0.02;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if CLOSE * low < high {
            return Axis::round(self.x.scale, values);
        }
        let ends = [low * (1.0 - MARGIN_SHARE), high * (1.0 + MARGIN_SHARE)];
        Axis::within(self.x.scale, &ends)
    }

    fn draw_legend(&self, canvas: &mut Canvas) {
        // One that is alone is named by the title, and what is the same for all by the line below.
        let [first, _, ..] = self.curves.as_slice() else { return };
        let same_n = self.curves.iter().all(|curve| curve.n == first.n);
        let entry = |(index, curve): (usize, &Curve)| {
            let mut entry = Entry::series(curve.name.as_str(), Swatch::Line(Look::new(index)));
            if !same_n {
                let _ = write!(entry.name, " (n = {})", fmt::count(curve.n));
            }
            entry
        };
        canvas.legend(self.curves.iter().enumerate().map(entry).collect());
    }
}

impl Curve {
    /// Numbers that have a place.
    fn known(&self) -> impl Iterator<Item = (f64, f64)> {
        let is_known = |point: &&(f64, f64)| (0.0..=1.0).contains(&point.0) && point.1.is_finite();
        self.points.iter().filter(is_known).copied()
    }

    fn draw(&self, canvas: &mut Canvas, look: Look, (x, y): (&Axis, &Axis), measure: &Measure) {
        /// So few points are all marked.
        const MARKED_MAX: usize = 10;
        let place = |(share, value): (f64, f64)| xy(x.place(value), y.place(share));
        let points: Vec<Point> = self.known().map(place).collect();
        look.draw_line(canvas, &points);
        for ((share, value), at) in self.known().zip(&points) {
            let tip =
                fmt::joined(&[&self.name, &fmt::percentile_name(share), &measure.show(value)]);
            if is_named(share) || points.len() <= MARKED_MAX {
                look.draw_mark(canvas, *at, false, &tip);
            } else {
                canvas.circle(*at, RADIUS).unseen().tip(&tip).end();
            }
        }
    }
}

/// Colours of a heat map.
const LEVELS: usize = 6;

impl Drawing for HeatMap {
    /// Counts as colours of a few steps. A cell without counts stays empty.
    fn draw(&self, canvas: &mut Canvas) {
        let most = self.columns.iter().flatten().copied().max().unwrap_or_default();
        if most == 0 || self.edges.len() < 2 {
            return canvas.nothing(&format!("No {} were counted.", self.counted));
        }
        let bounds = level_bounds(most);
        self.draw_legend(canvas, &bounds);
        // From the lowest to the highest edge of a row that has counts.
        let used = self.used_rows().into_iter();
        let edges: Vec<f64> = used.flat_map(|row| [self.edges[row], self.edges[row + 1]]).collect();
        let y = Axis::within(self.y.scale, &edges);
        let area = reserve_area(canvas, &self.y.title(), &y, (12.0, 280.0));
        let x = Axis::of_time(self.from_s, self.moment(self.columns.len()));
        let (x, y) = (x.across((area.left, area.right)), y.across((area.bottom, area.top)));
        y.draw_left(canvas, area);
        for level in 0..bounds.len() {
            self.draw_level(canvas, (level, &bounds), (&x, &y));
        }
        // After the cells, which touch it.
        x.draw_below(canvas, area, TIME_LABEL);
    }

    /// Over all time, because a row for each cell would be longer than any page.
    fn table(&self) -> Table {
        let unit = &self.y.unit;
        let table =
            Columns::number(titled("From", unit), |row: &usize| number_cell(self.edges[*row]))
                .right(titled("To", unit), |row| number_cell(self.edges[row + 1]))
                .right(self.counted.as_str(), |row| Cell::count(self.row_count(*row)))
                .table("", "", self.used_rows());
        Table { notes: vec![plain("Counted over the whole time of the chart.")], ..table }
    }
}

impl HeatMap {
    /// When a column begins.
    fn moment(&self, column: usize) -> f64 {
        self.from_s + column as f64 * self.step_s
    }

    fn used_rows(&self) -> Vec<usize> {
        let rows = 0..self.edges.len().saturating_sub(1);
        rows.filter(|row| 0 < self.row_count(*row)).collect()
    }

    /// Over all time.
    fn row_count(&self, row: usize) -> u64 {
        self.columns.iter().filter_map(|column| column.get(row)).sum()
    }

    fn draw_legend(&self, canvas: &mut Canvas, bounds: &[u64]) {
        let entry = |(level, last): (usize, &u64)| {
            let first = level.checked_sub(1).map_or(1, |before| bounds[before] + 1);
            let mut name = fmt::count(first);
            if first != *last {
                let _ = write!(name, " to {}", fmt::count(*last));
            }
            // The first range says what is counted.
            if level == 0 {
                let _ = write!(name, " {}", self.counted);
            }
            Entry::key(name, Fill::solid(heat(level, bounds.len())))
        };
        canvas.legend(bounds.iter().enumerate().map(entry).collect());
    }

    fn draw_level(
        &self,
        canvas: &mut Canvas,
        (level, bounds): (usize, &[u64]),
        (x, y): (&Axis, &Axis),
    ) {
        let paint = heat(level, bounds.len());
        let group = canvas.element("g").set("class", "heat").paint("fill", paint);
        group.set("shape-rendering", "crispEdges").open();
        for (index, column) in self.columns.iter().enumerate() {
            let (from, to) = (self.moment(index), self.moment(index + 1));
            for (edges, count) in self.edges.windows(2).zip(column) {
                if count_level(*count, bounds) != Some(level) {
                    continue;
                }
                let tip = fmt::joined(&[
                    &format!("{} to {}", fmt::compact(from), fmt::seconds(to)),
                    &self.y.show_range(edges[0], edges[1]),
                    &format!("{} {}", fmt::count(*count), self.counted),
                ]);
                let [left, right] = [from, to].map(|moment| pixels(x.place(moment)));
                let [bottom, top] = [edges[0], edges[1]].map(|edge| pixels(y.place(edge)));
                // A page has thousands of these, and this is the shortest way to say a rectangle.
                let path = format!("M{left} {top}H{right}V{bottom}H{left}Z");
                canvas.element("path").set("d", &path).tip(&tip).end();
            }
        }
        canvas.close_group();
    }
}

/// The highest count of each level: one for each count where there are few, else of equal ratios.
fn level_bounds(most: u64) -> Vec<u64> {
    let mut bounds: Vec<u64> = Vec::new();
    for level in 1..=LEVELS {
        let next = bounds.last().map_or(1, |last| last + 1);
        let share = level as f64 / LEVELS as f64;
        let ratio = to_u64(libm::pow(most as f64, share).round());
        let bound = if level == LEVELS { most } else { ratio.max(next) };
        if next <= most {
            bounds.push(bound.min(most));
        }
    }
    bounds
}

fn count_level(count: u64, bounds: &[u64]) -> Option<usize> {
    if count == 0 { None } else { bounds.iter().position(|bound| count <= *bound) }
}

/// The colour of a level; few levels are spread over all colours.
const fn heat(level: usize, levels: usize) -> Paint {
    Paint::Heat(if levels < 2 { LEVELS / 2 } else { level * (LEVELS - 1) / (levels - 1) })
}

impl Drawing for Histogram {
    /// Bars as high as the share of values in their step.
    fn draw(&self, canvas: &mut Canvas) {
        if self.panels.is_empty() {
            return canvas.nothing("No values were measured.");
        }
        for panel in &self.panels {
            panel.draw(canvas);
        }
    }

    fn table(&self) -> Table {
        type Row<'a> = (&'a HistogramPanel, usize);
        let rows = self.panels.iter().flat_map(|panel| {
            let used = (0..panel.counts.len()).filter(|step| 0 < panel.counts[*step]);
            used.map(move |step| (panel, step))
        });
        Columns::new("Metric", |(panel, _): &Row<'_>| Cell::text(panel.x.label.as_str()))
            .right("From (ms)", |(panel, step)| number_cell(panel.edges[*step]))
            .right("To (ms)", |(panel, step)| number_cell(panel.edges[step + 1]))
            .right("Values", |(panel, step)| Cell::count(panel.counts[*step]))
            .table("", "", rows)
    }
}

impl HistogramPanel {
    fn draw(&self, canvas: &mut Canvas) {
        const HEIGHT: f64 = 120.0;
        let all = self.counts.iter().sum::<u64>().max(1) as f64;
        let percents: Vec<f64> =
            self.counts.iter().map(|count| 100.0 * *count as f64 / all).collect();
        let y = Axis::round(ScaleKind::Linear, &percents);
        let area = reserve_area(canvas, "share of values (%)", &y, (16.0, HEIGHT));
        let x = Axis::within(self.x.scale, &self.edges).across((area.left, area.right));
        let y = y.upwards(area);
        draw_grid(canvas, area, (&x, &y), &self.x.title());
        canvas.element("g").paint("fill", Paint::Series(0)).open();
        for (edges, (count, percent)) in self.edges.windows(2).zip(self.counts.iter().zip(percents))
        {
            if *count == 0 {
                continue;
            }
            let tip = fmt::joined(&[
                &self.x.show_range(edges[0], edges[1]),
                &format!("{} of values ({})", fmt::percent(percent / 100.0), fmt::count(*count)),
            ]);
            let [left, right] = [x.place(edges[0]), x.place(edges[1])];
            // A gap between bars, and a bar of a pixel for the rarest value.
            let [left, right] = [pixels(left), pixels((right - 1.0).max(left + 1.0))];
            let [bottom, top] = [area.bottom, y.place(percent).min(area.bottom - 1.0)].map(pixels);
            let path = format!("M{left} {top}H{right}V{bottom}H{left}Z");
            canvas.element("path").set("d", &path).tip(&tip).end();
        }
        canvas.close_group();
        canvas.top += 6.0;
    }
}

/// The widest name of a point.
const POINT_NAME_WIDTH_MAX: f64 = 160.0;

impl Drawing for Pareto {
    /// Each point with its name, and a line along those that nothing beats in both.
    fn draw(&self, canvas: &mut Canvas) {
        let is_known = |point: &&ParetoPoint| point.x.is_finite() && point.y.is_finite();
        let points: Vec<&ParetoPoint> = self.points.iter().filter(is_known).collect();
        if points.is_empty() {
            return canvas.nothing("No point was measured.");
        }
        let names = distinct(points.iter().map(|point| point.series.as_str()));
        if 1 < names.len() {
            canvas.series_legend(&names, Swatch::Mark);
        }
        let ys: Vec<f64> = points.iter().flat_map(|it| with_ends(it.y, it.y_interval)).collect();
        let xs: Vec<f64> = points.iter().flat_map(|it| with_ends(it.x, it.x_interval)).collect();
        let y = Axis::round(self.y.scale, &ys);
        let area = reserve_area(canvas, &self.y.title(), &y, (12.0, 340.0));
        let x = Axis::round(self.x.scale, &xs).across((area.left, area.right - INSET));
        let y = y.upwards(area);
        canvas.open_panel(area, Some(&x), &y);
        draw_grid(canvas, area, (&x, &y), &self.x.title());
        let frontier = frontier(&points, (&x, &y));
        if 1 < frontier.len() {
            let line = canvas.path("polyline", &frontier).set("class", "frontier");
            let line = line.set("fill", "none").paint("stroke", Paint::Frame);
            line.set("stroke-width", "1.5").set("stroke-dasharray", "5 4").end();
        }
        let labels = labels(&points, area, (&x, &y));
        for (index, name) in names.iter().enumerate() {
            canvas.series(name, |canvas| {
                for (point, label) in points.iter().zip(&labels) {
                    if point.series == *name {
                        self.draw_point(canvas, (point, Look::new(index)), (&x, &y), *label);
                    }
                }
            });
        }
        canvas.close_group();
    }

    fn table(&self) -> Table {
        let points = || self.points.iter();
        let noted =
            |point: &ParetoPoint, value: f64| noted_cell(value, point.hollow, point.note.as_ref());
        let table =
            Columns::new("Series", |point: &&ParetoPoint| Cell::text(point.series.as_str()))
                .left("Point", |point| Cell::text(point.label.as_str()))
                .right(self.x.title(), |point| noted(point, point.x))
                .right(INTERVAL, |point| interval_cell(point.x_interval))
                .only_if(points().any(|point| point.x_interval.is_some()))
                .right(self.y.title(), |point| noted(point, point.y))
                .right(INTERVAL, |point| interval_cell(point.y_interval))
                .only_if(points().any(|point| point.y_interval.is_some()))
                .left("Best", |point| Cell::text(if point.on_frontier { "yes" } else { "no" }))
                .table("", "", points());
        Table { notes: vec![plain("Best: no other point is better in both.")], ..table }
    }
}

impl Pareto {
    fn draw_point(
        &self,
        canvas: &mut Canvas,
        (point, look): (&ParetoPoint, Look),
        (x, y): (&Axis, &Axis),
        label: Option<(Point, Anchor)>,
    ) {
        let at = point.place((x, y));
        if let Some((low, high)) = point.x_interval {
            canvas.interval(xy(x.place(low), at.y), xy(x.place(high), at.y), look.paint());
        }
        if let Some((low, high)) = point.y_interval {
            canvas.interval(xy(at.x, y.place(low)), xy(at.x, y.place(high)), look.paint());
        }
        let tip = fmt::joined(&[
            &point.series,
            &point.label,
            &self.x.show_interval(point.x, point.x_interval),
            &self.y.show_interval(point.y, point.y_interval),
            if point.on_frontier { "no other is better in both" } else { "" },
            point.note.as_deref().unwrap_or_default(),
        ]);
        look.draw_mark(canvas, at, point.hollow, &tip);
        if let Some((place, anchor)) = label {
            let letters = TICK.painted(Paint::Ink).anchored(anchor);
            canvas.fitted_text(place, letters, &point.label, POINT_NAME_WIDTH_MAX);
        }
    }
}

impl ParetoPoint {
    fn place(&self, (x, y): (&Axis, &Axis)) -> Point {
        xy(x.place(self.x), y.place(self.y))
    }
}

/// The points that nothing beats, from left to right.
fn frontier(points: &[&ParetoPoint], axes: (&Axis, &Axis)) -> Vec<Point> {
    let best = points.iter().filter(|point| point.on_frontier);
    let mut places: Vec<Point> = best.map(|point| point.place(axes)).collect();
    places.sort_by(|one, other| one.x.total_cmp(&other.x).then(other.y.total_cmp(&one.y)));
    places
}

/// Where each name stands: beside, above or below its mark, where nothing else does and no other mark
/// is as near; on a line only where nothing else is free. One for which there is no room at all is left
/// out; its mark still says it.
fn labels(
    points: &[&ParetoPoint],
    area: Area,
    axes: (&Axis, &Axis),
) -> Vec<Option<(Point, Anchor)>> {
    let marks = points.iter().map(|point| around(point.place(axes), 6.0));
    let mut taken: Vec<Area> = marks.collect();
    let lines = obstructing_lines(points, axes);
    let bounds = Area { right: area.right + INSET, top: area.top - 12.0, ..area };
    let mut found = Vec::new();
    for point in points {
        let width = TICK.width(&TICK.shortened(&point.label, POINT_NAME_WIDTH_MAX));
        let mark = point.place(axes);
        let free = |obstacles: &[&[Area]]| {
            candidates(mark).into_iter().find(|(at, anchor)| {
                let own = text_area(*at, *anchor, width);
                let is_free = |other: &Area| !own.meets(*other);
                let mut others = points.iter().map(|other| other.place(axes));
                let is_nearest = others
                    .all(|other| other == mark || own.distance_to(mark) < own.distance_to(other));
                let is_within = own.is_within(bounds) && is_nearest;
                is_within && obstacles.iter().copied().flatten().all(is_free)
            })
        };
        let chosen = free(&[&taken, &lines]).or_else(|| free(&[&taken]));
        taken.extend(chosen.map(|(at, anchor)| text_area(at, anchor, width)));
        found.push(chosen);
    }
    found
}

const fn around(at: Point, reach: f64) -> Area {
    Area::new((at.x - reach, at.x + reach), (at.y - reach, at.y + reach))
}

/// Intervals, and the frontier in short pieces.
fn obstructing_lines(points: &[&ParetoPoint], (x, y): (&Axis, &Axis)) -> Vec<Area> {
    const PIECES: u32 = 60;
    let mut lines = Vec::new();
    for point in points {
        let at = around(point.place((x, y)), 3.0);
        lines.extend(point.x_interval.map(|(low, high)| Area {
            left: x.place(low),
            right: x.place(high),
            ..at
        }));
        lines.extend(point.y_interval.map(|(low, high)| Area {
            top: y.place(high),
            bottom: y.place(low),
            ..at
        }));
    }
    for pair in frontier(points, (x, y)).windows(2) {
        lines.extend((0..=PIECES).map(|piece| {
            let share = f64::from(piece) / f64::from(PIECES);
            let between = |one: f64, other: f64| one + share * (other - one);
            around(xy(between(pair[0].x, pair[1].x), between(pair[0].y, pair[1].y)), 1.0)
        }));
    }
    lines
}

/// Places for the name of a mark, the best first.
fn candidates(at: Point) -> [(Point, Anchor); 10] {
    /// Between a mark and its name.
    const CLEAR: f64 = 9.0;
    [
        (CLEAR, -10.0, Anchor::Start),
        (CLEAR, 0.0, Anchor::Start),
        (CLEAR, 12.0, Anchor::Start),
        (-CLEAR, 12.0, Anchor::End),
        (-CLEAR, 0.0, Anchor::End),
        (-CLEAR, -10.0, Anchor::End),
        (0.0, -14.0, Anchor::Middle),
        (0.0, 18.0, Anchor::Middle),
        (0.0, -28.0, Anchor::Middle),
        (0.0, 32.0, Anchor::Middle),
    ]
    .map(|(dx, dy, anchor)| (xy(at.x + dx, at.y + 4.0 + dy), anchor))
}

/// What a text takes that stands at a point.
fn text_area(at: Point, anchor: Anchor, width: f64) -> Area {
    let left = match anchor {
        Anchor::Start => at.x,
        Anchor::Middle => at.x - width / 2.0,
        Anchor::End => at.x - width,
    };
    Area::new((left, left + width), (at.y - 11.0, at.y + 3.0))
}

impl Area {
    fn meets(&self, other: Self) -> bool {
        let beside = other.right <= self.left || self.right <= other.left;
        let above_or_below = other.bottom <= self.top || self.bottom <= other.top;
        !beside && !above_or_below
    }

    fn distance_to(&self, point: Point) -> f64 {
        let beside = (self.left - point.x).max(point.x - self.right).max(0.0);
        let above_or_below = (self.top - point.y).max(point.y - self.bottom).max(0.0);
        beside.hypot(above_or_below)
    }

    fn is_within(&self, other: Self) -> bool {
        let sides = other.left <= self.left && self.right <= other.right;
        sides && other.top <= self.top && self.bottom <= other.bottom
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

    #[test]
    fn levels_hold_every_count_once() {
        assert_eq!(level_bounds(1), [1]);
        assert_eq!(level_bounds(4), [1, 2, 3, 4]);
        assert_eq!(level_bounds(1_000_000), [10, 100, 1_000, 10_000, 100_000, 1_000_000]);
        for most in 1..2_000 {
            let bounds = level_bounds(most);
            assert_eq!(bounds.last(), Some(&most));
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{bounds:?}");
        }
        assert_eq!(count_level(0, &[1, 3]), None);
        assert_eq!(count_level(2, &[1, 3]), Some(1));
    }

    fn point(x: f64, y: f64) -> ParetoPoint {
        ParetoPoint {
            series: "a".to_owned(),
            label: "a name".to_owned(),
            x,
            y,
            on_frontier: true,
            ..ParetoPoint::default()
        }
    }

    #[test]
    fn names_never_stand_on_each_other_or_on_marks() {
        let points: Vec<ParetoPoint> = (0..12)
            .map(|n| point(50.0 + f64::from(n % 4) * 3.0, 50.0 + f64::from(n) * 2.0))
            .collect();
        let points: Vec<&ParetoPoint> = points.iter().collect();
        let area = Area { left: 80.0, right: 760.0, top: 100.0, bottom: 400.0 };
        let axis = |pixels| Axis::new(ScaleKind::Linear, (0.0, 100.0), Vec::new()).across(pixels);
        let (x, y) = (axis((80.0, 760.0)), axis((400.0, 100.0)));
        let found: Vec<Area> = labels(&points, area, (&x, &y))
            .into_iter()
            .flatten()
            .map(|(at, anchor)| text_area(at, anchor, TICK.width("a name")))
            .collect();
        assert!(2 < found.len(), "{found:?}");
        for (index, one) in found.iter().enumerate() {
            assert!(found[..index].iter().all(|other| !one.meets(*other)), "{one:?}");
        }
    }

    /// N12: the name of one level stood at the mark of the next.
    #[test]
    fn a_name_is_nearer_to_its_own_mark_than_to_any_other() {
        let points = [point(40.0, 40.0), point(41.2, 42.0), point(42.4, 44.0), point(80.0, 10.0)];
        let points: Vec<&ParetoPoint> = points.iter().collect();
        let area = Area { left: 80.0, right: 760.0, top: 100.0, bottom: 400.0 };
        let axis = |pixels| Axis::new(ScaleKind::Linear, (0.0, 100.0), Vec::new()).across(pixels);
        let (x, y) = (axis((80.0, 760.0)), axis((400.0, 100.0)));
        let found = labels(&points, area, (&x, &y));
        assert!(found[0].is_some() && found[3].is_some(), "{found:?}");
        for (place, (at, anchor)) in
            found.iter().enumerate().filter_map(|(place, found)| Some((place, (*found)?)))
        {
            let text = text_area(at, anchor, TICK.width("a name"));
            let distance = |point: &&ParetoPoint| text.distance_to(point.place((&x, &y)));
            let nearest = points.iter().map(distance).fold(f64::INFINITY, f64::min);
            assert!(distance(&points[place]) <= nearest, "{place}: {found:?}");
        }
    }
}
