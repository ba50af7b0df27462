//! The drawing of charts: a few SVG elements with everything escaped, texts whose widths are estimated,
//! axes, the looks of series, the legend, and the colours.
//!
//! Colours of series follow those of Okabe and Ito, darkened or lightened until each stands out
//! from its ground. Nothing is shown by colour alone: shapes, dashes and hatching show it too.

use std::fmt::Write;

use super::{Chart, GanttEnding, Measure, ScaleKind, Theme, sorted};
use crate::escape;
use crate::fmt::{self, Join, number, power_of_ten};

pub(super) const MARGIN: f64 = 24.0;
/// The width of a drawing, and of one for a phone, whose letters must not shrink.
const WIDTH: f64 = 800.0;
const NARROW_WIDTH: f64 = 408.0;
/// The most lines of the title, of the finding and of the footnote.
const LINES_MAX: usize = 2;
/// Radius of a mark.
pub(super) const RADIUS: f64 = 4.5;

/// A point in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

pub(super) const fn xy(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) const fn new((left, right): (f64, f64), (top, bottom): (f64, f64)) -> Self {
        Self { left, right, top, bottom }
    }

    pub(super) fn middle(&self) -> Point {
        xy(f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom))
    }
}

/// Where a text stands against its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks. The fonts of others cannot be measured here, so widths are those of a wide font
/// and never too small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letters {
    pub(super) size: f64,
    bold: bool,
    paint: Paint,
    anchor: Anchor,
}

pub(super) const fn letters(size: f64, bold: bool, paint: Paint, anchor: Anchor) -> Letters {
    Letters { size, bold, paint, anchor }
}

const TITLE: Letters = letters(19.0, true, Paint::Ink, Anchor::Start);
const FINDING: Letters = letters(14.0, false, Paint::InkSoft, Anchor::Start);
pub(super) const HEADING: Letters = letters(14.0, true, Paint::Ink, Anchor::Start);
pub(super) const NAME: Letters = letters(13.0, false, Paint::Ink, Anchor::Start);
pub(super) const TICK: Letters = letters(12.0, false, Paint::InkSoft, Anchor::Middle);
pub(super) const LABEL: Letters = letters(13.0, false, Paint::InkSoft, Anchor::Middle);

impl Letters {
    pub(super) const fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(super) const fn is_bold(self) -> bool {
        self.bold
    }

    pub(super) const fn anchor(self) -> Anchor {
        self.anchor
    }

    pub(super) const fn paint(self) -> Paint {
        self.paint
    }

    pub(super) const fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    pub(super) fn width(&self, text: &str) -> f64 {
        let ems = |character: char| {
            let ems = match character {
                'i' | 'j' | 'l' | '|' | '\'' | '!' => 0.32,
                ' ' | '.' | ',' | ':' | ';' | 'I' | '·' => 0.36,
                'f' | 't' | 'r' | '(' | ')' | '/' | '-' => 0.43,
                'm' | 'M' | 'w' | 'W' | '%' | '@' | '…' | '—' => 0.99,
                'A'..='Z' | '–' => 0.72,
                // Wide scripts and pictures.
                '\u{1100}'.. => 1.05,
                _ => 0.64,
            };
            if self.bold { ems * 1.12 } else { ems }
        };
        text.chars().map(ems).sum::<f64>() * self.size
    }

    /// The width of the widest text.
    pub(super) fn widest<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> f64 {
        texts.into_iter().map(|text| self.width(text)).fold(0.0, f64::max)
    }

    /// The text itself, or as much of it as fits with an ellipsis.
    pub(super) fn shortened(&self, text: &str, width: f64) -> String {
        if self.width(text) <= width {
            return text.to_owned();
        }
        let room = width - self.width("…");
        let mut used = 0.0;
        let fits = |character: &char| {
            used += self.width(character.encode_utf8(&mut [0; 4]));
            used <= room
        };
        let kept: String = text.chars().take_while(fits).collect();
        format!("{}…", kept.trim_end())
    }

    /// At most `lines_max` lines between words; what does not fit the last is shortened.
    pub(super) fn wrapped(&self, text: &str, width: f64, lines_max: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let count = lines.len();
            match lines.last_mut() {
                Some(line)
                    if count == lines_max || self.width(&format!("{line} {word}")) <= width =>
                {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.iter().map(|line| self.shortened(line, width)).collect()
    }
}

/// Lines over a surface, so that surfaces are told apart without colour: a name, and the path in a
/// square of six pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hatching(&'static str, &'static str);

pub(super) const HATCHINGS: [Hatching; 6] = [
    Hatching("rising", "M-1 1L1 -1M0 6L6 0M5 7L7 5"),
    Hatching("falling", "M-1 5L1 7M0 0L6 6M5 -1L7 1"),
    Hatching("dots", "M1.5 1.5h.01M4.5 4.5h.01"),
    Hatching("upright", "M3 0V6"),
    Hatching("level", "M0 3H6"),
    Hatching("crossed", "M0 6L6 0M0 0L6 6"),
];

/// How a surface is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fill {
    pub(super) paint: Paint,
    pub(super) strength: f64,
    pub(super) hatching: Option<Hatching>,
}

impl Fill {
    pub(super) const fn solid(paint: Paint) -> Self {
        Self { paint, strength: 1.0, hatching: None }
    }
}

/// A drawing in the making, which grows downwards.
#[derive(Debug)]
pub(super) struct Canvas {
    body: String,
    theme: Theme,
    /// Before the names of its patterns, because a page holds many charts.
    id: String,
    hatchings: Vec<Hatching>,
    width: f64,
    /// What is above is taken.
    pub(super) top: f64,
}

impl Canvas {
    /// Begins with title and finding, which a page prints itself: its letters do not shrink with
    /// the picture.
    pub(super) fn new(chart: &Chart, theme: Theme, narrow: bool) -> Self {
        let (body, hatchings) = (String::new(), Vec::new());
        let width = if narrow { NARROW_WIDTH } else { WIDTH };
        let mut canvas = Self { body, theme, id: chart.id.clone(), hatchings, width, top: 4.0 };
        if canvas.is_within_page() {
            return canvas;
        }
        canvas.top += 10.0;
        for (letters, text) in [(TITLE, &chart.title), (FINDING, &chart.finding)] {
            canvas.paragraph(letters, 1.35, text);
            canvas.top += 4.0;
        }
        canvas.top += 14.0;
        canvas
    }

