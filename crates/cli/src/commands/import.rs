//! `inferometer import`: results of other tools become results that every command can use.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inferometer_interchange::{Import, read_file};
use inferometer_load::SystemClock;
use inferometer_model::import::{ForeignFile, ImportManifest, ImportReading};
use inferometer_report::escape::terminal;
use inferometer_store::{FOREIGN_BYTES_MAX, RunStore, read_at_most};
use serde_json::json;

use super::store;
use crate::arguments::ImportArguments;
use crate::failure::{Failure, Result};
use crate::output;
use crate::results::{self, Mapped};

/// What stands for standard input.
const PIPED: &str = "-";
const PIPED_NAME: &str = "standard input";

pub(crate) fn run(arguments: &ImportArguments) -> Result<ExitCode> {
    let is_piped = |path: &&PathBuf| path.as_path() == Path::new(PIPED);
    if 1 < arguments.files.iter().filter(is_piped).count() {
        return Err(Failure::usage("`-` is named twice, and standard input can be read once"));
    }
    if arguments.names.iter().any(|name| name.trim().is_empty()) {
        return Err(Failure::usage("--name is empty")
            .hint("leave it out to keep the name in the file, or name the configuration"));
    }
    let store = store(&arguments.store)?;
    store.check_writable().map_err(Failure::from_usage)?;
    let mut names = arguments.names.as_slice();
    // The names of earlier imports are taken.
    let taken = manifests(&store)?.filter_map(|(_, manifest)| manifest.reading.nameless).collect();
    let mut nameless = Nameless { taken, ..Nameless::default() };
    let (mut imported, mut failed) = (Vec::new(), Vec::new());
    let (mut pages, mut exit) = (0, ExitCode::SUCCESS);
    for path in &arguments.files {
        // With --repeats what has no name is one configuration, in whichever file.
        let own_name = (!arguments.repeats).then(|| nameless.name_for(path));
        let asked =
            ImportReading { names: names.to_vec(), repeats: arguments.repeats, nameless: own_name };
        match take(&store, path, asked, arguments.quiet) {
            Ok(mapped) => {
                names = &names[mapped.manifest.reading.names.len()..];
                if arguments.json {
                    imported.push(mapped.json()?);
                } else {
                    let between = if pages == 0 { "" } else { "\n" };
                    output::result(&format!("{between}{}", mapped.page()))?;
                }
                pages += 1;
            }
            // The other files are as good without it.
            Err(failure) => {
                exit = output::report(&failure);
                let file = path.display().to_string();
                failed.push(json!({ "file": file, "reason": failure.message() }));
            }
        }
    }
    if arguments.json {
        output::json(
            &json!({ "schema": "inferometer.imports/1", "imports": imported, "failed": failed }),
        )?;
    }
    if !names.is_empty() {
        output::talk(&format!(
            "warning: --name {} names no configuration: there {}",
            terminal(&names.join(", ")),
            match arguments.names.len() - names.len() {
                0 => "is none".to_owned(),
                1 => "is only 1".to_owned(),
                found => format!("are only {found}"),
            }
        ));
    }
    Ok(exit)
}

/// The readable manifests of earlier imports, with their ids.
fn manifests(store: &RunStore) -> Result<impl Iterator<Item = (String, ImportManifest)>> {
    let imports = store.list()?.imports.into_iter();
    Ok(imports.filter_map(|it| Some((it.directory.id().to_owned(), it.manifest?))))
}

/// Maps a file, and keeps it only when there is a result in it.
fn take(store: &RunStore, path: &Path, asked: ImportReading, quiet: bool) -> Result<Mapped> {
    let (name, foreign) = read(path)?;
    let of_file = |failure: Failure| failure.about(&path.display().to_string());
    let (import, reading) = map(&name, &foreign, asked).map_err(of_file)?;
    let sha256 = results::sha256(&foreign);
    let before = manifests(store)?.find(|(_, manifest)| manifest.file.sha256 == sha256);
    if let Some((id, _)) = before.filter(|_| !quiet) {
        output::talk(&format!("note: the same file was imported before, as {id}"));
    }
    let file = ForeignFile { name, sha256, bytes: foreign.len() as u64 };
    let realtime_ns = SystemClock::new().anchor().realtime_ns;
    let directory = store.create_import(file, reading, realtime_ns, &foreign)?;
    directory.write_summary(&results::summary_of(&import)?)?;
    let manifest = directory.manifest()?;
    Ok(Mapped { directory, manifest, import })
}

