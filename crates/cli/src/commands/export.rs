//! `inferometer export`: stored results in the formats of other programs.

mod subject;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::tool_result::{Mark, ResultRate, ToolResult};
use inferometer_interchange::export::vllm::{self, FileName, Writing};
use inferometer_interchange::export::{
    ExportError, aiperf, bencher, csv, github, llm_d, openmetrics, otlp,
};
use inferometer_report::junit;

use self::subject::Subject;
use super::store;
use crate::arguments::{ExportArguments, ExportFormat};
use crate::failure::Failure;
use crate::{output, report_files};

pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    check(arguments)?;
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let store = store(&arguments.store)?;
    let subjects = subject::read(&store, &arguments.names, talk)?;
    let sheets = || -> Vec<ToolResult> { subjects.iter().map(Subject::sheet).collect() };
    match arguments.format {
        ExportFormat::Vllm => put_vllm(&subjects, false, arguments)?,
        ExportFormat::VllmDetailed => put_vllm(&subjects, true, arguments)?,
        ExportFormat::Aiperf => put_each(&subjects, aiperf::document, arguments)?,
        ExportFormat::LlmD => put_each(&subjects, llm_d::document, arguments)?,
        ExportFormat::Otlp => put_lines(&otlp::render(&sheets()).map_err(unmade)?, arguments)?,
        ExportFormat::Csv => whole(&csv::render(&sheets()), arguments)?,
        ExportFormat::Openmetrics => whole(&openmetrics::render(&sheets()), arguments)?,
        ExportFormat::Bencher => {
            let sheets = sheets();
            if let Some(warning) = of_marks(&subjects, &sheets, &arguments.names) {
                talk(&warning);
            }
            whole(&bencher::render(&sheets).map_err(unmade)?, arguments)?;
        }
        ExportFormat::Junit => whole(&of_junit(&subjects), arguments)?,
        ExportFormat::Github => files(&github::render(&sheets()).map_err(unmade)?, arguments)?,
        ExportFormat::Parquet => parquet(&subjects, arguments, talk)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
fn unmade(error: ExportError) -> Failure {
    Failure::usage(error.to_string())
}

/// Refuses what contradicts itself before anything is read.
fn check(arguments: &ExportArguments) -> Result<(), Failure> {
    let form = arguments.format;
    if arguments.append && !form.is_lines() {
        return Err(Failure::usage(format!(
            "--append adds lines, and {} is one whole document",
            form.name()
        ))
        .hint("export all results together, or into files of their own"));
    }
    if form == ExportFormat::Parquet && !cfg!(feature = "parquet") {
        return Err(Failure::usage("this build writes no Parquet")
            .hint("build it with the feature `parquet`, or export csv"));
    }
    match &arguments.to {
        None if form.is_folder() => {
            Err(Failure::usage(format!("{} is several files, and no folder is named", form.name()))
                .hint("name one with --to FOLDER"))
        }
        Some(path) if arguments.append && is_folder(path, 1) => Err(Failure::usage(format!(
            "--append adds lines to a file, and {} is a folder",
            path.display()
        ))
        .hint("name a file with --to, or leave out --append for a file each")),
        Some(path) if form.is_folder() && path.is_file() => Err(Failure::usage(format!(
            "{} is several files, and {} is one",
            form.name(),
            path.display()
        ))
        .hint("name a folder with --to")),
        Some(path) if !form.is_folder() && !form.is_of_one() && is_folder(path, 1) => {
            Err(Failure::usage(format!(
                "{} is one file, and {} is a folder",
                form.name(),
                path.display()
            ))
            .hint("name a file with --to"))
        }
        _ => Ok(()),
    }
}

/// One document: printed, or the whole of a file.
fn whole(text: &str, arguments: &ExportArguments) -> Result<(), Failure> {
    match &arguments.to {
        None => output::result(text),
        Some(path) => {
            report_files::write_file(path, text)?;
            say(path)
        }
    }
}

fn files(files: &[(&str, String)], arguments: &ExportArguments) -> Result<(), Failure> {
    for (name, text) in files {
        let path = arguments.to.as_deref().unwrap_or_else(|| Path::new(".")).join(name);
        report_files::write_file(&path, text)?;
        say(&path)?;
    }
    Ok(())
}

fn say(path: &Path) -> Result<(), Failure> {
    output::result(&format!("{}\n", path.display()))
}

#[cfg(feature = "parquet")]
fn parquet(
    subjects: &[Subject],
    arguments: &ExportArguments,
    talk: impl Fn(&str),
) -> Result<(), Failure> {
    let folder = arguments.to.as_deref().unwrap_or_else(|| Path::new("."));
    for (path, rows) in subject::write_tables(folder, subjects)? {
        talk(&format!("{rows} rows in {}", path.display()));
        say(&path)?;
    }
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &[Subject], _: &ExportArguments, _: impl Fn(&str)) -> Result<(), Failure> {
    Err(Failure::usage("this build writes no Parquet"))
}

/// A run has a verdict and SLOs; an import only has its values.
fn of_junit(subjects: &[Subject]) -> String {
    let cases: Vec<junit::Exported<'_>> = subjects
        .iter()
        .map(|subject| match subject {
            Subject::Run(run) => junit::Exported::Run(&run.summary),
            Subject::Foreign(result) => junit::Exported::ToolResult(&result.sheet),
        })
        .collect();
    junit::exported(&cases)
}

/// Bencher's format has intervals, and no place for other warnings.
fn of_marks(subjects: &[Subject], sheets: &[ToolResult], typed: &[String]) -> Option<String> {
    /// More names than these are counted.
    const NAMED_MAX: usize = 12;
    let is_marked = |sheet: &ToolResult| sheet.marks.iter().any(Mark::is_doubt);
    let both = subjects.iter().zip(sheets);
    let marked: Vec<&str> =
        both.filter(|(_, sheet)| is_marked(sheet)).map(|(subject, _)| subject.name()).collect();
    let named = marked.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = match marked.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let are = if marked.len() == 1 { "is not a clean result" } else { "are not clean results" };
    (!marked.is_empty()).then(|| {
        format!(
            "warning: {named}{more} {are}, and the Bencher format cannot say so; the marks are in \
             `inferometer export {} --format csv`",
            inferometer_report::escape::terminal(&typed.join(" "))
        )
    })
}

/// A line for each result, or a file for each in a folder, as vLLM's own tools read them.
fn put_vllm(
    subjects: &[Subject],
    detail: bool,
    arguments: &ExportArguments,
) -> Result<(), Failure> {
    let writing = Writing { detail, ..Writing::default() };
    let mut results = Vec::new();
    for subject in subjects {
        let sheet = subject.vllm_sheet(detail)?;
        let line = vllm::line(&sheet, &writing).map_err(unmade)?;
        results.push((vllm_file_name(&sheet), line + "\n"));
    }
    match &arguments.to {
        Some(path) if !arguments.append && is_folder(path, results.len()) => {
            in_folder(path, &results)
        }
        _ => {
            let lines: String = results.into_iter().map(|(_, line)| line).collect();
            put_lines(&lines, arguments)
        }
    }
}

/// Printed, the whole of a file, or more lines of one.
fn put_lines(lines: &str, arguments: &ExportArguments) -> Result<(), Failure> {
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

fn vllm_file_name(sheet: &ToolResult) -> String {
    let configured = Some(sheet.configuration.as_str()).filter(|name| !name.is_empty());
    FileName {
        label: configured.or(sheet.backend.as_deref()).unwrap_or("inferometer"),
        rate: sheet.request_rate.unwrap_or(ResultRate::Unlimited),
        ramp: None,
        max_concurrency: sheet.max_concurrency,
        model: sheet.model.as_deref().unwrap_or_default(),
        date: &sheet.started.as_deref().map(vllm::date).unwrap_or_default(),
    }
    .file_name()
}

/// One result printed or put into a file; any number into a folder.
fn put_each(
    subjects: &[Subject],
    document: fn(&ToolResult) -> Result<String, ExportError>,
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
fn is_folder(path: &Path, results: usize) -> bool {
    let is_free = !path.is_file() && path.extension().is_none();
    path.is_dir() || is_written_as_folder(path) || (1 < results && is_free)
}

/// Whether its last letter is a separator.
fn is_written_as_folder(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(std::path::is_separator))
}

/// A file for each of the named texts.
fn in_folder(folder: &Path, results: &[(String, String)]) -> Result<(), Failure> {
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
    fn lines_are_added_after_a_file_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, "{\"by\":\"vllm\"}").unwrap();
        append(&path, "{\"a\":1}\n").unwrap();
        append(&path, "{\"b\":2}\n").unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found, "{\"by\":\"vllm\"}\n{\"a\":1}\n{\"b\":2}\n");
    }

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
