//! Bars in groups, from left to right, each with its number at its end. What is missing is a dash, and
//! what failed a cross.

use super::axis::{BELOW, draw_below, draw_upright_grid};
use super::frame::{Area, Canvas, MARGIN, RIGHT, Swatch, draw_surface};
use super::lettering::{NAME, TICK};
use super::marks::{Look, distinct, draw_cross, draw_interval_over};
use super::palette::Paint;
use super::plot::{Bar, BarGroup, Bars};
use super::scale::Scale;
use super::svg::{Anchor, Drawing, Place};
use super::ticks::Ticks;
use crate::fmt;

const LABEL_WIDTH_MAX: f64 = 190.0;
const GROUP_GAP: f64 = 12.0;
const NOTE_WIDTH_MAX: f64 = 420.0;

/// Where the bars of a chart stand.
#[derive(Clone, Copy, Debug)]
struct Rows {
    thickness: f64,
    x: Scale,
    area: Area,
}

impl Rows {
    /// Where bars begin; a logarithmic axis has no zero and begins at its left.
    fn zero(&self) -> f64 {
        self.x.place(0.0)
    }
}

impl Bars {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let names = distinct(self.bars().map(|bar| bar.series.as_str()));
        if names.is_empty() {
            return canvas.nothing("Nothing was measured.");
        }
        if 1 < names.len() {
            canvas.legend_of(&names, |look| Swatch::Surface {
                paint: look.paint(),
                strength: 1.0,
                hatching: look.hatching(),
            });
        }
        canvas.top += 4.0;
        let ticks = self.ticks();
        let labels = self.groups.iter().map(|group| NAME.width(&group.label)).fold(0.0, f64::max);
        let numbers = self.bars().map(|bar| TICK.width(&bar.number())).fold(0.0, f64::max);
        let thickness = match names.len() {
            1 => 20.0,
            2 => 16.0,
            _ => 14.0,
        };
        let height = self.groups.iter().map(|group| group.height(thickness)).sum::<f64>();
        let left = MARGIN + labels.min(LABEL_WIDTH_MAX) + 10.0;
        let area = canvas.area((left, RIGHT - numbers - 10.0), height);
        canvas.top += BELOW;
        let rows = Rows { thickness, x: ticks.scale((area.left, area.right)), area };
        let drawing = &mut canvas.drawing;
        draw_upright_grid(drawing, &ticks, (area, rows.x));
        draw_below(drawing, &ticks, (area, rows.x), &self.y.title());
        self.draw_labels(drawing, rows);
        for (place, name) in names.iter().enumerate() {
            drawing.open_series(name);
            for (group, bar, top) in self.placed(rows) {
                if bar.series == *name {
                    self.draw_bar(drawing, (group, bar), Look::at(place), (rows, top));
                }
            }
            drawing.close_group();
        }
        let zero = rows.zero();
        let (top, bottom) = (Place { x: zero, y: area.top }, Place { x: zero, y: area.bottom });
        drawing.line(top, bottom, Paint::Frame);
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    fn ticks(&self) -> Ticks {
        let ends = |bar: &Bar| {
            let interval = bar.value.and(bar.interval);
            [bar.value, interval.map(|ends| ends.0), interval.map(|ends| ends.1)]
        };
        let values: Vec<f64> = self.bars().flat_map(ends).flatten().collect();
        Ticks::on_both_sides(self.y.spacing(), &values)
    }

    /// Each bar with its group and its upper edge.
    fn placed(&self, rows: Rows) -> Vec<(&BarGroup, &Bar, f64)> {
        let mut placed = Vec::new();
        let mut top = rows.area.top;
        for group in &self.groups {
            let height = group.height(rows.thickness);
            let first = top + (height - group.bars.len() as f64 * rows.thickness) / 2.0;
            for (place, bar) in group.bars.iter().enumerate() {
                placed.push((group, bar, first + place as f64 * rows.thickness));
            }
            top += height;
        }
        placed
    }

