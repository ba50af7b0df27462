//! Formats whose documents are lines: printed, put into a file, or added to one.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use inferometer_analysis::sheet::{Sheet, SheetRate};
use inferometer_interchange::export::vllm::{self, FileName, Writing};

use super::subject::Subject;
use super::{one_each, say, unmade, whole};
use crate::arguments::ExportArguments;
use crate::failure::Failure;

/// A line for each result, or a file for each in a folder, as vLLM's own tools read them.
pub(super) fn vllm(
    subjects: &[Subject],
    detail: bool,
    arguments: &ExportArguments,
) -> Result<(), Failure> {
    let writing = Writing { detail, ..Writing::default() };
    let mut results = Vec::new();
    for subject in subjects {
        let sheet = subject.vllm_sheet(detail)?;
        let line = vllm::line(&sheet, &writing).map_err(unmade)?;
        results.push((file_name(&sheet), line + "\n"));
    }
    match &arguments.to {
        Some(path) if !arguments.append && one_each::is_folder(path, results.len()) => {
            one_each::in_folder(path, &results)
        }
        _ => {
            let lines: String = results.into_iter().map(|(_, line)| line).collect();
            put(&lines, arguments)
        }
    }
}

/// Printed, the whole of a file, or more lines of one.
pub(super) fn put(lines: &str, arguments: &ExportArguments) -> Result<(), Failure> {
    match &arguments.to {
        Some(path) if arguments.append => {
            append(path, lines).map_err(|error| {
                Failure::usage(format!("{} cannot be added to: {error}", path.display()))
                    .hint("name another file with --to")
            })?;
            say(path)
        }
        _ => whole(lines, arguments),
    }
}

/// vLLM itself leaves no line feed at the end of what it appends.
fn append(path: &Path, lines: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    let mut last = [b'\n'];
    if 0 < file.metadata()?.len() {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let before = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{before}{lines}").as_bytes())
}

fn file_name(sheet: &Sheet) -> String {
    let configured = Some(sheet.configuration.as_str()).filter(|name| !name.is_empty());
    FileName {
        label: configured.or(sheet.backend.as_deref()).unwrap_or("inferometer"),
        rate: sheet.request_rate.unwrap_or(SheetRate::Unlimited),
        ramp: None,
        max_concurrency: sheet.max_concurrency,
        model: sheet.model.as_deref().unwrap_or_default(),
        date: &sheet.started.as_deref().map(vllm::date).unwrap_or_default(),
    }
    .file_name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_after_a_file_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, "{\"by\":\"vllm\"}").unwrap();
        append(&path, "{\"a\":1}\n").unwrap();
        append(&path, "{\"b\":2}\n").unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found, "{\"by\":\"vllm\"}\n{\"a\":1}\n{\"b\":2}\n");
    }
}
