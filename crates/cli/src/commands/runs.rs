//! `inferometer runs`: lists the stored runs, sets and imports.

use std::collections::BTreeSet;
use std::process::ExitCode;

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::tool_result::Tool;
use inferometer_analysis::{LoadFacts, Summary, metric};
use inferometer_model::import::ImportManifest;
use inferometer_model::study::{Level, Question, SetManifest, StudySpec};
use inferometer_model::{Manifest, Outcome};
use inferometer_report::document::terminal::table;
use inferometer_report::document::{Cell, Columns, Table};
use inferometer_report::escape::{terminal_cut, terminal_line};
use inferometer_report::fmt::{NOTHING, count, load, number};
use inferometer_report::terminal::Style;
use inferometer_store::{ImportDirectory, Listing, Listings, RunDirectory, RunState, SetDirectory};
use inferometer_study::Study;
use inferometer_study::play::{server_name, was_cut};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::store;
use crate::arguments::RunsArguments;
use crate::failure::Result;
use crate::{output, results};

type RunListing = Listing<RunDirectory, Manifest>;
type SetListing = Listing<SetDirectory, SetManifest>;
type ImportListing = Listing<ImportDirectory, ImportManifest>;

pub(crate) fn run(arguments: &RunsArguments) -> Result<ExitCode> {
    let store = store(&arguments.store)?;
    let Listings { runs, sets, imports } = store.list()?;
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
    Columns::new("run", |(listing, _): &Row<'_>| {
        Cell::text(terminal_line(listing.directory.id(), 20))
    })
    .left("state", |(listing, _)| Cell::text(state(&listing.state).0))
    .left("verdict", |(_, summary)| known(summary.as_ref().map(|it| it.verdict.key().to_owned())))
    .left("model", |(listing, _)| {
        let manifest = listing.manifest.as_ref();
        known(manifest.map(|manifest| terminal_line(&manifest.endpoint.model, 15)))
    })
    .left("load", |(listing, _)| {
        let manifest = listing.manifest.as_ref();
        known(manifest.map(|it| load::brief(&LoadFacts::new(&it.spec.load))))
    })
    .right("ok", |(_, summary)| known(summary.as_ref().map(|it| count(it.count(Outcome::Ok)))))
    .right("TTFT p50 ms", |(_, summary)| {
        let ttft = |it: &Summary| it.latency_origin().ttft().p50().value_in(it).ok();
        Cell::text(number(summary.as_ref().and_then(ttft).map(|found| found.value)))
    })
    .right("tok/s", |(_, summary)| {
        let output = metric::OUTPUT_THROUGHPUT.quantity();
        let value = summary.as_ref().map(|it| output.value_in(it));
        Cell::text(number(value.and_then(Result::ok).map(|found| found.value)))
    })
    .left("", |(listing, _)| {
        let simulated = listing.manifest.as_ref().and_then(|it| it.simulated.as_ref());
        Cell::text(simulated.map_or("", |_| "simulated"))
    })
    .table("", "", rows)
}

/// The state, and why a run, set or import cannot be read.
fn state(state: &RunState) -> (&str, Option<&str>) {
    match state {
        RunState::Sealed => ("sealed", None),
        RunState::Finished => ("no summary", None),
        RunState::Unfinished => ("unfinished", None),
        RunState::Running => ("running", None),
        RunState::Unreadable(reason) => ("unreadable", Some(reason)),
    }
}

fn summary(listing: &RunListing) -> Option<Summary> {
    results::kept_summary(&listing.directory).ok()?
}

fn run_json(listing: &RunListing) -> Value {
    let summary = summary(listing);
    let manifest = listing.manifest.as_ref();
    let (state, reason) = state(&listing.state);
    json!({
        "id": listing.directory.id(),
        "path": listing.directory.path().display().to_string(),
        "state": state,
        "reason": reason,
        "started": manifest.map(|manifest| &manifest.started),
        "simulated": manifest.map(|manifest| manifest.simulated.is_some()),
        "model": manifest.map(|manifest| &manifest.endpoint.model),
        "verdict": summary.as_ref().map(|summary| summary.verdict),
        "outcomes": summary.as_ref().map(|summary| &summary.outcomes),
    })
}

/// What a set asks.
struct SetQuestion<'a> {
    kind: &'static str,
    /// The name of a suite or of a matrix.
    name: Option<&'a str>,
    servers: String,
    levels: &'a [Level],
    level_text: String,
}

