//! Tables: numbers line up, doubts have a sign, and wide ones scroll in their own box.

use super::blocks;
use super::markup::Markup;
use crate::document::ids::Ids;
use crate::document::{Align, Cell, Column, Table};

pub(super) fn write(page: &mut Markup, ids: &mut Ids, table: &Table) {
    let id = ids.give(&table.id);
    let label = if table.caption.is_empty() { "Table" } else { &table.caption };
    page.element("div", &[("class", "table"), ("id", &*id)], |page| {
        let attributes =
            [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", label)];
        let reasons = reasons(table);
        page.element("div", &attributes, |page| {
            page.element("table", &[], |page| grid(page, table, &reasons));
        });
        if !table.notes.is_empty() || !reasons.is_empty() {
            page.element("ul", &[("class", "notes")], |page| {
                for note in &table.notes {
                    page.element("li", &[], |page| blocks::text(page, note));
                }
                for (place, reason) in reasons.iter().enumerate() {
                    page.element("li", &[], |page| {
                        page.element("sup", &[], |page| page.text(&(place + 1).to_string()));
                        page.text(" ");
                        page.text(reason);
                    });
                }
            });
        }
    });
}

/// Each reason once, in the order in which cells have them.
fn reasons(table: &Table) -> Vec<&str> {
    let mut reasons: Vec<&str> = Vec::new();
    for reason in table.rows.iter().flatten().filter_map(Cell::footnote) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

fn grid(page: &mut Markup, table: &Table, reasons: &[&str]) {
    if !table.caption.is_empty() {
        page.element("caption", &[], |page| page.text(&table.caption));
    }
    page.element("thead", &[], |page| {
        page.element("tr", &[], |page| {
            for column in &table.columns {
                page.element("th", &title_attributes(column), |page| page.text(&column.title));
            }
        });
    });
    page.element("tbody", &[], |page| {
        for row in &table.rows {
            page.element("tr", &[], |page| {
                for (place, cell) in row.iter().enumerate() {
                    let align = table.columns.get(place).map_or(Align::Left, |column| column.align);
                    self::cell(page, cell, (align, place == 0), reasons);
                }
            });
        }
    });
}

fn title_attributes(column: &Column) -> Vec<(&'static str, &'static str)> {
    let mut attributes = vec![("scope", "col")];
    attributes.extend(class(column.align));
    attributes
}

fn class(align: Align) -> Option<(&'static str, &'static str)> {
    (align == Align::Right).then_some(("class", "right"))
}

/// The first cell of a row names it, where it is words.
fn cell(page: &mut Markup, cell: &Cell, (align, is_first): (Align, bool), reasons: &[&str]) {
    let number = cell.number.filter(|number| number.is_finite()).map(|number| number.to_string());
    let mut attributes: Vec<(&'static str, &str)> = Vec::new();
    let is_name = is_first && align == Align::Left && !cell.text.is_empty();
    if is_name {
        attributes.push(("scope", "row"));
    }
    attributes.extend(class(align));
    attributes.extend(number.as_deref().map(|number| ("data-number", number)));
    let name = if is_name { "th" } else { "td" };
    page.element(name, &attributes, |page| {
        told(page, cell);
        let note = cell.footnote().and_then(|own| reasons.iter().position(|it| *it == own));
        if cell.doubtful || note.is_some() {
            page.element("span", &[("class", "marks")], |page| marks(page, cell, note));
        }
    });
}

/// The sign of doubt and the number of the reason below the table, which stay together.
fn marks(page: &mut Markup, cell: &Cell, note: Option<usize>) {
    if cell.doubtful {
        mark_doubt(page);
    }
    if let Some(place) = note {
        page.element("sup", &[("class", "note-number")], |page| {
            page.text(&(place + 1).to_string());
        });
    }
}

/// What there is more to know of a cell is its title, which the script shows to keyboards too.
fn told(page: &mut Markup, cell: &Cell) {
    let class = if cell.doubtful { "told doubtful" } else { "told" };
    match &cell.detail {
        Some(detail) => {
            let attributes = [("class", class), ("tabindex", "0"), ("title", &**detail)];
            page.element("span", &attributes, |page| page.text(&cell.text));
        }
        None => page.text(&cell.text),
    }
}

pub(super) fn mark_doubt(page: &mut Markup) {
    page.element("span", &[("class", "mark-doubt")], |page| {
        page.text("?");
        page.element("span", &[("class", "unseen")], |page| page.text(" (doubtful)"));
    });
}
