//! Requests one below the other: how long each waited, for its first token and until its end.

use super::axis::{BELOW, draw_below, draw_upright_grid};
use super::frame::{Area, Canvas, Entry, MARGIN, RIGHT, Swatch, draw_surface};
use super::lettering::TICK;
use super::palette::Paint;
use super::plot::{Gantt, GanttEnding, GanttRow};
use super::scale::Scale;
use super::svg::{Anchor, Drawing, Hatching, Place};
use super::ticks::Ticks;
use super::timeline::from_zero;
use crate::fmt;

const ENDINGS: [GanttEnding; 4] =
    [GanttEnding::Ok, GanttEnding::Slowest, GanttEnding::Failed, GanttEnding::Cancelled];
const LABEL_WIDTH_MAX: f64 = 150.0;
const LABEL_HEIGHT: f64 = 14.0;
const ROW_MAX: f64 = 18.0;
const ROW_MIN: f64 = 7.0;
const HEIGHT_WANTED: f64 = 900.0;
/// How strong a colour is while no token has come.
const WAITING: f64 = 0.38;

impl Gantt {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        if self.rows.is_empty() {
            return canvas.nothing("No request was sent.");
        }
        canvas.legend(&self.entries());
        canvas.top += 2.0;
        let labels = self
            .rows
            .iter()
            .map(|row| TICK.width(&row.label))
            .fold(0.0, f64::max)
            .min(LABEL_WIDTH_MAX);
        let pitch = (HEIGHT_WANTED / self.rows.len() as f64).clamp(ROW_MIN, ROW_MAX);
        let area =
            canvas.area((MARGIN + labels + 8.0, RIGHT - 12.0), pitch * self.rows.len() as f64);
        canvas.top += BELOW;
        let ticks = self.ticks();
        let x = ticks.scale((area.left, area.right));
        let drawing = &mut canvas.drawing;
        draw_upright_grid(drawing, &ticks, (area, x));
        draw_below(drawing, &ticks, (area, x), "time since the run began (s)");
        self.draw_labels(drawing, area, pitch);
        for ending in ENDINGS {
            let rows = self.rows.iter().enumerate().filter(|(_, row)| row.ending == ending);
            let mut rows = rows.peekable();
            if rows.peek().is_none() {
                continue;
            }
            drawing.open_series(ending.name());
            for (place, row) in rows {
                let middle = area.top + (place as f64 + 0.5) * pitch;
                row.draw(drawing, x, (middle, pitch));
            }
            drawing.close_group();
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        if self.rows.iter().any(|row| row.waited().is_some()) {
            let swatch = Swatch::Surface { paint: Paint::Frame, strength: 0.5, hatching: None };
            entries.push(Entry::key("waiting to be sent", swatch));
        }
        let paint = GanttEnding::Ok.paint();
        let pale = Swatch::Surface { paint, strength: WAITING, hatching: None };
        entries.push(Entry::key("until its first token", pale));
        for ending in ENDINGS {
            if self.rows.iter().any(|row| row.ending == ending) {
                entries.push(Entry::series(ending.name(), Swatch::Ending(ending)));
            }
        }
        entries
    }

    fn ticks(&self) -> Ticks {
        let moments = || {
            let of = |row: &GanttRow| [row.begins(), row.sent_s, row.ended_s];
            self.rows.iter().flat_map(of).filter(|moment| moment.is_finite())
        };
        let from = moments().reduce(f64::min).unwrap_or_default();
        let to = moments().reduce(f64::max).unwrap_or_default();
        Ticks::between(from_zero(from, to), to)
    }

    fn draw_labels(&self, drawing: &mut Drawing, area: Area, pitch: f64) {
        let letters = TICK.anchored(Anchor::End);
        let mut free_from = f64::NEG_INFINITY;
        for (place, row) in self.rows.iter().enumerate() {
            let y = area.top + (place as f64 + 0.5) * pitch;
            if y < free_from {
                continue;
            }
            let short = letters.shortened(&row.label, LABEL_WIDTH_MAX);
            let at = Place { x: area.left - 8.0, y: y + 4.0 };
            drawing.short_text(at, letters, (&short, &row.label));
            free_from = y + LABEL_HEIGHT;
        }
    }
}

