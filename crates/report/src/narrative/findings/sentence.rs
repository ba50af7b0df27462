//! Sentences as templates: a text with placeholders, and what fills them.
//!
//! | placeholder | filled by |
//! |---|---|
//! | `{}` | a fact with its unit, a level (`c=4`), a text or a fragment |
//! | `{=}` | a fact without its unit, where the words around it say it |
//! | `{>}` | a fact that links to its table, where a table has it |
//! | `{*}` | a name: of a scenario, a model or a machine; it makes no claim |
//! | `{$}` | code, such as a command |
//! | `{~}` | a fact that the sentence rests on and does not print |

use inferometer_analysis::Metric;

use super::page::{Page, Row};
use crate::document::{Span, Text};
use crate::narrative::{FactUnit, Sentence};

/// Writes a sentence of a page: `say!(page, "TTFT p99 is {>}.", p99)`. `None` where a part of it is
/// missing.
macro_rules! say {
    ($page:expr, $template:expr $(, $part:expr)* $(,)?) => {
        $page.fragment($template, &[$($crate::narrative::findings::sentence::Part::from($part)),*])
            .map($crate::narrative::Sentence::from)
    };
}

/// Writes a part of a sentence.
macro_rules! fragment {
    ($page:expr, $template:expr $(, $part:expr)* $(,)?) => {
        $page.fragment($template, &[$($crate::narrative::findings::sentence::Part::from($part)),*])
    };
}

pub(super) use {fragment, say};

/// What fills a placeholder.
pub(super) enum Part<'a> {
    /// A fact by its place.
    Fact(usize),
    /// A fact that may be missing; nothing is printed then.
    Maybe(Option<usize>),
    /// A fact of a row, such as `ttft.p99`; the sentence is not written where it is missing.
    Of(&'a Row, &'a str),
    Text(&'a str),
    Row(&'a Row),
    Fragment(Fragment),
}

impl From<usize> for Part<'_> {
    fn from(place: usize) -> Self {
        Self::Fact(place)
    }
}

impl From<Option<usize>> for Part<'_> {
    fn from(place: Option<usize>) -> Self {
        Self::Maybe(place)
    }
}

impl<'a> From<(&'a Row, &'a str)> for Part<'a> {
    fn from((row, quantity): (&'a Row, &'a str)) -> Self {
        Self::Of(row, quantity)
    }
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Row> for Part<'a> {
    fn from(row: &'a Row) -> Self {
        Self::Row(row)
    }
}

impl From<Fragment> for Part<'_> {
    fn from(fragment: Fragment) -> Self {
        Self::Fragment(fragment)
    }
}

/// A part of a sentence with the facts that it rests on.
#[derive(Clone, Debug, Default)]
pub(super) struct Fragment {
    text: Text,
    facts: Vec<usize>,
}

impl From<Fragment> for Sentence {
    fn from(Fragment { text, facts }: Fragment) -> Self {
        Self { text, facts }
    }
}

impl Fragment {
    fn push(&mut self, span: Span) {
        match (self.text.last_mut(), span) {
            (Some(Span::Plain(text)), Span::Plain(more)) => text.push_str(&more),
            (_, Span::Plain(more)) if more.is_empty() => {}
            (_, span) => self.text.push(span),
        }
    }

    fn rest_on(&mut self, place: usize) {
        if !self.facts.contains(&place) {
            self.facts.push(place);
        }
    }
}

impl Page<'_> {
    /// Fills the placeholders of a template in order; `None` where a part is missing.
    pub(super) fn fragment(&self, template: &str, parts: &[Part<'_>]) -> Option<Fragment> {
        let mut written = Fragment::default();
        let mut parts = parts.iter();
        let mut pieces = template.split('{');
        written.push(Span::Plain(pieces.next().unwrap_or_default().to_owned()));
        for piece in pieces {
            let (mode, text) = piece.split_once('}')?;
            self.fill(&mut written, mode, parts.next()?)?;
            written.push(Span::Plain(text.to_owned()));
        }
        Some(written)
    }

    fn fill(&self, written: &mut Fragment, mode: &str, part: &Part<'_>) -> Option<()> {
        let place = match part {
            Part::Fact(place) | Part::Maybe(Some(place)) => *place,
            Part::Of(row, quantity) => self.at(row, quantity)?,
            Part::Maybe(None) => return Some(()),
            Part::Row(row) if mode == "*" => {
                written.push(Span::Strong(row.name.clone()?));
                return Some(());
            }
            Part::Row(row) => return self.fill_level(written, row),
            Part::Text(text) => {
                written.push(match mode {
                    "*" => Span::Strong((*text).to_owned()),
                    "$" => Span::Code((*text).to_owned()),
                    _ => Span::Plain((*text).to_owned()),
                });
                return Some(());
            }
            Part::Fragment(inner) => {
                inner.text.iter().cloned().for_each(|span| written.push(span));
                inner.facts.iter().for_each(|place| written.rest_on(*place));
                return Some(());
            }
        };
        written.rest_on(place);
        let fact = self.fact(place);
        match mode {
            "~" => {}
            "=" => written.push(Span::Plain(fact.printed.clone())),
            // Counts of the whole page, ratios and what the server reported are in no table of
            // their own.
            ">" if Metric::named(&fact.about.quantity).is_some() => {
                written.push(Span::Link { text: self.with_unit(place), to: fact.table.clone() });
            }
            _ => written.push(Span::Plain(self.with_unit(place))),
        }
        Some(())
    }

    /// `c=4`, or the name of the row where there are several servers or rates.
    fn fill_level(&self, written: &mut Fragment, row: &Row) -> Option<()> {
        if 1 < self.families.len() || self.at(row, "asked_rate").is_some() {
            written.push(Span::Strong(row.name.clone()?));
            return Some(());
        }
        let place = self.at(row, "concurrency")?;
        written.rest_on(place);
        written.push(Span::Plain(format!("c={}", self.fact(place).printed)));
        Some(())
    }

    fn with_unit(&self, place: usize) -> String {
        let fact = self.fact(place);
        let unit = match (fact.unit, fact.printed.as_str()) {
            (FactUnit::Requests, "1") => " request",
            (FactUnit::Tokens, "1") => " token",
            (unit, _) => unit.word(),
        };
        format!("{}{unit}", fact.printed.replace("< ", "less than "))
    }
}
