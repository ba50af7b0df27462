//! `inferometer runs`: what is stored.

mod imports;
mod sets;

use std::fmt::Write;
use std::process::ExitCode;

use inferometer_analysis::{Percentile, Summary, metric};
use inferometer_model::spec::{LoadShape, Rate};
use inferometer_report::escape::terminal_line;
use inferometer_report::fmt::{count, number};
use inferometer_store::{ImportListing, RunDirectory, RunListing, RunState, SetListing};

use super::store;
use crate::arguments::RunsArguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &RunsArguments) -> Result<ExitCode, Failure> {
    let store = store(&arguments.store)?;
    let (listings, sets, imports) = (store.list()?, store.sets()?, store.imports()?);
    if arguments.json {
        output::result(&json(&listings, &sets, &imports))?;
    } else if listings.is_empty() && sets.is_empty() && imports.is_empty() {
        output::talk(&format!(
            "no runs in {}; make one with: inferometer run URL",
            store.path().display()
        ));
    } else {
        let runs = if listings.is_empty() { String::new() } else { table(&listings) };
        let tables = [runs, sets::table(&sets), imports::table(&imports)];
        let shown = tables.into_iter().filter(|table| !table.is_empty());
        output::result(&shown.collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn state(state: &RunState) -> &str {
    match state {
        RunState::Sealed => "sealed",
        RunState::Finished => "no summary",
        RunState::Unfinished => "unfinished",
        RunState::Running => "running",
        RunState::Unreadable(_) => "unreadable",
    }
}

fn summary(listing: &RunListing) -> Option<Summary> {
    let bytes = RunDirectory::at(listing.path.clone()).read_summary().ok()??;
    Summary::from_json_bytes(&bytes).ok()
}

/// Whether no server was measured.
fn is_simulated(listing: &RunListing) -> bool {
    listing.manifest.as_ref().is_some_and(|manifest| manifest.simulated.is_some())
}

fn load(listing: &RunListing) -> String {
    match listing.manifest.as_ref().map(|manifest| &manifest.spec.load.shape) {
        Some(LoadShape::Closed { concurrency, .. }) => format!("{concurrency} in flight"),
        Some(LoadShape::Open { rate, cap, .. }) => {
            // Capped-open: neither loop, and never shown as one.
            rate_of(rate) + &cap.map_or_else(String::new, |cap| format!(" ≤{cap}"))
        }
        None => "–".to_owned(),
    }
}

fn rate_of(rate: &Rate) -> String {
    match rate {
        Rate::Steady { per_s } => format!("{per_s}/s"),
        Rate::Ramp { segments, .. } => {
            let rates = segments.iter().flat_map(|segment| [segment.from_per_s, segment.to_per_s]);
            let least = rates.clone().fold(f64::INFINITY, f64::min);
            let most = rates.fold(0.0, f64::max);
            format!("ramp {least}–{most}/s")
        }
        Rate::Unlimited => "all at once".to_owned(),
        Rate::Recorded(replay) => format!("trace ×{}", replay.speed),
    }
}

fn table(listings: &[RunListing]) -> String {
    let mut text = format!(
        "{:<20} {:<10} {:<8} {:<15} {:<14} {:>6} {:>9} {:>9}\n{:>89} {:>9}\n",
        "run", "state", "verdict", "model", "load", "ok", "TTFT p50", "output", "ms", "tok/s"
    );
    for listing in listings {
        let summary = summary(listing);
        let manifest = listing.manifest.as_ref();
        let model = manifest.map_or("–", |manifest| manifest.endpoint.model.as_str());
        let metrics = summary.as_ref().map(|summary| &summary.metrics);
        let ttft = metrics
            .and_then(|metrics| metrics.distribution(&metric::TTFT)?.percentile(Percentile::P50));
        let output = metrics.and_then(|metrics| metrics.scalar(&metric::OUTPUT_THROUGHPUT)?.value);
        let ok = summary.as_ref().map(|summary| summary.count(inferometer_model::Outcome::Ok));
        let _ = writeln!(
            text,
            "{:<20} {:<10} {:<8} {:<15} {:<14} {:>6} {:>9} {:>9}{}",
            terminal_line(&listing.id, 20),
            state(&listing.state),
            summary.as_ref().map_or("–", |summary| summary.verdict.key()),
            terminal_line(model, 15),
            load(listing),
            ok.map_or_else(|| "–".to_owned(), count),
            number(ttft),
            number(output),
            if is_simulated(listing) { "  simulated" } else { "" },
        );
    }
    text
}

fn json(listings: &[RunListing], sets: &[SetListing], imports: &[ImportListing]) -> String {
    let runs: Vec<serde_json::Value> = listings
        .iter()
        .map(|listing| {
            let summary = summary(listing);
            serde_json::json!({
                "id": listing.id,
                "path": listing.path.display().to_string(),
                "state": state(&listing.state),
                "reason": match &listing.state {
                    RunState::Unreadable(reason) => Some(reason.as_str()),
                    RunState::Sealed
                    | RunState::Finished
                    | RunState::Unfinished
                    | RunState::Running => None,
                },
                "started": listing.manifest.as_ref().map(|manifest| &manifest.started),
                "simulated": listing.manifest.as_ref().map(|_| is_simulated(listing)),
                "model": listing.manifest.as_ref().map(|manifest| &manifest.endpoint.model),
                "verdict": summary.as_ref().map(|summary| summary.verdict),
                "outcomes": summary.as_ref().map(|summary| &summary.outcomes),
            })
        })
        .collect();
    let sets: Vec<serde_json::Value> = sets.iter().map(sets::json).collect();
    let imports: Vec<serde_json::Value> = imports.iter().map(imports::json).collect();
    let document = serde_json::json!({
        "schema": "inferometer.runs/1",
        "runs": runs,
        "sets": sets,
        "imports": imports,
    });
    format!("{document:#}\n")
}
