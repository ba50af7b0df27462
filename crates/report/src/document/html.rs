//! A document as one HTML file that needs nothing else: it opens from a disk without a network.
//!
//! Styles and the script stand in the page, and its policy lets nothing else in: no other script,
//! no picture, no font, no request. Tables and charts are complete before any script runs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::{Align, Badge, Block, Card, Cell, Document, Ids, Mood, Section, Span, Table, Text};
use crate::chart::{Chart, Theme, palette};
use crate::escape;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
/// A page that is larger is a nuisance to send.
const BYTES_MAX: usize = 2_000_000;
/// Tables of charts that have more rows than this stay folded in print.
const PRINTED_ROWS: usize = 40;
/// What charts may take in bytes, in steps, until the page is small enough: drawings with tooltips, then
/// tables of their numbers, and last all drawings. Tooltips go first, because the tables have their numbers.
const LIMITS: [[usize; 4]; 3] =
    [[48_000, 24_000, 12_000, 0], [16_000, 6_000, 2_000, 0], [32_000, 16_000, 8_000, 0]];
const TABLE_LEFT_OUT: &str = "The table of these numbers is left out, because the page would be \
                              larger than two megabytes; the stored summaries have them.";
const CHART_LEFT_OUT: &str = "The chart is left out, because the page would be larger than two \
                              megabytes; report.md has it.";
/// The colours of a page beside those of its charts: the name, then the value on light and dark ground.
const COLOURS: [(&str, &str, &str); 8] = [
    ("--ground", "#f5f6f8", "#0d1117"),
    ("--tint", "#eef1f5", "#1f2630"),
    ("--edge", "#b9c1cb", "#4a5462"),
    ("--link", "#005f9e", "#6bb8f0"),
    ("--good-tint", "#e3f4ee", "#12291f"),
    ("--note-tint", "#e5f0f9", "#142536"),
    ("--doubt-tint", "#fbf0dc", "#2c2311"),
    ("--bad-tint", "#fbe9e7", "#331a18"),
];

pub fn render(document: &Document) -> String {
    let mut room = [usize::MAX; 3];
    let mut html = render_within(document, room);
    for (kind, limit) in (0..).zip(LIMITS).flat_map(|(kind, limits)| limits.map(|it| (kind, it))) {
        if html.len() < BYTES_MAX {
            break;
        }
        room[kind] = limit;
        html = render_within(document, room);
    }
    html
}

fn render_within(document: &Document, room: [usize; 3]) -> String {
    let mut body = Page { html: String::new(), ids: Ids::default(), room };
    // The page's own ids come first, so that no section can take them.
    for own in ["content", "contents", "inferometer-report", "theme", "tip"] {
        body.ids.give(own);
    }
    let contents: Vec<Entry> = document.sections.iter().map(|it| body.section(it, 2)).collect();
    let mut page = Page { html: String::new(), ids: Ids::default(), room };
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    page.head(document);
    page.raw("</head>\n<body>\n");
    page.element("a", &[("class", "skip"), ("href", "#content")], |page| {
        page.text("Skip to the report");
    });
    page.banner(document);
    page.raw("<div class=\"page\">\n");
    page.element("nav", &[("class", "contents"), ("aria-label", "Contents")], |page| {
        page.element("details", &[("id", "contents")], |page| {
            page.leaf("summary", "", "Contents");
            page.contents(&contents);
        });
    });
    page.raw("<main id=\"content\" tabindex=\"-1\">\n");
    if let Some(badge) = &document.lead.verdict {
        page.badge(badge);
    }
    if !document.lead.headline.is_empty() {
        page.classed("dl", "cards", |page| {
            for card in &document.lead.headline {
                page.card(card);
            }
        });
    }
    page.raw(&body.html).raw("</main>\n</div>\n");
    page.classed("footer", "foot", |page| page.spans("p", &document.footer));
    page.raw("<script>").raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
    page.html
}

