//! `inferometer compare`: whether two or more runs, sets or imported results differ.

use std::process::ExitCode;

use inferometer_analysis::comparison::{
    Compared, Comparison, ComparisonProblem, LayoutSide, Layouts, Margins, Objection, Rows, Side,
    SuiteSide, Terms,
};
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{LatencyOrigin, Quantity, Summary, summarize};
use inferometer_model::study::{Point, Question, SetManifest};
use inferometer_report::comparison as page;
use inferometer_store::{RunDirectory, RunState, SetDirectory, Stored};
use inferometer_study::play::{replay, was_cut};

use super::{store, style};
use crate::arguments::{CompareArguments, CompareFormat};
use crate::failure::{Exit, Failure};
use crate::{output, results};

pub(crate) fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let store = store(&arguments.store)?;
    let mut typed: Vec<Typed<'_>> = Vec::new();
    for text in &arguments.sides {
        let (name, place) = results::split_name(text);
        let found = store.find(place).map_err(Failure::from_usage)?;
        typed.push((name, found));
    }
    // Of what was imported only figures are known, so figures are all that is compared.
    let comparison = if typed.iter().any(|(_, found)| matches!(found, Stored::Import(..))) {
        let sides = read_sides(typed, true, |found| load_results(found, &talk))?;
        compare(arguments, LatencyOrigin::Sent, &sides)?
    } else {
        let of_matrices = 1 < typed.len() && are_matrices(&typed);
        let sides = read_sides(typed, false, |found| load_runs(found, of_matrices, &talk))?;
        let mut runs = sides.iter().flat_map(|side| &side.results);
        let is_open = runs.next().is_some_and(|run| run.run.load.is_open());
        compare(arguments, LatencyOrigin::for_load(is_open), &sides)?
    };
    output::result(&match arguments.format() {
        CompareFormat::Json => page::json(&comparison),
        CompareFormat::Md => page::markdown(&comparison),
        CompareFormat::Page => page::terminal(&comparison, style()),
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

fn compare<R: Compared>(
    arguments: &CompareArguments,
    origin: LatencyOrigin,
    sides: &[Side<R>],
) -> Result<Comparison, Failure> {
    let primary = arguments
        .primary
        .as_deref()
        .map(|name| Quantity::named(name, origin))
        .transpose()
        .map_err(|problem| Failure::usage(format!("--primary: {problem}")))?;
    let layout_sides: Vec<LayoutSide<'_>> = sides.iter().map(Side::layout).collect();
    let layouts = arguments
        .gpus
        .map(|gpus| Layouts::new(gpus, &arguments.tensor_parallel, &layout_sides))
        .transpose()
        .map_err(Failure::from_usage)?;
    let margins = arguments.margin.map_or(Margins::DEFAULT, Margins::all);
    let terms = Terms { primary, margins, force: arguments.force, layouts };
    Comparison::new(sides, &terms).map_err(refused)
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

/// What was typed: the name of a side, where it has one, and what it is.
type Typed<'a> = (Option<&'a str>, Stored);

/// The results of one condition or configuration, and its name.
type Part<R> = (String, Vec<R>);

/// What something that is stored has to compare.
struct Loaded<R> {
    source: String,
    parts: Vec<Part<R>>,
    rows: Option<Rows>,
    suite: Option<SuiteSide>,
}

/// The sides that were typed, the base first. With `joins`, what is given the same name is one side.
fn read_sides<R>(
    typed: Vec<Typed<'_>>,
    joins: bool,
    load: impl Fn(Stored) -> Result<Loaded<R>, Failure>,
) -> Result<Vec<Side<R>>, Failure> {
    let alone = typed.len() == 1;
    let mut sides: Vec<Side<R>> = Vec::new();
    for (name, found) in typed {
        let Loaded { source, parts, rows, suite } = load(found)?;
        let several = 1 < parts.len();
        for (part, results) in parts {
            let joins = joins && name.is_some();
            let name = part_name(sides.len(), name, several.then_some(part), alone);
            if let Some(known) = sides.iter_mut().find(|side| side.name == name) {
                if !joins {
                    return Err(Failure::usage(format!("two sides are called `{name}`"))
                        .hint("give them different names: base=RUN new=RUN"));
                }
                known.source = format!("{}, {source}", known.source);
                known.results.extend(results);
                continue;
            }
            let (source, rows, suite) = (source.clone(), rows.clone(), suite.clone());
            sides.push(Side { name, source, results, rows, suite });
        }
    }
    Ok(sides)
}

/// The name of a side that is one part of what was typed; `None` where it is all of it.
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

/// Runs of our own. A suite is one side, whose runs are known by their rows; so is each of several
/// matrices (`of_matrices`), whose runs are known by their cells and loads. The cells of one matrix, and
/// the conditions of any other set, are sides of their own.
fn load_runs(
    found: Stored,
    of_matrices: bool,
    talk: &impl Fn(&str),
) -> Result<Loaded<Summary>, Failure> {
    let set = match found {
        Stored::Run(run) => {
            let (source, parts) =
                (run.id().to_owned(), vec![(String::new(), vec![summary(&run)?])]);
            return Ok(Loaded { source, parts, rows: None, suite: None });
        }
        Stored::Import(import, _) => {
            let message = format!("{} was imported, and has no runs", import.id());
            return Err(Failure::usage(message));
        }
        Stored::Set(set) => set,
    };
    let manifest = set.manifest().map_err(Failure::from_usage)?;
    let source = set.id().to_owned();
    let replay = replay(&set, &manifest, |_, point| finished(point))?;
    if replay.summary.is_none() {
        talk(&format!("warning: set {source} is not finished; it is compared as far as it goes"));
    }
    let results = replay.results;
    let (rows, suite) = match &manifest.study.question {
        Question::Suite(suite) => {
            if results.is_empty() {
                return Err(Failure::usage(format!("suite {source} has no finished run"))
                    .hint("resume the suite first"));
            }
            let suite = SuiteSide { name: suite.name.clone(), hash: suite.hash.clone() };
            (suite_rows(&manifest, &results), Some(suite))
        }
        Question::Matrix(_) if of_matrices => {
            if results.is_empty() {
                return Err(Failure::usage(format!(
                    "no cell of matrix {source} has a finished run"
                ))
                .hint(format!("its report says why: inferometer report {source}")));
            }
            (matrix_rows(&set, &manifest, &results)?, None)
        }
        Question::Matrix(_) | Question::Repeat | Question::Sweep(_) => {
            let parts = conditions(&source, manifest, results, talk)?;
            return Ok(Loaded { source, parts, rows: None, suite: None });
        }
    };
    let runs = results.into_iter().map(|result| result.summary).collect();
    Ok(Loaded { source, parts: vec![(String::new(), runs)], rows: Some(rows), suite })
}

/// A run's summary: as it is stored, or computed once more where another version stored it.
fn summary(run: &RunDirectory) -> Result<Summary, Failure> {
    let stored = run.read_summary()?.and_then(|bytes| Summary::from_json_bytes(&bytes).ok());
    if let Some(summary) = stored {
        return Ok(summary);
    }
    let stored = run.read().map_err(Failure::from_usage)?;
    Ok(summarize(&stored.observations))
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

fn suite_rows(manifest: &SetManifest, results: &[PointResult]) -> Rows {
    let known = SetSummary::summarize(manifest, results).suite.map(|suite| suite.rows);
    let row_of = |result: &PointResult| {
        let place = (result.point.condition, result.point.level);
        let row = known.iter().flatten().find(|row| (row.condition, row.level) == place);
        row.map_or_else(String::new, |row| row.name.clone())
    };
    Rows { of_runs: results.iter().map(row_of).collect(), failed: Vec::new() }
}

/// Cells of one matrix are compared with each other; of several, each with the cell of its name.
fn are_matrices(typed: &[Typed<'_>]) -> bool {
    typed.iter().all(|(_, found)| match found {
        Stored::Set(set) => set
            .manifest()
            .is_ok_and(|manifest| matches!(manifest.study.question, Question::Matrix(_))),
        Stored::Run(_) | Stored::Import(..) => false,
    })
}

fn matrix_rows(
    set: &SetDirectory,
    manifest: &SetManifest,
    results: &[PointResult],
) -> Result<Rows, Failure> {
    let row_of = |point: &Point| {
        let cell = manifest.study.conditions.get(point.condition as usize);
        format!("{} · {}", cell.map_or("", |condition| &condition.name), point.level)
    };
    let failures = set.failures().map_err(Failure::from_usage)?;
    let failed = failures.iter().map(|it| (row_of(&it.point), it.failure.in_short())).collect();
    Ok(Rows { of_runs: results.iter().map(|result| row_of(&result.point)).collect(), failed })
}

/// The runs of a set by its conditions, in their order; of a matrix the cells that have any: the others
/// failed, and its report says why.
fn conditions(
    id: &str,
    manifest: SetManifest,
    results: Vec<PointResult>,
    talk: &impl Fn(&str),
) -> Result<Vec<Part<Summary>>, Failure> {
    /// A comparison of more cells is too large to read.
    const CELLS_MAX: usize = 26;
    let is_matrix = matches!(manifest.study.question, Question::Matrix(_));
    let names = manifest.study.conditions.into_iter().map(|condition| condition.name);
    let mut conditions: Vec<Part<Summary>> = names.map(|name| (name, Vec::new())).collect();
    for PointResult { point, summary } in results {
        if let Some((_, runs)) = conditions.get_mut(point.condition as usize) {
            runs.push(summary);
        }
    }
    let (measured, failed): (Vec<_>, Vec<_>) =
        conditions.into_iter().partition(|(_, runs)| !runs.is_empty());
    if !is_matrix {
        let Some((name, _)) = failed.first() else { return Ok(measured) };
        return Err(Failure::usage(format!("set {id} has no finished run of `{name}`"))
            .hint("resume the set first"));
    }
    let count = measured.len();
    if count == 0 || CELLS_MAX < count {
        return Err(Failure::usage(format!(
            "matrix {id} has {count} cells with runs, and from 1 to {CELLS_MAX} are compared"
        ))
        .hint(format!(
            "name runs of it, such as {id}/0 {id}/1; its report compares its cells: inferometer \
             report {id}"
        )));
    }
    if !failed.is_empty() {
        talk(&format!("{} cells of {id} failed and are left out", failed.len()));
    }
    Ok(measured)
}

/// Results of any tool; runs of our own in the terms of other tools.
fn load_results(found: Stored, talk: &impl Fn(&str)) -> Result<Loaded<ToolResult>, Failure> {
    if let Stored::Import(ref import, number) = found {
        let (id, results) = (import.id(), results::from_import(import, number)?);
        if results.is_empty() {
            return Err(Failure::usage(format!("import {id} has no result")));
        }
        let source = number.map_or_else(|| id.to_owned(), |number| format!("{id}/{number}"));
        return Ok(Loaded { source, parts: configurations(results), rows: None, suite: None });
    }
    if let Stored::Set(set) = &found
        && let Question::Suite(_) = set.manifest().map_err(Failure::from_usage)?.study.question
    {
        let id = set.id();
        return Err(Failure::usage(format!(
            "{id} is a suite, and nothing imported has its scenarios"
        ))
        .hint(format!("compare one of its runs, such as {id}/0")));
    }
    let Loaded { source, parts, .. } = load_runs(found, false, talk)?;
    let in_their_terms =
        |(name, runs): Part<Summary>| (name, runs.iter().map(ToolResult::beside_others).collect());
    let parts = parts.into_iter().map(in_their_terms).collect();
    Ok(Loaded { source, parts, rows: None, suite: None })
}

/// In the order in which they appear. What has no name is numbered.
fn configurations(results: Vec<ToolResult>) -> Vec<Part<ToolResult>> {
    let mut parts: Vec<Part<ToolResult>> = Vec::new();
    for result in results {
        match parts.iter_mut().find(|(name, _)| *name == result.configuration) {
            Some((_, known)) => known.push(result),
            None => parts.push((result.configuration.clone(), vec![result])),
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
