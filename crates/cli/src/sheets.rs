//! What stored runs, sets and imports say, as sheets: one for each run.

use std::path::Path;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_store::{RunStore, Stored};

use crate::commands::report::Source;
use crate::failure::Failure;
use crate::imports;

/// The sheets of all that is named, in that order. `NAME=RUN` names a configuration.
pub(crate) fn of_names(store: &RunStore, names: &[String]) -> Result<Vec<ToolResult>, Failure> {
    let mut sheets = Vec::new();
    for name in names {
        sheets.extend(of_name(store, name)?);
    }
    Ok(sheets)
}

fn of_name(store: &RunStore, typed: &str) -> Result<Vec<ToolResult>, Failure> {
    let (configuration, name) = named(typed);
    let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
    let mut sheets = of_stored(&found)?;
    if let Some(configuration) = configuration {
        name_all(sheets.iter_mut().map(|sheet| &mut sheet.configuration), configuration);
    }
    Ok(sheets)
}

/// `NAME=RUN`, or a run alone. The sign may stand in a path too: a name has no slash, and does not
/// begin a folder that is there.
pub(crate) fn named(typed: &str) -> (Option<&str>, &str) {
    split(typed, |folder| Path::new(folder).exists())
}

fn split(typed: &str, is_there: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
    let folder = typed.split('/').next().unwrap_or_default();
    match typed.split_once('=') {
        Some((name, place)) if !name.is_empty() && !name.contains('/') && !is_there(folder) => {
            (Some(name), place)
        }
        _ => (None, typed),
    }
}

/// Several configurations stay apart under the new name: as one, their results would be taken for
/// repeats of each other.
pub(crate) fn name_all<'a>(configurations: impl Iterator<Item = &'a mut String>, name: &str) {
    let configurations: Vec<&mut String> = configurations.collect();
    let is_one = configurations.windows(2).all(|pair| pair[0] == pair[1]);
    for configuration in configurations {
        *configuration = match configuration.as_str() {
            known if !is_one && !known.is_empty() => format!("{name} {known}"),
            _ => name.to_owned(),
        };
    }
}

/// By our own definitions where the runs are ours, and by those of its tool what was imported.
pub(crate) fn of_stored(found: &Stored) -> Result<Vec<ToolResult>, Failure> {
    if let Stored::Import(import, number) = found {
        return imports::sheets(import, *number);
    }
    Ok(of_source(&Source::read(found, |_| {})?))
}

pub(crate) fn of_source(source: &Source) -> Vec<ToolResult> {
    match source {
        Source::Run { summary, .. } => vec![ToolResult::of(summary)],
        Source::Set { summary, points, .. } => points
            .iter()
            .map(|result| {
                let condition = summary.conditions.get(result.point.condition as usize);
                let configuration =
                    condition.map(|condition| condition.name.clone()).unwrap_or_default();
                ToolResult { configuration, ..ToolResult::of(&result.summary) }
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_for_two_configurations_does_not_make_them_one() {
        let mut two = ["v0", "v1", ""].map(str::to_owned);
        name_all(two.iter_mut(), "R2");
        assert_eq!(two, ["R2 v0", "R2 v1", "R2"]);
        let mut one = ["v0", "v0"].map(str::to_owned);
        name_all(one.iter_mut(), "R2");
        assert_eq!(one, ["R2", "R2"]);
    }

    #[test]
    fn a_name_may_stand_before_a_run_and_a_path_is_left_alone() {
        assert_eq!(named("base=latest"), (Some("base"), "latest"));
        assert_eq!(named("base=./a=b/runs"), (Some("base"), "./a=b/runs"));
        assert_eq!(named("latest"), (None, "latest"));
        assert_eq!(named("./a=b/runs/1"), (None, "./a=b/runs/1"));
        assert_eq!(named("=x"), (None, "=x"));
        let is_there = |folder: &str| folder == "SERVE--x=1";
        assert_eq!(split("SERVE--x=1/runs/2/3", is_there), (None, "SERVE--x=1/runs/2/3"));
        assert_eq!(split("x=1/runs/2", is_there), (Some("x"), "1/runs/2"));
    }
}
