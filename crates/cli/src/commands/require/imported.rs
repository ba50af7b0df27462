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
        let Stored::Import(import, _) = found else {
            let named = found_import(results.first());
            return Err(beside_runs(&named));
        };
        let sheets = sheets::of_stored(found)?;
        if sheets.is_empty() {
            return Err(Failure::usage(format!("import {} has no result", import.id())));
        }
        results.extend(sheets);
    }
    check_alike(&results)?;
    let requirements = Requirements::new(limits, &arguments.gate);
    let outcomes = requirements.judge_imported(&results)?;
    output::result(&match arguments.page.format() {
        PageFormat::Json => {
            let names: Vec<&str> = results.iter().map(|sheet| sheet.source.name.as_str()).collect();
            let document = serde_json::json!({
                "schema": "inferometer.requirements/1", "runs": names, "requirements": outcomes,
            });
            format!("{document:#}\n")
        }
        _ => inferometer_report::terminal::requirements(&outcomes, style()),
    })?;
    let exit = requirements.exit(&outcomes);
    let judged = Judged { runs: Vec::new(), results, outcomes };
    let exit = exit.max(requirements.tell(&[judged]));
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn found_import(first: Option<&Sheet>) -> String {
    first.map_or_else(|| "one of them".to_owned(), |sheet| sheet.source.name.clone())
}

/// Runs have intervals within them and imported results have none: one rule does not fit both.
pub(super) fn beside_runs(import: &str) -> Failure {
    Failure::usage(format!("{import} was imported, and the others are runs of our own"))
        .hint("hold them against the limits one by one")
}

/// A limit is about one configuration at one load.
fn check_alike(results: &[Sheet]) -> Result<(), Failure> {
    let Some((first, others)) = results.split_first() else { return Ok(()) };
    let what =
        |sheet: &Sheet| (sheet.source.tool, sheet.configuration.clone(), sheet.model.clone());
    let is_alike = |other: &&Sheet| what(other) == what(first) && other.level() == first.level();
    match others.iter().find(|other| !is_alike(other)) {
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
    fn results_of_several_loads_have_no_common_value() {
        let at = |concurrency| Sheet { max_concurrency: Some(concurrency), ..Sheet::default() };
        assert!(check_alike(&[at(8), at(8)]).is_ok());
        assert!(check_alike(&[at(8), at(16)]).is_err());
        let other = Sheet { configuration: "v1".to_owned(), ..at(8) };
        assert!(check_alike(&[at(8), other]).is_err());
    }
}
