//! `inferometer report`: the page of a stored run, set or import, or of several together; and the pages
//! of runs and sets as files that replace the earlier ones as a whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::tool_result::{Tool, ToolResult};
use inferometer_interchange::meaning;
use inferometer_interchange::vllm::{Writing, line};
use inferometer_model::study::SetManifest;
use inferometer_report::chart::Theme;
use inferometer_report::chart::card::{card, card_page};
use inferometer_report::chart::picture::to_png;
use inferometer_report::document::markdown::link;
use inferometer_report::document::{Document, Download, html, markdown};
use inferometer_report::fmt::counted;
use inferometer_report::json;
use inferometer_report::narrative::{Facts, findings};
use inferometer_report::pages::results::{PageWords, results_page, site};
use inferometer_report::pages::{self, SuiteInput, csv};
use inferometer_store::{
    RunDirectory, RunStore, SetDirectory, Stored, read_at_most, write_atomically, write_output,
};

use crate::arguments::{ReportArguments, ReportFormat};
use crate::commands::{self, store};
use crate::failure::{Failure, Result};
use crate::narrator::{self, Subject, Writer, leaving_pages_alone};
use crate::results::{self, Mapped, Source};
use crate::signals::Interruption;
use crate::{output, study};

pub(crate) const HTML: &str = "report.html";
pub(crate) const MARKDOWN: &str = "report.md";
/// A row for each cell and load of a matrix.
pub(crate) const MATRIX_CSV: &str = "matrix.csv";
/// The folder of a fragment of a static site.
pub(crate) const SITE: &str = "site";
/// The head of the page as one picture.
pub(crate) const CARD: &str = "card.png";
/// The numbers of a run or set in its folder, and what a download of them is called.
const SUMMARY: &str = "summary.json";
const JSON: &str = "JSON";
/// Text that a page carries as a download is no longer than this.
const INSIDE_MAX: usize = 100_000;
/// Pixels of a picture for each unit of its drawing.
const PICTURE_SCALE: f32 = 2.0;

/// A set to make a page of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetPage<'a> {
    pub(crate) set: &'a SetDirectory,
    pub(crate) manifest: &'a SetManifest,
    pub(crate) summary: &'a SetSummary,
    pub(crate) points: &'a [PointResult],
}

impl<'a> SetPage<'a> {
    pub(crate) fn facts(&self) -> Facts {
        Facts::from_set(self.summary, self.points)
    }

    /// The condition that was measured first.
    pub(crate) fn subject(&self) -> Option<Subject<'a>> {
        let first = self.points.first()?;
        let condition = usize::try_from(first.point.condition).ok()?;
        Some(Subject {
            spec: &self.manifest.study.conditions.get(condition)?.spec,
            condition,
            model: &first.summary.run.model,
            simulated: self.manifest.simulated,
        })
    }

    /// The page, with the stored narrative as far as it still holds.
    pub(crate) fn document(&self) -> Document {
        let Self { set, summary, points, .. } = *self;
        let facts = self.facts();
        let rules = findings::from_set(summary, points, &facts);
        let narrative = &narrator::words(set.path(), &facts, rules);
        pages::of_set(&SuiteInput { set: summary, points, narrative })
    }
}

/// The page of a run, likewise.
pub(crate) fn run_document(directory: &RunDirectory, summary: &Summary) -> Document {
    let facts = Facts::from_run(summary);
    let rules = findings::from_run(summary, &facts);
    pages::run(summary, &narrator::words(directory.path(), &facts, rules))
}

/// The page of what was found, with the stored narrative as far as it still holds.
pub(crate) fn stored_document(found: &Stored) -> Result<Document> {
    ReportSubject::from_stored(found)?.document(&Writer::Rules, |_| {})
}

/// The page of several.
pub(crate) fn together_document(found: &[Stored]) -> Result<Document> {
    let results = Results::from_stored(found)?;
    Ok(results_page(&results.shown, &results.words))
}

