//! What charts are drawn with: a few SVG elements with everything escaped, texts whose widths are
//! estimated, the looks of series, and the legend.

use std::fmt::Write;

use super::palette::Paint;
use super::{Chart, GanttEnding, Theme};
use crate::escape;

pub(super) const MARGIN: f64 = 24.0;
const WIDTH: f64 = 800.0;
/// The right edge of everything.
pub(super) const RIGHT: f64 = WIDTH - MARGIN;
/// Of the title, of the finding and of what the chart is made of.
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

const fn letters(size: f64, bold: bool, paint: Paint, anchor: Anchor) -> Letters {
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
    /// What is above is taken.
    pub(super) top: f64,
}

impl Canvas {
    /// Begins with title and finding, which a page prints itself: its letters do not shrink with
    /// the picture.
    pub(super) fn new(chart: &Chart, theme: Theme) -> Self {
        let (body, hatchings) = (String::new(), Vec::new());
        let mut canvas = Self { body, theme, id: chart.id.clone(), hatchings, top: 4.0 };
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

    fn paragraph(&mut self, letters: Letters, spacing: f64, text: &str) {
        for line in letters.wrapped(text, RIGHT - MARGIN, LINES_MAX) {
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
        let (width, height) = (pixels(WIDTH), pixels(self.top.ceil()));
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
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\"{size} \
             viewBox=\"0 0 {width} {height}\" role=\"img\" \
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
        let area = self.area((MARGIN, RIGHT), 80.0);
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
        let points: Vec<String> =
            points.iter().map(|at| format!("{},{}", pixels(at.x), pixels(at.y))).collect();
        self.element(name).set("points", &points.join(" "))
    }

    /// What belongs to a series, and can be hidden with it.
    pub(super) fn series(&mut self, name: &str, draw: impl FnOnce(&mut Self)) {
        self.element("g").set("class", "series").set("data-series", name).open();
        draw(self);
        self.close_group();
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

    /// A heading and a label in one line, however wide the heading is.
    pub(super) fn heading(&mut self, at: Point, heading: &str, label: &str) {
        self.element("text").number("x", at.x).number("y", at.y).open();
        let run = self.element("tspan").number("font-size", HEADING.size);
        run.set("font-weight", "600").paint("fill", HEADING.paint).hold(None, heading);
        let run = self.element("tspan").number("font-size", LABEL.size).number("dx", 10.0);
        run.paint("fill", LABEL.paint).hold(None, label);
        self.body.push_str("</text>\n");
    }

    /// A rectangle, hatched where it is to be told apart without colour. An empty tip is none.
    pub(super) fn surface(&mut self, area: Area, fill: Fill, tip: &str) {
        let mut element = self.rectangle(area).paint("fill", fill.paint);
        if fill.strength < 1.0 {
            element = element.set("fill-opacity", &format!("{:.2}", fill.strength));
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
        for (from, to) in [(from, to), across(from), across(to)] {
            self.stroke(from, to, paint).end();
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
            let name = NAME.shortened(&entry.name, (RIGHT - MARGIN) / 2.0);
            let width = SWATCH_WIDTH + NAME.width(&name);
            if MARGIN < x && RIGHT < x + width {
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
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
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

/// The names of series in the order in which they appear, each once.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

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
}
