//! Charts in one area between two axes: distributions, counts over time and value, and pairs of
//! things that are wanted at once.

use std::fmt::Write;

use super::axis::{Axis, BELOW, INSET};
use super::canvas::{
    Anchor, Area, Canvas, Entry, Fill, LABEL, Look, MARGIN, Point, RADIUS, RIGHT, Swatch, TICK,
    distinct, pixels, xy,
};
use super::lines::{TIME_LABEL, with_ends};
use super::palette::Paint;
use super::{
    Curve, Distribution, Drawing, HeatMap, INTERVAL, Measure, Pareto, ParetoPoint, count_cell,
    interval_cell, noted_cell, number_cell, sorted, titled,
};
use crate::document::{Cell, Columns, Table, plain};
use crate::fmt;

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
    let area = canvas.area((MARGIN + left.label_width(), RIGHT - before_edge), height);
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
        let y = y.upwards(area, 0.0);
        draw_grid(canvas, area, (&x, &y), &self.x.title());
        for (index, curve) in self.curves.iter().enumerate() {
            canvas.series(&curve.name, |canvas| {
                curve.draw(canvas, Look::new(index), (&x, &y), &self.x);
            });
        }
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
        let (x, y) = (x.across((area.left, area.right)), y.upwards(area, 0.0));
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
                .right(self.counted.as_str(), |row| count_cell(self.row_count(*row)))
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
                    &format!("{} to {}", fmt::compact(edges[0]), self.y.show(edges[1])),
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
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and a count"
        )]
        let ratio = libm::pow(most as f64, share).round() as u64;
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

/// The widest name of a point.
const NAME_WIDTH_MAX: f64 = 160.0;

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
        let y = y.upwards(area, INSET);
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
            canvas.fitted_text(place, letters, &point.label, NAME_WIDTH_MAX);
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

/// Where each name stands: beside, above or below its mark, where nothing else does; on a line
/// only where nothing else is free. One for which there is no room at all is left out; its mark
/// still says it.
fn labels(
    points: &[&ParetoPoint],
    area: Area,
    axes: (&Axis, &Axis),
) -> Vec<Option<(Point, Anchor)>> {
    let marks = points.iter().map(|point| around(point.place(axes), 6.0));
    let mut taken: Vec<Area> = marks.collect();
    let lines = obstructing_lines(points, axes);
    let bounds = Area { right: RIGHT, top: area.top - 12.0, ..area };
    let mut found = Vec::new();
    for point in points {
        let width = TICK.width(&TICK.shortened(&point.label, NAME_WIDTH_MAX));
        let free = |obstacles: &[&[Area]]| {
            candidates(point.place(axes)).into_iter().find(|(at, anchor)| {
                let own = text_area(*at, *anchor, width);
                let is_free = |other: &Area| !own.meets(*other);
                own.is_within(bounds) && obstacles.iter().copied().flatten().all(is_free)
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

    fn is_within(&self, other: Self) -> bool {
        let sides = other.left <= self.left && self.right <= other.right;
        sides && other.top <= self.top && self.bottom <= other.bottom
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::ScaleKind;

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
        assert!(4 < found.len(), "{found:?}");
        for (index, one) in found.iter().enumerate() {
            assert!(found[..index].iter().all(|other| !one.meets(*other)), "{one:?}");
        }
    }
}
