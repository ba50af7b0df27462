//! Several results side by side: the numbers that charts are drawn from in the browser, and the table
//! of their metrics.

use std::collections::BTreeMap;

use inferometer_analysis::{METRICS, Metric, Percentile, Quantity, Shape, Statistic, Unit, metric};
use inferometer_model::study::Level;
use inferometer_report::document::{Block, Cell, Column, Table};
use inferometer_report::fmt::{self, NOTHING, confidence, count, in_unit, level_name};
use serde::Serialize;

use crate::{Entry, NamedResult};

/// Runs, sets and imports that are laid over each other at most.
pub(crate) const PICKS_MAX: usize = 8;
/// Points of one view; charts of more are not read by anybody.
const POINTS_MAX: usize = 20_000;
const STATISTICS: [Statistic; 4] = [
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P90),
    Statistic::Percentile(Percentile::P99),
    Statistic::Mean,
];

/// One table of numbers, of which any two columns can be drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct View {
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) axes: Vec<Axis>,
    /// The axes that are shown first.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) series: Vec<Series>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Axis {
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) unit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) name: String,
    /// In the order of the axes.
    pub(crate) values: Vec<Option<f64>>,
}

impl Axis {
    pub(crate) fn new(key: &str, title: &str, unit: &'static str) -> Self {
        Self { key: key.to_owned(), title: title.to_owned(), unit }
    }

    fn from_quantity(quantity: &Quantity) -> Self {
        let unit = Unit::name(quantity.metric().unit);
        Self { key: quantity.to_string(), title: quantity.title(), unit }
    }
}

impl View {
    /// Without the axes that no point has a value on; `None` where fewer than two are left.
    fn filled(mut self) -> Option<Self> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let is_known = |axis: usize| points().any(|point| point.values[axis].is_some());
        let kept: Vec<bool> = (0..self.axes.len()).map(is_known).collect();
        let mut keep = kept.iter();
        self.axes.retain(|_| keep.next().copied().unwrap_or_default());
        let mut left = POINTS_MAX;
        for series in &mut self.series {
            series.points.truncate(left);
            left -= series.points.len();
            for point in &mut series.points {
                let mut keep = kept.iter();
                point.values.retain(|_| keep.next().copied().unwrap_or_default());
            }
        }
        let has = |key: &str| self.axes.iter().any(|axis| axis.key == key);
        let first = |place: usize| self.axes.get(place).map(|axis| axis.key.clone());
        let (x, y) = (self.x.clone(), self.y.clone());
        self.x = if has(&x) { x } else { first(0)? };
        self.y = if has(&y) { y } else { first(1)? };
        Some(self)
    }
}

/// Everything that is laid over each other, by what was picked.
pub(crate) type Picked = Vec<(Entry, Vec<NamedResult>)>;

pub(crate) fn views(picked: &Picked) -> Vec<View> {
    let mut views = [results_view(picked), distribution_view(picked), course_view(picked)];
    // Single points are no lines: what was measured within the runs says more.
    if views[0].series.iter().all(|series| series.points.len() < 2) {
        views.rotate_left(1);
    }
    views.into_iter().filter_map(View::filled).collect()
}

/// All that a run can be described by, in the order of the pages.
fn quantities() -> impl Iterator<Item = Quantity> {
    METRICS.iter().flat_map(|metric| match metric.shape() {
        Shape::Scalar => vec![metric.quantity()],
        Shape::Distribution => STATISTICS.map(|statistic| metric.at(statistic)).to_vec(),
    })
}

/// Runs of ours by their summary; results of other tools as far as they have it.
fn value(result: &NamedResult, quantity: &Quantity) -> Option<inferometer_analysis::Estimate> {
    match &result.summary {
        Some(summary) => quantity.value_in(summary).ok(),
        None => result.result.figure(quantity).ok(),
    }
}

