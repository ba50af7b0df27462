//! Which row comes first by a number, and which cannot be told from it.

use std::cmp::Ordering;

use super::page::{Page, Row};
use super::words::Saying;

pub(super) struct Leading<'p> {
    pub(super) row: &'p Row,
    pub(super) place: usize,
    /// All that may come first as well, the likeliest first.
    pub(super) rivals: Vec<(&'p Row, usize)>,
    /// The next one, rival or not.
    pub(super) next: Option<(&'p Row, usize)>,
}

pub(super) fn highest(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

pub(super) fn lowest(a: f64, b: f64) -> Ordering {
    a.total_cmp(&b)
}

/// Of rows that have the number; `None` where none has.
pub(super) fn leading<'p>(
    page: &Page<'_>,
    rows: impl Iterator<Item = &'p Row>,
    (quantity, statistic): (&str, Option<&str>),
    order: fn(f64, f64) -> Ordering,
) -> Option<Leading<'p>> {
    let found = rows.filter_map(|row| Some((row, page.at(row, quantity, statistic)?)));
    let mut found: Vec<(&Row, usize)> = found.collect();
    found.sort_by(|(_, a), (_, b)| order(page.value(*a), page.value(*b)));
    let ((row, place), others) = found.split_first()?;
    let rivals = others.iter().copied().filter(|(_, other)| is_same(page, *place, *other));
    let (rivals, next) = (rivals.collect(), others.first().copied());
    Some(Leading { row, place: *place, rivals, next })
}

/// Whether nobody can say which is larger: the intervals overlap, or a page prints the same.
pub(super) fn is_same(page: &Page<'_>, one: usize, other: usize) -> bool {
    page.overlap(one, other) || page.fact(one).printed == page.fact(other).printed
}

/// A sentence that names more rows is a table.
const NAMED_MOST: usize = 3;

impl Leading<'_> {
    /// `The lowest TPOT mean is …`, or where nobody can say which it is, those that may be it.
    /// `None` where it would name too many rows.
    pub(super) fn say<'a>(&self, page: &Page<'a>, what: &str) -> Option<Saying<'a>> {
        let saying = Saying::on(page.facts).say(what);
        let name = self.row.name.as_deref()?;
        let Some(((last, last_place), between)) = self.rivals.split_last() else {
            return Some(saying.say(" is ").link(self.place).say(page.there()).name(name));
        };
        if NAMED_MOST <= self.rivals.len() {
            return None;
        }
        let overlap = self.rivals.iter().any(|(_, place)| page.overlap(self.place, *place));
        let (is, joined) = if overlap { (" is", " or ") } else { (" is the same", " and ") };
        let saying = saying.say(is).say(page.there()).name(name);
        let mut saying = saying.say(" (").link(self.place).say(")");
        for (row, place) in between {
            saying = saying.say(", ").name(row.name.as_deref()?).say(" (").number(*place).say(")");
        }
        let saying = saying.say(joined).name(last.name.as_deref()?).say(" (");
        let saying = saying.number(*last_place).say(")");
        Some(if overlap { saying.say(": the intervals overlap") } else { saying })
    }
}