impl<'a> SetQuestion<'a> {
    fn new(study: &'a StudySpec) -> Self {
        let names = || study.conditions.iter().map(|it| it.name.as_str()).collect::<Vec<_>>();
        let (kind, name, servers, levels, level_text) = match &study.question {
            Question::Repeat => {
                ("repeat", None, names().join(", "), &[][..], "as asked".to_owned())
            }
            Question::Sweep(sweep) => {
                let levels = sweep.levels.as_slice();
                let (kind, text) = match (&sweep.find, levels) {
                    (Some(find), _) => {
                        let goals = find.goals.iter().map(ToString::to_string);
                        let goals = goals.collect::<Vec<_>>().join(", ");
                        ("search", format!("{}..{}: {goals}", find.from, find.at_most))
                    }
                    (None, []) => ("sweep", "as asked".to_owned()),
                    (None, [only]) => ("sweep", only.to_string()),
                    (None, [first, .., last]) => {
                        ("sweep", format!("{} from {first} to {last}", levels.len()))
                    }
                };
                (kind, None, names().join(", "), levels, text)
            }
            Question::Suite(suite) => {
                let levels: usize = suite.scenarios.iter().map(|it| it.levels.len()).sum();
                let text = format!("{} scenarios, {levels} levels", suite.scenarios.len());
                // The conditions of a suite are its scenarios, all on one server.
                let server = study.conditions.first().map(|first| server_name(&first.spec));
                ("suite", Some(suite.name.as_str()), server.unwrap_or_default(), &[][..], text)
            }
            Question::Matrix(matrix) => {
                let loads = if matrix.levels.len() == 1 { "load" } else { "loads" };
                let text = format!("{} cells, {} {loads}", matrix.cells.len(), matrix.levels.len());
                // A matrix has too many servers to name.
                let servers = format!("{} presets", matrix.presets.len());
                ("matrix", Some(matrix.name.as_str()), servers, matrix.levels.as_slice(), text)
            }
        };
        Self { kind, name, servers, levels, level_text }
    }
}

fn set_table(sets: &[SetListing]) -> Table {
    type Row<'a> = (&'a SetListing, Option<SetQuestion<'a>>);
    let rows = sets.iter().map(|listing| {
        let manifest = listing.manifest.as_ref();
        (listing, manifest.map(|manifest| SetQuestion::new(&manifest.study)))
    });
    let of_question = |text: fn(&SetQuestion<'_>) -> String| {
        move |(_, question): &Row<'_>| known(question.as_ref().map(text))
    };
    let title = |question: &SetQuestion<'_>| {
        let name = question.name.map_or_else(String::new, |name| format!(" {name}"));
        terminal_line(&format!("{}{name}", question.kind), 14)
    };
    Columns::new("set", |(listing, _): &Row<'_>| {
        Cell::text(terminal_line(listing.directory.id(), 20))
    })
    .left("state", |(listing, _)| Cell::text(state(&listing.state).0))
    .left("verdict", |(listing, _)| known(verdict(listing)))
    .left("kind", of_question(title))
    // The end of an address distinguishes servers.
    .left("servers", of_question(|question| terminal_cut(&question.servers, 20, 0)))
    .left("levels", of_question(|question| terminal_line(&question.level_text, 30)))
    .right("runs", |(listing, _)| known(set_runs(listing)))
    .left("", |(listing, _)| {
        let simulated = listing.manifest.as_ref().is_some_and(|manifest| manifest.simulated);
        let simulated = simulated.then_some("simulated");
        let notes = simulated.into_iter().chain(state(&listing.state).1);
        Cell::text(notes.collect::<Vec<_>>().join("  "))
    })
    .table("", "", rows)
}

fn set_json(listing: &SetListing) -> Value {
    let manifest = listing.manifest.as_ref();
    let study = manifest.map(|manifest| &manifest.study);
    let question = study.map(SetQuestion::new);
    let name = |kind: &str| question.as_ref().filter(|it| it.kind == kind).and_then(|it| it.name);
    let expected = study.and_then(expected);
    let (state, reason) = state(&listing.state);
    json!({
        "id": listing.directory.id(),
        "path": listing.directory.path().display().to_string(),
        "state": state,
        "reason": reason,
        "verdict": verdict(listing),
        "started": manifest.map(|manifest| &manifest.started),
        "simulated": manifest.map(|manifest| manifest.simulated),
        "kind": question.as_ref().map(|question| question.kind),
        "suite": name("suite"),
        "conditions": study.map(|study| {
            study.conditions.iter().map(|condition| &condition.name).collect::<Vec<_>>()
        }),
        "levels": question.as_ref().map(|question| question.levels),
        "matrix": name("matrix"),
        "runs_done": done(listing),
        "runs_failed": failed(listing),
        "runs_planned": expected,
        "more_runs": study.map(|_| expected.is_none()),
    })
}

