//! The GPUs at each level of a set: how busy, how full, how fast, how hot, and what held them back.
//! Their mean power stands with the energy, from the same moments.

use inferometer_analysis::machines::DeviceFigures;
use inferometer_analysis::{GaugeFigures, Summary};

use crate::document::{Cell, Column, Table};
use crate::fmt::{counted, gibibytes, number, percent, whole};
use crate::pages::cells::missing;
use crate::pages::rows::{Row, Series};

const UNTOLD: &str = "the tool does not tell it";

/// `None` where no run knows of a GPU.
pub(super) fn table(series: &[Series<'_>]) -> Option<Table> {
    let several = 1 < series.len();
    let rows: Vec<Vec<Cell>> = series
        .iter()
        .flat_map(|one| one.rows.iter().map(move |row| (one, *row)))
        .filter(|(_, row)| row.runs.iter().any(|run| run.machines.gpus.is_some()))
        .map(|(one, row)| {
            let server = several.then(|| Cell::text(one.name.clone()));
            server.into_iter().chain(level(row)).collect()
        })
        .collect();
    let titles = [
        "Load",
        "Use",
        "Memory, highest (GiB)",
        "Power, highest (W)",
        "Core clock (MHz)",
        "Temperature, highest (°C)",
        "Held back by power",
        "Held back by heat",
    ];
    let server = several.then(|| Column::left("Server"));
    (!rows.is_empty()).then(|| Table {
        id: "set-gpus".to_owned(),
        caption: "The GPUs at each level: means over the runs, and the highest of all looks"
            .to_owned(),
        columns: server.into_iter().chain(titles.map(Column::right)).collect(),
        rows,
        notes: Vec::new(),
    })
}

fn level(row: &Row<'_>) -> Vec<Cell> {
    let runs = &row.runs;
    let gauge = |of: fn(&DeviceFigures) -> Option<GaugeFigures>| gauges(runs, of);
    let shares = |of: fn(&DeviceFigures) -> Option<f64>| values(runs, of);
    vec![
        Cell {
            number: row.level.and_then(|level| level.level.place()),
            ..Cell::text(row.name.clone())
        },
        mean(&means(&gauge(|it| it.use_share)), |it| percent(it)),
        highest(&gauge(|it| it.memory_used_bytes), |it| number(gibibytes(it))),
        highest(&gauge(|it| it.power_w), |it| number(it)),
        mean(&means(&gauge(|it| it.core_clock_mhz)), |it| whole(it)),
        highest(&gauge(|it| it.temperature_c), |it| whole(it)),
        mean(&shares(|it| it.throttled_power), |it| percent(it)),
        mean(&shares(|it| it.throttled_thermal), |it| percent(it)),
    ]
}

/// Of every GPU of every run that did something.
fn gauges(runs: &[&Summary], of: fn(&DeviceFigures) -> Option<GaugeFigures>) -> Vec<GaugeFigures> {
    devices(runs).filter_map(of).collect()
}

fn values(runs: &[&Summary], of: fn(&DeviceFigures) -> Option<f64>) -> Vec<f64> {
    devices(runs).filter_map(of).collect()
}

fn devices<'a>(runs: &'a [&Summary]) -> impl Iterator<Item = &'a DeviceFigures> {
    let known = runs.iter().filter_map(|run| run.machines.gpus.as_ref());
    known.flat_map(|gpus| &gpus.devices).filter(|device| device.counts())
}

fn means(gauges: &[GaugeFigures]) -> Vec<f64> {
    gauges.iter().map(|gauge| gauge.mean).collect()
}

fn mean(values: &[f64], text: fn(f64) -> String) -> Cell {
    let extremes =
        values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
    let Some((low, high)) = extremes else { return missing(UNTOLD) };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let behind = counted(values.len() as u64, "GPU run");
    let detail = format!("{} to {} in {behind}", text(low), text(high));
    Cell { detail: Some(detail), ..Cell::number(text(mean), mean) }
}

fn highest(gauges: &[GaugeFigures], text: fn(f64) -> String) -> Cell {
    let found = gauges.iter().map(|gauge| gauge.max).reduce(f64::max);
    found.map_or_else(|| missing(UNTOLD), |it| Cell::number(text(it), it))
}
