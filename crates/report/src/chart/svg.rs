//! The few SVG elements that our charts are made of, with everything escaped.

use std::fmt::Write;

use crate::escape;

/// A drawing in the making.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    body: String,
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
    pub(super) size: u32,
    pub(super) bold: bool,
    pub(super) colour: &'static str,
    pub(super) anchor: Anchor,
}

/// A place in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Drawing {
    pub(super) fn text(&mut self, at: Place, letters: Letters, text: &str) {
        self.write_text(at, letters, text, "");
    }

    /// Read from below, as the label of a vertical axis.
    pub(super) fn text_upwards(&mut self, at: Place, letters: Letters, text: &str) {
        let turn = format!(" transform=\"rotate(-90 {} {})\"", pixels(at.x), pixels(at.y));
        self.write_text(at, letters, text, &turn);
    }

    fn write_text(&mut self, at: Place, letters: Letters, text: &str, more: &str) {
        let anchor = match letters.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if letters.bold { " font-weight=\"600\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{weight} fill=\"{}\" \
             text-anchor=\"{anchor}\"{more}>{}</text>",
            pixels(at.x),
            pixels(at.y),
            letters.size,
            letters.colour,
            escape::xml(text),
        );
    }

    pub(super) fn line(&mut self, from: Place, to: Place, colour: &str) {
        let _ = writeln!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\"/>",
            pixels(from.x),
            pixels(from.y),
            pixels(to.x),
            pixels(to.y),
        );
    }

    pub(super) fn polyline(&mut self, places: &[Place], colour: &str) {
        let points = joined(places);
        let _ = writeln!(
            self.body,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"/>",
        );
    }

    /// A small filled shape with a light rim, so that marks on a line stand apart.
    pub(super) fn polygon(&mut self, places: &[Place], colour: &str) {
        let points = joined(places);
        let _ = writeln!(
            self.body,
            "<polygon points=\"{points}\" fill=\"{colour}\" stroke=\"#ffffff\"/>"
        );
    }

    pub(super) fn circle(&mut self, centre: Place, radius: f64, colour: &str) {
        let _ = writeln!(
            self.body,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{colour}\" stroke=\"#ffffff\"/>",
            pixels(centre.x),
            pixels(centre.y),
            pixels(radius),
        );
    }

    /// The whole document, with a description for those who do not see it.
    pub(super) fn document(self, size: (u32, u32), title: &str, description: &str) -> String {
        let (width, height) = size;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n\
             <title>{}</title>\n<desc>{}</desc>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escape::xml(title),
            escape::xml(description),
            self.body,
        )
    }
}

fn joined(places: &[Place]) -> String {
    let points: Vec<String> =
        places.iter().map(|place| format!("{},{}", pixels(place.x), pixels(place.y))).collect();
    points.join(" ")
}

/// A tenth of a pixel is finer than anyone sees.
fn pixels(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
