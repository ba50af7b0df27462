//! What was compared: presets, models, the load, and how servers were put up.

use std::collections::BTreeSet;

use inferometer_analysis::set::Subject;
use inferometer_model::campaign::Preset;
use inferometer_model::spec::SourceKind;
use serde_json::Value;

use super::view::{NAME_CHARS_MAX, View};
use crate::document::{Block, Cell, Column, Section, Span, Table, Text, plain};
use crate::escape::terminal_line;
use crate::number::{NOTHING, count};
use crate::pages::cells::missing;
use crate::pages::frame;
use crate::pages::words::{counted, level_name, listed, trimmed};

/// A command of a server may be a page long.
const COMMAND_CHARS_MAX: usize = 1_000;
const PROMPT_CHARS_MAX: usize = 400;
const OUTPUTS_MAX: usize = 8;

pub(super) fn section(view: View<'_>) -> Section {
    let mut blocks = vec![Block::Table(presets(view)), Block::Table(models(view))];
    blocks.push(Block::Facts(load(view)));
    blocks.extend(deployed(view));
    frame::section("setup", "Setup", blocks)
}

fn presets(view: View<'_>) -> Table {
    const NOT_SAID: &str = "the matrix file does not say";
    let amount = |value: Option<f64>| match value {
        Some(value) => Cell::number(trimmed(value), value),
        None => missing(NOT_SAID),
    };
    let words = |words: Option<&str>, reason: &str| match words {
        Some(words) => Cell::text(terminal_line(words, 80)),
        None => missing(reason),
    };
    // What plays a preset is not what its owner calls it.
    let played = &view.matrix.method.hardware;
    let is_played = played.iter().any(Option::is_some);
    let has_price = view.matrix.presets.iter().any(|preset| preset.price_per_hour.is_some());
    let row = |(place, preset): (usize, &Preset)| {
        let mut cells = vec![
            Cell::text(terminal_line(&preset.name, NAME_CHARS_MAX)),
            words(preset.gpu_type.as_deref(), NOT_SAID),
        ];
        let by = played.get(place).and_then(Option::as_deref);
        cells.extend(is_played.then(|| words(by, "no embedded engine, or several")));
        cells.extend([
            amount(preset.gpus.map(f64::from)),
            amount(preset.vram_gb),
            amount(preset.vcpus),
            amount(preset.memory_gb),
        ]);
        cells.extend(has_price.then(|| amount(preset.price_per_hour)));
        cells
    };
    let mut columns = vec![Column::left("Preset"), Column::left("GPU type")];
    columns.extend(is_played.then(|| Column::left("Played by the embedded engine as")));
    columns.extend(["GPUs", "VRAM (GB)", "vCPUs", "Memory (GB)"].map(Column::right));
    columns.extend(has_price.then(|| {
        let currency = view.currency().map_or_else(String::new, |words| format!(" ({words})"));
        Column::right(format!("Price per hour{currency}"))
    }));
    Table {
        id: "presets".to_owned(),
        caption: "Presets, as the matrix file describes them".to_owned(),
        columns,
        rows: view.matrix.presets.iter().enumerate().map(row).collect(),
        notes: Vec::new(),
    }
}

fn models(view: View<'_>) -> Table {
    let row = |(place, model): (u32, &inferometer_model::campaign::MatrixModel)| {
        vec![Cell::text(view.model(place)), Cell::text(terminal_line(&model.name, 120))]
    };
    Table {
        id: "models".to_owned(),
        caption: "Models".to_owned(),
        columns: vec![Column::left("Model"), Column::left("As the server is asked for it")],
        rows: (0_u32..).zip(&view.matrix.models).map(row).collect(),
        notes: Vec::new(),
    }
}

fn load(view: View<'_>) -> Vec<(String, Text)> {
    let levels = super::overview::levels(&view.matrix.rows);
    let levels: Vec<String> = levels.into_iter().map(level_name).collect();
    let requests: BTreeSet<u64> = view
        .matrix
        .rows
        .iter()
        .filter(|row| !row.points.is_empty())
        .map(|row| row.requests / row.points.len() as u64)
        .collect();
    let requests = match (requests.first(), requests.last()) {
        (Some(least), Some(most)) if least == most => count(*most),
        (Some(least), Some(most)) => format!("{} to {}", count(*least), count(*most)),
        _ => NOTHING.to_owned(),
    };
    let subjects = || view.set.conditions.iter().filter_map(|one| one.subject.as_ref());
    let mut facts = vec![
        ("Load".to_owned(), plain(listed(&levels))),
        ("Requests in a run".to_owned(), plain(requests)),
        ("Runs of each cell and load".to_owned(), plain(view.set.asked.runs.to_string())),
    ];
    if let Some(subject) = subjects().next() {
        facts.push(("API".to_owned(), plain(subject.api.to_string())));
        facts.push(("Prompts".to_owned(), plain(prompts(subject))));
    }
    facts.extend(asked(view));
    facts
}

