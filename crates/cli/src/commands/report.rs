//! `inferometer report`: the page of a stored run, set or import, or of several together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::tool_result::{Tool, ToolResult};
use inferometer_analysis::{Severity, Summary, Verdict, Warning, summarize};
use inferometer_interchange::meaning;
use inferometer_interchange::vllm::{Writing, line};
use inferometer_model::study::SetManifest;
use inferometer_report::document::{Document, html, markdown};
use inferometer_report::json;
use inferometer_report::narrative::Facts;
use inferometer_report::pages::csv;
use inferometer_report::pages::results::{PageWords, results_page, site};
use inferometer_store::{RunDirectory, RunState, RunStore, SetDirectory, StoreError, Stored};
use inferometer_study::play;

use super::store;
use crate::arguments::{ReportArguments, ReportFormat};
use crate::failure::Failure;
use crate::narrator::{Subject, Writer, leaving_pages_alone};
use crate::report_files::{self, SetPage};
use crate::results::Mapped;
use crate::signals::Interruption;
use crate::{output, results, study};

/// Stands for standard output.
const PRINTED: &str = "-";

pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    check_flags(arguments)?;
    let writer = &Writer::for_stored(&arguments.narrator).map_err(leaving_pages_alone)?;
    let store = store(&arguments.store)?;
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let show = |mut subject: ReportSubject| -> Result<(), Failure> {
        subject.set_title(arguments.title.as_deref())?;
        let page = make(&subject, arguments, writer, talk)?;
        page.filter(|_| arguments.open).map_or(Ok(()), |page| open_in_browser(&page))
    };
    if arguments.together {
        show(ReportSubject::Results(Results::read(&store, &arguments.names)?))?;
    } else {
        for name in &arguments.names {
            show(ReportSubject::find(&store, name, talk)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what contradicts itself before anything is read.
fn check_flags(arguments: &ReportArguments) -> Result<(), Failure> {
    let ReportArguments { format, open, together, .. } = *arguments;
    let is_printed = arguments.to.as_deref() == Some(Path::new(PRINTED));
    let has_narrator = arguments.narrator.narrator.is_some();
    let name = format.map_or("", ReportFormat::name);
    let is_data = matches!(name, "csv" | "json" | "site");
    let to_file = arguments.to.is_some() && !is_printed;
    let (message, hint) = if 1 < arguments.names.len() && to_file && !together {
        (
            "--to names one file or folder, and several runs are named".to_owned(),
            "leave --to out, make the reports one by one, or one page of all with --together",
        )
    } else if together && has_narrator {
        (
            "--narrator writes about one run or set, and --together is of all".to_owned(),
            "leave one of them out",
        )
    } else if is_data && has_narrator {
        (format!("--narrator writes prose, and {name} has none"), "leave one of them out")
    } else if format.is_none() && is_printed {
        (
            "`--to -` prints one form, and none is named".to_owned(),
            "add --format html, md, csv or json",
        )
    } else if open && (is_data || name == "md") {
        (
            format!("--open shows the HTML page, and {name} is made"),
            "leave --format out, or name html",
        )
    } else if open && is_printed {
        ("--open needs a file, and `--to -` makes none".to_owned(), "leave --to out")
    } else {
        return Ok(());
    };
    Err(Failure::usage(message).hint(hint))
}

/// Makes what was asked for; the path of the HTML page where there is one.
fn make(
    subject: &ReportSubject,
    arguments: &ReportArguments,
    writer: &Writer,
    talk: impl Fn(&str),
) -> Result<Option<PathBuf>, Failure> {
    let document = || subject.document(writer, &talk);
    let own_folder = || {
        subject.folder().map(Path::to_owned).ok_or_else(|| {
            Failure::usage("a page of several runs has no folder of its own")
                .hint("name one: --to FOLDER, or --format html --to FILE")
        })
    };
    let Some(form) = arguments.format else {
        let folder = arguments.to.clone().map_or_else(own_folder, Ok)?;
        let page = report_files::write_both(&folder, &document()?)?;
        output::result(&format!("{}\n", page.display()))?;
        return Ok(Some(page));
    };
    let printed = || -> Result<String, Failure> {
        Ok(match form {
            ReportFormat::Html => html::render(&document()?),
            ReportFormat::Md => markdown::render(&document()?).text,
            ReportFormat::Csv => subject.csv(),
            ReportFormat::Json => subject.json(),
            ReportFormat::Site => subject.site()?.swap_remove(0).1,
        })
    };
    let path = match (arguments.to.as_deref(), form) {
        (Some(to), _) if to == Path::new(PRINTED) => None,
        (Some(to), _) => Some(to.to_owned()),
        (None, ReportFormat::Html) => Some(own_folder()?.join(report_files::HTML)),
        (None, ReportFormat::Md) => Some(own_folder()?.join(report_files::MARKDOWN)),
        (None, ReportFormat::Site) => Some(own_folder()?.join(report_files::SITE)),
        // Data goes into a pipe more often than into a file.
        (None, ReportFormat::Csv | ReportFormat::Json) => None,
    };
    let Some(path) = path else {
        output::result(&printed()?)?;
        if matches!(form, ReportFormat::Md | ReportFormat::Site) {
            talk("its charts are not printed; without `--to -` they are files beside the page");
        }
        return Ok(None);
    };
    match form {
        ReportFormat::Md => report_files::write_markdown(&path, &document()?)?,
        // The page is the first of the files and written last: where it is, all is there.
        ReportFormat::Site => {
            for (name, text) in subject.site()?.into_iter().rev() {
                report_files::write_file(&path.join(name), &text)?;
            }
        }
        ReportFormat::Html | ReportFormat::Csv | ReportFormat::Json => {
            report_files::write_file(&path, &printed()?)?;
        }
    }
    output::result(&format!("{}\n", path.display()))?;
    Ok((form == ReportFormat::Html).then_some(path))
}

/// What a report is about.
enum ReportSubject {
    Measured(Source),
    Results(Results),
}

/// Results of any tool, as one page shows them.
struct Results {
    sheets: Vec<ToolResult>,
    words: PageWords,
    /// The folder of an import; results of several have none.
    folder: Option<PathBuf>,
}

impl ReportSubject {
    /// What is stored under a name. An import has a page of results.
    fn find(store: &RunStore, name: &str, talk: impl Fn(&str)) -> Result<Self, Failure> {
        let found = store.find(name).map_err(Failure::from_usage)?;
        if let Stored::Import(import, _) = &found {
            let results = Results::read(store, &[name.to_owned()])?;
            return Ok(Self::Results(Results {
                folder: Some(import.path().to_owned()),
                ..results
            }));
        }
        Source::read(&found, talk).map(Self::Measured)
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Measured(source) => Some(source.folder()),
            Self::Results(results) => results.folder.as_deref(),
        }
    }

    /// Sets the title, which only a page of results can have.
    fn set_title(&mut self, title: Option<&str>) -> Result<(), Failure> {
        let Some(title) = title else { return Ok(()) };
        match self {
            Self::Results(results) => results.words.title = Some(title.to_owned()),
            Self::Measured(source) => {
                let name = source.folder().display();
                return Err(Failure::usage(format!("the page of {name} has a title of its own"))
                    .hint("leave --title out, or make a page of results with --together"));
            }
        }
        Ok(())
    }

    /// The page, in the words of whoever is to write it.
    fn document(&self, writer: &Writer, talk: impl Fn(&str)) -> Result<Document, Failure> {
        let consult = |subject: Subject<'_>, facts: &Facts, folder: &Path| {
            // Nothing is begun here that a signal may not end at once.
            let never = &Interruption::default();
            writer.write(subject, facts, folder, never, &talk).map_err(leaving_pages_alone)
        };
        match self {
            Self::Results(results) => Ok(results_page(&results.sheets, &results.words)),
            Self::Measured(Source::Run { directory, summary }) => {
                if writer.is_model() {
                    let manifest = directory.manifest().map_err(Failure::from_usage);
                    let subject = Subject {
                        spec: &manifest.map_err(leaving_pages_alone)?.spec,
                        condition: 0,
                        model: &summary.run.model,
                        simulated: summary.run.simulated.is_some(),
                    };
                    consult(subject, &Facts::from_run(summary), directory.path())?;
                }
                Ok(report_files::run_document(directory, summary))
            }
            Self::Measured(Source::Set { set, manifest, summary, points }) => {
                let page = SetPage { set, manifest, summary, points };
                if let Some(subject) = page.subject().filter(|_| writer.is_model()) {
                    consult(subject, &page.facts(), set.path())?;
                }
                Ok(page.document())
            }
        }
    }

    fn csv(&self) -> String {
        match self {
            Self::Measured(Source::Run { summary, .. }) => csv::of_run(summary),
            Self::Measured(Source::Set { summary, points, .. }) => {
                csv::of_matrix(summary).unwrap_or_else(|| csv::of_set(summary, points))
            }
            Self::Results(results) => csv::of_results(&results.sheets),
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Measured(Source::Run { directory, summary }) => {
                json::render(summary, &super::files(directory), &[])
            }
            Self::Measured(Source::Set { set, summary, .. }) => {
                json::render(summary, &study::files(set), &[])
            }
            Self::Results(results) => json::render_results(&results.sheets),
        }
    }

    /// The files of a fragment of a site, the page first.
    fn site(&self) -> Result<Vec<(String, String)>, Failure> {
        let own;
        let results = match self {
            Self::Results(results) => results,
            Self::Measured(source) => {
                let name = source.folder().file_name().unwrap_or_default().to_string_lossy();
                own = Results::new(results::from_source(source), vec![name.into_owned()]);
                &own
            }
        };
        let raw = |sheet: &ToolResult| line(sheet, &Writing::default());
        for sheet in &results.sheets {
            raw(sheet).map_err(Failure::from_error)?;
        }
        Ok(site(&results.sheets, &results.words, |sheet| raw(sheet).unwrap_or_default()))
    }
}

impl Results {
    fn new(sheets: Vec<ToolResult>, made_from: Vec<String>) -> Self {
        let tools: BTreeSet<Tool> = sheets.iter().map(|sheet| sheet.source.tool).collect();
        let definition = |tool| (tool, meaning(tool).iter().map(ToString::to_string).collect());
        let words = PageWords {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            definitions: tools.into_iter().map(definition).collect(),
            made_from,
            ..PageWords::default()
        };
        Self { sheets, words, folder: None }
    }

    /// All that is named, on one page, with what could not be read of the files that were imported.
    fn read(store: &RunStore, names: &[String]) -> Result<Self, Failure> {
        let sheets = results::from_names(store, names)?;
        if sheets.is_empty() {
            return Err(Failure::usage(format!("there is no result in {}", names.join(", ")))
                .hint("`inferometer runs` lists what is stored"));
        }
        let mut results = Self::new(sheets, names.to_vec());
        for typed in names {
            let (_, name) = results::split_name(typed);
            let found = store.find(name).map_err(Failure::from_usage)?;
            let Stored::Import(import, None) = found else { continue };
            let broken = Mapped::read(&import)?.import.broken().count();
            if 0 < broken {
                results.words.remarks.push(format!(
                    "{broken} records of {name} could not be read and are not on this page; its \
                     summary.json has the reasons"
                ));
            }
        }
        Ok(results)
    }
}

/// What a page is made of.
pub(crate) enum Source {
    Run {
        directory: RunDirectory,
        summary: Box<Summary>,
    },
    Set {
        set: SetDirectory,
        manifest: Box<SetManifest>,
        summary: Box<SetSummary>,
        points: Vec<PointResult>,
    },
}

impl Source {
    pub(crate) fn read(found: &Stored, talk: impl Fn(&str)) -> Result<Self, Failure> {
        match found {
            Stored::Run(directory) => {
                let summary = Box::new(summary_of_run(directory)?);
                Ok(Self::Run { directory: directory.clone(), summary })
            }
            Stored::Set(set) => read_set(set, talk),
            Stored::Import(import, _) => {
                Err(Failure::usage(format!("{} was imported, not measured", import.id())))
            }
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Run { directory, .. } => directory.path(),
            Self::Set { set, .. } => set.path(),
        }
    }
}

fn summary_of_run(directory: &RunDirectory) -> Result<Summary, Failure> {
    let id = directory.id();
    match directory.state() {
        RunState::Sealed | RunState::Finished => stored_summary(directory),
        RunState::Running => {
            Err(Failure::from_usage(StoreError::Busy { run: directory.path().to_owned() }))
        }
        RunState::Unfinished => Err(Failure::usage(format!("run {id} is not finished"))
            .hint(format!("finish it with: {}", directory.remedy()))),
        RunState::Unreadable(why) => Err(Failure::usage(format!("run {id} cannot be read: {why}"))),
    }
}

/// As it is stored, where that has all that charts are drawn from; else computed from the records,
/// which count for more than a summary that is damaged or of another version.
fn stored_summary(directory: &RunDirectory) -> Result<Summary, Failure> {
    let kept = directory.read_summary().map_err(Failure::from_usage)?;
    let kept = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
    let has_figures =
        |summary: &Summary| summary.attempted == 0 || !summary.figures.course.in_flight.is_empty();
    match kept {
        Some(kept) if has_figures(&kept) => Ok(kept),
        kept => match (directory.read(), kept) {
            (Ok(stored), _) => Ok(summarize(&stored.observations)),
            // Without its records a run has its numbers still, and no charts.
            (Err(_), Some(kept)) => Ok(kept),
            (Err(error), None) => Err(Failure::from_usage(error)),
        },
    }
}

/// A set that was stopped has a page of what it has, with a warning.
fn read_set(set: &SetDirectory, talk: impl Fn(&str)) -> Result<Source, Failure> {
    let manifest = Box::new(set.manifest().map_err(Failure::from_usage)?);
    let replay = play::replay(set, &manifest, |_, point| match point.state() {
        RunState::Sealed | RunState::Finished => {
            Ok(Some(stored_summary(point)?).filter(|summary| !play::was_cut(summary)))
        }
        RunState::Unfinished | RunState::Running | RunState::Unreadable(_) => Ok(None),
    })?;
    let (set, points) = (set.clone(), replay.results);
    if let Some(summary) = replay.summary {
        return Ok(Source::Set { set, manifest, summary: Box::new(summary), points });
    }
    let resume = play::resume_command(&set);
    if points.is_empty() {
        return Err(Failure::usage(format!("set {} has no finished run yet", set.id()))
            .hint(format!("resume with: {resume}")));
    }
    talk(&format!("warning: set {} is not finished; the report has what there is", set.id()));
    let mut summary = Box::new(play::summarize_stored(&set, &manifest, &points)?);
    summary.verdict = summary.verdict.max(Verdict::Degraded);
    let stored = play::stored_runs(points.len());
    let unfinished = Warning {
        key: "unfinished".to_owned(),
        check: None,
        severity: Severity::Degraded,
        text: format!("the set is not finished: {stored}, and this page has no more"),
        remedy: format!("resume it with: {resume}"),
    };
    summary.warnings.insert(0, unfinished);
    Ok(Source::Set { set, manifest, summary, points })
}

#[cfg(target_os = "macos")]
const OPENERS: [&[&str]; 1] = [&["open"]];
#[cfg(windows)]
const OPENERS: [&[&str]; 1] = [&["cmd", "/C", "start", ""]];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: [&[&str]; 2] = [&["xdg-open"], &["gio", "open"]];

/// Does not wait for the browser.
fn open_in_browser(page: &Path) -> Result<(), Failure> {
    let unopened = |why: &str| {
        Failure::usage(format!("nothing was opened: {why}"))
            .hint(format!("the page is there all the same: open {} yourself", page.display()))
    };
    // Without a desktop an opener may try a browser for terminals, and that one nobody sees. Whoever
    // names a browser knows better.
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(is_set) {
        return Err(unopened("there is no desktop here: DISPLAY, WAYLAND_DISPLAY are not set"));
    }
    let mut begun = Vec::new();
    for opener in OPENERS {
        let mut command = Command::new(opener[0]);
        command.args(&opener[1..]).arg(page).stdin(Stdio::null());
        let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            continue;
        };
        if !fails_at_once(child) {
            return Ok(());
        }
        begun.push(opener[0]);
    }
    let tried = OPENERS.map(|opener| opener[0]).join(", ");
    Err(unopened(&match begun.as_slice() {
        [] => format!("no program to open a page was found; tried {tried}"),
        begun => format!("{} failed", begun.join(" and ")),
    }))
}

/// A program that cannot open anything says so soon; one that lives on is the browser, perhaps.
fn fails_at_once(mut opener: Child) -> bool {
    for _ in 0..20 {
        match opener.try_wait() {
            Ok(Some(status)) => return !status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => return false,
        }
    }
    false
}
