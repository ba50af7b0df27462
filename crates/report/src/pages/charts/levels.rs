//! Throughput and latency against the load.

use inferometer_analysis::set::{AcrossRuns, LevelSummary};
use inferometer_analysis::{LatencyOrigin, Quantity, metric};
use inferometer_model::campaign::Level;

use super::{is_apart, measure, pair};
use crate::chart::{Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind};
use crate::fmt::{self, counted, level_name, list, number};
use crate::pages::cells::UNCERTIFIED;
use crate::pages::rows::{Row, Series};

/// Levels so far apart are told apart only where steps are multiples.
const SPAN_OF_LOG: f64 = 8.0;

/// All requests together, and each user's share.
pub(in crate::pages) fn throughput(series: &[Series<'_>]) -> Option<Chart> {
    let wanted = [
        ("Output throughput", metric::OUTPUT_THROUGHPUT.quantity(), "tok/s"),
        ("Per user", metric::PER_USER_THROUGHPUT.quantity(), "tok/s"),
    ];
    let lines = lines(series, &wanted)?;
    let sentences: Vec<String> =
        series.iter().filter_map(|one| rise(one, 1 < series.len())).collect();
    Some(Chart {
        id: "throughput-by-level".to_owned(),
        title: format!("Output throughput against {}", axis(series).0.to_lowercase()),
        finding: sentences.join(" "),
        n: behind(series),
        plot: Plot::Lines(lines),
    })
}

/// The slowest of a hundred, at each load.
pub(in crate::pages) fn latency(series: &[Series<'_>]) -> Option<Chart> {
    let is_rate = axis(series).1 == Kind::Rate;
    let ttft = LatencyOrigin::for_load(is_rate).ttft().p99();
    let title = if is_rate { "TTFT from schedule, p99" } else { "TTFT p99" };
    let wanted = [(title, ttft, "ms"), ("TPOT p99", metric::TPOT.p99(), "ms")];
    let lines = lines(series, &wanted)?;
    let several = 1 < series.len();
    let sentences: Vec<String> = series
        .iter()
        .filter_map(|one| {
            let grown =
                wanted.iter().filter_map(|(title, quantity, _)| growth(one, title, *quantity));
            let parts: Vec<String> = grown.collect();
            let head = if several { format!("{}: ", one.name) } else { String::new() };
            (!parts.is_empty()).then(|| format!("{head}{}.", parts.join("; ")))
        })
        .collect();
    Some(Chart {
        id: "latency-by-level".to_owned(),
        title: format!("Latency against {}", axis(series).0.to_lowercase()),
        finding: sentences.join(" "),
        n: behind(series),
        plot: Plot::Lines(lines),
    })
}

/// The first panel of the chart as text, in the notation that Markdown readers draw.
pub(in crate::pages) fn mermaid(series: &Series<'_>) -> Option<String> {
    let points: Vec<(String, f64)> = series
        .rows
        .iter()
        .filter_map(|row| {
            Some((fmt::level(row.level?.level), row.value(metric::OUTPUT_THROUGHPUT.quantity())?))
        })
        .collect();
    if points.len() < 2 {
        return None;
    }
    let names: Vec<String> = points.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let values: Vec<String> = points.iter().map(|(_, value)| format!("{value:.2}")).collect();
    let label = axis(std::slice::from_ref(series)).0;
    Some(format!(
        "xychart-beta\n    title \"Output throughput against {}\"\n    x-axis \"{label}\" [{}]\n    \
         y-axis \"tok/s\"\n    line [{}]\n",
        label.to_lowercase(),
        names.join(", "),
        values.join(", "),
    ))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Concurrency,
    Rate,
}

/// What the levels are.
fn axis(series: &[Series<'_>]) -> (&'static str, Kind, &'static str) {
    let levels = || series.iter().flat_map(|one| &one.rows).filter_map(|row| row.level);
    let is_rate = |level: &LevelSummary| matches!(level.level, Level::Rate(_) | Level::Unlimited);
    if levels().any(is_rate) {
        ("Asked rate", Kind::Rate, "req/s")
    } else {
        ("Concurrency", Kind::Concurrency, "")
    }
}

pub(super) fn axis_name(series: &[Series<'_>]) -> &'static str {
    axis(series).0
}

/// `None` with fewer than two levels that have a place and a value.
pub(super) fn lines(series: &[Series<'_>], wanted: &[(&str, Quantity, &str)]) -> Option<Lines> {
    let places: Vec<f64> =
        series.iter().flat_map(|one| &one.rows).filter_map(|row| row.place()).collect();
    let (low, high) = (
        places.iter().copied().min_by(f64::total_cmp)?,
        places.iter().copied().max_by(f64::total_cmp)?,
    );
    let scale =
        if 0.0 < low && SPAN_OF_LOG <= high / low { ScaleKind::Log } else { ScaleKind::Linear };
    let (label, _, unit) = axis(series);
    let panels: Vec<LinesPanel> = wanted
        .iter()
        .filter_map(|(title, quantity, unit)| panel(series, title, *quantity, unit))
        .collect();
    let drawn = panels.first()?.series.iter().map(|one| one.points.len()).max()?;
    let x = Measure { scale, ..measure(label, unit, scale) };
    (2 <= drawn).then_some(Lines { x, ticks_at_points: true, panels })
}

fn panel(series: &[Series<'_>], title: &str, quantity: Quantity, unit: &str) -> Option<LinesPanel> {
    let series: Vec<LineSeries> = series
        .iter()
        .map(|one| LineSeries {
            name: one.name.clone(),
            points: one.rows.iter().filter_map(|row| point(row, quantity)).collect(),
        })
        .filter(|one| !one.points.is_empty())
        .collect();
    (!series.is_empty()).then(|| LinesPanel {
        heading: title.to_owned(),
        // The heading says what it is.
        y: measure("", unit, ScaleKind::Linear),
        series,
    })
}

fn point(row: &Row<'_>, quantity: Quantity) -> Option<LinePoint> {
    let across = row.quantity(quantity);
    let reservation = row.reservation();
    let uncertain = (!across.certified).then(|| UNCERTIFIED.to_owned());
    let notes: Vec<String> = reservation.iter().cloned().chain(uncertain).collect();
    Some(LinePoint {
        x: row.place()?,
        y: across.mean?,
        interval: pair(across.doubt()),
        hollow: reservation.is_some(),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
    })
}

/// A level that was reached, with a number of it.
pub(super) type Measured = (String, AcrossRuns, f64);

pub(super) fn measured(series: &Series<'_>, quantity: Quantity) -> Vec<Measured> {
    let found = series.rows.iter().filter(|row| row.place().is_some() && row.is_reached());
    found
        .filter_map(|row| {
            let across = row.quantity(quantity);
            let mean = across.mean?;
            Some((level_name(row.level?.level), across, mean))
        })
        .collect()
}

/// How output grows along the levels of one server, as far as the intervals tell levels apart.
fn rise(series: &Series<'_>, named: bool) -> Option<String> {
    let points = measured(series, metric::OUTPUT_THROUGHPUT.quantity());
    let [(first, _, from), .., (last, _, to)] = points.as_slice() else { return None };
    let top = points.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let shown = |value: f64| number(value);
    let who = if named { format!("{}: output", series.name) } else { "Output".to_owned() };
    let near: Vec<&Measured> = points.iter().filter(|one| !is_apart(&one.1, &top.1)).collect();
    let rises = points.windows(2).all(|pair| pair[0].2 < pair[1].2);
    let is_clear = points.windows(2).all(|pair| is_apart(&pair[0].1, &pair[1].1));
    Some(if near.len() == points.len() {
        let bottom = points.iter().map(|one| one.2).fold(f64::INFINITY, f64::min);
        format!(
            "{who} is about equal at all levels, {} to {} tok/s: they differ by no more than their \
             doubt.",
            shown(bottom),
            shown(top.2)
        )
    } else if rises && is_clear {
        format!(
            "{who} grows from {} tok/s at {first} to {} tok/s at {last}, the highest level that was \
             {}.",
            shown(*from),
            shown(*to),
            if series.rows.iter().all(|row| row.is_reached()) { "measured" } else { "reached" }
        )
    } else if 1 < near.len() {
        let levels: Vec<String> = near.iter().map(|one| one.0.clone()).collect();
        format!(
            "{who} begins with {} tok/s at {first} and is about equal, and highest, at {} with no \
             more than {} tok/s.",
            shown(*from),
            list(&levels),
            shown(top.2)
        )
    } else if top.0 == *last {
        format!(
            "{who} is {} tok/s at {first} and highest at {last} with {} tok/s; it does not grow at \
             every step.",
            shown(*from),
            shown(*to)
        )
    } else {
        format!(
            "{who} is highest at {} with {} tok/s; it begins with {} tok/s at {first} and ends with \
             {} tok/s at {last}.",
            top.0,
            shown(top.2),
            shown(*from),
            shown(*to)
        )
    })
}

/// How often the value of the first level fits into that of the last.
fn growth(series: &Series<'_>, title: &str, quantity: Quantity) -> Option<String> {
    let points = measured(series, quantity);
    let [first, .., last] = points.as_slice() else { return None };
    let times = if !is_apart(&first.1, &last.1) {
        ", about equal: they differ by no more than their doubt".to_owned()
    } else if 0.0 < first.2 {
        format!(", {} times as long", number(last.2 / first.2))
    } else {
        String::new()
    };
    let [from, to] = [first.2, last.2].map(fmt::latency);
    Some(format!("{title} is {from} at {} and {to} at {}{times}", first.0, last.0))
}

/// How much is behind each point.
pub(super) fn behind(series: &[Series<'_>]) -> String {
    let rows: Vec<&Row<'_>> = series.iter().flat_map(|one| one.rows.iter().copied()).collect();
    let counts: Vec<u64> = rows.iter().map(|row| row.tally().ok).collect();
    let runs = rows.iter().filter_map(|row| row.level).map(|level| level.points.len()).max();
    let requests = match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least == most => format!("{} ok", counted(*least, "request")),
        (Some(least), Some(most)) => format!("{least} to {}", counted(*most, "ok request")),
        _ => String::new(),
    };
    let runs = match runs {
        None | Some(0 | 1) => "in one run".to_owned(),
        Some(most) => format!("in up to {most} runs"),
    };
    list(&[format!("{requests} at each level {runs}")])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use inferometer_analysis::Interval;

    use super::*;

    fn level(users: u32, mean: f64, half: f64) -> LevelSummary {
        let within = Some(Interval { low: mean - half, high: mean + half });
        let across =
            AcrossRuns { mean: Some(mean), n: 1, within, certified: true, ..AcrossRuns::of(&[]) };
        let level = Level::Concurrency(NonZeroU32::new(users).unwrap_or(NonZeroU32::MIN));
        LevelSummary::of_figures(level, BTreeMap::from([("output_throughput".to_owned(), across)]))
    }

    fn told(levels: &[LevelSummary]) -> String {
        let row = |level| Row {
            name: String::new(),
            runs: Vec::new(),
            left_out: Vec::new(),
            level: Some(level),
            scenario: None,
            suite_place: None,
            contaminated: None,
        };
        let rows: Vec<Row<'_>> = levels.iter().map(row).collect();
        let series = Series { name: "one".to_owned(), rows: rows.iter().collect() };
        rise(&series, false).unwrap_or_default()
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
}
