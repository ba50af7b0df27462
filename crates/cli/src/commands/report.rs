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
use inferometer_report::document::{Document, html, markdown};
use inferometer_report::json;
use inferometer_report::narrative::facts;
use inferometer_report::pages::csv;
use inferometer_report::pages::results::{PageWords, of_sheets, site};
use inferometer_store::{
    ImportDirectory, RunDirectory, RunState, RunStore, SetDirectory, StoreError, Stored,
};
use inferometer_study::play;

use super::store;
use crate::arguments::{ReportArguments, ReportFormat};
use crate::failure::Failure;
use crate::narrator::{self, Subject, Writer, leaving_pages_alone};
use crate::report_files::{self, OfSet};
use crate::results::Mapped;
use crate::signals::Interruption;
use crate::{output, results, study};

/// Stands for standard output.
const PRINTED: &str = "-";

pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    check_flags(arguments)?;
    let writer = &Writer::of_stored(&arguments.narrator).map_err(leaving_pages_alone)?;
    let store = store(&arguments.store)?;
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let show = |subject: ReportSubject| -> Result<(), Failure> {
        let subject = subject.titled(arguments.title.as_deref())?;
        let made = make(&subject, arguments, writer, talk)?;
        made.filter(|_| arguments.open).map_or(Ok(()), |page| open_in_browser(&page))
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
    let is_printed = arguments.to.as_deref() == Some(Path::new(PRINTED));
    if 1 < arguments.names.len() && arguments.to.is_some() && !is_printed && !arguments.together {
        return Err(Failure::usage("--to names one file or folder, and several runs are named")
            .hint(
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
    subject: &ReportSubject,
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

fn own_folder(subject: &ReportSubject) -> Result<PathBuf, Failure> {
    subject.folder().map(Path::to_owned).ok_or_else(|| {
        Failure::usage("a page of several runs has no folder of its own")
            .hint("name one: --to FOLDER, or --format html --to FILE")
    })
}

fn printed(
    subject: &ReportSubject,
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
        let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
        if matches!(found, Stored::Import(..)) {
            let mut results = Results::read(store, &[name.to_owned()])?;
            results.folder = folder_of(&found);
            return Ok(Self::Results(results));
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
    fn titled(self, title: Option<&str>) -> Result<Self, Failure> {
        match (self, title) {
            (untitled, None) => Ok(untitled),
            (Self::Results(Results { sheets, words, folder }), Some(title)) => {
                let words = PageWords { title: Some(title.to_owned()), ..words };
                Ok(Self::Results(Results { sheets, words, folder }))
            }
            (Self::Measured(source), Some(_)) => {
                let name = source.folder().display();
                Err(Failure::usage(format!("the page of {name} has a title of its own"))
                    .hint("leave --title out, or make a page of results with --together"))
            }
        }
    }

    fn document(&self, writer: &Writer, talk: impl Fn(&str)) -> Result<Document, Failure> {
        match self {
            Self::Measured(source) => source.document(writer, talk),
            Self::Results(results) => Ok(of_sheets(&results.sheets, &results.words)),
        }
    }

    fn csv(&self) -> String {
        match self {
            Self::Measured(source) => source.csv(),
            Self::Results(results) => csv::of_sheets(&results.sheets),
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Measured(source) => source.json(),
            Self::Results(results) => json::render_sheets(&results.sheets),
        }
    }

    /// The files of a fragment of a site, the page first.
    fn site(&self) -> Result<Vec<(String, String)>, Failure> {
        let own;
        let results = match self {
            Self::Results(results) => results,
            Self::Measured(source) => {
                own = Results::from_source(source);
                &own
            }
        };
        let mut failed = None;
        let raw = |sheet: &ToolResult| line(sheet, &Writing::default());
        for sheet in &results.sheets {
            failed = failed.or(raw(sheet).err());
        }
        if let Some(error) = failed {
            return Err(Failure::internal(error.to_string()));
        }
        Ok(site(&results.sheets, &results.words, |sheet| raw(sheet).unwrap_or_default()))
    }
}

impl Results {
    /// All that is named, on one page.
    fn read(store: &RunStore, names: &[String]) -> Result<Self, Failure> {
        let sheets = results::from_names(store, names)?;
        if sheets.is_empty() {
            return Err(Failure::usage(format!("there is no result in {}", names.join(", ")))
                .hint("`inferometer runs` lists what is stored"));
        }
        let words = PageWords {
            made_from: names.to_vec(),
            remarks: remarks(store, names)?,
            ..words_for(&sheets)
        };
        Ok(Self { sheets, words, folder: None })
    }

    fn from_source(source: &Source) -> Self {
        let name = source.folder().file_name().unwrap_or_default();
        let made_from = vec![name.to_string_lossy().into_owned()];
        let sheets = results::from_source(source);
        let words = PageWords { made_from, ..words_for(&sheets) };
        Self { sheets, words, folder: None }
    }
}

fn words_for(sheets: &[ToolResult]) -> PageWords {
    let tools: BTreeSet<Tool> = sheets.iter().map(|sheet| sheet.source.tool).collect();
    let definition =
        |tool: Tool| (tool, meaning(tool).iter().map(|&said| said.to_owned()).collect());
    PageWords {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        definitions: tools.into_iter().map(definition).collect(),
        ..PageWords::default()
    }
}

/// What could not be read of the files that were imported.
fn remarks(store: &RunStore, names: &[String]) -> Result<Vec<String>, Failure> {
    let mut remarks = Vec::new();
    for typed in names {
        let (_, name) = results::split_name(typed);
        let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
        let Stored::Import(import, None) = found else { continue };
        let broken = Mapped::read(&import)?.import.broken().count();
        if 0 < broken {
            remarks.push(format!(
                "{broken} records of {name} could not be read and are not on this page; its \
                 summary.json has the reasons"
            ));
        }
    }
    Ok(remarks)
}

fn folder_of(found: &Stored) -> Option<PathBuf> {
    match found {
        Stored::Import(import, _) => Some(import.path().to_owned()),
        Stored::Run(_) | Stored::Set(_) => None,
    }
}

/// What a page is made of.
pub(crate) enum Source {
    Run { directory: RunDirectory, summary: Box<Summary> },
    Set { set: SetDirectory, summary: Box<SetSummary>, points: Vec<PointResult> },
}

impl Source {
    pub(crate) fn read(found: &Stored, talk: impl Fn(&str)) -> Result<Self, Failure> {
        match found {
            Stored::Run(directory) => {
                let summary = Box::new(summary_of_run(directory)?);
                Ok(Self::Run { directory: directory.clone(), summary })
            }
            Stored::Set(set) => read_set(set, talk),
            Stored::Import(import, _) => Err(not_measured(import)),
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Run { directory, .. } => directory.path(),
            Self::Set { set, .. } => set.path(),
        }
    }

    /// The page, in the words of whoever is to write it.
    fn document(&self, writer: &Writer, talk: impl Fn(&str)) -> Result<Document, Failure> {
        if writer.is_model() {
            self.consult(writer, talk).map_err(leaving_pages_alone)?;
        }
        match self {
            Self::Run { directory, summary } => Ok(report_files::of_run(directory, summary)),
            Self::Set { set, summary, points } => {
                let manifest = &set.manifest().map_err(|error| unusable(&error))?;
                Ok(OfSet { set, manifest, summary, points }.document())
            }
        }
    }

    fn consult(&self, writer: &Writer, talk: impl Fn(&str)) -> Result<(), Failure> {
        // Nothing is begun here that a signal may not end at once.
        let never = &Interruption::default();
        match self {
            Self::Run { directory, summary } => {
                let manifest = directory.manifest().map_err(|error| unusable(&error))?;
                let subject = Subject {
                    spec: &manifest.spec,
                    condition: 0,
                    model: &summary.run.model,
                    simulated: summary.run.simulated.is_some(),
                };
                let (facts, folder) = (&facts::of_run(summary), directory.path());
                narrator::Narrating { subject, facts, folder }.run(writer, never, talk)
            }
            Self::Set { set, summary, points } => {
                let manifest = &set.manifest().map_err(|error| unusable(&error))?;
                let page = OfSet { set, manifest, summary, points };
                let Some(subject) = page.subject() else { return Ok(()) };
                let (facts, folder) = (&page.facts(), set.path());
                narrator::Narrating { subject, facts, folder }.run(writer, never, talk)
            }
        }
    }

    fn csv(&self) -> String {
        match self {
            Self::Run { summary, .. } => csv::of_run(summary),
            Self::Set { summary, points, .. } => {
                csv::of_matrix(summary).unwrap_or_else(|| csv::of_set(summary, points))
            }
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Run { directory, summary } => {
                json::render(summary, &crate::commands::files(directory))
            }
            Self::Set { set, summary, .. } => json::render_set(summary, &study::files(set), &[]),
        }
    }
}

fn not_measured(import: &ImportDirectory) -> Failure {
    Failure::usage(format!("{} was imported, not measured", import.id()))
}

fn unusable(error: &StoreError) -> Failure {
    Failure::usage(error.to_string())
}

fn summary_of_run(directory: &RunDirectory) -> Result<Summary, Failure> {
    match directory.state() {
        RunState::Sealed | RunState::Finished => stored_summary(directory),
        RunState::Running => Err(unusable(&StoreError::Busy { run: directory.path().to_owned() })),
        RunState::Unfinished => {
            Err(Failure::usage(format!("run {} is not finished", directory.id()))
                .hint(format!("finish it with: {}", directory.remedy())))
        }
        RunState::Unreadable(why) => {
            Err(Failure::usage(format!("run {} cannot be read: {why}", directory.id())))
        }
    }
}

/// As it is stored, where that has all that charts are drawn from; else computed from the records,
/// which count for more than a summary that is damaged or of another version.
fn stored_summary(directory: &RunDirectory) -> Result<Summary, Failure> {
    let kept = directory.read_summary().map_err(|error| unusable(&error))?;
    let kept = kept.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
    if let Some(whole) = kept.as_ref().filter(|summary| has_figures(summary)) {
        return Ok(whole.clone());
    }
    match (directory.read(), kept) {
        (Ok(stored), _) => Ok(summarize(&stored.observations)),
        // Without its records a run has its numbers still, and no charts.
        (Err(_), Some(kept)) => Ok(kept),
        (Err(error), None) => Err(unusable(&error)),
    }
}

fn has_figures(summary: &Summary) -> bool {
    summary.attempted == 0 || !summary.figures.course.in_flight.is_empty()
}

/// A set that was stopped has a page of what it has, with a warning.
fn read_set(set: &SetDirectory, talk: impl Fn(&str)) -> Result<Source, Failure> {
    let manifest = set.manifest().map_err(|error| unusable(&error))?;
    let replay = play::replay(set, &manifest, |_, point| match point.state() {
        RunState::Sealed | RunState::Finished => {
            Ok(Some(stored_summary(point)?).filter(|summary| !play::was_cut(summary)))
        }
        RunState::Unfinished | RunState::Running | RunState::Unreadable(_) => Ok(None),
    })?;
    let (set, points) = (set.clone(), replay.results);
    if let Some(summary) = replay.summary {
        return Ok(Source::Set { set, summary: Box::new(summary), points });
    }
    if points.is_empty() {
        return Err(Failure::usage(format!("set {} has no finished run yet", set.id()))
            .hint(format!("resume with: {}", play::resume_command(&set))));
    }
    talk(&format!("warning: set {} is not finished; the report has what there is", set.id()));
    let mut summary = play::summarize_stored(&set, &manifest, &points)?;
    summary.verdict = summary.verdict.max(Verdict::Degraded);
    summary.warnings.insert(0, unfinished(&set, points.len()));
    Ok(Source::Set { set, summary: Box::new(summary), points })
}

fn unfinished(set: &SetDirectory, runs: usize) -> Warning {
    Warning {
        key: "unfinished".to_owned(),
        check: None,
        severity: Severity::Degraded,
        text: format!(
            "the set is not finished: {}, and this page has no more",
            play::stored_runs(runs)
        ),
        remedy: format!("resume it with: {}", play::resume_command(set)),
    }
}

#[cfg(target_os = "macos")]
const OPENERS: [&[&str]; 1] = [&["open"]];
#[cfg(windows)]
const OPENERS: [&[&str]; 1] = [&["cmd", "/C", "start", ""]];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: [&[&str]; 2] = [&["xdg-open"], &["gio", "open"]];

/// A program that cannot open anything says so soon; one that lives on is the browser, perhaps.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(50);

/// Does not wait for the browser.
fn open_in_browser(page: &Path) -> Result<(), Failure> {
    if !has_desktop() {
        return Err(unopened(
            "there is no desktop here: DISPLAY, WAYLAND_DISPLAY are not set",
            page,
        ));
    }
    let mut begun = Vec::new();
    for opener in OPENERS {
        let Some((program, arguments)) = opener.split_first() else { continue };
        let child = Command::new(program)
            .args(arguments)
            .arg(page)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else { continue };
        if !fails_at_once(child) {
            return Ok(());
        }
        begun.push(*program);
    }
    if !begun.is_empty() {
        return Err(unopened(&format!("{} failed", begun.join(" and ")), page));
    }
    let tried: Vec<&str> = OPENERS.iter().filter_map(|opener| opener.first().copied()).collect();
    let why = format!("no program to open a page was found; tried {}", tried.join(", "));
    Err(unopened(&why, page))
}

fn unopened(why: &str, page: &Path) -> Failure {
    Failure::usage(format!("nothing was opened: {why}"))
        .hint(format!("the page is there all the same: open {} yourself", page.display()))
}

/// Without a desktop an opener may try a browser for terminals, and that one nobody sees. Whoever
/// names a browser knows better.
fn has_desktop() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(is_set)
}

fn fails_at_once(mut opener: Child) -> bool {
    for _ in 0..LOOKS {
        match opener.try_wait() {
            Ok(Some(status)) => return !status.success(),
            Ok(None) => std::thread::sleep(LOOK),
            Err(_) => return false,
        }
    }
    false
}
