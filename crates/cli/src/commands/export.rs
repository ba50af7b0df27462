//! `inferometer export`: stored results in the formats of other programs.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::tool_result::{Mark, ToolResult};
use inferometer_interchange::export::{self, ExportError};
use inferometer_interchange::vllm::{self, Writing};
use inferometer_interchange::{aiperf, llm_d};
use inferometer_model::Observations;
use inferometer_report::junit::{self, Exported};
use inferometer_store::{RunDirectory, Stored};

use super::store;
use crate::arguments::{ExportArguments, ExportFormat};
use crate::failure::{Failure, Result};
use crate::results::{self, StoredResult};
use crate::{output, push, report_files};

pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode> {
    check(arguments)?;
    let talk = output::talk_unless(arguments.quiet);
    let store = store(&arguments.store)?;
    // Some formats need the records of a run, which an import does not have.
    let needs_run =
        matches!(arguments.format, Some(ExportFormat::Parquet | ExportFormat::VllmDetailed));
    let is_usable = |found: &Stored| !needs_run || !matches!(found, Stored::Import(..));
    let found = |name: &String| match store.find_usable(name, is_usable) {
        Ok(found) if name == "latest" => found.id().to_owned(),
        Ok(_) | Err(_) => name.clone(),
    };
    let names: Vec<String> = arguments.names.iter().map(found).collect();
    let subjects = results::from_names(&store, &names, false, talk)?;
    let results = || -> Vec<ToolResult> { subjects.iter().map(|it| it.result.clone()).collect() };
    push::push(&results(), &arguments.push)?.iter().for_each(|line| talk(line));
    let Some(form) = arguments.format else { return Ok(ExitCode::SUCCESS) };
    let whole = |text: String| vec![(String::new(), text)];
    let each = |document: fn(&ToolResult) -> Result<String, ExportError>| {
        let written = |subject: &StoredResult| {
            let name = file_name(&subject.name, form.into());
            Ok((name, document(&subject.result).map_err(Failure::from_usage)?))
        };
        subjects.iter().map(written).collect::<Result<Vec<_>>>()
    };
    let files = match form {
        ExportFormat::Vllm | ExportFormat::VllmDetailed => {
            let detail = form == ExportFormat::VllmDetailed;
            subjects.iter().map(|subject| vllm_file(subject, detail)).collect::<Result<_, _>>()?
        }
        ExportFormat::Aiperf => each(aiperf::document)?,
        ExportFormat::LlmD => each(llm_d::document)?,
        ExportFormat::Otlp => whole(export::otlp(&results()).map_err(Failure::from_usage)?),
        ExportFormat::Csv => whole(export::csv(&results())),
        ExportFormat::Openmetrics => whole(export::openmetrics(&results())),
        ExportFormat::Bencher => {
            if let Some(warning) = marks_warning(&subjects, &arguments.names) {
                talk(&warning);
            }
            whole(export::bencher(&results()).map_err(Failure::from_usage)?)
        }
        ExportFormat::Junit => {
            // A run has a verdict and SLOs; an import only has its values.
            let exported = subjects.iter().map(|subject| match &subject.run {
                Some((_, summary)) => Exported::Run(summary),
                None => Exported::ToolResult(&subject.result),
            });
            whole(junit::exported(&exported.collect::<Vec<_>>()))
        }
        ExportFormat::Github => {
            let files = export::github(&results()).map_err(Failure::from_usage)?;
            files.map(|(name, text)| (name.to_owned(), text)).into()
        }
        ExportFormat::Parquet => {
            #[cfg(feature = "parquet")]
            for (path, rows) in
                write_tables(path(arguments).unwrap_or_else(|| Path::new(".")), &subjects)?
            {
                talk(&format!("{rows} rows in {}", path.display()));
                print_path(&path)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    put(&files, form, arguments)?;
    Ok(ExitCode::SUCCESS)
}

/// Where the result goes; `None` is standard output.
fn path(arguments: &ExportArguments) -> Option<&Path> {
    arguments.to.as_deref().filter(|path| *path != Path::new(output::STDOUT))
}

/// Refuses flags that contradict each other before anything is read.
fn check(arguments: &ExportArguments) -> Result<()> {
    let Some(form) = arguments.format else { return Ok(()) };
    let name: &str = form.into();
    let path = path(arguments);
    let shown = path.unwrap_or_else(|| Path::new("")).display();
    let to_folder = path.is_some_and(|path| is_folder(path, 1));
    let refusals = [
        (
            arguments.append && !form.is_lines(),
            format!("--append adds lines, and {name} is one whole document"),
            "export all results together, or each into its own file",
        ),
        (
            form == ExportFormat::Parquet && !cfg!(feature = "parquet"),
            "this build writes no Parquet".to_owned(),
            "build it with the feature `parquet`, or export csv",
        ),
        (
            path.is_none() && form.is_folder(),
            format!("{name} is several files, and no folder is named"),
            "name one with --to FOLDER",
        ),
        (
            arguments.append && to_folder,
            format!("--append adds lines to a file, and {shown} is a folder"),
            "name a file with --to, or leave out --append for a file each",
        ),
        (
            form.is_folder() && path.is_some_and(Path::is_file),
            format!("{name} is several files, and {shown} is one"),
            "name a folder with --to",
        ),
        (
            !form.is_folder() && !form.is_of_one() && to_folder,
            format!("{name} is one file, and {shown} is a folder"),
            "name a file with --to",
        ),
    ];
    match refusals.into_iter().find(|(is_refused, ..)| *is_refused) {
        Some((_, message, hint)) => Err(Failure::usage(message).hint(hint)),
        None => Ok(()),
    }
}

/// Prints the documents, or writes them into one file or into files of their own in a folder.
fn put(files: &[(String, String)], form: ExportFormat, arguments: &ExportArguments) -> Result<()> {
    let append = arguments.append;
    let form_name: &str = form.into();
    let goes_into = |path: &Path| {
        form.is_folder() || (form.is_of_one() && !append && is_folder(path, files.len()))
    };
    let text = || files.iter().map(|(_, text)| text.as_str()).collect::<String>();
    match path(arguments) {
        Some(folder) if goes_into(folder) => {
            let mut taken = BTreeSet::new();
            for (name, text) in files {
                let path = folder.join(free_name(name, &mut taken));
                report_files::write_file(&path, text)?;
                print_path(&path)?;
            }
            Ok(())
        }
        _ if form.is_of_one() && !form.is_lines() && files.len() != 1 => Err(Failure::usage(
            format!("there are {} results, and a file of {form_name} holds one", files.len()),
        )
        .hint("name a folder with --to, or one result")),
        None => output::result(&text()).map(drop),
        Some(path) => {
            if append {
                append_lines(path, &text()).map_err(|error| {
                    Failure::usage(format!("{} cannot be added to: {error}", path.display()))
                        .hint("name another file with --to")
                })?;
            } else {
                report_files::write_named(path, &text())?;
            }
            print_path(path)
        }
    }
}

fn print_path(path: &Path) -> Result<()> {
    output::path(path).map(drop)
}

/// Bencher's format has intervals, but no field for other warnings.
fn marks_warning(subjects: &[StoredResult], typed: &[String]) -> Option<String> {
    /// More names than these are counted.
    const NAMED_MAX: usize = 12;
    let marked = subjects.iter().filter(|it| it.result.marks.iter().any(Mark::is_reservation));
    let marked: Vec<&str> = marked.map(|subject| subject.name.as_str()).collect();
    let named = marked.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = match marked.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let are = if marked.len() == 1 { "is not a clean result" } else { "are not clean results" };
    (!marked.is_empty()).then(|| {
        format!(
            "warning: {named}{more} {are}, which the Bencher format cannot express; the marks are \
             in `inferometer export {} --format csv`",
            inferometer_report::escape::terminal(&typed.join(" "))
        )
    })
}

/// A line for each result with the name of its own file, as vLLM's own tools read them. A run of ours
/// is given by vLLM's definitions.
fn vllm_file(subject: &StoredResult, detail: bool) -> Result<(String, String)> {
    let mut result = match &subject.run {
        None => subject.result.clone(),
        Some((_, summary)) if !detail => ToolResult::of_vllm(summary),
        Some((directory, summary)) => {
            let percentiles = ["90", "95", "99"].map(str::to_owned);
            read_run(directory, |observations| {
                ToolResult::of_vllm_summed(summary, observations, &percentiles, detail)
            })?
        }
    };
    result.configuration.clone_from(&subject.result.configuration);
    let writing = Writing { detail, ..Writing::default() };
    let line = vllm::line(&result, &writing).map_err(Failure::from_usage)?;
    let configured = Some(result.configuration.as_str()).filter(|name| !name.is_empty());
    let label = configured.or(result.backend.as_deref()).unwrap_or("inferometer");
    Ok((vllm::file_name(&result, label, None), line + "\n"))
}

/// What is computed from the records of a run; it fails if they could not be read to their end.
fn read_run<T>(directory: &RunDirectory, compute: impl FnOnce(&Observations) -> T) -> Result<T> {
    let stored = directory.read().map_err(Failure::from_usage)?;
    let computed = compute(&stored.observations);
    stored.check_read()?;
    Ok(computed)
}

/// Writes Parquet tables into a folder; they get their names when all are complete. Gives their
/// paths and how many rows each has.
#[cfg(feature = "parquet")]
fn write_tables(
    folder: &Path,
    subjects: &[StoredResult],
) -> Result<Vec<(std::path::PathBuf, u64)>> {
    use std::io::BufWriter;

    use inferometer_interchange::export::parquet::{FILES, ParquetError, Tables};
    use inferometer_store::OutputFile;

    fn unwritten(path: &Path, why: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{} cannot be written: {why}", path.display()))
            .hint("name another folder with --to")
    }
    std::fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
    let paths = FILES.map(|table| folder.join(table));
    let [requests, tokens, telemetry] = paths
        .each_ref()
        .map(|path| OutputFile::create(path).map_err(|error| unwritten(path, error)));
    let mut files = [requests?, tokens?, telemetry?];
    let refused = |error: ParquetError| match error {
        ParquetError::NoRequests { .. } => Failure::usage(error.to_string()),
        ParquetError::Write(error) => unwritten(&paths[0], error),
    };
    let mut tables = Tables::new(files.each_mut().map(BufWriter::new)).map_err(refused)?;
    for subject in subjects {
        match &subject.run {
            Some((directory, _)) => {
                read_run(directory, |observations| tables.add_run(directory.id(), observations))?
            }
            None => tables.add_result(&subject.result),
        }
        .map_err(refused)?;
    }
    let rows = tables.finish().map_err(refused)?;
    for (file, path) in files.into_iter().zip(&paths) {
        file.commit().map_err(|error| unwritten(path, error))?;
    }
    Ok(paths.into_iter().zip(rows).collect())
}

/// vLLM itself leaves no line feed at the end of what it appends.
fn append_lines(path: &Path, lines: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).read(true).append(true).open(path)?;
    let mut last = [b'\n'];
    if 0 < file.metadata()?.len() {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let before = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{before}{lines}").as_bytes())
}

/// Whether a path is a folder, or is to be one: it is written as one, or several results go to a
/// name without an ending.
fn is_folder(path: &Path, results: usize) -> bool {
    let is_free = !path.is_file() && path.extension().is_none();
    let ends_in_separator =
        path.to_str().is_some_and(|path| path.ends_with(std::path::is_separator));
    path.is_dir() || ends_in_separator || (1 < results && is_free)
}

/// Results may have one name: vLLM's is made of the second and the load.
fn free_name(name: &str, taken: &mut BTreeSet<String>) -> String {
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
    // File systems take 255 bytes, and a letter may be four of them.
    let name: String = result.chars().take(50).map(plain).collect();
    let name = name.trim_start_matches('.');
    format!("{}.{form}.json", if name.is_empty() { "result" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_after_a_file_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, "{\"by\":\"vllm\"}").unwrap();
        append_lines(&path, "{\"a\":1}\n").unwrap();
        append_lines(&path, "{\"b\":2}\n").unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found, "{\"by\":\"vllm\"}\n{\"a\":1}\n{\"b\":2}\n");
    }

    #[test]
    fn results_of_one_name_have_files_of_their_own() {
        let mut taken = BTreeSet::new();
        let names =
            ["a.json", "a.json", "b.json", "a.json"].map(|name| free_name(name, &mut taken));
        assert_eq!(names, ["a.json", "a-2.json", "b.json", "a-3.json"]);
    }

    /// Faults: 93.
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
