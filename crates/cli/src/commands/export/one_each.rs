//! Formats that hold one result in a file: several of them want a folder.

use std::collections::BTreeSet;
use std::path::Path;

use inferometer_analysis::sheet::Sheet;
use inferometer_interchange::export::ExportError;

use super::{say, unmade, whole};
use crate::arguments::ExportArguments;
use crate::failure::Failure;
use crate::report_files;

/// One result printed or put into a file; any number into a folder that exists.
pub(super) fn put(
    sheets: &[Sheet],
    document: fn(&Sheet) -> Result<String, ExportError>,
    arguments: &ExportArguments,
) -> Result<(), Failure> {
    let mut results = Vec::new();
    for sheet in sheets {
        let text = document(sheet).map_err(unmade)?;
        results.push((file_name(&sheet.source.name), text));
    }
    match (&arguments.to, &results[..]) {
        (Some(path), results) if path.is_dir() => in_folder(path, results),
        (_, [(_, only)]) => whole(only, arguments),
        (_, several) => Err(Failure::usage(format!(
            "there are {} results, and a file of {} holds one",
            several.len(),
            arguments.format.name()
        ))
        .hint("name a folder that exists with --to, or one result")),
    }
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

/// A name comes from a file: it must not lead out of the folder, nor hide there.
fn file_name(result: &str) -> String {
    let plain = |letter: char| {
        if letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.') { letter } else { '-' }
    };
    let name: String = result.chars().take(NAME_LETTERS_MAX).map(plain).collect();
    let name = name.trim_start_matches('.');
    format!("{}.json", if name.is_empty() { "result" } else { name })
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
        assert_eq!(file_name("20260101-000000-abcd/3"), "20260101-000000-abcd-3.json");
        assert_eq!(file_name("../../etc/passwd"), "-..-etc-passwd.json");
        assert_eq!(file_name("..."), "result.json");
        assert!(file_name(&"ü".repeat(900)).len() < 255);
    }
}
