//! `inferometer export`: stored results in the formats of other programs.

mod lines;
mod one_each;
mod subject;
#[cfg(feature = "parquet")]
mod tables;

use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::sheet::{Mark, Sheet};
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
    let sheets = || -> Vec<Sheet> { subjects.iter().map(Subject::sheet).collect() };
    match arguments.format {
        ExportFormat::Vllm => lines::vllm(&subjects, false, arguments)?,
        ExportFormat::VllmDetailed => lines::vllm(&subjects, true, arguments)?,
        ExportFormat::Aiperf => one_each::put(&subjects, aiperf::document, arguments)?,
        ExportFormat::LlmD => one_each::put(&subjects, llm_d::document, arguments)?,
        ExportFormat::Otlp => lines::put(&otlp::render(&sheets()).map_err(unmade)?, arguments)?,
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
        Some(path) if arguments.append && one_each::is_folder(path, 1) => Err(Failure::usage(
            format!("--append adds lines to a file, and {} is a folder", path.display()),
        )
        .hint("name a file with --to, or leave out --append for a file each")),
        Some(path) if form.is_folder() && path.is_file() => Err(Failure::usage(format!(
            "{} is several files, and {} is one",
            form.name(),
            path.display()
        ))
        .hint("name a folder with --to")),
        Some(path) if !form.is_folder() && !form.is_of_one() && one_each::is_folder(path, 1) => {
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
    for (path, rows) in tables::write(folder, subjects)? {
        talk(&format!("{rows} rows in {}", path.display()));
        say(&path)?;
    }
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &[Subject], _: &ExportArguments, _: impl Fn(&str)) -> Result<(), Failure> {
    Err(Failure::usage("this build writes no Parquet"))
}

/// A run of ours has a verdict and promises; an import has what its figures show.
fn of_junit(subjects: &[Subject]) -> String {
    let cases: Vec<junit::Exported<'_>> = subjects
        .iter()
        .map(|subject| match subject {
            Subject::Run(run) => junit::Exported::Run(&run.summary),
            Subject::Foreign(result) => junit::Exported::Sheet(&result.sheet),
        })
        .collect();
    junit::exported(&cases)
}

/// Bencher's format has intervals and no other doubt.
fn of_marks(subjects: &[Subject], sheets: &[Sheet], typed: &[String]) -> Option<String> {
    /// More names than these are counted.
    const NAMED_MAX: usize = 12;
    let is_marked = |sheet: &Sheet| sheet.marks.iter().any(Mark::is_doubt);
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
            "warning: {named}{more} {are}, and bencher has no place to say so; the marks are in \
             `inferometer export {} --format csv`",
            inferometer_report::escape::terminal(&typed.join(" "))
        )
    })
}
