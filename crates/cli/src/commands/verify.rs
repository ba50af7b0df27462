//! `inferometer verify`: recomputes a stored run and compares.

use std::process::ExitCode;

use inferometer_analysis::{Summary, summarize};
use inferometer_store::StoreError;

use super::{show, store};
use crate::arguments::StoredRunArguments;
use crate::failure::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &StoredRunArguments) -> Result<ExitCode, Failure> {
    let directory = store(&arguments.store)?
        .resolve(&arguments.run)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let stored = directory.read().map_err(|error| {
        let too_early = matches!(error, StoreError::Unfinished { .. } | StoreError::Busy { .. });
        let message = error.to_string();
        if too_early { Failure::usage(message) } else { Failure::invalid(message) }
    })?;
    let summary = summarize(&stored.observations);
    let kept = directory.read_summary()?;
    let mut problems = Vec::new();
    if !stored.integrity.is_intact() {
        problems.push(format!("the journal is damaged: {}", stored.integrity));
    }
    problems.extend(difference(&summary, kept.as_deref()));
    // Standard output holds one result: the finding, or the page that was asked for.
    let page = arguments.page.asked();
    let tell = |line: &str| {
        if page.is_some() {
            output::talk(line);
            Ok(())
        } else {
            output::result(&format!("{line}\n"))
        }
    };
    if let Some(format) = page {
        show(&summary, &directory, format)?;
    }
    if problems.is_empty() {
        let simulated = stored.observations.manifest.simulated.is_some();
        tell(&format!(
            "verified {}{}: {} records add up, and the summary is what they give",
            directory.id(),
            if simulated { " (simulated)" } else { "" },
            stored.observations.records.len()
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    for problem in problems {
        tell(&format!("not verified: {problem}"))?;
    }
    Ok(Exit::RunInvalid.into())
}

/// What is wrong with the stored summary, if anything.
fn difference(computed: &Summary, kept: Option<&[u8]>) -> Option<String> {
    let Some(kept) = kept else {
        return Some(
            "there is no stored summary to compare with; compute it with: inferometer recover"
                .to_owned(),
        );
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