/// A point for each result, a series for each configuration.
fn results_view(picked: &Picked) -> View {
    let quantities: Vec<Quantity> = quantities().collect();
    let levels = || picked.iter().flat_map(|(_, results)| results).map(|it| it.result.level());
    let is_rate = levels().any(|level| matches!(level, Level::Rate(_)));
    let is_closed = levels().any(|level| matches!(level, Level::Concurrency(_)));
    let unit = match (is_rate, is_closed) {
        (true, false) => Unit::RequestsPerSecond.name(),
        (false, true) => "in flight",
        _ => "",
    };
    let point = |result: &NamedResult| {
        let level = result.result.level();
        let load = match level {
            Level::Rate(per_s) => Some(per_s),
            Level::Concurrency(requests) => Some(f64::from(requests.get())),
            Level::AsAsked | Level::Unlimited => None,
        };
        let found = quantities.iter().map(|it| value(result, it).map(|found| found.value));
        Point {
            name: format!("{} ({})", result.name, level_name(level)),
            values: [load].into_iter().chain(found).collect(),
        }
    };
    let series = by_configuration(picked, |results| results.iter().map(|it| point(it)).collect());
    let load = Axis::new("load", "Load", unit);
    let axes = [load].into_iter().chain(quantities.iter().map(Axis::from_quantity)).collect();
    View {
        key: "results",
        title: "Metrics and loads",
        axes,
        x: "load".to_owned(),
        y: metric::OUTPUT_THROUGHPUT.quantity().to_string(),
        series,
    }
}

fn by_configuration(
    picked: &Picked,
    points: impl Fn(&[&NamedResult]) -> Vec<Point>,
) -> Vec<Series> {
    let mut series: Vec<(String, Vec<&NamedResult>)> = Vec::new();
    for (entry, results) in picked {
        for result in results {
            let configuration = &result.result.configuration;
            let name = fmt::joined(&[&label(entry), configuration]);
            match series.iter_mut().find(|(known, _)| *known == name) {
                Some((_, results)) => results.push(result),
                None => series.push((name, vec![result])),
            }
        }
    }
    series.into_iter().map(|(name, results)| Series { name, points: points(&results) }).collect()
}

/// What a series or a column is called: its id, and the name of its suite or file, or its model and load.
fn label(entry: &Entry) -> String {
    match entry.name.as_str() {
        "" => fmt::joined(&[&entry.id, &entry.model, &entry.load]),
        name => fmt::joined(&[&entry.id, name]),
    }
}

