//! `suite --list`: the built-in suites.

use inferometer_report::document::{Cell, Columns, terminal};
use inferometer_report::fmt::{NOTHING, count};
use inferometer_report::terminal::Style;
use serde_json::{Value, json};

use super::builtin;
use super::file::{ScenarioFile, SuiteFile};
use super::hash::{Files, hash};
use super::resolved::{Resolved, Said};
use crate::arguments::{ExperimentArguments, PageFormat};
use crate::dry_run::expected;
use crate::experiment::Layer;
use crate::failure::Failure;
use crate::sweep::at_level;

/// Digits of a hash that identify a suite.
pub(crate) const HASH_PREFIX: usize = 12;

struct Listed {
    file: SuiteFile,
    hash: String,
    /// One for each level of each scenario.
    runs: u64,
    /// `None` where the server decides it.
    requests: Option<u64>,
}

pub(crate) fn listed(format: PageFormat) -> Result<String, Failure> {
    let suites: Vec<Listed> =
        builtin::all()?.into_iter().map(Listed::of).collect::<Result<_, Failure>>()?;
    Ok(match format {
        PageFormat::Json => document(&suites),
        PageFormat::Page | PageFormat::Vllm => page(&suites),
    })
}

impl Listed {
    fn of(file: SuiteFile) -> Result<Self, Failure> {
        let (arguments, layer) = (ExperimentArguments::default(), Layer::default());
        let said = Said { arguments: &arguments, layer: &layer, prompts: None, simulated: false };
        let resolved = Resolved::of(&file, said)?;
        let runs = u64::from(resolved.repetition.runs.get());
        let mut levels = 0;
        let mut requests = Some(0);
        for scenario in &resolved.scenarios {
            for level in &scenario.levels {
                let spec = at_level(&scenario.drafted, *level, None, 1, false)?;
                levels += 1;
                requests = requests.zip(expected(&spec).0).map(|(sum, more)| sum + more * runs);
            }
        }
        let hash = hash(&resolved, &mut Files::default())?;
        Ok(Self { file, hash, runs: levels * runs, requests })
    }
}

fn page(suites: &[Listed]) -> String {
    let table = Columns::new("suite", |it: &&Listed| Cell::text(&it.file.name))
        .right("scenarios", |it| Cell::text(it.file.scenarios.len().to_string()))
        .right("runs", |it| Cell::text(it.runs.to_string()))
        .right("requests", |it| Cell::text(it.requests.map_or_else(|| NOTHING.to_owned(), count)))
        .left("hash", |it| Cell::text(&it.hash[..HASH_PREFIX]))
        .left("", |it| Cell::text(&it.file.title))
        .table("", "", suites);
    terminal::table(&table, Style::Plain)
}

fn document(suites: &[Listed]) -> String {
    let suites: Vec<Value> = suites
        .iter()
        .map(|Listed { file, hash, runs, requests }| {
            let scenarios = file.scenarios.iter().map(|scenario| {
                let ScenarioFile { name, category, purpose, .. } = scenario;
                json!({ "name": name, "category": category, "purpose": purpose })
            });
            json!({
                "name": file.name,
                "title": file.title,
                "description": file.description,
                "hash": hash,
                "scenarios": scenarios.collect::<Vec<_>>(),
                "runs": runs,
                "requests": requests,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "schema": "inferometer.suites/1", "suites": suites }))
}
