//! What speaks against comparing two sides: each objection says why, what differs, and what to do.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::Side;
use super::hardware::hardware;
use super::level::{Group, level_of};
use super::suites;
use crate::judge::Verdict;
use crate::run::WorkloadFacts;
use crate::summary::Summary;
use crate::tokens::Tokens;

/// How much an objection weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Worth knowing; it may be the very question.
    Note,
    /// The comparison holds with a reservation.
    Warning,
    /// Some quantities are not compared.
    Withholds,
    /// Nothing is compared unless it is forced.
    Forbids,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    pub key: String,
    pub weight: Weight,
    /// The side that differs from the base, or that has the trouble.
    pub side: String,
    pub text: String,
    pub remedy: String,
}

/// Keys of objections that withhold quantities.
pub(super) const OUTPUT_COUNTS: &str = "output_token_source";
pub(super) const INPUT_COUNTS: &str = "input_token_source";
pub(super) const TOKENIZER: &str = "tokenizer";
pub(super) const PROMISES: &str = "promises";

/// All that speaks against these sides, the gravest first. Of equal weight: in order of the sides.
pub(super) fn objections(sides: &[Side], groups: &[Group<'_, Summary>]) -> Vec<Objection> {
    let mut found: Vec<Objection> = sides.iter().flat_map(of_side).collect();
    found.extend(run_twice(sides));
    found.extend(sides.iter().flat_map(|side| failed_rows(side, sides)));
    found.extend(suites::differences(sides, groups));
    for group in groups {
        let [base, others @ ..] = group.runs.as_slice() else { continue };
        for (runs, side) in others.iter().zip(&sides[1..]) {
            for mut objection in between(base, runs, side) {
                if let Some(row) = group.scenario {
                    objection.text = format!("{} (first at {row})", objection.text);
                }
                let is_same =
                    |known: &&Objection| known.key == objection.key && known.side == objection.side;
                if found.iter().find(is_same).is_none() {
                    found.push(objection);
                }
            }
        }
    }
    found.sort_by_key(|objection| std::cmp::Reverse(objection.weight));
    found
}

pub(super) fn objection(
    key: &str,
    weight: Weight,
    side: &Side,
    text: impl Into<String>,
    remedy: &str,
) -> Objection {
    Objection {
        key: key.to_owned(),
        weight,
        side: side.name.clone(),
        text: text.into(),
        remedy: remedy.to_owned(),
    }
}

/// Troubles of a side by itself.
fn of_side(side: &Side) -> Vec<Objection> {
    let count = |is: fn(&Summary) -> bool| side.runs.iter().filter(|run| is(run)).count();
    let all = side.runs.len();
    let troubles = [
        (
            "invalid_runs",
            count(|run| run.verdict == Verdict::Invalid),
            "are invalid and left out",
            "look at their warnings with `inferometer verify RUN --format page`, and run again",
        ),
        (
            "degraded_runs",
            count(|run| run.verdict == Verdict::Degraded),
            "are degraded: their numbers hold with a reservation",
            "look at their warnings with `inferometer verify RUN --format page`",
        ),
        (
            "partial_runs",
            count(|run| run.run.partial && run.verdict != Verdict::Invalid),
            "ended before their plan did",
            "run again to the end, so that both sides had the same work",
        ),
    ];
    let mut found = Vec::new();
    for (key, runs, what, remedy) in troubles {
        if 0 < runs {
            let text = format!("{runs} of {all} runs of {} {what}", side.name);
            found.push(objection(key, Weight::Warning, side, text, remedy));
        }
    }
    found
}

/// A cell that fitted before and fails now is a change, and no figure says so.
fn failed_rows(side: &Side, sides: &[Side]) -> Vec<Objection> {
    let failed = side.rows.iter().flat_map(|rows| &rows.failed);
    let is_elsewhere = |(row, _): &&(String, String)| {
        let others = sides.iter().filter(|other| other.name != side.name);
        others.flat_map(|other| &other.rows).any(|rows| rows.of_runs.contains(row))
    };
    let (lost, nowhere): (Vec<_>, Vec<_>) = failed.partition(is_elsewhere);
    let told = |key: &str, weight, rows: &[&(String, String)], (which, most): (&str, usize)| {
        let (first, _) = rows.split_at(most.min(rows.len()));
        let mut names: Vec<String> =
            first.iter().map(|(row, why)| format!("{row} ({why})")).collect();
        if first.len() < rows.len() {
            names.push(format!("and {} more", rows.len() - first.len()));
        }
        let count =
            if rows.len() == 1 { "1 row".to_owned() } else { format!("{} rows", rows.len()) };
        let (name, names) = (&side.name, names.join(", "));
        let text = format!("{count} of {name} came to nothing, {which}: {names}");
        let remedy =
            format!("its report says why, and what to do: inferometer report {}", side.source);
        (!rows.is_empty()).then(|| objection(key, weight, side, text, &remedy))
    };
    let lost = told("failed_rows", Weight::Warning, &lost, ("but not everywhere", 6));
    let nowhere = told("rows_of_nobody", Weight::Note, &nowhere, ("as everywhere", 1));
    lost.into_iter().chain(nowhere).collect()
}

fn run_twice(sides: &[Side]) -> Option<Objection> {
    let mut seen: Vec<(&str, &Side)> = Vec::new();
    for side in sides {
        for run in &side.runs {
            let id = run.run.id.as_str();
            // The same folder name in two stores is not the same run.
            let is_same = |(other, of): &&(&str, &Side)| {
                *other == id && of.runs.iter().any(|known| known == run)
            };
            if let Some((_, first)) = seen.iter().find(is_same) {
                let text = format!("run {id} is in {} and in {}", first.name, side.name);
                let remedy = "name each run once: a run says nothing about itself";
                return Some(objection("same_run", Weight::Warning, side, text, remedy));
            }
        }
        seen.extend(side.runs.iter().map(|run| (run.run.id.as_str(), side)));
    }
    None
}

/// Differences at one level. Any run that differs from the base's first speaks for its side.
fn between(base: &[&Summary], runs: &[&Summary], side: &Side) -> Vec<Objection> {
    let Some(first) = base.first() else { return Vec::new() };
    let of = |run: &&Summary| {
        let differences = [stimulus, counts, facts, hardware];
        differences.map(|between| between(first, side, run)).concat()
    };
    runs.iter().flat_map(of).collect()
}

/// What was asked, and when.
fn stimulus(first: &Summary, side: &Side, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut forbid = |key: &str, text: String, remedy: &str| {
        found.push(objection(key, Weight::Forbids, side, text, remedy));
    };
    if first.run.simulated.is_some() != run.run.simulated.is_some() {
        let what =
            |run: &Summary| if run.run.simulated.is_some() { "simulated" } else { "measured" };
        let text = format!("one side is {} and {} is {}", what(first), side.name, what(run));
        forbid("simulated", text, "compare measured runs with measured ones");
    }
    if first.workload.fingerprint == run.workload.fingerprint {
        return found;
    }
    let same_load = "run both with the same experiment file, and change only the server";
    for (key, name, a, b) in workload_differences(first, run) {
        let text = format!("{name} differs: {a} in the base, {b} in {}", side.name);
        forbid(key, text, same_load);
    }
    if found.is_empty() && first.workload.tokenizer == run.workload.tokenizer {
        let text = format!(
            "the workload of {} is another ({} and {}) in something that summaries do not show",
            side.name, first.workload.fingerprint, run.workload.fingerprint
        );
        found.push(objection("workload", Weight::Forbids, side, text, same_load));
    }
    found
}

/// The key, the name, and both values of every fact of the stimulus that differs.
fn workload_differences(
    first: &Summary,
    run: &Summary,
) -> Vec<(&'static str, &'static str, String, String)> {
    let (a, b) = (&first.workload, &run.workload);
    let shown = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let text = |value: &Option<inferometer_model::spec::Lengths>| {
        shown(value.as_ref().map(ToString::to_string))
    };
    let files = |facts: &WorkloadFacts| {
        facts
            .files
            .iter()
            .map(|file| file.sha256.chars().take(12).collect())
            .collect::<Vec<String>>()
    };
    let listed = |files: Vec<String>| shown(Some(files.join(", ")).filter(|text| !text.is_empty()));
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    let plain = |run: &Summary| {
        let kind = if run.run.load.is_open() { "open loop" } else { "closed loop" };
        format!("{kind}, {}", level_of(run))
    };
    let is_alike = plain(first) == plain(run);
    // Details are for loads that look alike without them.
    let load = |run: &Summary| match plain(run) {
        plain if is_alike => format!("{plain} ({})", json(serde_json::to_string(&run.run.load))),
        plain => plain,
    };
    let extent = |run: &Summary| json(serde_json::to_string(&run.run.extent));
    let warm_up = |run: &Summary| run.run.warm_up.map_or(0, |facts| facts.requests).to_string();
    let streaming = |run: &Summary| if run.run.streaming { "streamed" } else { "not streamed" };
    let other = |facts: &WorkloadFacts| {
        let parts = [
            json(serde_json::to_string(&facts.prefix)),
            json(serde_json::to_string(&facts.images)),
            json(serde_json::to_string(&facts.adapters)),
            json(serde_json::to_string(&facts.turn_think)),
        ];
        parts.join(" ")
    };
    [
        ("api", "the API", first.run.api.to_string(), run.run.api.to_string()),
        ("streaming", "streaming", streaming(first).to_owned(), streaming(run).to_owned()),
        ("load", "the load", load(first), load(run)),
        ("extent", "the extent", extent(first), extent(run)),
        ("warm_up", "the number of warm-up requests", warm_up(first), warm_up(run)),
        ("source", "the source of prompts", a.source.name().to_owned(), b.source.name().to_owned()),
        ("input_tokens", "the length of prompts", text(&a.input_tokens), text(&b.input_tokens)),
        ("output_tokens", "the length of answers", text(&a.output_tokens), text(&b.output_tokens)),
        ("turns", "the number of turns", text(&a.turns), text(&b.turns)),
        ("files", "the data", listed(files(a)), listed(files(b))),
        ("fields", "what bodies carry", quoted(&a.fields), quoted(&b.fields)),
        ("shared_parts", "prefixes, images, adapters or thinking", other(a), other(b)),
    ]
    .into_iter()
    .filter(|(_, _, a, b)| a != b)
    .collect()
}

fn quoted(fields: &serde_json::Map<String, serde_json::Value>) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}

