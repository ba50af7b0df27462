//! One file per command; each reads like a sentence.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod engine;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod import;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod require;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod simulate;
pub(crate) mod system;
pub(crate) mod verify;

use std::path::PathBuf;

use inferometer_analysis::{RequirementOutcome, Summary};
use inferometer_report::Files;
use inferometer_report::terminal::Style;
use inferometer_store::{RunDirectory, RunStore};

use crate::arguments::{PageFormat, StoreArguments};
use crate::failure::Failure;
pub(crate) use crate::measurement::seal_summary;
use crate::output;

/// The folder of stored runs: as typed, as the environment says, or `./runs`.
pub(crate) fn store_folder(arguments: &StoreArguments) -> PathBuf {
    let set = || std::env::var_os("INFEROMETER_RUNS").filter(|set| !set.is_empty());
    arguments.folder.clone().or_else(|| set().map(PathBuf::from)).unwrap_or_else(|| "runs".into())
}

/// The store in that folder.
pub(crate) fn store(arguments: &StoreArguments) -> Result<RunStore, Failure> {
    RunStore::open(store_folder(arguments)).map_err(Failure::from_usage)
}

/// Prints a summary as the user wants it.
fn show(summary: &Summary, directory: &RunDirectory, format: PageFormat) -> Result<(), Failure> {
    output::result(&page(summary, directory, &[], format))
}

/// Where a run is stored.
fn files(directory: &RunDirectory) -> Files {
    let path = |name: &str| directory.path().join(name).display().to_string();
    Files {
        run: directory.path().display().to_string(),
        manifest: path("manifest.json"),
        journal: path("requests.journal"),
        summary: path("summary.json"),
    }
}

fn page(
    summary: &Summary,
    directory: &RunDirectory,
    required: &[RequirementOutcome],
    format: PageFormat,
) -> String {
    let files = files(directory);
    match format {
        PageFormat::Json => inferometer_report::json::render(summary, &files, required),
        PageFormat::Vllm => {
            // The block has no place for warnings or failures, and its form is not ours to change.
            talk_of_doubts(summary, directory);
            tell_requirements(required);
            inferometer_interchange::vllm::block::from_summary(
                summary,
                inferometer_report::escape::terminal,
            )
        }
        PageFormat::Page => {
            inferometer_report::terminal::render_judged(summary, &files, required, style())
        }
    }
}

/// Beside a result that has no place for it.
pub(crate) fn talk_of_doubts(summary: &Summary, directory: &RunDirectory) {
    output::talk(inferometer_report::terminal::doubts(summary, &files(directory)).trim_end());
}

pub(crate) fn style() -> Style {
    if output::is_coloured() { Style::Coloured } else { Style::Plain }
}

/// Beside a result that has no place for it.
fn tell_requirements(required: &[RequirementOutcome]) {
    let section = inferometer_report::terminal::requirements(required, Style::Plain);
    if !section.is_empty() {
        output::talk(section.trim_end());
    }
}
