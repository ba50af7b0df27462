//! The few SVG elements that our charts are made of, with everything escaped.

use std::fmt::Write;

use super::Theme;
use super::palette::Paint;
use crate::escape;

/// A drawing in the making.
#[derive(Debug)]
pub(super) struct Drawing {
    body: String,
    theme: Theme,
    /// Before the names of its patterns, because a page holds many charts.
    id: String,
    hatchings: Vec<(Hatching, Paint)>,
}

/// Where a text stands against its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letters {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) paint: Paint,
    pub(super) anchor: Anchor,
}

/// A place in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Lines over a surface, so that surfaces are told apart without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hatching {
    Rising,
    Falling,
    Dots,
    Upright,
    Level,
    Crossed,
}

impl Hatching {
    pub(super) const ALL: [Self; 6] =
        [Self::Rising, Self::Falling, Self::Dots, Self::Upright, Self::Level, Self::Crossed];

    const fn name(self) -> &'static str {
        match self {
            Self::Rising => "rising",
            Self::Falling => "falling",
            Self::Dots => "dots",
            Self::Upright => "upright",
            Self::Level => "level",
            Self::Crossed => "crossed",
        }
    }

    /// In a square of six pixels.
    const fn path(self) -> &'static str {
        match self {
            Self::Rising => "M-1 1L1 -1M0 6L6 0M5 7L7 5",
            Self::Falling => "M-1 5L1 7M0 0L6 6M5 -1L7 1",
            Self::Dots => "M1.5 1.5h.01M4.5 4.5h.01",
            Self::Upright => "M3 0V6",
            Self::Level => "M0 3H6",
            Self::Crossed => "M0 6L6 0M0 0L6 6",
        }
    }
}

impl Drawing {
    pub(super) fn new(id: &str, theme: Theme) -> Self {
        Self { body: String::new(), theme, id: id.to_owned(), hatchings: Vec::new() }
    }

    pub(super) const fn theme(&self) -> Theme {
        self.theme
    }

    /// Begins an element; its attributes follow, then one of the ends.
    pub(super) fn element(&mut self, name: &'static str) -> Element<'_> {
        let _ = write!(self.body, "<{name}");
        Element { drawing: self, name, title: None }
    }

    /// Begins what belongs to a series, and can be hidden with it.
    pub(super) fn open_series(&mut self, name: &str) {
        self.element("g").word("class", "series").word("data-series", name).open();
    }

    /// Ends the group that was begun last.
    pub(super) fn close_group(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub(super) fn text(&mut self, at: Place, letters: Letters, text: &str) {
        self.write_text(at, letters, text, None);
    }

    /// Two texts in one line, however wide the first one is.
    pub(super) fn texts(&mut self, at: Place, one: (Letters, &str), other: (Letters, &str)) {
        const BETWEEN: f64 = 10.0;
        self.element("text").number("x", at.x).number("y", at.y).open();
        for (place, (letters, text)) in [one, other].into_iter().enumerate() {
            let mut run = self.element("tspan").number("font-size", letters.size);
            if letters.bold {
                run = run.word("font-weight", "600");
            }
            if 0 < place {
                run = run.number("dx", BETWEEN);
            }
            run.paint("fill", letters.paint).hold(None, text);
        }
        self.body.push_str("</text>\n");
    }

    /// A text that was shortened, with its whole as a title.
    pub(super) fn short_text(&mut self, at: Place, letters: Letters, (short, whole): (&str, &str)) {
        self.write_text(at, letters, short, (short != whole).then_some(whole));
    }

    fn write_text(&mut self, at: Place, letters: Letters, text: &str, whole: Option<&str>) {
        let mut element = self
            .element("text")
            .number("x", at.x)
            .number("y", at.y)
            .number("font-size", letters.size)
            .paint("fill", letters.paint);
        if letters.bold {
            element = element.word("font-weight", "600");
        }
        let element = match letters.anchor {
            Anchor::Start => element,
            Anchor::Middle => element.word("text-anchor", "middle"),
            Anchor::End => element.word("text-anchor", "end"),
        };
        element.hold(whole, text);
    }

    pub(super) fn line(&mut self, from: Place, to: Place, paint: Paint) {
        self.element("line").ends(from, to).paint("stroke", paint).end();
    }

    /// The value of `fill` for a hatched surface.
    pub(super) fn hatching(&mut self, hatching: Hatching, paint: Paint) -> String {
        if !self.hatchings.contains(&(hatching, paint)) {
            self.hatchings.push((hatching, paint));
        }
        format!("url(#{})", self.hatching_id(hatching, paint))
    }

    fn hatching_id(&self, hatching: Hatching, paint: Paint) -> String {
        let place = self.hatchings.iter().position(|known| *known == (hatching, paint));
        format!("{}-{}-{}", self.id, hatching.name(), place.unwrap_or_default())
    }

    fn definitions(&self) -> String {
        if self.hatchings.is_empty() {
            return String::new();
        }
        let mut text = "<defs>\n".to_owned();
        for (hatching, paint) in &self.hatchings {
            let width = if *hatching == Hatching::Dots { "1.8" } else { "1.4" };
            let _ = writeln!(
                text,
                "<pattern id=\"{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                 <path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                 stroke-linecap=\"round\"/></pattern>",
                escape::xml(&self.hatching_id(*hatching, *paint)),
                hatching.path(),
                paint.value(self.theme),
            );
        }
        text + "</defs>\n"
    }

    /// The whole document, with a description for those who do not see it.
    pub(super) fn document(self, size: (f64, f64), title: &str, description: &str) -> String {
        let (width, height) = (pixels(size.0), pixels(size.1));
        let surface = Paint::Surface.value(self.theme);
        // On a page the width is that of its column, and the ground is the page's own.
        let (own_size, ground) = match self.theme {
            Theme::Page | Theme::Site => (String::new(), String::new()),
            Theme::Light | Theme::Dark => (
                format!(" width=\"{width}\" height=\"{height}\""),
                format!("<rect width=\"{width}\" height=\"{height}\" fill=\"{surface}\"/>\n"),
            ),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\"{own_size} \
             viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{}{ground}{}</svg>\n",
            escape::xml(title),
            escape::xml(description),
            self.definitions(),
            self.body,
        )
    }
}

/// An element whose attributes are being written.
#[derive(Debug)]
pub(super) struct Element<'a> {
    drawing: &'a mut Drawing,
    name: &'static str,
    /// What a browser shows by itself to whoever points at it.
    title: Option<String>,
}

impl Element<'_> {
    pub(super) fn number(self, key: &str, value: f64) -> Self {
        let _ = write!(self.drawing.body, " {key}=\"{}\"", pixels(value));
        self
    }

