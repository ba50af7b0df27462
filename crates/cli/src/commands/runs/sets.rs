//! Sets in the list of what is stored: a line for each.

use std::fmt::Write;

use inferometer_analysis::Summary;
use inferometer_model::campaign::{CampaignSpec, Level, Matrix, Question, Suite, Sweep};
use inferometer_report::escape::{terminal, terminal_line};
use inferometer_store::{SetListing, SetState};
use inferometer_study::Study;
use inferometer_study::play::{server_name, was_cut};
use serde_json::{Value, json};

pub(super) fn table(sets: &[SetListing]) -> String {
    if sets.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{:<20} {:<10} {:<8} {:<14} {:<20} {:<30} {:>8}\n",
        "set", "state", "verdict", "kind", "servers", "levels", "runs"
    );
    for listing in sets {
        let campaign = listing.manifest.as_ref().map(|manifest| &manifest.campaign);
        let simulated = listing.manifest.as_ref().is_some_and(|manifest| manifest.simulated);
        let _ = writeln!(
            text,
            "{:<20} {:<10} {:<8} {:<14} {:<20} {:<30} {:>8}{}{}",
            terminal_line(listing.set.id(), 20),
            state(&listing.state),
            verdict(listing).unwrap_or_else(|| "–".to_owned()),
            terminal_line(&campaign.map_or_else(|| "–".to_owned(), title), 14),
            ending(&campaign.map_or_else(|| "–".to_owned(), servers), 20),
            terminal_line(&campaign.map_or_else(|| "–".to_owned(), levels), 30),
            campaign.map_or_else(|| "–".to_owned(), |campaign| runs(listing, campaign)),
            if simulated { "  simulated" } else { "" },
            reason(listing).map_or_else(String::new, |reason| format!("  {}", terminal(reason))),
        );
    }
    text
}

pub(super) fn json(listing: &SetListing) -> Value {
    let manifest = listing.manifest.as_ref();
    let campaign = manifest.map(|manifest| &manifest.campaign);
    let expected = campaign.and_then(expected);
    json!({
        "id": listing.set.id(),
        "path": listing.set.path().display().to_string(),
        "state": state(&listing.state),
        "reason": reason(listing),
        "verdict": verdict(listing),
        "started": manifest.map(|manifest| &manifest.started),
        "simulated": manifest.map(|manifest| manifest.simulated),
        "kind": campaign.map(kind),
        "suite": campaign.and_then(suite).map(|suite| &suite.name),
        "conditions": campaign.map(|campaign| {
            campaign.conditions.iter().map(|condition| &condition.name).collect::<Vec<_>>()
        }),
        "levels": campaign.map(listed),
        "matrix": campaign.and_then(matrix).map(|matrix| &matrix.name),
        "runs_done": done(listing),
        "runs_failed": failed(listing),
        "runs_planned": expected,
        "more_runs": campaign.map(|_| expected.is_none()),
    })
}

fn reason(listing: &SetListing) -> Option<&str> {
    match &listing.state {
        SetState::Unreadable(reason) => Some(reason),
        SetState::Sealed | SetState::Running | SetState::Unfinished => None,
    }
}

/// Of a set that is finished.
fn verdict(listing: &SetListing) -> Option<String> {
    let summary: Value = serde_json::from_slice(&listing.set.read_summary().ok()??).ok()?;
    summary.get("verdict")?.as_str().map(|verdict| terminal_line(verdict, 8))
}

/// All runs that there will be; `None` where that depends on what they show.
fn expected(campaign: &CampaignSpec) -> Option<u32> {
    Study::new(campaign.clone()).ok()?.progress().expected
}

/// Cut from the front: the end of an address tells servers apart.
fn ending(text: &str, limit: usize) -> String {
    let safe = terminal(text);
    let length = safe.chars().count();
    if length <= limit {
        return safe;
    }
    let kept = safe.chars().skip(length + 1 - limit);
    ['…'].into_iter().chain(kept).collect()
}

