//! The tables of a set: its levels, its quantities across runs, and its runs.

use inferometer_analysis::set::{PointLine, SetSummary};
use inferometer_analysis::{LatencyOrigin, METRICS, Percentile, Quantity, Statistic, Unit, metric};
use inferometer_model::campaign::Dimension;

use crate::document::{Cell, Column, Table, plain};
use crate::fmt::{self, count, interval_in, percent};
use crate::narrative::facts::printed;
use crate::pages::cells::{missing, quantity_cell};
use crate::pages::rows::{Row, Series};

/// Throughput and latency at each level; a server has rows of its own.
pub(super) fn levels(set: &SetSummary, series: &[Series<'_>]) -> Table {
    let is_rate = set.asked.dimension == Some(Dimension::Rate);
    let several = 1 < series.len();
    let ttft = LatencyOrigin::for_load(is_rate).ttft();
    let name = ttft.title;
    let mut columns = Vec::new();
    if several {
        columns.push(Column::left("Server"));
    }
    columns.extend(
        [
            if is_rate { "Asked rate (req/s)" } else { "Concurrency" },
            "Runs",
            "Requests ok",
            "Output Throughput (tok/s)",
            if is_rate { "Answered (req/s)" } else { "Per-user Throughput (tok/s)" },
            &format!("{name} mean (ms)"),
            &format!("{name} p99 (ms)"),
            "TPOT mean (ms)",
            "TPOT p99 (ms)",
        ]
        .map(Column::right),
    );
    let second = if is_rate {
        metric::REQUEST_THROUGHPUT.quantity()
    } else {
        metric::PER_USER_THROUGHPUT.quantity()
    };
    let quantities = [
        metric::OUTPUT_THROUGHPUT.quantity(),
        second,
        ttft.mean(),
        ttft.p99(),
        metric::TPOT.mean(),
        metric::TPOT.p99(),
    ];
    let row = |series: &Series<'_>, row: &Row<'_>| {
        let mut cells = Vec::new();
        if several {
            cells.push(Cell::text(series.name.clone()));
        }
        cells.extend(head(row));
        cells.extend(quantities.iter().map(|quantity| quantity_cell(row, *quantity)));
        cells
    };
    Table {
        id: "set-levels".to_owned(),
        caption: "Every level".to_owned(),
        columns,
        rows: series
            .iter()
            .flat_map(|one| one.rows.iter().map(move |each| (one, *each)))
            .map(|(one, each)| row(one, each))
            .collect(),
        notes: Vec::new(),
    }
}

/// What each level takes in power and energy; `None` where no GPU told its power. A table of its own:
/// beside throughput and latency it lies beyond the edge of a page.
pub(super) fn energy(set: &SetSummary, series: &[Series<'_>]) -> Option<Table> {
    let quantities = [
        ("GPU Power (W)", metric::GPU_POWER.quantity()),
        ("Energy (J/tok)", metric::ENERGY_PER_OUTPUT_TOKEN.quantity()),
        ("Output tokens per joule", metric::OUTPUT_TOKENS_PER_JOULE.quantity()),
    ];
    let mut rows = series.iter().flat_map(|one| &one.rows);
    if !rows.any(|row| row.value(metric::GPU_POWER.quantity()).is_some()) {
        return None;
    }
    let is_rate = set.asked.dimension == Some(Dimension::Rate);
    let level = if is_rate { "Asked rate (req/s)" } else { "Concurrency" };
    let several = 1 < series.len();
    let server = several.then(|| Column::left("Server"));
    let titles = quantities.map(|(title, _)| title);
    let row = |one: &Series<'_>, row: &Row<'_>| -> Vec<Cell> {
        let server = several.then(|| Cell::text(one.name.clone()));
        let told = quantities.iter().map(|(_, quantity)| quantity_cell(row, *quantity));
        server.into_iter().chain(head(row).into_iter().take(1)).chain(told).collect()
    };
    let row = &row;
    Some(Table {
        id: "set-energy".to_owned(),
        caption: "Power and energy at every level".to_owned(),
        columns: server
            .into_iter()
            .chain([level].into_iter().chain(titles).map(Column::right))
            .collect(),
        rows: series
            .iter()
            .flat_map(|one| one.rows.iter().map(move |each| row(one, each)))
            .collect(),
        notes: vec![plain(
            "Output tokens of ok requests; the GPUs that were in use, and nothing else.",
        )],
    })
}

/// Level, runs and requests.
fn head(row: &Row<'_>) -> Vec<Cell> {
    let Some(level) = row.level else { return vec![missing("there is no level"); 3] };
    let reservation = row.reservation();
    let place = Cell {
        number: level.level.place(),
        doubtful: reservation.is_some(),
        detail: reservation,
        ..Cell::text(fmt::level(level.level))
    };
    let runs = level.points.len();
    let tally = row.tally();
    let ok = Cell {
        detail: (tally.ok != tally.scheduled).then(|| format!("of {}", count(tally.scheduled))),
        ..Cell::number(count(tally.ok), tally.ok as f64)
    };
    vec![place, Cell::number(runs.to_string(), runs as f64), ok]
}

/// What is told of repeated runs of a distribution.
const STATISTICS: [Statistic; 3] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P99),
];

