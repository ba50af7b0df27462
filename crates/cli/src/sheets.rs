//! What stored runs, sets and imports say, as sheets: one for each run.

use inferometer_analysis::sheet::Sheet;
use inferometer_store::{RunStore, Stored};

use crate::commands::report::stored::Source;
use crate::failure::Failure;
use crate::imports;

/// The sheets of all that is named, in that order. `NAME=RUN` names a configuration.
pub(crate) fn of_names(store: &RunStore, names: &[String]) -> Result<Vec<Sheet>, Failure> {
    let mut sheets = Vec::new();
    for name in names {
        sheets.extend(of_name(store, name)?);
    }
    Ok(sheets)
}

fn of_name(store: &RunStore, typed: &str) -> Result<Vec<Sheet>, Failure> {
    let (configuration, name) = match typed.split_once('=') {
        Some((configuration, name)) => (Some(configuration), name),
        None => (None, typed),
    };
    let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
    let mut sheets = of_stored(&found)?;
    for sheet in &mut sheets {
        if let Some(configuration) = configuration {
            configuration.clone_into(&mut sheet.configuration);
        }
    }
    Ok(sheets)
}

/// By our own definitions where the runs are ours, and by those of its tool what was imported.
pub(crate) fn of_stored(found: &Stored) -> Result<Vec<Sheet>, Failure> {
    if let Stored::Import(import, number) = found {
        return imports::sheets(import, *number);
    }
    Ok(match Source::read(found, |_| {})? {
        Source::Run { summary, .. } => vec![Sheet::of(&summary)],
        Source::Set { summary, points, .. } => points
            .iter()
            .map(|result| {
                let condition = summary.conditions.get(result.point.condition as usize);
                let configuration =
                    condition.map(|condition| condition.name.clone()).unwrap_or_default();
                Sheet { configuration, ..Sheet::of(&result.summary) }
            })
            .collect(),
    })
}