/// The name of a file without its folder, and its bytes.
pub(super) fn read(path: &Path) -> Result<(String, Vec<u8>)> {
    let shown = path.display();
    if path == Path::new(PIPED) {
        let mut bytes = Vec::new();
        let mut piped = std::io::stdin().lock().take(FOREIGN_BYTES_MAX + 1);
        piped
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
        if FOREIGN_BYTES_MAX < bytes.len() as u64 {
            return Err(Failure::usage(format!(
                "standard input is longer than {FOREIGN_BYTES_MAX} bytes; split it"
            )));
        }
        return Ok((PIPED_NAME.to_owned(), bytes));
    }
    if path.is_dir() {
        return Err(Failure::usage(format!("{shown} is a folder"))
            .hint("name the result files in it; runs measured here need no import"));
    }
    let bytes = read_at_most(path, FOREIGN_BYTES_MAX)
        .map_err(Failure::from_usage)?
        .ok_or_else(|| Failure::usage(format!("there is no {shown}")))?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok((name.to_string_lossy().into_owned(), bytes))
}

/// The file's results, and the reading with the names that its configurations took.
fn map(name: &str, foreign: &[u8], asked: ImportReading) -> Result<(Import, ImportReading)> {
    let map =
        |reading: &ImportReading| read_file(name, foreign, reading).map_err(Failure::from_usage);
    let unnamed = ImportReading { names: Vec::new(), ..asked.clone() };
    let import = map(&unnamed)?;
    if asked.names.is_empty() {
        return Ok((import, unnamed));
    }
    let configurations: BTreeSet<&str> =
        import.results().map(|sheet| sheet.configuration.as_str()).collect();
    // The names behind those belong to the next file.
    let names = asked.names.iter().take(configurations.len()).cloned().collect();
    let reading = ImportReading { names, ..asked };
    Ok((map(&reading)?, reading))
}

/// The names while files are imported.
#[derive(Debug, Default)]
struct Nameless {
    taken: BTreeSet<String>,
    /// By what they stand for: the files of one server's sweep are one configuration.
    given: BTreeMap<PathBuf, String>,
}

impl Nameless {
    fn name_for(&mut self, path: &Path) -> String {
        if path == Path::new(PIPED) {
            return self.free(Path::new(PIPED_NAME));
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let subject = subject(&path);
        if let Some(name) = self.given.get(&subject) {
            return name.clone();
        }
        let name = self.free(&subject);
        self.taken.insert(name.clone());
        self.given.insert(subject, name.clone());
        name
    }

    fn free(&self, subject: &Path) -> String {
        let word = |path: Option<&OsStr>| path.map(|name| name.to_string_lossy().into_owned());
        let own = word(subject.file_name()).unwrap_or_default();
        let own = short(
            own.strip_prefix("SERVE-").map_or(own.as_str(), |own| own.trim_start_matches('-')),
        );
        let folder = word(subject.parent().and_then(Path::file_name));
        let with_folder = folder.map(|folder| format!("{}/{own}", short(&folder)));
        let numbered = (2_u64..).map(|number| format!("{own} ({number})"));
        let mut names = std::iter::once(own.clone()).chain(with_folder).chain(numbered);
        names.find(|name| !self.taken.contains(name)).unwrap_or(own)
    }
}

/// What a file's results are of: the file itself; of a sweep of `vllm bench`, the server, whose
/// folders have other loads beside it.
fn subject(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_of_folder = name == "summary.json" || name.starts_with("run=");
    let Some(folder) = path.parent().filter(|folder| is_of_folder && folder.file_name().is_some())
    else {
        return path.to_owned();
    };
    let combination = folder.file_name().unwrap_or_default().to_string_lossy();
    match folder.parent().filter(|experiment| experiment.file_name().is_some()) {
        Some(experiment) if combination.starts_with("BENCH-") => experiment.to_owned(),
        Some(experiment) if combination.starts_with("SERVE-") => {
            experiment.join(combination.split("-BENCH-").next().unwrap_or_default())
        }
        Some(_) | None => folder.to_owned(),
    }
}

fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_and_no_two_share_a_name() {
        let mut names = Nameless::default();
        names.taken.insert("old.json".to_owned());
        for (path, expected) in [
            ("/no/a/results.json", "results.json"),
            ("/no/b/results.json", "b/results.json"),
            ("/no/b/results.json", "b/results.json"),
            ("/more/b/results.json", "results.json (2)"),
            ("/old.json", "old.json (2)"),
            ("-", "standard input"),
        ] {
            assert_eq!(names.name_for(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn the_files_of_a_sweep_are_named_after_its_server() {
        let mut names = Nameless::default();
        for (path, expected) in [
            ("/no/sw/one/BENCH--low/summary.json", "one"),
            ("/no/sw/one/BENCH--high/run=0.json", "one"),
            ("/no/sw/one/SERVE--big-BENCH--low/summary.json", "big"),
            ("/no/sw/one/SERVE--big-BENCH--high/summary.json", "big"),
            ("/no/sw/one/SERVE--small-BENCH--high/summary.json", "small"),
            ("/no/other/one/BENCH--low/summary.json", "other/one"),
            ("/no/tuned/summary.json", "tuned"),
        ] {
            assert_eq!(names.name_for(Path::new(path)), expected, "{path}");
        }
    }
}
