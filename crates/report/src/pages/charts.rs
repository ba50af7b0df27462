//! The charts of the pages: which numbers are drawn, and the one sentence that says what they show.
//!
//! Each function gives `None` where there is nothing to draw. A sentence is made from the numbers of
//! its chart, so that it cannot say more than the chart does. Here are the charts that compare levels,
//! conditions and scenarios; those of a single run are in [`run`].

mod run;

use std::collections::BTreeMap;
use std::fmt::Write;

use inferometer_analysis::set::{AcrossRuns, LevelSummary};
use inferometer_analysis::{Interval, LatencyOrigin, Metric, Quantity, Summary, metric};
use inferometer_model::Outcome;
use inferometer_model::study::Level;

pub(super) use self::run::{
    client_machine, course, first_token_metric, first_tokens, gaps, gpus, requests, token_gaps,
};
use super::cells::UNCERTIFIED;
use super::rows::{Row, Series};
use crate::chart::{
    Bar, BarGroup, Bars, Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Pareto,
    ParetoPoint, Plot, ScaleKind, ShareClass, ShareRow, Shares,
};
use crate::document::{Block, Figure};
use crate::fmt::{self, count, counted, level_name, list, number, percent};

/// Between values whose intervals do not tell them apart.
const ABOUT_EQUAL: &str = "the difference is within their uncertainty";

pub(super) fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
}

pub(super) fn figure(chart: Chart) -> Block {
    Block::Figure(Figure { chart, mermaid: None })
}

pub(super) fn pair(interval: Option<Interval>) -> Option<(f64, f64)> {
    interval.map(|interval| (interval.low, interval.high))
}

