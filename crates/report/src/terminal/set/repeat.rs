//! The table of repeated runs: one line for each number that people publish.

use inferometer_analysis::set::{AcrossRuns, ConditionSummary, LevelSummary};
use inferometer_analysis::{METRICS, Metric, Percentile, Quantity, Shape, Statistic, Unit};

use super::levels::{doubt_remark, is_open, titled};
use crate::fmt::{count, number, percent, percentile, with_interval};
use crate::table::Table;
use crate::terminal::Style;

/// Names stand at the left, so their column is as wide as this.
const METRIC_HEAD: &str = "metric                 ";

/// One table for each level, of which there is one.
pub(super) fn tables(
    condition: &ConditionSummary,
    name: Option<&str>,
    style: Style,
) -> Vec<String> {
    let open = is_open(condition);
    condition.levels.iter().map(|level| table(level, open, name).to_terminal(style)).collect()
}

fn table(level: &LevelSummary, open: bool, name: Option<&str>) -> Table {
    let rows: Vec<Vec<String>> = METRICS
        .iter()
        .flat_map(|metric| rows_of(metric, open))
        .filter_map(|(label, unit, quantity)| {
            let found = level.quantity(quantity).filter(|found| found.mean.is_some())?;
            Some(row(&label, unit, found))
        })
        .collect();
    let mut remarks = vec![doubt_remark(std::slice::from_ref(level))];
    if rows.iter().flatten().any(|cell| cell.starts_with('~')) {
        remarks.push("~ too few samples in a run to certify this percentile".to_owned());
    }
    let tally = &level.requests;
    remarks.push(format!(
        "{} requests ok, {} failed, all runs added up; no statistic is of requests of several runs",
        count(tally.ok),
        count(tally.failed)
    ));
    let runs = level.points.len();
    let title = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    Table {
        title: titled(name, &title),
        heads: vec![METRIC_HEAD, "mean", "std", "CoV", "n", "min", "max", "unit"],
        rows,
        remarks,
    }
}

/// Label, unit and quantity of the lines that a metric has.
const STATISTICS: [Statistic; 5] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P99),
    Statistic::Percentile(Percentile::P999),
    Statistic::Max,
];

fn rows_of(metric: &'static Metric, open: bool) -> Vec<(String, Unit, Quantity)> {
    let is_headline =
        if open { metric.headline.on_open_loop() } else { metric.headline.on_closed_loop() };
    match metric.shape() {
        Shape::Scalar => vec![(metric.title.to_owned(), metric.unit, metric.quantity())],
        Shape::Distribution if is_headline => STATISTICS
            .map(|statistic| {
                let label = format!("{} {}", metric.title, statistic.name());
                (label, metric.unit, metric.at(statistic))
            })
            .to_vec(),
        Shape::Distribution => Vec::new(),
    }
}

fn row(label: &str, unit: Unit, found: &AcrossRuns) -> Vec<String> {
    let (low, high) = found.extremes().unzip();
    let is_share = unit == Unit::Share;
    let scale = if is_share { 100.0 } else { 1.0 };
    let scaled = |value: Option<f64>| number(value.map(|value| value * scale));
    let mean = if is_share {
        let interval = found.doubt().and_then(|interval| {
            inferometer_analysis::Interval::new(interval.low * scale, interval.high * scale)
        });
        with_interval(found.mean.map(|mean| mean * scale), interval)
    } else {
        percentile(Some(found))
    };
    let width = METRIC_HEAD.len();
    vec![
        format!("{label:<width$}"),
        mean,
        scaled(found.std),
        percent(found.cov),
        count(found.n.into()),
        scaled(low),
        scaled(high),
        if is_share { "%" } else { unit.name() }.to_owned(),
    ]
}
