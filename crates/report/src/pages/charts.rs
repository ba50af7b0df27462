//! The charts that compare levels, conditions and scenarios; those of a single run are in [`run`].
//!
//! Each function returns `None` where there is nothing to draw. The finding of a chart is made from the
//! numbers that it shows.

mod run;

use std::fmt::Display;

use inferometer_analysis::Better;
use inferometer_model::spec::{Limit, Slo};

pub(super) use self::run::*;
use super::prelude::*;
use crate::chart::{PanelLimit, Pareto, ParetoPoint, ShareClass, ShareRow, Shares};
use crate::texts::filled;

/// Between values that their intervals do not tell apart.
const ABOUT_EQUAL: &str = "the difference is within their uncertainty";

pub(super) fn pair(interval: Option<Interval>) -> Option<(f64, f64)> {
    interval.map(|interval| (interval.low, interval.high))
}

/// A logarithmic axis where the largest value is at least `span` times the smallest.
pub(super) fn scale_for(values: impl Iterator<Item = f64> + Clone, span: f64) -> ScaleKind {
    match (values.clone().reduce(f64::min), values.reduce(f64::max)) {
        (Some(low), Some(high)) if 0.0 < low && span <= high / low => ScaleKind::Log,
        _ => ScaleKind::Linear,
    }
}

/// Whether two values differ by more than their confidence intervals; without intervals, by more than
/// runs usually do.
fn is_apart(one: &AcrossRuns, other: &AcrossRuns) -> bool {
    /// As a share of the larger value.
    const TELLING: f64 = 0.05;
    match (one.confidence_interval(), other.confidence_interval(), one.mean, other.mean) {
        (Some(one), Some(other), _, _) => one.high < other.low || other.high < one.low,
        (_, _, Some(one), Some(other)) => {
            TELLING * one.abs().max(other.abs()) < (one - other).abs()
        }
        _ => false,
    }
}

/// The name of a level or a row, with a quantity of it and its mean.
type Measured = (String, AcrossRuns, f64);

/// The levels of a series that were reached.
fn measured_levels(series: &Series<'_>, quantity: Quantity) -> Vec<Measured> {
    let reached = series.rows.iter().filter(|row| row.place().is_some() && row.is_reached());
    reached.filter_map(|row| measured(row, level_name(row.level?.level), quantity)).collect()
}

fn measured(row: &Row<'_>, name: String, quantity: impl Into<Quantity>) -> Option<Measured> {
    let across = row.quantity(quantity);
    let mean = across.mean?;
    Some((name, across, mean))
}

/// A panel over the load: its title, quantity and unit.
type Wanted<'a> = (&'a str, Quantity, &'a str);

