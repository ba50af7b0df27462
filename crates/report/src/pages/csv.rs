//! The numbers as a spreadsheet reads them: one row for each level, all quantities with their
//! intervals.
//!
//! A cell that a spreadsheet would take for a formula is made text by an apostrophe: names come from
//! servers. Numbers are left alone.

use inferometer_analysis::set::STATISTICS;
use inferometer_model::spreadsheet::guarded;

pub use super::matrix::csv::of_matrix;
use super::prelude::*;
pub use super::results::csv as of_results;

pub fn of_set(set: &SetSummary, points: &[PointResult]) -> String {
    let rows = match &set.suite {
        Some(_) => rows::of_suite(set, points),
        None => rows::of_conditions(set, points).concat(),
    };
    written(&set.set, &rows)
}

pub fn of_run(summary: &Summary) -> String {
    written(&summary.run.id, &[Row::from_run(summary)])
}

fn written(id: &str, rows: &[Row<'_>]) -> String {
    let mut csv = Csv(Vec::new())
        .text("source", |_: &&Row<'_>| Some(id.to_owned()))
        .text("row", |row| Some(row.name.clone()))
        .text("category", |row| row.scenario.map(|scenario| scenario.category.clone()))
        .text("level", |row| row.level.map(|row| level_field(row.level)))
        .text("model", |row| row.drawn().map(|run| run.run.model.clone()))
        .text("verdict", |row| Some(row.verdict().to_string()))
        .text("simulated", |row| {
            let is_simulated = row.drawn()?.run.simulated.is_some();
            Some(if is_simulated { "yes" } else { "no" }.to_owned())
        })
        .count("runs", |row| {
            Some(row.level.map_or(row.runs.len(), |level| level.points.len()) as u64)
        })
        .count("scheduled", |row| Some(row.tally().scheduled))
        .count("ok", |row| Some(row.tally().ok))
        .count("failed", |row| Some(row.tally().failed))
        .count("cancelled", |row| Some(row.tally().cancelled))
        .text("finish reasons", |row| row.finish_reasons());
    for quantity in METRICS.iter().flat_map(|metric| metric.quantities(&STATISTICS)) {
        let unit = quantity.metric().unit.name();
        csv = csv
            .figure(&quantity.to_string(), &format!(" ({unit})"), move |row| {
                let across = row.quantity(quantity);
                (across.mean, across.confidence_interval())
            })
            .text(&format!("{quantity} certified"), move |row| {
                let across = row.quantity(quantity);
                across.mean.map(|_| if across.certified { "yes" } else { "no" }.to_owned())
            });
    }
    csv.lines(rows)
}

/// A level without separators of thousands.
pub(super) fn level_field(level: Level) -> String {
    fmt::level(level).replace(',', "")
}

/// A column: its head, and its cell of an item.
type Column<'a, T> = (String, Box<dyn Fn(&T) -> String + 'a>);

/// The columns of a file, in their order.
pub(super) struct Csv<'a, T>(pub(super) Vec<Column<'a, T>>);

impl<'a, T> Csv<'a, T> {
    /// Every text is quoted, so that none is divided whatever a spreadsheet takes for a separator.
    pub(super) fn text(mut self, head: &str, get: impl Fn(&T) -> Option<String> + 'a) -> Self {
        self.0.push((
            head.to_owned(),
            Box::new(move |item| text_field(&get(item).unwrap_or_default())),
        ));
        self
    }

    /// A missing number is an empty cell.
    pub(super) fn number(mut self, head: &str, get: impl Fn(&T) -> Option<f64> + 'a) -> Self {
        self.0.push((head.to_owned(), Box::new(move |item| number_field(get(item)))));
        self
    }

    pub(super) fn count(self, head: &str, get: impl Fn(&T) -> Option<u64> + 'a) -> Self {
        self.number(head, move |item| get(item).map(|count| count as f64))
    }

    /// A rate, or `inf` where there is no limit.
    pub(super) fn rate(mut self, head: &str, get: impl Fn(&T) -> Option<ResultRate> + 'a) -> Self {
        let field = move |item: &T| match get(item) {
            Some(ResultRate::Unlimited) => text_field("inf"),
            Some(ResultRate::PerSecond(rate)) => number_field(Some(rate)),
            None => String::new(),
        };
        self.0.push((head.to_owned(), Box::new(field)));
        self
    }

    /// A value and the ends of its interval; the heads end with `unit`.
    pub(super) fn figure(
        self,
        head: &str,
        unit: &str,
        get: impl Fn(&T) -> (Option<f64>, Option<Interval>) + Copy + 'a,
    ) -> Self {
        self.number(&format!("{head}{unit}"), move |item| get(item).0)
            .number(&format!("{head} low{unit}"), move |item| get(item).1.map(|found| found.low))
            .number(&format!("{head} high{unit}"), move |item| get(item).1.map(|found| found.high))
    }

    /// The head, and a line for each item.
    pub(super) fn lines(self, items: impl IntoIterator<Item = T>) -> String {
        let head = self.0.iter().map(|(head, _)| text_field(head)).join(",");
        let line = |item| self.0.iter().map(|(_, get)| get(&item)).join(",");
        let lines = [head].into_iter().chain(items.into_iter().map(line));
        lines.map(|line| line + "\r\n").collect()
    }
}

fn number_field(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn text_field(text: &str) -> String {
    format!("\"{}\"", guarded(text).replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_formula_is_text_and_numbers_stay_numbers() {
        assert_eq!(text_field("=cmd()"), "\"'=cmd()\"");
        assert_eq!(text_field("@SUM(A1)"), "\"'@SUM(A1)\"");
        assert_eq!(text_field("\t=1"), "\"'\t=1\"");
        assert_eq!(text_field("-1+2"), "\"'-1+2\"");
        assert_eq!(text_field(" =x"), "\"' =x\"");
        assert_eq!(text_field(";=cmd()"), "\"';=cmd()\"");
        assert_eq!(text_field("c=4; fast"), "\"c=4; fast\"");
        assert_eq!(text_field("=a,\"b\""), "\"'=a,\"\"b\"\"\"");
        assert_eq!(number_field(Some(-1.5)), "-1.5");
        assert_eq!(number_field(None), "");
    }
}