impl GanttEnding {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "completed",
            Self::Slowest => "slowest",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    const fn paint(self) -> Paint {
        match self {
            Self::Ok => Paint::Series(0),
            Self::Slowest => Paint::Series(1),
            Self::Failed => Paint::Bad,
            Self::Cancelled => Paint::Series(6),
        }
    }

    const fn hatching(self) -> Option<Hatching> {
        match self {
            // A failed one ends in a cross.
            Self::Ok | Self::Failed => None,
            Self::Slowest => Some(Hatching::Rising),
            Self::Cancelled => Some(Hatching::Upright),
        }
    }

    /// In the 18 pixels right of `at`.
    pub(super) fn draw_swatch(self, drawing: &mut Drawing, at: Place) {
        let corners = (Place { y: at.y - 5.0, ..at }, Place { x: at.x + 13.0, y: at.y + 5.0 });
        draw_surface(drawing, corners, (self.paint(), 1.0, self.hatching()), None);
        self.draw_end(drawing, Place { x: at.x + 13.0, ..at });
    }

    /// A shape at the end of a bar that is out of the ordinary.
    fn draw_end(self, drawing: &mut Drawing, at: Place) {
        let corner = |dx: f64, dy: f64| Place { x: at.x + dx, y: at.y + dy };
        let shape = match self {
            Self::Ok => return,
            Self::Slowest => {
                let corners =
                    [corner(0.0, -4.5), corner(4.5, 0.0), corner(0.0, 4.5), corner(-4.5, 0.0)];
                let diamond = drawing.element("polygon").points(&corners);
                diamond.paint("fill", self.paint()).paint("stroke", Paint::Surface).end();
                return;
            }
            Self::Failed => {
                vec![(corner(-3.5, -3.5), corner(3.5, 3.5)), (corner(-3.5, 3.5), corner(3.5, -3.5))]
            }
            Self::Cancelled => vec![(corner(0.0, -5.0), corner(0.0, 5.0))],
        };
        for (paint, width) in [(Paint::Surface, "4.5"), (self.paint(), "2.2")] {
            for (from, to) in &shape {
                let line = drawing.element("line").ends(*from, *to).paint("stroke", paint);
                line.word("stroke-width", width).word("stroke-linecap", "round").end();
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

    fn draw(&self, drawing: &mut Drawing, x: Scale, (middle, pitch): (f64, f64)) {
        let half = 0.36 * pitch;
        let bar = |from: f64, to: f64, half: f64| {
            (
                Place { x: x.place(from), y: middle - half },
                Place { x: x.place(to), y: middle + half },
            )
        };
        let (paint, hatching) = (self.ending.paint(), self.ending.hatching());
        drawing.element("g").tip(&self.tip()).open();
        if self.waited().is_some() {
            let corners = bar(self.begins(), self.sent_s, 0.4 * half);
            draw_surface(drawing, corners, (Paint::Frame, 0.5, None), None);
        }
        let first = self.first_s.unwrap_or(self.ended_s);
        draw_surface(drawing, bar(self.sent_s, first, half), (paint, WAITING, None), None);
        if self.first_s.is_some() {
            let corners = bar(first, self.ended_s, half);
            draw_surface(drawing, corners, (paint, 1.0, hatching), None);
        }
        self.ending.draw_end(drawing, Place { x: x.place(self.ended_s), y: middle });
        // A short bar is hard to point at.
        let whole = bar(self.begins(), self.ended_s, 0.5 * pitch);
        drawing.element("rect").corners(whole.0, whole.1).unseen().end();
        drawing.close_group();
    }

    fn tip(&self) -> String {
        let first = self.first_s.map_or_else(
            || "no token".to_owned(),
            |first| format!("first token after {}", fmt::seconds(first - self.sent_s)),
        );
        let waited = self.waited().map(|waited| format!("sent {} late", fmt::seconds(waited)));
        fmt::joined(&[
            self.label.clone(),
            self.ending.name().to_owned(),
            waited.unwrap_or_default(),
            format!("sent at {}", fmt::seconds(self.sent_s)),
            first,
            format!("ended after {}", fmt::seconds(self.ended_s - self.sent_s)),
            self.note.clone(),
        ])
    }
}
