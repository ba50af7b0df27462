//! Sides of which at least one was imported: all of them as sheets, runs of our own counted as other
//! tools count.

use inferometer_analysis::comparison::SheetSide;
use inferometer_analysis::sheet::Sheet;
use inferometer_model::campaign::Question;
use inferometer_store::Stored;

use super::{Typed, conditions, part_name, summary};
use crate::failure::Failure;
use crate::sheets;

/// The results of one configuration, and its name.
type Part = (String, Vec<Sheet>);

pub(super) fn read(typed: Vec<Typed<'_>>, talk: &impl Fn(&str)) -> Result<Vec<SheetSide>, Failure> {
    let alone = typed.len() == 1;
    let mut sides: Vec<SheetSide> = Vec::new();
    for (name, found) in typed {
        let (source, parts) = parts(found, talk)?;
        let several = 1 < parts.len();
        for (part, sheets) in parts {
            let is_named = name.is_some();
            let name = part_name(sides.len(), name, several.then_some(part), alone);
            // Files of several runs are one side when they are given one name.
            match sides.iter_mut().find(|side| is_named && side.name == name) {
                Some(side) => {
                    side.source = format!("{}, {source}", side.source);
                    side.sheets.extend(sheets);
                }
                None => sides.push(SheetSide { name, source: source.clone(), sheets }),
            }
        }
    }
    Ok(sides)
}

fn parts(found: Stored, talk: &impl Fn(&str)) -> Result<(String, Vec<Part>), Failure> {
    match found {
        Stored::Run(run) => {
            let sheet = Sheet::beside_others(&summary(&run)?);
            Ok((run.id().to_owned(), vec![(String::new(), vec![sheet])]))
        }
        Stored::Import(ref import, number) => {
            let sheets = sheets::of_stored(&found)?;
            if sheets.is_empty() {
                return Err(Failure::usage(format!("import {} has no result", import.id())));
            }
            let id = import.id();
            let source = number.map_or_else(|| id.to_owned(), |number| format!("{id}/{number}"));
            Ok((source, configurations(sheets)))
        }
        Stored::Set(set) => {
            let manifest = set.manifest().map_err(|error| Failure::usage(error.to_string()))?;
            if let Question::Suite(_) = &manifest.campaign.question {
                let message =
                    format!("{} is a suite, and nothing imported has its scenarios", set.id());
                return Err(Failure::usage(message)
                    .hint(format!("compare one of its runs, such as {}/0", set.id())));
            }
            let as_sheets = |(name, runs): (String, Vec<_>)| {
                (name, runs.iter().map(Sheet::beside_others).collect())
            };
            let conditions = conditions(&set, manifest, talk)?;
            Ok((set.id().to_owned(), conditions.into_iter().map(as_sheets).collect()))
        }
    }
}

/// In the order in which they appear. What has no name is told by its place.
fn configurations(sheets: Vec<Sheet>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for sheet in sheets {
        match parts.iter_mut().find(|(name, _)| *name == sheet.configuration) {
            Some((_, known)) => known.push(sheet),
            None => parts.push((sheet.configuration.clone(), vec![sheet])),
        }
    }
    for (place, (name, _)) in parts.iter_mut().enumerate() {
        if name.is_empty() {
            *name = format!("configuration {}", place + 1);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_one_side_for_each_of_its_configurations() {
        let of = |name: &str| Sheet { configuration: name.to_owned(), ..Sheet::default() };
        let found = configurations(vec![of("v0"), of(""), of("v1"), of("v0")]);
        let told: Vec<(&str, usize)> =
            found.iter().map(|(name, sheets)| (name.as_str(), sheets.len())).collect();
        assert_eq!(told, [("v0", 2), ("configuration 2", 1), ("v1", 1)]);
    }
}