/// Whether two values differ by more than their confidence intervals; without intervals, by more than
/// runs usually do.
fn is_apart(one: &AcrossRuns, other: &AcrossRuns) -> bool {
    /// As a share of the larger value.
    const TELLING: f64 = 0.05;
    match (one.doubt(), other.doubt(), one.mean, other.mean) {
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

/// All requests together, and each user's share.
pub(super) fn throughput(series: &[Series<'_>]) -> Option<Chart> {
    let wanted = [
        ("Output throughput", metric::OUTPUT_THROUGHPUT.quantity(), "tok/s"),
        ("Per user", metric::PER_USER_THROUGHPUT.quantity(), "tok/s"),
    ];
    let title = ("throughput-by-level", "Output throughput");
    against_load(series, title, &wanted, |one| output_growth(one, 1 < series.len()))
}

/// The slowest of a hundred, at each load.
pub(super) fn latency(series: &[Series<'_>]) -> Option<Chart> {
    let is_rate = has_rates(series);
    let ttft = LatencyOrigin::for_load(is_rate).ttft().p99();
    let title = if is_rate { "TTFT from schedule, p99" } else { "TTFT p99" };
    let wanted = [(title, ttft, "ms"), ("TPOT p99", metric::TPOT.p99(), "ms")];
    against_load(series, ("latency-by-level", "Latency"), &wanted, |one| {
        let grown = wanted.iter().filter_map(|(title, quantity, _)| {
            growth(one, &format!("{title} is"), *quantity, fmt::latency, true)
        });
        let parts: Vec<String> = grown.collect();
        let head = if 1 < series.len() { format!("{}: ", one.name) } else { String::new() };
        (!parts.is_empty()).then(|| format!("{head}{}.", parts.join("; ")))
    })
}

/// What the GPUs draw at each load, and what a token costs. `None` where they did not report it.
pub(super) fn energy(series: &[Series<'_>]) -> Option<Chart> {
    let per_token = metric::ENERGY_PER_OUTPUT_TOKEN.quantity();
    let wanted = [
        ("GPU power", metric::GPU_POWER.quantity(), "W"),
        ("Energy per output token", per_token, "J/tok"),
        ("Output tokens per joule", metric::OUTPUT_TOKENS_PER_JOULE.quantity(), "tok/J"),
    ];
    against_load(series, ("energy-by-level", "GPU power and energy"), &wanted, |one| {
        let joules = |energy| format!("{} J", number(energy));
        let text = growth(one, "An output token takes", per_token, joules, false)?;
        let head = if 1 < series.len() { format!("{}: ", one.name) } else { String::new() };
        Some(format!("{head}{text}."))
    })
}

/// Panels of quantities, each with its title and unit, over the load; `sentence` is about one series.
fn against_load(
    series: &[Series<'_>],
    (id, title): (&str, &str),
    wanted: &[(&str, Quantity, &str)],
    sentence: impl Fn(&Series<'_>) -> Option<String>,
) -> Option<Chart> {
    let lines = lines(series, wanted)?;
    let sentences: Vec<String> = series.iter().filter_map(sentence).collect();
    let rows = || series.iter().flat_map(|one| one.rows.iter());
    let counts = || rows().map(|row| row.tally().ok);
    let requests = match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least == most => format!("{} ok", counted(least, "request")),
        (Some(least), Some(most)) => format!("{least} to {}", counted(most, "ok request")),
        _ => String::new(),
    };
    let runs = rows().filter_map(|row| row.level).map(|level| level.points.len()).max();
    let runs = match runs {
        None | Some(0 | 1) => "in one run".to_owned(),
        Some(most) => format!("in up to {most} runs"),
    };
    Some(Chart {
        id: id.to_owned(),
        title: format!("{title} against {}", lines.x.label.to_lowercase()),
        finding: sentences.join(" "),
        n: format!("{requests} at each level {runs}"),
        plot: Plot::Lines(lines),
    })
}

fn has_rates(series: &[Series<'_>]) -> bool {
    let mut levels = series.iter().flat_map(|one| &one.rows).filter_map(|row| row.level);
    levels.any(|level: &LevelSummary| matches!(level.level, Level::Rate(_) | Level::Unlimited))
}

/// What the levels are, with their unit.
fn load_name(series: &[Series<'_>]) -> (&'static str, &'static str) {
    if has_rates(series) { ("Asked rate", "req/s") } else { ("Concurrency", "") }
}

/// `None` with fewer than two levels that have a place and a value.
fn lines(series: &[Series<'_>], wanted: &[(&str, Quantity, &str)]) -> Option<Lines> {
    /// Levels so far apart are told apart only where steps are multiples.
    const SPAN_OF_LOG: f64 = 8.0;
    let places = || series.iter().flat_map(|one| &one.rows).filter_map(|row| row.place());
    let (low, high) = (places().min_by(f64::total_cmp)?, places().max_by(f64::total_cmp)?);
    let scale =
        if 0.0 < low && SPAN_OF_LOG <= high / low { ScaleKind::Log } else { ScaleKind::Linear };
    let panel = |(title, quantity, unit): &(&str, Quantity, &str)| {
        let point = |row: &&Row<'_>| {
            let across = row.quantity(*quantity);
            let reservation = row.reservation();
            let hollow = reservation.is_some();
            let uncertain = (!across.certified).then(|| UNCERTIFIED.to_owned());
            let notes: Vec<String> = reservation.into_iter().chain(uncertain).collect();
            let note = (!notes.is_empty()).then(|| notes.join("; "));
            let interval = pair(across.doubt());
            Some(LinePoint { x: row.place()?, y: across.mean?, interval, hollow, note })
        };
        let line = |one: &Series<'_>| LineSeries {
            name: one.name.clone(),
            points: one.rows.iter().filter_map(point).collect(),
        };
        let series: Vec<LineSeries> =
            series.iter().map(line).filter(|one| !one.points.is_empty()).collect();
        // The heading says what it is.
        let (heading, y) = ((*title).to_owned(), measure("", unit, ScaleKind::Linear));
        (!series.is_empty()).then_some(LinesPanel { heading, y, series })
    };
    let panels: Vec<LinesPanel> = wanted.iter().filter_map(panel).collect();
    let drawn = panels.first()?.series.iter().map(|one| one.points.len()).max()?;
    let (label, unit) = load_name(series);
    let x = measure(label, unit, scale);
    (2 <= drawn).then_some(Lines { x, ticks_at_points: true, panels })
}

/// The first panel of the throughput as text, in the notation that Markdown readers draw.
pub(super) fn mermaid(series: &Series<'_>) -> Option<String> {
    let output = metric::OUTPUT_THROUGHPUT.quantity();
    let points: Vec<(String, String)> = series
        .rows
        .iter()
        .filter_map(|row| {
            let value = row.value(output)?;
            Some((format!("\"{}\"", fmt::level(row.level?.level)), format!("{value:.2}")))
        })
        .collect();
    if points.len() < 2 {
        return None;
    }
    let (names, values): (Vec<String>, Vec<String>) = points.into_iter().unzip();
    let label = load_name(std::slice::from_ref(series)).0;
    Some(format!(
        "xychart-beta\n    title \"Output throughput against {}\"\n    x-axis \"{label}\" [{}]\n    \
         y-axis \"tok/s\"\n    line [{}]\n",
        label.to_lowercase(),
        names.join(", "),
        values.join(", "),
    ))
}

/// How output grows along the levels of one server, as far as the intervals tell levels apart.
fn output_growth(series: &Series<'_>, named: bool) -> Option<String> {
    let points = measured_levels(series, metric::OUTPUT_THROUGHPUT.quantity());
    let [(first, _, from), .., (last, _, to)] = points.as_slice() else { return None };
    let top = points.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let [from, to, highest] = [*from, *to, top.2].map(number);
    let who = if named { format!("{}: output", series.name) } else { "Output".to_owned() };
    let near: Vec<&Measured> = points.iter().filter(|one| !is_apart(&one.1, &top.1)).collect();
    let rises = points.windows(2).all(|pair| pair[0].2 < pair[1].2);
    let is_clear = points.windows(2).all(|pair| is_apart(&pair[0].1, &pair[1].1));
    Some(if near.len() == points.len() {
        let lowest = number(points.iter().map(|one| one.2).fold(f64::INFINITY, f64::min));
        format!("{who} is about equal at all levels, {lowest} to {highest} tok/s: {ABOUT_EQUAL}.")
    } else if rises && is_clear {
        let is_whole = series.rows.iter().all(|row| row.is_reached());
        format!(
            "{who} grows from {from} tok/s at {first} to {to} tok/s at {last}, the highest level that \
             was {}.",
            if is_whole { "measured" } else { "reached" }
        )
    } else if 1 < near.len() {
        let levels: Vec<String> = near.iter().map(|one| one.0.clone()).collect();
        format!(
            "{who} begins with {from} tok/s at {first} and is about equal, and highest, at {} with no \
             more than {highest} tok/s.",
            list(&levels),
        )
    } else if top.0 == *last {
        format!(
            "{who} is {from} tok/s at {first} and highest at {last} with {to} tok/s; it does not grow \
             at every step."
        )
    } else {
        format!(
            "{who} is highest at {} with {highest} tok/s; it begins with {from} tok/s at {first} and \
             ends with {to} tok/s at {last}.",
            top.0,
        )
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

/// What all users together get against what each of them gets. `None` with fewer than two points.
pub(super) fn pareto(series: &[Series<'_>]) -> Option<Chart> {
    let gpus = common_gpus(series);
    let share = f64::from(gpus.unwrap_or(1));
    let point = |series: &Series<'_>, row: &Row<'_>| {
        let reservation = row.reservation();
        let speed = row.quantity(&metric::PER_USER_THROUGHPUT);
        let total = row.quantity(&metric::OUTPUT_THROUGHPUT);
        Some(ParetoPoint {
            series: series.name.clone(),
            label: row.level.map_or_else(|| row.name.clone(), |level| level_name(level.level)),
            x: speed.mean?,
            y: total.mean? / share,
            x_interval: pair(speed.doubt()),
            y_interval: pair(total.doubt()).map(|(low, high)| (low / share, high / share)),
            on_frontier: false,
            hollow: reservation.is_some(),
            note: reservation,
        })
    };
    let mut points: Vec<ParetoPoint> =
        series.iter().flat_map(|one| one.rows.iter().filter_map(|row| point(one, row))).collect();
    if points.len() < 2 {
        return None;
    }
    mark_frontier(&mut points);
    let label = if gpus.is_some() { "Output throughput per GPU" } else { "Output throughput" };
    let levels = counted(points.len() as u64, "level");
    let n = gpus.map_or_else(
        || {
            format!(
                "{levels}; how many GPUs answered is not known, so throughput is of all of them"
            )
        },
        |gpus| format!("{levels}, {}", counted(gpus.into(), "GPU")),
    );
    Some(Chart {
        id: "throughput-against-speed".to_owned(),
        title: format!("{label} against speed for each user"),
        finding: pareto_finding(&points, 1 < series.len(), gpus.is_some()),
        n,
        plot: Plot::Pareto(Pareto {
            x: measure("Speed for each user", "tok/s", ScaleKind::Linear),
            y: measure(label, "tok/s", ScaleKind::Linear),
            points,
        }),
    })
}

/// GPUs of a server, where all rows know the same number of them: as the server's facts say, else as the
/// GPUs do on which its processes were seen.
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

fn mark_frontier(points: &mut [ParetoPoint]) {
    let places: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
    for point in points {
        let beaten =
            |(x, y): &(f64, f64)| point.x <= *x && point.y <= *y && (point.x < *x || point.y < *y);
        point.on_frontier = !places.iter().any(beaten);
    }
}

fn pareto_finding(points: &[ParetoPoint], named: bool, per_gpu: bool) -> String {
    let mut best: Vec<&ParetoPoint> = points.iter().filter(|point| point.on_frontier).collect();
    best.sort_by(|a, b| b.x.total_cmp(&a.x));
    let describe = |point: &ParetoPoint| {
        let series = if named { format!("{} ", point.series) } else { String::new() };
        let total = if per_gpu { "per GPU" } else { "in all" };
        let [x, y] = [point.x, point.y].map(number);
        format!("{series}{} ({x} tok/s for each user, {y} tok/s {total})", point.label)
    };
    match best.as_slice() {
        [only] => {
            format!("{} is best in both, and no other level is better in either.", describe(only))
        }
        [first, .., last] => format!(
            "{} of {} levels are not beaten in both at once, from {} to {}.",
            best.len(),
            points.len(),
            describe(first),
            describe(last)
        ),
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
                interval: pair(across.doubt()),
                hollow: reservation.is_some(),
                failed: false,
                note: reservation.clone().or(across.reason),
            }
        };
        BarGroup { label: row.name.clone(), bars: SERIES.map(bar).into() }
    };
    Some(Chart {
        id: format!("throughput-by-{what}"),
        title: format!("Output throughput by {what}"),
        finding: scenario_finding(&known)?,
        n: format!(
            "{}, {} ok",
            counted(known.len() as u64, what),
            counted(rows.iter().map(|row| row.tally().ok).sum(), "request")
        ),
        plot: Plot::Bars(Bars {
            y: measure("Output throughput", "tok/s", ScaleKind::Linear),
            groups: rows.iter().map(group).collect(),
        }),
    })
}

/// The ends, as far as the intervals tell them from the others.
fn scenario_finding(known: &[Measured]) -> Option<String> {
    let [lowest, .., highest] = known else { return None };
    let [low, high] = [lowest.2, highest.2].map(number);
    if !is_apart(&lowest.1, &highest.1) {
        return Some(format!(
            "Output throughput is about equal, {low} to {high} tok/s: {ABOUT_EQUAL}."
        ));
    }
    let describe = |end: &Measured, which: &str, value: &str| match known
        .iter()
        .filter(|one| !is_apart(&one.1, &end.1))
        .count()
    {
        0 | 1 => format!("{} has the {which} output throughput with {value} tok/s", end.0),
        several => format!(
            "{} has {value} tok/s, about equal with {} at the {which} end",
            end.0,
            counted(several as u64 - 1, "other")
        ),
    };
    Some(format!("{}; {}.", describe(highest, "highest", &high), describe(lowest, "lowest", &low)))
}

/// How late the client itself was. `None` where no client measured anything, as in a simulation.
pub(super) fn client_health(rows: &[Row<'_>]) -> Option<Chart> {
    let is_real = |row: &&Row<'_>| row.drawn().is_some_and(|run| run.run.simulated.is_none());
    let real = || rows.iter().filter(is_real);
    // The worst run of a row: a mean over runs would hide the one that was late.
    let group = |row: &Row<'_>| {
        let p99 = |metric: &Metric| {
            let values = row.runs.iter().filter_map(|run| run.metrics.distribution(metric)?.p99);
            values.max_by(f64::total_cmp)
        };
        let loops = row.runs.iter().filter_map(|run| run.client.loop_lag_ms.p99_at_most);
        let bars = [
            ("send lag p99", p99(&metric::SEND_LAG)),
            ("client lag p99", p99(&metric::CLIENT_LAG)),
            ("loop lag p99, at most", loops.max_by(f64::total_cmp)),
        ];
        let bars =
            bars.map(|(series, value)| Bar { series: series.to_owned(), value, ..Bar::default() });
        BarGroup { label: row.name.clone(), bars: bars.into() }
    };
    let groups: Vec<BarGroup> = real().map(group).collect();
    let known = groups.iter().flat_map(|group| {
        group.bars.iter().filter_map(move |bar| Some((&group.label, &bar.series, bar.value?)))
    });
    let (row, lag, most) = known.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let tpot = real().filter_map(|row| row.value(metric::TPOT.p50())).min_by(f64::total_cmp);
    let against = tpot.map_or_else(String::new, |tpot| {
        format!("; the shortest median TPOT is {} ms", number(tpot))
    });
    Some(Chart {
        id: "client-lags".to_owned(),
        title: "Lags of the client itself".to_owned(),
        finding: format!(
            "The largest lag of the client is {} ms: {lag} in {row}{against}.",
            number(most)
        ),
        n: "all runs that count; the largest of them".to_owned(),
        plot: Plot::Bars(Bars { y: measure("Lag", "ms", ScaleKind::Linear), groups }),
    })
}

/// How requests ended, row by row.
pub(super) fn outcomes(rows: &[Row<'_>]) -> Option<Chart> {
    let counts = |row: &Row<'_>| {
        let mut counts = BTreeMap::new();
        for run in row.all_runs() {
            for (outcome, number) in &run.outcomes {
                // What the end of a run cut off was never due, and is not counted.
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
        others => format!(
            "{} of {requests} ended ok ({}); the others: {}.",
            count(ok),
            percent(ok as f64 / total as f64),
            list(others)
        ),
    };
    let row = |(row, counts): (&Row<'_>, &BTreeMap<Outcome, u64>)| ShareRow {
        label: row.name.clone(),
        counts: classes.iter().map(|class| counts.get(class).copied().unwrap_or(0)).collect(),
    };
    let class = |class: &Outcome| ShareClass {
        name: class.key().to_owned(),
        is_good: *class == Outcome::Ok,
    };
    Some(Chart {
        id: "outcomes".to_owned(),
        title: "How requests ended".to_owned(),
        finding,
        n: requests,
        plot: Plot::Shares(Shares {
            classes: classes.iter().map(class).collect(),
            rows: rows.iter().zip(&counts).map(row).collect(),
            counted: "requests".to_owned(),
        }),
    })
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
        let row = |level| Row {
            name: String::new(),
            runs: Vec::new(),
            left_out: Vec::new(),
            level: Some(level),
            server: None,
            scenario: None,
            suite_place: None,
            contaminated: None,
        };
        let rows: Vec<Row<'_>> = levels.iter().map(row).collect();
        let series = Series { name: "one".to_owned(), rows: rows.iter().collect() };
        output_growth(&series, false).unwrap_or_default()
    }

    #[test]
    fn growth_is_claimed_only_where_the_intervals_show_it() {
        let clear = [level(1, 50.0, 1.0), level(2, 90.0, 1.0), level(4, 160.0, 2.0)];
        assert!(told(&clear).contains("grows from 50.00 tok/s at c=1 to 160.0 tok/s at c=4"));
        let tie = [level(1, 50.0, 1.0), level(2, 160.0, 4.0), level(4, 161.0, 4.0)];
        let text = told(&tie);
        assert!(text.contains("about equal, and highest, at c=2 and c=4"), "{text}");
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
        mark_frontier(&mut points);
        let shared = pareto_finding(&points, false, true);
        assert!(shared.contains("160.0 tok/s per GPU") && !shared.contains("in all"), "{shared}");
        assert!(pareto_finding(&points, false, false).contains("160.0 tok/s in all"));
    }

    #[test]
    fn a_point_is_on_the_frontier_unless_another_is_better_in_both() {
        let mut points = vec![point(50.0, 100.0), point(40.0, 160.0), point(30.0, 150.0)];
        points.push(point(40.0, 160.0));
        mark_frontier(&mut points);
        let marks: Vec<bool> = points.iter().map(|point| point.on_frontier).collect();
        assert_eq!(marks, [true, true, false, true]);
    }
}
