//! `inferometer matrix`: deployments that are put up, measured and taken down.

use std::num::NonZeroU32;
use std::process::ExitCode;

use inferometer_model::campaign::{Matrix, Question, SetManifest};
use inferometer_store::{RunStore, SetDirectory, Stored};

use super::store;
use super::sweep::{beside_resume, check_headers};
use crate::arguments::{MatrixArguments, ResultArguments};
use crate::failure::Failure;
use crate::matrix::{self, Only, Selection, Way, Wish, listed, outline, plan, shown};
use crate::output;
use crate::secrets::Secrets;
use crate::set::way_on;

pub(crate) fn run(arguments: &MatrixArguments) -> Result<ExitCode, Failure> {
    let results = &arguments.results;
    if arguments.list {
        output::result(&listed(results.page.format())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.show {
        output::result(shown(name)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.resume {
        return resume(arguments, name);
    }
    let plan = plan(arguments)?;
    let secrets = Box::new(plan.secrets.clone());
    let way = if arguments.virtual_time { Way::Virtual } else { Way::Live(secrets) };
    if results.dry_run {
        matrix::check(&plan.campaign, &way, results)?;
        output::result(&outline(&plan, results)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    matrix::begin(plan, &way, results)
}

fn resume(arguments: &MatrixArguments, name: &str) -> Result<ExitCode, Failure> {
    let results = &arguments.results;
    let said = [
        ("a matrix", arguments.matrix.is_some()),
        ("--virtual", arguments.virtual_time),
        ("--dry-run", results.dry_run),
    ];
    if let Some((flag, _)) = said.into_iter().find(|(_, is_said)| *is_said) {
        return Err(beside_resume(flag));
    }
    let store = store(&results.store)?;
    let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
    let Stored::Set(set) = found else {
        return Err(Failure::usage(format!("{name} is no set, and --resume goes on with one"))
            .hint("`inferometer runs` lists the sets"));
    };
    let manifest = set.manifest().map_err(|error| Failure::usage(error.to_string()))?;
    let Question::Matrix(matrix) = &manifest.campaign.question else {
        return Err(Failure::usage(format!("{} is no matrix", set.id()))
            .hint(format!("go on with: {}", way_on(&set))));
    };
    let lanes = arguments
        .lanes
        .map(|lanes| NonZeroU32::new(lanes).ok_or_else(|| Failure::usage("--lanes is zero")));
    let wish = Wish {
        retry_failed: arguments.retry_failed,
        only: chosen(&arguments.only, matrix)?,
        lanes: lanes.transpose()?,
    };
    let way = way(&manifest, &arguments.headers)?;
    matrix::resume(&store, &set, &way, &wish, results)
}

/// The cells and loads that were asked for; `None`: all.
fn chosen(only: &[String], matrix: &Matrix) -> Result<Option<Only>, Failure> {
    if only.is_empty() {
        return Ok(None);
    }
    let selection = Selection::read(only, matrix)?;
    let cells = (0_u32..).zip(&matrix.cells).filter(|(_, cell)| selection.takes(cell));
    let levels = matrix.levels.iter().filter(|level| selection.takes_load(level));
    Ok(Some(Only {
        cells: cells.map(|(place, _)| place).collect(),
        levels: levels.copied().collect(),
    }))
}

/// Keys and the values of headers are stored nowhere, so they are read again.
fn way(manifest: &SetManifest, headers: &[String]) -> Result<Way, Failure> {
    if manifest.simulated {
        return Ok(Way::Virtual);
    }
    let key_file = manifest.key_files.first().and_then(Option::as_deref);
    let secrets = Secrets::read(key_file, headers)?;
    for condition in &manifest.campaign.conditions {
        check_headers(&secrets, &condition.spec.header_names)?;
    }
    Ok(Way::Live(Box::new(secrets)))
}

/// Goes on with a matrix by the way that any set can be gone on with.
pub(super) fn go_on(
    store: &RunStore,
    set: &SetDirectory,
    manifest: &SetManifest,
    headers: &[String],
    results: &ResultArguments,
) -> Result<ExitCode, Failure> {
    matrix::resume(store, set, &way(manifest, headers)?, &Wish::default(), results)
}

pub(super) fn is_matrix(manifest: &SetManifest) -> bool {
    matches!(manifest.campaign.question, Question::Matrix(_))
}