    pub(super) fn word(self, key: &str, value: &str) -> Self {
        let _ = write!(self.drawing.body, " {key}=\"{}\"", escape::xml(value));
        self
    }

    pub(super) fn paint(self, key: &str, paint: Paint) -> Self {
        let value = paint.value(self.drawing.theme);
        self.word(key, &value)
    }

    /// Makes it a mark that says `text` to whoever points at it.
    pub(super) fn tip(self, text: &str) -> Self {
        if self.drawing.theme == Theme::Site {
            return Self { title: Some(escape::xml(text)), ..self };
        }
        self.word("class", "mark").word("data-tip", text)
    }

    /// Not seen, and yet pointed at.
    pub(super) fn unseen(self) -> Self {
        self.word("fill", "none").word("pointer-events", "all")
    }

    /// Of a `line`.
    pub(super) fn ends(self, from: Place, to: Place) -> Self {
        self.number("x1", from.x).number("y1", from.y).number("x2", to.x).number("y2", to.y)
    }

    /// Of a `rect`; corners in any order.
    pub(super) fn corners(self, one: Place, other: Place) -> Self {
        self.number("x", one.x.min(other.x))
            .number("y", one.y.min(other.y))
            .number("width", (one.x - other.x).abs())
            .number("height", (one.y - other.y).abs())
    }

    /// Of a `polyline` or `polygon`.
    pub(super) fn points(self, places: &[Place]) -> Self {
        let points: Vec<String> =
            places.iter().map(|place| format!("{},{}", pixels(place.x), pixels(place.y))).collect();
        self.word("points", &points.join(" "))
    }

    pub(super) fn end(self) {
        let body = &mut self.drawing.body;
        match self.title {
            Some(title) => {
                let _ = writeln!(body, "><title>{title}</title></{}>", self.name);
            }
            None => body.push_str("/>\n"),
        }
    }

    /// Leaves it open for elements inside.
    pub(super) fn open(self) {
        self.drawing.body.push_str(">\n");
    }

    fn hold(self, title: Option<&str>, text: &str) {
        let body = &mut self.drawing.body;
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