    fn draw_labels(&self, drawing: &mut Drawing, rows: Rows) {
        const LINE: f64 = 15.0;
        let letters = NAME.anchored(Anchor::End);
        let mut top = rows.area.top;
        for group in &self.groups {
            let height = group.height(rows.thickness);
            let lines_max = if height < 2.1 * LINE { 1 } else { 2 };
            let lines = letters.wrapped(&group.label, LABEL_WIDTH_MAX, lines_max);
            let first = top + height / 2.0 + 4.5 - LINE * (lines.len() as f64 - 1.0) / 2.0;
            for (place, line) in lines.iter().enumerate() {
                let at = Place { x: rows.area.left - 8.0, y: first + place as f64 * LINE };
                let whole = if line.ends_with('…') { &group.label } else { line };
                drawing.short_text(at, letters, (line, whole));
            }
            top += height;
        }
    }

    fn draw_bar(
        &self,
        drawing: &mut Drawing,
        (group, bar): (&BarGroup, &Bar),
        look: Look,
        (rows, top): (Rows, f64),
    ) {
        let (area, middle) = (rows.area, top + rows.thickness / 2.0);
        let tip = self.tip(group, bar);
        let Some(value) = bar.known() else {
            return draw_missing(
                drawing,
                bar,
                (Place { x: area.left, y: middle }, rows.thickness),
                &tip,
            );
        };
        let (zero, end) = (rows.zero(), rows.x.place(value));
        let corners = (
            Place { x: zero.min(end), y: top + 1.0 },
            Place { x: zero.max(end), y: top + rows.thickness - 1.0 },
        );
        if bar.hollow {
            let outline = drawing.element("rect").corners(corners.0, corners.1).tip(&tip);
            let outline = outline.paint("fill", Paint::Surface).paint("stroke", look.paint());
            outline.word("stroke-width", "1.5").word("stroke-dasharray", "4 2").end();
        } else {
            draw_surface(drawing, corners, (look.paint(), 1.0, look.hatching()), Some(&tip));
        }
        // Right of the axis, where nothing else stands, also where the bar goes to the left.
        let mut text_from = zero.max(end);
        if let Some((low, high)) = bar.interval {
            let ends = [low, high].map(|end| Place { x: rows.x.place(end), y: middle });
            draw_interval_over(drawing, ends[0], ends[1], Paint::Ink);
            text_from = text_from.max(ends[1].x);
        }
        let letters = TICK.anchored(Anchor::Start).painted(Paint::Ink);
        let at = Place { x: text_from + 7.0, y: middle + 4.0 };
        drawing.text(at, letters, &bar.number());
    }

    fn tip(&self, group: &BarGroup, bar: &Bar) -> String {
        let value = bar.known().map_or_else(
            || "not known".to_owned(),
            |value| format!("{}{}", self.y.show(value), fmt::confidence(bar.interval)),
        );
        let note = bar.note.clone().unwrap_or_default();
        fmt::joined(&[group.label.clone(), bar.series.clone(), value, note])
    }
}

/// A dash, or a cross where it failed, with the reason where it is known.
fn draw_missing(drawing: &mut Drawing, bar: &Bar, (at, thickness): (Place, f64), tip: &str) {
    let note = bar.note.as_deref().unwrap_or_default();
    let sign = if bar.failed { "" } else { fmt::NOTHING };
    let text = format!("{sign} {note}");
    let letters = TICK.anchored(Anchor::Start);
    let short = letters.shortened(text.trim(), NOTE_WIDTH_MAX);
    let mut from = at.x + 7.0;
    if bar.failed {
        draw_cross(drawing, Place { x: from + 4.0, y: at.y });
        from += 15.0;
    }
    drawing.text(Place { x: from, y: at.y + 4.0 }, letters, &short);
    let half = thickness / 2.0;
    let corners = (
        Place { x: at.x, y: at.y - half },
        Place { x: from + letters.width(&short), y: at.y + half },
    );
    drawing.element("rect").corners(corners.0, corners.1).unseen().tip(tip).end();
}

impl BarGroup {
    fn height(&self, thickness: f64) -> f64 {
        const TWO_LINES: f64 = 42.0;
        let bars = self.bars.len().max(1) as f64 * thickness + GROUP_GAP;
        if LABEL_WIDTH_MAX < NAME.width(&self.label) { bars.max(TWO_LINES) } else { bars }
    }
}

impl Bar {
    fn known(&self) -> Option<f64> {
        self.value.filter(|value| value.is_finite())
    }

    fn number(&self) -> String {
        self.known().map_or_else(|| fmt::NOTHING.to_owned(), fmt::compact)
    }
}
