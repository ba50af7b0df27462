//! The outline of a matrix in words, and as a document.

use std::fmt::Write;

use inferometer_model::campaign::{Cell, Level};
use inferometer_model::deployment::DeploymentHow;
use inferometer_model::spec::TargetSpec;
use inferometer_report::escape::terminal;
use inferometer_report::fmt::count;
use inferometer_report::lines::hanging;
use inferometer_target::deploy::secret;
use serde_json::{Value, json};

use super::estimate::{Estimate, KnownBy};
use super::{Foresight, Outline, Whole};
use crate::matrix::sameness::needed;
use crate::sweep::in_words;

/// As wide as the names of cells, within reason.
const NAME_WIDTH_MAX: usize = 56;
const NOTHING: &str = "–";

pub(super) fn page(outline: &Outline<'_>) -> String {
    let matrix = outline.matrix;
    let (name, title) = (terminal(&matrix.name), terminal(&matrix.title));
    let mut text = format!("matrix {name}: {title} (nothing was put up)\n");
    for (name, words) in facts(outline) {
        text += &hanging(&format!("{name:<10} "), 11, &words);
    }
    let (notes, warnings) = (&outline.plan.notes, &outline.plan.warnings);
    for (head, lines) in [("note", notes), ("warning", warnings)] {
        for line in lines {
            text += &hanging(&format!("{head:<10} "), 11, &terminal(line));
        }
    }
    text.push('\n');
    text += &table(outline);
    text.push('\n');
    text += &hanging("", 0, &total(outline));
    text
}

fn facts(outline: &Outline<'_>) -> Vec<(&'static str, String)> {
    let matrix = outline.matrix;
    let levels: Vec<String> = matrix.levels.iter().map(Level::to_string).collect();
    let runs = outline.campaign().repetition.runs;
    let mut facts = vec![
        ("servers", terminal(&servers(outline))),
        ("loads", format!("{}, {runs} time{} each", levels.join(", "), plural(runs.get().into()))),
    ];
    if 1 < matrix.lanes.get() {
        facts.push(("lanes", format!("{} presets are measured at once", matrix.lanes)));
    }
    let rest = outline.campaign().repetition.cool_down;
    if !rest.is_zero() {
        facts.push(("rest", format!("{rest:?} between two servers")));
    }
    facts.push(("seed", outline.campaign().seed.to_string()));
    facts
}

/// How they are put up, by the first of them.
fn servers(outline: &Outline<'_>) -> String {
    let spec = outline.campaign().conditions.first().map(|condition| &condition.spec);
    let Some(TargetSpec::Deployed(deployment)) = spec.map(|spec| &spec.target) else {
        return "the embedded engine".to_owned();
    };
    let said = |words: &[String]| secret::hidden(words).join(" ");
    let how = match &deployment.how {
        DeploymentHow::Process(process) => said(&process.command),
        DeploymentHow::Container(container) => {
            format!("{} {}", container.image, said(&container.arguments))
        }
        DeploymentHow::Commands(commands) => said(std::slice::from_ref(&commands.up)),
    };
    format!("{}, the first by: {how}", deployment.how.kind())
}