/// Who counted tokens, and what was promised: without the same, some quantities mean another thing.
fn counts(first: &Summary, side: &Side, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut withhold = |key: &str, text: String, remedy: &str| {
        found.push(objection(key, Weight::Withholds, side, text, remedy));
    };
    let (a, b) = (&first.workload.tokenizer, &run.workload.tokenizer);
    if a.as_ref().map(|facts| &facts.sha256) != b.as_ref().map(|facts| &facts.sha256) {
        let name = |facts: &Option<inferometer_model::observations::TokenizerFacts>| {
            facts.as_ref().map_or_else(|| "none".to_owned(), |facts| facts.name.clone())
        };
        let text = format!(
            "the tokenizer differs ({} in the base, {} in {}): a token is not the same length",
            name(a),
            name(b),
            side.name
        );
        withhold(TOKENIZER, text, "give both runs the same --tokenizer");
    }
    let sources = [
        (OUTPUT_COUNTS, "output", output_sources(&first.tokens), output_sources(&run.tokens)),
        (INPUT_COUNTS, "input", input_sources(&first.tokens), input_sources(&run.tokens)),
    ];
    for (key, which, a, b) in sources {
        if a != b && !a.is_empty() && !b.is_empty() {
            let text = format!(
                "{which} tokens were counted by {} in the base and by {} in {}",
                a.join(" and "),
                b.join(" and "),
                side.name
            );
            withhold(key, text, "have both servers report `usage`");
        }
    }
    let promises = |run: &Summary| {
        run.request_slos.as_ref().map(|slos| {
            slos.promises.iter().map(|slo| slo.promise.clone()).collect::<Vec<_>>().join(", ")
        })
    };
    let (a, b) = (promises(first), promises(run));
    if a != b && a.is_some() && b.is_some() {
        let said = |text: Option<String>| text.unwrap_or_default();
        let text =
            format!("each request was promised {} and {} in {}", said(a), said(b), side.name);
        withhold(PROMISES, text, "give both runs the same --slo");
    }
    found
}

