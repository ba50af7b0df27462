//! Studies on the command line: a repeat, sweep, suite or matrix is begun, outlined, listed or resumed
//! here, and its result is shown.
//!
//! `sweep`, `suite` and `matrix` turn flags and files into a [`StudyPlan`]; from there on all kinds of
//! studies are alike.

pub(crate) mod advice;
pub(crate) mod dry_run;
pub(crate) mod file;
pub(crate) mod matrix;
pub(crate) mod suite;
pub(crate) mod sweep;
mod trust;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::{RequirementOutcome, Summary, Verdict};
use inferometer_model::Spec;
use inferometer_model::study::{
    Condition, Matrix, Question, Repetition, RunOrder, SetManifest, StudySpec,
};
use inferometer_report::escape::terminal;
use inferometer_report::json;
use inferometer_report::terminal::requirements;
use inferometer_report::terminal::set::{SetFiles, render};
use inferometer_store::{SetDirectory, Stored};
use inferometer_study::play::{
    self, Backend, Played, Player, ResumeOptions, reached_no_server, resume_command, server_name,
};

use self::file::BuiltIns;
use crate::arguments::{
    ExperimentArguments, MatrixArguments, NarratorArguments, PageFormat, ResultArguments,
    SuiteArguments, SweepArguments,
};
use crate::commands::run::exit_of;
use crate::commands::{store, style};
use crate::draft::{RESTART_TIMEOUT, announce_seed};
use crate::experiment;
use crate::failure::{Exit, Failure, Result};
use crate::narrator::{self, Writer};
use crate::output;
use crate::report_files::{self, PageData, SetPage};
use crate::requirements::{Judged, Requirements};
use crate::secrets::Secrets;
use crate::signals::begin_session;

/// `inferometer sweep`: many loads, servers side by side, and searches.
pub(crate) fn sweep(arguments: &SweepArguments) -> Result<ExitCode> {
    let results = &arguments.results;
    if let Some(name) = &arguments.resume {
        let refused = vec![("--virtual", arguments.virtual_time)];
        let typed = arguments.merged();
        let trust = arguments.trust;
        return Resume { name, typed, refused, results, trust, narrator: None, cells: None }.run();
    }
    Begin::new(arguments.virtual_time, results)
        .run(sweep::plan(&arguments.merged(), arguments.virtual_time)?)
}

/// `inferometer suite`: a list of scenarios on one server.
pub(crate) fn suite(arguments: &SuiteArguments) -> Result<ExitCode> {
    let SuiteArguments { results, virtual_time, list, show, .. } = arguments;
    if *list || show.is_some() {
        return print_built_in(&suite::SUITES, show.as_deref(), suite::list, results.page.format());
    }
    let narrator = Some(&arguments.narrator);
    if let Some(name) = &arguments.resume {
        let refused =
            vec![("--prompts", arguments.prompts.is_some()), ("--virtual", *virtual_time)];
        let typed = arguments.experiment.clone();
        let trust = arguments.trust;
        return Resume { name, typed, refused, results, trust, narrator, cells: None }.run();
    }
    let begin = Begin { is_virtual: *virtual_time, results, narrator };
    begin.run(suite::plan(arguments)?)
}

/// `inferometer matrix`: servers that are deployed one after the other, each measured in the same way.
pub(crate) fn matrix(arguments: &MatrixArguments) -> Result<ExitCode> {
    let MatrixArguments { results, virtual_time, list, show, .. } = arguments;
    if *list || show.is_some() {
        let format = results.page.format();
        return print_built_in(&matrix::MATRICES, show.as_deref(), matrix::list, format);
    }
    if let Some(name) = &arguments.resume {
        let refused = vec![("a matrix", arguments.matrix.is_some()), ("--virtual", *virtual_time)];
        let headers = arguments.headers.clone();
        let typed = ExperimentArguments { headers, ..ExperimentArguments::default() };
        let (cells, trust) = (Some(arguments), arguments.trust);
        return Resume { name, typed, refused, results, trust, narrator: None, cells }.run();
    }
    Begin::new(*virtual_time, results).run(matrix::plan(arguments)?)
}

/// `--show NAME`, or else `--list`.
fn print_built_in(
    built_ins: &BuiltIns,
    show: Option<&str>,
    list: fn(PageFormat) -> Result<String>,
    format: PageFormat,
) -> Result<ExitCode> {
    match show {
        Some(name) => output::result(built_ins.show(name)?),
        None => output::result(&list(format)?),
    }
}

