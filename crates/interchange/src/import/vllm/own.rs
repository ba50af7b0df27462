//! What our own exports say of themselves, among the keys of that tool: a run that is read back stays
//! the run that it was.

use inferometer_analysis::Verdict;
use inferometer_analysis::sheet::Sheet;

use crate::export::names_a_tool;

pub(crate) const RUN: &str = "inferometer_run";
pub(crate) const VERSION: &str = "inferometer_version";
pub(crate) const VERDICT: &str = "inferometer_verdict";
/// Who measured what that tool did not.
pub(crate) const MEASURED_BY: &str = "measured_by";
pub(crate) const SIMULATED: &str = "simulated";

/// Whether the key is one of ours and its value was taken.
pub(crate) fn take(result: &mut Sheet, key: &str, value: &str) -> bool {
    match key {
        RUN => value.clone_into(&mut result.source.name),
        VERSION => result.source.version = Some(format!("inferometer {value}")),
        VERDICT => match verdict(value) {
            None => return false,
            verdict => result.verdict = verdict,
        },
        // People may write it into their metadata with another meaning.
        MEASURED_BY if names_a_tool(value) => result.source.version = Some(value.to_owned()),
        SIMULATED if value == "true" => result.source.simulated = true,
        _ => return false,
    }
    true
}

pub(crate) fn verdict(key: &str) -> Option<Verdict> {
    let all = [Verdict::Valid, Verdict::Degraded, Verdict::Invalid];
    all.into_iter().find(|verdict| verdict.key() == key)
}
