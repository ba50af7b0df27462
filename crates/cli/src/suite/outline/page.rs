//! The outline of a suite in words, and as a document.

use std::fmt::Write;

use inferometer_model::campaign::{Level, Prompts};
use inferometer_report::escape::terminal;
use inferometer_report::lines::hanging;
use inferometer_report::number::count;
use serde_json::{Value, json};

use super::step::Step;
use super::{Outline, Whole};
use crate::set;
use crate::suite::list::HASH_PREFIX;
use crate::sweep::in_words;

/// As wide as the names of scenarios, within reason.
const NAME_WIDTH_MAX: usize = 40;

pub(super) fn page(outline: &Outline<'_>, notes: &[String]) -> String {
    let suite = outline.suite;
    let mut text =
        format!("suite {}: {} (nothing was sent)\n", terminal(&suite.name), terminal(&suite.title));
    for (name, words) in facts(outline) {
        text += &hanging(&format!("{name:<10} "), 11, &words);
    }
    for note in notes {
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
    let target = campaign.conditions.first().map(|condition| set::name_of(&condition.spec));
    facts.push(("target", terminal(&target.unwrap_or_default())));
    facts.push((
        "prompts",
        match suite.prompts {
            Prompts::Fresh => "each scenario and level has its own",
            Prompts::Same => "the same in all scenarios: one may find another's in a prefix cache",
        }
        .to_owned(),
    ));
    let repetition = &campaign.repetition;
    if !repetition.cool_down.is_zero() {
        facts.push(("rest", format!("{:?} between two runs", repetition.cool_down)));
    }
    if let Some(command) = &repetition.restart {
        facts.push(("restart", terminal(command)));
    }
    if let Some(stop_at) = &repetition.stop_at {
        let share = stop_at.half_width * 100.0;
        facts.push(("stop", format!("early, once {} is known to ±{share} %", stop_at.quantity)));
    }
    facts.push(("seed", campaign.seed.to_string()));
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
    for step in outline.steps.iter().filter(|step| 0 < step.failing) {
        let _ = writeln!(
            text,
            "note: {} of the requests of `{}` would fail on this engine: are they too long for it?",
            count(step.failing),
            names.get(step.scenario).map_or("", String::as_str),
        );
    }
    text
}

fn total(outline: &Outline<'_>) -> String {
    let Whole { runs, requests, input_tokens, output_tokens, time, cost } = outline.whole();
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    let most = if outline.campaign.repetition.stop_at.is_some() { " at most" } else { "" };
    let amount = |number: Option<u64>, what: &str| {
        number.map_or_else(String::new, |number| format!(", {} {what}", count(number)))
    };
    let time = match time {
        Some(time) if outline.is_simulated => {
            format!("{} on the embedded engine (simulated)", in_words(time))
        }
        Some(time) => format!("{} and its drains", in_words(time)),
        None => "how long it takes depends on the server".to_owned(),
    };
    let cost = match (outline.price, cost) {
        (None, _) => String::new(),
        (Some(_), Some(cost)) => format!("; it would cost {cost:.2}"),
        (Some(_), None) => "; what it would cost depends on the server too".to_owned(),
    };
    format!(
        "{runs}{most}{}{}{}; {time}{cost}. Hash {}.",
        amount(requests, "requests"),
        amount(input_tokens, "tokens to read"),
        amount(output_tokens, "to write"),
        &outline.suite.hash[..HASH_PREFIX],
    )
}

pub(super) fn document(outline: &Outline<'_>) -> String {
    let Whole { runs, requests, input_tokens, output_tokens, time, cost } = outline.whole();
    let steps: Vec<Value> = outline.steps.iter().map(|step| row(outline, step)).collect();
    let time_from = match time {
        Some(_) if outline.is_simulated => Some("simulation"),
        Some(_) => Some("schedule"),
        None => None,
    };
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
        "cost": cost,
    });
    format!("{document:#}\n")
}

fn row(outline: &Outline<'_>, step: &Step) -> Value {
    json!({
        "scenario": outline.campaign.conditions.get(step.scenario).map(|it| &it.name),
        "level": step.level,
        "requests": step.requests,
        "input_tokens": step.input_tokens,
        "output_tokens": step.output_tokens,
        "time_s": step.time.map(|time| time.as_secs_f64()),
        "failing": step.failing,
    })
}