/// What is measured of a matrix that is resumed.
fn resume_options(arguments: &MatrixArguments, matrix: &Matrix) -> Result<ResumeOptions> {
    let lanes = arguments.lanes.map(|lanes| {
        NonZeroU32::new(lanes).ok_or_else(|| Failure::usage("--lanes must be at least 1"))
    });
    let only = if arguments.only.is_empty() {
        None
    } else {
        let selection = matrix::Selection::read(&arguments.only, matrix)?;
        let cells = (0_u32..).zip(&matrix.cells);
        let cells = cells.filter(|(_, cell)| selection.takes(matrix, cell));
        let levels = matrix.levels.iter().filter(|level| selection.takes_load(level));
        Some((cells.map(|(index, _)| index).collect(), levels.copied().collect()))
    };
    Ok(ResumeOptions { retry_failed: arguments.retry_failed, only, lanes: lanes.transpose()? })
}

/// A study that is ready to be measured.
#[derive(Debug)]
pub(crate) struct StudyPlan {
    pub(crate) study: StudySpec,
    /// One for each condition.
    pub(crate) secrets: Vec<Secrets>,
    pub(crate) restart_timeout: Duration,
    /// What was understood otherwise than it was written.
    pub(crate) notes: Vec<String>,
    /// What will be wrong with the results of a matrix, each with its remedy.
    pub(crate) warnings: Vec<String>,
    /// Cells of the embedded engine that cannot start, by their indexes, each with the reason in the
    /// engine's own words, line by line.
    pub(crate) foreseen: Vec<(usize, Vec<String>)>,
}

impl StudyPlan {
    fn new(
        question: Question,
        conditions: Vec<(Condition, Secrets)>,
        repetition: Repetition,
        order: RunOrder,
    ) -> Self {
        let (conditions, secrets): (Vec<Condition>, Vec<Secrets>) = conditions.into_iter().unzip();
        let seed = conditions.first().map_or(0, |condition| condition.spec.seed);
        Self {
            study: StudySpec { question, conditions, repetition, order, seed },
            secrets,
            restart_timeout: RESTART_TIMEOUT,
            notes: Vec::new(),
            warnings: Vec::new(),
            foreseen: Vec::new(),
        }
    }

    /// The same experiment several times.
    pub(crate) fn repeated(spec: Spec, repetition: Repetition, secrets: Secrets) -> Self {
        let condition = Condition { name: server_name(&spec), spec };
        Self::new(Question::Repeat, vec![(condition, secrets)], repetition, RunOrder::Listed)
    }
}

/// How a study is begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin<'a> {
    pub(crate) is_virtual: bool,
    pub(crate) results: &'a ResultArguments,
    /// Who writes the report of a suite.
    pub(crate) narrator: Option<&'a NarratorArguments>,
}

impl<'a> Begin<'a> {
    pub(crate) fn new(is_virtual: bool, results: &'a ResultArguments) -> Self {
        Self { is_virtual, results, narrator: None }
    }

    /// Checks a study and shows its outline, or creates its set and measures it.
    pub(crate) fn run(self, mut plan: StudyPlan) -> Result<ExitCode> {
        let backend = self.checked_backend(&mut plan)?;
        let results = self.results;
        if results.dry_run {
            return output::result(&dry_run::outline(&plan, results)?);
        }
        let writer = writer(self.narrator, &backend)?;
        self.play(&plan, backend, |player, played| conclude(player, played, results, &writer))
    }

