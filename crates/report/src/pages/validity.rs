//! The validity of a page: the verdict with its reasons, the checks, what the prefix cache did, the
//! client, and how requests ended.

use std::fmt::Write;

use inferometer_analysis::set::Contaminated;
use inferometer_analysis::{
    Check, CheckState, FailureGroup, Metric, Summary, Verdict, Warning, metric,
};
use inferometer_model::outcome::Cause;
use inferometer_model::study::Prompts;

use super::cells::{missing, number_cell, quantity_cell};
use super::frame::{self, ended, notice, section, sentence, state_word};
use super::rows::Row;
use super::{Detail, charts};
use crate::document::{Block, Cell, Column, Columns, Section, Table, Text, plain};
use crate::escape::terminal_line;
use crate::fmt::{count, counted, list, number, percent};
use crate::narrative::Narrative;

/// Whether the numbers can be relied on: the same parts on every page.
pub(super) fn section_of(
    rows: &[Row<'_>],
    warnings: &[Warning],
    narrative: &Narrative,
    prompts: Option<Prompts>,
) -> Section {
    let alone = rows.iter().all(|row| row.level.is_none());
    let mut blocks = vec![data_behind(rows)];
    if !narrative.uncertainties.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.uncertainties)));
    }
    blocks.extend(reasons(warnings, rows, alone));
    let id = if alone { "checks-of-the-run" } else { "checks-of-the-runs" };
    let checks = checks(rows).map(|table| section(id, "Checks", vec![Block::Table(table)]));
    let mut outcomes: Vec<Block> = charts::outcomes(rows).map(charts::figure).into_iter().collect();
    outcomes.extend(failures(rows, Detail::Full).into_iter().flat_map(|section| section.blocks));
    let parts = checks.into_iter().chain([
        section("cache-honesty", "Prefix cache", cache(rows, prompts)),
        section("client", "The client itself", client(rows)),
        section("endings", "How requests ended", outcomes),
    ]);
    Section { sections: parts.collect(), ..section("belief", "Validity", blocks) }
}

/// The runs and requests behind the numbers.
fn data_behind(rows: &[Row<'_>]) -> Block {
    let runs: usize = rows.iter().map(|row| row.all_runs().count()).sum();
    let left_out: usize =
        rows.iter().filter(|row| row.level.is_some()).map(|row| row.left_out.len()).sum();
    let ok: u64 = rows.iter().map(|row| row.tally().ok).sum();
    let intervals = if rows.iter().all(|row| row.runs.len() <= 1) {
        "Each row is of one run: its intervals are of 95 % and come from that run alone, so they \
         know nothing of what changes between runs, such as a restart."
    } else {
        "Intervals are of 95 %, by Student's t between the runs of a row, and within the run where \
         there is only one."
    };
    let (requests, of_runs) = (counted(ok, "request"), counted(runs as u64, "run"));
    let invalid = match left_out {
        0 => String::new(),
        1 => " 1 run is invalid and in no number.".to_owned(),
        several => format!(" {several} runs are invalid and in no number."),
    };
    Block::Paragraph(plain(format!(
        "{requests} that ended ok, in {of_runs}, stand behind these tables.{invalid} {intervals}"
    )))
}

/// Runs by their verdict, in a sentence.
pub(super) fn runs_in_words(verdicts: &[Verdict]) -> String {
    let mut text = counted(verdicts.len() as u64, "run");
    for (verdict, words) in [
        (Verdict::Degraded, "with a reservation"),
        (Verdict::Invalid, "invalid and left out of every mean"),
    ] {
        let runs = verdicts.iter().filter(|found| **found == verdict).count();
        if 0 < runs {
            let _ = write!(text, ", {runs} {words}");
        }
    }
    sentence(&text)
}

/// Warnings alone, each with its remedy.
pub(super) fn warnings(warnings: &[Warning]) -> Section {
    let blocks =
        warnings.iter().map(|it| frame::notice_of(it, it.text.clone(), Vec::new())).collect();
    section("warnings", "", blocks)
}

/// Warnings about the whole, then those of single rows; each with what to do about it.
fn reasons(warnings: &[Warning], rows: &[Row<'_>], alone: bool) -> Vec<Block> {
    let mut blocks: Vec<Block> = warnings.iter().map(notice).collect();
    // A run that stands alone has reported its warnings already.
    if !alone {
        blocks.extend(row_warnings(rows));
    }
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(plain(no_reason(rows))));
    }
    blocks
}