/// The numbers of the page, as CSV.
pub(crate) fn stored_csv(found: &Stored) -> Result<String> {
    Ok(ReportSubject::from_stored(found)?.csv())
}

/// The page as HTML and Markdown, and its card. The HTML page is written last: where it is, all is there.
pub(crate) fn write_all(folder: &Path, document: &Document, data: &PageData) -> Result<PathBuf> {
    write_markdown(&folder.join(MARKDOWN), document, write_atomically)?;
    write_card(&folder.join(CARD), document, data, write_atomically)?;
    let mut document = data.attached_to(document.clone());
    let is_carried = document.downloads.iter().any(|file| file.title == JSON);
    let json = (!is_carried && folder.join(SUMMARY).is_file()).then_some((JSON, SUMMARY));
    let beside = json.into_iter().chain([("Markdown", MARKDOWN), ("Card", CARD)]);
    document.downloads.extend(beside.map(|(title, name)| Download {
        title: title.to_owned(),
        name: name.to_owned(),
        inside: None,
    }));
    write_page(folder, &document)
}

/// The HTML page alone.
pub(crate) fn write_html(folder: &Path, document: &Document, data: &PageData) -> Result<PathBuf> {
    write_page(folder, &data.attached_to(document.clone()))
}

fn write_page(folder: &Path, document: &Document) -> Result<PathBuf> {
    let path = folder.join(HTML);
    write_file(&path, &html::render(document))?;
    Ok(path)
}

/// Writes the HTML page of a run from what is stored, in which secrets are struck out. Without it the
/// run is as good.
pub(crate) fn write_run(directory: &RunDirectory) {
    let written = match results::kept_summary(directory) {
        Ok(Some(summary)) => {
            let data = PageData::from_run(&summary);
            write_html(directory.path(), &run_document(directory, &summary), &data)
        }
        Ok(None) => return,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = written {
        let why = inferometer_report::escape::terminal(failure.message());
        output::talk(&format!("warning: no report was written: {why}"));
    }
}

/// The cells of a matrix, or the levels of another set.
pub(crate) fn set_csv(summary: &SetSummary, points: &[PointResult]) -> String {
    csv::of_matrix(summary).unwrap_or_else(|| csv::of_set(summary, points))
}

/// The numbers of a page as files.
pub(crate) struct PageData {
    /// What the page is about: the id of a run, set or import.
    id: String,
    csv: String,
    /// As it is stored; its hash marks the card.
    summary: Vec<u8>,
}

impl PageData {
    fn from_run(summary: &Summary) -> Self {
        let (id, csv) = (summary.run.id.clone(), csv::of_run(summary));
        Self { id, csv, summary: summary.to_json_bytes() }
    }

    pub(crate) fn from_set(summary: &SetSummary, points: &[PointResult]) -> Self {
        let (id, csv) = (summary.set.clone(), set_csv(summary, points));
        Self { id, csv, summary: summary.to_json_bytes() }
    }

    /// The page with those that are small enough to be carried.
    fn attached_to(&self, document: Document) -> Document {
        let json = String::from_utf8_lossy(&self.summary).into_owned();
        let files = [
            ("CSV", "csv", "text/csv", self.csv.clone()),
            (JSON, "json", "application/json", json),
        ];
        let files = files.into_iter().filter(|(.., text)| text.len() <= INSIDE_MAX);
        let downloads = files.map(|(title, ending, media, text)| Download {
            title: title.to_owned(),
            name: format!("{}.{ending}", self.id),
            inside: Some((media, text)),
        });
        let mut footer = document.footer;
        footer.push(format!(" {}.", self.mark()).into());
        Document { downloads: downloads.collect(), footer, ..document }
    }

    /// What a card says of its origin; `sha256sum summary.json` gives the same hash.
    fn mark(&self) -> String {
        /// Digits of the hash that people compare by eye.
        const SHOWN: usize = 16;
        let hash: String = results::sha256(&self.summary).chars().take(SHOWN).collect();
        let version = env!("CARGO_PKG_VERSION");
        format!("{} · Inferometer {version} · sha256 of summary.json begins with {hash}", self.id)
    }
}

/// The card as PNG, and as SVG and HTML beside it.
fn write_card(path: &Path, document: &Document, data: &PageData, write: WriteBytes) -> Result<()> {
    let svg = card(document, &data.mark(), Theme::Light);
    write_file(&path.with_extension("svg"), &svg)?;
    // A report of the same name may stand beside it, and is not replaced.
    let is_named = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("card"));
    let page = path.with_extension(if is_named { "html" } else { "card.html" });
    write_file(&page, &card_page(document, &data.mark()))?;
    write_with(path, &picture(&svg, 1.0, CARD)?, write)
}

