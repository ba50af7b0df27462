//! The page of a set of runs in a terminal.

mod matrix;

use inferometer_analysis::set::SetSummary;

use crate::document::{plain, terminal};
use crate::pages;
pub use crate::pages::SetFiles;
use crate::pages::target;
use crate::terminal::Style;

/// The whole page. `style` is plain where colour is not wanted.
pub fn render(set: &SetSummary, files: &SetFiles, style: Style) -> String {
    let Some(matrix) = set.matrix.as_ref().filter(|_| set.suite.is_none()) else {
        return terminal::render(&pages::set_brief(set, files), style);
    };
    let head = matrix::head(set, matrix)
        .into_iter()
        .enumerate()
        .map(|(place, line)| (if place == 0 { "matrix" } else { "" }.to_owned(), plain(line)));
    let opening = pages::opening(set, head.collect());
    let mut parts = vec![terminal::render(&opening, style)];
    parts.extend(matrix::parts(set, matrix, style));
    parts.push(terminal::sections(&pages::closing(set, files), style));
    parts.retain(|part| !part.is_empty());
    let text = parts.join("\n");
    match style {
        Style::Plain => text.lines().map(|line| line.trim_end().to_owned() + "\n").collect(),
        Style::Coloured => text,
    }
}
