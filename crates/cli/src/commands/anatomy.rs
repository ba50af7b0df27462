//! `inferometer anatomy`: where the time of a stored run went, from the server's steps.

use std::process::ExitCode;

use inferometer_analysis::steps::reconstruct;
use inferometer_report::document::{html, markdown, terminal};
use inferometer_report::pages;
use inferometer_store::Stored;
use serde_json::json;

use super::{store, style};
use crate::arguments::{AnatomyArguments, AnatomyFormat};
use crate::failure::{Failure, Result};
use crate::measurement::summarize_stored;
use crate::output;

pub(crate) fn run(arguments: &AnatomyArguments) -> Result<ExitCode> {
    let found = store(&arguments.store)?.find(&arguments.name).map_err(Failure::from_usage)?;
    let Stored::Run(directory) = found else {
        let problem = format!("`{}` is not a run: it has no requests of its own", arguments.name);
        return Err(Failure::usage(problem).hint("inferometer anatomy SET/N names a run of a set"));
    };
    let stored = directory.read().map_err(Failure::from_usage)?;
    let summary = summarize_stored(&stored).map_err(Failure::from_usage)?;
    let document = pages::anatomy(&summary);
    output::result(&match arguments.format {
        AnatomyFormat::Page => terminal::render(&document, style()),
        AnatomyFormat::Html => html::render(&document),
        AnatomyFormat::Md => markdown::render(&document).text,
        AnatomyFormat::Json => {
            let mut members: Vec<Vec<u64>> = Vec::new();
            let steps = reconstruct(&stored.observations, &mut |step, id| {
                members.resize(members.len().max(step + 1), Vec::new());
                members[step].push(id.0);
            });
            let document = json!({
                "schema": "inferometer.anatomy/1",
                "run": summary.run.id,
                "anatomy": summary.anatomy,
                "missing": steps.as_ref().err().map(ToString::to_string),
                "steps": steps.map(|found| found.steps).unwrap_or_default(),
                "members": members,
            });
            format!("{document:#}\n")
        }
    })
}
