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
    if let Some(configuration) = configuration {
        name_all(&mut sheets, configuration);
    }
    Ok(sheets)
}

/// Several configurations stay apart under the new name: as one, their results would be taken for
/// repeats of each other.
fn name_all(sheets: &mut [Sheet], name: &str) {
    let is_one = sheets.windows(2).all(|pair| pair[0].configuration == pair[1].configuration);
    for sheet in sheets {
        sheet.configuration =
            if is_one { name.to_owned() } else { format!("{name} {}", sheet.configuration) };
    }
}

/// By our own definitions where the runs are ours, and by those of its tool what was imported.
pub(crate) fn of_stored(found: &Stored) -> Result<Vec<Sheet>, Failure> {
    if let Stored::Import(import, number) = found {
        return imports::sheets(import, *number);
    }
    Ok(of_source(&Source::read(found, |_| {})?))
}

pub(crate) fn of_source(source: &Source) -> Vec<Sheet> {
    match source {
        Source::Run { summary, .. } => vec![Sheet::of(summary)],
        Source::Set { summary, points, .. } => points
            .iter()
            .map(|result| {
                let condition = summary.conditions.get(result.point.condition as usize);
                let configuration =
                    condition.map(|condition| condition.name.clone()).unwrap_or_default();
                Sheet { configuration, ..Sheet::of(&result.summary) }
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_for_two_configurations_does_not_make_them_one() {
        let sheet = |configuration: &str| Sheet {
            configuration: configuration.to_owned(),
            ..Sheet::default()
        };
        let mut two = [sheet("v0"), sheet("v1")];
        name_all(&mut two, "R2");
        assert_eq!(two.map(|sheet| sheet.configuration), ["R2 v0", "R2 v1"]);
        let mut one = [sheet("v0"), sheet("v0")];
        name_all(&mut one, "R2");
        assert_eq!(one.map(|sheet| sheet.configuration), ["R2", "R2"]);
    }
}
