//! How late the client itself was.

use super::measure;
use crate::chart::{Bar, BarGroup, Bars, Chart, Plot, ScaleKind};
use crate::fmt::number;
use crate::pages::rows::Row;
use inferometer_analysis::{Metric, metric};

const LAGS: [&str; 3] = ["send lag p99", "client lag p99", "loop lag p99, at most"];

/// `None` where no client measured anything, as in a simulation.
pub(in crate::pages) fn client_health(rows: &[Row<'_>]) -> Option<Chart> {
    let real: Vec<&Row<'_>> = rows
        .iter()
        .filter(|row| row.drawn().is_some_and(|run| run.run.simulated.is_none()))
        .collect();
    let groups: Vec<BarGroup> = real.iter().map(|row| group(row)).collect();
    let known = || {
        groups.iter().flat_map(|group| {
            group.bars.iter().filter_map(move |bar| Some((&group.label, &bar.series, bar.value?)))
        })
    };
    let (row, lag, most) = known().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let tpot = real.iter().filter_map(|row| row.value(metric::TPOT.p50())).min_by(f64::total_cmp);
    let against = tpot.map_or_else(String::new, |tpot| {
        format!("; the shortest median TPOT is {} ms", number(tpot))
    });
    let finding =
        format!("The largest lag of the client is {} ms: {lag} in {row}{against}.", number(most));
    Some(Chart {
        id: "client-lags".to_owned(),
        title: "Lags of the client itself".to_owned(),
        finding,
        n: "all runs that count; the largest of them".to_owned(),
        plot: Plot::Bars(Bars { y: measure("Lag", "ms", ScaleKind::Linear), groups }),
    })
}

/// The worst run of a row: a mean over runs would hide the one that was late.
fn group(row: &Row<'_>) -> BarGroup {
    let p99 = |metric: &Metric| {
        let of_run = |run: &&inferometer_analysis::Summary| run.metrics.distribution(metric)?.p99;
        row.runs.iter().filter_map(of_run).max_by(f64::total_cmp)
    };
    let loops = row.runs.iter().filter_map(|run| run.client.loop_lag_ms.p99_at_most);
    let values = [p99(&metric::SEND_LAG), p99(&metric::CLIENT_LAG), loops.max_by(f64::total_cmp)];
    let bars = LAGS.into_iter().zip(values).map(|(series, value)| Bar {
        series: series.to_owned(),
        value,
        interval: None,
        hollow: false,
        failed: false,
        note: None,
    });
    BarGroup { label: row.name.clone(), bars: bars.collect() }
}
