//! Throughput of all rows side by side.

use super::{measure, pair};
use crate::chart::{Bar, BarGroup, Bars, Chart, Plot, ScaleKind};
use crate::number::figure;
use crate::pages::rows::Row;
use crate::pages::words::counted;

const SERIES: [(&str, &str); 2] =
    [("output throughput", "output_throughput"), ("busiest second", "peak_output_throughput")];

/// `None` with fewer than two rows that have a throughput.
pub(in crate::pages) fn by_scenario(rows: &[Row<'_>], what: &str) -> Option<Chart> {
    let mut known: Vec<(&str, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.name.as_str(), row.value("output_throughput")?)))
        .collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let [lowest, .., highest] = known.as_slice() else { return None };
    let finding = format!(
        "{} has the highest output throughput with {} tok/s, {} the lowest with {} tok/s.",
        highest.0,
        figure(Some(highest.1)),
        lowest.0,
        figure(Some(lowest.1)),
    );
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

fn group(row: &Row<'_>) -> BarGroup {
    let reservation = row.reservation();
    let bar = |(series, quantity): (&str, &str)| {
        let across = row.quantity(quantity);
        Bar {
            series: series.to_owned(),
            value: across.mean,
            interval: pair(across.doubt()),
            hollow: reservation.is_some(),
            note: reservation.clone().or(across.reason),
        }
    };
    BarGroup { label: row.name.clone(), bars: SERIES.map(bar).into() }
}
