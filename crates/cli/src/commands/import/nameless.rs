//! What a configuration is called of which its file says nothing: after the file, or after its
//! folder where every file of the kind has the same name. Two files do not share a name, or their
//! results would be taken for repeats of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use inferometer_store::ImportListing;

use super::{PIPED, PIPED_NAME};

const CHARS_MAX: usize = 60;

/// The names while files are imported.
#[derive(Debug, Default)]
pub(super) struct Nameless {
    taken: BTreeSet<String>,
    /// By what they stand for: the files of one server's sweep are one configuration.
    given: BTreeMap<PathBuf, String>,
}

impl Nameless {
    /// Without those of earlier imports.
    pub(super) fn beside(imports: &[ImportListing]) -> Self {
        let named = imports.iter().filter_map(|listing| listing.manifest.as_ref().ok());
        let taken = named.filter_map(|manifest| manifest.reading.nameless.clone()).collect();
        Self { taken, given: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, path: &Path) -> String {
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
    name.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
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
            assert_eq!(names.of(Path::new(path)), expected, "{path}");
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
            assert_eq!(names.of(Path::new(path)), expected, "{path}");
        }
    }
}
