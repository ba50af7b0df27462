//! Stands in for a chart's picture and table until charts draw themselves.

use super::Table;
use crate::chart::{Chart, Theme};
use crate::escape;

pub(super) trait Undrawn {
    fn to_svg(&self, theme: Theme) -> String;
    fn table(&self) -> Table;
}

impl Undrawn for Chart {
    fn to_svg(&self, _: Theme) -> String {
        let name = escape::xml(&self.title);
        let mark = |x: u32, tip: &str| {
            format!("<circle class=\"mark\" data-tip=\"{tip}\" cx=\"{x}\" cy=\"60\" r=\"8\"/>")
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 900 120\" \
             role=\"img\"><title>{name}</title>\
             <g class=\"series\" data-series=\"{name} a\" fill=\"var(--series-1)\">{}{}</g>\
             <g class=\"series\" data-series=\"b\" fill=\"var(--series-2)\">{}</g></svg>\n",
            mark(100, "one"),
            mark(300, "two"),
            mark(500, &name),
        )
    }

    fn table(&self) -> Table {
        Table {
            id: format!("{}-numbers", self.id),
            caption: self.title.clone(),
            columns: Vec::new(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Colours until charts have a palette.
pub(super) fn variables(theme: Theme) -> Vec<(&'static str, &'static str)> {
    let rows = [
        ("--series-1", "#0072b2", "#56b4e9"),
        ("--series-2", "#d55e00", "#f08a4b"),
        ("--ink", "#1b1f24", "#e8ebef"),
        ("--ink-soft", "#545b64", "#aab2bd"),
        ("--grid", "#e3e6ea", "#2c333d"),
        ("--frame", "#868e98", "#737d8a"),
        ("--surface", "#ffffff", "#161b22"),
        ("--good", "#0b7a5c", "#3ecf9a"),
        ("--bad", "#b3261e", "#ff7f71"),
        ("--doubt", "#8a5a00", "#f0b429"),
    ];
    let is_dark = theme == Theme::Dark;
    rows.into_iter().map(|(name, light, dark)| (name, if is_dark { dark } else { light })).collect()
}
