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

/// What was verified, and what is wrong with it.
type Finding = (String, Vec<String>);

/// Standard output holds one result: the finding, or the page that was asked for.
pub(crate) fn run(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    let page = arguments.page.asked();
    let (verified, problems) = match find(arguments)? {
        Stored::Run(directory) => verify_run(&directory, page)?,
        Stored::Set(set) => verify_set(&set, page)?,
        Stored::Import(import, _) => verify_import(&import, page)?,
    };
    let is_verified = problems.is_empty();
    let problems = problems.into_iter().map(|problem| format!("not verified: {problem}"));
    for line in is_verified.then_some(verified).into_iter().chain(problems) {
        // A foreign file's name may be in it.
        let line = terminal(&line);
        if page.is_some() {
            output::talk(&line);
        } else {
            output::result(&format!("{line}\n"))?;
        }
    }
    Ok(if is_verified { ExitCode::SUCCESS } else { Exit::RunInvalid.into() })
}

fn find(arguments: &StoredRunArguments) -> Result<Stored, Failure> {
    store(&arguments.store)?.find(&arguments.run).map_err(Failure::from_usage)
}

fn verify_run(directory: &RunDirectory, page: Option<PageFormat>) -> Result<Finding, Failure> {
    let (stored, summary, problems) = check_run(directory).map_err(unread)?;
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
    Ok((verified, problems))
}

/// Each run by itself, and then the summary of all.
fn verify_set(set: &SetDirectory, page: Option<PageFormat>) -> Result<Finding, Failure> {
    let manifest = set.manifest().map_err(|error| invalid(&error))?;
    let mut problems = Vec::new();
    let replay = play::replay(set, &manifest, |point, directory| {
        if !directory.path().exists() {
            return Ok(None);
        }
        let (stored, summary, mut own) = match check_run(directory) {
            Err(StoreError::Unfinished { .. }) => return Ok(None),
            checked => checked.map_err(unread)?,
        };
        if play::was_cut(&summary) {
            return Ok(None);
        }
        if manifest.study.spec_of(point).as_ref() != Some(&stored.observations.manifest.spec) {
            own.push("it was measured with another spec than set.json asks for".to_owned());
        }
        problems.extend(own.into_iter().map(|problem| format!("{}: {problem}", directory.id())));
        Ok(Some(summary))
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
        None => problems.push(no_summary(&play::resume_command(set))),
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
    Ok((verified, problems))
}

/// What is stored cannot be trusted.
fn invalid(error: &StoreError) -> Failure {
    Failure::invalid(error.to_string())
}

/// Why there is nothing to verify.
fn unread(error: StoreError) -> Failure {
    let too_early = matches!(error, StoreError::Unfinished { .. } | StoreError::Busy { .. });
    if too_early { Failure::from_usage(error) } else { invalid(&error) }
}

/// A run read back, its summary computed again, and what is wrong with it.
fn check_run(directory: &RunDirectory) -> Result<(StoredRun, Summary, Vec<String>), StoreError> {
    let stored = directory.read()?;
    let summary = summarize(&stored.observations);
    let kept = directory.read_summary()?;
    let mut problems = Vec::new();
    if !stored.integrity.is_intact() {
        problems.push(format!("the journal is damaged: {}", stored.integrity));
    }
    problems.extend(difference(&summary, kept.as_deref(), directory));
    Ok((stored, summary, problems))
}

fn no_summary(command: &str) -> String {
    format!("there is no stored summary to compare with; compute it with: {command}")
}

/// What is wrong with the stored summary, if anything.
fn difference(computed: &Summary, kept: Option<&[u8]>, directory: &RunDirectory) -> Option<String> {
    let Some(kept) = kept else { return Some(no_summary(&directory.remedy())) };
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
fn verify_import(import: &ImportDirectory, page: Option<PageFormat>) -> Result<Finding, Failure> {
    let foreign = import.foreign().map_err(|error| invalid(&error))?;
    let manifest = import.manifest().map_err(|error| invalid(&error))?;
    if sha256(&foreign) != manifest.file.sha256 {
        let problem = format!(
            "{} is not the file that was imported: it has {} bytes and another SHA-256 than \
             import.json says",
            import.foreign_path().display(),
            foreign.len()
        );
        return Ok((String::new(), vec![problem]));
    }
    let mapped = Mapped::read(import).map_err(|failure| Failure::invalid(failure.message()))?;
    let mut problems = Vec::new();
    match mapped.directory.read_summary()? {
        Some(kept) if kept == mapped.summary()? => {}
        Some(_) => {
            let (made_by, own) = (&mapped.manifest.tool_version, env!("CARGO_PKG_VERSION"));
            let why = if made_by == own {
                String::new()
            } else {
                format!(" (imported by version {made_by}, mapped again by {own})")
            };
            problems.push(format!(
                "summary.json is not, byte for byte, what the file gives{why}; import the file again"
            ));
        }
        None => problems
            .push("there is no stored summary to compare with; import the file again".to_owned()),
    }
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
        mapped.import.results().count()
    );
    Ok((verified, problems))
}

pub(crate) fn recover(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    // An incomplete run of a set is measured again, so that all its runs are whole.
    let of_a_set = |what: String, set: &SetDirectory| {
        Failure::usage(format!("{what}: what is not whole is measured again, not recovered"))
            .hint(format!("resume with: {}", play::resume_command(set)))
    };
    let directory = match find(arguments)? {
        Stored::Run(directory) if !directory.id().contains('/') => directory,
        Stored::Run(point) => {
            let set = point.path().parent().and_then(Path::parent).unwrap_or(point.path());
            let set = SetDirectory::at(set.to_owned());
            return Err(of_a_set(format!("{} is a run of a set", point.id()), &set));
        }
        Stored::Import(import, _) => {
            let id = import.id();
            return Err(Failure::usage(format!(
                "{id} was imported, and only runs that were measured here can be recovered"
            ))
            .hint(format!("see whether it is whole with: inferometer verify {id}")));
        }
        Stored::Set(set) => return Err(of_a_set(format!("{} is a set", set.id()), &set)),
    };
    let recovery = match directory.recover() {
        Ok(recovery) => recovery,
        // The run itself is whole; only what follows from it was lost.
        Err(StoreError::AlreadyFinished { .. }) if !has_summary(&directory) => {
            let summary = seal_summary(&directory, &directory.read()?)?;
            output::talk("the run is whole; its summary was computed again");
            show(&summary, &directory, arguments.page.format())?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(Failure::from_usage(error)),
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

/// Whether there is a summary that can be read.
fn has_summary(directory: &RunDirectory) -> bool {
    let stored = directory.read_summary().ok().flatten();
    stored.is_some_and(|bytes| Summary::from_json_bytes(&bytes).is_ok())
}
