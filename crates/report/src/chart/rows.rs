//! Charts of rows one below the other, each with its label on the left: bars in groups, shares of
//! wholes, requests over time, and tiles.

use super::canvas::{
    Anchor, Area, Axis, BELOW, Canvas, Entry, Fill, HATCHINGS, LABEL, Look, MARGIN, NAME, Paint,
    Point, Swatch, TICK, xy,
};
use super::lines::{TIME_LABEL, with_ends};
use super::{
    Bar, BarGroup, Bars, Drawing, Gantt, GanttEnding, GanttRow, INTERVAL, Measure, ScaleKind,
    ShareClass, ShareRow, Shares, TileRow, Tiles, interval_cell, noted_cell, number_cell,
};
use crate::document::{Cell, Columns, Table, distinct, plain};
use crate::fmt;

const LABEL_WIDTH_MAX: f64 = 190.0;

/// The left side of what stands beside these labels.
fn left_of<'a>(labels: impl Iterator<Item = &'a str>, width_max: f64) -> f64 {
    MARGIN + NAME.widest(labels).min(width_max) + 10.0
}

impl Drawing for Bars {
    /// Bars from left to right, each with its number at its end. What is missing is a dash, and what
    /// failed a cross.
    fn draw(&self, canvas: &mut Canvas) {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let names = distinct(bars().map(|bar| bar.series.as_str()));
        if names.is_empty() {
            return canvas.nothing("Nothing was measured.");
        }
        if 1 < names.len() {
            canvas.series_legend(&names, |look| Swatch::Surface(look.fill()));
        }
        canvas.top += 4.0;
        let thickness = [20.0, 16.0, 14.0][(names.len() - 1).min(2)];
        let ends = |bar: &Bar| bar.value.map(|value| with_ends(value, bar.interval));
        let values: Vec<f64> = bars().filter_map(ends).flatten().collect();
        let numbers = bars().map(|bar| TICK.width(&bar.number())).fold(0.0, f64::max);
        let room = canvas.label_room(LABEL_WIDTH_MAX);
        let left = left_of(self.groups.iter().map(|it| it.label.as_str()), room);
        // Each group with its upper edge and its height.
        let top = canvas.top;
        let groups: Vec<(&BarGroup, f64, f64)> = self
            .groups
            .iter()
            .map(|group| {
                let height = group.height(thickness, room);
                canvas.top += height;
                (group, canvas.top - height, height)
            })
            .collect();
        let area = Area::new((left, canvas.right() - numbers - 10.0), (top, canvas.top));
        canvas.top += BELOW;
        let x = Axis::round(self.y.scale, &values).across((area.left, area.right));
        x.draw_upright_grid(canvas, area);
        x.draw_below(canvas, area, &self.y.title());
        for (group, top, height) in &groups {
            group.draw_label(canvas, xy(area.left - 8.0, *top), *height, room);
        }
        for (index, name) in names.iter().enumerate() {
            canvas.series(name, |canvas| {
                for (group, top, height) in &groups {
                    let first = top + (height - group.bars.len() as f64 * thickness) / 2.0;
                    for (place, bar) in group.bars.iter().enumerate() {
                        let top = first + place as f64 * thickness;
                        let row = Area { top, bottom: top + thickness, ..area };
                        if bar.series == *name {
                            let tip = bar.tip(&group.label, &self.y);
                            bar.draw(canvas, Look::new(index), (&x, row), &tip);
                        }
                    }
                }
            });
        }
        let zero = x.place(0.0);
        canvas.stroke(xy(zero, area.top), xy(zero, area.bottom), Paint::Frame).end();
    }