    /// Whether the words around a picture are the page's, and the colours its variables.
    pub(super) const fn is_within_page(&self) -> bool {
        matches!(self.theme, Theme::Page | Theme::Site)
    }

    /// The right edge of everything.
    pub(super) const fn right(&self) -> f64 {
        self.width - MARGIN
    }

    fn is_narrow(&self) -> bool {
        self.width < WIDTH
    }

    /// The room for labels left of an area, no more than a third of what there is.
    pub(super) fn label_room(&self, wanted: f64) -> f64 {
        wanted.min((self.width - 2.0 * MARGIN) / 3.0)
    }

    fn paragraph(&mut self, letters: Letters, spacing: f64, text: &str) {
        for line in letters.wrapped(text, self.right() - MARGIN, LINES_MAX) {
            self.top += letters.size * spacing;
            self.text(xy(MARGIN, self.top), letters, &line);
        }
    }

    /// The whole document, with a description for those who do not see it. It ends with what the
    /// chart is made of, which a page prints itself.
    pub(super) fn finish(mut self, chart: &Chart) -> String {
        if !self.is_within_page() {
            self.top += 4.0;
            self.paragraph(TICK.anchored(Anchor::Start), 1.4, &chart.n);
            self.top += 16.0;
        }
        let (width, height) = (pixels(self.width), pixels(self.top.ceil()));
        // A phone has no room for margins.
        let (class, cropped) =
            if self.is_narrow() { ("chart narrow", MARGIN - 6.0) } else { ("chart", 0.0) };
        let (from, shown) = (pixels(cropped), pixels(self.width - 2.0 * cropped));
        let surface = Paint::Surface.value(self.theme);
        // On a page the width is that of its column, and the ground is the page's own.
        let (size, ground) = if self.is_within_page() {
            (String::new(), String::new())
        } else {
            let size = format!(" width=\"{width}\" height=\"{height}\"");
            let ground = format!("<rect{size} fill=\"{surface}\"/>\n");
            (size, ground)
        };
        let mut definitions = String::new();
        for (number, Hatching(name, path)) in self.hatchings.iter().enumerate() {
            let thickness = if *name == "dots" { "1.8" } else { "1.4" };
            let id = escape::xml(&format!("{}-{name}-{number}", self.id));
            let _ = writeln!(
                definitions,
                "<pattern id=\"{id}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                 <path d=\"{path}\" fill=\"none\" stroke=\"{surface}\" stroke-width=\"{thickness}\" \
                 stroke-linecap=\"round\"/></pattern>",
            );
        }
        if !definitions.is_empty() {
            definitions = format!("<defs>\n{definitions}</defs>\n");
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\"{size} \
             viewBox=\"{from} 0 {shown} {height}\" role=\"img\" \
             font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{definitions}{ground}{}</svg>\n",
            escape::xml(&chart.title),
            escape::xml(&chart.finding),
            self.body,
        )
    }

    /// A rectangle of this height below all that is drawn, which is then taken.
    pub(super) fn area(&mut self, sides: (f64, f64), height: f64) -> Area {
        let area = Area::new(sides, (self.top, self.top + height));
        self.top = area.bottom;
        area
    }

    /// A text where there is nothing to draw.
    pub(super) fn nothing(&mut self, text: &str) {
        let area = self.area((MARGIN, self.right()), 80.0);
        self.text(area.middle(), FINDING.anchored(Anchor::Middle), text);
    }

    /// Begins an element; its attributes follow, then one of the ends.
    pub(super) fn element(&mut self, name: &'static str) -> Element<'_> {
        let _ = write!(self.body, "<{name}");
        Element { canvas: self, name, title: None }
    }

    pub(super) fn circle(&mut self, at: Point, radius: f64) -> Element<'_> {
        self.element("circle").number("cx", at.x).number("cy", at.y).number("r", radius)
    }

    /// Opposite sides in any order.
    pub(super) fn rectangle(&mut self, area: Area) -> Element<'_> {
        self.element("rect")
            .number("x", area.left.min(area.right))
            .number("y", area.top.min(area.bottom))
            .number("width", (area.left - area.right).abs())
            .number("height", (area.top - area.bottom).abs())
    }

