//! The tables of one run: latencies, single numbers, and the server's own words.

use inferometer_analysis::{
    Distribution, GaugeFigures, MetricValue, Percentile, Statistic, Summary, Unit,
};

use crate::document::{Block, Cell, Column, Table};
use crate::narrative::facts::printed;
use crate::number::{count, figure, percent};
use crate::pages::cells::{UNCERTIFIED, missing, uncertified};
use crate::pages::words::{counted, range};
use crate::terminal::speaker;

const STATISTICS: [Statistic; 6] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P90),
    Statistic::Percentile(Percentile::P95),
    Statistic::Percentile(Percentile::P99),
    Statistic::Max,
];

pub(super) fn latencies(summary: &Summary) -> Table {
    let rows = summary.metrics.iter().filter_map(|(metric, value)| match value {
        MetricValue::Distribution(found) => {
            let mut cells =
                vec![Cell { detail: Some(metric.help.to_owned()), ..Cell::text(metric.title) }];
            cells.extend(STATISTICS.map(|statistic| latency(metric.name, found, statistic)));
            cells.push(Cell::number(count(found.n), found.n as f64));
            Some(cells)
        }
        MetricValue::Scalar(_) => None,
    });
    let columns = ["mean", "p50", "p90", "p95", "p99", "max", "n"];
    Table {
        id: "run-metrics".to_owned(),
        caption: "Latencies in milliseconds, over requests that ended ok".to_owned(),
        columns: [Column::left("Latency (ms)")]
            .into_iter()
            .chain(columns.map(Column::right))
            .collect(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

fn latency(metric: &str, found: &Distribution, statistic: Statistic) -> Cell {
    let Some(value) = statistic.stored(found) else {
        return missing(found.reason.as_deref().unwrap_or("there is no value"));
    };
    let certified = match statistic {
        Statistic::Percentile(percentile) => found.is_certified(percentile),
        Statistic::Mean | Statistic::Max => true,
    };
    let interval = found.intervals.of(statistic).map(|it| format!("95 % {}", range(it)));
    let independent = found.effective_n.unwrap_or(found.n as f64);
    let doubt = (!certified).then(|| uncertified(Some(independent)));
    let parts: Vec<String> = interval.into_iter().chain(doubt).collect();
    Cell {
        detail: (!parts.is_empty()).then(|| parts.join("; ")),
        doubtful: !certified,
        reason: (!certified).then(|| UNCERTIFIED.to_owned()),
        ..Cell::number(printed(metric, value), value)
    }
}

pub(super) fn numbers(summary: &Summary) -> Table {
    let rows = summary.metrics.iter().filter_map(|(metric, value)| match value {
        MetricValue::Scalar(scalar) => {
            let is_share = metric.unit == Unit::Share;
            let number = match scalar.value {
                Some(value) => Cell::number(printed(metric.name, value), value),
                None => missing(scalar.reason.as_deref().unwrap_or("there is no value")),
            };
            let shown = |value: f64| {
                if is_share { percent(Some(value)) } else { printed(metric.name, value) }
            };
            let interval = match scalar.interval {
                Some(found) => Cell::text(format!("{} to {}", shown(found.low), shown(found.high))),
                None => missing("not known from this run alone"),
            };
            let unit = if is_share { "" } else { metric.unit.name() };
            let name = Cell { detail: Some(metric.help.to_owned()), ..Cell::text(metric.title) };
            Some(vec![name, number, Cell::text(unit), interval])
        }
        MetricValue::Distribution(_) => None,
    });
    Table {
        id: "run-numbers".to_owned(),
        caption: "Rates, shares and counts".to_owned(),
        columns: vec![
            Column::left("Quantity"),
            Column::right("Value"),
            Column::left("Unit"),
            Column::right("95 % interval"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// `None` where the server says nothing of itself and nobody says why.
pub(super) fn server(summary: &Summary) -> Option<Block> {
    let Some(server) = &summary.server else {
        let reason = summary.server_missing.as_ref()?;
        return Some(Block::Paragraph(crate::document::plain(format!("– {reason}."))));
    };
    let gauge = |found: Option<GaugeFigures>, share: bool| match found {
        None => [missing("the server has no such word"), missing("the server has no such word")],
        Some(found) => [found.mean, found.max].map(|value| {
            Cell::number(if share { percent(Some(value)) } else { figure(Some(value)) }, value)
        }),
    };
    let line = |name: &str, cells: [Cell; 2]| {
        [Cell::text(name)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![
        line("Running requests", gauge(server.running, false)),
        line("Waiting requests", gauge(server.waiting, false)),
        line("KV use", gauge(server.kv_usage, true)),
    ];
    let once = |name: &str, value: Option<String>| {
        value.map(|text| vec![Cell::text(name), Cell::text(text), Cell::text("")])
    };
    rows.extend(once("Preemptions", server.preemptions.map(|found| figure(Some(found.total)))));
    rows.extend(once("Prefix cache hits", server.prefix_hit_share.map(|it| percent(Some(it)))));
    Some(Block::Table(Table {
        id: "server-side".to_owned(),
        caption: format!(
            "By {} of {}, {} inside the run",
            counted(server.scrapes.ok, "reading"),
            speaker(summary, server),
            count(server.scrapes.inside)
        ),
        columns: vec![Column::left("Quantity"), Column::right("Mean"), Column::right("Highest")],
        rows,
        notes: Vec::new(),
    }))
}
