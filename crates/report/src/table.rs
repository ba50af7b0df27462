//! Tables of a terminal.

use crate::escape;
use crate::terminal::{Ink, Style};

/// Figures under their heads. Every row has as many cells as there are heads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub(crate) remarks: Vec<String>,
}

impl Table {
    /// Takes a column out, where it would only repeat another.
    pub(crate) fn remove_column(&mut self, head: &str) {
        let Some(column) = self.heads.iter().position(|found| *found == head) else { return };
        self.heads.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }

    pub(crate) fn to_terminal(&self, style: Style) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
            let texts = cells.chain([self.heads[column]]);
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded = cells.zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
            format!("  {}", padded.collect::<Vec<_>>().join("  "))
        };
        let mut text = style.paint(Ink::Bold, &escape::terminal(&self.title)) + "\n";
        let heads = line(&mut self.heads.iter().copied());
        text += &(style.paint(Ink::Dim, &heads) + "\n");
        for row in &self.rows {
            text += &(line(&mut row.iter().map(String::as_str)) + "\n");
        }
        for remark in &self.remarks {
            let remark = format!("  {}", escape::terminal(remark));
            text += &(style.paint(Ink::Dim, &remark) + "\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            title: "Ladder".to_owned(),
            heads: vec!["in flight", "p50"],
            rows: vec![vec!["100".to_owned(), "1,234.5".to_owned()]],
            remarks: vec!["a | b".to_owned()],
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let expected = "Ladder\n  in flight      p50\n        100  1,234.5\n  a | b\n";
        assert_eq!(table().to_terminal(Style::Plain), expected);
    }
}
