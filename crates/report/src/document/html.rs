//! A document as one HTML file that needs nothing else: it opens from a disk without a network.
//!
//! Styles and the script stand in the page, and its policy lets nothing else in: no other script,
//! no picture, no font, no request. Tables and charts are complete before any script runs.

mod blocks;
mod head;
mod markup;
mod table;

use super::ids::Ids;
use super::{Badge, Card, Document, Lead, Mood, Section};
use markup::Markup;

/// A page that is larger is a nuisance to send.
const BYTES_MAX: usize = 2_000_000;

/// What charts may take, in bytes.
#[derive(Clone, Copy)]
struct Room {
    /// Larger drawings have no tooltips.
    told: usize,
    /// Larger tables of their numbers are left out, and the page says so.
    table: usize,
    /// Larger drawings are left out.
    drawing: usize,
}

/// In steps, until the page is small enough: tooltips go first, because the tables have their numbers,
/// and drawings last.
const ROOMS: [Room; 13] = [
    room(usize::MAX, usize::MAX, usize::MAX),
    room(48_000, usize::MAX, usize::MAX),
    room(24_000, usize::MAX, usize::MAX),
    room(12_000, usize::MAX, usize::MAX),
    room(0, usize::MAX, usize::MAX),
    room(0, 16_000, usize::MAX),
    room(0, 6_000, usize::MAX),
    room(0, 2_000, usize::MAX),
    room(0, 0, usize::MAX),
    room(0, 0, 32_000),
    room(0, 0, 16_000),
    room(0, 0, 8_000),
    room(0, 0, 0),
];

const fn room(told: usize, table: usize, drawing: usize) -> Room {
    Room { told, table, drawing }
}

pub fn render(document: &Document) -> String {
    let mut page = String::new();
    for room in ROOMS {
        page = render_within(document, room);
        if page.len() < BYTES_MAX {
            break;
        }
    }
    page
}

fn render_within(document: &Document, room: Room) -> String {
    let mut page = Markup::default();
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    head::write(&mut page, document);
    page.raw("</head>\n<body>\n");
    page.element("a", &[("class", "skip"), ("href", "#content")], |page| {
        page.text("Skip to the report");
    });
    let mut body = Body { page: Markup::default(), ids: Ids::default(), room };
    // The page's own ids come first, so that no section can take them.
    for own in ["content", "contents", "inferometer-report", "theme", "tip"] {
        body.ids.give(own);
    }
    let mut contents = Vec::new();
    for section in &document.sections {
        contents.push(body.section(section, 2));
    }
    banner(&mut page, document);
    page.raw("<div class=\"page\">\n");
    navigation(&mut page, &contents);
    page.raw("<main id=\"content\" tabindex=\"-1\">\n");
    lead(&mut page, &document.lead);
    page.written(&body.page.finish());
    page.raw("</main>\n</div>\n");
    page.element("footer", &[("class", "foot")], |page| {
        page.element("p", &[], |page| blocks::text(page, &document.footer));
    });
    page.raw("<script>").raw(head::SCRIPT).raw("</script>\n</body>\n</html>\n");
    page.finish()
}

/// What stands between the lead and the footer.
struct Body {
    page: Markup,
    ids: Ids,
    room: Room,
}

/// A line of the contents.
struct Entry {
    id: String,
    title: String,
    inner: Vec<Entry>,
}

impl Body {
    fn section(&mut self, section: &Section, level: usize) -> Entry {
        let id = self.ids.give(&section.id);
        let heading = ["h2", "h3", "h4", "h5", "h6"][level.clamp(2, 6) - 2];
        self.page.open("section", &[("id", &id), ("class", "section")]);
        self.page.element(heading, &[], |page| {
            page.text(&section.title);
            let label = format!("Link to {}", section.title);
            let to = format!("#{id}");
            let attributes = [("class", "anchor"), ("href", &*to), ("aria-label", &*label)];
            page.element("a", &attributes, |page| page.text("#"));
        });
        for block in &section.blocks {
            self.block(block);
        }
        let inner = section.sections.iter().map(|inner| self.section(inner, level + 1)).collect();
        self.page.close("section");
        Entry { id, title: section.title.clone(), inner }
    }
}

fn banner(page: &mut Markup, document: &Document) {
    page.element("header", &[("class", "banner")], |page| {
        page.element("div", &[("class", "banner-inner")], |page| {
            page.element("p", &[("class", "brand")], |page| page.text("Inferometer"));
            // Shown by the script, which makes it work.
            let attributes = [("id", "theme"), ("type", "button"), ("hidden", "")];
            page.element("button", &attributes, |page| page.text("Theme: auto"));
            page.element("h1", &[], |page| page.text(&document.title));
            if !document.lead.subject.is_empty() {
                page.element("dl", &[("class", "subject")], |page| {
                    blocks::facts(page, &document.lead.subject);
                });
            }
        });
    });
}

fn navigation(page: &mut Markup, contents: &[Entry]) {
    page.element("nav", &[("class", "contents"), ("aria-label", "Contents")], |page| {
        page.element("details", &[("id", "contents")], |page| {
            page.element("summary", &[], |page| page.text("Contents"));
            entries(page, contents);
        });
    });
}

fn entries(page: &mut Markup, contents: &[Entry]) {
    page.element("ul", &[], |page| {
        for entry in contents {
            page.element("li", &[], |page| {
                let to = format!("#{}", entry.id);
                page.element("a", &[("href", &*to)], |page| page.text(&entry.title));
                if !entry.inner.is_empty() {
                    entries(page, &entry.inner);
                }
            });
        }
    });
}

fn lead(page: &mut Markup, lead: &Lead) {
    if let Some(badge) = &lead.verdict {
        self::badge(page, badge);
    }
    if !lead.headline.is_empty() {
        page.element("dl", &[("class", "cards")], |page| {
            for card in &lead.headline {
                self::card(page, card);
            }
        });
    }
}

fn card(page: &mut Markup, card: &Card) {
    page.element("div", &[("class", "card")], |page| {
        page.element("dt", &[], |page| page.text(&card.label));
        page.element("dd", &[("class", "value")], |page| {
            page.text(&card.value);
            if !card.unit.is_empty() {
                page.text(" ");
                page.element("span", &[("class", "unit")], |page| page.text(&card.unit));
            }
            if card.doubt.is_some() {
                table::mark_doubt(page);
            }
        });
        if !card.detail.is_empty() {
            page.element("dd", &[("class", "detail")], |page| page.text(&card.detail));
        }
        if let Some(doubt) = &card.doubt {
            page.element("dd", &[("class", "detail reserved")], |page| page.text(doubt));
        }
    });
}

const fn mood_class(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "good",
        Mood::Note => "note",
        Mood::Doubt => "doubt",
        Mood::Bad => "bad",
    }
}

/// Moods differ in shape too, for those who do not see the colour.
const fn sign(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "✓",
        Mood::Note => "i",
        Mood::Doubt => "!",
        Mood::Bad => "✕",
    }
}

fn badge(page: &mut Markup, Badge { mood, word, text, points }: &Badge) {
    let class = format!("verdict {}", mood_class(*mood));
    page.element("p", &[("class", &*class)], |page| {
        page.element("strong", &[("class", "badge")], |page| {
            page.element("span", &[("class", "sign"), ("aria-hidden", "true")], |page| {
                page.text(sign(*mood));
            });
            page.text(" ");
            page.text(word);
        });
        page.text(" ");
        page.element("span", &[], |page| blocks::text(page, text));
    });
    blocks::points(page, points);
}
