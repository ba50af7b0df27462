//! `inferometer verify`: recomputes a stored run, set or import and compares.

mod import;

use std::process::ExitCode;

use inferometer_analysis::{Summary, summarize};
use inferometer_report::escape::terminal;
use inferometer_store::{RunDirectory, SetDirectory, StoreError, Stored, StoredRun};
use inferometer_study::play;

use super::{show, store};
use crate::arguments::{PageFormat, StoredRunArguments};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::study;

pub(crate) fn run(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    let found = store(&arguments.store)?
        .find(&arguments.run)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let page = arguments.page.asked();
    match found {
        Stored::Run(directory) => verify_run(&directory, page),
        Stored::Set(set) => verify_set(&set, page),
        Stored::Import(import, _) => import::verify(&import, page),
    }
}

fn verify_run(directory: &RunDirectory, page: Option<PageFormat>) -> Result<ExitCode, Failure> {
    let Checked { stored, summary, problems } = check(directory).map_err(|error| unread(&error))?;
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

/// Each run by itself, and then what they come to together.
fn verify_set(set: &SetDirectory, page: Option<PageFormat>) -> Result<ExitCode, Failure> {
    let manifest = set.manifest().map_err(|error| Failure::invalid(error.to_string()))?;
    let mut problems = Vec::new();
    let replay = play::replay(set, &manifest, |point, directory| {
        if !directory.path().exists() {
            return Ok(None);
        }
        let checked = match check(directory) {
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
            failed => format!(", {failed} came to nothing"),
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

fn check(directory: &RunDirectory) -> Result<Checked, StoreError> {
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