fn picture(svg: &str, scale: f32, name: &str) -> Result<Vec<u8>> {
    to_png(svg, scale)
        .ok_or_else(|| Failure::internal(format!("{name} cannot be drawn as a picture")))
}

/// Every chart of the page as a picture, by its id.
fn write_pictures(folder: &Path, document: &Document) -> Result<()> {
    for chart in document.charts() {
        let name = format!("{}.png", chart.id);
        let svg = chart.to_svg(Theme::Light);
        write_file(&folder.join(&name), &picture(&svg, PICTURE_SCALE, &name)?)?;
    }
    Ok(())
}

/// The page, written by `write`, and its charts in a folder beside it.
fn write_markdown(path: &Path, document: &Document, write: WriteBytes) -> Result<()> {
    // Pages beside each other have folders of charts of their own.
    let charts = match path.file_stem() {
        Some(stem) if path.file_name() != Some(MARKDOWN.as_ref()) => {
            format!("{}.charts", stem.to_string_lossy())
        }
        Some(_) | None => markdown::CHARTS.to_owned(),
    };
    let report = markdown::render_with(document, &charts);
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    // The size of an earlier page that is read for the names of its charts.
    let before = path.is_file().then(|| read_at_most(path, 64 << 20).ok().flatten()).flatten();
    let before = before.unwrap_or_default();
    for (name, content) in &report.files {
        write_file(&folder.join(name), content)?;
    }
    write_with(path, report.text.as_bytes(), write)?;
    let shown = report.files.into_iter().map(|(name, _)| name).collect();
    remove_stale(folder, &charts, &String::from_utf8_lossy(&before), &shown);
    Ok(())
}

/// Removes the charts that the page showed before and shows no more. Others in that folder are not
/// ours. One that cannot be removed does no harm: no page shows it.
fn remove_stale(folder: &Path, charts: &str, before: &str, shown: &BTreeSet<String>) {
    let Ok(entries) = folder.join(charts).read_dir() else { return };
    for entry in entries.flatten() {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let name = format!("{charts}/{file}");
        let is_chart = file.ends_with("-light.svg") || file.ends_with("-dark.svg");
        if is_chart && !shown.contains(&name) && before.contains(&format!("\"{}\"", link(&name))) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// [`write_atomically`] or [`write_output`].
type WriteBytes = fn(&Path, &[u8]) -> inferometer_store::Result<()>;

/// Writes a file whose name is ours, into a folder that is made where it is missing.
pub(crate) fn write_file(path: &Path, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    write_with(path, content.as_ref(), write_atomically)
}

/// The same of a file that the user named: links are followed, and devices are not replaced.
pub(crate) fn write_named(path: &Path, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    write_with(path, content.as_ref(), write_output)
}

fn write_with(path: &Path, content: &[u8], write: WriteBytes) -> Result<()> {
    let unwritable = |why: String| Failure::usage(why).hint("name another path with --to");
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| {
            unwritable(format!("the folder {} cannot be created: {error}", folder.display()))
        })?;
    }
    write(path, content).map_err(|error| unwritable(error.to_string()))
}

