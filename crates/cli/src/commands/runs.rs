//! `inferometer runs`: lists the stored runs, sets and imports that filters select, and removes them.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::tool_result::Tool;
use inferometer_analysis::{LoadFacts, Summary, metric};
use inferometer_model::import::ImportManifest;
use inferometer_model::study::{Level, Question, SetManifest, StudySpec};
use inferometer_model::{Manifest, Outcome, Spec};
use inferometer_report::document::terminal::table;
use inferometer_report::document::{Cell, Columns, Table};
use inferometer_report::escape::{terminal_cut, terminal_line};
use inferometer_report::fmt::{NOTHING, count, load, number};
use inferometer_report::terminal::Style;
use inferometer_store::{ImportDirectory, Listing, Listings, RunDirectory, RunState, SetDirectory};
use inferometer_study::Study;
use inferometer_study::play::{server_name, was_cut};
use inferometer_web::{Entry, RUN};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::store;
use crate::arguments::{PruneArguments, RunsArguments, RunsCommand, RunsFilter};
use crate::failure::{Failure, Result};
use crate::{output, report_files, results};

type RunListing = Listing<RunDirectory, Manifest>;
type SetListing = Listing<SetDirectory, SetManifest>;
type ImportListing = Listing<ImportDirectory, ImportManifest>;

pub(crate) fn run(arguments: &RunsArguments) -> Result<ExitCode> {
    if let Some(RunsCommand::Prune(typed)) = &arguments.what {
        return prune(typed);
    }
    let store = store(&arguments.store)?;
    let mut found = store.list()?;
    let all = found.runs.len() + found.sets.len() + found.imports.len();
    select(&mut found, &arguments.filter);
    let Listings { runs, sets, imports } = found;
    if arguments.json {
        return output::json(&json!({
            "schema": "inferometer.runs/1",
            "runs": runs.iter().map(run_json).collect::<Vec<_>>(),
            "sets": sets.iter().map(set_json).collect::<Vec<_>>(),
            "imports": imports.iter().map(import_json).collect::<Vec<_>>(),
        }));
    }
    let sizes = arguments.sizes;
    let tables = [run_table(&runs, sizes), set_table(&sets, sizes), import_table(&imports, sizes)];
    let shown = tables.iter().filter(|table| !table.rows.is_empty());
    let shown: Vec<String> = shown.map(|shown| table(shown, Style::Plain)).collect();
    if !shown.is_empty() {
        return output::result(&shown.join("\n"));
    }
    let path = store.path().display();
    output::talk(&match all {
        0 => format!("no runs in {path}; make one with: inferometer run URL"),
        all => format!("none of the {all} runs, sets and imports in {path} fits the filters"),
    });
    Ok(ExitCode::SUCCESS)
}

/// What filters and `prune` look at.
struct Facts {
    id: String,
    path: PathBuf,
    is_running: bool,
    /// Everything that a word may be found in, beside the id.
    text: String,
    kinds: Vec<&'static str>,
    verdict: Option<String>,
    started: Option<String>,
}

