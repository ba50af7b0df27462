//! Sets in the list of what is stored: a line for each.

use std::fmt::Write;

use inferometer_model::campaign::{CampaignSpec, Level, Question};
use inferometer_report::escape::terminal_line;
use inferometer_store::{RunState, SetListing, SetState};
use serde_json::{Value, json};

use crate::set::planned;

pub(super) fn table(sets: &[SetListing]) -> String {
    if sets.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{:<20} {:<10} {:<8} {:<15} {:<30} {:>8}\n",
        "set", "state", "kind", "servers", "levels", "runs"
    );
    for listing in sets {
        let campaign = listing.manifest.as_ref().map(|manifest| &manifest.campaign);
        let simulated = listing.manifest.as_ref().is_some_and(|manifest| manifest.simulated);
        let _ = writeln!(
            text,
            "{:<20} {:<10} {:<8} {:<15} {:<30} {:>8}{}",
            terminal_line(listing.set.id(), 20),
            state(&listing.state),
            campaign.map_or("–", kind),
            terminal_line(&campaign.map_or_else(|| "–".to_owned(), servers), 15),
            terminal_line(&campaign.map_or_else(|| "–".to_owned(), levels), 30),
            campaign.map_or_else(|| "–".to_owned(), |campaign| runs(listing, campaign)),
            if simulated { "  simulated" } else { "" },
        );
    }
    text
}

pub(super) fn json(listing: &SetListing) -> Value {
    let manifest = listing.manifest.as_ref();
    let campaign = manifest.map(|manifest| &manifest.campaign);
    let planned = campaign.map(planned);
    json!({
        "id": listing.set.id(),
        "path": listing.set.path().display().to_string(),
        "state": state(&listing.state),
        "reason": match &listing.state {
            SetState::Unreadable(reason) => Some(reason.as_str()),
            SetState::Sealed | SetState::Running | SetState::Unfinished => None,
        },
        "started": manifest.map(|manifest| &manifest.started),
        "simulated": manifest.map(|manifest| manifest.simulated),
        "kind": campaign.map(kind),
        "conditions": campaign.map(|campaign| {
            campaign.conditions.iter().map(|condition| &condition.name).collect::<Vec<_>>()
        }),
        "levels": campaign.map(listed),
        "runs_done": done(listing),
        "runs_planned": planned.map(|(runs, _)| runs),
        "more_runs": planned.map(|(_, more)| more),
    })
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
    }
}

fn servers(campaign: &CampaignSpec) -> String {
    let names: Vec<&str> =
        campaign.conditions.iter().map(|condition| condition.name.as_str()).collect();
    names.join(", ")
}

fn listed(campaign: &CampaignSpec) -> &[Level] {
    match &campaign.question {
        Question::Repeat => &[],
        Question::Sweep(sweep) => &sweep.levels,
    }
}

fn levels(campaign: &CampaignSpec) -> String {
    match listed(campaign) {
        [] => "as asked".to_owned(),
        [only] => only.to_string(),
        [first, .., last] => format!("{} from {first} to {last}", listed(campaign).len()),
    }
}

/// Points that are sealed.
fn done(listing: &SetListing) -> usize {
    let points = listing.set.points().unwrap_or_default();
    let is_sealed = |number: &u32| listing.set.point(*number).state() == RunState::Sealed;
    points.iter().filter(|number| is_sealed(number)).count()
}

fn runs(listing: &SetListing, campaign: &CampaignSpec) -> String {
    let (planned, more) = planned(campaign);
    format!("{}/{planned}{}", done(listing), if more { "+" } else { "" })
}