    fn table(&self) -> Table {
        type Row<'a> = (&'a BarGroup, &'a Bar);
        let bars =
            || self.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
        Columns::new("Group", |(group, _): &Row<'_>| Cell::text(group.label.as_str()))
            .left("Series", |(_, bar)| Cell::text(bar.series.as_str()))
            .right(self.y.title(), |(_, bar)| {
                let cell = noted_cell(bar.value, bar.hollow, bar.note.as_ref());
                Cell { text: bar.number(), ..cell }
            })
            .right(INTERVAL, |(_, bar)| interval_cell(bar.interval))
            .only_if(bars().any(|(_, bar)| bar.interval.is_some()))
            .table("", "", bars())
    }
}

impl BarGroup {
    fn height(&self, thickness: f64, label_room: f64) -> f64 {
        const GAP: f64 = 12.0;
        const TWO_LINES: f64 = 42.0;
        let bars = self.bars.len().max(1) as f64 * thickness + GAP;
        if label_room < NAME.width(&self.label) { bars.max(TWO_LINES) } else { bars }
    }

    fn draw_label(&self, canvas: &mut Canvas, at: Point, height: f64, room: f64) {
        const LINE: f64 = 15.0;
        let letters = NAME.anchored(Anchor::End);
        let lines_max = if height < 2.1 * LINE { 1 } else { 2 };
        let lines = letters.wrapped(&self.label, room, lines_max);
        let first = at.y + height / 2.0 + 4.5 - LINE * (lines.len() as f64 - 1.0) / 2.0;
        for (index, line) in lines.iter().enumerate() {
            let whole = if line.ends_with('…') { &self.label } else { line };
            canvas.titled_text(xy(at.x, first + index as f64 * LINE), letters, line, whole);
        }
    }
}

impl Bar {
    fn known(&self) -> Option<f64> {
        self.value.filter(|value| value.is_finite() && !self.failed)
    }

    fn number(&self) -> String {
        self.text.clone().unwrap_or_else(|| fmt::number(self.known()))
    }

    fn tip(&self, group: &str, measure: &Measure) -> String {
        let value = self.known().map(|value| measure.show_interval(value, self.interval));
        let value = value.as_deref().unwrap_or("not known");
        fmt::joined(&[group, &self.series, value, self.note.as_deref().unwrap_or_default()])
    }

    fn draw(&self, canvas: &mut Canvas, look: Look, (x, row): (&Axis, Area), tip: &str) {
        let middle = f64::midpoint(row.top, row.bottom);
        let Some(value) = self.known() else {
            return self.draw_missing(canvas, row, tip);
        };
        // Bars begin at zero; a logarithmic axis has none and begins at its left.
        let (zero, end) = (x.place(0.0), x.place(value));
        let area = Area::new((zero, end), (row.top + 1.0, row.bottom - 1.0));
        if self.hollow {
            let outline = canvas.rectangle(area).tip(tip).paint("fill", Paint::Surface);
            let outline = outline.paint("stroke", look.paint());
            outline.set("stroke-width", "1.5").set("stroke-dasharray", "4 2").end();
        } else {
            canvas.surface(area, look.fill(), tip);
        }
        // Right of the axis, where nothing else stands, also where the bar goes to the left.
        let mut text_from = zero.max(end);
        if let Some((low, high)) = self.interval {
            let [from, to] = [low, high].map(|end| xy(x.place(end), middle));
            if 1.0 <= (from.x - to.x).abs() {
                canvas.stroke(from, to, Paint::Surface).set("stroke-width", "4").end();
            }
            canvas.interval(from, to, Paint::Ink);
            text_from = text_from.max(to.x);
        }
        let letters = TICK.anchored(Anchor::Start).painted(Paint::Ink);
        canvas.text(xy(text_from + 7.0, middle + 4.0), letters, &self.number());
    }