/// The colours of both themes, then the page's own rules. Paper is always light.
fn style() -> String {
    let variables = |theme| {
        let is_dark = theme == Theme::Dark;
        let own = COLOURS.map(|(name, light, dark)| (name, if is_dark { dark } else { light }));
        let all = palette::variables(theme).into_iter().chain(own);
        let lines: Vec<String> = all.map(|(name, value)| format!("{name}:{value}")).collect();
        lines.join(";")
    };
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    format!(
        ":root{{{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}\n{STYLE}"
    )
}

/// A line of the contents.
struct Entry {
    id: String,
    title: String,
    inner: Vec<Entry>,
}

type Attributes<'a> = &'a [(&'static str, &'a str)];

/// HTML in the making: text and attributes are escaped here, so that nobody can forget it.
struct Page {
    html: String,
    ids: Ids,
    room: [usize; 3],
}

impl Page {
    /// Markup of ours, in which everything is escaped.
    fn raw(&mut self, html: &str) -> &mut Self {
        self.html.push_str(html);
        self
    }

    fn text(&mut self, text: &str) {
        self.html.push_str(&escape::xml(text));
    }

    fn open(&mut self, name: &str, attributes: Attributes<'_>) {
        self.raw("<").raw(name);
        for (key, value) in attributes {
            self.raw(" ").raw(key);
            if !value.is_empty() {
                self.raw("=\"").raw(&escape::xml(value)).raw("\"");
            }
        }
        self.raw(">");
    }

    fn close(&mut self, name: &str) {
        self.raw("</").raw(name).raw(">");
        // A line may end behind a block without becoming a space on the page.
        if !matches!(name, "a" | "span" | "strong" | "code" | "button" | "sup") {
            self.raw("\n");
        }
    }

    /// An element with what `inside` writes into it.
    fn element(&mut self, name: &str, attributes: Attributes<'_>, inside: impl FnOnce(&mut Self)) {
        self.open(name, attributes);
        inside(self);
        self.close(name);
    }

    /// An element with a class, or without one where that is empty.
    fn classed(&mut self, name: &str, class: &str, inside: impl FnOnce(&mut Self)) {
        let attributes = [("class", class)];
        self.element(name, if class.is_empty() { &[] } else { &attributes }, inside);
    }

    /// An element that holds a text.
    fn leaf(&mut self, name: &str, class: &str, text: &str) {
        self.classed(name, class, |page| page.text(text));
    }

    /// An element that holds the spans of a text.
    fn spans(&mut self, name: &str, text: &Text) {
        self.classed(name, "", |page| page.inline(text));
    }

    fn inline(&mut self, text: &Text) {
        for span in text {
            match span {
                Span::Plain(text) => self.text(text),
                Span::Strong(text) => self.leaf("strong", "", text),
                Span::Code(text) => self.leaf("code", "", text),
                Span::Link { text, to } => self.link(&super::anchor(to), text),
            }
        }
    }

    fn link(&mut self, id: &str, text: &str) {
        self.element("a", &[("href", &format!("#{id}"))], |page| page.text(text));
    }

