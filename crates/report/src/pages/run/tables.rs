//! The tables of one run: latencies, single numbers, and the server's own words.

use inferometer_analysis::{
    CounterFigures, Distribution, GaugeFigures, MetricValue, Percentile, Statistic, Summary, Unit,
};

use crate::document::{Block, Cell, Column, Table};
use crate::fmt::{count, counted, interval, interval_in, number, percent, whole};
use crate::narrative::facts::printed;
use crate::pages::cells::{UNCERTIFIED, missing, uncertified};
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
            let mut cells = vec![Cell {
                detail: Some(metric.definition.to_owned()),
                ..Cell::text(metric.title)
            }];
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
    let interval = found.intervals.get(statistic).map(|it| format!("95 % {}", interval(it)));
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
        MetricValue::Scalar(scalar) if scalar.value.is_none() && metric.is_telemetry() => None,
        MetricValue::Scalar(scalar) => {
            let is_share = metric.unit == Unit::Share;
            let number = match scalar.value {
                Some(value) => Cell::number(printed(metric.name, value), value),
                None => missing(scalar.reason.as_deref().unwrap_or("there is no value")),
            };
            let interval = match scalar.interval {
                Some(found) => Cell::text(interval_in(found, metric.unit)),
                None => missing("not known from this run alone"),
            };
            let unit = if is_share { "" } else { metric.unit.name() };
            let name =
                Cell { detail: Some(metric.definition.to_owned()), ..Cell::text(metric.title) };
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
        Some(found) => [found.mean, found.max]
            .map(|value| Cell::number(if share { percent(value) } else { number(value) }, value)),
    };
    let line = |name: &str, cells: [Cell; 2]| {
        [Cell::text(name)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![
        line("Running requests", gauge(server.running, false)),
        line("Waiting requests", gauge(server.waiting, false)),
        line("KV use", gauge(server.kv_usage, true)),
    ];
    // Few servers have one.
    if server.cpu_kv_usage.is_some() {
        rows.push(line("KV use, host memory", gauge(server.cpu_kv_usage, true)));
    }
    let once = |name: &str, value: Option<String>| {
        value.map(|text| vec![Cell::text(name), Cell::text(text), Cell::text("")])
    };
    rows.extend(once("Preemptions", server.preemptions.map(|found| number(found.total))));
    rows.extend(once("Prefix cache hits", server.prefix_hit_share.map(|it| percent(it))));
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

/// What the server counted beside what the client did: `None` where the server counts nothing.
pub(super) fn tokens(summary: &Summary) -> Option<Block> {
    let server = summary.server.as_ref()?;
    let client = &summary.tokens;
    let row = |name: &str, own: u64, found: Option<CounterFigures>, apart: Option<f64>| {
        let found = found?;
        let apart = match (apart, &server.tokens_not_compared) {
            (Some(share), _) => Cell::number(format!("{:+.2} %", share * 100.0), share),
            (None, Some(reason)) => missing(reason),
            (None, None) => missing("the client's count is not the server's own"),
        };
        Some(vec![
            Cell::text(name),
            Cell::number(count(own), own as f64),
            Cell::number(whole(found.total), found.total),
            apart,
            found.per_s.map_or_else(
                || missing("there is no time between its scrapes"),
                |rate| Cell::number(number(rate), rate),
            ),
        ])
    };
    let apart = server.tokens_apart;
    let rows: Vec<Vec<Cell>> = [
        row("Prompt tokens", client.input_total, server.prompt_tokens, apart.prompt),
        row("Generated tokens", client.output_total, server.generation_tokens, apart.generation),
    ]
    .into_iter()
    .flatten()
    .collect();
    let columns = ["By the client", "By the server", "Apart", "Server (tok/s)"];
    (!rows.is_empty()).then(|| {
        Block::Table(Table {
            id: "tokens-reconciled".to_owned(),
            caption: "Tokens by two witnesses: ok requests here, all its work there".to_owned(),
            columns: [Column::left("Tokens")]
                .into_iter()
                .chain(columns.map(Column::right))
                .collect(),
            rows,
            notes: Vec::new(),
        })
    })
}