    /// A dash, or a cross where it failed, with the reason where it is known.
    fn draw_missing(&self, canvas: &mut Canvas, row: Area, tip: &str) {
        const NOTE_WIDTH_MAX: f64 = 420.0;
        let middle = f64::midpoint(row.top, row.bottom);
        let sign = if self.failed { "" } else { fmt::NOTHING };
        let text = format!("{sign} {}", self.note.as_deref().unwrap_or_default());
        let letters = TICK.anchored(Anchor::Start);
        let short = letters.shortened(text.trim(), NOTE_WIDTH_MAX.min(row.right - row.left));
        let mut from = row.left + 7.0;
        if self.failed {
            canvas.cross(xy(from + 4.0, middle));
            from += 15.0;
        }
        canvas.text(xy(from, middle + 4.0), letters, &short);
        let area = Area { right: from + letters.width(&short), ..row };
        canvas.rectangle(area).unseen().tip(tip).end();
    }
}

/// The height of a bar of shares.
const SHARES_BAR: f64 = 22.0;

impl Drawing for Shares {
    /// One bar for each whole, as long as any other, its parts in proportion.
    fn draw(&self, canvas: &mut Canvas) {
        /// With the line of counts below the bar.
        const ROW: f64 = 50.0;
        if self.rows.is_empty() || self.classes.is_empty() {
            return canvas.nothing(&format!("No {} were counted.", self.counted));
        }
        let fills = self.fills();
        let is_met = |class: usize| self.rows.iter().any(|row| 0 < row.count(class));
        let met = self.classes.iter().zip(&fills).enumerate().filter(|(class, _)| is_met(*class));
        let entry = |(class, fill): (&ShareClass, &Fill)| {
            Entry::series(class.name.as_str(), Swatch::Surface(*fill))
        };
        canvas.legend(met.map(|(_, found)| entry(found)).collect());
        let room = canvas.label_room(LABEL_WIDTH_MAX);
        let left = left_of(self.rows.iter().map(|row| row.label.as_str()), room);
        let area = canvas.area((left, canvas.right() - 16.0), ROW * self.rows.len() as f64);
        canvas.top += BELOW;
        let named = [0.0, 25.0, 50.0, 75.0, 100.0].map(|share| (share, format!("{share} %")));
        let x = Axis::new(ScaleKind::Linear, (0.0, 100.0), named.to_vec());
        let x = x.across((area.left, area.right));
        for (index, row) in self.rows.iter().enumerate() {
            self.draw_row(canvas, row, &fills, (&x, area, area.top + index as f64 * ROW + 4.0));
        }
        x.draw_below(canvas, area, &format!("share of {}", self.counted));
    }

    fn table(&self) -> Table {
        let mut columns = Columns::new("Group", |row: &&ShareRow| Cell::text(row.label.as_str()));
        for (index, class) in self.classes.iter().enumerate() {
            columns = columns.right(class.name.as_str(), move |row| Cell::count(row.count(index)));
        }
        let all = format!("all {}", self.counted);
        columns.right(all, |row| Cell::count(row.total())).table("", "", &self.rows)
    }
}

impl Shares {
    /// Good classes are calm and plain, bad ones loud and hatched.
    fn fills(&self) -> Vec<Fill> {
        const GOOD: [Paint; 4] =
            [Paint::Good, Paint::Series(0), Paint::Series(6), Paint::Series(4)];
        const BAD: [Paint; 4] = [Paint::Bad, Paint::Doubt, Paint::Series(3), Paint::Series(1)];
        let (mut good, mut bad) = (GOOD.into_iter().cycle(), BAD.into_iter().cycle());
        let mut hatchings = HATCHINGS.into_iter().cycle();
        let fill = |class: &ShareClass| {
            let (paint, hatching) =
                if class.is_good { (good.next(), None) } else { (bad.next(), hatchings.next()) };
            Fill { hatching, ..Fill::solid(paint.unwrap_or(Paint::Ink)) }
        };
        self.classes.iter().map(fill).collect()
    }