/// Latencies over the share of requests that are quicker.
fn distribution_view(picked: &Picked) -> View {
    let drawn: [&'static Metric; 5] =
        [&metric::TTFT, &metric::TTFT_SCHEDULE, &metric::ITL, &metric::TPOT, &metric::E2E];
    let points = |result: &NamedResult| {
        let mut rows: BTreeMap<u64, [Option<f64>; 5]> = BTreeMap::new();
        for (place, metric) in drawn.iter().enumerate() {
            for (share, ms) in curve(result, metric) {
                // Shares are not negative, so that their bits sort as they do.
                rows.entry((share * 100.0).to_bits()).or_default()[place] = Some(ms);
            }
        }
        let row = |(share, values): (u64, [Option<f64>; 5])| Point {
            name: result.name.clone(),
            values: [Some(f64::from_bits(share))].into_iter().chain(values).collect(),
        };
        rows.into_iter().map(row).collect()
    };
    let axis = |metric: &&Metric| Axis::new(metric.name, metric.title, Unit::name(metric.unit));
    let share = Axis::new("share", "Share that is quicker", "%");
    View {
        key: "distributions",
        title: "Distributions",
        axes: [share].into_iter().chain(drawn.iter().map(axis)).collect(),
        x: "share".to_owned(),
        y: metric::TTFT.name.to_owned(),
        series: single_series(picked, points),
    }
}

/// Shares and the milliseconds that they lie within.
fn curve(result: &NamedResult, metric: &Metric) -> Vec<(f64, f64)> {
    if let Some(summary) = &result.summary {
        let figures = &summary.figures.distributions;
        let found = figures.iter().find(|figure| figure.metric == metric.name);
        return found.map(|figure| figure.points.clone()).unwrap_or_default();
    }
    let Some(latency) = result.result.latency_of(metric) else { return Vec::new() };
    let point = |(rank, ms): (&String, &f64)| {
        let rank: f64 = rank.parse().ok()?;
        (0.0..=100.0).contains(&rank).then_some((rank / 100.0, *ms))
    };
    latency.percentiles_ms.iter().filter_map(point).collect()
}

/// What happened when, in runs of ours.
fn course_view(picked: &Picked) -> View {
    let points = |result: &NamedResult| {
        let Some(summary) = &result.summary else { return Vec::new() };
        let course = &summary.figures.course;
        let per_s = |counts: &[u64], step: usize| {
            let count = counts.get(step).map(|count| *count as f64);
            count.map(|count| count / (course.step_ms / 1e3)).filter(|rate| rate.is_finite())
        };
        let row = |(step, in_flight): (usize, &f64)| Point {
            name: result.name.clone(),
            values: vec![
                Some((course.from_ms + course.step_ms * step as f64) / 1e3),
                per_s(&course.output_tokens, step),
                Some(*in_flight),
                per_s(&course.ended_ok, step),
                per_s(&course.ended_otherwise, step),
            ],
        };
        course.in_flight.iter().enumerate().map(row).collect()
    };
    View {
        key: "course",
        title: "Over time",
        axes: vec![
            Axis::new("time", "Time since the start", "s"),
            Axis::new("output", "Output", Unit::TokensPerSecond.name()),
            Axis::new("in_flight", "Requests in flight", ""),
            Axis::new("ok", "Requests that ended ok", Unit::RequestsPerSecond.name()),
            Axis::new("failed", "Requests that failed", Unit::RequestsPerSecond.name()),
        ],
        x: "time".to_owned(),
        y: "output".to_owned(),
        series: single_series(picked, points),
    }
}

/// A series for each result, as long as they can be told apart.
fn single_series(picked: &Picked, points: impl Fn(&NamedResult) -> Vec<Point>) -> Vec<Series> {
    /// Lines of one chart.
    const SERIES_MAX: usize = 24;
    let results = picked.iter().flat_map(|(entry, results)| {
        results.iter().map(move |result| match results.len() {
            1 => (label(entry), result),
            _ => (format!("{} ({})", result.name, level_name(result.result.level())), result),
        })
    });
    let series = results.map(|(name, result)| Series { name, points: points(result) });
    series.filter(|series| !series.points.is_empty()).take(SERIES_MAX).collect()
}

/// The metrics of what has one result each, side by side; `None` where nothing has.
pub(crate) fn table(picked: &Picked) -> Option<Block> {
    let single: Vec<(&Entry, &NamedResult)> = picked
        .iter()
        .filter_map(|(entry, results)| {
            Some((entry, results.first().filter(|_| results.len() == 1)?))
        })
        .collect();
    if single.is_empty() {
        return None;
    }
    let fact = |name: &str, get: &dyn Fn(&Entry, &NamedResult) -> String| {
        let cells = single.iter().map(|(entry, result)| Cell::text(get(entry, result)));
        [Cell::text(name)].into_iter().chain(cells).collect::<Vec<Cell>>()
    };
    let known = |text: &str| if text.is_empty() { NOTHING.to_owned() } else { text.to_owned() };
    let mut rows = vec![
        fact("Verdict", &|entry, _| known(&entry.verdict)),
        fact("Model", &|_, result| known(result.result.model.as_deref().unwrap_or_default())),
        fact("Load", &|_, result| level_name(result.result.level())),
        fact("Requests ok", &|_, it| it.result.completed.map_or_else(|| known(""), count)),
    ];
    for quantity in quantities() {
        let found: Vec<_> = single.iter().map(|(_, result)| value(result, &quantity)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let unit = quantity.metric().unit;
        let cell = |found: &Option<inferometer_analysis::Estimate>| match found {
            Some(found) => {
                let interval = found.interval.map(|it| confidence(Some((it.low, it.high))));
                let reason =
                    (!found.certified).then(|| "too few values for this percentile".to_owned());
                Cell {
                    doubtful: !found.certified,
                    reason,
                    detail: interval,
                    ..Cell::text(in_unit(found.value, unit))
                }
            }
            None => Cell::text(NOTHING),
        };
        let name = match fmt::unit_name(unit) {
            "" => quantity.title(),
            unit => format!("{} ({unit})", quantity.title()),
        };
        rows.push([Cell::text(name)].into_iter().chain(found.iter().map(cell)).collect());
    }
    let names: Vec<String> = single.iter().map(|(entry, _)| label(entry)).collect();
    let columns = Column::names_and_numbers("Metric", names.iter().map(String::as_str));
    Some(Table::new("side-by-side", "Metrics side by side", columns, rows).into())
}
