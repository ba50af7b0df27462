//! Throughput of all rows side by side.

use inferometer_analysis::set::AcrossRuns;
use inferometer_analysis::{Metric, metric};

use super::{is_apart, measure, pair};
use crate::chart::{Bar, BarGroup, Bars, Chart, Plot, ScaleKind};
use crate::fmt::{counted, number};
use crate::pages::rows::Row;

static SERIES: [(&str, &Metric); 2] = [
    ("output throughput", &metric::OUTPUT_THROUGHPUT),
    ("busiest second", &metric::PEAK_OUTPUT_THROUGHPUT),
];

/// `None` with fewer than two rows that have a throughput.
pub(in crate::pages) fn by_scenario(rows: &[Row<'_>], what: &str) -> Option<Chart> {
    let mut known: Vec<Known<'_>> = rows
        .iter()
        .filter_map(|row| {
            let across = row.quantity(&metric::OUTPUT_THROUGHPUT);
            let mean = across.mean?;
            Some((row.name.as_str(), across, mean))
        })
        .collect();
    known.sort_by(|a, b| a.2.total_cmp(&b.2));
    let finding = finding(&known)?;
    Some(Chart {
        id: format!("throughput-by-{what}"),
        title: format!("Output throughput by {what}"),
        finding,
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

type Known<'a> = (&'a str, AcrossRuns, f64);

/// The ends, as far as the intervals tell them from the others.
fn finding(known: &[Known<'_>]) -> Option<String> {
    let [lowest, .., highest] = known else { return None };
    let [low, high] = [lowest.2, highest.2].map(number);
    if !is_apart(&lowest.1, &highest.1) {
        return Some(format!(
            "Output throughput is about equal, {low} to {high} tok/s: they differ by no more than \
             their doubt."
        ));
    }
    let near = |end: &Known<'_>| known.iter().filter(|one| !is_apart(&one.1, &end.1)).count();
    let told = |end: &Known<'_>, word: &str, value: &str| match near(end) {
        0 | 1 => format!("{} has the {word} output throughput with {value} tok/s", end.0),
        several => format!(
            "{} has {value} tok/s, about equal with {} at the {word} end",
            end.0,
            counted(several as u64 - 1, "other")
        ),
    };
    Some(format!("{}; {}.", told(highest, "highest", &high), told(lowest, "lowest", &low)))
}

fn group(row: &Row<'_>) -> BarGroup {
    let reservation = row.reservation();
    let bar = |(series, quantity): (&str, &'static Metric)| {
        let across = row.quantity(quantity);
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
}