    fn draw_row(
        &self,
        canvas: &mut Canvas,
        row: &ShareRow,
        fills: &[Fill],
        (x, area, top): (&Axis, Area, f64),
    ) {
        let (start, at) = (TICK.anchored(Anchor::Start), xy(area.left - 8.0, top + 15.5));
        canvas.fitted_text(at, NAME.anchored(Anchor::End), &row.label, at.x - MARGIN);
        if row.total() == 0 {
            let text = format!("{} no {}", fmt::NOTHING, self.counted);
            canvas.text(xy(area.left + 7.0, at.y), start, &text);
        }
        let total = row.total() as f64;
        let (mut before, mut counts) = (0, Vec::new());
        for (index, (class, fill)) in self.classes.iter().zip(fills).enumerate() {
            let count = row.count(index);
            if count == 0 {
                continue;
            }
            let sides = [before, before + count].map(|it| x.place(it as f64 / total * 100.0));
            before += count;
            let share = fmt::percent(Some(count as f64 / total));
            let number = fmt::count(count);
            let counted = format!("{number} {} ({share})", self.counted);
            let tip = fmt::joined(&[&row.label, &class.name, &counted]);
            canvas.series(&class.name, |canvas| {
                let area = Area::new(sides.into(), (top, top + SHARES_BAR));
                canvas.surface(area, *fill, &tip);
            });
            counts.push(format!("{number} {}", class.name));
        }
        // How many there are of each, because a thin part is easily overlooked.
        let at = xy(area.left, top + SHARES_BAR + 15.0);
        canvas.fitted_text(at, start, &counts.join(" · "), area.right - area.left);
    }
}

impl ShareRow {
    fn count(&self, class: usize) -> u64 {
        self.counts.get(class).copied().unwrap_or_default()
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

const ENDINGS: [GanttEnding; 4] =
    [GanttEnding::Ok, GanttEnding::Slowest, GanttEnding::Failed, GanttEnding::Cancelled];
const GANTT_LABEL_WIDTH_MAX: f64 = 150.0;
const GANTT_HEIGHT_WANTED: f64 = 900.0;
/// How strong a colour is while no token has come.
const WAITING: f64 = 0.38;
const UNSENT: Fill = Fill { strength: 0.5, ..Fill::solid(Paint::Frame) };

impl Drawing for Gantt {
    /// How long each request waited to be sent, for its first token and until its end.
    fn draw(&self, canvas: &mut Canvas) {
        if self.rows.is_empty() {
            return canvas.nothing("No request was sent.");
        }
        let mut entries = Vec::new();
        if self.rows.iter().any(|row| row.waited().is_some()) {
            entries.push(Entry::key("waiting to be sent", UNSENT));
        }
        let pale = Fill { strength: WAITING, ..GanttEnding::Ok.fill() };
        entries.push(Entry::key("until its first token", pale));
        let is_met = |ending: &GanttEnding| self.rows.iter().any(|row| row.ending == *ending);
        let met: Vec<GanttEnding> = ENDINGS.into_iter().filter(is_met).collect();
        entries.extend(met.iter().map(|it| Entry::series(it.to_string(), Swatch::Ending(*it))));
        canvas.legend(entries);
        canvas.top += 2.0;
        let labels = TICK.widest(self.rows.iter().map(|row| row.label.as_str()));
        let label_room = canvas.label_room(GANTT_LABEL_WIDTH_MAX);
        let left = MARGIN + labels.min(label_room) + 8.0;
        let count = self.rows.len() as f64;
        let pitch = (GANTT_HEIGHT_WANTED / count).clamp(7.0, 18.0);
        let area = canvas.area((left, canvas.right() - 12.0), pitch * count);
        canvas.top += BELOW;
        let ends = |row: &GanttRow| [row.begins(), row.sent_s, row.ended_s];
        let moments = || self.rows.iter().flat_map(ends).filter(|moment| moment.is_finite());
        let from = moments().reduce(f64::min).unwrap_or_default();
        let to = moments().reduce(f64::max).unwrap_or_default();
        let x = Axis::of_time(from, to).across((area.left, area.right));
        x.draw_upright_grid(canvas, area);
        x.draw_below(canvas, area, TIME_LABEL);
        let middle = |index: usize| area.top + (index as f64 + 0.5) * pitch;
        let mut free_from = f64::NEG_INFINITY;
        for (index, row) in self.rows.iter().enumerate() {
            let (y, letters) = (middle(index), TICK.anchored(Anchor::End));
            if free_from <= y {
                let at = xy(area.left - 8.0, y + 4.0);
                canvas.fitted_text(at, letters, &row.label, label_room);
                free_from = y + 14.0;
            }
        }
        for ending in met {
            canvas.series(&ending.to_string(), |canvas| {
                for (index, row) in self.rows.iter().enumerate() {
                    if row.ending == ending {
                        row.draw(canvas, &x, (middle(index), pitch));
                    }
                }
            });
        }
    }

    fn table(&self) -> Table {
        let shown = fmt::count(self.rows.len() as u64);
        let note = format!("{shown} of {} requests: {}", fmt::count(self.of), self.choice);
        let ending = |row: &&GanttRow| {
            let detail = Some(row.note.clone()).filter(|note| !note.is_empty());
            Cell { detail, ..Cell::text(row.ending.to_string()) }
        };
        let table = Columns::new("Request", |row: &&GanttRow| Cell::text(row.label.as_str()))
            .left("Ending", ending)
            .right("Intended (s)", |row| number_cell(row.intended_s))
            .right("Sent (s)", |row| number_cell(row.sent_s))
            .right("First token (s)", |row| number_cell(row.first_s))
            .right("Ended (s)", |row| number_cell(row.ended_s))
            .table("", "", &self.rows);
        Table { notes: vec![plain(note)], ..table }
    }
}

impl GanttEnding {
    pub(super) const fn fill(self) -> Fill {
        let (paint, hatching) = match self {
            Self::Ok => (Paint::Series(0), None),
            Self::Slowest => (Paint::Series(1), Some(HATCHINGS[0])),
            // A failed one ends in a cross.
            Self::Failed => (Paint::Bad, None),
            Self::Cancelled => (Paint::Series(6), Some(HATCHINGS[3])),
        };
        Fill { hatching, ..Fill::solid(paint) }
    }

    /// A shape at the end of a bar that is out of the ordinary.
    pub(super) fn draw_end(self, canvas: &mut Canvas, at: Point) {
        let corner = |dx: f64, dy: f64| xy(at.x + dx, at.y + dy);
        let paint = self.fill().paint;
        let strokes = match self {
            Self::Ok => return,
            Self::Slowest => {
                let corners = [(0.0, -4.5), (4.5, 0.0), (0.0, 4.5), (-4.5, 0.0)];
                let diamond = canvas.path("polygon", &corners.map(|(dx, dy)| corner(dx, dy)));
                return diamond.paint("fill", paint).paint("stroke", Paint::Surface).end();
            }
            Self::Failed => {
                vec![(corner(-3.5, -3.5), corner(3.5, 3.5)), (corner(-3.5, 3.5), corner(3.5, -3.5))]
            }
            Self::Cancelled => vec![(corner(0.0, -5.0), corner(0.0, 5.0))],
        };
        for (paint, width) in [(Paint::Surface, "4.5"), (paint, "2.2")] {
            for (from, to) in &strokes {
                let line = canvas.stroke(*from, *to, paint).set("stroke-width", width);
                line.set("stroke-linecap", "round").end();
            }
        }
    }
}

impl GanttRow {
    /// How long after its intended moment it was sent.
    fn waited(&self) -> Option<f64> {
        self.intended_s.map(|intended| self.sent_s - intended).filter(|waited| 0.0 < *waited)
    }

    fn begins(&self) -> f64 {
        self.intended_s.map_or(self.sent_s, |intended| intended.min(self.sent_s))
    }

    fn draw(&self, canvas: &mut Canvas, x: &Axis, (middle, pitch): (f64, f64)) {
        let half = 0.36 * pitch;
        let bar = |from: f64, to: f64, half: f64| {
            Area::new((x.place(from), x.place(to)), (middle - half, middle + half))
        };
        let fill = self.ending.fill();
        canvas.element("g").tip(&self.tip()).open();
        if self.waited().is_some() {
            canvas.surface(bar(self.begins(), self.sent_s, 0.4 * half), UNSENT, "");
        }
        let first = self.first_s.unwrap_or(self.ended_s);
        let pale = Fill { strength: WAITING, ..Fill::solid(fill.paint) };
        canvas.surface(bar(self.sent_s, first, half), pale, "");
        if self.first_s.is_some() {
            canvas.surface(bar(first, self.ended_s, half), fill, "");
        }
        self.ending.draw_end(canvas, xy(x.place(self.ended_s), middle));
        // A short bar is hard to point at.
        canvas.rectangle(bar(self.begins(), self.ended_s, 0.5 * pitch)).unseen().end();
        canvas.close_group();
    }

    fn tip(&self) -> String {
        let waited = self.waited().map(|waited| format!("sent {} late", fmt::seconds(waited)));
        let first = self
            .first_s
            .map(|first| format!("first token after {}", fmt::seconds(first - self.sent_s)));
        fmt::joined(&[
            &self.label,
            &self.ending.to_string(),
            &waited.unwrap_or_default(),
            &format!("sent at {}", fmt::seconds(self.sent_s)),
            first.as_deref().unwrap_or("no token"),
            &format!("ended after {}", fmt::seconds(self.ended_s - self.sent_s)),
            &self.note,
        ])
    }
}

const TILE_HEIGHT: f64 = 27.0;
/// Shades on which letters can be read, on light and on dark ground; those in the middle are neither
/// light nor dark.
const SHADES: [Paint; 4] = [Paint::Heat(0), Paint::Heat(1), Paint::Heat(4), Paint::Heat(5)];

/// Where each shade begins and ends.
type Bounds = [f64; SHADES.len() + 1];

fn shade_bounds(scale: ScaleKind, low: f64, high: f64) -> Bounds {
    // Four shades would make much of what is nearly the same.
    if high - low <= 0.01 * high.abs() {
        return [low, low, low, low, high];
    }
    let is_log = matches!(scale, ScaleKind::Log) && 0.0 < low;
    [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| {
        if is_log { low * libm::pow(high / low, share) } else { low + share * (high - low) }
    })
}

fn shade(bounds: &Bounds, value: f64) -> usize {
    bounds[1..SHADES.len()].iter().take_while(|bound| **bound <= value).count()
}

impl Drawing for Tiles {
    /// Each tile with its number. Shades say where the high ones are; what is not to be relied on has
    /// no shade, and what failed is a cross.
    fn draw(&self, canvas: &mut Canvas) {
        const LABEL_WIDTH_MAX: f64 = 225.0;
        const WIDTH_MAX: f64 = 130.0;
        const ACROSS_LEAST: f64 = 60.0;
        if self.rows.is_empty() || self.columns.is_empty() {
            return canvas.nothing("Nothing was measured.");
        }
        let bounds = self.bounds();
        if let Some(bounds) = &bounds {
            self.draw_legend(canvas, bounds);
        }
        let room = canvas.label_room(LABEL_WIDTH_MAX);
        let left = left_of(self.rows.iter().map(|row| row.label.as_str()), room);
        // What the columns are is written before the first of them.
        let left = left.max(MARGIN + ACROSS_LEAST + 10.0);
        let width = ((canvas.right() - left) / self.columns.len() as f64).min(WIDTH_MAX);
        canvas.top += LABEL.size;
        let (at, room) = (xy(MARGIN, canvas.top + 15.0), left - MARGIN - 10.0);
        canvas.fitted_text(at, LABEL.anchored(Anchor::Start), &self.across, room);
        canvas.top += 15.0;
        for (index, column) in self.columns.iter().enumerate() {
            let at = xy(left + (index as f64 + 0.5) * width, canvas.top);
            canvas.fitted_text(at, TICK, column, width - 4.0);
        }
        canvas.top += 8.0;
        for row in &self.rows {
            let top = canvas.top;
            let at = xy(left - 8.0, top + TILE_HEIGHT / 2.0 + 4.5);
            canvas.fitted_text(at, NAME.anchored(Anchor::End), &row.label, at.x - MARGIN);
            for (index, tile) in row.tiles.iter().take(self.columns.len()).enumerate() {
                let Some(tile) = tile else { continue };
                let x = left + index as f64 * width;
                let area = Area::new((x, x + width), (top, top + TILE_HEIGHT));
                tile.draw_tile(canvas, bounds.as_ref(), area, &self.tip(row, index, tile));
            }
            canvas.top += TILE_HEIGHT;
        }
        canvas.top += 8.0;
    }

    fn table(&self) -> Table {
        let cell = |tile: &Bar| noted_cell(tile.known(), tile.hollow, tile.note.as_ref());
        let mut columns =
            Columns::new(self.value.title(), |row: &&TileRow| Cell::text(row.label.as_str()));
        for (index, column) in self.columns.iter().enumerate() {
            columns = columns.right(column.as_str(), move |row| {
                row.tiles.get(index).and_then(Option::as_ref).map_or_else(Cell::default, cell)
            });
        }
        columns.table("", "", &self.rows)
    }
}

impl Tiles {
    /// The shades of the reliable values; without any there are none.
    fn bounds(&self) -> Option<Bounds> {
        let tiles = self.rows.iter().flat_map(|row| row.tiles.iter().flatten());
        let shaded: Vec<f64> = tiles.filter(|tile| !tile.hollow).filter_map(Bar::known).collect();
        let low = shaded.iter().copied().reduce(f64::min)?;
        let high = shaded.iter().copied().reduce(f64::max)?;
        Some(shade_bounds(self.value.scale, low, high))
    }

    fn draw_legend(&self, canvas: &mut Canvas, bounds: &Bounds) {
        let [low, next, .., high] = *bounds;
        if next <= low {
            let fill = Fill::solid(SHADES[SHADES.len() - 1]);
            let name =
                if low < high { self.value.show_range(low, high) } else { self.value.show(low) };
            return canvas.legend(vec![Entry::key(name, fill)]);
        }
        let entries = bounds.windows(2).zip(SHADES).map(|(ends, paint)| {
            let name = self.value.show_range(ends[0], ends[1]);
            Entry::key(name, Fill::solid(paint))
        });
        canvas.legend(entries.collect());
    }

    fn tip(&self, row: &TileRow, column: usize, tile: &Bar) -> String {
        let value = match tile.known() {
            _ if tile.failed => "failed".to_owned(),
            Some(value) => self.value.show(value),
            None => "not known".to_owned(),
        };
        let note = tile.note.as_deref().unwrap_or_default();
        fmt::joined(&[&row.label, &self.columns[column], &value, note])
    }
}

impl Bar {
    fn draw_tile(&self, canvas: &mut Canvas, bounds: Option<&Bounds>, area: Area, tip: &str) {
        /// Between tiles.
        const GAP: f64 = 1.0;
        let middle = area.middle();
        let area =
            Area::new((area.left + GAP, area.right - GAP), (area.top + GAP, area.bottom - GAP));
        let shade = self.known().filter(|_| !self.hollow).zip(bounds);
        let shade = shade.map(|(value, bounds)| self::shade(bounds, value));
        let tile = canvas.rectangle(area).tip(tip);
        match shade {
            Some(shade) => tile.paint("fill", SHADES[shade]).end(),
            None if self.hollow => {
                let outline = tile.paint("fill", Paint::Surface).paint("stroke", Paint::Doubt);
                outline.set("stroke-dasharray", "4 2").end();
            }
            None => tile.paint("fill", Paint::Surface).paint("stroke", Paint::Grid).end(),
        }
        if self.failed {
            return canvas.cross(middle);
        }
        let is_dark = shade.is_some_and(|shade| SHADES.len() / 2 <= shade);
        let letters = TICK.painted(if is_dark { Paint::Surface } else { Paint::Ink });
        let short = letters.shortened(&fmt::number(self.known()), area.right - area.left);
        canvas.text(xy(middle.x, middle.y + 4.0), letters, &short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_equal_steps_and_hold_both_ends() {
        let even = shade_bounds(ScaleKind::Linear, 100.0, 500.0);
        let shades = [100.0, 199.9, 200.0, 399.0, 400.0, 500.0].map(|value| shade(&even, value));
        assert_eq!(shades, [0, 0, 1, 2, 3, 3]);
        let alike = shade_bounds(ScaleKind::Linear, 606.2, 607.2);
        assert_eq!([606.2, 607.2].map(|value| shade(&alike, value)), [3, 3]);
        let ratios = shade_bounds(ScaleKind::Log, 1.0, 10_000.0);
        assert_eq!(
            [1.0, 9.0, 11.0, 101.0, 10_000.0].map(|value| shade(&ratios, value)),
            [0, 0, 1, 2, 3]
        );
    }
}
