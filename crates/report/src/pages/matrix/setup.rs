//! What was compared: presets, models, the load, and how servers were put up.

use std::collections::BTreeSet;

use inferometer_analysis::set::Subject;
use inferometer_model::campaign::Preset;
use inferometer_model::spec::SourceKind;

use super::view::View;
use crate::document::{Block, Cell, Column, Section, Span, Table, Text, plain};
use crate::escape::terminal_line;
use crate::number::count;
use crate::pages::cells::missing;
use crate::pages::frame;
use crate::pages::words::{level_name, listed, trimmed};

/// A command of a server may be a page long.
const COMMAND_CHARS_MAX: usize = 1_000;

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
    let row = |(place, preset): (u32, &Preset)| {
        vec![
            Cell::text(view.preset(place)),
            preset
                .gpu_type
                .as_deref()
                .map_or_else(|| missing(NOT_SAID), |words| Cell::text(terminal_line(words, 80))),
            amount(preset.gpus.map(f64::from)),
            amount(preset.vram_gb),
            amount(preset.vcpus),
            amount(preset.memory_gb),
            amount(preset.price_per_hour),
        ]
    };
    let mut columns = vec![Column::left("Preset"), Column::left("GPU type")];
    columns.extend(["GPUs", "VRAM (GB)", "vCPUs", "Memory (GB)"].map(Column::right));
    columns.push(Column::right(format!("Price per hour ({})", view.currency())));
    Table {
        id: "presets".to_owned(),
        caption: "Presets, as the matrix file describes them".to_owned(),
        columns,
        rows: (0_u32..).zip(&view.matrix.presets).map(row).collect(),
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
        _ => crate::number::NOTHING.to_owned(),
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
    let outputs: BTreeSet<String> = subjects()
        .filter_map(|subject| subject.output_tokens.as_ref().map(ToString::to_string))
        .collect();
    if !outputs.is_empty() {
        let outputs: Vec<String> = outputs.into_iter().take(8).collect();
        facts.push(("Output tokens".to_owned(), plain(listed(&outputs))));
    }
    facts
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
