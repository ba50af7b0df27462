//! Cells that deploy the same server, because an axis is varied that the servers ignore.

use std::collections::{BTreeMap, BTreeSet};

use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Cell, Matrix};
use inferometer_model::spec::{Source, TargetSpec};
use serde_json::json;

/// A warning for the axes that make no difference. Both strategies on one GPU have a note of their
/// own.
pub(super) fn warning(campaign: &CampaignSpec, matrix: &Matrix) -> Option<String> {
    let mut servers: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
    for (condition, cell) in campaign.conditions.iter().zip(&matrix.cells) {
        servers.entry(server(&condition.spec)).or_default().push(cell);
    }
    let mut idle = BTreeSet::new();
    let mut cells = 0;
    for alike in servers.values() {
        let Some((first, others)) = alike.split_first() else { continue };
        let found: BTreeSet<String> =
            others.iter().flat_map(|other| differences(matrix, first, other)).collect();
        if !found.is_empty() {
            cells += alike.len();
            idle.extend(found);
        }
    }
    if idle.is_empty() {
        return None;
    }
    let is_deployed = campaign.conditions.iter().any(|it| it.spec.target != TargetSpec::Embedded);
    let axes: Vec<String> = idle.into_iter().collect();
    let remedy = if is_deployed {
        let holders: Vec<String> = axes.iter().map(|axis| placeholder(axis)).collect();
        format!("put {} into [deploy], or do not vary it", holders.join(" and "))
    } else {
        "let their engines differ, or leave one out".to_owned()
    };
    Some(format!(
        "{cells} cells deploy the same server as others and differ by {} alone; {remedy}",
        axes.join(" and ")
    ))
}

/// All that a server is made of, and which model it is asked for.
fn server(spec: &Spec) -> String {
    json!([spec.target, spec.engine, spec.model]).to_string()
}

fn differences(matrix: &Matrix, one: &Cell, other: &Cell) -> Vec<String> {
    let mut axes = Vec::new();
    let preset = usize::try_from(one.preset).ok().and_then(|place| matrix.presets.get(place));
    let is_single = preset.is_some_and(|preset| preset.gpus == Some(1));
    for (axis, differs) in [
        ("preset", one.preset != other.preset),
        ("model", one.model != other.model),
        ("context", one.context != other.context),
        ("strategy", one.strategy != other.strategy && !is_single),
    ] {
        axes.extend(differs.then(|| axis.to_owned()));
    }
    let flags = one.flags.iter().filter(|(name, value)| other.flags.get(*name) != Some(value));
    axes.extend(flags.map(|(name, _)| name.clone()));
    axes
}

fn placeholder(axis: &str) -> String {
    match axis {
        "preset" | "model" | "context" => format!("{{{axis}}}"),
        "strategy" => "{tp} and {pp}".to_owned(),
        flag => format!("{{flag:{flag}}}"),
    }
}

/// Contexts in which no request of the workload has room, each with what a request needs at least.
pub(super) fn too_short(campaign: &CampaignSpec, matrix: &Matrix) -> Option<String> {
    let mut short = BTreeMap::new();
    for (condition, cell) in campaign.conditions.iter().zip(&matrix.cells) {
        let needed = needed(&condition.spec);
        if let (Some(context), Some(needed)) = (cell.context, needed)
            && context < needed
        {
            short.insert(context, needed);
        }
    }
    if short.is_empty() {
        return None;
    }
    let short: Vec<String> =
        short.iter().map(|(context, needed)| format!("{context} (needed: {needed})")).collect();
    Some(format!(
        "a prompt and its answer share the context, and together they are longer than {}: such \
         requests are refused or cut; write shorter ones for it into [workload.by_context]",
        short.join(", ")
    ))
}

/// Tokens of the shortest request, as far as they are known without counting words.
pub(crate) fn needed(spec: &Spec) -> Option<u32> {
    match &spec.workload.source {
        Source::Synthetic(it) => Some(it.input.least().saturating_add(it.output.least())),
        // A prompt has a token at least.
        Source::Fixed(it) => Some(it.output.least().saturating_add(1)),
        Source::VllmRandom(_)
        | Source::Dataset(_)
        | Source::Trace(_)
        | Source::Conversations(_)
        | Source::Mix(_)
        | Source::Saved { .. } => None,
    }
}
