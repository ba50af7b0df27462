//! `inferometer recover`: finishes a run that ended without being saved.

use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::{Summary, Verdict};
use inferometer_store::{RunDirectory, SetDirectory, StoreError, Stored};
use inferometer_study::play;

use super::{seal_summary, show, store};
use crate::arguments::StoredRunArguments;
use crate::failure::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    let found = store(&arguments.store)?
        .find(&arguments.run)
        .map_err(|error| Failure::usage(error.to_string()))?;
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

/// What is half done is measured again there, so that all runs of a set are whole.
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
