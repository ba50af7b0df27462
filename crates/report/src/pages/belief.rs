//! The validity of a page: the verdict with its reasons, what the cache did, and the client.

mod cache;
mod reasons;

use std::fmt::Write;

use inferometer_analysis::{FailureGroup, Metric, Summary, Verdict, Warning, metric};
use inferometer_model::campaign::Prompts;
use inferometer_model::outcome::Cause;

pub(super) use self::cache::cache;
pub(super) use self::reasons::{checks, no_reason, reasons};
use super::cells::missing;
use super::frame::{self, section, sentence};
use super::rows::Row;
use super::{Detail, charts};
use crate::document::{Block, Cell, Column, Section, Table, plain};
use crate::escape::terminal_line;
use crate::fmt::{count, counted, number, percent};
use crate::narrative::Narrative;

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
fn outcomes(rows: &[Row<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> = charts::outcomes(rows).map(charts::figure).into_iter().collect();
    blocks.extend(failures(rows, Detail::Full).into_iter().flat_map(|section| section.blocks));
    blocks
}

/// Requests that did not end ok, by outcome; `None` where all did.
pub(super) fn failures(rows: &[Row<'_>], detail: Detail) -> Option<Section> {
    /// Enough for the sentence that says what to do.
    const WORDS_MOST: usize = 300;
    let has_names = detail == Detail::Full;
    let mut failures: Vec<Vec<Cell>> = Vec::new();
    let mut notes = Vec::new();
    for row in rows {
        let name = || has_names.then(|| Cell::text(row.name.clone())).into_iter();
        for run in row.all_runs() {
            let own = run.failures.iter().filter(|group| group.cause != Some(Cause::TimeOver));
            failures.extend(own.map(|group| name().chain(failure(group, WORDS_MOST)).collect()));
            if 0 < run.time_over {
                let turns = counted(run.time_over, "turn");
                notes.push(plain(format!("{turns} not sent because the time was over: no fault")));
            }
            if 0 < run.failures_not_listed {
                notes.push(plain(format!("{} others", count(run.failures_not_listed))));
            }
        }
    }
    if failures.is_empty() && (notes.is_empty() || has_names) {
        return None;
    }
    let columns =
        [Column::right("Requests"), Column::right("From–to (s)"), Column::left("Outcome")];
    let scenario = has_names.then(|| Column::left("Scenario"));
    let title = if failures.is_empty() { "Not sent" } else { "Failures" };
    let table = Table {
        id: "failures".to_owned(),
        caption: if has_names { "Requests that did not end ok".to_owned() } else { String::new() },
        columns: if failures.is_empty() {
            Vec::new()
        } else {
            scenario.into_iter().chain(columns).collect()
        },
        rows: failures,
        notes,
    };
    Some(section("failures", title, vec![Block::Table(table)]))
}

/// Number, time, and outcome with the words of the server.
fn failure(group: &FailureGroup, words_most: usize) -> [Cell; 3] {
    let status = group.status.map(|status| format!(" HTTP {status}")).unwrap_or_default();
    let cause = group.cause.map(|cause| format!(": {}", cause.text())).unwrap_or_default();
    let words = group
        .example
        .as_deref()
        .map_or_else(String::new, |words| format!(": “{}”", terminal_line(words, words_most)));
    let [first, last] = [group.first_ms, group.last_ms].map(|ms| number(ms / 1e3));
    [
        Cell::number(count(group.count), group.count as f64),
        Cell::text(format!("{first}–{last}")),
        Cell::text(format!("{}{status}{cause}{words}", group.outcome)),
    ]
}

/// Warnings alone, each with its remedy.
pub(super) fn warnings(warnings: &[Warning]) -> Section {
    let blocks = warnings.iter().map(|warning| {
        let text = warning.text.clone();
        frame::notice_of(warning, text, Vec::new())
    });
    section("warnings", "", blocks.collect())
}

/// Whether the numbers can be relied on: the same parts on every page.
pub(super) fn section_of(
    rows: &[Row<'_>],
    warnings: &[Warning],
    narrative: &Narrative,
    prompts: Option<Prompts>,
) -> Section {
    let alone = rows.iter().all(|row| row.level.is_none());
    let mut blocks = vec![behind(rows)];
    if !narrative.doubts.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.doubts)));
    }
    blocks.extend(reasons(warnings, rows, alone));
    let id = if alone { "checks-of-the-run" } else { "checks-of-the-runs" };
    let checks = checks(rows).map(|table| section(id, "Checks", vec![Block::Table(table)]));
    let parts = checks.into_iter().chain([
        section("cache-honesty", "Prefix cache", cache(rows, prompts)),
        section("client", "The client itself", client(rows)),
        section("endings", "How requests ended", outcomes(rows)),
    ]);
    Section { sections: parts.collect(), ..section("belief", "Validity", blocks) }
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
