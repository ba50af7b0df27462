//! What became of the servers: how long they took to generate, and whether they are gone.

use std::time::Duration;

use inferometer_model::campaign::DeploymentRecord;
use inferometer_model::deployment::{Departure, DepartureEnding};

use super::view::View;
use crate::document::{Block, Cell, Column, Mood, Section, Table, plain};
use crate::escape::terminal_line;
use crate::number::{count, figure as written};
use crate::pages::cells::missing;
use crate::pages::frame;
use crate::pages::words::counted;

/// Troubles that are told one by one.
const TROUBLES_MAX: usize = 20;
/// Of more, those that went as they should are left out first.
const ROWS_MAX: usize = 100;

/// `None` where nothing was put up.
pub(super) fn section(view: View<'_>) -> Option<Section> {
    let records = &view.matrix.deployments;
    if records.iter().all(|record| record.facts.is_none() && record.departure.is_none()) {
        return None;
    }
    let mut blocks = vec![Block::Paragraph(plain(words(records)))];
    blocks.extend(troubles(view, records));
    blocks.push(Block::Details {
        summary: format!("The deployments one by one ({})", records.len()),
        blocks: vec![Block::Table(table(view, records))],
    });
    Some(frame::section("deployments", "Deployments", blocks))
}

fn words(records: &[DeploymentRecord]) -> String {
    let mut ready: Vec<f64> = records
        .iter()
        .filter_map(|record| Some(record.facts.as_ref()?.ready_after.as_secs_f64()))
        .collect();
    ready.sort_by(f64::total_cmp);
    let gone = records.iter().filter_map(|record| record.departure.as_ref());
    let clean = gone.clone().filter(|departure| is_clean(departure)).count();
    let all = gone.clone().count();
    let memory = |departure: &Departure| departure.gpu_memory.is_some() && is_clean(departure);
    let memory = if 0 < all && gone.clone().all(memory) { ", GPU memory free again" } else { "" };
    let time = match (ready.first(), ready.get(ready.len() / 2), ready.last()) {
        (Some(first), Some(middle), Some(last)) => format!(
            " The first token came {} to {} s after the start (in the middle {} s).",
            written(Some(*first)),
            written(Some(*last)),
            written(Some(*middle))
        ),
        _ => " None of them generated a token.".to_owned(),
    };
    format!(
        "{} put up.{time} {clean} of {all} went without a trace: told to end, port closed, no process left{memory}.",
        counted(records.len() as u64, "server")
    )
}

fn is_clean(departure: &Departure) -> bool {
    departure.ending == DepartureEnding::Told
        && departure.port_closed
        && departure.left.is_empty()
        && departure.troubles.is_empty()
}

/// What a server left behind is in the way of the next.
fn troubles(view: View<'_>, records: &[DeploymentRecord]) -> Option<Block> {
    let told = |record: &DeploymentRecord| {
        let departure = record.departure.as_ref()?;
        let left: Vec<String> = departure
            .left
            .iter()
            .take(4)
            .map(|(pid, name)| format!("{} ({pid}) is still there", terminal_line(name, 40)))
            .collect();
        let port = (!departure.port_closed).then(|| "its port is still open".to_owned());
        let others = departure.troubles.iter().take(4).map(|words| terminal_line(words, 200));
        let words: Vec<String> = left.into_iter().chain(port).chain(others).collect();
        (!words.is_empty()).then(|| plain(format!("{}: {}.", name(view, record), words.join("; "))))
    };
    let mut points: Vec<_> = records.iter().filter_map(told).collect();
    let all = points.len();
    points.truncate(TROUBLES_MAX);
    (0 < all).then(|| Block::Notice {
        mood: Mood::Doubt,
        text: plain(format!(
            "{} left something behind, which may have disturbed what was measured after.",
            counted(all as u64, "server")
        )),
        points,
        remedy: Some(plain(
            "End what is left, give servers more time to stop, and measure the cells after them again \
             with --only.",
        )),
    })
}

fn name(view: View<'_>, record: &DeploymentRecord) -> String {
    let place = usize::try_from(record.condition).unwrap_or(usize::MAX);
    let condition = view.set.conditions.get(place);
    let name = condition.map_or_else(|| format!("cell {place}"), |one| one.name.clone());
    terminal_line(&name, 120)
}

fn table(view: View<'_>, records: &[DeploymentRecord]) -> Table {
    let mut columns = vec![Column::left("Cell")];
    columns.extend(
        ["Repetition", "First token after (s)", "Started before it", "Idle after (s)"]
            .map(Column::right),
    );
    columns.push(Column::left("How it went"));
    columns.push(Column::right("Gone after (s)"));
    columns.push(Column::left("Left behind"));
    columns.push(Column::right("GPU memory kept (MiB)"));
    let is_plain = |record: &DeploymentRecord| {
        record.facts.is_some() && record.departure.as_ref().is_some_and(is_clean)
    };
    let mut shown: Vec<&DeploymentRecord> = records.iter().collect();
    // Stable: otherwise they stay in the order in which they were put up.
    shown.sort_by_key(|record| is_plain(record));
    let more = shown.len().saturating_sub(ROWS_MAX);
    if 0 < more {
        shown.truncate(ROWS_MAX);
    } else {
        shown = records.iter().collect();
    }
    let note = format!(
        "{} more that went as they should are in the summary of the set.",
        count(more as u64)
    );
    Table {
        id: "deployments-table".to_owned(),
        caption: String::new(),
        columns,
        rows: shown.into_iter().map(|record| row(view, record)).collect(),
        notes: (0 < more).then(|| plain(note)).into_iter().collect(),
    }
}

fn row(view: View<'_>, record: &DeploymentRecord) -> Vec<Cell> {
    const NEVER: &str = "it never generated a token";
    let facts = record.facts.as_ref();
    let departure = record.departure.as_ref();
    let seconds = |known: Option<Duration>, reason: &str| match known {
        Some(time) => Cell::number(written(Some(time.as_secs_f64())), time.as_secs_f64()),
        None => missing(reason),
    };
    let ending = departure.map(|departure| match departure.ending {
        DepartureEnding::Before => "before it was told",
        DepartureEnding::Told => "when it was told",
        DepartureEnding::Killed => "killed",
    });
    let gone = "nobody saw it go";
    vec![
        Cell::text(name(view, record)),
        Cell::number((record.repetition + 1).to_string(), f64::from(record.repetition)),
        seconds(facts.map(|facts| facts.ready_after), NEVER),
        facts.map_or_else(
            || missing(NEVER),
            |facts| Cell::number(facts.restarts.to_string(), f64::from(facts.restarts)),
        ),
        record.drained_after_s.map_or_else(
            || missing("the server does not say when it is idle"),
            |time| Cell::number(written(Some(time)), time),
        ),
        ending.map_or_else(|| missing(gone), Cell::text),
        seconds(departure.map(|departure| departure.took), gone),
        departure.map_or_else(|| missing(gone), left),
        departure.and_then(|departure| departure.gpu_memory).map_or_else(
            || missing("no tool tells"),
            |(before, after)| {
                let kept = after.saturating_sub(before) as f64 / 1_048_576.0;
                Cell::number(written(Some(kept)), kept)
            },
        ),
    ]
}

fn left(departure: &Departure) -> Cell {
    match (departure.left.len(), departure.port_closed) {
        (0, true) => Cell::text("nothing"),
        (0, false) => Cell::text("an open port"),
        (some, _) => Cell::text(counted(some as u64, "process").replace("processs", "processes")),
    }
}
