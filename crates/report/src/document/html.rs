//! A document as one HTML file that needs nothing else: it opens from a disk without a network.
//!
//! The style and the script are part of the page, and its policy forbids everything else: no other
//! script, no picture, no font, no request. Tables and charts are complete before any script runs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::{
    Align, Badge, Block, Card, Cell, Document, Download, Ids, Mood, Section, Span, Table, Text,
};
use crate::chart::{Chart, Theme, colours, variables};
use crate::escape;
use crate::fmt::Join;

const STYLE: &str = include_str!("html/page.css");
/// The script of every page.
pub const SCRIPT: &str = include_str!("html/page.js");
/// The largest page.
const BYTES_MAX: usize = 2_000_000;
/// Tables of charts that have more rows than this stay folded in print.
const PRINTED_ROWS: usize = 40;
/// The bytes that charts may have, in steps, until the page is small enough: folded drawings for phones,
/// drawings with tooltips, other drawings for phones, tables of their numbers, and last all drawings. Where
/// there is none for a phone, the other is scrolled; tooltips go before tables, because the tables have their
/// numbers.
const LIMITS: [[usize; 4]; 5] = [
    [24_000, 12_000, 6_000, 0],
    [48_000, 24_000, 12_000, 0],
    [24_000, 12_000, 6_000, 0],
    [16_000, 6_000, 2_000, 0],
    [32_000, 16_000, 8_000, 0],
];
const TABLE_LEFT_OUT: &str = "The table of these numbers is left out, because the page would be \
                              larger than two megabytes; the stored summaries have them.";
const CHART_LEFT_OUT: &str = "The chart is left out, because the page would be larger than two \
                              megabytes; report.md has it.";
/// The parts of a page that a web server shows: its style and script come by links, and its policy as
/// a header.
#[derive(Clone, Debug)]
pub struct Served {
    /// Elements of `head`: the links to [`style`] and [`SCRIPT`] among them.
    pub head: Markup,
    /// Links to other pages, above the report.
    pub navigation: Markup,
}

pub fn render(document: &Document) -> String {
    render_small(document, None)
}

/// The same page, for a web server.
pub fn render_served(document: &Document, served: &Served) -> String {
    render_small(document, Some(served))
}

/// Blocks alone, for pages that are not documents.
pub fn fragment(blocks: &[Block]) -> Markup {
    Page { ids: Ids::default(), room: [usize::MAX; LIMITS.len()], is_folded: false }.blocks(blocks)
}

fn render_small(document: &Document, served: Option<&Served>) -> String {
    let mut room = [usize::MAX; LIMITS.len()];
    let mut html = render_within(document, room, served);
    for (kind, limit) in (0..).zip(LIMITS).flat_map(|(kind, limits)| limits.map(|it| (kind, it))) {
        if html.len() < BYTES_MAX {
            break;
        }
        room[kind] = limit;
        html = render_within(document, room, served);
    }
    html
}

