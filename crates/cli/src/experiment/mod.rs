//! The experiment file, and how it is put together with flags.
//!
//! Layers say what is measured: configuration that was found, the file, then `--set`, then flags; the
//! upper one wins. All are trees of the same shape, the one that the schema describes, so that whatever
//! a file can say a flag can change.

pub(crate) mod config;
pub(crate) mod file;
mod layer;
pub(crate) mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use inferometer_model::endpoint::Api;
use inferometer_model::spec::{Grammar, SourceTable};
use serde_json::{Map, Value, json};

use crate::arguments::{Experiment, ExperimentArguments};
use crate::failure::{Failure, Result};
pub(crate) use layer::{Layer, Origins};
pub(crate) use schema::{Lists, nearest};

/// All that was typed, still to be laid over something or read. `server` is a file that says which
/// server is meant, and nothing else.
pub(crate) fn said(arguments: &ExperimentArguments, server: Option<&Path>) -> Result<Layer> {
    said_over(arguments, server, config::layer(arguments, None)?)
}

/// The same beside a suite, whose workloads no configuration may change.
pub(crate) fn said_of_server(arguments: &ExperimentArguments) -> Result<Layer> {
    said_over(arguments, None, config::layer(arguments, Some(config::SERVER_TABLES))?)
}

fn said_over(
    arguments: &ExperimentArguments,
    server: Option<&Path>,
    mut said: Layer,
) -> Result<Layer> {
    let (file, url) = places(arguments)?;
    if let Some(path) = file {
        said.lay(file::read_named(&path)?)?;
    }
    if let Some(path) = server {
        said.lay(server_of(path)?)?;
    }
    if !arguments.sets.is_empty() {
        said.lay(file::read_sets(&arguments.sets, &schema::document())?)?;
    }
    said.lay(flags(arguments, url)?)?;
    config::check_key(&said, arguments)?;
    config::remember(&said);
    Ok(said)
}

/// The first flag or file that says something about the experiment, keys apart: they are stored
/// nowhere and must be given again.
pub(crate) fn first_said(arguments: &ExperimentArguments) -> Result<Option<String>> {
    let file = arguments.experiment.as_ref().map(|_| "--experiment".to_owned());
    let set = arguments.sets.first().map(|_| "--set".to_owned());
    let url = arguments.url.as_ref().map(|_| "--url".to_owned());
    if let Some(said) = arguments.places.first().cloned().or(file).or(set).or(url) {
        return Ok(Some(said));
    }
    let mut bare = arguments.clone();
    bare.tables.target.api_key_file = None;
    bare.tables.repeat.restart_timeout = None;
    let tree = flags(&bare, None)?.tree;
    let path = config::leaves(&tree).into_iter().next().map(|(path, _)| path);
    Ok(path.map(|path| flag_at(&path).unwrap_or(path)))
}

/// A file that names a server beside others may say no more than that.
fn server_of(path: &Path) -> Result<Layer> {
    let layer = file::read(path)?;
    let mut tables = layer.tree.as_object().into_iter().flat_map(Map::keys);
    match tables.find(|table| !matches!(table.as_str(), "target" | "engine" | "deploy")) {
        None => Ok(layer),
        Some(table) => {
            let what = format!(
                "[{table}] does not belong here: the file of a --target has [target], [engine] or \
                 [deploy] only"
            );
            Err(layer.origins.failure(table, &what))
        }
    }
}

/// Positional arguments are a URL and a file, in any order: the file and the URL that were named.
fn places(arguments: &ExperimentArguments) -> Result<(Option<PathBuf>, Option<String>)> {
    let (files, mut urls): (Vec<String>, Vec<String>) =
        arguments.places.iter().cloned().partition(|place| is_file(place));
    urls.extend(arguments.url.clone());
    let named = arguments.experiment.iter().map(|path| format!("--experiment {}", path.display()));
    let files: Vec<String> = files.into_iter().chain(named).collect();
    if let [first, second, ..] = &files[..] {
        let what = format!("{first} and {second} are both experiment files; give one");
        return Err(Failure::usage(what));
    }
    if let [first, second, ..] = &urls[..] {
        return Err(Failure::usage(format!("{first} and {second} are two servers; give one"))
            .hint("several are measured side by side by: inferometer sweep --target NAME=URL"));
    }
    let file = arguments.places.iter().find(|place| is_file(place)).map(PathBuf::from);
    Ok((file.or_else(|| arguments.experiment.clone()), urls.pop()))
}

/// Whether a place is an experiment file and not a URL.
pub(crate) fn is_file(place: &str) -> bool {
    let path = Path::new(place);
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
        || (!place.contains("://") && path.is_file())
}

/// What was typed as flags, in the shape of a file.
fn flags(arguments: &ExperimentArguments, url: Option<String>) -> Result<Layer> {
    let mut tree = serde_json::to_value(&arguments.tables)
        .map_err(|error| Failure::internal(format!("flags: {error}")))?;
    if let Some(url) = url {
        if let (None, Some(api)) = (arguments.tables.target.api, Api::from_path(&url)) {
            tree["target"]["api"] = api.name().into();
        }
        tree["target"]["url"] = url.into();
    }
    // A stored spec has the step in another form than a file.
    if let Some(step) = arguments.tables.engine.step {
        tree["engine"]["step"] = step.write().into();
    }
    if let Some(time) = &arguments.max_seconds {
        tree["load"]["duration"] = time.write().into();
    }
    if arguments.no_stream {
        tree["workload"]["stream"] = false.into();
    }
    if !arguments.slos.is_empty() {
        tree["slo"]["slos"] = json!(arguments.slos);
    }
    let label = arguments.label.iter().map(|label| format!("label={label}"));
    tree["metadata"] =
        Value::Object(facts(&arguments.facts.iter().cloned().chain(label).collect::<Vec<_>>())?);
    layer::prune(&mut tree);
    schema::check(&tree, &schema::document(), "", Lists::InOrder).map_err(|(path, what)| {
        let flag = flag_at(&path).unwrap_or_else(|| "a flag".to_owned());
        Failure::usage(format!("{flag}: {what}"))
    })?;
    Ok(Layer { tree, ..Layer::default() })
}

/// The flag that sets a value, or the list around it.
pub(crate) fn flag_at(path: &str) -> Option<String> {
    schema::flag(path).or_else(|| flag_at(path.rsplit_once('.')?.0))
}

fn facts(typed: &[String]) -> Result<Map<String, Value>> {
    let fact = |pair: &String| match pair.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.into())),
        _ => Err(Failure::usage(format!("--metadata {pair} is not of the form key=value"))),
    };
    typed.iter().map(fact).collect()
}

/// The merged tree as tables.
pub(crate) fn experiment(said: &Layer) -> Result<Experiment> {
    // Keys of a flattened table have no path of their own in errors, so these are read first.
    said.table::<SourceTable>("workload")?;
    for part in 0..said.tree["workload"]["mix"].as_array().map_or(0, Vec::len) {
        said.table::<SourceTable>(&format!("workload.mix.{part}"))?;
    }
    said.table("")
}
