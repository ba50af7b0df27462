//! How far to believe a page: the verdict with its reasons, what the cache did, and the client.

mod cache;
mod reasons;

use std::fmt::Write;

use inferometer_analysis::{Metric, Summary, Verdict, metric};

pub(super) use self::cache::cache;
pub(super) use self::reasons::{checks, no_reason, reasons};
use super::cells::missing;
use super::charts;
use super::frame::sentence;
use super::rows::Row;
use crate::document::{Block, Cell, Column, Table, plain};
use crate::fmt::{NOTHING, count, counted, interval, number, percent};

/// The instrument's view of itself; in a simulation there is none.
pub(super) fn client(rows: &[Row<'_>]) -> Vec<Block> {
    if rows.iter().all(|row| row.drawn().is_none_or(|run| run.run.simulated.is_some())) {
        let text = "No client took part: the runs are simulated, and nothing was late.";
        return vec![Block::Paragraph(plain(text))];
    }
    let table = Table {
        id: "client-health".to_owned(),
        caption: "How late the client itself was, the worst run of each row".to_owned(),
        columns: vec![
            Column::left("Scenario"),
            Column::right("Send lag p99 (ms)"),
            Column::right("Client lag p99 (ms)"),
            Column::right("Loop lag p99, at most (ms)"),
            Column::right("Capacity used"),
            Column::right("Error of TTFT p99 (ms)"),
        ],
        rows: rows.iter().map(client_row).collect(),
        notes: Vec::new(),
    };
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(charts::client_health(rows).map(charts::figure));
    blocks
}

fn client_row(row: &Row<'_>) -> Vec<Cell> {
    let worst =
        |of: &dyn Fn(&Summary) -> Option<f64>| row.all_runs().filter_map(of).max_by(f64::total_cmp);
    let lag = |metric: &'static Metric| {
        worst(&move |run: &Summary| run.metrics.distribution(metric).and_then(|found| found.p99))
    };
    let cell = |value: Option<f64>, reason: &str| match value {
        Some(value) => Cell::number(number(value), value),
        None => missing(reason),
    };
    let capacity = worst(&|run: &Summary| Some(run.client.capacity.as_ref()?.used));
    let error = worst(&|run: &Summary| Some(run.client.capacity.as_ref()?.error_ms?.ttft_p99));
    let uncalibrated = "this client was not calibrated on this machine; see inferometer calibrate";
    vec![
        Cell::text(row.name.clone()),
        cell(lag(&metric::SEND_LAG), "nothing was sent"),
        cell(lag(&metric::CLIENT_LAG), "nothing was read"),
        cell(worst(&|run: &Summary| run.client.loop_lag_ms.p99_at_most), "nothing was noted"),
        capacity.map_or_else(|| missing(uncalibrated), |used| Cell::number(percent(used), used)),
        cell(error, uncalibrated),
    ]
}

/// How requests ended, and the words of the server where it gave any.
pub(super) fn outcomes(rows: &[Row<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> = charts::outcomes(rows).map(charts::figure).into_iter().collect();
    let mut failures: Vec<Vec<Cell>> = Vec::new();
    for row in rows {
        for group in row.all_runs().flat_map(|run| &run.failures) {
            if group.cause == Some(inferometer_model::outcome::Cause::TimeOver) {
                continue;
            }
            failures.push(vec![
                Cell::text(row.name.clone()),
                Cell::number(count(group.count), group.count as f64),
                Cell::text(group.outcome.key()),
                Cell::text(group.cause.map_or(NOTHING, inferometer_model::outcome::Cause::text)),
                Cell::text(group.example.clone().unwrap_or_else(|| NOTHING.to_owned())),
            ]);
        }
    }
    if !failures.is_empty() {
        blocks.push(Block::Table(Table {
            id: "failures".to_owned(),
            caption: "Requests that did not end ok".to_owned(),
            columns: vec![
                Column::left("Scenario"),
                Column::right("Requests"),
                Column::left("Outcome"),
                Column::left("Cause"),
                Column::left("In the server's words"),
            ],
            rows: failures,
            notes: Vec::new(),
        }));
    }
    blocks
}

/// How much is behind the numbers.
pub(super) fn behind(rows: &[Row<'_>]) -> Block {
    let runs: usize = rows.iter().map(|row| row.all_runs().count()).sum();
    let left_out: usize =
        rows.iter().filter(|row| row.level.is_some()).map(|row| row.left_out.len()).sum();
    let ok: u64 = rows.iter().map(|row| row.tally().ok).sum();
    let single = rows.iter().all(|row| row.runs.len() <= 1);
    let doubt = if single {
        "Each row is of one run: its intervals are of 95 % and come from that run alone, so they \
         know nothing of what changes between runs, such as a restart."
    } else {
        "Intervals are of 95 %, by Student's t between the runs of a row, and within the run where \
         there is only one."
    };
    let mut text = format!(
        "{} that ended ok, in {}, stand behind these tables.",
        counted(ok, "request"),
        counted(runs as u64, "run"),
    );
    if 0 < left_out {
        let _ = write!(text, " {} invalid and in no number.", is_are(left_out));
    }
    Block::Paragraph(plain(format!("{text} {doubt}")))
}

fn is_are(number: usize) -> String {
    if number == 1 { "1 run is".to_owned() } else { format!("{number} runs are") }
}

/// Runs by their verdict, in a sentence.
pub(super) fn runs_in_words(verdicts: &[Verdict]) -> String {
    let of = |verdict| verdicts.iter().filter(|found| **found == verdict).count();
    let mut text = counted(verdicts.len() as u64, "run");
    for (verdict, words) in [
        (Verdict::Degraded, "with a reservation"),
        (Verdict::Invalid, "invalid and left out of every mean"),
    ] {
        if 0 < of(verdict) {
            let _ = write!(text, ", {} {words}", of(verdict));
        }
    }
    sentence(&text)
}

/// Whether the run settled, for a page about one run.
pub(super) fn steady(summary: &Summary) -> Block {
    let steady = &summary.steady;
    let text = match (&steady.window, &steady.figures, &steady.reason) {
        (Some(window), Some(figures), _) => {
            let seconds = |ms: Option<f64>| number(ms.map(|ms| ms / 1e3));
            let output = figures.output_throughput.map_or_else(String::new, |value| {
                let doubt = figures
                    .intervals
                    .output_throughput
                    .map_or_else(String::new, |found| format!(" (95 % {})", interval(found)));
                format!("; output throughput there is {} tok/s{doubt}", number(value))
            });
            format!(
                "The run was steady from {} s to {} s, with {}{output}. The tables are of the whole \
                 run.",
                seconds(window.from_ms),
                seconds(window.to_ms),
                counted(figures.requests, "request"),
            )
        }
        (_, _, Some(reason)) => format!("No steady part was found: {reason}."),
        (_, _, None) => "Whether the run was steady was not judged.".to_owned(),
    };
    Block::Paragraph(plain(text))
}