/// Throughput of all requests together, and of each user.
pub(super) fn throughput(series: &[Series<'_>]) -> Option<Chart> {
    let wanted = [
        ("Output throughput", metric::OUTPUT_THROUGHPUT.quantity(), "tok/s"),
        ("Per user", metric::PER_USER_THROUGHPUT.quantity(), "tok/s"),
    ];
    against_load(series, ("throughput-by-level", "Output throughput"), &wanted, output_growth)
}

/// The p99 latencies at each load.
pub(super) fn latency(series: &[Series<'_>]) -> Option<Chart> {
    let is_rate = has_rates(series);
    let ttft = LatencyOrigin::for_load(is_rate).ttft().p99();
    let wanted = [ttft, metric::TPOT.p99()].map(|quantity| (quantity.title(), quantity, "ms"));
    let wanted: Vec<_> =
        wanted.iter().map(|(title, quantity, unit)| (title.as_str(), *quantity, *unit)).collect();
    against_load(series, ("latency-by-level", "Latency"), &wanted, |one| {
        let grown = wanted.iter().filter_map(|(title, quantity, _)| {
            growth(one, &format!("{title} is"), *quantity, fmt::latency, true)
        });
        grown.try_join("; ")
    })
}

/// Power of the GPUs and energy of a token at each load. `None` where the GPUs did not report it.
pub(super) fn energy(series: &[Series<'_>]) -> Option<Chart> {
    let per_token = metric::ENERGY_PER_OUTPUT_TOKEN.quantity();
    let wanted = [
        ("GPU power", metric::GPU_POWER.quantity(), "W"),
        ("Energy per output token", per_token, "J/tok"),
        ("Output tokens per joule", metric::OUTPUT_TOKENS_PER_JOULE.quantity(), "tok/J"),
    ];
    let joules = |energy| format!("{} J", number(energy));
    against_load(series, ("energy-by-level", "GPU power and energy"), &wanted, |one| {
        growth(one, "An output token takes", per_token, joules, false)
    })
}

/// Cost of a million tokens at each load. `None` where the server has no price.
pub(super) fn cost(series: &[Series<'_>]) -> Option<Chart> {
    let of_output = metric::COST_PER_MILLION_OUTPUT_TOKENS.quantity();
    let wanted = [
        ("Of a million output tokens", of_output, "in the currency of the price"),
        (
            "Of a million tokens, read and written",
            metric::COST_PER_MILLION_TOKENS.quantity(),
            "in the currency of the price",
        ),
    ];
    against_load(series, ("cost-by-level", "Cost"), &wanted, |one| {
        growth(one, "A million output tokens cost", of_output, number, false)
    })
}

/// Cost of a million output tokens against the speed that each user gets.
pub(super) fn cost_against_speed(series: &[Series<'_>]) -> Option<Chart> {
    let points = against_speed(series, &metric::COST_PER_MILLION_OUTPUT_TOKENS, 1.0)?;
    let lowest = points.iter().min_by(|a, b| a.y.total_cmp(&b.y))?;
    let name = fmt::joined(&[if 1 < series.len() { &lowest.series } else { "" }, &lowest.label]);
    let finding = fill("cheapest", &[&name, &number(lowest.y), &number(lowest.x)]);
    let n =
        format!("{}; costs in the currency of the price", counted(points.len() as u64, "level"));
    let x = linear("Speed for each user", "tok/s");
    let y = linear("Cost of a million output tokens", "");
    let title = "Cost of output tokens against speed for each user";
    let plot = Plot::Pareto(Pareto { x, y, points });
    Some(Chart::new("cost-against-speed", title, finding, n, plot))
}

/// Panels of quantities over the load; `sentence` is about one series, without a full stop.
fn against_load(
    series: &[Series<'_>],
    (id, title): (&str, &str),
    wanted: &[Wanted<'_>],
    sentence: impl Fn(&Series<'_>) -> Option<String>,
) -> Option<Chart> {
    let lines = lines(series, wanted)?;
    let sentences = series.iter().filter_map(|one| {
        let head = if 1 < series.len() { format!("{}: ", one.name) } else { String::new() };
        Some(format!("{head}{}.", sentence(one)?))
    });
    let finding = sentences.join(" ");
    let rows = || series.iter().flat_map(|one| one.rows.iter());
    let counts = || rows().map(|row| row.tally().ok);
    let requests = match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least == most => format!("{} ok", counted(least, "request")),
        (Some(least), Some(most)) => format!("{least} to {}", counted(most, "ok request")),
        _ => String::new(),
    };
    let runs = match rows().filter_map(|row| row.level).map(|level| level.points.len()).max() {
        None | Some(0 | 1) => "in one run".to_owned(),
        Some(most) => format!("in up to {most} runs"),
    };
    let title = format!("{title} against {}", lines.x.label.to_lowercase());
    let n = format!("{requests} at each level {runs}");
    Some(Chart::new(id, title, finding, n, Plot::Lines(lines)))
}

fn has_rates(series: &[Series<'_>]) -> bool {
    let mut levels = series.iter().flat_map(|one| &one.rows).filter_map(|row| row.level);
    levels.any(|level: &LevelSummary| matches!(level.level, Level::Rate(_) | Level::Unlimited))
}

/// The label of the load axis, with its unit.
pub(super) const fn load_axis(is_rate: bool) -> (&'static str, &'static str) {
    if is_rate { ("Request rate", "req/s") } else { ("Concurrency", "") }
}

/// The title of a column of loads.
pub(super) const fn load_title(is_rate: bool) -> &'static str {
    if is_rate { "Request rate (req/s)" } else { "Concurrency" }
}

/// A panel of lines; `None` where no line has a point.
pub(super) fn lines_panel(
    heading: &str,
    y: Measure,
    series: Vec<LineSeries>,
) -> Option<LinesPanel> {
    let has_points = series.iter().any(|one| !one.points.is_empty());
    has_points.then(|| Panel::new(heading, y, series))
}

/// `None` with fewer than two levels that have a load and a value.
fn lines(series: &[Series<'_>], wanted: &[Wanted<'_>]) -> Option<Lines> {
    const SPAN_OF_LOG: f64 = 8.0;
    let loads = series.iter().flat_map(|one| &one.rows).filter_map(|row| row.place());
    let (label, unit) = load_axis(has_rates(series));
    let x = measure(label, unit, scale_for(loads, SPAN_OF_LOG));
    let panel = |(title, quantity, unit): &Wanted<'_>| {
        let point = |row: &&Row<'_>| {
            let across = row.quantity(*quantity);
            let reservation = row.reservation();
            let hollow = reservation.is_some();
            let uncertain = (!across.certified).then(|| UNCERTIFIED.to_owned());
            let note = reservation.into_iter().chain(uncertain).try_join("; ");
            let interval = pair(across.confidence_interval());
            Some(LinePoint { x: row.place()?, y: across.mean?, interval, hollow, note })
        };
        let line = |one: &Series<'_>| {
            let points: Vec<LinePoint> = one.rows.iter().filter_map(point).collect();
            (!points.is_empty()).then(|| LineSeries::new(&one.name, points))
        };
        let lines = series.iter().filter_map(line).collect();
        let panel = lines_panel(title, linear("", unit), lines)?;
        Some(LinesPanel { limits: limits(series, *quantity), ..panel })
    };
    let panels: Vec<LinesPanel> = wanted.iter().filter_map(panel).collect();
    let drawn = panels.first()?.series.iter().map(|one| one.points.len()).max()?;
    (2 <= drawn).then_some(Lines { x, ticks_at_points: true, panels })
}

/// The SLOs on a quantity, as the runs were judged by them.
fn limits(series: &[Series<'_>], quantity: Quantity) -> Vec<PanelLimit> {
    let Some(run) = series.iter().flat_map(|one| &one.rows).find_map(|row| row.drawn()) else {
        return Vec::new();
    };
    let of_requests = run.request_slos.iter().flat_map(|slos| &slos.promises);
    let of_requests = of_requests.map(|slo| (&slo.promise, Some(&slo.metric)));
    let slos = run.slos.iter().map(|slo| (&slo.promise, slo.metric.as_ref())).chain(of_requests);
    let limit = |(text, metric): (&String, Option<&String>)| {
        let slo: Slo = text.parse().ok()?;
        let of_statistic = slo.statistic.as_deref().map(Statistic::named);
        let is_own = metric.is_some_and(|it| *it == quantity.metric().name)
            && of_statistic.is_none_or(|it| it == quantity.statistic());
        let (Limit::Milliseconds(value) | Limit::Plain(value) | Limit::Share(value)) = slo.limit;
        is_own.then(|| PanelLimit { name: format!("SLO {text}"), value })
    };
    slos.filter_map(limit).collect()
}

/// The first panel of the throughput as text, in the notation that Markdown readers draw.
pub(super) fn mermaid(series: &Series<'_>) -> Option<String> {
    let value = |row: &&Row<'_>| {
        let value = row.value(metric::OUTPUT_THROUGHPUT.quantity())?;
        Some((format!("\"{}\"", fmt::level(row.level?.level)), fmt::fixed(value, 2)))
    };
    let (names, values): (Vec<String>, Vec<String>) = series.rows.iter().filter_map(value).unzip();
    let label = load_axis(has_rates(std::slice::from_ref(series))).0;
    let (template, load) = (include_str!("charts/xychart.txt"), label.to_lowercase());
    let parts: [&dyn Display; 4] = [&load, &label, &names.join(", "), &values.join(", ")];
    (2 <= names.len()).then(|| filled(template, &parts))
}

/// How output grows along the levels of one server, as far as the intervals tell levels apart.
fn output_growth(series: &Series<'_>) -> Option<String> {
    let points = measured_levels(series, metric::OUTPUT_THROUGHPUT.quantity());
    let [(first, _, from), .., (last, _, to)] = points.as_slice() else { return None };
    let top = points.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let [from, to, highest] = [*from, *to, top.2].map(number);
    let near: Vec<&Measured> = points.iter().filter(|one| !is_apart(&one.1, &top.1)).collect();
    let rises = points.windows(2).all(|pair| pair[0].2 < pair[1].2);
    let is_clear = points.windows(2).all(|pair| is_apart(&pair[0].1, &pair[1].1));
    Some(if near.len() == points.len() {
        let lowest = number(points.iter().map(|one| one.2).fold(f64::INFINITY, f64::min));
        fill("growth-equal", &[&lowest, &highest, &ABOUT_EQUAL])
    } else if rises && is_clear {
        let is_whole = series.rows.iter().all(|row| row.is_reached());
        let limit = if is_whole { "measured" } else { "reached" };
        fill("growth-clear", &[&from, first, &to, last, &limit])
    } else if 1 < near.len() {
        let levels: Vec<String> = near.iter().map(|one| one.0.clone()).collect();
        fill("growth-plateau", &[&from, first, &list(&levels), &highest])
    } else if top.0 == *last {
        fill("growth-uneven", &[&from, first, last, &to])
    } else {
        fill("growth-falls", &[&top.0, &highest, &from, first, &to, last])
    })
}

/// The values of the first level and of the last, and how they differ as far as their intervals tell
/// them apart.
fn growth(
    series: &Series<'_>,
    subject: &str,
    quantity: Quantity,
    show: impl Fn(f64) -> String,
    has_ratio: bool,
) -> Option<String> {
    let points = measured_levels(series, quantity);
    let [first, .., last] = points.as_slice() else { return None };
    let [from, to] = [first.2, last.2].map(show);
    let mut text = format!("{subject} {from} at {} and {to} at {}", first.0, last.0);
    if !is_apart(&first.1, &last.1) {
        let _ = write!(text, ", about equal: {ABOUT_EQUAL}");
    } else if has_ratio && 0.0 < first.2 {
        let _ = write!(text, ", {} times as long", number(last.2 / first.2));
    }
    Some(text)
}

/// Another metric, of a part of all GPUs, against the speed of each user.
fn against_speed(
    series: &[Series<'_>],
    y: &'static Metric,
    parts: f64,
) -> Option<Vec<ParetoPoint>> {
    let point = |one: &Series<'_>, row: &Row<'_>| {
        let reservation = row.reservation();
        let (speed, other) = (row.quantity(&metric::PER_USER_THROUGHPUT), row.quantity(y));
        let part = |(low, high): (f64, f64)| (low / parts, high / parts);
        Some(ParetoPoint {
            series: one.name.clone(),
            label: row.level.map_or_else(|| row.name.clone(), |level| level_name(level.level)),
            x: speed.mean?,
            y: other.mean? / parts,
            x_interval: pair(speed.confidence_interval()),
            y_interval: pair(other.confidence_interval()).map(part),
            on_frontier: false,
            hollow: reservation.is_some(),
            note: reservation,
        })
    };
    let points = series.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row)));
    let mut points: Vec<ParetoPoint> = points.filter_map(|(one, row)| point(one, row)).collect();
    mark_frontier(&mut points, y.better);
    (2 <= points.len()).then_some(points)
}

/// Throughput of all users against that of each user. `None` with fewer than two points.
pub(super) fn pareto(series: &[Series<'_>]) -> Option<Chart> {
    let gpus = common_gpus(series);
    let parts = f64::from(gpus.unwrap_or(1));
    let points = against_speed(series, &metric::OUTPUT_THROUGHPUT, parts)?;
    let levels = counted(points.len() as u64, "level");
    let (label, n) = match gpus {
        Some(gpus) => {
            ("Output throughput per GPU", format!("{levels}, {}", counted(gpus.into(), "GPU")))
        }
        None => ("Output throughput", fill("gpus-not-known", &[&levels])),
    };
    let finding = pareto_finding(&points, 1 < series.len(), gpus.is_some());
    let x = linear("Speed for each user", "tok/s");
    let y = linear(label, "tok/s");
    let title = format!("{label} against speed for each user");
    let plot = Plot::Pareto(Pareto { x, y, points });
    Some(Chart::new("throughput-against-speed", title, finding, n, plot))
}

/// The number of GPUs of the server, if it is the same for all rows: from the facts of the server, else
/// from the GPUs on which its processes ran.
fn common_gpus(series: &[Series<'_>]) -> Option<u32> {
    let used = |run: &Summary| {
        run.system.gpus_used().or_else(|| {
            let gpus = run.machines.gpus.as_ref().filter(|gpus| gpus.servers_by.is_some())?;
            u32::try_from(gpus.devices.iter().filter(|device| device.counts()).count()).ok()
        })
    };
    let rows = series.iter().flat_map(|one| &one.rows);
    let mut known = rows.filter_map(|row| row.drawn()).map(used);
    let first = known.next()??;
    (0 < first && known.all(|other| other == Some(first))).then_some(first)
}

/// Marks the points that no other beats in both: a higher speed, and the better other value.
fn mark_frontier(points: &mut [ParetoPoint], better: Better) {
    let sign = if better == Better::Lower { -1.0 } else { 1.0 };
    let places: Vec<(f64, f64)> = points.iter().map(|point| (point.x, sign * point.y)).collect();
    for (place, point) in places.iter().zip(points) {
        let beats = |other: &(f64, f64)| place.0 <= other.0 && place.1 <= other.1 && place != other;
        point.on_frontier = !places.iter().any(beats);
    }
}

fn pareto_finding(points: &[ParetoPoint], named: bool, per_gpu: bool) -> String {
    let mut best: Vec<&ParetoPoint> = points.iter().filter(|point| point.on_frontier).collect();
    best.sort_by(|a, b| b.x.total_cmp(&a.x));
    let total = if per_gpu { "per GPU" } else { "in all" };
    let describe = |point: &ParetoPoint| {
        let series = if named { format!("{} ", point.series) } else { String::new() };
        let [x, y] = [point.x, point.y].map(number);
        format!("{series}{} ({x} tok/s for each user, {y} tok/s {total})", point.label)
    };
    match best.as_slice() {
        [only] => format!("{} is best in both.", describe(only)),
        [first, .., last] => {
            let [from, to] = [first, last].map(|end| describe(end));
            fill("not-beaten", &[&best.len(), &points.len(), &from, &to])
        }
        [] => String::new(),
    }
}

/// Throughput of all rows side by side. `None` with fewer than two rows that have a throughput.
pub(super) fn by_scenario(rows: &[Row<'_>], what: &str) -> Option<Chart> {
    static SERIES: [(&str, &Metric); 2] = [
        ("output throughput", &metric::OUTPUT_THROUGHPUT),
        ("busiest second", &metric::PEAK_OUTPUT_THROUGHPUT),
    ];
    let known = |row| measured(row, row.name.clone(), &metric::OUTPUT_THROUGHPUT);
    let mut known: Vec<Measured> = rows.iter().filter_map(known).collect();
    known.sort_by(|a, b| a.2.total_cmp(&b.2));
    let group = |row: &Row<'_>| {
        let reservation = row.reservation();
        let bar = |(series, metric): (&str, &'static Metric)| {
            let across = row.quantity(metric);
            Bar {
                series: series.to_owned(),
                value: across.mean,
                interval: pair(across.confidence_interval()),
                hollow: reservation.is_some(),
                note: reservation.clone().or(across.reason),
                ..Bar::default()
            }
        };
        BarGroup { label: row.name.clone(), bars: SERIES.map(bar).into() }
    };
    let ok = counted(rows.iter().map(|row| row.tally().ok).sum(), "request");
    let scenarios: BTreeSet<&str> =
        rows.iter().filter_map(|row| Some(row.scenario?.scenario.as_str())).collect();
    let has_levels = !scenarios.is_empty() && scenarios.len() < rows.len();
    let n = counted(known.len() as u64, if has_levels { "level" } else { what });
    let n = format!("{n}, {ok} ok");
    let y = linear("Output throughput", "tok/s");
    let plot = Plot::Bars(Bars { y, groups: rows.iter().map(group).collect() });
    let title = format!("Output throughput by {what}");
    Some(Chart::new(format!("throughput-by-{what}"), title, scenario_finding(&known)?, n, plot))
}

/// The lowest and the highest row, as far as the intervals tell them from the others.
fn scenario_finding(known: &[Measured]) -> Option<String> {
    let [lowest, .., highest] = known else { return None };
    let [low, high] = [lowest.2, highest.2].map(number);
    if !is_apart(&lowest.1, &highest.1) {
        return Some(fill("about-equal", &[&low, &high, &ABOUT_EQUAL]));
    }
    let describe = |end: &Measured, which: &str, value: &str| match known
        .iter()
        .filter(|one| !is_apart(&one.1, &end.1))
        .count()
    {
        0 | 1 => format!("{} has the {which} output throughput with {value} tok/s", end.0),
        several => {
            let others = counted(several as u64 - 1, "other");
            fill("equal-at-end", &[&end.0, &value, &others, &which])
        }
    };
    Some(format!("{}; {}.", describe(highest, "highest", &high), describe(lowest, "lowest", &low)))
}

type LagOf = fn(&Summary) -> Option<f64>;

/// Lags of the client in a run, in ms.
pub(super) const LAGS: [(&str, LagOf); 3] = [
    ("Send lag p99", |run| run.metrics.distribution(&metric::SEND_LAG)?.p99),
    ("Client lag p99", |run| run.metrics.distribution(&metric::CLIENT_LAG)?.p99),
    ("Loop lag p99, at most", |run| run.client.loop_lag_ms.p99_at_most),
];

/// Lags of the client in the worst run of each row. `None` where there is no client, as in a simulation.
pub(super) fn client_health(rows: &[Row<'_>]) -> Option<Chart> {
    let is_real = |row: &&Row<'_>| row.drawn().is_some_and(|run| run.run.simulated.is_none());
    let real = || rows.iter().filter(is_real);
    let group = |row: &Row<'_>| {
        let bars = LAGS.map(|(series, get)| Bar {
            series: series.to_lowercase(),
            value: row.all_runs().filter_map(get).max_by(f64::total_cmp),
            ..Bar::default()
        });
        BarGroup { label: row.name.clone(), bars: bars.into() }
    };
    let groups: Vec<BarGroup> = real().map(group).collect();
    let known = groups.iter().flat_map(|group| {
        group.bars.iter().filter_map(move |bar| Some((&group.label, &bar.series, bar.value?)))
    });
    let (row, lag, most) = known.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let tpot = real().filter_map(|row| row.value(metric::TPOT.p50())).min_by(f64::total_cmp);
    let against = tpot.map(|tpot| format!("; the shortest median TPOT is {} ms", number(tpot)));
    let (most, against) = (number(most), against.unwrap_or_default());
    let finding = format!("The largest lag of the client is {most} ms: {lag} in {row}{against}.");
    let plot = Plot::Bars(Bars { y: linear("Lag", "ms"), groups });
    Some(Chart::new(
        "client-lags",
        "Lags of the client",
        finding,
        "the worst run of each row",
        plot,
    ))
}

/// Outcomes of the requests, row by row.
pub(super) fn outcomes(rows: &[Row<'_>]) -> Option<Chart> {
    let counts = |row: &Row<'_>| {
        let mut counts = BTreeMap::new();
        for run in row.all_runs() {
            for (outcome, number) in &run.outcomes {
                // Requests that were not due before the end of the run are not counted.
                let over = if *outcome == Outcome::NotSent { run.time_over } else { 0 };
                *counts.entry(*outcome).or_insert(0) += number.saturating_sub(over);
            }
        }
        counts
    };
    let counts: Vec<BTreeMap<Outcome, u64>> = rows.iter().map(counts).collect();
    let total_of =
        |outcome: Outcome| -> u64 { counts.iter().filter_map(|counts| counts.get(&outcome)).sum() };
    let is_met = |outcome: &Outcome| *outcome == Outcome::Ok || 0 < total_of(*outcome);
    let classes: Vec<Outcome> = Outcome::all().filter(is_met).collect();
    let total: u64 = classes.iter().map(|outcome| total_of(*outcome)).sum();
    if total == 0 {
        return None;
    }
    let ok = total_of(Outcome::Ok);
    let others = classes.iter().filter(|outcome| **outcome != Outcome::Ok);
    let others: Vec<String> =
        others.map(|outcome| format!("{} {}", count(total_of(*outcome)), outcome.key())).collect();
    let requests = counted(total, "request");
    let finding = match others.as_slice() {
        [] => format!("All {requests} ended ok."),
        others => {
            let share = percent(ok as f64 / total as f64);
            fill("ended-ok", &[&count(ok), &requests, &share, &list(others)])
        }
    };
    let row = |(row, counts): (&Row<'_>, &BTreeMap<Outcome, u64>)| ShareRow {
        label: row.name.clone(),
        counts: classes.iter().map(|class| counts.get(class).copied().unwrap_or(0)).collect(),
    };
    let class = |class: &Outcome| ShareClass {
        name: class.key().to_owned(),
        is_good: *class == Outcome::Ok,
    };
    let plot = Plot::Shares(Shares {
        classes: classes.iter().map(class).collect(),
        rows: rows.iter().zip(&counts).map(row).collect(),
        counted: "requests".to_owned(),
    });
    Some(Chart::new("outcomes", "How requests ended", finding, requests, plot))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use inferometer_analysis::set::Tally;
    use inferometer_analysis::{Interval, Verdict};

    use super::*;

    fn level(users: u32, mean: f64, half: f64) -> LevelSummary {
        let within = Some(Interval { low: mean - half, high: mean + half });
        let across = AcrossRuns {
            mean: Some(mean),
            n: 1,
            within,
            certified: true,
            ..AcrossRuns::from_runs(&[])
        };
        let level = Level::Concurrency(NonZeroU32::new(users).unwrap_or(NonZeroU32::MIN));
        LevelSummary {
            level,
            verdict: Verdict::Valid,
            points: Vec::new(),
            left_out: Vec::new(),
            requests: Tally::default(),
            failed_share: None,
            cut: None,
            reached: None,
            partial: 0,
            served: None,
            enough: None,
            quantities: BTreeMap::from([("output_throughput".to_owned(), across)]),
        }
    }

    fn told(levels: &[LevelSummary]) -> String {
        let row = |level| Row { level: Some(level), ..Row::default() };
        let rows: Vec<Row<'_>> = levels.iter().map(row).collect();
        let series = Series { name: "one".to_owned(), rows: rows.iter().collect() };
        output_growth(&series).unwrap_or_default()
    }

    #[test]
    fn growth_is_claimed_only_where_the_intervals_show_it() {
        let clear = [level(1, 50.0, 1.0), level(2, 90.0, 1.0), level(4, 160.0, 2.0)];
        assert!(told(&clear).contains("grows from 50.00 tok/s at c=1 to 160.0 tok/s at c=4"));
        let tie = [level(1, 50.0, 1.0), level(2, 160.0, 4.0), level(4, 161.0, 4.0)];
        let text = told(&tie);
        assert!(
            text.contains(
                "and is highest, without a certain difference between them, at c=2 and c=4"
            ),
            "{text}"
        );
        let dip = [level(1, 50.0, 1.0), level(2, 40.0, 1.0), level(4, 160.0, 2.0)];
        assert!(told(&dip).contains("does not grow at every step"), "{}", told(&dip));
        let fall = [level(1, 50.0, 1.0), level(2, 160.0, 1.0), level(4, 90.0, 2.0)];
        assert!(told(&fall).contains("is highest at c=2"), "{}", told(&fall));
        let flat = [level(1, 50.0, 5.0), level(2, 52.0, 5.0)];
        assert!(told(&flat).contains("about equal at all levels"), "{}", told(&flat));
    }

    fn point(x: f64, y: f64) -> ParetoPoint {
        ParetoPoint {
            series: "s".to_owned(),
            label: format!("{x}/{y}"),
            x,
            y,
            ..ParetoPoint::default()
        }
    }

    #[test]
    fn what_is_divided_by_gpus_is_said_to_be() {
        let mut points = vec![point(50.0, 100.0), point(40.0, 160.0)];
        mark_frontier(&mut points, Better::Higher);
        let shared = pareto_finding(&points, false, true);
        assert!(shared.contains("160.0 tok/s per GPU") && !shared.contains("in all"), "{shared}");
        assert!(pareto_finding(&points, false, false).contains("160.0 tok/s in all"));
    }

    #[test]
    fn a_point_is_on_the_frontier_unless_another_is_better_in_both() {
        let mut points = vec![point(50.0, 100.0), point(40.0, 160.0), point(30.0, 150.0)];
        points.push(point(40.0, 160.0));
        mark_frontier(&mut points, Better::Higher);
        let marks: Vec<bool> = points.iter().map(|point| point.on_frontier).collect();
        assert_eq!(marks, [true, true, false, true]);
    }
}