/// The warnings of rows, once for each kind: once where all rows say the same; else each with its own
/// number, because the first is not the worst.
fn row_warnings(rows: &[Row<'_>]) -> Vec<Block> {
    // The worst warning of a kind, and its text at each row.
    let mut kinds: Vec<(&Warning, Vec<(&str, &str)>)> = Vec::new();
    for row in rows {
        for warning in row.all_runs().flat_map(|run| &run.warnings) {
            let text = (row.name.as_str(), warning.text.as_str());
            match kinds.iter_mut().find(|(worst, _)| worst.key == warning.key) {
                Some((worst, texts)) => {
                    if worst.severity < warning.severity {
                        *worst = warning;
                    }
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
                None => kinds.push((warning, vec![text])),
            }
        }
    }
    kinds.sort_by_key(|(worst, _)| std::cmp::Reverse(worst.severity));
    let block = |(worst, texts): (&Warning, Vec<(&str, &str)>)| {
        if texts.iter().all(|(_, text)| *text == worst.text) {
            let rows: Vec<String> = texts.iter().map(|(row, _)| (*row).to_owned()).collect();
            let text = format!("{} ({})", worst.text, list(&rows));
            return notice(&Warning { text, ..worst.clone() });
        }
        let own: Vec<Text> =
            texts.iter().map(|(row, text)| plain(ended(format!("{row}: {text}")))).collect();
        let head = format!("The same warning {} times, each with its own number:", own.len());
        frame::notice_of(worst, head, own)
    };
    kinds.into_iter().map(block).collect()
}

/// That nothing was found, and how far it was looked for.
pub(super) fn no_reason(rows: &[Row<'_>]) -> String {
    let mut keys: Vec<(&str, bool)> = Vec::new();
    for check in rows.iter().flat_map(Row::all_runs).flat_map(|run| &run.checks) {
        let was_made = check.state != CheckState::NotChecked;
        match keys.iter_mut().find(|(key, _)| *key == check.key) {
            Some((_, made)) => *made &= was_made,
            None => keys.push((&check.key, was_made)),
        }
    }
    let (all, left) = (keys.len(), keys.iter().filter(|(_, made)| !made).count());
    let several = 1 < rows.iter().flat_map(Row::all_runs).count();
    let somewhere = if several { " in at least one run" } else { "" };
    match left {
        0 => "Nothing was found that speaks against the numbers.".to_owned(),
        1 => format!("No check failed; 1 of {all} was not made{somewhere}."),
        _ => format!("No check failed; {left} of {all} were not made{somewhere}."),
    }
}

/// A check with its findings at the rows where it came out worst.
struct WorstCheck<'a> {
    check: &'a Check,
    findings: Vec<(String, &'a str)>,
}

/// Every check with the rows where it came out worst.
fn checks(rows: &[Row<'_>]) -> Option<Table> {
    let mut worst: Vec<WorstCheck<'_>> = Vec::new();
    for row in rows {
        for check in row.all_runs().flat_map(|run| &run.checks) {
            let finding = (row.name.clone(), check.finding.as_str());
            match worst.iter_mut().find(|known| known.check.key == check.key) {
                Some(known) if gravity(known.check.state) < gravity(check.state) => {
                    *known = WorstCheck { check, findings: vec![finding] };
                }
                Some(known) => {
                    let is_as_bad = known.check.state == check.state;
                    if is_as_bad && !known.findings.contains(&finding) {
                        known.findings.push(finding);
                    }
                }
                None => worst.push(WorstCheck { check, findings: vec![finding] }),
            }
        }
    }
    let state = |worst: &WorstCheck<'_>| Cell {
        text: state_word(worst.check.state).to_owned(),
        detail: worst.check.remedy.clone(),
        doubtful: matches!(worst.check.state, CheckState::Degraded | CheckState::Invalid),
        ..Cell::default()
    };
    let places = |worst: &WorstCheck<'_>| {
        let mut places: Vec<String> = worst.findings.iter().map(|(row, _)| row.clone()).collect();
        places.dedup();
        let text = match places.as_slice() {
            all if all.len() == rows.len() => "all rows".to_owned(),
            [first, second, others @ ..] if !others.is_empty() => {
                format!("{first}, {second} and {}", counted(others.len() as u64, "other"))
            }
            few => list(few),
        };
        Cell { detail: (2 < places.len()).then(|| list(&places)), ..Cell::text(text) }
    };
    let columns = Columns::new("Check", |it: &WorstCheck<'_>| Cell::text(it.check.title.clone()))
        .left("Came to", state)
        .left("Found", |worst| Cell::text(findings(worst)))
        .left("So at", places)
        .only_if(rows.len() != 1);
    let caption = "What was asked of the numbers before they are believed";
    (!worst.is_empty()).then(|| columns.table("checks", caption, worst))
}

/// Once where all rows found the same; else those that were found first, each with its row.
fn findings(worst: &WorstCheck<'_>) -> String {
    let WorstCheck { check, findings } = worst;
    if findings.iter().all(|(_, found)| *found == check.finding) {
        return check.finding.clone();
    }
    let shown = if gravity(check.state) < gravity(CheckState::Noted) { 1 } else { 3 };
    let first = findings.iter().take(shown).map(|(row, found)| format!("{row}: {found}"));
    let left = findings.len().saturating_sub(shown) as u64;
    let others = (0 < left).then(|| format!("{} like it", counted(left, "other")));
    first.chain(others).collect::<Vec<_>>().join("; ")
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
fn cache(rows: &[Row<'_>], prompts: Option<Prompts>) -> Vec<Block> {
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
    let share = |value: Option<f64>, reason: Option<String>| {
        number_cell(value, percent, reason.as_deref().unwrap_or("the server does not say"))
    };
    let answers = |row: &&Row<'_>| {
        let runs = || row.all_runs().map(|run| &run.workload.audit.cache);
        let found = row.scenario.and_then(|scenario| scenario.cached_share);
        let reason = runs().find_map(|cache| cache.reason.clone());
        share(found.or_else(|| mean(runs().filter_map(|cache| cache.share))), reason)
    };
    let counters = |row: &&Row<'_>| {
        let hits = row.all_runs().filter_map(|run| run.server.as_ref()?.prefix_hit_share);
        share(mean(hits), row.all_runs().find_map(|run| run.server_missing.clone()))
    };
    let name = |row: &&Row<'_>| {
        let reservation = row.contaminated.and_then(|_| row.reservation());
        let doubtful = reservation.is_some();
        Cell { doubtful, detail: reservation, ..Cell::text(row.name.clone()) }
    };
    let is_warm = rows.iter().any(|row| row.contaminated.is_some());
    let columns = Columns::new("Scenario", name)
        .right("By its answers", answers)
        .right("By its counters", counters)
        .right("TTFT mean (ms)", |row| quantity_cell(row, metric::TTFT.mean()))
        .right("TTFT p50 (ms)", |row| quantity_cell(row, metric::TTFT.p50()))
        .right("Prefill (PP) tok/s", |row| quantity_cell(row, metric::PP.quantity()))
        .right("PP of a cold scenario", |row| warm_cells(row, rows)[0].clone())
        .only_if(is_warm)
        .left("Same beginnings sent by", |row| warm_cells(row, rows)[1].clone())
        .only_if(is_warm);
    let caption = "Prompt tokens that the server took from its prefix cache";
    let table = columns.table("cache-evidence", caption, rows);
    vec![Block::Paragraph(plain(words)), Block::Table(table)]
}

/// What shows that prompts of this row were in the cache: a cold row, and who sent them before.
fn warm_cells(row: &Row<'_>, all: &[Row<'_>]) -> [Cell; 2] {
    const NOT_WARM: &str = "it was not found in the cache";
    let Some(found) = row.contaminated else { return [missing(NOT_WARM), missing(NOT_WARM)] };
    let name = |place: u32| {
        let found = all.iter().find(|other| other.suite_place == Some(place));
        found.map_or_else(String::new, |row| row.name.clone())
    };
    let cold = found.pp_cold.zip(found.cold).map_or_else(
        || missing("no cold scenario compares"),
        |(speed, place)| Cell {
            detail: Some(format!("of {}", name(place))),
            ..Cell::number(number(speed), speed)
        },
    );
    [cold, senders(found, name)]
}

/// Few are named; of many the first two with their number.
fn senders(found: &Contaminated, name: impl Fn(u32) -> String) -> Cell {
    let before = &found.sent_before;
    let is_all = before.len() as u64 == u64::from(found.row);
    match before.as_slice() {
        [] if found.suspected => missing(
            "no scenario before it sent the same beginnings: its speed alone makes it suspected",
        ),
        [] => missing(
            "no scenario before it sent the same beginnings: they were in the cache before the suite \
             began, or came there from elsewhere",
        ),
        [_, _, _, ..] if is_all => Cell::text("all before it"),
        [first, second, others @ ..] if !others.is_empty() => Cell::text(format!(
            "{}, {} and {}",
            name(*first),
            name(*second),
            counted(others.len() as u64, "other")
        )),
        few => Cell::text(list(&few.iter().map(|place| name(*place)).collect::<Vec<_>>())),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The instrument's view of itself; in a simulation there is none.
fn client(rows: &[Row<'_>]) -> Vec<Block> {
    type Value<'a> = &'a dyn Fn(&Summary) -> Option<f64>;
    const UNCALIBRATED: &str =
        "this client was not calibrated on this machine; see inferometer calibrate";
    if rows.iter().all(|row| row.drawn().is_none_or(|run| run.run.simulated.is_some())) {
        let text = "No client took part: the runs are simulated, and nothing was late.";
        return vec![Block::Paragraph(plain(text))];
    }
    let worst = |row: &Row<'_>, of: Value<'_>, text: fn(f64) -> String, reason: &str| {
        number_cell(row.all_runs().filter_map(of).max_by(f64::total_cmp), text, reason)
    };
    let lag = |row: &Row<'_>, metric: &'static Metric, reason| {
        worst(row, &|run| run.metrics.distribution(metric)?.p99, number, reason)
    };
    let columns = Columns::new("Scenario", |row: &&Row<'_>| Cell::text(row.name.clone()))
        .right("Send lag p99 (ms)", |row| lag(row, &metric::SEND_LAG, "nothing was sent"))
        .right("Client lag p99 (ms)", |row| lag(row, &metric::CLIENT_LAG, "nothing was read"))
        .right("Loop lag p99, at most (ms)", |row| {
            worst(row, &|run| run.client.loop_lag_ms.p99_at_most, number, "nothing was noted")
        })
        .right("Capacity used", |row| {
            worst(row, &|run| Some(run.client.capacity.as_ref()?.used), percent, UNCALIBRATED)
        })
        .right("Error of TTFT p99 (ms)", |row| {
            let error = |run: &Summary| Some(run.client.capacity.as_ref()?.error_ms?.ttft_p99);
            worst(row, &error, number, UNCALIBRATED)
        });
    let caption = "How late the client itself was, the worst run of each row";
    let table = Block::Table(columns.table("client-health", caption, rows));
    [table].into_iter().chain(charts::client_health(rows).map(charts::figure)).collect()
}

/// Requests that did not end ok, by outcome; `None` where all did.
pub(super) fn failures(rows: &[Row<'_>], detail: Detail) -> Option<Section> {
    let has_names = detail == Detail::Full;
    let mut failures: Vec<Vec<Cell>> = Vec::new();
    let mut notes = Vec::new();
    for row in rows {
        let name = || has_names.then(|| Cell::text(row.name.clone())).into_iter();
        for run in row.all_runs() {
            let own = run.failures.iter().filter(|group| group.cause != Some(Cause::TimeOver));
            failures.extend(own.map(|group| name().chain(failure(group)).collect()));
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
    let title = if failures.is_empty() { "Not sent" } else { "Failures" };
    let caption = if has_names { "Requests that did not end ok" } else { "" };
    let scenario = has_names.then(|| Column::left("Scenario"));
    let columns =
        [Column::right("Requests"), Column::right("From–to (s)"), Column::left("Outcome")];
    let columns = scenario.into_iter().chain(columns).filter(|_| !failures.is_empty()).collect();
    let table = Table { notes, ..Table::new("failures", caption, columns, failures) };
    Some(section("failures", title, vec![Block::Table(table)]))
}

/// Number, time, and outcome with the words of the server.
fn failure(group: &FailureGroup) -> [Cell; 3] {
    /// Enough for the sentence that says what to do.
    const WORDS_MOST: usize = 300;
    let status = group.status.map(|status| format!(" HTTP {status}")).unwrap_or_default();
    let cause = group.cause.map(|cause| format!(": {}", cause.text())).unwrap_or_default();
    let words = group.example.as_deref().map(|words| terminal_line(words, WORDS_MOST));
    let words = words.map(|words| format!(": “{words}”")).unwrap_or_default();
    let [first, last] = [group.first_ms, group.last_ms].map(|ms| number(ms / 1e3));
    [
        Cell::number(count(group.count), group.count as f64),
        Cell::text(format!("{first}–{last}")),
        Cell::text(format!("{}{status}{cause}{words}", group.outcome)),
    ]
}
