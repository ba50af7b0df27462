//! One file per command; each reads like a sentence.

pub(crate) mod anatomy;
pub(crate) mod audit;
pub(crate) mod bundle;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod config;
pub(crate) mod engine;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod import;
pub(crate) mod judge;
mod judge_inputs;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod shell;
pub(crate) mod simulate;
pub(crate) mod ui;
pub(crate) mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inferometer_analysis::{RequirementOutcome, Summary};
use inferometer_interchange::vllm::block;
use inferometer_model::system::Machine;
use inferometer_report::document::{self, Document};
use inferometer_report::terminal::{self, Style};
use inferometer_report::{Files, escape};
use inferometer_store::{RunDirectory, RunStore};
use serde::Serialize;

use crate::arguments::{
    DocumentFormat, PageFormat, SchemaArguments, StoreArguments, SystemArguments, WriteArguments,
};
use crate::failure::{Failure, Result};
pub(crate) use crate::measurement::seal_summary;
use crate::study::{matrix, suite};
use crate::{environment, experiment, output, report_files};

/// `inferometer schema`: the JSON Schema of the experiment file, of a suite or of a matrix.
pub(crate) fn schema(arguments: &SchemaArguments) -> Result<ExitCode> {
    output::json(&match (arguments.suite, arguments.matrix) {
        (true, _) => suite::schema(),
        (false, true) => matrix::schema(),
        (false, false) => experiment::schema::document(),
    })
}

/// `inferometer system`: what this machine is, as runs record it.
pub(crate) fn system(arguments: &SystemArguments) -> Result<ExitCode> {
    let machine = environment::machine();
    if !arguments.json {
        return output::result(&terminal::system(machine));
    }
    let document = SystemDocument { schema: "inferometer.system/1", machine };
    let text = serde_json::to_string_pretty(&document).map_err(Failure::from_error)?;
    output::result(&(text + "\n"))
}

#[derive(Serialize)]
struct SystemDocument<'a> {
    schema: &'a str,
    machine: &'a Machine,
}

/// The folder of stored runs: as typed, as the environment says, or `./runs`.
pub(crate) fn store_folder(arguments: &StoreArguments) -> PathBuf {
    let set = || std::env::var_os("INFEROMETER_RUNS").filter(|set| !set.is_empty());
    arguments.folder.clone().or_else(|| set().map(PathBuf::from)).unwrap_or_else(|| "runs".into())
}

/// The store in that folder.
pub(crate) fn store(arguments: &StoreArguments) -> Result<RunStore> {
    let store = RunStore::open(store_folder(arguments)).map_err(Failure::from_usage)?;
    Ok(output::hiding(store))
}

/// Writes a document as the user wants it.
fn write_document(arguments: &WriteArguments, text: &str) -> Result<ExitCode> {
    match arguments.to.as_deref().filter(|to| *to != Path::new(output::STDOUT)) {
        Some(to) => {
            report_files::write_named(to, text)?;
            output::path(to)
        }
        None => output::result(text),
    }
}

/// A page in the form that the user wants; `json` is its data.
fn render_document(format: DocumentFormat, document: &Document, json: &impl Serialize) -> String {
    match format {
        DocumentFormat::Json => inferometer_report::json::to_json(json),
        DocumentFormat::Md => document::markdown::render(document).text,
        DocumentFormat::Html => document::html::render(document),
        DocumentFormat::Page => document::terminal::render(document, style()),
    }
}

/// Prints a summary as the user wants it.
fn show(summary: &Summary, directory: &RunDirectory, format: PageFormat) -> Result<ExitCode> {
    output::result(&page(summary, directory, &[], format))
}

/// Where a run is stored.
pub(crate) fn files(directory: &RunDirectory) -> Files {
    let path = |name: &str| directory.path().join(name).display().to_string();
    Files {
        run: directory.path().display().to_string(),
        manifest: path("manifest.json"),
        journal: path("requests.journal"),
        summary: path("summary.json"),
        report: Some(path(report_files::HTML)).filter(|path| Path::new(path).is_file()),
    }
}

pub(crate) fn page(
    summary: &Summary,
    directory: &RunDirectory,
    required: &[RequirementOutcome],
    format: PageFormat,
) -> String {
    let files = files(directory);
    match format {
        PageFormat::Json => inferometer_report::json::render(summary, &files, required),
        PageFormat::Vllm => {
            // The format of the block is vLLM's and has no lines for warnings or failures.
            print_reservations(summary, directory);
            if !required.is_empty() {
                output::talk(terminal::requirements(required, Style::Plain).trim_end());
            }
            block::from_summary(summary, escape::terminal)
        }
        PageFormat::Page => terminal::render_summary(summary, &files, required, style()),
        PageFormat::Full => terminal::render_judged(summary, &files, required, style()),
    }
}

/// Prints the warnings of a run to standard error, beside a format without them.
pub(crate) fn print_reservations(summary: &Summary, directory: &RunDirectory) {
    output::talk(terminal::reservations(summary, &files(directory)).trim_end());
}

pub(crate) fn style() -> Style {
    if output::is_coloured(&std::io::stdout()) { Style::Coloured } else { Style::Plain }
}