fn table(outline: &Outline<'_>) -> String {
    let names: Vec<String> =
        outline.campaign().conditions.iter().map(|condition| terminal(&condition.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let width = width.clamp("cell".len(), NAME_WIDTH_MAX);
    let money = if outline.has_prices() { format!(" {:>9}", "cost") } else { String::new() };
    let cells = &outline.matrix.cells;
    let is_spread = cells.iter().any(|cell| cell.tp.is_some());
    let spread = |tp: &str, pp: &str| {
        if is_spread { format!(" {tp:>3} {pp:>3}") } else { String::new() }
    };
    let mut text = format!(
        "{:<width$}{} {:>9} {:>11}{money}\n",
        "cell",
        spread("tp", "pp"),
        "requests",
        "time"
    );
    for (place, ((name, cell), estimate)) in
        names.iter().zip(cells).zip(&outline.estimates).enumerate()
    {
        let number =
            |number: Option<u32>| number.map_or_else(|| NOTHING.to_owned(), |it| it.to_string());
        let _ = write!(text, "{name:<width$}{} ", spread(&number(cell.tp), &number(cell.pp)));
        text += &amounts(outline, place, cell, estimate);
        text.push('\n');
    }
    text
}

/// Small amounts keep two digits that say something.
fn money(amount: f64) -> String {
    let (mut decimals, mut scaled) = (2, amount * 10.0);
    while 0.0 < scaled && scaled < 1.0 && decimals < MONEY_DECIMALS_MAX {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{amount:.decimals$}")
}

const MONEY_DECIMALS_MAX: usize = 8;

fn amounts(outline: &Outline<'_>, place: usize, cell: &Cell, estimate: &Estimate) -> String {
    if estimate.known_by == KnownBy::Foreseen {
        let reason = estimate.reason.first().map_or("", String::as_str);
        return format!("cannot be: {}", terminal(reason.trim_end_matches(':')));
    }
    let requests = estimate.requests.map_or_else(|| NOTHING.to_owned(), count);
    let time = estimate.time.map_or_else(|| NOTHING.to_owned(), in_words);
    let mut text = format!("{requests:>9} {time:>11}");
    if outline.has_prices() {
        let cost = outline.cost(cell, estimate).map(money);
        let _ = write!(text, " {:>9}", cost.unwrap_or_else(|| NOTHING.to_owned()));
    }
    if 0 < estimate.failing {
        let _ = write!(text, "  {} of them would fail", count(estimate.failing));
        let spec = outline.campaign().conditions.get(place).map(|condition| &condition.spec);
        if let (Some(context), Some(needed)) = (cell.context, spec.and_then(needed))
            && context < needed
        {
            let _ = write!(text, ": a prompt and its answer need {} tokens", count(needed.into()));
        }
    }
    text
}

pub(super) fn total(outline: &Outline<'_>) -> String {
    let Whole { runs, requests, time, cost } = outline.whole();
    let cells = outline.matrix.cells.len();
    let impossible = outline.plan.foreseen.len();
    let fit = match impossible {
        0 => String::new(),
        some => format!(" ({some} of them cannot be put up, which is a result too)"),
    };
    let requests =
        requests.map_or_else(String::new, |requests| format!(", {} requests", count(requests)));
    let time = match time {
        Some(time) if outline.is_ours() => {
            format!("{} of the servers' time, simulated", in_words(time))
        }
        None if outline.foresight == Foresight::LoadAlone && outline.is_ours() => {
            "in virtual time, for which nobody waits".to_owned()
        }
        Some(time) => format!("{} of load, and the time to start and stop servers", in_words(time)),
        None => "how long it takes depends on the servers".to_owned(),
    };
    let currency = outline.matrix.currency.as_deref().unwrap_or_default();
    let cost = match cost {
        Some(cost) if outline.has_prices() => {
            format!("; it would cost {} {}", money(cost), terminal(currency)).trim_end().to_owned()
                + ", without the time in which servers start"
        }
        None if outline.has_prices() && outline.foresight == Foresight::LoadAlone => {
            "; what real servers would cost says --dry-run".to_owned()
        }
        None if outline.has_prices() => "; what it would cost is not known".to_owned(),
        Some(_) | None => String::new(),
    };
    format!(
        "{cells} cell{}{fit}, {runs} run{}{requests}; {time}{cost}.",
        plural(cells as u64),
        plural(runs)
    )
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

pub(super) fn document(outline: &Outline<'_>) -> String {
    let Whole { runs, requests, time, cost } = outline.whole();
    let names = outline.campaign().conditions.iter().map(|condition| &condition.name);
    let cells = names.zip(&outline.matrix.cells).zip(&outline.estimates);
    let cells: Vec<Value> = cells
        .map(|((name, cell), estimate)| {
            json!({
                "name": name,
                "cell": cell,
                "requests": estimate.requests,
                "time_s": estimate.time.map(|time| time.as_secs_f64()),
                "cost": outline.cost(cell, estimate),
                "failing": estimate.failing,
                "simulated": estimate.known_by == KnownBy::Simulation,
                "cannot_be": (estimate.known_by == KnownBy::Foreseen).then_some(&estimate.reason),
            })
        })
        .collect();
    let document = json!({
        "schema": "inferometer.matrix-outline/1",
        "dry_run": true,
        "campaign": outline.campaign(),
        "cells": cells,
        "runs": runs,
        "requests": requests,
        "time_s": time.map(|time| time.as_secs_f64()),
        "cost": cost.filter(|_| outline.has_prices()),
        "currency": outline.matrix.currency,
        "notes": outline.plan.notes,
        "warnings": outline.plan.warnings,
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::money;

    #[test]
    fn small_amounts_are_not_nothing() {
        assert_eq!([0.0, 2.5, 0.04, 0.000_42].map(money), ["0.00", "2.50", "0.040", "0.00042"]);
    }
}
