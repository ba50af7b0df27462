//! The validity section of a page: the verdict with its reasons, the checks, the prefix cache, the client,
//! and the outcomes of requests.

use super::prelude::*;
use inferometer_analysis::{Check, FailureGroup};
use inferometer_model::outcome::Cause;
use inferometer_model::study::Prompts;

/// The same parts on every page.
pub(super) fn validity_section(
    rows: &[Row<'_>],
    warnings: &[Warning],
    narrative: &Narrative,
    prompts: Option<Prompts>,
) -> Section {
    let alone = rows.iter().all(|row| row.level.is_none());
    // The warnings of a single run are those of its row.
    let own = if alone { Vec::new() } else { row_warnings(rows) };
    let reasons: Vec<Block> = warnings.iter().map(frame::notice).chain(own).collect();
    let none = reasons.is_empty().then(|| Block::paragraph(no_reason(rows)));
    let checks = section(
        if alone { "checks-of-the-run" } else { "checks-of-the-runs" },
        "Checks",
        checks(rows),
    );
    let failures = failures(rows, Detail::Full).into_iter().flat_map(|section| section.blocks);
    let parts = checks.filled().into_iter().chain([
        section("cache-honesty", "Prefix cache", cache(rows, prompts)),
        section("client", "Client", client(rows)),
        section("endings", "How requests ended", charts::outcomes(rows))
            .with(finish_reasons(rows))
            .with(failures),
    ]);
    let validity = section("belief", "Validity", [data_behind(rows)])
        .with(frame::texts(&narrative.uncertainties))
        .with(reasons)
        .with(none);
    Section { sections: parts.collect(), ..validity }
}

/// The runs and requests behind the numbers.
fn data_behind(rows: &[Row<'_>]) -> Block {
    let runs: usize = rows.iter().map(|row| row.all_runs().count()).sum();
    let left_out: usize = rows.iter().map(|row| row.left_out.len()).sum();
    let ok: u64 = rows.iter().map(|row| row.tally().ok).sum();
    let is_of_one = rows.iter().all(|row| row.runs.len() <= 1);
    let intervals = text(if is_of_one { "intervals-within" } else { "intervals-between" });
    let (requests, of_runs) = (counted(ok, "request"), counted(runs as u64, "run"));
    let invalid = match left_out {
        0 => String::new(),
        1 => " 1 run is invalid and left out.".to_owned(),
        several => format!(" {several} runs are invalid and left out."),
    };
    Block::paragraph(fill("tables-based-on", &[&requests, &of_runs, &invalid, &intervals]))
}

/// Warnings alone, each with its remedy.
pub(super) fn warnings(warnings: &[Warning]) -> Section {
    let notice = |it: &Warning| frame::notice_of(it, it.text.clone(), Vec::new());
    section("warnings", "", warnings.iter().map(notice))
}

/// The warnings of rows, once for each kind; the text of each row where they differ.
fn row_warnings(rows: &[Row<'_>]) -> Vec<Block> {
    let found = rows.iter().flat_map(|row| {
        let warnings = row.all_runs().flat_map(|run| &run.warnings);
        warnings.map(|warning| (row.name.clone(), warning))
    });
    let mut kinds = grouped(found, |(_, warning)| warning.key.as_str());
    let severity = |(_, same): &(&str, Vec<(String, &Warning)>)| {
        std::cmp::Reverse(same.iter().map(|(_, warning)| warning.severity).max())
    };
    kinds.sort_by_key(severity);
    let block = |(_, same): (&str, Vec<(String, &Warning)>)| {
        // Of equally severe ones the first.
        let worst = same.iter().rev().map(|(_, it)| *it).max_by_key(|it| it.severity)?;
        let texts = distinct(same.iter().map(|(row, it)| (row, it.text.as_str())));
        if texts.iter().all(|(_, text)| *text == worst.text) {
            let rows: Vec<String> = texts.into_iter().map(|(row, _)| row.clone()).collect();
            let text = format!("{} ({})", worst.text, list(&rows));
            return Some(frame::notice(&Warning { text, ..worst.clone() }));
        }
        let head = format!("The same warning {} times, with different values:", texts.len());
        let own = texts.iter().map(|(row, text)| plain(frame::ended(format!("{row}: {text}"))));
        Some(frame::notice_of(worst, head, own.collect()))
    };
    kinds.into_iter().filter_map(block).collect()
}

/// A sentence that no check failed, with the number of checks that were not made.
pub(super) fn no_reason(rows: &[Row<'_>]) -> String {
    let checks = rows.iter().flat_map(Row::all_runs).flat_map(|run| &run.checks);
    let keys = grouped(checks, |check| check.key.as_str());
    let is_made = |check: &&Check| check.state != CheckState::NotChecked;
    let (all, left) = (keys.len(), keys.iter().filter(|(_, own)| !own.iter().all(is_made)).count());
    let several = 1 < rows.iter().flat_map(Row::all_runs).count();
    let somewhere = if several { " in at least one run" } else { "" };
    match left {
        0 => "No check found a problem.".to_owned(),
        1 => format!("No check failed; 1 of {all} was not made{somewhere}."),
        _ => format!("No check failed; {left} of {all} were not made{somewhere}."),
    }
}

/// A check in its worst state, with its findings at the rows that have this state.
type WorstCheck<'a> = (&'a Check, Vec<(String, &'a str)>);

/// Every check with the rows where its state is worst.
fn checks(rows: &[Row<'_>]) -> Option<Table> {
    let all = rows.iter().flat_map(|row| {
        let checks = row.all_runs().flat_map(|run| &run.checks);
        checks.map(|check| (row.name.clone(), check))
    });
    let worst = grouped(all, |(_, check)| check.key.as_str()).into_iter().filter_map(|(_, own)| {
        let gravest = own.iter().map(|(_, check)| gravity(check.state)).max()?;
        let same = own.into_iter().filter(|(_, check)| gravity(check.state) == gravest);
        let same: Vec<(String, &Check)> = same.collect();
        let findings = same.iter().map(|(row, check)| (row.clone(), check.finding.as_str()));
        Some((same[0].1, distinct(findings)))
    });
    let worst: Vec<WorstCheck<'_>> = worst.collect();
    let state = |(check, _): &WorstCheck<'_>| Cell {
        doubtful: matches!(check.state, CheckState::Degraded | CheckState::Invalid),
        ..Cell::text(frame::state_word(check.state)).detailed(check.remedy.clone())
    };
    let places = |(_, findings): &WorstCheck<'_>| {
        let mut names: Vec<String> = findings.iter().map(|(row, _)| row.clone()).collect();
        names.dedup();
        let text = match names.as_slice() {
            all if all.len() == rows.len() => "all rows".to_owned(),
            names => shortened(names),
        };
        Cell::text(text).detailed((2 < names.len()).then(|| list(&names)))
    };
    let columns = Columns::new("Check", |(it, _): &WorstCheck<'_>| Cell::text(it.title.clone()))
        .left("State", state)
        .left("Finding", |worst| Cell::text(findings(worst)))
        .left("Rows", places)
        .only_if(rows.len() != 1);
    (!worst.is_empty()).then(|| columns.table("checks", "Validity checks of the runs", worst))
}

/// Names in a cell: of more than two, the first two and the number of others.
fn shortened(names: &[String]) -> String {
    match names {
        [first, second, others @ ..] if !others.is_empty() => {
            format!("{first}, {second} and {}", counted(others.len() as u64, "other"))
        }
        few => list(few),
    }
}

/// The finding where all rows have the same one; else the first findings, each with its row.
fn findings((check, findings): &WorstCheck<'_>) -> String {
    if findings.iter().all(|(_, found)| *found == check.finding) {
        return check.finding.clone();
    }
    let shown = if gravity(check.state) < gravity(CheckState::Noted) { 1 } else { 3 };
    let first = findings.iter().take(shown).map(|(row, found)| format!("{row}: {found}"));
    let left = findings.len().saturating_sub(shown) as u64;
    let others = (0 < left).then(|| format!("{} like it", counted(left, "other")));
    first.chain(others).join("; ")
}

/// A check that was not made is worse than one that passed.
fn gravity(state: CheckState) -> usize {
    use CheckState::{Degraded, Invalid, NotChecked, Noted, Passed};
    [Passed, NotChecked, Noted, Degraded, Invalid].iter().position(|it| *it == state).unwrap_or(0)
}

/// The share of prompts from the prefix cache, with the figures that it affects.
fn cache(rows: &[Row<'_>], prompts: Option<Prompts>) -> [Block; 2] {
    let text = match prompts {
        Some(Prompts::Fresh) => text("prompts-fresh"),
        Some(Prompts::Same) => text("prompts-same"),
        None => "Prompts that are in the server's prefix cache cost less prefill.",
    };
    let share = |value: Option<f64>, reason: Option<String>| {
        number_cell(value, percent, reason.as_deref().unwrap_or("not reported by the server"))
    };
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let answers = move |row: &&Row<'_>| {
        let runs = || row.all_runs().map(|run| &run.workload.audit.cache);
        let found = row.scenario.and_then(|scenario| scenario.cached_share);
        let reason = runs().find_map(|cache| cache.reason.clone());
        share(found.or_else(|| mean(runs().filter_map(|cache| cache.share).collect())), reason)
    };
    let counters = move |row: &&Row<'_>| {
        let hits = row.all_runs().filter_map(|run| run.server.as_ref()?.prefix_hit_share);
        share(mean(hits.collect()), row.all_runs().find_map(|run| run.server_missing.clone()))
    };
    let name = |row: &&Row<'_>| {
        let reservation = row.contaminated.and_then(|_| row.reservation());
        let doubtful = reservation.is_some();
        Cell { doubtful, ..Cell::text(row.name.clone()).detailed(reservation) }
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
        .left("Same prefixes sent by", |row| warm_cells(row, rows)[1].clone())
        .only_if(is_warm);
    let caption = "Prompt tokens from the prefix cache";
    [Block::paragraph(text), columns.table("cache-evidence", caption, rows).into()]
}

/// The evidence for a warm cache: the speed of a cold row, and the rows that sent the prompts before.
fn warm_cells(row: &Row<'_>, all: &[Row<'_>]) -> [Cell; 2] {
    let Some(found) = row.contaminated else {
        return [(); 2].map(|()| missing("its prompts were not in the cache"));
    };
    let name = |place: u32| {
        let found = all.iter().find(|other| other.suite_place == Some(place));
        found.map_or_else(String::new, |row| row.name.clone())
    };
    let cold = found.pp_cold.zip(found.cold).map_or_else(
        || missing("there is no comparable cold scenario"),
        |(speed, place)| Cell::number(number(speed), speed).detailed(format!("of {}", name(place))),
    );
    [cold, senders(found, name)]
}

fn senders(found: &Contaminated, name: impl Fn(u32) -> String) -> Cell {
    let before = &found.sent_before;
    let is_all = before.len() as u64 == u64::from(found.row);
    match before.as_slice() {
        [] if found.suspected => missing(text("only-speed")),
        [] => missing(text("before-the-suite")),
        [_, _, _, ..] if is_all => Cell::text("all before it"),
        places => {
            Cell::text(shortened(&places.iter().map(|place| name(*place)).collect::<Vec<_>>()))
        }
    }
}

/// Lags and capacity of the client; a simulation has none.
fn client(rows: &[Row<'_>]) -> Vec<Block> {
    if rows.iter().all(|row| row.drawn().is_none_or(|run| run.run.simulated.is_some())) {
        return vec![Block::paragraph(
            "The runs are simulated, without a client that could be late.",
        )];
    }
    let worst = |get: fn(&Summary) -> Option<f64>, text: fn(f64) -> String, reason| {
        move |row: &&Row<'_>| {
            let found = row.all_runs().filter_map(get).max_by(f64::total_cmp);
            number_cell(found, text, reason)
        }
    };
    let mut columns = Columns::new("Scenario", |row: &&Row<'_>| Cell::text(row.name.clone()));
    for (title, get) in charts::LAGS {
        let cell = worst(get, number, "there are no values");
        columns = columns.right(format!("{title} (ms)"), cell);
    }
    let unknown = text("not-calibrated");
    let used = worst(|run| Some(run.client.capacity.as_ref()?.used), percent, unknown);
    let error =
        worst(|run| Some(run.client.capacity.as_ref()?.error_ms?.ttft_p99), number, unknown);
    let columns = columns.right("Capacity used", used).right("Error of TTFT p99 (ms)", error);
    let table = columns.table("client-health", "Client lag in the worst run of each row", rows);
    [table.into()].into_iter().chain(charts::client_health(rows).map(Block::from)).collect()
}

/// Requests that failed, by outcome; `None` where none did.
pub(super) fn failures(rows: &[Row<'_>], detail: Detail) -> Option<Section> {
    let has_names = detail == Detail::Full;
    let runs = || rows.iter().flat_map(|row| row.all_runs().map(move |run| (row, run)));
    let failures: Vec<(&Row<'_>, &FailureGroup)> = runs()
        .flat_map(|(row, run)| run.failures.iter().map(move |group| (row, group)))
        .filter(|(_, group)| group.cause != Some(Cause::TimeOver))
        .collect();
    let notes = runs().flat_map(|(_, run)| {
        let over = counted(run.time_over, "turn");
        let over = format!("{over} not sent because the run was over; they are no failures");
        let more = format!("{} others", count(run.failures_not_listed));
        let over = (0 < run.time_over).then_some(over);
        over.into_iter().chain((0 < run.failures_not_listed).then_some(more))
    });
    let notes: Vec<String> = notes.collect();
    if failures.is_empty() && (notes.is_empty() || has_names) {
        return None;
    }
    let title = if failures.is_empty() { "Not sent" } else { "Failures" };
    let caption = if has_names { "Requests that did not end ok" } else { "" };
    let is_empty = failures.is_empty();
    let columns = Columns::new("Scenario", |(row, _): &(&Row<'_>, _)| Cell::text(row.name.clone()))
        .only_if(has_names)
        .right("Requests", |(_, group): &(_, &FailureGroup)| Cell::count(group.count))
        .right("From–to (s)", |(_, group)| {
            let [first, last] = [group.first_ms, group.last_ms].map(|ms| number(ms / 1e3));
            Cell::text(format!("{first}–{last}"))
        })
        .left("Outcome", |(_, group)| Cell::text(outcome_words(group)));
    let mut table = columns.table("failures", caption, failures).noted(notes);
    if is_empty {
        table.columns.clear();
    }
    Some(section("failures", title, [table]))
}

/// Why the server ended its answers, where it says so.
fn finish_reasons(rows: &[Row<'_>]) -> Option<Block> {
    let has_rows = 1 < rows.len();
    let known = rows.iter().filter_map(|row| {
        let reasons = row.finish_reasons()?;
        Some(if has_rows { format!("{}: {reasons}", row.name) } else { reasons })
    });
    let known = known.try_join("; ")?;
    Some(Block::paragraph(format!("Finish reasons of the answers: {known}.")))
}

/// The outcome with the message of the server.
fn outcome_words(group: &FailureGroup) -> String {
    /// Enough for the sentence that says what to do.
    const MESSAGE_MAX: usize = 300;
    let status = group.status.map(|status| format!(" HTTP {status}")).unwrap_or_default();
    let cause = group.cause.map(|cause| format!(": {}", cause.text())).unwrap_or_default();
    let message = group.example.as_deref().map(|text| terminal_line(text, MESSAGE_MAX));
    let message = message.map(|text| format!(": “{text}”")).unwrap_or_default();
    format!("{}{status}{cause}{message}", group.outcome)
}
