//! The outline of a suite in words, and as a document.

use std::fmt::Write;

use inferometer_model::campaign::{Level, Prompts};
use inferometer_report::escape::terminal;
use inferometer_report::fmt::count;
use inferometer_report::lines::hanging;
use inferometer_study::play::server_name;
use serde_json::{Map, Value, json};

use super::step::{KnownBy, Step};
use super::{Outline, Whole};
use crate::suite::list::HASH_PREFIX;
use crate::suite::price::{Cost, Part};
use crate::sweep::{between_runs, in_words};

/// As wide as the names of scenarios, within reason.
const NAME_WIDTH_MAX: usize = 40;

pub(super) fn page(outline: &Outline<'_>) -> String {
    let suite = outline.suite;
    let mut text =
        format!("suite {}: {} (nothing was sent)\n", terminal(&suite.name), terminal(&suite.title));
    for (name, words) in facts(outline) {
        text += &hanging(&format!("{name:<10} "), 11, &words);
    }
    for note in outline.notes {
        text += &hanging(&format!("{:<10} ", "note"), 11, &terminal(note));
    }
    text.push('\n');
    text += &table(outline);
    text.push('\n');
    text += &hanging("", 0, &total(outline));
    text
}

fn facts(outline: &Outline<'_>) -> Vec<(&'static str, String)> {
    let (campaign, suite) = (outline.campaign, outline.suite);
    let mut facts = vec![("hash", suite.hash.clone())];
    if !suite.changes.is_empty() {
        let changes = suite.changes.join(", ");
        facts.push(("changes", terminal(&format!("{changes} (not the suite as it is)"))));
    }
    let target = campaign.conditions.first().map(|condition| server_name(&condition.spec));
    facts.push(("target", terminal(&target.unwrap_or_default())));
    facts.push((
        "prompts",
        match suite.prompts {
            Prompts::Fresh => "each scenario and level has its own",
            Prompts::Same => "the same in all scenarios: one may find another's in a prefix cache",
        }
        .to_owned(),
    ));
    facts.extend(between_runs(campaign));
    facts
}

fn table(outline: &Outline<'_>) -> String {
    let names: Vec<String> =
        outline.campaign.conditions.iter().map(|condition| terminal(&condition.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let width = width.clamp("scenario".len(), NAME_WIDTH_MAX);
    let mut text = format!(
        "{:<width$} {:>13} {:>5} {:>9} {:>12} {:>12} {:>11}\n",
        "scenario", "level", "runs", "requests", "tokens in", "tokens out", "time"
    );
    for step in &outline.steps {
        let Step { scenario, level, requests, input_tokens, output_tokens, time, .. } = step;
        let number = |number: &Option<u64>| number.map_or_else(|| "–".to_owned(), count);
        let _ = writeln!(
            text,
            "{:<width$} {:>13} {:>5} {:>9} {:>12} {:>12} {:>11}",
            names.get(*scenario).map_or("", String::as_str),
            if *level == Level::AsAsked { String::new() } else { level.to_string() },
            outline.campaign.repetition.runs,
            number(requests),
            number(input_tokens),
            number(output_tokens),
            time.map_or_else(|| "–".to_owned(), in_words),
        );
    }
    if outline.campaign.repetition.runs.get() != 1 {
        text.push_str("Requests, tokens and time are per run.\n");
    }
    for step in &outline.steps {
        let name = names.get(step.scenario).map_or("", String::as_str);
        for remark in remarks(step, name) {
            text += &hanging("note: ", 6, &remark);
        }
    }
    text
}

fn remarks(step: &Step, name: &str) -> Vec<String> {
    let place = if step.level == Level::AsAsked {
        format!("`{name}`")
    } else {
        format!("`{name}`, {}", step.level)
    };
    let mut remarks = Vec::new();
    if 0 < step.failing {
        let failing = count(step.failing);
        remarks.push(format!(
            "{failing} of the requests of {place} would fail on this engine: are they too long for \
             it?"
        ));
    }
    if step.known_by == KnownBy::TooLong {
        remarks.push(format!("{place}: not simulated: too long; its counts are those of the plan"));
    }
    remarks
}

fn total(outline: &Outline<'_>) -> String {
    let Whole { runs, requests, input_tokens, output_tokens, time, cost } = outline.whole();
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    let most = if outline.campaign.repetition.stop_at.is_some() { " at most" } else { "" };
    let amount = |number: Option<u64>, what: &str| {
        number.map_or_else(String::new, |number| format!(", {} {what}", count(number)))
    };
    let time = match time {
        Some(time) if outline.is_simulated() => {
            format!("{} on the embedded engine (simulated)", in_words(time))
        }
        Some(time) => format!("{} and its drains", in_words(time)),
        None if outline.is_ours() => "how long it takes is not known without playing it".to_owned(),
        None => "how long it takes depends on the server".to_owned(),
    };
    format!(
        "{runs}{most}{}{}{}; {time}{}. Hash {}.",
        amount(requests, "requests"),
        amount(input_tokens, "tokens to read"),
        amount(output_tokens, "to write"),
        cost.map_or_else(String::new, |cost| price_of(&cost)),
        &outline.suite.hash[..HASH_PREFIX],
    )
}

fn price_of(cost: &Cost) -> String {
    match (cost.whole(), cost.tokens()) {
        (Some(whole), _) => format!("; it would cost {whole:.2}"),
        (None, Some(tokens)) => {
            format!("; its tokens would cost {tokens:.2}, and what its time costs is not known")
        }
        (None, None) => "; what it would cost is not known either".to_owned(),
    }
}

pub(super) fn document(outline: &Outline<'_>) -> String {
    let Whole { runs, requests, input_tokens, output_tokens, time, cost } = outline.whole();
    let steps: Vec<Value> = outline.steps.iter().map(|step| row(outline, step)).collect();
    let time_from = match time {
        Some(_) if outline.is_simulated() => Some("simulation"),
        Some(_) => Some("schedule"),
        None => None,
    };
    let parts = cost.as_ref().map(|cost| {
        let part = |part: &Part| (part.of.key().to_owned(), json!(part.amount));
        cost.0.iter().map(part).collect::<Map<String, Value>>()
    });
    let document = json!({
        "schema": "inferometer.suite-outline/1",
        "dry_run": true,
        "campaign": outline.campaign,
        "levels": steps,
        "runs": runs,
        "requests": requests,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "time_s": time.map(|time| time.as_secs_f64()),
        "time_from": time_from,
        "cost": cost.and_then(|cost| cost.whole()),
        "cost_parts": parts,
        "notes": outline.notes,
    });
    format!("{document:#}\n")
}

/// Its amounts are those of one run.
fn row(outline: &Outline<'_>, step: &Step) -> Value {
    json!({
        "scenario": outline.campaign.conditions.get(step.scenario).map(|it| &it.name),
        "level": step.level,
        "runs": outline.campaign.repetition.runs,
        "requests": step.requests,
        "input_tokens": step.input_tokens,
        "output_tokens": step.output_tokens,
        "time_s": step.time.map(|time| time.as_secs_f64()),
        "failing": step.failing,
        "simulated": step.known_by == KnownBy::Simulation,
        "too_long": step.known_by == KnownBy::TooLong,
    })
}