    /// The same for a study that is a part of something else: `use_results` gets its results.
    pub(crate) fn measure<T>(
        self,
        mut plan: StudyPlan,
        use_results: impl FnOnce(&Player<'_>, &Played) -> Result<T>,
    ) -> Result<T> {
        let backend = self.checked_backend(&mut plan)?;
        self.play(&plan, backend, use_results)
    }

    fn checked_backend(self, plan: &mut StudyPlan) -> Result<Backend> {
        let Self { is_virtual, results, .. } = self;
        experiment::config::announce(results.quiet);
        let secrets = std::mem::take(&mut plan.secrets);
        let backend = if is_virtual {
            Backend::Virtual
        } else {
            Backend::live(secrets, plan.restart_timeout)
        };
        check_format(results)?;
        Requirements::for_set(&results.require, &plan.study)?;
        play::check(&plan.study, &backend)?;
        Ok(backend)
    }

    fn play<T>(
        self,
        plan: &StudyPlan,
        mut backend: Backend,
        use_results: impl FnOnce(&Player<'_>, &Played) -> Result<T>,
    ) -> Result<T> {
        let Self { is_virtual, results, .. } = self;
        let is_matrix = plan.study.matrix().is_some();
        announce_seed(results.quiet);
        let talk = output::talk_unless(results.quiet);
        plan.notes.iter().filter(|_| !is_matrix).for_each(|note| talk(&format!("note: {note}")));
        let store = store(&results.store)?;
        store.check_writable().map_err(Failure::from_usage)?;
        let ceiling = play::checked_ceiling(&plan.study, &backend)?;
        // Until all servers have answered a signal ends the program at once: nothing is stored yet.
        backend.probe(&plan.study, &|line| talk(&terminal(&line)))?;
        let session = begin_session(ceiling, results.quiet)?;
        if is_matrix {
            dry_run::announce(plan, &session, is_virtual)?;
        }
        session.interruption.check()?;
        let study = &plan.study;
        let set = play::create(&store, study.clone(), &backend)?;
        trust::remember(&set);
        let (options, is_resumed) = (ResumeOptions::default(), false);
        let (store, set, session) = (&store, &set, &session);
        let player = Player { store, set, study, session, options, is_resumed };
        use_results(&player, &player.play(backend)?)
    }
}

fn writer(narrator: Option<&NarratorArguments>, backend: &Backend) -> Result<Writer> {
    match narrator {
        Some(narrator) => Writer::for_suite(narrator, backend.secrets().as_deref()),
        None => Ok(Writer::Rules),
    }
}

/// A set to resume, and the flags beside it.
struct Resume<'a> {
    name: &'a str,
    typed: ExperimentArguments,
    /// Other flags that the set has set already.
    refused: Vec<(&'static str, bool)>,
    results: &'a ResultArguments,
    /// Whether a set from elsewhere may run its commands and read its files.
    trust: bool,
    /// The narrator that writes the report of a suite.
    narrator: Option<&'a NarratorArguments>,
    /// Which cells of a matrix are measured; `None` for a set of another kind.
    cells: Option<&'a MatrixArguments>,
}

impl Resume<'_> {
    fn run(&self) -> Result<ExitCode> {
        let results = self.results;
        let refused = self.refused.iter().find(|(_, is_typed)| *is_typed);
        let refused = refused.map(|(flag, _)| (*flag).to_owned());
        if let Some(flag) = experiment::first_said(&self.typed)?.or(refused) {
            return Err(Failure::usage(format!(
                "{flag} cannot be combined with --resume: the set has its own settings"
            ))
            .hint("leave it out, or begin a new set"));
        }
        if results.dry_run {
            return Err(Failure::usage(
                "--dry-run is for a new set and cannot be combined with --resume",
            ));
        }
        let store = store(&results.store)?;
        let no_set = |what: &str, hint: &str| {
            let message = format!("--resume needs a set of runs, and {} is {what}", self.name);
            Err(Failure::usage(message).hint(hint))
        };
        let is_set = |found: &Stored| matches!(found, Stored::Set(_));
        let set = match store.find_usable(self.name, is_set).map_err(Failure::from_usage)? {
            Stored::Set(set) => set,
            Stored::Run(_) => {
                return no_set("one run", "finish a run that crashed with `inferometer recover`");
            }
            Stored::Import(..) => return no_set("an import", "begin a new set without --resume"),
        };
        let manifest = set.manifest().map_err(Failure::from_usage)?;
        trust::check(&set, &manifest, self.trust)?;
        let study = &manifest.study;
        let options = match (study.matrix(), self.cells) {
            (Some(matrix), Some(arguments)) => resume_options(arguments, matrix)?,
            (_, Some(_)) => {
                return Err(Failure::usage(format!("{} is not a matrix", set.id()))
                    .hint(format!("resume with: {}", resume_command(&set))));
            }
            (_, None) => ResumeOptions::default(),
        };
        let backend = if manifest.simulated {
            Backend::Virtual
        } else {
            let waits = self.typed.tables.repeat.restart_timeout;
            let restart_timeout = waits.map_or(RESTART_TIMEOUT, |written| written.0);
            Backend::live(secrets(&self.typed, &manifest)?, restart_timeout)
        };
        check_format(results)?;
        if study.matrix().is_some() {
            Requirements::for_set(&results.require, study)?;
            play::check(study, &backend)?;
        }
        let writer = match self.narrator.filter(|asked| asked.narrator.is_some()) {
            Some(_) if study.suite().is_none() => {
                let path = set.path().display();
                return Err(Failure::usage("--narrator: only a suite has a report when it ends")
                    .hint(format!(
                        "write one later with: inferometer report {path} --narrator …"
                    )));
            }
            asked => writer(asked, &backend)?,
        };
        let session = begin_session(play::checked_ceiling(study, &backend)?, results.quiet)?;
        trust::remember(&set);
        let store = &output::hiding(store);
        let (set, session, is_resumed) = (&set, &session, true);
        let player = Player { store, set, study, session, options, is_resumed };
        conclude(&player, &player.play(backend)?, results, &writer)
    }
}

/// Keys and the values of headers are stored nowhere, so they are read again: each key where it
/// was read first. A key file that is typed now is for all servers, and only where they had the same.
fn secrets(typed: &ExperimentArguments, manifest: &SetManifest) -> Result<Vec<Secrets>> {
    let typed_file = typed.tables.target.api_key_file.as_deref();
    let mut files: Vec<Option<&Path>> = manifest.key_files.iter().map(Option::as_deref).collect();
    let conditions = &manifest.study.conditions;
    files.resize(conditions.len(), None);
    if typed_file.is_some() && files.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(Failure::usage(
            "--api-key-file sets one key, but the servers of this set have different keys",
        )
        .hint("leave it out: each key is read again from its own file"));
    }
    let mut read: Vec<Secrets> = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let secrets = match read.last() {
            Some(last) if files[index] == files[index - 1] => last.clone(),
            Some(_) | None => Secrets::read(typed_file.or(files[index]), &typed.headers)?,
        };
        output::hide(secrets.credentials.redactor());
        check_headers(&secrets, &condition.spec.header_names)?;
        read.push(secrets);
    }
    Ok(read)
}

