//! `inferometer verify`: whether what is stored is intact. `inferometer recover`: finishes a run that
//! ended without being saved.

use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::{Summary, Verdict, summarize};
use inferometer_report::escape::terminal;
use inferometer_store::{
    ImportDirectory, RunDirectory, SetDirectory, StoreError, Stored, StoredRun,
};
use inferometer_study::play;

use super::{seal_summary, show, store};
use crate::arguments::{PageFormat, StoredRunArguments};
use crate::failure::{Exit, Failure};
use crate::results::{Mapped, sha256};
use crate::{output, study};

pub(crate) fn run(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    let found = find(arguments)?;
    let page = arguments.page.asked();
    match found {
        Stored::Run(directory) => verify_run(&directory, page),
        Stored::Set(set) => verify_set(&set, page),
        Stored::Import(import, _) => verify_import(&import, page),
    }
}

fn find(arguments: &StoredRunArguments) -> Result<Stored, Failure> {
    store(&arguments.store)?.find(&arguments.run).map_err(Failure::from_usage)
}

fn verify_run(directory: &RunDirectory, page: Option<PageFormat>) -> Result<ExitCode, Failure> {
    let Checked { stored, summary, problems } =
        check_run(directory).map_err(|error| unread(&error))?;
    if let Some(format) = page {
        show(&summary, directory, format)?;
    }
    let simulated = stored.observations.manifest.simulated.is_some();
    let verified = format!(
        "verified {}{}: {} records add up, and the summary is what they give",
        directory.id(),
        if simulated { " (simulated)" } else { "" },
        stored.observations.records.len()
    );
    conclude(&verified, problems, page)
}

/// Each run by itself, and then the summary of all.
fn verify_set(set: &SetDirectory, page: Option<PageFormat>) -> Result<ExitCode, Failure> {
    let manifest = set.manifest().map_err(|error| Failure::invalid(error.to_string()))?;
    let mut problems = Vec::new();
    let replay = play::replay(set, &manifest, |point, directory| {
        if !directory.path().exists() {
            return Ok(None);
        }
        let checked = match check_run(directory) {
            Err(StoreError::Unfinished { .. }) => return Ok(None),
            checked => checked.map_err(|error| unread(&error))?,
        };
        if play::was_cut(&checked.summary) {
            return Ok(None);
        }
        let of_point = |problem: String| format!("{}: {problem}", directory.id());
        problems.extend(checked.problems.into_iter().map(of_point));
        let spec = &checked.stored.observations.manifest.spec;
        if manifest.campaign.spec_of(point).as_ref() != Some(spec) {
            problems
                .push(of_point("it was measured with another spec than set.json asks for".into()));
        }
        Ok(Some(checked.summary))
    })?;
    let Some(summary) = replay.summary else {
        return Err(Failure::usage(format!(
            "{} is not finished: {}; resume with: {}",
            set.id(),
            play::stored_runs(replay.results.len()),
            play::resume_command(set)
        )));
    };
    let asked: Vec<u32> = replay.results.iter().map(|result| result.point.number).collect();
    let foreign = set.points()?.into_iter().filter(|number| !asked.contains(number));
    problems.extend(foreign.map(|number| format!("the set asks for no point {number}")));
    match set.read_summary()? {
        Some(kept) if kept == summary.to_json_bytes() => {}
        Some(_) => problems.push("summary.json is not, byte for byte, what the runs give".into()),
        None => problems.push(format!(
            "there is no stored summary to compare with; compute it with: {}",
            play::resume_command(set)
        )),
    }
    if let Some(format) = page {
        study::show(&summary, &study::files(set), &[], format)?;
    }
    let verified = format!(
        "verified {}{}: {} runs add up{}, and the summary is what they give",
        set.id(),
        if manifest.simulated { " (simulated)" } else { "" },
        replay.results.len(),
        match set.failures().map_or(0, |failures| failures.len()) {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        }
    );
    conclude(&verified, problems, page)
}

/// Standard output holds one result: the finding, or the page that was asked for.
fn conclude(
    verified: &str,
    problems: Vec<String>,
    page: Option<PageFormat>,
) -> Result<ExitCode, Failure> {
    let tell = |line: &str| {
        // A foreign file's name may be in it.
        let line = terminal(line);
        if page.is_some() {
            output::talk(&line);
            Ok(())
        } else {
            output::result(&format!("{line}\n"))
        }
    };
    if problems.is_empty() {
        tell(verified)?;
        return Ok(ExitCode::SUCCESS);
    }
    for problem in problems {
        tell(&format!("not verified: {problem}"))?;
    }
    Ok(Exit::RunInvalid.into())
}

/// A run read back and computed again.
struct Checked {
    stored: StoredRun,
    summary: Summary,
    problems: Vec<String>,
}

/// Why there is nothing to verify.
fn unread(error: &StoreError) -> Failure {
    let too_early = matches!(error, StoreError::Unfinished { .. } | StoreError::Busy { .. });
    let message = error.to_string();
    if too_early { Failure::usage(message) } else { Failure::invalid(message) }
}

fn check_run(directory: &RunDirectory) -> Result<Checked, StoreError> {
    let stored = directory.read()?;
    let summary = summarize(&stored.observations);
    let kept = directory.read_summary()?;
    let mut problems = Vec::new();
    if !stored.integrity.is_intact() {
        problems.push(format!("the journal is damaged: {}", stored.integrity));
    }
    problems.extend(difference(&summary, kept.as_deref(), directory));
    Ok(Checked { stored, summary, problems })
}

