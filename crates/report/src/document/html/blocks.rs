//! The blocks of a section, and the words in them.

use super::markup::Markup;
use super::{mood_class, sign, table};
use crate::chart::Theme;
use crate::document::ids::{Ids, anchor};
use crate::document::{Block, Figure, Mood, Span, Text};

/// Tables of charts that have more rows than this stay folded in print.
const PRINTED_ROWS: usize = 40;

pub(super) fn block(page: &mut Markup, ids: &mut Ids, block: &Block) {
    match block {
        Block::Paragraph(words) => page.element("p", &[], |page| text(page, words)),
        Block::Facts(pairs) => {
            page.element("dl", &[("class", "facts")], |page| facts(page, pairs));
        }
        Block::List(items) => page.element("ul", &[], |page| {
            for item in items {
                page.element("li", &[], |page| text(page, item));
            }
        }),
        Block::Table(table) => table::write(page, ids, table),
        Block::Figure(figure) => self::figure(page, ids, figure),
        Block::Code { language: _, text } => code(page, text),
        Block::Notice { mood, text, remedy } => notice(page, *mood, text, remedy.as_ref()),
        Block::Details { summary, blocks } => {
            page.element("details", &[("class", "fold")], |page| {
                page.element("summary", &[], |page| page.text(summary));
                for block in blocks {
                    self::block(page, ids, block);
                }
            });
        }
    }
}

pub(super) fn text(page: &mut Markup, text: &Text) {
    for span in text {
        match span {
            Span::Plain(words) => page.text(words),
            Span::Strong(words) => page.element("strong", &[], |page| page.text(words)),
            Span::Code(words) => page.element("code", &[], |page| page.text(words)),
            Span::Link { text, to } => {
                let to = format!("#{}", anchor(to));
                page.element("a", &[("href", &*to)], |page| page.text(text));
            }
        }
    }
}

pub(super) fn facts(page: &mut Markup, facts: &[(String, Text)]) {
    for (key, value) in facts {
        page.element("div", &[], |page| {
            page.element("dt", &[], |page| page.text(key));
            page.element("dd", &[], |page| text(page, value));
        });
    }
}

fn code(page: &mut Markup, text: &str) {
    let attributes = [("class", "code"), ("tabindex", "0"), ("role", "region")];
    let label = [("aria-label", "Text as it is")];
    page.element("pre", &[attributes.as_slice(), &label].concat(), |page| {
        page.element("code", &[], |page| page.lines(text));
    });
}

fn notice(page: &mut Markup, mood: Mood, words: &Text, remedy: Option<&Text>) {
    let class = format!("notice {}", mood_class(mood));
    page.element("div", &[("class", &*class), ("role", "note")], |page| {
        page.element("span", &[("class", "sign"), ("aria-hidden", "true")], |page| {
            page.text(sign(mood));
        });
        page.element("div", &[], |page| {
            page.element("p", &[], |page| text(page, words));
            if let Some(remedy) = remedy {
                page.element("p", &[("class", "remedy")], |page| {
                    page.element("strong", &[], |page| page.text("What to do:"));
                    page.text(" ");
                    text(page, remedy);
                });
            }
        });
    });
}

fn figure(page: &mut Markup, ids: &mut Ids, figure: &Figure) {
    let chart = &figure.chart;
    let id = ids.give(&chart.id);
    let numbers = chart.table();
    page.element("figure", &[("class", "figure"), ("id", &*id)], |page| {
        let label = format!("Chart: {}", chart.title);
        let attributes =
            [("class", "plot"), ("tabindex", "0"), ("role", "region"), ("aria-label", &*label)];
        page.element("div", &attributes, |page| page.drawing(&chart.to_svg(Theme::Page)));
        page.element("figcaption", &[], |page| {
            page.text(&chart.finding);
            if !chart.n.is_empty() {
                page.text(" ");
                page.element("span", &[("class", "n")], |page| page.text(&chart.n));
            }
        });
        let is_long = PRINTED_ROWS < numbers.rows.len();
        let class = if is_long { "numbers long" } else { "numbers" };
        page.element("details", &[("class", class)], |page| {
            page.element("summary", &[], |page| page.text("The numbers as a table"));
            table::write(page, ids, &numbers);
        });
    });
}
