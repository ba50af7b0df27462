//! The blocks of a section, and the words in them.

use super::markup::Markup;
use super::{Body, mood_class, sign, table};
use crate::chart::{Chart, Theme};
use crate::document::ids::anchor;
use crate::document::{Block, Mood, Span, Text};

/// Tables of charts that have more rows than this stay folded in print.
const PRINTED_ROWS: usize = 40;

impl Body {
    pub(super) fn block(&mut self, block: &Block) {
        let page = &mut self.page;
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
            Block::Table(table) => table::write(page, &mut self.ids, table),
            Block::Figure(figure) => self.figure(&figure.chart),
            Block::Code { language: _, text } => code(page, text),
            Block::Notice { mood, text, points, remedy } => {
                notice(page, (*mood, text), points, remedy.as_ref());
            }
            Block::Verdict(badge) => super::badge(page, badge),
            Block::Details { summary, blocks } => {
                page.open("details", &[("class", "fold")]);
                page.element("summary", &[], |page| page.text(summary));
                for block in blocks {
                    self.block(block);
                }
                self.page.close("details");
            }
        }
    }

    fn figure(&mut self, chart: &Chart) {
        let (page, ids) = (&mut self.page, &mut self.ids);
        let id = ids.give(&chart.id);
        // Names inside the drawing begin with its id, which must be its own.
        let chart = &Chart { id: id.clone(), ..chart.clone() };
        let drawing = without_tips_beyond(self.room.told, chart.to_svg(Theme::Page));
        let numbers = chart.table();
        page.element("figure", &[("class", "figure"), ("id", &*id)], |page| {
            page.element("figcaption", &[], |page| {
                page.element("strong", &[("class", "chart-title")], |page| page.text(&chart.title));
                page.text(" ");
                page.element("span", &[], |page| page.text(&chart.finding));
            });
            let label = format!("Chart: {}", chart.title);
            let attributes =
                [("class", "plot"), ("tabindex", "0"), ("role", "region"), ("aria-label", &*label)];
            if drawing.len() <= self.room.drawing {
                page.element("div", &attributes, |page| page.drawing(&drawing));
            } else {
                page.element("p", &[("class", "n")], |page| page.text(NOT_DRAWN));
            }
            if !chart.n.is_empty() {
                page.element("p", &[("class", "n")], |page| page.text(&chart.n));
            }
            let mut table = Markup::default();
            table::write(&mut table, ids, &numbers);
            let table = table.finish();
            if self.room.table < table.len() {
                page.element("p", &[("class", "n")], |page| page.text(LEFT_OUT));
                return;
            }
            let is_long = PRINTED_ROWS < numbers.rows.len();
            let class = if is_long { "numbers long" } else { "numbers" };
            page.element("details", &[("class", class)], |page| {
                page.element("summary", &[], |page| page.text("The numbers as a table"));
                page.written(&table);
            });
        });
    }
}

/// Where a table would make the page too large to send.
const LEFT_OUT: &str = "The table of these numbers is left out, because the page would be larger than \
                        two megabytes; the stored summaries have them.";

const NOT_DRAWN: &str = "The chart is left out, because the page would be larger than two megabytes; \
                         report.md has it.";

/// One below the other; nothing where there are none.
pub(super) fn points(page: &mut Markup, points: &[Text]) {
    if points.is_empty() {
        return;
    }
    page.element("ul", &[("class", "points")], |page| {
        for point in points {
            page.element("li", &[], |page| text(page, point));
        }
    });
}

/// The drawing, without what its marks say where it is larger than `told_up_to`.
fn without_tips_beyond(told_up_to: usize, svg: String) -> String {
    const TIP: &str = " data-tip=\"";
    if svg.len() <= told_up_to {
        return svg;
    }
    let mut parts = svg.split(TIP);
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Quotation marks inside of the value are escaped.
        bare.push_str(part.split_once('"').map_or(part, |(_, rest)| rest));
    }
    bare
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

fn notice(page: &mut Markup, (mood, words): (Mood, &Text), points: &[Text], remedy: Option<&Text>) {
    let class = format!("notice {}", mood_class(mood));
    page.element("div", &[("class", &*class), ("role", "note")], |page| {
        page.element("span", &[("class", "sign"), ("aria-hidden", "true")], |page| {
            page.text(sign(mood));
        });
        page.element("div", &[], |page| {
            page.element("p", &[], |page| text(page, words));
            self::points(page, points);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_drawing_loses_its_tips_and_nothing_else() {
        let svg =
            "<g><rect x=\"1\" data-tip=\"a &quot;b&quot;\"/><rect data-tip=\"\" y=\"2\"/></g>";
        assert_eq!(without_tips_beyond(svg.len(), svg.to_owned()), svg);
        assert_eq!(
            without_tips_beyond(svg.len() - 1, svg.to_owned()),
            "<g><rect x=\"1\"/><rect y=\"2\"/></g>"
        );
    }
}