pub(crate) fn run(arguments: &ReportArguments) -> Result<ExitCode> {
    check_flags(arguments)?;
    let writer = &Writer::for_stored(&arguments.narrator).map_err(leaving_pages_alone)?;
    let store = store(&arguments.store)?;
    let talk = output::talk_unless(arguments.quiet);
    let show = |mut subject: ReportSubject| -> Result<()> {
        if let Some(title) = &arguments.title {
            subject.set_title(title)?;
        }
        let page = make(&subject, arguments, writer, talk)?;
        if let Some(Err(why)) = page.filter(|_| arguments.open).map(|page| open_in_browser(&page)) {
            output::talk(&format!("no browser was opened: {why}; the page is at the path above"));
        }
        Ok(())
    };
    if arguments.together {
        show(ReportSubject::Results(Results::read(&store, &arguments.names)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    for name in &arguments.names {
        let found = store.find(name).map_err(Failure::from_usage)?;
        show(if let Stored::Import(import, _) = &found {
            let results = Results::read(&store, std::slice::from_ref(name))?;
            let folder = Some(import.path().to_owned());
            ReportSubject::Results(Results { folder, ..results })
        } else {
            ReportSubject::Measured(Source::read(&found, talk)?)
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses flags that contradict each other before anything is read.
fn check_flags(arguments: &ReportArguments) -> Result<()> {
    let ReportArguments { open, together, .. } = *arguments;
    let format = arguments.format();
    let is_printed = arguments.to.as_deref() == Some(Path::new(output::STDOUT));
    let has_narrator = arguments.narrator.narrator.is_some();
    let name = format.map_or("", <&str>::from);
    let is_data = matches!(name, "csv" | "json" | "site" | "png" | "card");
    let is_picture = matches!(name, "png" | "card");
    let to_file = arguments.to.is_some() && !is_printed;
    let to = arguments.to.as_deref().filter(|_| format.is_none() && !is_printed);
    let no_folder = to.filter(|to| to.exists() && !to.is_dir());
    let refusals = [
        (
            no_folder.is_some(),
            &*no_folder.map_or_else(String::new, |to| format!("{} is not a folder", to.display())),
            "add --format html, md, csv or json",
        ),
        (
            1 < arguments.names.len() && to_file && !together,
            "--to names one file or folder, but several runs are named",
            "leave --to out, make the reports one by one, or one page of all with --together",
        ),
        (
            together && has_narrator,
            "--narrator writes about one run or set, and --together makes a page of all",
            "leave one of them out",
        ),
        (
            is_data && has_narrator,
            &format!("--narrator writes prose, and {name} contains none"),
            "leave one of them out",
        ),
        (
            format.is_none() && is_printed,
            "`--to -` prints one format, and --format is not set",
            "add --format html, md, csv or json",
        ),
        (
            open && (is_data || name == "md"),
            &format!("--open shows the HTML page, and --format is {name}"),
            "leave --format out, or set it to html",
        ),
        (
            is_picture && is_printed,
            &format!("--format {name} makes files, and `--to -` prints"),
            "name a folder or a file with --to",
        ),
        (open && is_printed, "--open needs a file, and `--to -` makes none", "leave --to out"),
    ];
    match refusals.into_iter().find(|(is_refused, ..)| *is_refused) {
        Some((_, message, hint)) => Err(Failure::usage(message).hint(hint)),
        None => Ok(()),
    }
}

/// Makes the requested files; returns the path of the HTML page where there is one.
fn make(
    subject: &ReportSubject,
    arguments: &ReportArguments,
    writer: &Writer,
    talk: impl Fn(&str),
) -> Result<Option<PathBuf>> {
    let document = || subject.document(writer, &talk);
    let own_folder = || {
        subject.folder().map(Path::to_owned).ok_or_else(|| {
            Failure::usage("a page of several runs has no folder")
                .hint("name one: --to FOLDER, or --format html --to FILE")
        })
    };
    let Some(form) = arguments.format() else {
        let folder = arguments.to.clone().map_or_else(own_folder, Ok)?;
        let page = write_all(&folder, &document()?, &subject.data())?;
        output::path(&page)?;
        return Ok(Some(page));
    };
    let printed = || -> Result<String> {
        Ok(match form {
            ReportFormat::Html => html::render(&subject.data().attached_to(document()?)),
            ReportFormat::Md => markdown::render(&document()?).text,
            ReportFormat::Csv => subject.csv(),
            ReportFormat::Json => subject.json(),
            ReportFormat::Site => subject.site()?.swap_remove(0).1,
            // Pictures are not printed.
            ReportFormat::Png | ReportFormat::Card => String::new(),
        })
    };
    let path = match (arguments.to.as_deref(), form) {
        (Some(to), _) if to == Path::new(output::STDOUT) => None,
        (Some(to), _) => Some(to.to_owned()),
        (None, ReportFormat::Html) => Some(own_folder()?.join(HTML)),
        (None, ReportFormat::Md) => Some(own_folder()?.join(MARKDOWN)),
        (None, ReportFormat::Site) => Some(own_folder()?.join(SITE)),
        (None, ReportFormat::Png) => Some(own_folder()?.join(markdown::CHARTS)),
        (None, ReportFormat::Card) => Some(own_folder()?.join(CARD)),
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
    let write = if arguments.to.is_some() { write_output } else { write_atomically };
    match form {
        ReportFormat::Md => write_markdown(&path, &document()?, write)?,
        // The page is the first of the files and written last: where it is, all is there.
        ReportFormat::Site => {
            for (name, text) in subject.site()?.into_iter().rev() {
                write_file(&path.join(name), &text)?;
            }
        }
        ReportFormat::Html | ReportFormat::Csv | ReportFormat::Json => {
            write_with(&path, printed()?.as_bytes(), write)?;
        }
        ReportFormat::Png => write_pictures(&path, &document()?)?,
        ReportFormat::Card => write_card(&path, &document()?, &subject.data(), write_output)?,
    }
    output::path(&path)?;
    Ok((form == ReportFormat::Html).then_some(path))
}

/// What a report is about.
enum ReportSubject {
    Measured(Source),
    Results(Results),
}

/// Results of any tool, as one page shows them.
struct Results {
    shown: Vec<ToolResult>,
    words: PageWords,
    /// The folder of an import; results of several have none.
    folder: Option<PathBuf>,
}

impl ReportSubject {
    fn from_stored(found: &Stored) -> Result<Self> {
        Ok(match found {
            Stored::Import(..) => Self::Results(Results::from_stored(std::slice::from_ref(found))?),
            Stored::Run(_) | Stored::Set(_) => Self::Measured(Source::read(found, |_| {})?),
        })
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Measured(source) => Some(source.folder()),
            Self::Results(results) => results.folder.as_deref(),
        }
    }

    /// Sets the title, which only a page of results can have.
    fn set_title(&mut self, title: &str) -> Result<()> {
        match self {
            Self::Results(results) => results.words.title = Some(title.to_owned()),
            Self::Measured(source) => {
                let name = source.folder().display();
                return Err(Failure::usage(format!("--title cannot change the title of {name}"))
                    .hint("leave --title out, or make a page of results with --together"));
            }
        }
        Ok(())
    }

    /// The page; where a model writes its prose, the model is asked first.
    fn document(&self, writer: &Writer, talk: impl Fn(&str)) -> Result<Document> {
        let consult = |subject: Subject<'_>, facts: &Facts, folder: &Path| {
            // A signal may end this at once.
            let never = &Interruption::default();
            writer.write(subject, facts, folder, never, &talk).map_err(leaving_pages_alone)
        };
        match self {
            Self::Results(results) => Ok(results_page(&results.shown, &results.words)),
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
                Ok(run_document(directory, summary))
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

    fn data(&self) -> PageData {
        match self {
            Self::Measured(Source::Run { summary, .. }) => PageData::from_run(summary),
            Self::Measured(Source::Set { summary, points, .. }) => {
                PageData::from_set(summary, points)
            }
            Self::Results(results) => PageData {
                id: results.words.made_from.join("+"),
                csv: self.csv(),
                summary: self.json().into_bytes(),
            },
        }
    }

    fn csv(&self) -> String {
        match self {
            Self::Measured(Source::Run { summary, .. }) => csv::of_run(summary),
            Self::Measured(Source::Set { summary, points, .. }) => set_csv(summary, points),
            Self::Results(results) => csv::of_results(&results.shown),
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Measured(Source::Run { directory, summary }) => {
                json::render(summary, &commands::files(directory), &[])
            }
            Self::Measured(Source::Set { set, summary, .. }) => {
                json::render(summary, &study::files(set), &[])
            }
            Self::Results(results) => json::render_results(&results.shown),
        }
    }

    /// The files of a fragment of a site, the page first.
    fn site(&self) -> Result<Vec<(String, String)>> {
        let own;
        let results = match self {
            Self::Results(results) => results,
            Self::Measured(source) => {
                let name = source.folder().file_name().unwrap_or_default().to_string_lossy();
                let results = source.results(true).into_iter().map(|it| it.result);
                own = Results::new(results.collect(), vec![name.into_owned()]);
                &own
            }
        };
        let raw = |result: &ToolResult| line(result, &Writing::default());
        for result in &results.shown {
            raw(result).map_err(Failure::from_error)?;
        }
        Ok(site(&results.shown, &results.words, |result| raw(result).unwrap_or_default()))
    }
}

impl Results {
    fn new(results: Vec<ToolResult>, made_from: Vec<String>) -> Self {
        let tools: BTreeSet<Tool> = results.iter().map(|result| result.source.tool).collect();
        let definition = |tool| (tool, meaning(tool).iter().map(ToString::to_string).collect());
        let words = PageWords {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            definitions: tools.into_iter().map(definition).collect(),
            made_from,
            ..PageWords::default()
        };
        Self { shown: results, words, folder: None }
    }

    /// All that is named, on one page, with what could not be read of the files that were imported.
    fn read(store: &RunStore, names: &[String]) -> Result<Self> {
        let found = results::from_names(store, names, true, |_| {})?;
        if found.is_empty() {
            return Err(Failure::usage(format!("there is no result in {}", names.join(", ")))
                .hint("`inferometer runs` lists what is stored"));
        }
        let mut results =
            Self::new(found.into_iter().map(|it| it.result).collect(), names.to_vec());
        for typed in names {
            let (_, name) = results::split_name(typed);
            let found = store.find(name).map_err(Failure::from_usage)?;
            results.remark_broken(&found)?;
        }
        Ok(results)
    }

    /// The same of what was found; several stay apart under their names.
    fn from_stored(found: &[Stored]) -> Result<Self> {
        let mut all = Vec::new();
        for one in found {
            let mut results = results::from_stored(one, true, |_| {})?;
            if 1 < found.len() {
                let configurations = results.iter_mut().map(|it| &mut it.result.configuration);
                results::name_all(configurations, one.id());
            }
            all.extend(results.into_iter().map(|it| it.result));
        }
        let mut results = Self::new(all, found.iter().map(|one| one.id().to_owned()).collect());
        for one in found {
            results.remark_broken(one)?;
        }
        Ok(results)
    }

    /// Adds what could not be read of an import.
    fn remark_broken(&mut self, found: &Stored) -> Result<()> {
        let Stored::Import(import, None) = found else { return Ok(()) };
        let broken = Mapped::read(import)?.import.broken().count();
        if 0 < broken {
            let name = import.id();
            self.words.remarks.push(format!(
                "{} of {name} could not be read; its summary.json has the reasons",
                counted(broken as u64, "record")
            ));
        }
        Ok(())
    }
}

#[cfg(target_os = "macos")]
const OPENERS: [&[&str]; 1] = [&["open"]];
#[cfg(windows)]
const OPENERS: [&[&str]; 1] = [&["cmd", "/C", "start", ""]];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: [&[&str]; 2] = [&["xdg-open"], &["gio", "open"]];

/// Every file below a folder, in the order of their paths. Links are not followed.
pub(crate) fn files_below(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(files_below(&entry.path())?);
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Opens a file or an address, or says why not. Does not wait for the browser.
pub(crate) fn open_in_browser(page: &Path) -> Result<(), String> {
    // Without a desktop an opener may start a browser for terminals, which shows nothing here; a user
    // who sets BROWSER accepts that.
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(is_set) {
        return Err("there is no desktop: DISPLAY and WAYLAND_DISPLAY are not set".to_owned());
    }
    let mut failed = Vec::new();
    for opener in OPENERS {
        let mut command = Command::new(opener[0]);
        command.args(&opener[1..]).arg(page).stdin(Stdio::null());
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(child) = spawned else { continue };
        if !fails_at_once(child) {
            return Ok(());
        }
        failed.push(opener[0]);
    }
    Err(if failed.is_empty() {
        let tried = OPENERS.map(|opener| opener[0]).join(", ");
        format!("no program that opens pages was found; tried {tried}")
    } else {
        format!("{} failed", failed.join(" and "))
    })
}

/// A program that cannot open the page fails soon; one that keeps running is probably the browser.
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

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use inferometer_model::SpecDraft;
    use inferometer_model::spec::TargetSpec;
    use inferometer_model::study::{
        Condition, Level, Point, Question, Repetition, RunOrder, Stage, StudySpec,
    };

    use super::*;

    fn study(urls: [&str; 2]) -> StudySpec {
        let condition = |url: &str| {
            let draft = SpecDraft { url: Some(url.parse().unwrap()), ..SpecDraft::default() };
            Condition { name: url.to_owned(), spec: draft.resolve().unwrap() }
        };
        let runs = NonZeroU32::MIN;
        let repetition =
            Repetition { runs, cool_down: Duration::ZERO, restart: None, stop_at: None };
        StudySpec {
            question: Question::Repeat,
            conditions: urls.map(condition).to_vec(),
            repetition,
            order: RunOrder::Listed,
            seed: 0,
        }
    }

    #[test]
    fn a_model_is_asked_at_the_server_where_it_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let study = study(["http://one:8000", "http://two:8000"]);
        let store = RunStore::open(folder.path().into()).unwrap();
        let set = &store.create_set(study, false, Vec::new(), None, 0).unwrap();
        let manifest = &set.manifest().unwrap();
        let stored = include_bytes!("../../report/tests/summary.json");
        let summary = Summary::from_json_bytes(stored).unwrap();
        // As sides are interleaved, the second may be measured first.
        let points: Vec<PointResult> = (0..2)
            .map(|number| {
                let (level, stage) = (Level::AsAsked, Stage::Planned);
                let condition = 1 - number;
                let point = Point { number, condition, level, repetition: 0, seed: 0, stage };
                let mut summary = summary.clone();
                summary.run.model = format!("model of {condition}");
                PointResult { point, summary }
            })
            .collect();
        let summary = &SetSummary::summarize(manifest, &points);
        let subject = SetPage { set, manifest, summary, points: &points }.subject().unwrap();
        assert_eq!(subject.model, "model of 1");
        assert_eq!(subject.spec.target, TargetSpec::Url("http://two:8000".parse().unwrap()));
        assert_eq!(subject.condition, 1);
    }
}
