//! What a matrix would do: `matrix --dry-run`.

use super::plan::MatrixPlan;
use crate::arguments::ResultArguments;
use crate::failure::{Exit, Failure};

/// The page or document, or the signal that came before it was whole.
pub(crate) fn outline(
    plan: &MatrixPlan,
    _results: &ResultArguments,
) -> Result<Result<String, Exit>, Failure> {
    let names = plan.campaign.conditions.iter().map(|condition| condition.name.as_str());
    Ok(Ok(names.collect::<Vec<_>>().join("\n") + "\n"))
}
