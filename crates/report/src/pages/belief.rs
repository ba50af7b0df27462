//! How far to believe a page: the verdict with its reasons, what the cache did, and the client.

use std::fmt::Write;

use inferometer_analysis::{Check, CheckState, Notice, Summary, Verdict};
use inferometer_model::campaign::Prompts;

use super::cells::{missing, number};
use super::charts;
use super::frame::{notice, sentence, state_word};
use super::rows::Row;
use super::words::{counted, listed, range};
use crate::document::{Block, Cell, Column, Table, plain};
use crate::number::{NOTHING, count, figure, fixed, percent};

/// Reasons to doubt the whole, then those of single rows; each with what to do about it.
pub(super) fn reasons(warnings: &[Notice], rows: &[Row<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> = warnings.iter().map(notice).collect();
    for (found, places) in by_key(rows) {
        let where_found = listed(&places);
        let text = format!("{} ({where_found})", found.text);
        blocks.push(notice(&Notice { text, ..found.clone() }));
    }
    if blocks.is_empty() {
        let text = "Nothing was found that speaks against these numbers.";
        blocks.push(Block::Paragraph(plain(text)));
    }
    blocks
}

/// The same warning of several rows is told once, in the words of the first.
fn by_key<'a>(rows: &[Row<'a>]) -> Vec<(&'a Notice, Vec<String>)> {
    let mut found: Vec<(&Notice, Vec<String>)> = Vec::new();
    for row in rows {
        for notice in row.all_runs().flat_map(|run| &run.warnings) {
            match found.iter_mut().find(|(known, _)| known.key == notice.key) {
                Some((known, places)) => {
                    if known.severity < notice.severity {
                        *known = notice;
                    }
                    if places.last() != Some(&row.name) {
                        places.push(row.name.clone());
                    }
                }
                None => found.push((notice, vec![row.name.clone()])),
            }
        }
    }
    found.sort_by_key(|(notice, _)| std::cmp::Reverse(notice.severity));
    found
}