    /// What the page is for programs, and what it is allowed to do: nothing may be loaded, and of scripts
    /// and styles only our own two may act.
    fn head(&mut self, document: &Document) {
        let style = style();
        let [style_hash, script_hash] =
            [style.as_str(), SCRIPT].map(|it| STANDARD.encode(Sha256::digest(it)));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; \
             img-src data:; base-uri 'none'; form-action 'none'"
        );
        let generator = concat!("Inferometer ", env!("CARGO_PKG_VERSION"));
        let metas: [Attributes<'_>; 6] = [
            &[("charset", "utf-8")],
            &[("http-equiv", "Content-Security-Policy"), ("content", &policy)],
            &[("name", "referrer"), ("content", "no-referrer")],
            &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")],
            &[("name", "color-scheme"), ("content", "light dark")],
            &[("name", "generator"), ("content", generator)],
        ];
        for meta in metas {
            self.open("meta", meta);
            self.raw("\n");
        }
        // Nobody is asked for an icon.
        self.open("link", &[("rel", "icon"), ("href", "data:,")]);
        self.raw("\n").leaf("title", "", &document.title);
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let pair = |(key, value): &(String, String)| format!("{}:{}", quoted(key), quoted(value));
        let pairs: Vec<String> = document.header.iter().map(pair).collect();
        let json = escape::json_in_html(&format!("{{{}}}", pairs.join(",")));
        self.raw("<script type=\"application/json\" id=\"inferometer-report\">").raw(&json);
        self.raw("</script>\n<style>").raw(&style).raw("</style>\n");
    }

    fn banner(&mut self, document: &Document) {
        self.classed("header", "banner", |page| {
            page.classed("div", "banner-inner", |page| {
                page.leaf("p", "brand", "Inferometer");
                // Shown by the script, which makes it work.
                let attributes = [("id", "theme"), ("type", "button"), ("hidden", "")];
                page.element("button", &attributes, |page| page.text("Theme: auto"));
                page.leaf("h1", "", &document.title);
                if !document.lead.subject.is_empty() {
                    page.facts("subject", &document.lead.subject);
                }
            });
        });
    }

    fn contents(&mut self, entries: &[Entry]) {
        self.classed("ul", "", |page| {
            for entry in entries {
                page.classed("li", "", |page| {
                    page.link(&entry.id, &entry.title);
                    if !entry.inner.is_empty() {
                        page.contents(&entry.inner);
                    }
                });
            }
        });
    }

    fn card(&mut self, card: &Card) {
        self.classed("div", "card", |page| {
            page.leaf("dt", "", &card.label);
            page.classed("dd", "value", |page| {
                page.text(&card.value);
                if !card.unit.is_empty() {
                    page.raw(" ").leaf("span", "unit", &card.unit);
                }
                if card.doubt.is_some() {
                    page.mark_doubt();
                }
            });
            if !card.detail.is_empty() {
                page.leaf("dd", "detail", &card.detail);
            }
            if let Some(doubt) = &card.doubt {
                page.leaf("dd", "detail reserved", doubt);
            }
        });
    }

    fn badge(&mut self, Badge { mood, word, text, points }: &Badge) {
        let (class, sign) = mood_look(*mood);
        self.classed("p", &format!("verdict {class}"), |page| {
            page.classed("strong", "badge", |page| {
                page.sign(sign);
                page.raw(" ").text(word);
            });
            page.raw(" ").spans("span", text);
        });
        self.list("points", points);
    }

    fn sign(&mut self, sign: &str) {
        self.element("span", &[("class", "sign"), ("aria-hidden", "true")], |page| page.text(sign));
    }

    /// Texts one below the other; nothing where there are none.
    fn list(&mut self, class: &str, items: &[Text]) {
        if !items.is_empty() {
            self.classed("ul", class, |page| items.iter().for_each(|item| page.spans("li", item)));
        }
    }

    fn facts(&mut self, class: &str, facts: &[(String, Text)]) {
        self.classed("dl", class, |page| {
            for (key, value) in facts {
                page.classed("div", "", |page| {
                    page.leaf("dt", "", key);
                    page.spans("dd", value);
                });
            }
        });
    }

    fn section(&mut self, section: &Section, level: usize) -> Entry {
        let id = self.ids.give(&section.id);
        let heading = ["h2", "h3", "h4", "h5", "h6"][level.clamp(2, 6) - 2];
        self.open("section", &[("id", &id), ("class", "section")]);
        self.classed(heading, "", |page| {
            page.text(&section.title);
            let (to, label) = (format!("#{id}"), format!("Link to {}", section.title));
            let attributes = [("class", "anchor"), ("href", &*to), ("aria-label", &*label)];
            page.element("a", &attributes, |page| page.text("#"));
        });
        for block in &section.blocks {
            self.block(block);
        }
        let inner = section.sections.iter().map(|inner| self.section(inner, level + 1)).collect();
        self.close("section");
        Entry { id, title: section.title.clone(), inner }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(text) => self.spans("p", text),
            Block::Facts(facts) => self.facts("facts", facts),
            Block::List(items) => self.list("", items),
            Block::Table(table) => self.table(table),
            Block::Figure(figure) => self.figure(&figure.chart),
            Block::Code { text, .. } => {
                let region =
                    [("tabindex", "0"), ("role", "region"), ("aria-label", "Text as it is")];
                self.element("pre", &[&[("class", "code")], &region[..]].concat(), |page| {
                    page.classed("code", "", |page| {
                        page.raw(&escape::xml_lines(text));
                    });
                });
            }
            Block::Notice { mood, text, points, remedy } => {
                let (class, sign) = mood_look(*mood);
                let class = format!("notice {class}");
                self.element("div", &[("class", &class), ("role", "note")], |page| {
                    page.sign(sign);
                    page.classed("div", "", |page| {
                        page.spans("p", text);
                        page.list("points", points);
                        if let Some(remedy) = remedy {
                            page.classed("p", "remedy", |page| {
                                page.leaf("strong", "", "What to do:");
                                page.raw(" ").inline(remedy);
                            });
                        }
                    });
                });
            }
            Block::Verdict(badge) => self.badge(badge),
            Block::Details { summary, blocks } => self.classed("details", "fold", |page| {
                page.leaf("summary", "", summary);
                for block in blocks {
                    page.block(block);
                }
            }),
        }
    }

    fn figure(&mut self, chart: &Chart) {
        let [tips_max, table_max, drawing_max] = self.room;
        let id = self.ids.give(&chart.id);
        // Names inside the drawing begin with its id, which must be its own.
        let chart = &Chart { id: id.clone(), ..chart.clone() };
        let mut drawing = chart.to_svg(Theme::Page);
        if tips_max < drawing.len() {
            drawing = without_tips(&drawing);
        }
        self.element("figure", &[("class", "figure"), ("id", &id)], |page| {
            page.classed("figcaption", "", |page| {
                page.leaf("strong", "chart-title", &chart.title);
                page.raw(" ").leaf("span", "", &chart.finding);
            });
            if drawing.len() <= drawing_max {
                page.region("plot", &format!("Chart: {}", chart.title), |page| {
                    page.raw(drawing.trim_end());
                });
            } else {
                page.leaf("p", "n", CHART_LEFT_OUT);
            }
            if !chart.n.is_empty() {
                page.leaf("p", "n", &chart.n);
            }
            let numbers = chart.table();
            let before = page.html.len();
            let is_long = PRINTED_ROWS < numbers.rows.len();
            let class = if is_long { "numbers long" } else { "numbers" };
            page.open("details", &[("class", class)]);
            page.leaf("summary", "", "The numbers as a table");
            let table = page.html.len();
            page.table(&numbers);
            if table_max < page.html.len() - table {
                page.html.truncate(before);
                page.leaf("p", "n", TABLE_LEFT_OUT);
            } else {
                page.close("details");
            }
        });
    }

    /// A box that scrolls by itself, also by keys.
    fn region(&mut self, class: &str, label: &str, inside: impl FnOnce(&mut Self)) {
        let attributes =
            [("class", class), ("tabindex", "0"), ("role", "region"), ("aria-label", label)];
        self.element("div", &attributes, inside);
    }

    /// Numbers line up, doubts have a sign, and wide tables scroll in their own box.
    fn table(&mut self, table: &Table) {
        let id = self.ids.give(&table.id);
        let label = if table.caption.is_empty() { "Table" } else { &table.caption };
        let reasons = table.reasons();
        self.element("div", &[("class", "table"), ("id", &id)], |page| {
            page.region("scroll", label, |page| {
                page.classed("table", "", |page| page.grid(table, &reasons));
            });
            if table.notes.is_empty() && reasons.is_empty() {
                return;
            }
            page.classed("ul", "notes", |page| {
                for note in &table.notes {
                    page.spans("li", note);
                }
                for (index, reason) in reasons.iter().enumerate() {
                    page.classed("li", "", |page| {
                        page.leaf("sup", "", &(index + 1).to_string());
                        page.raw(" ").text(reason);
                    });
                }
            });
        });
    }

    fn grid(&mut self, table: &Table, reasons: &[&str]) {
        if !table.caption.is_empty() {
            self.leaf("caption", "", &table.caption);
        }
        self.classed("thead", "", |page| {
            page.classed("tr", "", |page| {
                for column in &table.columns {
                    let attributes = [("scope", "col"), ("class", "right")];
                    let count = if column.align == Align::Right { 2 } else { 1 };
                    page.element("th", &attributes[..count], |page| page.text(&column.title));
                }
            });
        });
        self.classed("tbody", "", |page| {
            for row in &table.rows {
                page.classed("tr", "", |page| {
                    for (index, cell) in row.iter().enumerate() {
                        let column = table.columns.get(index);
                        let align = column.map_or(Align::Left, |column| column.align);
                        page.cell(cell, (align, index == 0), reasons);
                    }
                });
            }
        });
    }

    /// The first cell of a row names it, where it is words. What there is more to know of a cell is its
    /// title, which the script shows to keyboards too.
    fn cell(&mut self, cell: &Cell, (align, is_first): (Align, bool), reasons: &[&str]) {
        let number = cell.number.filter(|number| number.is_finite()).map(|it| it.to_string());
        let is_name = is_first && align == Align::Left && !cell.text.is_empty();
        let mut attributes: Vec<(&'static str, &str)> = Vec::new();
        attributes.extend(is_name.then_some(("scope", "row")));
        attributes.extend((align == Align::Right).then_some(("class", "right")));
        attributes.extend(number.as_deref().map(|number| ("data-number", number)));
        self.element(if is_name { "th" } else { "td" }, &attributes, |page| {
            if let Some(detail) = &cell.detail {
                let class = if cell.doubtful { "told doubtful" } else { "told" };
                let attributes = [("class", class), ("tabindex", "0"), ("title", &**detail)];
                page.element("span", &attributes, |page| page.text(&cell.text));
            } else {
                page.text(&cell.text);
            }
            let note = cell.footnote().and_then(|own| reasons.iter().position(|it| *it == own));
            if cell.doubtful || note.is_some() {
                // The sign of doubt and the number of the reason below the table stay together.
                page.classed("span", "marks", |page| {
                    if cell.doubtful {
                        page.mark_doubt();
                    }
                    if let Some(note) = note {
                        page.leaf("sup", "note-number", &(note + 1).to_string());
                    }
                });
            }
        });
    }

    fn mark_doubt(&mut self) {
        self.classed("span", "mark-doubt", |page| {
            page.text("?");
            page.leaf("span", "unseen", " (doubtful)");
        });
    }
}

/// The class of a mood and its sign: moods differ in shape too, for those who do not see the colour.
const fn mood_look(mood: Mood) -> (&'static str, &'static str) {
    match mood {
        Mood::Good => ("good", "✓"),
        Mood::Note => ("note", "i"),
        Mood::Doubt => ("doubt", "!"),
        Mood::Bad => ("bad", "✕"),
    }
}

/// A drawing without what its marks say.
fn without_tips(svg: &str) -> String {
    let mut parts = svg.split(" data-tip=\"");
    let first = parts.next().unwrap_or_default();
    // Quotation marks inside of the value are escaped.
    let rest = parts.map(|part| part.split_once('"').map_or(part, |(_, rest)| rest));
    [first].into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_drawing_loses_its_tips_and_nothing_else() {
        let svg =
            "<g><rect x=\"1\" data-tip=\"a &quot;b&quot;\"/><rect data-tip=\"\" y=\"2\"/></g>";
        assert_eq!(without_tips(svg), "<g><rect x=\"1\"/><rect y=\"2\"/></g>");
        assert_eq!(without_tips("<g/>"), "<g/>");
    }
}