/// What is wrong with the stored summary, if anything.
fn difference(computed: &Summary, kept: Option<&[u8]>, directory: &RunDirectory) -> Option<String> {
    let Some(kept) = kept else {
        return Some(format!(
            "there is no stored summary to compare with; compute it with: {}",
            directory.remedy()
        ));
    };
    if kept == computed.to_json_bytes() {
        return None;
    }
    let changed = Summary::from_json_bytes(kept).map(|kept| {
        let verdict = (kept.verdict != computed.verdict)
            .then(|| format!("its verdict is {}, recomputed {}", kept.verdict, computed.verdict));
        let metric = computed.metrics.iter().zip(kept.metrics.iter()).find(|(new, old)| new != old);
        verdict.or_else(|| metric.map(|((metric, _), _)| format!("{} differs", metric.key())))
    });
    Some(match changed {
        Ok(Some(detail)) => format!("summary.json is not what the records give: {detail}"),
        Ok(None) => "summary.json is not, byte for byte, what the records give".to_owned(),
        Err(error) => format!("summary.json cannot be read: {error}"),
    })
}

/// Maps the file again and compares.
fn verify_import(import: &ImportDirectory, page: Option<PageFormat>) -> Result<ExitCode, Failure> {
    let invalid = |error: &inferometer_store::StoreError| Failure::invalid(error.to_string());
    let foreign = import.foreign().map_err(|error| invalid(&error))?;
    let manifest = import.manifest().map_err(|error| invalid(&error))?;
    if sha256(&foreign) != manifest.file.sha256 {
        let problem = format!(
            "{} is not the file that was imported: it has {} bytes and another SHA-256 than \
             import.json says",
            import.foreign_path().display(),
            foreign.len()
        );
        return conclude("", vec![problem], page);
    }
    let mapped = Mapped::read(import).map_err(|failure| Failure::invalid(failure.message()))?;
    let problems: Vec<String> = import_difference(&mapped)?.into_iter().collect();
    match page {
        None => {}
        Some(PageFormat::Page) => output::result(&mapped.page())?,
        Some(PageFormat::Json) => output::result(&format!("{:#}\n", mapped.json()?))?,
        Some(PageFormat::Vllm) => output::result(&mapped.blocks())?,
    }
    let verified = format!(
        "verified {}: {} is as it was, and its {} results are what it gives",
        import.id(),
        manifest.file.name,
        mapped.import.sheets().count()
    );
    conclude(&verified, problems, page)
}

/// What is wrong with the stored summary, if anything.
fn import_difference(mapped: &Mapped) -> Result<Option<String>, Failure> {
    let again = "import the file again";
    let Some(kept) = mapped.directory.read_summary()? else {
        return Ok(Some(format!("there is no stored summary to compare with; {again}")));
    };
    if kept == mapped.summary()? {
        return Ok(None);
    }
    let made_by = &mapped.manifest.tool_version;
    let why = if made_by == env!("CARGO_PKG_VERSION") {
        String::new()
    } else {
        format!(" (imported by version {made_by}, mapped again by {})", env!("CARGO_PKG_VERSION"))
    };
    Ok(Some(format!("summary.json is not, byte for byte, what the file gives{why}; {again}")))
}

pub(crate) fn recover(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    let found = find(arguments)?;
    let directory = match found {
        Stored::Run(directory) if !directory.id().contains('/') => directory,
        Stored::Run(point) => {
            let set = point.path().parent().and_then(Path::parent).unwrap_or(point.path());
            let set = SetDirectory::at(set.to_owned());
            return Err(of_a_set(&format!("{} is a run of a set", point.id()), &set));
        }
        Stored::Import(import, _) => {
            return Err(Failure::usage(format!(
                "{} was imported, and only runs that were measured here can be recovered",
                import.id()
            ))
            .hint(format!("see whether it is whole with: inferometer verify {}", import.id())));
        }
        Stored::Set(set) => return Err(of_a_set(&format!("{} is a set", set.id()), &set)),
    };
    let recovery = match directory.recover() {
        Ok(recovery) => recovery,
        Err(StoreError::AlreadyFinished { .. }) if !has_summary(&directory) => {
            return summarize_again(arguments, &directory);
        }
        Err(error) => return Err(Failure::usage(error.to_string())),
    };
    let cut = match recovery.cut_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} torn bytes cut off the journal"),
    };
    output::talk(&format!(
        "recovered: {} requests were in flight and are cancelled, {} were never sent{cut}",
        recovery.cancelled, recovery.not_sent
    ));
    let summary = seal_summary(&directory, &recovery.run)?;
    show(&summary, &directory, arguments.page.format())?;
    Ok(match summary.verdict {
        Verdict::Invalid => Exit::RunInvalid.into(),
        Verdict::Degraded | Verdict::Valid => ExitCode::SUCCESS,
    })
}

/// An incomplete run of a set is measured again, so that all its runs are whole.
fn of_a_set(what: &str, set: &SetDirectory) -> Failure {
    Failure::usage(format!("{what}: what is not whole is measured again, not recovered"))
        .hint(format!("resume with: {}", play::resume_command(set)))
}

/// Whether there is a summary that can be read.
fn has_summary(directory: &RunDirectory) -> bool {
    let stored = directory.read_summary().ok().flatten();
    stored.is_some_and(|bytes| Summary::from_json_bytes(&bytes).is_ok())
}

/// The run itself is whole; only what follows from it was lost.
fn summarize_again(
    arguments: &StoredRunArguments,
    directory: &RunDirectory,
) -> Result<ExitCode, Failure> {
    let stored = directory.read()?;
    let summary = seal_summary(directory, &stored)?;
    output::talk("the run is whole; its summary was computed again");
    show(&summary, directory, arguments.page.format())?;
    Ok(ExitCode::SUCCESS)
}