fn render_within(
    document: &Document,
    room: [usize; LIMITS.len()],
    served: Option<&Served>,
) -> String {
    let mut page = Page { ids: Ids::default(), room, is_folded: false };
    // The page's own ids come first, so that no section can take them.
    for own in ["content", "contents", "inferometer-report", "theme", "tip"] {
        page.ids.give(own);
    }
    let (contents, sections) = page.sections(&document.sections, 2);
    let lead = &document.lead;
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            head { (head(document, served)) }
            body {
                a.skip href="#content" { "Skip to the report" }
                @if let Some(served) = served { (served.navigation) }
                header.banner {
                    div.banner-inner {
                        p.brand { "Inferometer" }
                        // Shown by the script, which makes it work.
                        button #theme type="button" hidden { "Theme: auto" }
                        h1 { (text(&document.title)) }
                        @if !lead.subject.is_empty() { (facts("subject", &lead.subject)) }
                        @if !document.downloads.is_empty() { (downloads(&document.downloads)) }
                    }
                }
                div.page {
                    nav.contents aria-label="Contents" {
                        details #contents { summary { "Contents" } (contents) }
                    }
                    main #content tabindex="-1" {
                        @if let Some(verdict) = &lead.verdict { (badge(verdict)) }
                        @if !lead.headline.is_empty() {
                            dl.cards { @for card in &lead.headline { (self::card(card)) } }
                        }
                        (sections)
                    }
                }
                footer.foot { p { (spans(&document.footer)) } }
                @if served.is_none() { script { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    html.into_string()
}

/// The colours of both themes, then the page's own rules. Paper is always light.
pub fn style() -> String {
    let variables = |theme| {
        let own = colours(include_str!("html/colours.txt"), theme);
        variables(theme).chain(own).map(|(name, value)| format!("{name}:{value}")).join(";")
    };
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    format!(
        ":root{{{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}\n{STYLE}"
    )
}

/// The header for programs, and the policy of the page: nothing may be loaded, and of scripts and styles
/// only those of this file are allowed.
fn head(document: &Document, served: Option<&Served>) -> Markup {
    let style = style();
    let [style_hash, script_hash] =
        [style.as_str(), SCRIPT].map(|it| STANDARD.encode(Sha256::digest(it)));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; \
         img-src data:; base-uri 'none'; form-action 'none'"
    );
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let pair = |(key, value): &(String, String)| format!("{}:{}", quoted(key), quoted(value));
    let pairs = document.header.iter().map(pair).join(",");
    let json = escape::json_in_html(&format!("{{{pairs}}}"));
    html! {
        meta charset="utf-8";
        @if served.is_none() {
            meta http-equiv="Content-Security-Policy" content=(text(&policy));
            meta name="referrer" content="no-referrer";
        }
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="generator" content=(concat!("Inferometer ", env!("CARGO_PKG_VERSION")));
        // Without it browsers request an icon.
        link rel="icon" href="data:,";
        title { (text(&document.title)) }
        script type="application/json" id="inferometer-report" { (PreEscaped(json)) }
        @match served {
            Some(served) => (served.head),
            None => style { (PreEscaped(style)) },
        }
    }
}

/// Text and attributes from outside: markup and invisible characters become harmless.
fn text(text: &str) -> Markup {
    PreEscaped(escape::xml(text))
}

fn spans(all: &Text) -> Markup {
    html! {
        @for span in all {
            @match span {
                Span::Plain(plain) => (text(plain)),
                Span::Strong(strong) => strong { (text(strong)) },
                Span::Code(code) => code { (text(code)) },
                Span::Link { text: words, to } => a href={ "#" (super::anchor(to)) } { (text(words)) },
            }
        }
    }
}

fn card(card: &Card) -> Markup {
    html! {
        div.card {
            dt { (text(&card.label)) }
            dd.value {
                (text(&card.value))
                @if !card.unit.is_empty() { " " span.unit { (text(&card.unit)) } }
                @if card.doubt.is_some() { (reservation_mark()) }
            }
            @if !card.detail.is_empty() { dd.detail { (text(&card.detail)) } }
            @if let Some(doubt) = &card.doubt { dd.detail.reserved { (text(doubt)) } }
        }
    }
}

fn badge(badge: &Badge) -> Markup {
    let (class, sign) = mood_look(badge.mood);
    html! {
        p class={ "verdict " (class) } {
            strong.badge { (self::sign(sign)) " " (text(&badge.word)) }
            " " span { (spans(&badge.text)) }
        }
        (list("points", &badge.points))
    }
}

fn sign(sign: &str) -> Markup {
    html! { span.sign aria-hidden="true" { (sign) } }
}

fn reservation_mark() -> Markup {
    html! { span.mark-doubt { "?" span.unseen { " (uncertain)" } } }
}

/// Texts one below the other; nothing where there are none.
fn list(class: &str, items: &[Text]) -> Markup {
    let class = Some(class).filter(|class| !class.is_empty());
    html! {
        @if !items.is_empty() {
            ul class=[class] { @for item in items { li { (spans(item)) } } }
        }
    }
}

fn facts(class: &str, facts: &[(String, Text)]) -> Markup {
    html! {
        dl class=(class) {
            @for (key, value) in facts { div { dt { (text(key)) } dd { (spans(value)) } } }
        }
    }
}

/// Links to files beside the page, and to those that it carries.
fn downloads(files: &[Download]) -> Markup {
    let link = |file: &Download| match &file.inside {
        Some((media, text)) => format!("data:{media};base64,{}", STANDARD.encode(text)),
        // Never the scheme of another address.
        None => format!("./{}", file.name),
    };
    html! {
        p.downloads {
            "Download:"
            @for file in files {
                " " a href=(text(&link(file))) download=(text(&file.name)) { (text(&file.title)) }
            }
        }
    }
}

/// A box that scrolls by itself, also by keys.
fn region(class: &str, label: &str, inside: &Markup) -> Markup {
    html! { div class=(class) tabindex="0" role="region" aria-label=(text(label)) { (inside) } }
}

/// What all parts of a page share.
struct Page {
    ids: Ids,
    room: [usize; LIMITS.len()],
    /// Whether what is written now is folded.
    is_folded: bool,
}

impl Page {
    /// The contents of these sections, and the sections.
    fn sections(&mut self, sections: &[Section], level: usize) -> (Markup, Markup) {
        let (mut contents, mut bodies) = (String::new(), String::new());
        for section in sections {
            let id = self.ids.give(&section.id);
            let title = text(&section.title);
            let anchor = format!("Link to {}", section.title);
            let heading = html! {
                (title) a.anchor href={ "#" (id) } aria-label=(text(&anchor)) { "#" }
            };
            let blocks = self.blocks(&section.blocks);
            let (inner_contents, inner) = self.sections(&section.sections, level + 1);
            let entry = html! {
                li {
                    a href={ "#" (id) } { (title) }
                    @if !section.sections.is_empty() { (inner_contents) }
                }
            };
            let body = html! {
                section id=(id) class="section" {
                    @match level {
                        2 => h2 { (heading) },
                        3 => h3 { (heading) },
                        4 => h4 { (heading) },
                        5 => h5 { (heading) },
                        _ => h6 { (heading) },
                    }
                    (blocks) (inner)
                }
            };
            contents += &entry.0;
            bodies += &body.0;
        }
        (html! { ul { (PreEscaped(contents)) } }, PreEscaped(bodies))
    }

    fn blocks(&mut self, blocks: &[Block]) -> Markup {
        html! { @for block in blocks { (self.block(block)) } }
    }

    fn block(&mut self, block: &Block) -> Markup {
        match block {
            Block::Paragraph(words) => html! { p { (spans(words)) } },
            Block::Facts(all) => facts("facts", all),
            Block::List(items) => list("", items),
            Block::Table(table) => self.table(table),
            Block::Figure(figure) => self.figure(&figure.chart),
            Block::Code { text, .. } => html! {
                pre.code tabindex="0" role="region" aria-label="Text as it is" {
                    code { (PreEscaped(escape::xml_lines(text))) }
                }
            },
            Block::Notice { mood, text, points, remedy } => {
                let (class, sign) = mood_look(*mood);
                html! {
                    div class={ "notice " (class) } role="note" {
                        (self::sign(sign))
                        div {
                            p { (spans(text)) }
                            (list("points", points))
                            @if let Some(remedy) = remedy {
                                p.remedy { strong { "What to do:" } " " (spans(remedy)) }
                            }
                        }
                    }
                }
            }
            Block::Verdict(verdict) => badge(verdict),
            Block::Details { summary, blocks } => {
                let before = std::mem::replace(&mut self.is_folded, true);
                let blocks = self.blocks(blocks);
                self.is_folded = before;
                html! { details.fold { summary { (text(summary)) } (blocks) } }
            }
        }
    }

    fn figure(&mut self, chart: &Chart) -> Markup {
        let [folded_max, tips_max, open_max, table_max, drawing_max] = self.room;
        let narrow_max = if self.is_folded { folded_max } else { open_max };
        let id = self.ids.give(&chart.id);
        // Names inside the drawing begin with its id, which must be unique.
        let chart = &Chart { id: id.clone(), ..chart.clone() };
        let mut drawing = chart.to_svg(Theme::Page);
        if tips_max < drawing.len() {
            drawing = without_tips(&drawing);
        }
        let narrow = chart.to_narrow_svg();
        let has_narrow = narrow.len() <= narrow_max.min(drawing_max);
        if has_narrow {
            drawing += &narrow;
        }
        let plot = if has_narrow { "plot fits" } else { "plot" };
        let numbers = chart.table();
        let class = if PRINTED_ROWS < numbers.rows.len() { "numbers long" } else { "numbers" };
        let table = self.table(&numbers);
        html! {
            figure.figure id=(id) {
                figcaption {
                    strong.chart-title { (text(&chart.title)) } " " span { (text(&chart.finding)) }
                }
                @if has_narrow || drawing.len() <= drawing_max {
                    (region(plot, &format!("Chart: {}", chart.title), &PreEscaped(drawing)))
                } @else {
                    p.n { (CHART_LEFT_OUT) }
                }
                @if !chart.n.is_empty() { p.n { (text(&chart.n)) } }
                @if table.0.len() <= table_max {
                    details class=(class) { summary { "The numbers as a table" } (table) }
                } @else {
                    p.n { (TABLE_LEFT_OUT) }
                }
            }
        }
    }

    /// Numbers are aligned, doubtful cells have a sign, and wide tables scroll in their own box.
    fn table(&mut self, table: &Table) -> Markup {
        let id = self.ids.give(&table.id);
        let label = if table.caption.is_empty() { "Table" } else { &table.caption };
        let reasons = table.reasons();
        let right = |align: Align| (align == Align::Right).then_some("right");
        let align = |index: usize| table.columns.get(index).map_or(Align::Left, |it| it.align);
        let grid = html! {
            table {
                @if !table.caption.is_empty() { caption { (text(&table.caption)) } }
                thead {
                    tr {
                        @for column in &table.columns {
                            th scope="col" class=[right(column.align)] { (text(&column.title)) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                (self::cell(cell, right(align(index)), index == 0, &reasons))
                            }
                        }
                    }
                }
            }
        };
        html! {
            div.table id=(id) {
                (region("scroll", label, &grid))
                @if !table.notes.is_empty() || !reasons.is_empty() {
                    ul.notes {
                        @for note in &table.notes { li { (spans(note)) } }
                        @for (index, reason) in reasons.iter().enumerate() {
                            li { sup { (index + 1) } " " (text(reason)) }
                        }
                    }
                }
            }
        }
    }
}

/// The first cell of a row names it, where it is words. The detail of a cell is its title, which the
/// script shows to keyboards too.
fn cell(cell: &Cell, class: Option<&str>, is_first: bool, reasons: &[&str]) -> Markup {
    let number = cell.number.filter(|number| number.is_finite()).map(|it| it.to_string());
    let note = cell.footnote().and_then(|own| reasons.iter().position(|it| *it == own));
    let content = html! {
        @if let Some(detail) = &cell.detail {
            @let class = if cell.doubtful { "detailed doubtful" } else { "detailed" };
            span class=(class) tabindex="0" title=(text(detail)) { (text(&cell.text)) }
        } @else {
            (text(&cell.text))
        }
        @if cell.doubtful || note.is_some() {
            // The sign of doubt and the number of the reason below the table stay together.
            span.marks {
                @if cell.doubtful { (reservation_mark()) }
                @if let Some(note) = note { sup.note-number { (note + 1) } }
            }
        }
    };
    html! {
        @if is_first && class.is_none() && !cell.text.is_empty() {
            th scope="row" data-number=[number] { (content) }
        } @else {
            td class=[class] data-number=[number] { (content) }
        }
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

/// A drawing without its tooltips.
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
