//! Results of other tools, held against limits: by their values, for that is all they have.

use std::process::ExitCode;

use inferometer_analysis::sheet::Sheet;
use inferometer_model::spec::Slo;
use inferometer_store::Stored;

use crate::arguments::{PageFormat, RequireCommand};
use crate::commands::style;
use crate::failure::Failure;
use crate::output;
use crate::requirements::{Judged, Requirements};
use crate::sheets;

pub(super) fn run(
    arguments: &RequireCommand,
    limits: Vec<Slo>,
    found: &[Stored],
) -> Result<ExitCode, Failure> {
    let mut results: Vec<Sheet> = Vec::new();
    for found in found {
        let sheets = match found {
            Stored::Import(..) => sheets::of_stored(found)?,
            Stored::Run(_) | Stored::Set(_) => return Err(beside_runs()),
        };
        // Files that are named together are taken for repeats, whatever each calls its own.
        check_alike(&sheets, |one, other| one.configuration == other.configuration)?;
        results.extend(sheets);
    }
    if results.is_empty() {
        return Err(Failure::usage("nothing that was imported has a result")
            .hint("`inferometer report IMPORT` says what is in it"));
    }
    check_alike(&results, |one, other| {
        (one.source.tool, &one.model) == (other.source.tool, &other.model)
            && one.level() == other.level()
    })?;
    let requirements = Requirements::new(limits, &arguments.gate);
    let outcomes = requirements.judge_imported(&results)?;
    output::result(&if arguments.page.format() == PageFormat::Json {
        let names: Vec<&str> = results.iter().map(|sheet| sheet.source.name.as_str()).collect();
        let document = serde_json::json!({
            "schema": "inferometer.requirements/1", "runs": names, "requirements": outcomes,
        });
        format!("{document:#}\n")
    } else {
        inferometer_report::terminal::requirements(&outcomes, style())
    })?;
    let exit = requirements.exit(&outcomes);
    let judged = Judged { runs: Vec::new(), results, outcomes };
    let exit = exit.max(requirements.tell(&[judged]));
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Runs have intervals within them and imported results have none: one rule does not fit both.
pub(super) fn beside_runs() -> Failure {
    Failure::usage("some of these were imported, and the others are runs of our own")
        .hint("hold them against the limits one by one")
}

/// A limit is about one configuration at one load.
fn check_alike(
    results: &[Sheet],
    is_alike: impl Fn(&Sheet, &Sheet) -> bool,
) -> Result<(), Failure> {
    let Some((first, others)) = results.split_first() else { return Ok(()) };
    match others.iter().find(|other| !is_alike(first, other)) {
        None => Ok(()),
        Some(other) => Err(Failure::usage(format!(
            "a limit is about one configuration at one load, and these are {}",
            apart(first, other)
        ))
        .hint("name one of them, such as IMPORT/0 (`inferometer report IMPORT` lists them)")),
    }
}

/// What tells two results apart.
fn apart(first: &Sheet, other: &Sheet) -> String {
    let (a, b) = (first.level(), other.level());
    if a != b {
        return format!("of {a} and {b}");
    }
    let told = |sheet: &Sheet| {
        let model = sheet.model.as_deref().unwrap_or("no model named");
        format!("`{}` ({}, {model})", sheet.configuration, sheet.source.tool.told())
    };
    format!("of {} and {}", told(first), told(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let at = |concurrency| Sheet { max_concurrency: Some(concurrency), ..Sheet::default() };
        let same_level = |one: &Sheet, other: &Sheet| one.level() == other.level();
        assert!(check_alike(&[at(8), at(8)], same_level).is_ok());
        assert!(check_alike(&[at(8), at(16)], same_level).is_err());
        assert!(apart(&at(8), &at(16)).contains("16"));
        let other = Sheet { configuration: "v1".to_owned(), ..at(8) };
        assert!(apart(&at(8), &other).contains("`v1`"));
    }
}