    pub(super) fn stroke(&mut self, from: Point, to: Point, paint: Paint) -> Element<'_> {
        let line = self.element("line").number("x1", from.x).number("y1", from.y);
        line.number("x2", to.x).number("y2", to.y).paint("stroke", paint)
    }

    /// A `polyline` or `polygon`.
    pub(super) fn path(&mut self, name: &'static str, points: &[Point]) -> Element<'_> {
        let points = points.iter().map(|at| format!("{},{}", pixels(at.x), pixels(at.y)));
        self.element(name).set("points", &points.join(" "))
    }

    /// What belongs to a series, and can be hidden with it.
    pub(super) fn series(&mut self, name: &str, draw: impl FnOnce(&mut Self)) {
        self.element("g").set("class", "series").set("data-series", name).open();
        draw(self);
        self.close_group();
    }

    /// Begins what is drawn between two axes. The script of a page moves it when a reader zooms: the
    /// attributes have the scales and the area. Without an axis of load, that way is not zoomed.
    pub(super) fn open_panel(&mut self, area: Area, x: Option<&Axis>, y: &Axis) {
        let is_zoomed = self.theme == Theme::Page;
        let sides = [area.left, area.top, area.right, area.bottom].map(pixels).join(" ");
        let group = self.element("g").set("class", "panel");
        let group = if is_zoomed { group.set("data-area", &sides) } else { group };
        let group = if is_zoomed { group.set("data-y", &y.data()) } else { group };
        match x.filter(|_| is_zoomed) {
            Some(x) => group.set("data-x", &x.data()).open(),
            None => group.open(),
        }
    }

    /// Begins the ticks of an axis, which change when a reader zooms.
    fn open_ticks(&mut self, class: &str) {
        self.element("g").set("class", class).open();
    }

    /// Ends the group that was begun last.
    pub(super) fn close_group(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub(super) fn text(&mut self, at: Point, letters: Letters, text: &str) {
        self.titled_text(at, letters, text, text);
    }

    /// A text of no more than this width; where it is shortened, it has its whole as a title.
    pub(super) fn fitted_text(&mut self, at: Point, letters: Letters, text: &str, width: f64) {
        self.titled_text(at, letters, &letters.shortened(text, width), text);
    }

    pub(super) fn titled_text(&mut self, at: Point, letters: Letters, text: &str, whole: &str) {
        let element = self.element("text").number("x", at.x).number("y", at.y);
        let mut element = element.number("font-size", letters.size).paint("fill", letters.paint);
        if letters.bold {
            element = element.set("font-weight", "600");
        }
        let element = match letters.anchor {
            Anchor::Start => element,
            Anchor::Middle => element.set("text-anchor", "middle"),
            Anchor::End => element.set("text-anchor", "end"),
        };
        element.hold((text != whole).then_some(whole), text);
    }

    /// A heading and a label in one line, however wide the heading is; either may be empty.
    pub(super) fn heading(&mut self, at: Point, heading: &str, label: &str) {
        let room = self.right() - MARGIN;
        let short = HEADING.shortened(heading, 0.6 * room);
        let label = LABEL.shortened(label, room - HEADING.width(&short) - 20.0);
        self.element("text").number("x", at.x).number("y", at.y).open();
        if !heading.is_empty() {
            let run = self.element("tspan").number("font-size", HEADING.size);
            let run = run.set("font-weight", "600").paint("fill", HEADING.paint);
            run.hold((short != heading).then_some(heading), &short);
        }
        if !label.is_empty() {
            let run = self.element("tspan").number("font-size", LABEL.size);
            let run = if heading.is_empty() { run } else { run.number("dx", 10.0) };
            run.paint("fill", LABEL.paint).hold(None, &label);
        }
        self.body.push_str("</text>\n");
    }

    /// A rectangle, hatched where it is to be told apart without colour. An empty tip is none.
    pub(super) fn surface(&mut self, area: Area, fill: Fill, tip: &str) {
        let mut element = self.rectangle(area).paint("fill", fill.paint);
        if fill.strength < 1.0 {
            element = element.set("fill-opacity", &fmt::fixed(fill.strength, 2));
        }
        element.tip(tip).end();
        let Some(hatching) = fill.hatching else { return };
        if !self.hatchings.contains(&hatching) {
            self.hatchings.push(hatching);
        }
        let number = self.hatchings.iter().position(|known| *known == hatching).unwrap_or_default();
        let pattern = format!("url(#{}-{}-{number})", self.id, hatching.0);
        self.rectangle(area).set("fill", &pattern).set("pointer-events", "none").end();
    }

    /// A line from `from` to `to` with a bar across each end: where a value lies with confidence.
    pub(super) fn interval(&mut self, from: Point, to: Point, paint: Paint) {
        const HALF_BAR: f64 = 4.0;
        let (wide, high) = ((from.x - to.x).abs(), (from.y - to.y).abs());
        // Narrower than the line that would show it.
        if wide.max(high) < 1.0 {
            return;
        }
        let (dx, dy) = if wide < high { (HALF_BAR, 0.0) } else { (0.0, HALF_BAR) };
        let across = |at: Point| (xy(at.x - dx, at.y - dy), xy(at.x + dx, at.y + dy));
        self.stroke(from, to, paint).end();
        for (from, to) in [across(from), across(to)] {
            self.stroke(from, to, paint).set("class", "cap").end();
        }
    }

    /// Where something was tried and failed.
    pub(super) fn cross(&mut self, at: Point) {
        const REACH: f64 = 4.0;
        for slope in [REACH, -REACH] {
            let (from, to) = (xy(at.x - REACH, at.y - slope), xy(at.x + REACH, at.y + slope));
            self.stroke(from, to, Paint::Bad).set("stroke-width", "2").end();
        }
    }

    /// The names of series, each with its look.
    pub(super) fn series_legend(&mut self, names: &[&str], swatch: fn(Look) -> Swatch) {
        let entry = |(index, name): (usize, &&str)| Entry::series(*name, swatch(Look::new(index)));
        self.legend(names.iter().enumerate().map(entry).collect());
    }

    /// Names beside each other, in as many rows as they need.
    pub(super) fn legend(&mut self, entries: Vec<Entry>) {
        const BETWEEN: f64 = 18.0;
        const SWATCH_WIDTH: f64 = 24.0;
        const ROW: f64 = 22.0;
        if entries.is_empty() {
            return;
        }
        let mut x = MARGIN;
        self.top += 6.0;
        for entry in entries {
            let name = NAME.shortened(&entry.name, (self.right() - MARGIN) / 2.0);
            let width = SWATCH_WIDTH + NAME.width(&name);
            if MARGIN < x && self.right() < x + width {
                x = MARGIN;
                self.top += ROW;
            }
            let group = self.element("g").set("class", "legend");
            match &entry.series {
                Some(series) => group.set("data-series", series).open(),
                None => group.open(),
            }
            entry.swatch.draw(self, xy(x, self.top));
            self.titled_text(xy(x + SWATCH_WIDTH, self.top + 4.5), NAME, &name, &entry.name);
            self.close_group();
            x += width + BETWEEN;
        }
        self.top += ROW;
    }
}

/// An element whose attributes are being written.
#[derive(Debug)]
pub(super) struct Element<'a> {
    canvas: &'a mut Canvas,
    name: &'static str,
    /// What a browser shows by itself to whoever points at it.
    title: Option<String>,
}