/// What the plan says of every request.
fn asked(view: View<'_>) -> Vec<(String, Text)> {
    let method = &view.matrix.method;
    let mut facts = Vec::new();
    if let Some(prompt) = &method.prompt {
        let text = terminal_line(prompt, PROMPT_CHARS_MAX);
        facts.push(("Prompt".to_owned(), vec![Span::Code(text)]));
    }
    facts.extend(outputs(view).map(|words| ("Output tokens".to_owned(), plain(words))));
    let settings = [
        ("Fields of every body", settings(&method.fields)),
        ("Engine settings in common", settings(&method.engine)),
    ];
    for (name, text) in settings {
        facts.extend(text.map(|text| (name.to_owned(), vec![Span::Code(text)])));
    }
    facts
}

/// `512 at 2,048 tokens; 2,048 at 8,192 and 16,384 tokens`; without contexts where all are alike.
fn outputs(view: View<'_>) -> Option<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (context, lengths) in &view.matrix.method.output_tokens {
        let words = lengths.fixed().map_or_else(|| lengths.to_string(), |it| count(it.into()));
        let context = context.map_or_else(|| NOTHING.to_owned(), |tokens| count(tokens.into()));
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, contexts)) => contexts.push(context),
            None => groups.push((words, vec![context])),
        }
    }
    groups.truncate(OUTPUTS_MAX);
    match groups.as_slice() {
        [] => None,
        [(words, _)] => Some(words.clone()),
        several => {
            let told = several.iter();
            let told = told.map(|(words, at)| format!("{words} at {} of context", listed(at)));
            Some(told.collect::<Vec<_>>().join("; "))
        }
    }
}

fn settings<'a>(all: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Option<String> {
    let told: Vec<String> =
        all.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!told.is_empty()).then(|| terminal_line(&told.join(" "), COMMAND_CHARS_MAX))
}

/// A context that no prompt comes near is a setting, and not a load.
pub(super) fn short_prompts(view: View<'_>) -> Option<Text> {
    const FAR: u64 = 4;
    let method = &view.matrix.method;
    let longest = method.prompt_tokens_max?;
    let context = view.matrix.rows.iter().filter_map(|row| row.context).max()?;
    if u64::from(context) < FAR * longest {
        return None;
    }
    let long = method.prompt_words.map_or_else(
        || format!("{} at most", counted(longest, "token")),
        |words| counted(words, "word"),
    );
    Some(vec![
        Span::Strong("Context lengths".to_owned()),
        Span::Plain(format!(
            " are what the servers were started for, and not the length of the prompts ({long})."
        )),
    ])
}

fn prompts(subject: &Subject) -> String {
    let is_fixed = subject.source == SourceKind::Prompt;
    let source = if is_fixed { "one fixed prompt" } else { subject.source.name() };
    subject
        .input_tokens
        .as_ref()
        .map_or_else(|| source.to_owned(), |input| format!("{source}, {input} tokens"))
}

/// How servers came to be, with one command as it was given.
fn deployed(view: View<'_>) -> Vec<Block> {
    let facts = || view.matrix.deployments.iter().filter_map(|record| record.facts.as_ref());
    let subjects = || view.set.conditions.iter().filter_map(|one| one.subject.as_ref());
    let kinds: BTreeSet<&str> = facts().map(|facts| facts.kind.as_str()).collect();
    let how = if !kinds.is_empty() {
        let kinds: Vec<String> = kinds.into_iter().map(|kind| terminal_line(kind, 40)).collect();
        format!("each put up for its cell ({}) and taken down again", listed(&kinds))
    } else if subjects().any(|subject| subject.simulated.is_some()) {
        "none: the embedded engine in virtual time plays each deployment by its profile".to_owned()
    } else if subjects().any(|subject| subject.embedded) {
        "the embedded engine, started for each cell with its profile".to_owned()
    } else {
        "not known: no deployment has left a record".to_owned()
    };
    let mut rows = vec![("Servers".to_owned(), plain(how))];
    if let Some(facts) = facts().find(|facts| !facts.command.is_empty()) {
        let command = terminal_line(&facts.command.join(" "), COMMAND_CHARS_MAX);
        rows.push(("First command".to_owned(), vec![Span::Code(command)]));
    }
    let images: BTreeSet<String> = facts()
        .filter_map(|facts| facts.image.as_deref())
        .map(|image| terminal_line(image, 200))
        .collect();
    if !images.is_empty() {
        let images: Vec<String> = images.into_iter().take(8).collect();
        rows.push(("Images".to_owned(), plain(images.join(", "))));
    }
    vec![Block::Facts(rows)]
}
