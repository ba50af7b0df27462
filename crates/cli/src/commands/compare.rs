//! `inferometer compare`: whether two or more runs, sets or imported results differ.

use std::process::ExitCode;

use inferometer_analysis::comparison::{
    Comparison, ComparisonProblem, LayoutSide, Layouts, Margins, Objection, Rows, Side, SuiteSide,
    Terms,
};
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{LatencyOrigin, Quantity, Summary, summarize};
use inferometer_model::campaign::{Point, Question, SetManifest, Suite};
use inferometer_report::comparison as page;
use inferometer_report::terminal::Style;
use inferometer_store::{RunDirectory, RunState, RunStore, SetDirectory, Stored};
use inferometer_study::play::{replay, was_cut};

use super::store;
use crate::arguments::{CompareArguments, CompareFormat};
use crate::failure::{Exit, Failure};
use crate::sheets::named;
use crate::{output, sheets};

pub(crate) fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let sides = read_sides(&store(&arguments.store)?, &arguments.sides, talk)?;
    let comparison = match &sides {
        Sides::Runs(sides) => {
            let mut runs = sides.iter().flat_map(|side| &side.results);
            let is_open = runs.next().is_some_and(|run| run.run.load.is_open());
            let layouts: Vec<LayoutSide<'_>> = sides.iter().map(Side::layout).collect();
            Comparison::new(sides, &terms(arguments, LatencyOrigin::for_load(is_open), &layouts)?)
        }
        Sides::Sheets(sides) => {
            let layouts: Vec<LayoutSide<'_>> = sides.iter().map(Side::layout).collect();
            Comparison::new(sides, &terms(arguments, LatencyOrigin::Sent, &layouts)?)
        }
    }
    .map_err(refused)?;
    output::result(&match arguments.format() {
        CompareFormat::Json => page::json(&comparison),
        CompareFormat::Md => page::markdown(&comparison),
        CompareFormat::Page => {
            let style = if output::is_coloured() { Style::Coloured } else { Style::Plain };
            page::terminal(&comparison, style)
        }
    })?;
    // The pages have said so; a program that reads the document may not look.
    if let (CompareFormat::Json, Some(words)) =
        (arguments.format(), page::nothing_decided(&comparison))
    {
        talk(&format!("warning: {words}"));
    }
    Ok(if comparison.decides_nothing() {
        Exit::RunInvalid.into()
    } else if comparison.is_regression() {
        Exit::Regression.into()
    } else {
        ExitCode::SUCCESS
    })
}

fn terms(
    arguments: &CompareArguments,
    origin: LatencyOrigin,
    sides: &[LayoutSide<'_>],
) -> Result<Terms, Failure> {
    let primary = arguments
        .primary
        .as_deref()
        .map(|name| Quantity::named(name, origin))
        .transpose()
        .map_err(|problem| Failure::usage(format!("--primary: {problem}")))?;
    let layouts = arguments
        .gpus
        .map(|gpus| Layouts::new(gpus, &arguments.tensor_parallel, sides))
        .transpose()
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    let margins = arguments.margin.map_or(Margins::DEFAULT, Margins::all);
    Ok(Terms { primary, margins, force: arguments.force, layouts })
}

fn refused(problem: ComparisonProblem) -> Failure {
    let failure = Failure::usage(problem.to_string());
    match problem {
        ComparisonProblem::NotComparable(objections) => {
            let line = |objection: &Objection| {
                let (head, told) = page::objection(objection);
                format!("  {head}: {told}")
            };
            failure
                .shown(objections.iter().map(line).collect())
                .hint("--force compares them anyway, and the page says so")
        }
        ComparisonProblem::FewSides(_) => failure.hint(
            "name two runs or sets, or one set of several servers; `inferometer runs` lists them",
        ),
        ComparisonProblem::NoCommonLevel(_) => {
            failure.hint("sweep both over levels that they share")
        }
    }
}

/// The sides that were typed, the base first.
enum Sides {
    /// All of our own.
    Runs(Vec<Side<Summary>>),
    /// Something was imported: of that only figures are known, so figures are all that is compared.
    Sheets(Vec<Side<ToolResult>>),
}

/// What was typed: the name of a side, where it has one, and what it is.
type Typed<'a> = (Option<&'a str>, Stored);