impl Element<'_> {
    pub(super) fn number(self, key: &str, value: f64) -> Self {
        self.set(key, &pixels(value))
    }

    pub(super) fn set(self, key: &str, value: &str) -> Self {
        let _ = write!(self.canvas.body, " {key}=\"{}\"", escape::xml(value));
        self
    }

    pub(super) fn paint(self, key: &str, paint: Paint) -> Self {
        let value = paint.value(self.canvas.theme);
        self.set(key, &value)
    }

    /// Makes it a mark that says `text` to whoever points at it, unless that is empty.
    pub(super) fn tip(self, text: &str) -> Self {
        if text.is_empty() {
            return self;
        }
        if self.canvas.theme == Theme::Site {
            return Self { title: Some(escape::xml(text)), ..self };
        }
        self.set("class", "mark").set("data-tip", text)
    }

    /// Not seen, and yet pointed at.
    pub(super) fn unseen(self) -> Self {
        self.set("fill", "none").set("pointer-events", "all")
    }

    pub(super) fn end(self) {
        let body = &mut self.canvas.body;
        match self.title {
            Some(title) => {
                let _ = writeln!(body, "><title>{title}</title></{}>", self.name);
            }
            None => body.push_str("/>\n"),
        }
    }

    /// Leaves it open for elements inside.
    pub(super) fn open(self) {
        self.canvas.body.push_str(">\n");
    }

    fn hold(self, title: Option<&str>, text: &str) {
        let body = &mut self.canvas.body;
        body.push('>');
        if let Some(title) = title {
            let _ = write!(body, "<title>{}</title>", escape::xml(title));
        }
        let _ = writeln!(body, "{}</{}>", escape::xml(text), self.name);
    }
}

/// A tenth of a pixel is finer than anyone sees.
pub(super) fn pixels(value: f64) -> String {
    let text = fmt::fixed(if value.is_finite() { value } else { 0.0 }, 1);
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// One thing of a legend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The series that it stands for, which readers can hide.
    series: Option<String>,
    swatch: Swatch,
}

impl Entry {
    pub(super) fn series(name: impl Into<String>, swatch: Swatch) -> Self {
        let name = name.into();
        Self { series: Some(name.clone()), name, swatch }
    }

    /// What a look means that is no series.
    pub(super) fn key(name: impl Into<String>, fill: Fill) -> Self {
        Self { name: name.into(), swatch: Swatch::Surface(fill), series: None }
    }
}

/// What stands before a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Swatch {
    Line(Look),
    Mark(Look),
    Surface(Fill),
    /// How a request ended.
    Ending(GanttEnding),
}

impl Swatch {
    /// In the 18 pixels right of `at`.
    pub(super) fn draw(self, canvas: &mut Canvas, at: Point) {
        let right = |dx: f64| xy(at.x + dx, at.y);
        match self {
            Self::Line(look) => {
                look.draw_line(canvas, &[at, right(18.0)]);
                look.draw_mark(canvas, right(9.0), false, "");
            }
            Self::Mark(look) => look.draw_mark(canvas, right(9.0), false, ""),
            Self::Surface(fill) => {
                let area = Area::new((at.x, at.x + 18.0), (at.y - 6.0, at.y + 6.0));
                canvas.surface(area, fill, "");
            }
            Self::Ending(ending) => {
                let area = Area::new((at.x, at.x + 13.0), (at.y - 5.0, at.y + 5.0));
                canvas.surface(area, ending.fill(), "");
                ending.draw_end(canvas, right(13.0));
            }
        }
    }
}

/// How a series looks, by its index among all of a chart: by colour, shape, dashes and hatching, so
/// that a print without colour still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    index: usize,
    dashes: &'static str,
}

const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "12 4"];
/// The corners of marks in radii; without corners it is a circle.
const SHAPES: [&[(f64, f64)]; 7] = [
    &[],
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.25), (1.2, 0.95), (-1.2, 0.95)],
    &[(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)],
    &[(0.0, 1.25), (1.2, -0.95), (-1.2, -0.95)],
    &[
        (0.0, -1.5),
        (0.45, -0.45),
        (1.5, 0.0),
        (0.45, 0.45),
        (0.0, 1.5),
        (-0.45, 0.45),
        (-1.5, 0.0),
        (-0.45, -0.45),
    ],
    &[(0.0, -1.2), (1.15, -0.35), (0.7, 1.0), (-0.7, 1.0), (-1.15, -0.35)],
];

impl Look {
    pub(super) const fn new(index: usize) -> Self {
        Self { index, dashes: DASHES[index % DASHES.len()] }
    }

    /// The look of the series of this name among the distinct ones of a chart; a line that is alone in
    /// its panel needs no dashes.
    pub(super) fn in_panel(name: &str, names: &[&str], series: usize) -> Self {
        let look = Self::new(names.iter().position(|known| *known == name).unwrap_or_default());
        if series < 2 { Self { dashes: "", ..look } } else { look }
    }

    pub(super) const fn paint(self) -> Paint {
        Paint::Series(self.index)
    }

    /// The first surface is plain.
    pub(super) fn fill(self) -> Fill {
        let index = self.index % (HATCHINGS.len() + 1);
        Fill { hatching: index.checked_sub(1).map(|n| HATCHINGS[n]), ..Fill::solid(self.paint()) }
    }

    pub(super) fn draw_line(self, canvas: &mut Canvas, points: &[Point]) {
        let line = canvas.path("polyline", points).set("fill", "none");
        let line = line.paint("stroke", self.paint()).set("stroke-width", "2");
        let line = line.set("stroke-linejoin", "round");
        match self.dashes {
            "" => line.end(),
            dashes => line.set("stroke-dasharray", dashes).end(),
        }
    }

    /// An outline where it is `hollow`; a mark without a tip is one of a legend.
    pub(super) fn draw_mark(self, canvas: &mut Canvas, at: Point, hollow: bool, tip: &str) {
        let corner = |(x, y): &(f64, f64)| xy(at.x + RADIUS * x, at.y + RADIUS * y);
        let element = match SHAPES[self.index % SHAPES.len()] {
            [] => canvas.circle(at, RADIUS),
            corners => canvas.path("polygon", &corners.iter().map(corner).collect::<Vec<_>>()),
        };
        let element = element.tip(tip);
        // A rim in the colour of the ground keeps marks on a line apart.
        if hollow {
            let outline = element.paint("fill", Paint::Surface).paint("stroke", self.paint());
            outline.set("stroke-width", "2").end();
        } else {
            element.paint("fill", self.paint()).paint("stroke", Paint::Surface).end();
        }
    }
}

/// The height of the labels below an area.
pub(super) const BELOW: f64 = 46.0;
/// Marks stand this far inside the ends of their axis.
pub(super) const INSET: f64 = 12.0;
/// More steps than this would be a grid to count.
const STEPS: f64 = 6.0;
/// Smaller numbers than this one, and larger ones than the next, are written as powers.
const PLAIN_LEAST: f64 = 1e-3;
const PLAIN_MOST: f64 = 1e7;

