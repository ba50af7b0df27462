//! `inferometer report`: the page of a stored run or set, made again.

mod browser;
pub(crate) mod stored;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inferometer_report::document::{Document, html, markdown};
use inferometer_report::json;

use self::stored::Source;
use super::store;
use crate::arguments::{ReportArguments, ReportFormat};
use crate::failure::Failure;
use crate::narrator::{Writer, leaving_pages_alone};
use crate::{output, report_files};

/// What stands for standard output.
const PRINTED: &str = "-";

pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    check(arguments)?;
    let writer = &Writer::of_stored(&arguments.narrator).map_err(leaving_pages_alone)?;
    let store = store(&arguments.store)?;
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    for name in &arguments.names {
        let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
        let source = Source::read(&found, talk)?;
        let made = make(&source, arguments, writer, talk)?;
        if let Some(page) = made.filter(|_| arguments.open) {
            browser::open(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what contradicts itself before anything is read.
fn check(arguments: &ReportArguments) -> Result<(), Failure> {
    let is_printed = arguments.to.as_deref() == Some(Path::new(PRINTED));
    if 1 < arguments.names.len() && arguments.to.is_some() && !is_printed {
        return Err(Failure::usage("--to names one place, and several runs are named")
            .hint("leave --to out, or make the reports one by one"));
    }
    match arguments.format {
        Some(form @ (ReportFormat::Csv | ReportFormat::Json))
            if arguments.narrator.narrator.is_some() =>
        {
            Err(Failure::usage(format!("--narrator writes prose, and {} has none", form.name()))
                .hint("leave one of them out"))
        }
        None if is_printed => Err(Failure::usage("`--to -` prints one form, and none is named")
            .hint("add --format html, md, csv or json")),
        Some(form @ (ReportFormat::Md | ReportFormat::Csv | ReportFormat::Json))
            if arguments.open =>
        {
            Err(Failure::usage(format!("--open shows the HTML page, and {} is made", form.name()))
                .hint("leave --format out, or name html"))
        }
        Some(ReportFormat::Html) if arguments.open && is_printed => {
            Err(Failure::usage("--open needs a file, and `--to -` makes none")
                .hint("leave --to out"))
        }
        _ => Ok(()),
    }
}

/// Makes what was asked for; the path of the HTML page where there is one.
fn make(
    source: &Source,
    arguments: &ReportArguments,
    writer: &Writer,
    talk: impl Fn(&str),
) -> Result<Option<PathBuf>, Failure> {
    let document = || source.document(writer, &talk);
    let Some(form) = arguments.format else {
        let folder = arguments.to.clone().unwrap_or_else(|| source.folder().to_owned());
        let page = report_files::write_both(&folder, &document()?)?;
        output::result(&format!("{}\n", page.display()))?;
        return Ok(Some(page));
    };
    let by_default = match form {
        ReportFormat::Html => Some(source.folder().join(report_files::HTML)),
        ReportFormat::Md => Some(source.folder().join(report_files::MARKDOWN)),
        // Data goes into a pipe more often than into a file.
        ReportFormat::Csv | ReportFormat::Json => None,
    };
    let to = arguments.to.clone().or(by_default).filter(|path| path != Path::new(PRINTED));
    let Some(path) = to else {
        output::result(&printed(source, form, document)?)?;
        if form == ReportFormat::Md {
            talk("its charts are not printed; without `--to -` they are files beside the page");
        }
        return Ok(None);
    };
    match form {
        ReportFormat::Html => report_files::write_html(&path, &document()?)?,
        ReportFormat::Md => report_files::write_markdown(&path, &document()?)?,
        ReportFormat::Csv | ReportFormat::Json => {
            report_files::write_file(&path, &printed(source, form, document)?)?;
        }
    }
    output::result(&format!("{}\n", path.display()))?;
    Ok((form == ReportFormat::Html).then_some(path))
}

fn printed(
    source: &Source,
    form: ReportFormat,
    document: impl FnOnce() -> Result<Document, Failure>,
) -> Result<String, Failure> {
    Ok(match form {
        ReportFormat::Html => html::render(&document()?),
        ReportFormat::Md => markdown::render(&document()?).text,
        ReportFormat::Csv => source.csv(),
        ReportFormat::Json => match source {
            Source::Run { directory, summary } => json::render(summary, &super::files(directory)),
            Source::Set { set, summary, .. } => {
                json::render_set(summary, &crate::set::page::files(set), &[])
            }
        },
    })
}