fn state(state: &SetState) -> &str {
    match state {
        SetState::Sealed => "sealed",
        SetState::Running => "running",
        SetState::Unfinished => "unfinished",
        SetState::Unreadable(_) => "unreadable",
    }
}

fn kind(campaign: &CampaignSpec) -> &'static str {
    match &campaign.question {
        Question::Repeat => "repeat",
        Question::Sweep(sweep) if sweep.find.is_some() => "search",
        Question::Sweep(_) => "sweep",
        Question::Suite(_) => "suite",
        Question::Matrix(_) => "matrix",
    }
}

fn suite(campaign: &CampaignSpec) -> Option<&Suite> {
    match &campaign.question {
        Question::Suite(suite) => Some(suite),
        Question::Repeat | Question::Sweep(_) | Question::Matrix(_) => None,
    }
}

fn matrix(campaign: &CampaignSpec) -> Option<&Matrix> {
    match &campaign.question {
        Question::Matrix(matrix) => Some(matrix),
        Question::Repeat | Question::Sweep(_) | Question::Suite(_) => None,
    }
}

/// Its kind, and of a suite or a matrix which one.
fn title(campaign: &CampaignSpec) -> String {
    let suite = suite(campaign).map(|suite| &suite.name);
    let name = suite.or(matrix(campaign).map(|matrix| &matrix.name));
    let kind = kind(campaign);
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
}

/// The conditions of a suite are its scenarios, all on one server; a matrix has too many to name.
fn servers(campaign: &CampaignSpec) -> String {
    if let Some(matrix) = matrix(campaign) {
        return format!("{} presets", matrix.presets.len());
    }
    if let (Some(_), Some(first)) = (suite(campaign), campaign.conditions.first()) {
        return server_name(&first.spec);
    }
    let names: Vec<&str> =
        campaign.conditions.iter().map(|condition| condition.name.as_str()).collect();
    names.join(", ")
}

fn listed(campaign: &CampaignSpec) -> &[Level] {
    match &campaign.question {
        Question::Repeat | Question::Suite(_) => &[],
        Question::Sweep(sweep) => &sweep.levels,
        Question::Matrix(matrix) => &matrix.levels,
    }
}

fn levels(campaign: &CampaignSpec) -> String {
    if let Question::Sweep(Sweep { find: Some(find), .. }) = &campaign.question {
        let goals: Vec<String> = find.goals.iter().map(ToString::to_string).collect();
        return format!("{}..{}: {}", find.from, find.at_most, goals.join(", "));
    }
    if let Some(suite) = suite(campaign) {
        let levels: usize = suite.scenarios.iter().map(|scenario| scenario.levels.len()).sum();
        return format!("{} scenarios, {levels} levels", suite.scenarios.len());
    }
    if let Some(Matrix { cells, levels, .. }) = matrix(campaign) {
        let loads = if levels.len() == 1 { "load" } else { "loads" };
        return format!("{} cells, {} {loads}", cells.len(), levels.len());
    }
    match listed(campaign) {
        [] => "as asked".to_owned(),
        [only] => only.to_string(),
        [first, .., last] => format!("{} from {first} to {last}", listed(campaign).len()),
    }
}

/// Points that count.
fn done(listing: &SetListing) -> usize {
    let is_whole = |number: &u32| {
        let kept = listing.set.point(*number).read_summary().ok().flatten();
        let summary = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
        summary.is_some_and(|summary| !was_cut(&summary))
    };
    listing.set.points().unwrap_or_default().iter().filter(|number| is_whole(number)).count()
}

/// Points of a matrix that came to nothing, which is a result.
fn failed(listing: &SetListing) -> usize {
    listing.set.failures().map_or(0, |failures| failures.len())
}

fn runs(listing: &SetListing, campaign: &CampaignSpec) -> String {
    let done = done(listing) + failed(listing);
    match expected(campaign).filter(|_| listing.state != SetState::Sealed) {
        Some(expected) => format!("{done}/{expected}"),
        None => done.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(ending("http://h:1", 10), "http://h:1");
        assert_eq!(ending("http://server.example:8000", 10), "…mple:8000");
    }
}