impl ScaleKind {
    /// Where a value is, in a measure of equal distances.
    fn position(self, value: f64) -> f64 {
        /// Shares nearer to one than this are all of it.
        const REST_LEAST: f64 = 1e-9;
        match self {
            Self::Linear => value,
            Self::Log => libm::log10(value.max(f64::MIN_POSITIVE)),
            Self::Tail => -libm::log10((1.0 - value).clamp(REST_LEAST, 1.0)),
        }
    }

    /// Whether a value has a place: on a logarithmic axis zero has none.
    fn holds(self, value: f64) -> bool {
        value.is_finite() && (self != Self::Log || 0.0 < value)
    }
}

impl Measure {
    /// Such as `time to first token (ms)`.
    pub(super) fn title(&self) -> String {
        if self.unit.is_empty() || self.label.is_empty() {
            format!("{}{}", self.label, self.unit)
        } else {
            format!("{} ({})", self.label, self.unit)
        }
    }
}

/// The values of an axis and where they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    kind: ScaleKind,
    /// The values at both ends.
    ends: (f64, f64),
    /// The values that have a label, rising.
    pub(super) named: Vec<(f64, String)>,
    /// Where the ends are drawn.
    pixels: (f64, f64),
}

impl Axis {
    pub(super) const fn new(kind: ScaleKind, ends: (f64, f64), named: Vec<(f64, String)>) -> Self {
        Self { kind, ends, named, pixels: (0.0, 1.0) }
    }

    /// Round values around all others; a linear axis has zero among them.
    pub(super) fn round(kind: ScaleKind, values: &[f64]) -> Self {
        if kind == ScaleKind::Log {
            return Self::logarithmic(values);
        }
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
        let low = if (high - low).is_finite() { low } else { 0.0 };
        let high = if low < high { high } else { 1.0 };
        let step = round_step((high - low) / STEPS);
        // A value that is a round one must not need a step more for the sake of its last digit.
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        Self::new(kind, (first * step, last * step), stepped(step, first, last - first))
    }

    /// With a label at each of the values.
    pub(super) fn at_values(kind: ScaleKind, values: &[f64]) -> Self {
        let values = sorted(values.iter().copied().filter(|value| kind.holds(*value)));
        let (Some(first), Some(last)) = (values.first().copied(), values.last().copied()) else {
            return Self::round(kind, &[]);
        };
        let ends = match kind {
            ScaleKind::Log if first < last => (first, last),
            ScaleKind::Log => (first / 2.0, last * 2.0),
            ScaleKind::Linear | ScaleKind::Tail => (0.0, last),
        };
        Self::new(kind, ends, values.into_iter().map(|value| (value, measured(value))).collect())
    }

    /// Between two moments, with round ones between.
    pub(super) fn between(from: f64, to: f64) -> Self {
        let to = if from < to { to } else { from + 1.0 };
        let step = round_step((to - from) / STEPS);
        let first = (from / step).ceil();
        let count = ((to / step).floor() - first).clamp(0.0, 2.0 * STEPS);
        Self::new(ScaleKind::Linear, (from, to), stepped(step, first, count))
    }

    /// Between two moments, and from zero where the first of them is near it.
    pub(super) fn of_time(from: f64, to: f64) -> Self {
        /// As a share of what is drawn.
        const NEAR: f64 = 0.2;
        let is_near = 0.0 < from && from < NEAR * (to - from);
        Self::between(if is_near { 0.0 } else { from }, to)
    }

    /// From the lowest to the highest of these values and no further, with round ones between.
    pub(super) fn within(kind: ScaleKind, values: &[f64]) -> Self {
        /// Fewer than these say too little about an axis.
        const NAMED_MIN: usize = 3;
        let on_axis = || values.iter().copied().filter(|value| kind.holds(*value));
        let ends = on_axis().reduce(f64::min).zip(on_axis().reduce(f64::max));
        let Some(ends) = ends.filter(|(low, high)| low < high) else {
            return Self::round(kind, values);
        };
        let mut named = match kind {
            ScaleKind::Log => Self::logarithmic(values).named,
            ScaleKind::Linear | ScaleKind::Tail => Vec::new(),
        };
        named.retain(|(value, _)| (ends.0..=ends.1).contains(value));
        if named.len() < NAMED_MIN {
            named = Self::between(ends.0, ends.1).named;
        }
        Self::new(kind, ends, named)
    }

    /// Percentiles up to the first round one that holds all shares below one.
    pub(super) fn percentiles(shares: &[f64]) -> Self {
        const ROUND: [f64; 9] = [0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];
        /// Above the last percentile, for the greatest value of all.
        const HEAD_ROOM: f64 = 0.25;
        let below_one = shares.iter().copied().filter(|share| *share < 1.0);
        let highest = below_one.fold(0.99, f64::max);
        let last = ROUND.iter().position(|tick| highest <= tick + 1e-12).unwrap_or(ROUND.len() - 1);
        let label = |share: &f64| (*share, format!("{} %", fmt::setting(share * 100.0)));
        let mut named: Vec<(f64, String)> = ROUND[..=last].iter().map(label).collect();
        let mut end = ROUND[last];
        if shares.iter().any(|share| 1.0 <= *share) {
            end = 1.0 - (1.0 - end) * libm::pow(10.0, -HEAD_ROOM);
            named.push((1.0, "max".to_owned()));
        }
        Self::new(ScaleKind::Tail, (0.0, end), named)
    }

