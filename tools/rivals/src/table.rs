//! Tables in Markdown, readable as they are on a terminal.

use std::fmt::Write as _;

/// A table with a heading, and what has to be said below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) heading: String,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) remarks: Vec<String>,
}

impl Table {
    pub(crate) fn markdown(&self) -> String {
        let header: Vec<String> = self.columns.iter().map(ToString::to_string).collect();
        // The last column is prose: padding it would only make long lines longer.
        let widths: Vec<usize> = (0..header.len())
            .map(|column| {
                let cells = std::iter::once(&header).chain(&self.rows);
                let widest = cells.map(|row| row[column].chars().count()).max().unwrap_or(0);
                if column + 1 == header.len() { header[column].chars().count() } else { widest }
            })
            .collect();
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width.max(3))).collect();
        let mut text = format!("## {}\n\n", self.heading);
        for row in [&header, &rule].into_iter().chain(&self.rows) {
            text.push('|');
            for (cell, &width) in row.iter().zip(&widths) {
                let _ = write!(text, " {:<width$} |", cell.replace(['|', '\n'], " "));
            }
            text.push('\n');
        }
        text.push('\n');
        for remark in &self.remarks {
            let _ = write!(text, "{remark}\n\n");
        }
        text
    }
}

/// A number that people compare: whole, with its thousands apart.
pub(crate) fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn ratio(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}×") } else { format!("{}×", count(value)) }
}

/// Nothing is a dash.
pub(crate) fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "–".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(7.0), "7");
        assert_eq!(count(123.0), "123");
        assert_eq!(count(1_234.4), "1,234");
        assert_eq!(count(1_234_567.0), "1,234,567");
    }

    #[test]
    fn cells_line_up_and_cannot_break_the_table() {
        let table = Table {
            heading: "One".to_owned(),
            columns: vec!["tool", "note"],
            rows: vec![vec!["wrk".to_owned(), "a|b\nc".to_owned()]],
            remarks: vec!["Said.".to_owned()],
        };
        assert_eq!(
            table.markdown(),
            "## One\n\n| tool | note |\n| ---- | ---- |\n| wrk  | a b c |\n\nSaid.\n\n"
        );
    }
}