fn check_headers(secrets: &Secrets, names: &[String]) -> Result<()> {
    let (mut given, mut names) = (secrets.header_names.clone(), names.to_vec());
    given.sort_unstable();
    names.sort_unstable();
    if given == names {
        return Ok(());
    }
    let wanted: Vec<String> = names.iter().map(|name| format!("--header '{name}: …'")).collect();
    Err(match &wanted[..] {
        [] => Failure::usage("the set was measured without --header; leave it out"),
        wanted => Failure::usage(format!(
            "the set was measured with {}; give the same again, because values are never stored",
            wanted.join(" ")
        )),
    })
}

fn check_format(results: &ResultArguments) -> Result<()> {
    if results.page.format() != PageFormat::Vllm {
        return Ok(());
    }
    Err(Failure::usage("--format vllm prints one run, and this is a set of runs")
        .hint("leave it out; print a run of the set with: inferometer verify SET/N"))
}

/// Judges a set and its requirements, shows it, writes its report, and returns the exit code.
fn conclude(
    player: &Player<'_>,
    result: &Played,
    results: &ResultArguments,
    writer: &Writer,
) -> Result<ExitCode> {
    let Player { set, session, .. } = player;
    let Played { manifest, summary, points, .. } = result;
    let question = &manifest.study.question;
    let of_set = SetPage { set, manifest, summary, points };
    let requirements = Requirements::for_set(&results.require, &manifest.study)?;
    let runs: Vec<Summary> = points.iter().map(|it| it.summary.clone()).collect();
    let outcomes = requirements.judge(&runs)?;
    let verdict = exit_code(result, &runs, results.strict);
    let exit = verdict.or_else(|| requirements.exit(&outcomes));
    let has_report = matches!(question, Question::Suite(_) | Question::Matrix(_));
    let mut report = write_report(&of_set);
    show(summary, &files_with(set, report.clone()), &outcomes, results.page.format())?;
    let written = requirements.write_files(&[Judged { runs, results: Vec::new(), outcomes }]);
    let mut exit = exit.max(written);
    if let (Some(_), Some(subject)) = (&report, of_set.subject())
        && writer.is_model()
    {
        // The report is there meanwhile, in the words of the rules or of an earlier narrator.
        let (facts, folder) = (&of_set.facts(), set.path());
        let talk = |line: &str| session.talk(line);
        if let Err(failure) = writer.write(subject, facts, folder, &session.interruption, talk) {
            narrator::leave_to_rules(&failure, subject.model, facts, folder);
        }
        exit = session.interruption.exit().or(exit);
        report = write_report(&of_set);
    }
    if let Some(page) = &report {
        session.talk(&format!("report: {}", page.display()));
        session.talk(&format!("show it with: inferometer report {} --open", set.path().display()));
    }
    // A missing report counts only where nothing graver happened.
    let exit = exit.or_else(|| (has_report && report.is_none()).then_some(Exit::Internal));
    Ok(exit.filter(|_| result.is_complete).map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn exit_code(played: &Played, runs: &[Summary], is_strict: bool) -> Option<Exit> {
    match (&played.manifest.study.question, played.summary.verdict) {
        (Question::Repeat, _) => {
            Exit::gravest(runs.iter().filter_map(|run| exit_of(run, is_strict)))
        }
        // A cell that failed is a result; a matrix without any other result has none.
        (Question::Matrix(_), _) if runs.is_empty() => Some(Exit::TargetNotUsable),
        // A level beyond what the server can do misses SLOs: that is what a sweep measures.
        (Question::Sweep(_) | Question::Suite(_), _) if runs.iter().any(reached_no_server) => {
            Some(Exit::RunInvalid)
        }
        (_, Verdict::Invalid) => Some(Exit::RunInvalid),
        (_, Verdict::Degraded) if is_strict => Some(Exit::RunInvalid),
        (_, Verdict::Degraded | Verdict::Simulated | Verdict::Valid) => None,
    }
}

/// Writes the report of a set, for a matrix its table first: where the page is, everything is there.
/// Returns the page, or `None` where it could not be written; the results are stored in any case.
fn write_report(of_set: &SetPage<'_>) -> Option<PathBuf> {
    let folder = of_set.set.path();
    let table = match of_set.manifest.study.question {
        Question::Matrix(_) => {
            let table = report_files::set_csv(of_set.summary, of_set.points);
            report_files::write_file(&folder.join(report_files::MATRIX_CSV), &table)
        }
        Question::Repeat | Question::Sweep(_) | Question::Suite(_) => Ok(()),
    };
    let data = PageData::from_set(of_set.summary, of_set.points);
    let is_published =
        of_set.manifest.study.suite().is_some() || of_set.manifest.study.matrix().is_some();
    let write = if is_published { report_files::write_all } else { report_files::write_html };
    let written = table.and_then(|()| write(folder, &of_set.document(), &data));
    written
        .inspect_err(|failure| {
            let (why, set) = (terminal(failure.message()), folder.display());
            output::talk(&format!("warning: no report was written: {why}"));
            output::talk(&format!(
                "the results are stored in {set}; make the report with: inferometer report {set}"
            ));
        })
        .ok()
}

/// Prints a set. The one place where sets are printed.
pub(crate) fn show(
    summary: &SetSummary,
    files: &SetFiles,
    required: &[RequirementOutcome],
    format: PageFormat,
) -> Result<ExitCode> {
    output::result(&match format {
        PageFormat::Json => json::render(summary, files, required),
        PageFormat::Page | PageFormat::Full | PageFormat::Vllm => {
            let mut page = render(summary, files, style());
            let section = requirements(required, style());
            if !section.is_empty() {
                page = format!("{page}\n{section}");
            }
            page
        }
    })
}

/// Where a set is stored, with its report where there is one.
pub(crate) fn files(set: &SetDirectory) -> SetFiles {
    let report = set.path().join(report_files::HTML);
    files_with(set, Some(report).filter(|report| report.is_file()))
}

fn files_with(set: &SetDirectory, report: Option<PathBuf>) -> SetFiles {
    let shown = |path: PathBuf| path.display().to_string();
    let there = |name: &str| Some(set.path().join(name)).filter(|path| path.is_file());
    let table = there(report_files::MATRIX_CSV);
    let markdown = table.as_ref().and_then(|_| there(report_files::MARKDOWN));
    SetFiles {
        set: shown(set.path().to_owned()),
        summary: there("summary.json").map(shown),
        report: report.map(shown),
        markdown: markdown.map(shown),
        table: table.map(shown),
    }
}
