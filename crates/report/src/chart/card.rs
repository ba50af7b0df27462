//! The head of a page as one picture for chats and slides: what was measured, the verdict, and the few
//! numbers that the page is about.

use std::fmt::Write;

use super::Theme;
use super::canvas::{Anchor, Letters, Paint, letters};
use crate::document::{Card, Document, Mood, Text, text_of};
use crate::escape;
use crate::fmt::Join;
use crate::texts::filled;

/// The size that chats and social networks show in full.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 630.0;
const MARGIN: f64 = 56.0;
/// Between the boxes of numbers.
const GAP: f64 = 20.0;
/// More numbers than these are not read at a glance.
const CARDS_MAX: usize = 4;

const BRAND: Letters = letters(20.0, true, Paint::InkSoft, Anchor::Start);
const TITLE: Letters = letters(42.0, true, Paint::Ink, Anchor::Start);
const SUBJECT: Letters = letters(22.0, false, Paint::InkSoft, Anchor::Start);
const LABEL: Letters = letters(17.0, false, Paint::InkSoft, Anchor::Start);
const VALUE: Letters = letters(44.0, true, Paint::Ink, Anchor::Start);
const UNIT: Letters = letters(22.0, false, Paint::InkSoft, Anchor::Start);
const DETAIL: Letters = letters(17.0, false, Paint::InkSoft, Anchor::Start);

/// The picture as SVG, 1200 × 630. `mark` names the result and its hash, in the last line.
pub fn card(document: &Document, mark: &str, theme: Theme) -> String {
    let mut drawing = Drawing { body: String::new(), theme };
    let lead = &document.lead;
    let known = |key: &str| {
        let found = lead.subject.iter().find(|(known, _)| known == key);
        found.map(|(_, text)| text_of(text)).filter(|text| text != crate::fmt::NOTHING)
    };
    let width = WIDTH - 2.0 * MARGIN;
    drawing.circle(MARGIN + 9.0, 61.0);
    drawing.text(MARGIN + 32.0, 68.0, BRAND, "INFEROMETER");
    let title = known("Model").unwrap_or_else(|| document.title.clone());
    drawing.text(MARGIN, 138.0, TITLE, &TITLE.shortened(&title, width));
    let facts = ["Hardware", "Server", "Suite", "Load", "Question", "Results", "Date"];
    let facts = facts.into_iter().filter_map(known).join(" · ");
    let lines = SUBJECT.wrapped(&facts, width, 2);
    for (y, line) in [176.0, 206.0].into_iter().zip(&lines) {
        drawing.text(MARGIN, y, SUBJECT, line);
    }
    if let Some(verdict) = &lead.verdict {
        drawing.verdict(verdict.mood, &verdict.word, &verdict.text);
    }
    drawing.cards(&lead.headline);
    drawing.text(MARGIN, HEIGHT - 34.0, DETAIL, &DETAIL.shortened(mark, width));
    let surface = Paint::Surface.value(theme);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n<title>{}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"{surface}\"/>\n\
         <rect width=\"{WIDTH}\" height=\"10\" fill=\"{}\"/>\n{}</svg>\n",
        escape::xml(&document.title),
        Paint::Series(0).value(theme),
        drawing.body,
    )
}

/// The picture as a page of its own that fills one screen, in the colours that the reader prefers.
pub fn card_page(document: &Document, mark: &str) -> String {
    let [light, dark] = [Theme::Light, Theme::Dark].map(|theme| card(document, mark, theme));
    let [day, night] = [Theme::Light, Theme::Dark].map(|theme| Paint::Surface.value(theme));
    let title = escape::xml(&document.title);
    filled(include_str!("card.html"), &[&title, &day, &night, &light, &dark])
}

struct Drawing {
    body: String,
    theme: Theme,
}

impl Drawing {
    fn text(&mut self, x: f64, y: f64, letters: Letters, text: &str) {
        let weight = if letters.is_bold() { " font-weight=\"600\"" } else { "" };
        let anchor =
            if letters.anchor() == Anchor::Middle { " text-anchor=\"middle\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{weight}{anchor}>{}</text>",
            letters.size,
            letters.paint().value(self.theme),
            escape::xml(text),
        );
    }