fn output_sources(tokens: &Tokens) -> Vec<&'static str> {
    let found = tokens.output_source;
    named([("usage", found.usage), ("stream marks", found.stream_marks), ("events", found.events)])
}

fn input_sources(tokens: &Tokens) -> Vec<&'static str> {
    let found = tokens.input_source;
    named([("usage", found.usage), ("the length asked for", found.asked)])
}

fn named<const N: usize>(sources: [(&'static str, u64); N]) -> Vec<&'static str> {
    sources.into_iter().filter(|(_, requests)| 0 < *requests).map(|(name, _)| name).collect()
}

/// Facts that may be the very question.
fn facts(first: &Summary, side: &Side, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let (a, b) = (&first.run, &run.run);
    if a.model != b.model {
        let text = format!(
            "the model differs: `{}` in the base, `{}` in {}; tokens of another vocabulary are \
             not the same length",
            a.model, b.model, side.name
        );
        let remedy = "if that is the question, prefer quantities per request";
        found.push(objection("model", Weight::Warning, side, text, remedy));
    }
    if a.http != b.http {
        let text = format!("the HTTP version of {} is another", side.name);
        let remedy = "run both with the same --http";
        found.push(objection("http", Weight::Warning, side, text, remedy));
    }
    let mut note = |key: &str, what: &str, a: &dyn Display, b: &dyn Display| {
        let text = format!("{what} differs: {a} in the base, {b} in {}", side.name);
        let remedy = "nothing to do if that is the question";
        found.push(objection(key, Weight::Note, side, text, remedy));
    };
    match (&a.simulated, &b.simulated) {
        (Some(one), Some(two)) if one.profile != two.profile => {
            note("profile", "the simulated profile", &one.profile, &two.profile);
        }
        (Some(one), Some(two)) if one.engine != two.engine => {
            note("engine", "the simulated engine", &one.engine, &two.engine);
        }
        (None, None) if a.target != b.target && !a.embedded && !b.embedded => {
            note("target", "the server", &a.target, &b.target);
        }
        _ => {}
    }
    if a.tool_version != b.tool_version {
        note("tool_version", "the version of Inferometer", &a.tool_version, &b.tool_version);
    }
    let speed = |speed: Option<f64>| speed.unwrap_or(1.0);
    if (speed(a.engine_speed) - speed(b.engine_speed)).abs() > f64::EPSILON {
        let (a, b) = (speed(a.engine_speed), speed(b.engine_speed));
        note("engine_speed", "the speed of the embedded engine", &a, &b);
    }
    found
}
