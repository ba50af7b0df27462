//! `inferometer runs`: lists the stored runs, sets and imports.

use std::collections::BTreeSet;
use std::process::ExitCode;

use inferometer_analysis::tool_result::Tool;
use inferometer_analysis::{Percentile, Summary, metric};
use inferometer_model::campaign::{CampaignSpec, Level, Matrix, Question, Suite, Sweep};
use inferometer_model::spec::{LoadShape, Rate};
use inferometer_report::document::terminal::table;
use inferometer_report::document::{Cell, Columns, Table};
use inferometer_report::escape::{terminal_cut, terminal_line};
use inferometer_report::fmt::{NOTHING, count, number};
use inferometer_report::terminal::Style;
use inferometer_store::{ImportListing, RunDirectory, RunListing, RunState, SetListing, SetState};
use inferometer_study::Study;
use inferometer_study::play::{server_name, was_cut};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::store;
use crate::arguments::RunsArguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &RunsArguments) -> Result<ExitCode, Failure> {
    let store = store(&arguments.store)?;
    let (runs, sets, imports) = (store.list()?, store.sets()?, store.imports()?);
    if arguments.json {
        let document = json!({
            "schema": "inferometer.runs/1",
            "runs": runs.iter().map(run_json).collect::<Vec<_>>(),
            "sets": sets.iter().map(set_json).collect::<Vec<_>>(),
            "imports": imports.iter().map(import_json).collect::<Vec<_>>(),
        });
        output::result(&format!("{document:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let tables = [run_table(&runs), set_table(&sets), import_table(&imports)];
    let shown = tables.iter().filter(|table| !table.rows.is_empty());
    let shown: Vec<String> = shown.map(|shown| table(shown, Style::Plain)).collect();
    if shown.is_empty() {
        let path = store.path().display();
        output::talk(&format!("no runs in {path}; make one with: inferometer run URL"));
    } else {
        output::result(&shown.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn known(text: Option<String>) -> Cell {
    Cell::text(text.unwrap_or_else(|| NOTHING.to_owned()))
}

fn run_table(runs: &[RunListing]) -> Table {
    type Row<'a> = (&'a RunListing, Option<Summary>);
    let rows = runs.iter().map(|listing| (listing, summary(listing)));
    Columns::new("run", |(listing, _): &Row<'_>| Cell::text(terminal_line(&listing.id, 20)))
        .left("state", |(listing, _)| Cell::text(run_state(&listing.state)))
        .left("verdict", |(_, summary)| {
            known(summary.as_ref().map(|summary| summary.verdict.key().to_owned()))
        })
        .left("model", |(listing, _)| {
            let manifest = listing.manifest.as_ref();
            known(manifest.map(|manifest| terminal_line(&manifest.endpoint.model, 15)))
        })
        .left("load", |(listing, _)| known(load(listing)))
        .right("ok", |(_, summary)| {
            let ok = summary.as_ref().map(|it| it.count(inferometer_model::Outcome::Ok));
            known(ok.map(count))
        })
        .right("TTFT p50 ms", |(_, summary)| {
            let metrics = summary.as_ref().map(|summary| &summary.metrics);
            let ttft =
                metrics.and_then(|it| it.distribution(&metric::TTFT)?.percentile(Percentile::P50));
            Cell::text(number(ttft))
        })
        .right("tok/s", |(_, summary)| {
            let metrics = summary.as_ref().map(|summary| &summary.metrics);
            Cell::text(number(metrics.and_then(|it| it.scalar(&metric::OUTPUT_THROUGHPUT)?.value)))
        })
        .left("", |(listing, _)| Cell::text(if is_simulated(listing) { "simulated" } else { "" }))
        .table("", "", rows)
}

fn run_state(state: &RunState) -> &str {
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

/// Whether it was simulated without a server.
fn is_simulated(listing: &RunListing) -> bool {
    listing.manifest.as_ref().is_some_and(|manifest| manifest.simulated.is_some())
}

fn load(listing: &RunListing) -> Option<String> {
    Some(match &listing.manifest.as_ref()?.spec.load.shape {
        LoadShape::Closed { concurrency, .. } => format!("{concurrency} in flight"),
        LoadShape::Open { rate, cap, .. } => {
            let rate = match rate {
                Rate::Steady { per_s } => format!("{per_s}/s"),
                Rate::Ramp { segments, .. } => {
                    let rates = segments.iter().flat_map(|it| [it.from_per_s, it.to_per_s]);
                    let least = rates.clone().fold(f64::INFINITY, f64::min);
                    format!("ramp {least}–{}/s", rates.fold(0.0, f64::max))
                }
                Rate::Unlimited => "all at once".to_owned(),
                Rate::Recorded(replay) => format!("trace ×{}", replay.speed),
            };
            // An open loop with a cap is neither an open nor a closed loop.
            rate + &cap.map_or_else(String::new, |cap| format!(" ≤{cap}"))
        }
    })
}

fn run_json(listing: &RunListing) -> Value {
    let summary = summary(listing);
    json!({
        "id": listing.id,
        "path": listing.path.display().to_string(),
        "state": run_state(&listing.state),
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
}

fn set_table(sets: &[SetListing]) -> Table {
    type Row<'a> = (&'a SetListing, Option<&'a CampaignSpec>);
    let rows = sets
        .iter()
        .map(|listing| (listing, listing.manifest.as_ref().map(|manifest| &manifest.campaign)));
    Columns::new("set", |(listing, _): &Row<'_>| Cell::text(terminal_line(listing.set.id(), 20)))
        .left("state", |(listing, _)| Cell::text(set_state(&listing.state)))
        .left("verdict", |(listing, _)| known(verdict(listing)))
        .left("kind", |(_, campaign)| known(campaign.map(|it| terminal_line(&title(it), 14))))
        // The end of an address distinguishes servers.
        .left("servers", |(_, campaign)| {
            known(campaign.map(|campaign| terminal_cut(&servers(campaign), 20, 0)))
        })
        .left("levels", |(_, campaign)| known(campaign.map(|it| terminal_line(&levels(it), 30))))
        .right("runs", |(listing, campaign)| known(campaign.map(|it| set_runs(listing, it))))
        .left("", |(listing, _)| {
            let simulated = listing.manifest.as_ref().is_some_and(|manifest| manifest.simulated);
            let simulated = simulated.then_some("simulated");
            let notes: Vec<&str> = simulated.into_iter().chain(reason(listing)).collect();
            Cell::text(notes.join("  "))
        })
        .table("", "", rows)
}

fn set_json(listing: &SetListing) -> Value {
    let manifest = listing.manifest.as_ref();
    let campaign = manifest.map(|manifest| &manifest.campaign);
    let expected = campaign.and_then(expected);
    json!({
        "id": listing.set.id(),
        "path": listing.set.path().display().to_string(),
        "state": set_state(&listing.state),
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

/// The verdict of a finished set.
fn verdict(listing: &SetListing) -> Option<String> {
    let summary: Value = serde_json::from_slice(&listing.set.read_summary().ok()??).ok()?;
    summary.get("verdict")?.as_str().map(|verdict| terminal_line(verdict, 8))
}

/// The number of all runs; `None` where it depends on their results.
fn expected(campaign: &CampaignSpec) -> Option<u32> {
    Study::new(campaign.clone()).ok()?.progress().expected
}

fn set_state(state: &SetState) -> &str {
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

/// Its kind, with the name of a suite or a matrix.
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

/// Measured points.
fn done(listing: &SetListing) -> usize {
    let is_whole = |number: &u32| {
        let kept = listing.set.point(*number).read_summary().ok().flatten();
        let summary = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
        summary.is_some_and(|summary| !was_cut(&summary))
    };
    listing.set.points().unwrap_or_default().iter().filter(|number| is_whole(number)).count()
}

/// Failed points of a matrix, which are results.
fn failed(listing: &SetListing) -> usize {
    listing.set.failures().map_or(0, |failures| failures.len())
}

fn set_runs(listing: &SetListing, campaign: &CampaignSpec) -> String {
    let done = done(listing) + failed(listing);
    match expected(campaign).filter(|_| listing.state != SetState::Sealed) {
        Some(expected) => format!("{done}/{expected}"),
        None => done.to_string(),
    }
}

fn import_table(imports: &[ImportListing]) -> Table {
    type Row<'a> = (&'a ImportListing, Option<Kept>);
    let number = |get: fn(&Kept) -> usize| {
        move |(_, kept): &Row<'_>| known(kept.as_ref().map(|kept| count(get(kept) as u64)))
    };
    Columns::new("import", |(listing, _): &Row<'_>| {
        Cell::text(terminal_line(listing.import.id(), 20))
    })
    .left("tool", |(_, kept)| known(kept.as_ref().map(|kept| kept.tool.program().to_owned())))
    .left("file", |(listing, _)| {
        let manifest = listing.manifest.as_ref();
        let file = manifest.map(|manifest| terminal_line(&manifest.file.name, 26));
        Cell::text(file.unwrap_or_else(|_| "unreadable".to_owned()))
    })
    .right("results", number(Kept::results))
    .right("broken", number(Kept::broken))
    .left("configurations", |(listing, kept)| match (&listing.manifest, kept) {
        (Err(reason), _) => Cell::text(reason),
        (Ok(_), Some(kept)) => Cell::text(terminal_line(&kept.configurations().join(", "), 60)),
        (Ok(_), None) => Cell::default(),
    })
    .table("", "", imports.iter().map(|listing| (listing, Kept::read(listing))))
}

fn import_json(listing: &ImportListing) -> Value {
    let kept = Kept::read(listing);
    let manifest = listing.manifest.as_ref().ok();
    json!({
        "id": listing.import.id(),
        "path": listing.import.path().display().to_string(),
        "reason": listing.manifest.as_ref().err(),
        "imported": manifest.map(|manifest| &manifest.imported),
        "file": manifest.map(|manifest| &manifest.file),
        "tool": kept.as_ref().map(|kept| kept.tool),
        "results": kept.as_ref().map(Kept::results),
        "broken": kept.as_ref().map(Kept::broken),
        "configurations": kept.as_ref().map(Kept::configurations),
    })
}

/// The part of a stored summary that the list shows; a whole one may hold every gap of every request.
#[derive(Deserialize)]
struct Kept {
    tool: Tool,
    records: Vec<KeptRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptRecord {
    Result(KeptResult),
    Broken(IgnoredAny),
}

#[derive(Deserialize)]
struct KeptResult {
    configuration: String,
}

impl KeptRecord {
    fn configuration(&self) -> Option<&str> {
        match self {
            Self::Result(result) => Some(&result.configuration),
            Self::Broken(_) => None,
        }
    }
}

impl Kept {
    fn read(listing: &ImportListing) -> Option<Self> {
        serde_json::from_slice(&listing.import.read_summary().ok()??).ok()
    }

    fn results(&self) -> usize {
        self.records.iter().filter(|record| matches!(record, KeptRecord::Result(_))).count()
    }

    fn broken(&self) -> usize {
        self.records.len() - self.results()
    }

    /// Each once, in the order in which they appear.
    fn configurations(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.records.iter().filter_map(KeptRecord::configuration);
        names.filter(|name| !name.is_empty() && seen.insert(*name)).collect()
    }
}