    /// From the round value below all others to the one above them. Where many powers of ten lie
    /// between, only powers are named.
    fn logarithmic(values: &[f64]) -> Self {
        const FACTORS: [f64; 3] = [1.0, 2.0, 5.0];
        /// Powers of ten between which 2 and 5 are named too.
        const FEW: f64 = 2.8;
        let positive = || values.iter().copied().filter(|value| ScaleKind::Log.holds(*value));
        let low = positive().reduce(f64::min).unwrap_or(1.0);
        let high = positive().reduce(f64::max).unwrap_or(10.0);
        let (lowest, highest) = (libm::log10(low), libm::log10(high));
        let first_power = lowest.floor() - 1.0;
        let round: Vec<(f64, f64)> = whole_numbers(highest.ceil() - first_power + 1.0)
            .map(|n| first_power + n)
            .flat_map(|power| FACTORS.map(|factor| (factor * libm::exp10(power), power)))
            .collect();
        let near = 1.0 + 1e-9;
        let first = round.iter().rposition(|(value, _)| *value <= low * near).unwrap_or(0);
        let last = round.iter().position(|(value, _)| high <= *value * near);
        let last = last.unwrap_or(round.len() - 1);
        // All values equal: a step to each side, so that they stand in the middle.
        let (first, last) =
            if first < last { (first, last) } else { (first.saturating_sub(1), last + 1) };
        let kept = &round[first..=last.min(round.len() - 1)];
        let stride = ((highest - lowest) / STEPS).ceil().max(1.0);
        let is_named = |index: usize, power: f64| {
            highest - lowest <= FEW || ((first + index).is_multiple_of(3) && power % stride == 0.0)
        };
        let named = kept
            .iter()
            .enumerate()
            .filter(|(index, (_, power))| is_named(*index, *power))
            .map(|(_, (value, _))| (*value, measured(*value)))
            .collect();
        let ends = (kept.first().map_or(1.0, |end| end.0), kept.last().map_or(10.0, |end| end.0));
        Self::new(ScaleKind::Log, ends, named)
    }

    /// The same axis between these pixels.
    pub(super) fn across(self, pixels: (f64, f64)) -> Self {
        Self { pixels, ..self }
    }

    /// The same axis from the bottom of an area to its top. A mark at the beginning of a logarithmic
    /// axis would lie on the ticks below it, where only zero belongs.
    pub(super) fn upwards(self, area: Area) -> Self {
        let inset = if self.kind == ScaleKind::Log { INSET } else { 0.0 };
        self.across((area.bottom - inset, area.top))
    }

    /// Where a value is drawn: what lies beyond the ends at them, and all in one place where the ends
    /// are equal.
    pub(super) fn place(&self, value: f64) -> f64 {
        let [low, high, at] = [self.ends.0, self.ends.1, value].map(|it| self.kind.position(it));
        let high = if low < high { high } else { low + 1.0 };
        let share = (at - low) / (high - low);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// For the script of a page: the kind of the scale, the values at its ends, and their pixels.
    fn data(&self) -> String {
        let (ends, at) = (self.ends, self.pixels);
        let kind: &str = self.kind.into();
        format!("{kind} {} {} {} {}", ends.0, ends.1, pixels(at.0), pixels(at.1))
    }

    /// Whether a value lies between the ends.
    pub(super) fn holds(&self, value: f64) -> bool {
        self.kind.holds(value) && self.ends.0 <= value && value <= self.ends.1
    }

    /// The room that the labels need left of an area.
    pub(super) fn label_width(&self) -> f64 {
        TICK.widest(self.named.iter().map(|(_, label)| label.as_str())) + 10.0
    }

    /// Ticks below the area, with their labels and what is measured.
    pub(super) fn draw_below(&self, canvas: &mut Canvas, area: Area, label: &str) {
        const BETWEEN_LABELS: f64 = 9.0;
        draw_base(canvas, area);
        canvas.open_ticks("ticks-x");
        let mut free_from = f64::NEG_INFINITY;
        let last = self.named.last().map(|(value, text)| (self.place(*value), TICK.width(text)));
        for (number, (value, text)) in self.named.iter().enumerate() {
            let x = self.place(*value);
            let half_width = TICK.width(text) / 2.0;
            // A label that would touch its neighbour is left out with its tick, which would only ask
            // what it stands for; but not the last, which says where the axis ends.
            let is_last = number + 1 == self.named.len();
            let leaves_last = last.is_none_or(|(end, width)| {
                is_last || x + half_width + BETWEEN_LABELS <= end - width / 2.0
            });
            if free_from <= x - half_width && leaves_last {
                draw_tick(canvas, x, area, text);
                free_from = x + half_width + BETWEEN_LABELS;
            }
        }
        canvas.close_group();
        let label_width = (2.0 * (area.right - area.left)).min(canvas.right() - MARGIN);
        canvas.fitted_text(xy(area.middle().x, area.bottom + 38.0), LABEL, label, label_width);
    }

    /// Labels left of the area, and lines across it.
    pub(super) fn draw_left(&self, canvas: &mut Canvas, area: Area) {
        /// Labels on the left stand at least this far apart.
        const LABEL_HEIGHT: f64 = 15.0;
        let mut free_below = f64::INFINITY;
        canvas.open_ticks("ticks-y");
        for (value, text) in &self.named {
            let y = self.place(*value);
            canvas.stroke(xy(area.left, y), xy(area.right, y), Paint::Grid).end();
            if y <= free_below {
                canvas.text(xy(area.left - 8.0, y + 4.0), TICK.anchored(Anchor::End), text);
                free_below = y - LABEL_HEIGHT;
            }
        }
        canvas.close_group();
    }

    /// Lines from top to bottom, where values lie beside each other.
    pub(super) fn draw_upright_grid(&self, canvas: &mut Canvas, area: Area) {
        canvas.open_ticks("grid-x");
        for (value, _) in &self.named {
            let x = self.place(*value);
            canvas.stroke(xy(x, area.top), xy(x, area.bottom), Paint::Grid).end();
        }
        canvas.close_group();
    }
}

/// The line at the bottom of an area.
pub(super) fn draw_base(canvas: &mut Canvas, area: Area) {
    let (from, to) = (xy(area.left, area.bottom), xy(area.right, area.bottom));
    canvas.stroke(from, to, Paint::Frame).end();
}

/// A tick below an area, with its label.
pub(super) fn draw_tick(canvas: &mut Canvas, x: f64, area: Area, label: &str) {
    canvas.stroke(xy(x, area.bottom), xy(x, area.bottom + 5.0), Paint::Frame).end();
    canvas.text(xy(x, area.bottom + 19.0), TICK, label);
}

/// 0, 1, 2 up to `last`, which is small.
fn whole_numbers(last: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(0.0), |n| Some(n + 1.0)).take_while(move |n| *n <= last)
}

