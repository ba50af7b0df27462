//! What an endpoint supports and what is wrong with it, found by asking: each finding in a line,
//! and each problem with its remedy.

mod answers;
mod endpoints;
mod fields;
mod finding;
mod prompts;

use inferometer_load::target::Target;
use inferometer_model::Spec;
use inferometer_workload::Ingredients;

pub use finding::{Finding, State};

use crate::failure::Failure;

/// Asks everything. `target` has answered before: this is about how well.
pub fn examine(
    spec: &Spec,
    ingredients: &Ingredients,
    target: &Target,
    mut talk: impl FnMut(&str),
) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    talk("asking for an answer, streamed and whole …");
    findings.extend(answers::examine(target)?);
    talk("asking which fields it takes …");
    findings.extend(fields::examine(target)?);
    talk("asking how it counts and caches prompts …");
    findings.extend(prompts::examine(spec, ingredients, target)?);
    talk("looking for its other endpoints …");
    findings.extend(endpoints::examine(target)?);
    Ok(findings)
}
