//! A table whose heads are the names of sides: names to the left, figures to the right, and words in
//! the colour of what they mean.

use std::fmt::Write;

use crate::escape;
use crate::terminal::{Ink, Style};

#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) title: Option<String>,
    pub(super) heads: Vec<String>,
    /// Every row has as many cells as there are heads.
    pub(super) rows: Vec<Vec<Cell>>,
    /// Sentences below it.
    pub(super) remarks: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    text: String,
    ink: Option<Ink>,
}

impl Cell {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ink: None }
    }

    pub(super) fn painted(text: impl Into<String>, ink: Ink) -> Self {
        Self { text: text.into(), ink: Some(ink) }
    }
}

impl Grid {
    pub(super) fn to_terminal(&self, style: Style) -> String {
        let widths: Vec<usize> = (0..self.heads.len()).map(|column| self.width(column)).collect();
        let mut text = String::new();
        if let Some(title) = &self.title {
            text += &(style.paint(Ink::Bold, &escape::terminal(title)) + "\n");
        }
        let heads = self.heads.iter().enumerate();
        let heads: Vec<String> = heads
            .map(|(column, head)| padded(&escape::terminal(head), column, widths[column]))
            .collect();
        text += &(style.paint(Ink::Dim, format!("  {}", heads.join("  ")).trim_end()) + "\n");
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let shown = padded(&escape::terminal(&cell.text), column, widths[column]);
                cell.ink.map_or(shown.clone(), |ink| style.paint(ink, &shown))
            });
            text += &(format!("  {}", cells.collect::<Vec<_>>().join("  ")) + "\n");
        }
        for remark in &self.remarks {
            text += &crate::lines::hanging("  ", 2, &escape::terminal(remark));
        }
        text
    }

    pub(super) fn to_markdown(&self) -> String {
        let mut text = String::new();
        if let Some(title) = &self.title {
            let _ = writeln!(text, "### {}\n", escape::markdown(title));
        }
        let heads: Vec<String> = self.heads.iter().map(|head| escape::markdown(head)).collect();
        let _ = writeln!(text, "| {} |", heads.join(" | "));
        let _ = writeln!(text, "|:---|{}", "---:|".repeat(self.heads.len().saturating_sub(1)));
        for row in &self.rows {
            let cells = row.iter().map(|cell| {
                let shown = escape::markdown(&cell.text);
                if cell.ink.is_some() { format!("**{shown}**") } else { shown }
            });
            let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "\n{}", escape::markdown(remark));
        }
        text
    }

    /// Drops figures that no row has: a column of dashes asks for a reason that nobody gives.
    pub(super) fn leave_out_columns_of(&mut self, nothing: &str) {
        let is_kept =
            |column: usize| column == 0 || self.rows.iter().any(|row| row[column].text != nothing);
        let kept: Vec<bool> = (0..self.heads.len()).map(is_kept).collect();
        keep(&mut self.heads, &kept);
        for row in &mut self.rows {
            keep(row, &kept);
        }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| &cell.text);
        let texts = cells.chain(self.heads.get(column));
        texts.map(|text| escape::terminal(text).chars().count()).max().unwrap_or(0)
    }
}

fn keep<T>(cells: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    cells.retain(|_| kept.next().copied().unwrap_or(true));
}

/// The first column holds names.
fn padded(text: &str, column: usize, width: usize) -> String {
    if column == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_figures_right() {
        let grid = Grid {
            title: Some("at 8".to_owned()),
            heads: vec!["metric".to_owned(), "A".to_owned(), "verdict".to_owned()],
            rows: vec![vec![
                Cell::plain("TTFT p99 (ms)"),
                Cell::plain("1,234"),
                Cell::painted("worse", Ink::Bad),
            ]],
            remarks: vec!["a | b".to_owned()],
        };
        assert_eq!(
            grid.to_terminal(Style::Plain),
            "at 8\n  metric             A  verdict\n  TTFT p99 (ms)  1,234    worse\n  a | b\n"
        );
        assert_eq!(
            grid.to_markdown(),
            "### at 8\n\n| metric | A | verdict |\n|:---|---:|---:|\n\
             | TTFT p99 (ms) | 1,234 | **worse** |\n\na \\| b\n"
        );
    }

    #[test]
    fn a_column_of_dashes_is_left_out_and_one_with_a_figure_stays() {
        let row = |cells: [&str; 4]| cells.map(Cell::plain).to_vec();
        let mut grid = Grid {
            title: None,
            heads: ["", "prompts", "answers", "speed-up"].map(str::to_owned).to_vec(),
            rows: vec![row(["–", "–", "5", "–"]), row(["8", "–", "–", "1 %"])],
            remarks: Vec::new(),
        };
        grid.leave_out_columns_of("–");
        assert_eq!(grid.heads, ["", "answers", "speed-up"]);
        assert_eq!(grid.to_terminal(Style::Plain).lines().last(), Some("  8        –       1 %"));
    }
}
