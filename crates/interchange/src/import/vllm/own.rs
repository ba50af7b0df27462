//! What our own exports say of themselves, among the keys of that tool: a run that is read back stays
//! the run that it was.

use inferometer_analysis::Verdict;
use inferometer_analysis::sheet::Sheet;

pub(crate) const RUN: &str = "inferometer_run";
pub(crate) const VERSION: &str = "inferometer_version";
pub(crate) const VERDICT: &str = "inferometer_verdict";
pub(crate) const SIMULATED: &str = "simulated";

/// Whether the key is one of ours and its value was taken.
pub(crate) fn take(result: &mut Sheet, key: &str, value: &str) -> bool {
    match key {
        RUN => value.clone_into(&mut result.source.name),
        VERSION => result.source.version = Some(format!("inferometer {value}")),
        VERDICT => match [Verdict::Valid, Verdict::Degraded, Verdict::Invalid]
            .into_iter()
            .find(|verdict| verdict.key() == value)
        {
            None => return false,
            verdict => result.verdict = verdict,
        },
        SIMULATED if value == "true" => result.source.simulated = true,
        _ => return false,
    }
    true
}