fn read_sides(store: &RunStore, typed: &[String], talk: impl Fn(&str)) -> Result<Sides, Failure> {
    let find = |text: &'_ String| -> Result<Stored, Failure> {
        let (_, place) = named(text);
        store.find(place).map_err(|error| Failure::usage(error.to_string()))
    };
    let mut found: Vec<Typed<'_>> = Vec::new();
    for text in typed {
        found.push((named(text).0, find(text)?));
    }
    let sides = if found.iter().any(|(_, found)| matches!(found, Stored::Import(..))) {
        Sides::Sheets(read_sheets(found, &talk)?)
    } else {
        Sides::Runs(runs(found, &talk)?)
    };
    check_names(&match &sides {
        Sides::Runs(sides) => sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>(),
        Sides::Sheets(sides) => sides.iter().map(|side| side.name.as_str()).collect(),
    })?;
    Ok(sides)
}

fn check_names(names: &[&str]) -> Result<(), Failure> {
    let is_double = |name: &&&str| 1 < names.iter().filter(|other| other == name).count();
    match names.iter().find(is_double) {
        None => Ok(()),
        Some(double) => Err(Failure::usage(format!("two sides are called `{double}`"))
            .hint("give them different names: base=RUN new=RUN")),
    }
}

fn runs(typed: Vec<Typed<'_>>, talk: &impl Fn(&str)) -> Result<Vec<Side<Summary>>, Failure> {
    let alone = typed.len() == 1;
    let of_matrices = !alone && are_matrices(&typed);
    let mut sides: Vec<Side<Summary>> = Vec::new();
    for (name, found) in typed {
        match found {
            Stored::Run(run) => sides.push(Side {
                name: name.map_or_else(|| letter(sides.len()), str::to_owned),
                source: run.id().to_owned(),
                results: vec![summary(&run)?],
                rows: None,
                suite: None,
            }),
            Stored::Import(import, _) => {
                let message = format!("{} was imported, and has no runs", import.id());
                return Err(Failure::usage(message));
            }
            Stored::Set(set) => {
                let manifest = set.manifest().map_err(|error| Failure::usage(error.to_string()))?;
                let whole = || name.map_or_else(|| letter(sides.len()), str::to_owned);
                if let Question::Suite(suite) = &manifest.campaign.question {
                    sides.push(suite_side(whole(), &set, &manifest, suite, talk)?);
                    continue;
                }
                if of_matrices {
                    sides.push(matrix_side(whole(), &set, &manifest, talk)?);
                    continue;
                }
                let conditions = conditions(&set, manifest, talk)?;
                let several = 1 < conditions.len();
                for (condition, runs) in conditions {
                    let name = part_name(sides.len(), name, several.then_some(condition), alone);
                    let source = set.id().to_owned();
                    sides.push(Side { name, source, results: runs, rows: None, suite: None });
                }
            }
        }
    }
    Ok(sides)
}

/// What a side is called that is one part of what was typed; `None` where it is all of it.
fn part_name(place: usize, name: Option<&str>, part: Option<String>, alone: bool) -> String {
    match (part, name) {
        (None, Some(name)) => name.to_owned(),
        (None, None) => letter(place),
        (Some(part), Some(name)) => format!("{name} {part}"),
        (Some(part), None) if alone => part,
        (Some(part), None) => format!("{} {part}", letter(place)),
    }
}

/// A, B, …, Z, then numbers.
fn letter(place: usize) -> String {
    let letter = u8::try_from(place).ok().filter(|place| *place < 26).map(|place| b'A' + place);
    letter.map_or_else(|| (place + 1).to_string(), |letter| char::from(letter).to_string())
}

/// What a run came to: as it is stored, or computed once more where another version stored it.
fn summary(run: &RunDirectory) -> Result<Summary, Failure> {
    let stored = run.read_summary()?.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
    if let Some(summary) = stored {
        return Ok(summary);
    }
    let stored = run.read().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(summarize(&stored.observations))
}