impl RunsFilter {
    fn takes(&self, facts: &Facts) -> bool {
        let text = format!("{} {}", facts.id, facts.text).to_lowercase();
        let started = || facts.started.as_ref()?.parse::<Timestamp>().ok();
        self.words.iter().all(|word| text.contains(&word.to_lowercase()))
            && self.kind.as_ref().is_none_or(|kind| facts.kinds.contains(&kind.as_str()))
            && self.verdict.as_ref().is_none_or(|wanted| facts.verdict.as_ref() == Some(wanted))
            && self.since.is_none_or(|since| started().is_some_and(|it| since <= it))
            && self.before.is_none_or(|before| started().is_some_and(|it| it < before))
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Keeps what the filter takes.
fn select(found: &mut Listings, filter: &RunsFilter) {
    if filter.is_empty() {
        return;
    }
    found.runs.retain(|run| filter.takes(&run_facts(run)));
    found.sets.retain(|set| filter.takes(&set_facts(set)));
    found.imports.retain(|import| filter.takes(&import_facts(import)));
}

/// Where the spec is measured, and the facts that the user stored with it.
fn spec_words(spec: &Spec) -> String {
    let facts = spec.metadata.iter().map(|(key, value)| format!("{key}={value}"));
    format!("{} {}", server_name(spec), facts.collect::<Vec<_>>().join(" "))
}

fn run_facts(listing: &RunListing) -> Facts {
    let manifest = listing.manifest.as_ref();
    let words = manifest.map(|it| format!("{} {}", it.endpoint.model, spec_words(&it.spec)));
    Facts {
        id: listing.directory.id().to_owned(),
        path: listing.directory.path().to_owned(),
        is_running: listing.state == RunState::Running,
        text: words.unwrap_or_default(),
        kinds: vec!["run"],
        verdict: summary(listing).map(|it| it.verdict.key().to_owned()),
        started: manifest.map(|manifest| manifest.started.clone()),
    }
}

fn set_facts(listing: &SetListing) -> Facts {
    let manifest = listing.manifest.as_ref();
    let question = manifest.map(|manifest| SetQuestion::new(&manifest.study));
    let name = question.as_ref().and_then(|question| question.name).unwrap_or_default();
    let conditions = manifest.iter().flat_map(|manifest| &manifest.study.conditions);
    let conditions = conditions.map(|it| format!("{} {}", it.name, spec_words(&it.spec)));
    let conditions = conditions.collect::<Vec<_>>().join(" ");
    Facts {
        id: listing.directory.id().to_owned(),
        path: listing.directory.path().to_owned(),
        is_running: listing.state == RunState::Running,
        text: format!("{name} {conditions}"),
        kinds: ["set"].into_iter().chain(question.map(|question| question.kind)).collect(),
        verdict: verdict(&listing.directory),
        started: manifest.map(|manifest| manifest.started.clone()),
    }
}

fn import_facts(listing: &ImportListing) -> Facts {
    let stored = StoredImport::read(&listing.directory);
    let tool = stored.as_ref().map_or("", |stored| stored.tool.program());
    let names = stored.as_ref().map(|it| it.configurations().join(" ")).unwrap_or_default();
    let file = listing.manifest.as_ref().map_or("", |manifest| manifest.file.name.as_str());
    Facts {
        id: listing.directory.id().to_owned(),
        path: listing.directory.path().to_owned(),
        is_running: false,
        text: format!("{tool} {file} {names}"),
        kinds: vec!["import"],
        verdict: None,
        started: listing.manifest.as_ref().map(|manifest| manifest.imported.clone()),
    }
}

/// Bytes of a file, or of all files in a folder. Links are not followed.
fn size(folder: &Path) -> u64 {
    let files = report_files::files_below(folder).unwrap_or_default();
    files.iter().filter_map(|file| Some(file.symlink_metadata().ok()?.len())).sum()
}

fn size_text(bytes: u64) -> String {
    format!("{} MB", number(bytes as f64 / 1e6))
}

/// `inferometer runs prune`: shows what would be removed, asks, and removes it.
fn prune(arguments: &PruneArguments) -> Result<ExitCode> {
    let PruneArguments { filter, keep, yes, .. } = arguments;
    if filter.is_empty() && keep.is_none() {
        return Err(Failure::usage("no filter selects what to remove")
            .hint("name a filter or --keep: inferometer runs prune --before 30d"));
    }
    let Listings { runs, sets, imports } = store(&arguments.store)?.list()?;
    let stored = runs.iter().map(run_facts).chain(sets.iter().map(set_facts));
    let stored = stored.chain(imports.iter().map(import_facts));
    let mut all: Vec<Facts> = stored.filter(|it| !it.is_running && filter.takes(it)).collect();
    all.sort_by(|one, other| other.id.cmp(&one.id));
    all.drain(..all.len().min(keep.map_or(0, |keep| keep as usize)));
    if all.is_empty() {
        output::talk("there is nothing to remove");
        return Ok(ExitCode::SUCCESS);
    }
    let total =
        format!("{} of {}", size_text(all.iter().map(|it| size(&it.path)).sum()), all.len());
    let shown = Columns::new("id", |it: &&Facts| Cell::text(terminal_line(&it.id, 20)))
        .left("kind", |it| Cell::text(it.kinds.last().copied().unwrap_or_default()))
        .left("began", |it| {
            let started = it.started.as_deref().unwrap_or_default();
            Cell::text(started.get(..16).unwrap_or(started))
        })
        .right("size", |it| Cell::text(size_text(size(&it.path))))
        .table("", "", &all);
    output::result(&table(&shown, Style::Plain))?;
    if !yes && !is_confirmed(&total)? {
        output::talk(&format!("nothing was removed: {total} would be; --yes removes it"));
        return Ok(ExitCode::SUCCESS);
    }
    for Facts { path, .. } in &all {
        // It may have been resumed meanwhile.
        let is_running = SetDirectory::at(path.clone()).state() == RunState::Running
            || RunDirectory::at(path.clone()).state() == RunState::Running;
        if is_running {
            output::talk(&format!("{} is running and was kept", path.display()));
            continue;
        }
        std::fs::remove_dir_all(path).map_err(|error| {
            Failure::usage(format!("{} cannot be removed: {error}", path.display()))
        })?;
    }
    output::talk(&format!("removed {total}"));
    Ok(ExitCode::SUCCESS)
}

/// Asks on a terminal; elsewhere the answer is no.
fn is_confirmed(total: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    output::talk(&format!("remove {total} for good? [y/N]"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(Failure::from_error)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn known(text: Option<String>) -> Cell {
    Cell::text(text.unwrap_or_else(|| NOTHING.to_owned()))
}

/// A line of a list of what is stored.
pub(crate) fn entry(id: &str, kind: &str, found: &RunState) -> Entry {
    let (state, reason) = state(found);
    let [id, kind, state] = [id, kind, state].map(str::to_owned);
    let load = reason.unwrap_or_default().to_owned();
    Entry { id, kind, state, load, ..Entry::default() }
}

pub(crate) fn run_entry(run: &RunDirectory, manifest: Option<&Manifest>, at: &RunState) -> Entry {
    let mut entry = entry(run.id(), RUN, at);
    if let Some(manifest) = manifest {
        let endpoint = &manifest.endpoint;
        entry.server =
            if endpoint.embedded { "embedded".to_owned() } else { endpoint.base.to_string() };
        entry.model.clone_from(&endpoint.model);
        entry.load = load::brief(&LoadFacts::new(&manifest.spec.load));
        entry.simulated = manifest.simulated.is_some();
        entry.started.clone_from(&manifest.started);
    }
    if let Ok(Some(summary)) = results::kept_summary(run) {
        let ttft = summary.latency_origin().ttft().p50();
        summary.verdict.key().clone_into(&mut entry.verdict);
        entry.ok = Some(summary.count(Outcome::Ok));
        entry.ttft_ms = ttft.value_in(&summary).ok().map(|found| found.value);
        let output = metric::OUTPUT_THROUGHPUT.quantity().value_in(&summary);
        entry.output_per_s = output.ok().map(|found| found.value);
    }
    entry
}

fn run_table(runs: &[RunListing], sizes: bool) -> Table {
    type Row<'a> = (&'a RunListing, Entry);
    let rows = runs.iter().map(|listing| {
        let Listing { directory, manifest, state } = listing;
        (listing, run_entry(directory, manifest.as_ref(), state))
    });
    Columns::new("run", |(_, entry): &Row<'_>| Cell::text(terminal_line(&entry.id, 20)))
        .left("verdict", |(listing, entry)| match entry.ok {
            Some(_) if entry.simulated => Cell::text("simulated"),
            Some(_) if listing.state == RunState::Sealed => Cell::text(&entry.verdict),
            Some(_) | None => Cell::text(&entry.state),
        })
        .left("model", |(listing, _)| {
            let manifest = listing.manifest.as_ref();
            let label = manifest.and_then(|manifest| manifest.spec.metadata.get("label"));
            let name = label.or_else(|| manifest.map(|manifest| &manifest.endpoint.model));
            known(name.map(|name| terminal_line(name, 16)))
        })
        .left("load", |(listing, entry)| {
            known(listing.manifest.as_ref().map(|_| entry.load.clone()))
        })
        .right("ok", |(_, entry)| known(entry.ok.map(count)))
        .right("TTFT p50", |(_, entry)| {
            known(entry.ttft_ms.map(|ttft| format!("{} ms", number(ttft))))
        })
        .only_if(!sizes)
        .right("tok/s", |(_, entry)| Cell::text(number(entry.output_per_s)))
        .right("size", |(listing, _)| Cell::text(size_text(size(listing.directory.path()))))
        .only_if(sizes)
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
pub(crate) struct SetQuestion<'a> {
    pub(crate) kind: &'static str,
    /// The name of a suite or of a matrix.
    pub(crate) name: Option<&'a str>,
    pub(crate) servers: String,
    levels: &'a [Level],
    pub(crate) level_text: String,
}

impl<'a> SetQuestion<'a> {
    pub(crate) fn new(study: &'a StudySpec) -> Self {
        let names = || study.conditions.iter().map(|it| it.name.as_str()).collect::<Vec<_>>();
        let only_load = || {
            let first = study.conditions.first();
            first.map_or_else(String::new, |it| load::brief(&LoadFacts::new(&it.spec.load)))
        };
        let (kind, name, servers, levels, level_text) = match &study.question {
            Question::Repeat => ("repeat", None, names().join(", "), &[][..], only_load()),
            Question::Sweep(sweep) => {
                let levels = sweep.levels.as_slice();
                let (kind, text) = match (&sweep.find, levels) {
                    (Some(find), _) => {
                        let goals = find.goals.iter().map(ToString::to_string);
                        let goals = goals.collect::<Vec<_>>().join(", ");
                        ("search", format!("{}..{}: {goals}", find.from, find.at_most))
                    }
                    (None, []) => ("sweep", only_load()),
                    (None, [only]) => ("sweep", only.to_string()),
                    (None, [first, .., last]) => ("sweep", format!("{first} to {last}")),
                };
                (kind, None, names().join(", "), levels, text)
            }
            Question::Suite(suite) => {
                let text = format!("{} scenarios", suite.scenarios.len());
                // The conditions of a suite are its scenarios, all on one server.
                let server = study.conditions.first().map(|first| server_name(&first.spec));
                ("suite", Some(suite.name.as_str()), server.unwrap_or_default(), &[][..], text)
            }
            Question::Matrix(matrix) => {
                let text = format!("{} cells", matrix.cells.len());
                // A matrix has too many servers to name.
                let servers = format!("{} presets", matrix.presets.len());
                ("matrix", Some(matrix.name.as_str()), servers, matrix.levels.as_slice(), text)
            }
        };
        Self { kind, name, servers, levels, level_text }
    }
}

fn set_table(sets: &[SetListing], sizes: bool) -> Table {
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
    .left("verdict", |(listing, _)| {
        let is_simulated = listing.manifest.as_ref().is_some_and(|manifest| manifest.simulated);
        let found = verdict(&listing.directory).filter(|_| listing.state == RunState::Sealed);
        let found = found.map(|found| if is_simulated { "simulated".to_owned() } else { found });
        Cell::text(found.unwrap_or_else(|| state(&listing.state).0.to_owned()))
    })
    .left("kind", of_question(title))
    // The end of an address distinguishes servers.
    .left("servers", of_question(|question| terminal_cut(&question.servers, 20, 0)))
    .only_if(!sizes)
    .left("levels", of_question(|question| terminal_line(&question.level_text, 30)))
    .right("runs", |(listing, _)| known(set_runs(listing)))
    .right("size", |(listing, _)| Cell::text(size_text(size(listing.directory.path()))))
    .only_if(sizes)
    .left("", |(listing, _)| Cell::text(state(&listing.state).1.unwrap_or_default()))
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
        "verdict": verdict(&listing.directory),
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
pub(crate) fn verdict(set: &SetDirectory) -> Option<String> {
    let summary = SetSummary::from_json_bytes(&set.read_summary().ok()??).ok()?;
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

fn import_table(imports: &[ImportListing], sizes: bool) -> Table {
    type Row<'a> = (&'a ImportListing, Option<StoredImport>);
    let title = |(listing, _): &Row<'_>| Cell::text(terminal_line(listing.directory.id(), 20));
    // The last column is broken into lines where the terminal is narrow, so that the others are whole.
    Columns::new("import", title)
        .left("tool", |(_, stored)| known(stored.as_ref().map(|it| it.tool.program().to_owned())))
        .right("results", |(_, stored)| known(stored.as_ref().map(StoredImport::results_read)))
        .right("size", |(listing, _)| Cell::text(size_text(size(listing.directory.path()))))
        .only_if(sizes)
        .left("file and configurations", |(listing, stored)| {
            let manifest = listing.manifest.as_ref();
            let file = manifest.map(|manifest| terminal_line(&manifest.file.name, 40));
            let file = file.unwrap_or_else(|| "unreadable".to_owned());
            let more = match (state(&listing.state).1, stored) {
                (Some(reason), _) => reason.to_owned(),
                (None, Some(it)) => {
                    let mut names = it.configurations();
                    // A file without names is its own.
                    names.retain(|name| *name != file);
                    terminal_line(&names.join(", "), 60)
                }
                (None, None) => String::new(),
            };
            Cell::text(if more.is_empty() { file } else { format!("{file}: {more}") })
        })
        .table(
            "",
            "",
            imports.iter().map(|listing| (listing, StoredImport::read(&listing.directory))),
        )
}

fn import_json(listing: &ImportListing) -> Value {
    let stored = StoredImport::read(&listing.directory);
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
pub(crate) struct StoredImport {
    pub(crate) tool: Tool,
    records: Vec<StoredRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredRecord {
    Result { configuration: String },
    Broken(IgnoredAny),
}

impl StoredImport {
    pub(crate) fn read(import: &ImportDirectory) -> Option<Self> {
        serde_json::from_slice(&import.read_summary().ok()??).ok()
    }

    pub(crate) fn results(&self) -> usize {
        self.records.iter().filter(|it| matches!(it, StoredRecord::Result { .. })).count()
    }

    /// The number of results, and of all records where some are broken: `7/8`.
    fn results_read(&self) -> String {
        let read = count(self.results() as u64);
        let all = count(self.records.len() as u64);
        if self.broken() == 0 { read } else { format!("{read}/{all}") }
    }

    fn broken(&self) -> usize {
        self.records.len() - self.results()
    }

    /// Each once, in the order in which they appear.
    pub(crate) fn configurations(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.records.iter().filter_map(|record| match record {
            StoredRecord::Result { configuration } => Some(configuration.as_str()),
            StoredRecord::Broken(_) => None,
        });
        names.filter(|name| !name.is_empty() && seen.insert(*name)).collect()
    }
}
