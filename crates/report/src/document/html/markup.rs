//! HTML in the making: text and attributes are escaped here, so that nobody can forget it.

use crate::escape;

#[derive(Debug, Default)]
pub(super) struct Markup {
    html: String,
}

impl Markup {
    /// Our own words only: a constant of the program.
    pub(super) fn raw(&mut self, html: &'static str) -> &mut Self {
        self.html.push_str(html);
        self
    }

    /// A drawing of ours, which escapes what it writes.
    pub(super) fn drawing(&mut self, svg: &str) {
        self.html.push_str(svg.trim_end());
    }

    /// What another of these made.
    pub(super) fn written(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// A style of ours: made from constants, and hashed in the page's policy.
    pub(super) fn style(&mut self, css: &str) {
        self.html.push_str("<style>");
        self.html.push_str(css);
        self.html.push_str("</style>\n");
    }

    /// A block of data that is not run.
    pub(super) fn json(&mut self, id: &'static str, json: &str) {
        self.html.push_str("<script type=\"application/json\" id=\"");
        self.html.push_str(id);
        self.html.push_str("\">");
        self.html.push_str(&escape::json_in_html(json));
        self.html.push_str("</script>\n");
    }

    pub(super) fn text(&mut self, text: &str) {
        self.html.push_str(&escape::xml(text));
    }

    /// Text whose lines stay lines.
    pub(super) fn lines(&mut self, text: &str) {
        self.html.push_str(&escape::xml_lines(text));
    }

    /// An element with what `inside` writes into it.
    pub(super) fn element(
        &mut self,
        name: &'static str,
        attributes: &[(&'static str, &str)],
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes);
        inside(self);
        self.close(name);
    }

    /// An element that has no inside, such as `meta`.
    pub(super) fn void(&mut self, name: &'static str, attributes: &[(&'static str, &str)]) {
        self.open(name, attributes);
        self.html.push('\n');
    }

    pub(super) fn open(&mut self, name: &'static str, attributes: &[(&'static str, &str)]) {
        self.html.push('<');
        self.html.push_str(name);
        for (key, value) in attributes {
            self.html.push(' ');
            self.html.push_str(key);
            if !value.is_empty() {
                self.html.push_str("=\"");
                self.html.push_str(&escape::xml(value));
                self.html.push('"');
            }
        }
        self.html.push('>');
    }

    pub(super) fn close(&mut self, name: &'static str) {
        self.html.push_str("</");
        self.html.push_str(name);
        self.html.push('>');
        if is_block(name) {
            self.html.push('\n');
        }
    }

    pub(super) fn finish(self) -> String {
        self.html
    }
}

/// Whether a line may end behind it without becoming a space on the page.
fn is_block(name: &str) -> bool {
    !matches!(name, "a" | "span" | "strong" | "code" | "button" | "sup")
}
