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
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 40\" role=\"img\">\
             <title>{}</title></svg>\n",
            escape::xml(&self.title)
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
