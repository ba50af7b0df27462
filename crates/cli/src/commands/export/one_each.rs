//! Formats that hold one result in a file: several of them want a folder.

use std::collections::BTreeSet;
use std::path::Path;

use inferometer_analysis::sheet::Sheet;
use inferometer_interchange::export::ExportError;

use super::subject::Subject;
use super::{say, unmade, whole};
use crate::arguments::ExportArguments;
use crate::failure::Failure;
use crate::report_files;

/// One result printed or put into a file; any number into a folder.
pub(super) fn put(
    subjects: &[Subject],
    document: fn(&Sheet) -> Result<String, ExportError>,
    arguments: &ExportArguments,
) -> Result<(), Failure> {
    let mut results = Vec::new();
    for subject in subjects {
        let text = document(&subject.sheet()).map_err(unmade)?;
        results.push((file_name(subject.name(), arguments.format.name()), text));
    }
    match (&arguments.to, &results[..]) {
        (Some(path), results) if is_folder(path, results.len()) => in_folder(path, results),
        (_, [(_, only)]) => whole(only, arguments),
        (_, several) => Err(Failure::usage(format!(
            "there are {} results, and a file of {} holds one",
            several.len(),
            arguments.format.name()
        ))
        .hint("name a folder with --to, or one result")),
    }
}

/// Whether a path is a folder, or is to be one: it is written as one, or several results go to a
/// name without an ending.
pub(super) fn is_folder(path: &Path, results: usize) -> bool {
    let is_free = !path.is_file() && path.extension().is_none();
    path.is_dir() || is_written_as_folder(path) || (1 < results && is_free)
}

/// Whether its last letter is a separator.
pub(super) fn is_written_as_folder(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(std::path::is_separator))
}

/// A file for each of the named texts.
pub(super) fn in_folder(folder: &Path, results: &[(String, String)]) -> Result<(), Failure> {
    let mut taken = BTreeSet::new();
    for (name, text) in results {
        let path = folder.join(free(name, &mut taken));
        report_files::write_file(&path, text)?;
        say(&path)?;
    }
    Ok(())
}

/// Results may have one name: vLLM's is made of the second and the load.
fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    let numbered = (2..).map(|number| format!("{stem}-{number}.json"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let found = names.find(|name| taken.insert(name.clone()));
    found.unwrap_or_else(|| name.to_owned())
}

/// With the form, so that one does not replace another; no name leads out of the folder or hides
/// there.
fn file_name(result: &str, form: &str) -> String {
    let plain = |letter: char| {
        if letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.') { letter } else { '-' }
    };
    let name: String = result.chars().take(NAME_LETTERS_MAX).map(plain).collect();
    let name = name.trim_start_matches('.');
    format!("{}.{form}.json", if name.is_empty() { "result" } else { name })
}

/// File systems take 255 bytes, and a letter may be four of them.
const NAME_LETTERS_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_one_name_have_files_of_their_own() {
        let mut taken = BTreeSet::new();
        let names = ["a.json", "a.json", "b.json", "a.json"].map(|name| free(name, &mut taken));
        assert_eq!(names, ["a.json", "a-2.json", "b.json", "a-3.json"]);
    }

    #[test]
    fn a_name_stays_in_its_folder() {
        let name = |result: &str| file_name(result, "aiperf");
        assert_eq!(name("20260101-000000-abcd/3"), "20260101-000000-abcd-3.aiperf.json");
        assert_eq!(name("../../etc/passwd"), "-..-etc-passwd.aiperf.json");
        assert_eq!(name("..."), "result.aiperf.json");
        assert!(name(&"ü".repeat(900)).len() < 255);
    }

    #[test]
    fn several_results_make_a_folder_of_a_name_without_an_ending() {
        let new = |path: &str, results| is_folder(&Path::new("not-there").join(path), results);
        assert!(new("results", 2) && new("results.d/", 1));
        assert!(!new("results", 1) && !new("results.json", 2));
    }
}