    /// A number with its unit beside it, however wide the number is.
    fn value(&mut self, x: f64, y: f64, value: &str, unit: &str) {
        let [ink, soft] = [VALUE, UNIT].map(|letters| letters.paint().value(self.theme));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\"><tspan font-size=\"{}\" font-weight=\"600\" \
             fill=\"{ink}\">{}</tspan><tspan dx=\"8\" font-size=\"{}\" fill=\"{soft}\">{}</tspan></text>",
            VALUE.size,
            escape::xml(value),
            UNIT.size,
            escape::xml(unit),
        );
    }

    /// The sign of the program.
    fn circle(&mut self, x: f64, y: f64) {
        let paint = Paint::Series(0).value(self.theme);
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"8\" fill=\"none\" stroke=\"{paint}\" stroke-width=\"4\"/>"
        );
    }

    /// The word in its colour, and the reason beside it.
    fn verdict(&mut self, mood: Mood, word: &str, reason: &Text) {
        const TOP: f64 = 232.0;
        let paint = match mood {
            Mood::Good => Paint::Good,
            Mood::Note => Paint::Series(0),
            Mood::Doubt => Paint::Doubt,
            Mood::Bad => Paint::Bad,
        };
        let word_letters = letters(22.0, true, Paint::Surface, Anchor::Middle);
        let word = word_letters.shortened(word, 400.0);
        let width = word_letters.width(&word) + 40.0;
        let _ = writeln!(
            self.body,
            "<rect x=\"{MARGIN}\" y=\"{TOP}\" width=\"{}\" height=\"44\" rx=\"22\" fill=\"{}\"/>",
            super::canvas::pixels(width),
            paint.value(self.theme)
        );
        self.text(MARGIN + width / 2.0, TOP + 30.0, word_letters, &word);
        let left = MARGIN + width + 18.0;
        let lines = DETAIL.wrapped(&text_of(reason), WIDTH - MARGIN - left, 2);
        let first = if lines.len() == 1 { TOP + 28.0 } else { TOP + 17.0 };
        for (index, line) in lines.iter().enumerate() {
            self.text(left, first + 23.0 * index as f64, DETAIL, line);
        }
    }

    /// The first numbers of the page, side by side.
    fn cards(&mut self, cards: &[Card]) {
        const TOP: f64 = 310.0;
        const BOX_HEIGHT: f64 = 238.0;
        const PADDING: f64 = 20.0;
        /// Widths are those of a wide font, and there is room beside a label.
        const LABEL_ROOM: f64 = 1.1;
        let shown = &cards[..cards.len().min(CARDS_MAX)];
        let count = shown.len().max(1) as f64;
        let width = (WIDTH - 2.0 * MARGIN - GAP * (count - 1.0)) / count;
        let room = width - 2.0 * PADDING;
        let grid = Paint::Frame.value(self.theme);
        for (index, card) in shown.iter().enumerate() {
            let left = MARGIN + index as f64 * (width + GAP);
            let _ = writeln!(
                self.body,
                "<rect x=\"{left}\" y=\"{TOP}\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"14\" \
                 fill=\"none\" stroke=\"{grid}\" stroke-opacity=\"0.5\"/>"
            );
            let x = left + PADDING;
            self.text(x, TOP + 36.0, LABEL, &LABEL.shortened(&card.label, LABEL_ROOM * room));
            let value = VALUE.shortened(&card.value, room);
            // A unit that has no room beside its number stands before the details.
            let fits = VALUE.width(&value) + 8.0 + UNIT.width(&card.unit) <= room;
            self.value(x, TOP + 92.0, &value, if fits { &card.unit } else { "" });
            let unit = if fits { "" } else { &card.unit };
            let doubt = card.doubt.as_deref().unwrap_or_default();
            let detail = crate::fmt::joined(&[unit, &card.detail, doubt]);
            for (line, text) in DETAIL.wrapped(&detail, room, 4).iter().enumerate() {
                self.text(x, TOP + 128.0 + 25.0 * line as f64, DETAIL, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Badge, Lead, plain};

    fn page(model: &str, cards: usize) -> Document {
        let card = |number: usize| Card {
            label: format!("Number {number}"),
            value: "1,234".to_owned(),
            unit: "tok/s".to_owned(),
            detail: "within its <limits>".to_owned(),
            doubt: None,
        };
        let verdict = Badge {
            mood: Mood::Good,
            word: "Valid".to_owned(),
            text: plain("All checks passed."),
            points: Vec::new(),
        };
        let lead = Lead {
            subject: vec![
                ("Model".to_owned(), plain(model)),
                ("Hardware".to_owned(), plain(crate::fmt::NOTHING)),
                ("Date".to_owned(), plain("May 1, 2026")),
            ],
            verdict: Some(verdict),
            headline: (0..cards).map(card).collect(),
            ..Lead::default()
        };
        Document { lead, ..Document::new("Report", Vec::new()) }
    }

    #[test]
    fn a_card_has_the_first_numbers_the_verdict_and_the_mark() {
        let svg = card(&page("Llama", 6), "run 1 · sha256 abc", Theme::Light);
        for wanted in ["Llama", "May 1, 2026", "Valid", "Number 3", "sha256 abc", "&lt;limits&gt;"]
        {
            assert!(svg.contains(wanted), "{wanted} in {svg}");
        }
        assert!(!svg.contains("Number 4") && !svg.contains('–'), "{svg}");
        assert!(super::super::picture::to_png(&svg, 1.0).is_some());
    }

    #[test]
    fn a_card_is_a_page_without_anything_from_outside() {
        let page = card_page(&page("<script>alert(1)</script>", 2), "sha256 abc");
        for wanted in ["<title>Report</title>", "Valid", "Number 1", "sha256 abc", "default-src"] {
            assert!(page.contains(wanted), "{wanted} in {page}");
        }
        assert_eq!(page.matches("<svg").count(), 2, "one for each theme");
        assert!(!page.contains("<script") && !page.contains("href="), "{page}");
    }

    #[test]
    fn a_hostile_name_is_only_text_and_is_shortened() {
        let svg = card(&page(&"<script>".repeat(99), 1), "", Theme::Dark);
        assert!(!svg.contains("<script>") && svg.contains('…'), "{svg}");
    }
}