/// The finished runs of a set.
fn results(
    set: &SetDirectory,
    manifest: &SetManifest,
    talk: &impl Fn(&str),
) -> Result<Vec<PointResult>, Failure> {
    let replay = replay(set, manifest, |_, point| finished(point))?;
    if replay.summary.is_none() {
        talk(&format!(
            "warning: set {} is not finished; it is compared as far as it goes",
            set.id()
        ));
    }
    Ok(replay.results)
}

/// A suite is one side, whose runs are known by their rows.
fn suite_side(
    name: String,
    set: &SetDirectory,
    manifest: &SetManifest,
    suite: &Suite,
    talk: &impl Fn(&str),
) -> Result<Side<Summary>, Failure> {
    let results = results(set, manifest, talk)?;
    if results.is_empty() {
        let message = format!("suite {} has no finished run", set.id());
        return Err(Failure::usage(message).hint("resume the suite first"));
    }
    let known = SetSummary::of(manifest, &results).suite.map(|suite| suite.rows);
    let row_of = |result: &PointResult| {
        let place = (result.point.condition, result.point.level);
        let row = known.iter().flatten().find(|row| (row.condition, row.level) == place);
        row.map_or_else(String::new, |row| row.name.clone())
    };
    let of_runs = results.iter().map(row_of).collect();
    let rows = Rows { of_runs, failed: Vec::new() };
    let suite = SuiteSide { name: suite.name.clone(), hash: suite.hash.clone() };
    let runs = results.into_iter().map(|result| result.summary).collect();
    Ok(Side {
        name,
        source: set.id().to_owned(),
        results: runs,
        rows: Some(rows),
        suite: Some(suite),
    })
}