/// Labelled values: `count` steps from the step `first`, with as many decimals as the step needs.
fn stepped(step: f64, first: f64, count: f64) -> Vec<(f64, String)> {
    let is_whole = |decimals: &usize| {
        let shifted = step * libm::exp10(*decimals as f64);
        (shifted - shifted.round()).abs() < 1e-6
    };
    let decimals = (0..5_usize).find(is_whole).unwrap_or(5);
    let label = |value: f64| match value {
        0.0 => "0".to_owned(),
        _ if step < PLAIN_LEAST / 10.0 || PLAIN_MOST <= value.abs() => power_of_ten(value),
        _ => fmt::decimals(value, decimals),
    };
    whole_numbers(count).map(|n| (first + n) * step).map(|value| (value, label(value))).collect()
}

/// The first of 1, 2, 2.5 and 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = libm::exp10(libm::log10(least).floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| least <= *step * (1.0 + 1e-9)).unwrap_or(10.0 * power)
}

/// A measured value without zeros at its end.
fn measured(value: f64) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('×') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Paint {
    /// The colour of the series at this index; there are eight, and then they repeat.
    Series(usize),
    Ink,
    InkSoft,
    Grid,
    Frame,
    Surface,
    Good,
    Bad,
    Doubt,
    /// How many there are, from 0 (few) to 5 (most). On dark ground more is brighter, on light ground darker.
    Heat(usize),
}

const SERIES: usize = 8;

/// Names of CSS variables with their values, from lines of a name, its value on light and that on dark ground. A
/// page has no colours of its own to ask for, so [`Theme::Page`] and [`Theme::Site`] have those of light ground.
pub(crate) fn colours(
    table: &'static str,
    theme: Theme,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(move |line| {
        let (name, values) = line.split_once(' ')?;
        let (light, dark) = values.split_once(' ')?;
        Some((name, if theme == Theme::Dark { dark } else { light }))
    })
}

/// The colours of charts.
pub fn variables(theme: Theme) -> impl Iterator<Item = (&'static str, &'static str)> {
    colours(include_str!("colours.txt"), theme)
}