/// The verdict of a finished set.
fn verdict(listing: &SetListing) -> Option<String> {
    let summary = SetSummary::from_json_bytes(&listing.directory.read_summary().ok()??).ok()?;
    Some(summary.verdict.key().to_owned())
}

/// The number of all runs; `None` where it depends on their results.
fn expected(study: &StudySpec) -> Option<u32> {
    Study::new(study.clone()).ok()?.progress().expected
}

/// Measured points.
fn done(listing: &SetListing) -> usize {
    let is_whole = |number: &u32| {
        let summary = results::kept_summary(&listing.directory.point(*number)).ok().flatten();
        summary.is_some_and(|summary| !was_cut(&summary))
    };
    listing.directory.points().unwrap_or_default().iter().filter(|number| is_whole(number)).count()
}

/// Failed points of a matrix, which are results.
fn failed(listing: &SetListing) -> usize {
    listing.directory.failures().map_or(0, |failures| failures.len())
}

fn set_runs(listing: &SetListing) -> Option<String> {
    let study = &listing.manifest.as_ref()?.study;
    let done = done(listing) + failed(listing);
    let expected = expected(study).filter(|_| listing.state != RunState::Sealed);
    Some(expected.map_or_else(|| done.to_string(), |expected| format!("{done}/{expected}")))
}

fn import_table(imports: &[ImportListing]) -> Table {
    type Row<'a> = (&'a ImportListing, Option<StoredImport>);
    let number = |get: fn(&StoredImport) -> usize| {
        move |(_, stored): &Row<'_>| known(stored.as_ref().map(|stored| count(get(stored) as u64)))
    };
    let title = |(listing, _): &Row<'_>| Cell::text(terminal_line(listing.directory.id(), 20));
    Columns::new("import", title)
        .left("tool", |(_, stored)| known(stored.as_ref().map(|it| it.tool.program().to_owned())))
        .left("file", |(listing, _)| {
            let manifest = listing.manifest.as_ref();
            let file = manifest.map(|manifest| terminal_line(&manifest.file.name, 26));
            Cell::text(file.unwrap_or_else(|| "unreadable".to_owned()))
        })
        .right("results", number(StoredImport::results))
        .right("broken", number(StoredImport::broken))
        .left("configurations", |(listing, stored)| match (state(&listing.state).1, stored) {
            (Some(reason), _) => Cell::text(reason),
            (None, Some(it)) => Cell::text(terminal_line(&it.configurations().join(", "), 60)),
            (None, None) => Cell::default(),
        })
        .table("", "", imports.iter().map(|listing| (listing, StoredImport::read(listing))))
}

fn import_json(listing: &ImportListing) -> Value {
    let stored = StoredImport::read(listing);
    let manifest = listing.manifest.as_ref();
    json!({
        "id": listing.directory.id(),
        "path": listing.directory.path().display().to_string(),
        "reason": state(&listing.state).1,
        "imported": manifest.map(|manifest| &manifest.imported),
        "file": manifest.map(|manifest| &manifest.file),
        "tool": stored.as_ref().map(|stored| stored.tool),
        "results": stored.as_ref().map(StoredImport::results),
        "broken": stored.as_ref().map(StoredImport::broken),
        "configurations": stored.as_ref().map(StoredImport::configurations),
    })
}

/// The part of a stored summary that the list shows; a whole one may hold every gap of every request.
#[derive(Deserialize)]
struct StoredImport {
    tool: Tool,
    records: Vec<StoredRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredRecord {
    Result { configuration: String },
    Broken(IgnoredAny),
}

impl StoredImport {
    fn read(listing: &ImportListing) -> Option<Self> {
        serde_json::from_slice(&listing.directory.read_summary().ok()??).ok()
    }

    fn results(&self) -> usize {
        self.records.iter().filter(|it| matches!(it, StoredRecord::Result { .. })).count()
    }

    fn broken(&self) -> usize {
        self.records.len() - self.results()
    }

    /// Each once, in the order in which they appear.
    fn configurations(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.records.iter().filter_map(|record| match record {
            StoredRecord::Result { configuration } => Some(configuration.as_str()),
            StoredRecord::Broken(_) => None,
        });
        names.filter(|name| !name.is_empty() && seen.insert(*name)).collect()
    }
}