/// Cells of one matrix stand against each other; of several, each against the cell of its name.
fn are_matrices(typed: &[Typed<'_>]) -> bool {
    typed.iter().all(|(_, found)| match found {
        Stored::Set(set) => set
            .manifest()
            .is_ok_and(|manifest| matches!(manifest.campaign.question, Question::Matrix(_))),
        Stored::Run(_) | Stored::Import(..) => false,
    })
}

/// A matrix is one side, whose runs are known by their cells and loads.
fn matrix_side(
    name: String,
    set: &SetDirectory,
    manifest: &SetManifest,
    talk: &impl Fn(&str),
) -> Result<Side<Summary>, Failure> {
    let results = results(set, manifest, talk)?;
    if results.is_empty() {
        return Err(Failure::usage(format!("no cell of matrix {} has a finished run", set.id()))
            .hint(format!("its report says why: inferometer report {}", set.id())));
    }
    let row_of = |point: &Point| {
        let place = usize::try_from(point.condition).ok();
        let cell = place.and_then(|place| manifest.campaign.conditions.get(place));
        let cell = cell.map_or_else(String::new, |condition| condition.name.clone());
        format!("{cell} · {}", point.level)
    };
    let failures = set.failures().map_err(|error| Failure::usage(error.to_string()))?;
    let failed = failures.iter().map(|it| (row_of(&it.point), it.failure.in_short())).collect();
    let of_runs = results.iter().map(|result| row_of(&result.point)).collect();
    let rows = Rows { of_runs, failed };
    let runs = results.into_iter().map(|result| result.summary).collect();
    Ok(Side { name, source: set.id().to_owned(), results: runs, rows: Some(rows), suite: None })
}

/// The runs of a set by its conditions, in their order.
fn conditions(
    set: &SetDirectory,
    manifest: SetManifest,
    talk: &impl Fn(&str),
) -> Result<Vec<(String, Vec<Summary>)>, Failure> {
    let results = results(set, &manifest, talk)?;
    let is_matrix = matches!(manifest.campaign.question, Question::Matrix(_));
    let names = manifest.campaign.conditions.into_iter().map(|condition| condition.name);
    let mut conditions: Vec<(String, Vec<Summary>)> =
        names.map(|name| (name, Vec::new())).collect();
    for PointResult { point, summary } in results {
        let condition = usize::try_from(point.condition).ok();
        if let Some((_, runs)) = condition.and_then(|place| conditions.get_mut(place)) {
            runs.push(summary);
        }
    }
    if is_matrix {
        return cells(set, conditions, talk);
    }
    if let Some((name, _)) = conditions.iter().find(|(_, runs)| runs.is_empty()) {
        let message = format!("set {} has no finished run of `{name}`", set.id());
        return Err(Failure::usage(message).hint("resume the set first"));
    }
    Ok(conditions)
}

/// A comparison of more cells is too large to read.
const CELLS_MAX: usize = 26;

/// The cells of a matrix that have runs; the others failed, and its report says why.
fn cells(
    set: &SetDirectory,
    conditions: Vec<(String, Vec<Summary>)>,
    talk: &impl Fn(&str),
) -> Result<Vec<(String, Vec<Summary>)>, Failure> {
    let (measured, failed): (Vec<_>, Vec<_>) =
        conditions.into_iter().partition(|(_, runs)| !runs.is_empty());
    if measured.is_empty() || CELLS_MAX < measured.len() {
        let (id, count) = (set.id(), measured.len());
        return Err(Failure::usage(format!(
            "matrix {id} has {count} cells with runs, and from 1 to {CELLS_MAX} are compared"
        ))
        .hint(format!(
            "name runs of it, such as {id}/0 {id}/1; its report compares its cells: inferometer \
             report {id}"
        )));
    }
    if !failed.is_empty() {
        talk(&format!("{} cells of {} failed and are left out", failed.len(), set.id()));
    }
    Ok(measured)
}

/// A point that is there and was not cut short.
fn finished(point: &RunDirectory) -> Result<Option<Summary>, Failure> {
    match point.state() {
        RunState::Sealed | RunState::Finished => {
            Ok(Some(summary(point)?).filter(|summary| !was_cut(summary)))
        }
        RunState::Unfinished | RunState::Running | RunState::Unreadable(_) => Ok(None),
    }
}

/// The results of one configuration, and its name.
type Part = (String, Vec<ToolResult>);

fn read_sheets(
    typed: Vec<Typed<'_>>,
    talk: &impl Fn(&str),
) -> Result<Vec<Side<ToolResult>>, Failure> {
    let alone = typed.len() == 1;
    let mut sides: Vec<Side<ToolResult>> = Vec::new();
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
                    side.results.extend(sheets);
                }
                None => sides.push(Side {
                    name,
                    source: source.clone(),
                    results: sheets,
                    rows: None,
                    suite: None,
                }),
            }
        }
    }
    Ok(sides)
}

fn parts(found: Stored, talk: &impl Fn(&str)) -> Result<(String, Vec<Part>), Failure> {
    match found {
        Stored::Run(run) => {
            let sheet = ToolResult::beside_others(&summary(&run)?);
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
                (name, runs.iter().map(ToolResult::beside_others).collect())
            };
            let conditions = conditions(&set, manifest, talk)?;
            Ok((set.id().to_owned(), conditions.into_iter().map(as_sheets).collect()))
        }
    }
}

/// In the order in which they appear. What has no name is numbered.
fn configurations(sheets: Vec<ToolResult>) -> Vec<Part> {
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
    fn sides_without_a_name_are_letters() {
        assert_eq!(
            (letter(0).as_str(), letter(25).as_str(), letter(26).as_str()),
            ("A", "Z", "27")
        );
    }

    #[test]
    fn an_import_is_one_side_for_each_of_its_configurations() {
        let of =
            |name: &str| ToolResult { configuration: name.to_owned(), ..ToolResult::default() };
        let found = configurations(vec![of("v0"), of(""), of("v1"), of("v0")]);
        let told: Vec<(&str, usize)> =
            found.iter().map(|(name, sheets)| (name.as_str(), sheets.len())).collect();
        assert_eq!(told, [("v0", 2), ("configuration 2", 1), ("v1", 1)]);
    }
}
