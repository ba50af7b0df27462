//! `inferometer report`: the page of a stored run, set or import, or of several together.

mod browser;
pub(crate) mod stored;
mod subject;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inferometer_report::document::{Document, html, markdown};

use self::subject::{Results, Subject};
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
    let show = |subject: Subject| -> Result<(), Failure> {
        let subject = subject.titled(arguments.title.as_deref())?;
        let made = make(&subject, arguments, writer, talk)?;
        made.filter(|_| arguments.open).map_or(Ok(()), |page| browser::open(&page))
    };
    if arguments.together {
        show(Subject::Results(Results::read(&store, &arguments.names)?))?;
    } else {
        for name in &arguments.names {
            show(Subject::of_name(&store, name, talk)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what contradicts itself before anything is read.
fn check(arguments: &ReportArguments) -> Result<(), Failure> {
    let is_printed = arguments.to.as_deref() == Some(Path::new(PRINTED));
    if 1 < arguments.names.len() && arguments.to.is_some() && !is_printed && !arguments.together {
        return Err(Failure::usage("--to names one place, and several runs are named").hint(
            "leave --to out, make the reports one by one, or one page of all with --together",
        ));
    }
    if arguments.together && arguments.narrator.narrator.is_some() {
        return Err(Failure::usage(
            "--narrator writes about one run or set, and --together is of all",
        )
        .hint("leave one of them out"));
    }
    match arguments.format {
        Some(form @ (ReportFormat::Csv | ReportFormat::Json | ReportFormat::Site))
            if arguments.narrator.narrator.is_some() =>
        {
            Err(Failure::usage(format!("--narrator writes prose, and {} has none", form.name()))
                .hint("leave one of them out"))
        }
        None if is_printed => Err(Failure::usage("`--to -` prints one form, and none is named")
            .hint("add --format html, md, csv or json")),
        Some(
            form @ (ReportFormat::Md | ReportFormat::Csv | ReportFormat::Json | ReportFormat::Site),
        ) if arguments.open => {
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
    subject: &Subject,
    arguments: &ReportArguments,
    writer: &Writer,
    talk: impl Fn(&str),
) -> Result<Option<PathBuf>, Failure> {
    let document = || subject.document(writer, &talk);
    let Some(form) = arguments.format else {
        let folder = arguments.to.clone().map_or_else(|| own_folder(subject), Ok)?;
        let page = report_files::write_both(&folder, &document()?)?;
        output::result(&format!("{}\n", page.display()))?;
        return Ok(Some(page));
    };
    if arguments.to.as_deref() == Some(Path::new(PRINTED)) {
        output::result(&printed(subject, form, document)?)?;
        if matches!(form, ReportFormat::Md | ReportFormat::Site) {
            talk("its charts are not printed; without `--to -` they are files beside the page");
        }
        return Ok(None);
    }
    let path = match (&arguments.to, form) {
        (Some(path), _) => path.clone(),
        (None, ReportFormat::Html) => own_folder(subject)?.join(report_files::HTML),
        (None, ReportFormat::Md) => own_folder(subject)?.join(report_files::MARKDOWN),
        (None, ReportFormat::Site) => own_folder(subject)?.join(report_files::SITE),
        // Data goes into a pipe more often than into a file.
        (None, ReportFormat::Csv | ReportFormat::Json) => {
            output::result(&printed(subject, form, document)?)?;
            return Ok(None);
        }
    };
    match form {
        ReportFormat::Html => report_files::write_html(&path, &document()?)?,
        ReportFormat::Md => report_files::write_markdown(&path, &document()?)?,
        ReportFormat::Site => report_files::write_site(&path, subject.site()?)?,
        ReportFormat::Csv | ReportFormat::Json => {
            report_files::write_file(&path, &printed(subject, form, document)?)?;
        }
    }
    output::result(&format!("{}\n", path.display()))?;
    Ok((form == ReportFormat::Html).then_some(path))
}

fn own_folder(subject: &Subject) -> Result<PathBuf, Failure> {
    subject.folder().map(Path::to_owned).ok_or_else(|| {
        Failure::usage("a page of several has no place of its own")
            .hint("name one: --to FOLDER, or --format html --to FILE")
    })
}

fn printed(
    subject: &Subject,
    form: ReportFormat,
    document: impl FnOnce() -> Result<Document, Failure>,
) -> Result<String, Failure> {
    Ok(match form {
        ReportFormat::Html => html::render(&document()?),
        ReportFormat::Md => markdown::render(&document()?).text,
        ReportFormat::Csv => subject.csv(),
        ReportFormat::Json => subject.json(),
        ReportFormat::Site => subject.site()?.into_iter().map(|(_, text)| text).take(1).collect(),
    })
}
