//! `inferometer recover`: finishes a run that ended without being saved.

use std::process::ExitCode;

use inferometer_analysis::Verdict;

use super::{seal_summary, show, store};
use crate::arguments::StoredRunArguments;
use crate::failure::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    let directory = store(&arguments.store)?
        .resolve(&arguments.run)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let recovery = directory.recover().map_err(|error| Failure::usage(error.to_string()))?;
    let cut = match recovery.cut_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} torn bytes cut off the journal"),
    };
    output::talk(&format!(
        "recovered: {} requests were in flight and are cancelled, {} were never sent{cut}",
        recovery.cancelled, recovery.not_sent
    ));
    let summary = seal_summary(&directory, &recovery.run)?;
    show(&summary, &directory, arguments.page.format());
    Ok(match summary.verdict {
        Verdict::Invalid => Exit::RunInvalid.into(),
        Verdict::Degraded | Verdict::Valid => ExitCode::SUCCESS,
    })
}
