//! `inferometer matrix`: deployments that are put up, measured and taken down.

use std::process::ExitCode;

use inferometer_model::campaign::{Question, SetManifest};
use inferometer_store::{RunStore, SetDirectory, Stored};

use super::store;
use super::sweep::beside_resume;
use crate::arguments::{MatrixArguments, ResultArguments};
use crate::failure::Failure;
use crate::matrix::{self, Way, Wish};
use crate::secrets::Secrets;

pub(crate) fn run(arguments: &MatrixArguments) -> Result<ExitCode, Failure> {
    if let Some(name) = &arguments.resume {
        return resume(arguments, name);
    }
    Err(Failure::internal("`matrix` is not built yet"))
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
    let wish = Wish { retry_failed: arguments.retry_failed, ..Wish::default() };
    go_on(&store, &set, &wish, results)
}

/// Goes on with a set that is a matrix. Keys are stored nowhere, so they are read again where they were
/// read first.
pub(super) fn go_on(
    store: &RunStore,
    set: &SetDirectory,
    wish: &Wish,
    results: &ResultArguments,
) -> Result<ExitCode, Failure> {
    let manifest = set.manifest().map_err(|error| Failure::usage(error.to_string()))?;
    if !is_matrix(&manifest) {
        return Err(Failure::usage(format!("{} is no matrix", set.id()))
            .hint(format!("go on with: {}", crate::set::way_on(set))));
    }
    let way = if manifest.simulated {
        Way::Virtual
    } else {
        let key_file = manifest.key_files.first().and_then(Option::as_deref);
        Way::Live(Box::new(Secrets::read(key_file, &[])?))
    };
    matrix::resume(store, set, &way, wish, results)
}

pub(super) fn is_matrix(manifest: &SetManifest) -> bool {
    matches!(manifest.campaign.question, Question::Matrix(_))
}