/// Each quantity over the runs of one experiment.
pub(super) fn across(row: &Row<'_>) -> Table {
    let mut rows = Vec::new();
    for metric in METRICS {
        for quantity in metric.quantities(&STATISTICS) {
            rows.extend(across_row(row, &quantity));
        }
    }
    let columns = ["Mean", "", "95 % interval", "Std", "CoV", "Lowest", "Highest", "Runs"];
    Table {
        id: "set-levels".to_owned(),
        caption: format!("{} across its runs", row.name),
        columns: [Column::left("Quantity")].into_iter().chain(columns.map(Column::right)).collect(),
        rows,
        notes: vec![plain("A run counts once, whatever its length.")],
    }
}

/// `None` where no run has a value: it needs no line of dashes.
fn across_row(row: &Row<'_>, quantity: &Quantity) -> Option<Vec<Cell>> {
    let found = row.quantity(*quantity);
    let metric = quantity.metric();
    let mean = found.mean?;
    let shown = |value: Option<f64>| match value {
        Some(value) => Cell::number(printed(metric.name, value), value),
        None => missing("one run has no spread"),
    };
    let is_share = metric.unit == Unit::Share;
    let statistic = quantity.statistic().map_or("", Statistic::name);
    let title = format!("{} {statistic}", metric.title);
    let extremes = found.extremes();
    Some(vec![
        Cell::text(title.trim_end()),
        Cell { text: printed(metric.name, mean), ..quantity_cell(row, *quantity) },
        Cell::text(if is_share { "" } else { metric.unit.name() }),
        found.doubt().map_or_else(
            || missing("too few values to give one"),
            |interval| Cell {
                number: Some(mean),
                ..Cell::text(interval_in(interval, metric.unit))
            },
        ),
        shown(found.std),
        found.cov.map_or_else(
            || {
                missing(if found.std.is_some() {
                    "the mean is zero"
                } else {
                    "one run has no spread"
                })
            },
            |cov| Cell::number(percent(cov), cov),
        ),
        shown(extremes.map(|(low, _)| low)),
        shown(extremes.map(|(_, high)| high)),
        Cell::number(found.n.to_string(), f64::from(found.n)),
    ])
}

/// Every run of the set.
pub(in crate::pages) fn runs(set: &SetSummary) -> Table {
    let name = |line: &PointLine| {
        let place = usize::try_from(line.condition).unwrap_or(usize::MAX);
        set.conditions.get(place).map_or_else(String::new, |condition| condition.name.clone())
    };
    let row = |line: &PointLine| {
        vec![
            Cell::number(format!("{}/{}", set.set, line.number), f64::from(line.number)),
            Cell::text(name(line)),
            Cell::text(fmt::level(line.level)),
            Cell::text(line.verdict.to_string()),
            Cell::text(line.seed.to_string()),
            Cell::text(line.workload_fingerprint.clone()),
            Cell::text(line.plan_fingerprint.clone()),
        ]
    };
    Table {
        id: "runs-of-the-set".to_owned(),
        caption: "Runs".to_owned(),
        columns: ["Run", "Condition", "Level", "Verdict", "Seed", "Workload", "Plan"]
            .map(Column::left)
            .into(),
        rows: set.points.iter().map(row).collect(),
        notes: vec![plain(
            "Runs asked for the same where the workload is equal, and sent the same where the plan is.",
        )],
    }
}
