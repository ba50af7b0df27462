//! What all charts have around them: title, finding, legend, and what they are made of.

use super::lettering::{FINDING, NAME, TICK, TITLE};
use super::marks::Look;
use super::palette::Paint;
use super::plot::GanttEnding;
use super::svg::{Anchor, Drawing, Hatching, Place};
use super::{Chart, Theme};

/// A drawing that grows downwards.
#[derive(Debug)]
pub(super) struct Canvas {
    pub(super) drawing: Drawing,
    /// What is above is taken.
    pub(super) top: f64,
}

/// The rectangle in which values are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// One thing of a legend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) swatch: Swatch,
    /// The series that it stands for, which readers can hide.
    pub(super) series: Option<String>,
}

/// What stands before a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Swatch {
    Line(Look),
    Mark(Look),
    Surface {
        paint: Paint,
        strength: f64,
        hatching: Option<Hatching>,
    },
    /// How a request ended.
    Ending(GanttEnding),
}

pub(super) const WIDTH: f64 = 800.0;
pub(super) const MARGIN: f64 = 24.0;
/// The right edge of everything.
pub(super) const RIGHT: f64 = WIDTH - MARGIN;
const LINES_MAX: usize = 2;
const SWATCH_WIDTH: f64 = 24.0;
const LEGEND_ROW: f64 = 22.0;

impl Canvas {
    /// Begins with title and finding, which a page prints itself: its letters do not shrink with
    /// the picture.
    pub(super) fn begin(chart: &Chart, theme: Theme) -> Self {
        let mut canvas = Self { drawing: Drawing::new(&chart.id, theme), top: 4.0 };
        if theme.is_within_page() {
            return canvas;
        }
        canvas.top += 10.0;
        for (letters, text) in [(TITLE, &chart.title), (FINDING, &chart.finding)] {
            for line in letters.wrapped(text, RIGHT - MARGIN, LINES_MAX) {
                canvas.top += letters.size * 1.35;
                canvas.drawing.text(Place { x: MARGIN, y: canvas.top }, letters, &line);
            }
            canvas.top += 4.0;
        }
        canvas.top += 14.0;
        canvas
    }

    /// Ends with what the chart is made of, which a page prints itself.
    pub(super) fn finish(mut self, chart: &Chart, theme: Theme) -> String {
        if !theme.is_within_page() {
            self.top += 4.0;
            let letters = TICK.anchored(Anchor::Start);
            for line in letters.wrapped(&chart.n, RIGHT - MARGIN, LINES_MAX) {
                self.top += letters.size * 1.4;
                self.drawing.text(Place { x: MARGIN, y: self.top }, letters, &line);
            }
            self.top += 16.0;
        }
        self.drawing.document((WIDTH, self.top.ceil()), &chart.title, &chart.finding)
    }

    /// A rectangle of this height below all that is drawn, which is then taken.
    pub(super) fn area(&mut self, (left, right): (f64, f64), height: f64) -> Area {
        let area = Area { left, right, top: self.top, bottom: self.top + height };
        self.top = area.bottom;
        area
    }

    /// Words where there is nothing to draw.
    pub(super) fn nothing(&mut self, words: &str) {
        let area = self.area((MARGIN, RIGHT), 80.0);
        let middle = Place { x: area.middle_x(), y: area.middle_y() };
        self.drawing.text(middle, FINDING.anchored(Anchor::Middle), words);
    }

    /// The names of series, each with its look.
    pub(super) fn legend_of(&mut self, names: &[&str], swatch: fn(Look) -> Swatch) {
        let entry = |(place, name): (usize, &&str)| Entry::series(*name, swatch(Look::at(place)));
        let entries: Vec<Entry> = names.iter().enumerate().map(entry).collect();
        self.legend(&entries);
    }

    /// Names beside each other, in as many rows as they need.
    pub(super) fn legend(&mut self, entries: &[Entry]) {
        const BETWEEN: f64 = 18.0;
        if entries.is_empty() {
            return;
        }
        let mut x = MARGIN;
        self.top += 6.0;
        for entry in entries {
            let name = NAME.shortened(&entry.name, (RIGHT - MARGIN) / 2.0);
            let width = SWATCH_WIDTH + NAME.width(&name);
            if MARGIN < x && RIGHT < x + width {
                x = MARGIN;
                self.top += LEGEND_ROW;
            }
            let at = Place { x, y: self.top };
            let group = self.drawing.element("g").word("class", "legend");
            match &entry.series {
                Some(series) => group.word("data-series", series).open(),
                None => group.open(),
            }
            entry.swatch.draw(&mut self.drawing, at);
            let text = Place { x: x + SWATCH_WIDTH, y: at.y + 4.5 };
            self.drawing.short_text(text, NAME, (&name, &entry.name));
            self.drawing.close_group();
            x += width + BETWEEN;
        }
        self.top += LEGEND_ROW;
    }
}

impl Entry {
    pub(super) fn series(name: impl Into<String>, swatch: Swatch) -> Self {
        let name = name.into();
        Self { series: Some(name.clone()), name, swatch }
    }

    /// What a look means that is no series.
    pub(super) fn key(name: impl Into<String>, swatch: Swatch) -> Self {
        Self { name: name.into(), swatch, series: None }
    }
}

impl Area {
    pub(super) fn middle_x(&self) -> f64 {
        f64::midpoint(self.left, self.right)
    }

    pub(super) fn middle_y(&self) -> f64 {
        f64::midpoint(self.top, self.bottom)
    }
}

impl Swatch {
    /// In the 18 pixels right of `at`.
    pub(super) fn draw(self, drawing: &mut Drawing, at: Place) {
        let right = |dx: f64| Place { x: at.x + dx, ..at };
        match self {
            Self::Line(look) => {
                look.draw_line(drawing, &[at, right(18.0)]);
                look.draw_mark(drawing, right(9.0), false, None);
            }
            Self::Mark(look) => look.draw_mark(drawing, right(9.0), false, None),
            Self::Ending(ending) => ending.draw_swatch(drawing, at),
            Self::Surface { paint, strength, hatching } => {
                let corners =
                    (Place { y: at.y - 6.0, ..at }, Place { x: at.x + 18.0, y: at.y + 6.0 });
                draw_surface(drawing, corners, (paint, strength, hatching), None);
            }
        }
    }
}

/// A rectangle in a colour of some strength, hatched where it is to be told apart without colour.
pub(super) fn draw_surface(
    drawing: &mut Drawing,
    corners: (Place, Place),
    (paint, strength, hatching): (Paint, f64, Option<Hatching>),
    tip: Option<&str>,
) {
    let over = hatching.map(|hatching| drawing.hatching(hatching, Paint::Surface));
    let mut element = drawing.element("rect").corners(corners.0, corners.1).paint("fill", paint);
    if strength < 1.0 {
        element = element.word("fill-opacity", &format!("{strength:.2}"));
    }
    match tip {
        Some(tip) => element.tip(tip).end(),
        None => element.end(),
    }
    if let Some(over) = over {
        let element = drawing.element("rect").corners(corners.0, corners.1).word("fill", &over);
        element.word("pointer-events", "none").end();
    }
}