/// Every check with the row where it came out worst.
pub(super) fn checks(rows: &[Row<'_>]) -> Option<Table> {
    let mut worst: Vec<(&Check, String)> = Vec::new();
    for row in rows {
        for check in row.all_runs().flat_map(|run| &run.checks) {
            match worst.iter_mut().find(|(known, _)| known.key == check.key) {
                Some((known, place)) => {
                    if gravity(known.state) < gravity(check.state) {
                        (*known, *place) = (check, row.name.clone());
                    }
                }
                None => worst.push((check, row.name.clone())),
            }
        }
    }
    let alone = rows.len() == 1;
    let line = |(check, place): &(&Check, String)| {
        let mut cells = vec![
            Cell::text(check.title.clone()),
            Cell {
                text: state_word(check.state).to_owned(),
                detail: check.remedy.clone(),
                doubtful: matches!(check.state, CheckState::Degraded | CheckState::Invalid),
                ..Cell::default()
            },
            Cell::text(check.finding.clone()),
        ];
        if !alone {
            cells.push(Cell::text(place.clone()));
        }
        cells
    };
    let mut columns = ["Check", "Came to", "Found"].map(Column::left).to_vec();
    if !alone {
        columns.push(Column::left("Worst of"));
    }
    (!worst.is_empty()).then(|| Table {
        id: "checks".to_owned(),
        caption: "What was asked of the numbers before they are believed".to_owned(),
        columns,
        rows: worst.iter().map(line).collect(),
        notes: Vec::new(),
    })
}

/// What was not looked at is worse than what passed.
const fn gravity(state: CheckState) -> u8 {
    match state {
        CheckState::Passed => 0,
        CheckState::NotChecked => 1,
        CheckState::Noted => 2,
        CheckState::Degraded => 3,
        CheckState::Invalid => 4,
    }
}

/// What the server answered from its prefix cache, with the figures in which it would show.
pub(super) fn cache(rows: &[Row<'_>], prompts: Option<Prompts>) -> Vec<Block> {
    let words = match prompts {
        Some(Prompts::Fresh) => {
            "Every scenario and level had prompts of its own, so that none could meet in the cache \
             what another had left there."
        }
        Some(Prompts::Same) => {
            "All scenarios drew their prompts from one seed, so a later one may have met in the \
             cache what an earlier one had left there."
        }
        None => {
            "Prompts that the server has seen before cost it less; what it took from its cache:"
        }
    };
    let is_warm = rows.iter().any(|row| row.contaminated.is_some());
    let mut columns = vec![
        Column::left("Scenario"),
        Column::right("By its answers"),
        Column::right("By its counters"),
        Column::right("TTFT mean (ms)"),
        Column::right("TTFT p50 (ms)"),
        Column::right("Prefill (PP) tok/s"),
    ];
    if is_warm {
        columns.push(Column::right("PP of a cold scenario"));
        columns.push(Column::left("Same beginnings sent by"));
    }
    let line = |row: &Row<'_>| {
        let mut cells = cache_row(row);
        if is_warm {
            cells.extend(warm_cells(row, rows));
        }
        cells
    };
    let table = Table {
        id: "cache-evidence".to_owned(),
        caption: "Prompt tokens that the server took from its prefix cache".to_owned(),
        columns,
        rows: rows.iter().map(line).collect(),
        notes: Vec::new(),
    };
    vec![Block::Paragraph(plain(words)), Block::Table(table)]
}

fn cache_row(row: &Row<'_>) -> Vec<Cell> {
    let runs = || row.all_runs();
    let answers = row
        .scenario
        .and_then(|scenario| scenario.cached_share)
        .or_else(|| mean(runs().filter_map(|run| run.workload.audit.cache.share)));
    let why = runs().find_map(|run| run.workload.audit.cache.reason.clone());
    let counters =
        mean(runs().filter_map(|run| run.server.as_ref().and_then(|it| it.prefix_hit_share)));
    let silent = runs().find_map(|run| run.server_missing.clone());
    let share = |value: Option<f64>, reason: Option<String>| match value {
        Some(share) => Cell::number(percent(Some(share)), share),
        None => missing(&reason.unwrap_or_else(|| "the server does not say".to_owned())),
    };
    let reservation = row.contaminated.and_then(|_| row.reservation());
    vec![
        Cell {
            doubtful: reservation.is_some(),
            detail: reservation,
            ..Cell::text(row.name.clone())
        },
        share(answers, why),
        share(counters, silent),
        number(row, "ttft.mean", 2),
        number(row, "ttft.p50", 2),
        number(row, "pp", 1),
    ]
}

/// What shows that prompts of this row were in the cache: a cold row, and who sent them before.
fn warm_cells(row: &Row<'_>, all: &[Row<'_>]) -> [Cell; 2] {
    let name = |place: u32| {
        let found = all.iter().find(|other| other.suite_place == Some(place));
        found.map_or_else(String::new, |row| row.name.clone())
    };
    let not_warm = "it was not found in the cache";
    let cold = row.contaminated.and_then(|found| Some((found.pp_cold?, found.cold?)));
    let cold = cold.map_or_else(
        || missing(if row.contaminated.is_some() { "no cold scenario compares" } else { not_warm }),
        |(speed, place)| Cell {
            detail: Some(format!("of {}", name(place))),
            ..Cell::number(fixed(Some(speed), 1), speed)
        },
    );
    let before: Vec<String> =
        row.contaminated.iter().flat_map(|found| &found.sent_before).map(|it| name(*it)).collect();
    [cold, if before.is_empty() { missing(not_warm) } else { Cell::text(listed(&before)) }]
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

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
    let lag = |name: &'static str| {
        worst(&move |run: &Summary| run.metrics.distribution(name).and_then(|found| found.p99))
    };
    let cell = |value: Option<f64>, reason: &str| match value {
        Some(value) => Cell::number(figure(Some(value)), value),
        None => missing(reason),
    };
    let capacity = worst(&|run: &Summary| Some(run.client.capacity.as_ref()?.used));
    let error = worst(&|run: &Summary| Some(run.client.capacity.as_ref()?.error_ms?.ttft_p99));
    let uncalibrated = "this client was not calibrated on this machine; see inferometer calibrate";
    vec![
        Cell::text(row.name.clone()),
        cell(lag("send_lag"), "nothing was sent"),
        cell(lag("client_lag"), "nothing was read"),
        cell(worst(&|run: &Summary| run.client.loop_lag_ms.p99_at_most), "nothing was noted"),
        capacity
            .map_or_else(|| missing(uncalibrated), |used| Cell::number(percent(Some(used)), used)),
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
            let seconds = |ms: Option<f64>| figure(ms.map(|ms| ms / 1e3));
            let output = figures.output_throughput.map_or_else(String::new, |value| {
                let interval = figures.intervals.output_throughput;
                let doubt =
                    interval.map_or_else(String::new, |found| format!(" (95 % {})", range(found)));
                format!("; output throughput there is {} tok/s{doubt}", figure(Some(value)))
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