impl Paint {
    /// As the value of an attribute.
    pub(super) fn value(self, theme: Theme) -> String {
        let kind: &str = self.into();
        let number = match self {
            Self::Series(index) => format!("-{}", index % SERIES + 1),
            Self::Heat(level) => format!("-{}", level.min(5)),
            Self::Ink
            | Self::InkSoft
            | Self::Grid
            | Self::Frame
            | Self::Surface
            | Self::Good
            | Self::Bad
            | Self::Doubt => String::new(),
        };
        let name = format!("--{kind}{number}");
        if matches!(theme, Theme::Page | Theme::Site) {
            return format!("var({name})");
        }
        let found = variables(theme).find(|(known, _)| *known == name);
        found.map_or_else(String::new, |(_, value)| value.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_end_in_an_ellipsis() {
        assert_eq!(NAME.shortened("short", 100.0), "short");
        let cut = NAME.shortened("a name that is much too long for its place", 100.0);
        assert!(cut.ends_with('…') && NAME.width(&cut) <= 100.0, "{cut}");
        assert_eq!(NAME.shortened("anything", 1.0), "…");
    }

    #[test]
    fn long_sentences_take_two_lines_and_no_more() {
        let text = "one two three four five six seven eight nine ten";
        assert_eq!(NAME.wrapped(text, 1_000.0, 2), [text]);
        let lines = NAME.wrapped(text, 120.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'), "{lines:?}");
        assert!(NAME.wrapped("", 100.0, 2).is_empty());
    }

    fn places(kind: ScaleKind, ends: (f64, f64), values: &[f64]) -> Vec<f64> {
        let axis = Axis::new(kind, ends, Vec::new()).across((100.0, 400.0));
        values.iter().map(|value| (axis.place(*value) * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn even_places_are_in_proportion() {
        assert_eq!(
            places(ScaleKind::Linear, (0.0, 10.0), &[0.0, 2.5, 10.0]),
            [100.0, 175.0, 400.0]
        );
        let upside_down =
            Axis::new(ScaleKind::Linear, (0.0, 10.0), Vec::new()).across((200.0, 100.0));
        assert!((upside_down.place(10.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn equal_ratios_are_equally_far() {
        let found = places(ScaleKind::Log, (1.0, 1_000.0), &[1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(found, [100.0, 200.0, 300.0, 400.0]);
    }

    #[test]
    fn each_nine_of_the_tail_is_equally_far() {
        let found = places(ScaleKind::Tail, (0.0, 0.999), &[0.0, 0.9, 0.99, 0.999, 1.0]);
        assert_eq!(found, [100.0, 200.0, 300.0, 400.0, 400.0]);
    }

    #[test]
    fn nothing_leaves_the_axis() {
        let beyond = [-5.0, 0.0, 1e300, f64::INFINITY, f64::NAN];
        for kind in [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Tail] {
            for ends in [(0.1, 0.9), (0.5, 0.5), (0.0, 0.0)] {
                let found = places(kind, ends, &beyond);
                assert!(found.iter().all(|at| (100.0..=400.0).contains(at)), "{found:?}");
            }
        }
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.named.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_highest_value() {
        let even = |highest: f64| Axis::round(ScaleKind::Linear, &[highest]);
        assert_eq!(
            labels(&even(25_879.0)),
            ["0", "5,000", "10,000", "15,000", "20,000", "25,000", "30,000"]
        );
        assert_eq!(labels(&even(1_006.0)), ["0", "200", "400", "600", "800", "1,000", "1,200"]);
        assert_eq!(labels(&even(0.9)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&even(10.0)), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&even(13.0)), ["0", "2.5", "5.0", "7.5", "10.0", "12.5", "15.0"]);
        assert_eq!(
            labels(&even(6e-9)),
            ["0", "10⁻⁹", "2×10⁻⁹", "3×10⁻⁹", "4×10⁻⁹", "5×10⁻⁹", "6×10⁻⁹"]
        );
    }

    #[test]
    fn logarithmic_ticks_hold_all_values() {
        let log = |values: &[f64]| Axis::round(ScaleKind::Log, values);
        assert_eq!(labels(&log(&[12.0, 90.0])), ["10", "20", "50", "100"]);
        let far = log(&[1.0, 40_000.0]);
        assert_eq!(labels(&far), ["1", "10", "100", "1,000", "10,000"]);
        assert!((far.ends.1 - 50_000.0).abs() < 1.0);
        assert_eq!(labels(&log(&[5.0, 5.0])), ["2", "5", "10"]);
        assert_eq!(labels(&log(&[0.0])), ["1", "2", "5", "10"]);
        let wide = log(&[1e-9, 1e12]);
        assert!(wide.ends.0 <= 1e-9 * 1.001 && 0.999e12 <= wide.ends.1, "{wide:?}");
        assert!(wide.named.len() <= 8, "{wide:?}");
    }

    #[test]
    fn nothing_to_show_still_has_an_axis() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let linear = if value < 0.0 { (-1.0, 0.0) } else { (0.0, 1.0) };
            assert_eq!(Axis::round(ScaleKind::Linear, &[value]).ends, linear);
            assert_eq!(Axis::round(ScaleKind::Log, &[value]).ends, (1.0, 10.0));
        }
        assert_eq!(Axis::between(3.0, 3.0).ends, (3.0, 4.0));
    }

    #[test]
    fn an_axis_within_its_values_has_no_empty_ends() {
        let narrow = Axis::within(ScaleKind::Log, &[20.0, 21.3, 0.0]);
        assert_eq!(narrow.ends, (20.0, 21.3));
        assert_eq!(labels(&narrow), ["20.00", "20.25", "20.50", "20.75", "21.00", "21.25"]);
        let wide = Axis::within(ScaleKind::Log, &[7.0, 170.0]);
        assert_eq!(labels(&wide), ["10", "20", "50", "100"]);
        assert_eq!(Axis::within(ScaleKind::Log, &[5.0, 5.0]).ends, (2.0, 10.0));
    }

    #[test]
    fn percentiles_end_where_the_values_do() {
        assert_eq!(
            labels(&Axis::percentiles(&[0.5])),
            ["0 %", "50 %", "75 %", "90 %", "95 %", "99 %"]
        );
        let ticks = Axis::percentiles(&[0.5, 0.9985, 1.0]);
        assert_eq!(labels(&ticks).last(), Some(&"max"));
        assert!(ticks.named.iter().any(|(_, label)| label == "99.9 %"));
        assert!(ticks.ends.1 < 1.0);
    }

    #[test]
    fn times_begin_where_the_run_does() {
        let ticks = Axis::between(12.5, 42.0);
        assert_eq!(labels(&ticks), ["15", "20", "25", "30", "35", "40"]);
        assert_eq!(ticks.ends, (12.5, 42.0));
    }

    #[test]
    fn measured_values_have_the_digits_that_they_have() {
        for (value, text) in
            [(1.0, "1"), (0.5, "0.5"), (12.345, "12.35"), (1_024.0, "1,024"), (2.5e9, "2.5×10⁹")]
        {
            assert_eq!(measured(value), text);
        }
    }

    /// Relative luminance as WCAG defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |from: usize| {
            let byte = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
            let share = f64::from(byte) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    const GROUNDS: [Theme; 2] = [Theme::Light, Theme::Dark];

    #[test]
    fn text_and_marks_stand_out_from_both_grounds() {
        for theme in GROUNDS {
            let ground = Paint::Surface.value(theme);
            for text in [Paint::Ink, Paint::InkSoft, Paint::Good, Paint::Bad, Paint::Doubt] {
                let found = contrast(&text.value(theme), &ground);
                assert!(4.5 <= found, "{text:?} {theme:?} {found:.2}");
            }
            for mark in (0..SERIES).map(Paint::Series).chain([Paint::Frame]) {
                let found = contrast(&mark.value(theme), &ground);
                assert!(3.0 <= found, "{mark:?} {theme:?} {found:.2}");
            }
        }
    }

    #[test]
    fn more_heat_is_further_from_the_ground() {
        for theme in GROUNDS {
            let ground = Paint::Surface.value(theme);
            let found: Vec<f64> =
                (0..6).map(|level| contrast(&Paint::Heat(level).value(theme), &ground)).collect();
            assert!(1.2 <= found[0], "{found:?}");
            assert!(found.windows(2).all(|pair| pair[0] * 1.2 < pair[1]), "{theme:?} {found:?}");
        }
    }

    /// What is left of a colour for a person without red or green cones, by the matrices that
    /// Viénot, Brettel and Mollon gave for linear light.
    fn seen_without(matrix: [[f64; 3]; 3], colour: &str) -> [f64; 3] {
        let channel = |from: usize| {
            let byte = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
            libm::pow(f64::from(byte) / 255.0, 2.2)
        };
        let light = [channel(1), channel(3), channel(5)];
        matrix.map(|row| {
            let sum: f64 = row.iter().zip(light).map(|(factor, part)| factor * part).sum();
            libm::pow(sum.clamp(0.0, 1.0), 1.0 / 2.2)
        })
    }

    #[test]
    fn the_first_four_series_are_told_apart_without_red_or_green() {
        const NO_RED: [[f64; 3]; 3] =
            [[0.112_38, 0.887_62, 0.0], [0.112_38, 0.887_62, 0.0], [0.004_01, -0.004_01, 1.0]];
        const NO_GREEN: [[f64; 3]; 3] =
            [[0.292_75, 0.707_25, 0.0], [0.292_75, 0.707_25, 0.0], [-0.022_34, 0.022_34, 1.0]];
        for (theme, matrix) in GROUNDS.iter().flat_map(|theme| [(theme, NO_RED), (theme, NO_GREEN)])
        {
            for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                let seen = |place: usize| seen_without(matrix, &Paint::Series(place).value(*theme));
                let far: f64 =
                    seen(one).iter().zip(seen(other)).map(|(a, b)| (a - b) * (a - b)).sum();
                assert!(0.12 <= far.sqrt(), "{theme:?} {one} {other} {:.3}", far.sqrt());
            }
        }
    }

    #[test]
    fn a_page_asks_for_variables_that_exist() {
        assert_eq!(Paint::Series(9).value(Theme::Page), "var(--series-2)");
        assert_eq!(Paint::Heat(9).value(Theme::Dark), "#e0f1ff");
        assert_eq!(variables(Theme::Light).count(), variables(Theme::Dark).count());
        assert!(variables(Theme::Dark).any(|it| it == ("--surface", "#161b22")));
    }
}
