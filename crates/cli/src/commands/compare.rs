//! `inferometer compare`: whether two or more runs, sets or imported results differ.

use std::process::ExitCode;

use inferometer_analysis::comparison::{
    Compared, Comparison, ComparisonProblem, Layouts, Margins, Objection, Side, Terms,
};
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{LatencyOrigin, Quantity, Summary};
use inferometer_model::study::{Point, Question, SetManifest};
use inferometer_report::comparison as page;
use inferometer_store::{RunDirectory, Stored};
use inferometer_study::play::replay_finished;

use super::{store, style, write_document};
use crate::arguments::{CompareArguments, DocumentFormat};
use crate::failure::{Exit, Failure, Result};
use crate::measurement::summarize_stored;
use crate::{output, results};

pub(crate) fn run(arguments: &CompareArguments) -> Result<ExitCode> {
    let talk = output::talk_unless(arguments.write.quiet);
    let store = store(&arguments.store)?;
    let mut typed: Vec<Typed<'_>> = Vec::new();
    for text in &arguments.sides {
        let (name, place) = results::split_name(text);
        typed.push((name, store.find(place).map_err(Failure::from_usage)?));
    }
    // Imported results have only figures, so only figures are compared with them.
    let comparison = if typed.iter().any(|(_, found)| matches!(found, Stored::Import(..))) {
        let sides = read_sides(typed, true, |found| load_results(found, &talk))?;
        compare(arguments, LatencyOrigin::Sent, &sides)?
    } else {
        let of_matrices = 1 < typed.len() && typed.iter().all(|(_, found)| is_matrix(found));
        let sides = read_sides(typed, false, |found| load_runs(found, of_matrices, &talk))?;
        let mut runs = sides.iter().flat_map(|side| &side.results);
        let is_open = runs.next().is_some_and(|run| run.run.load.is_open());
        compare(arguments, LatencyOrigin::for_load(is_open), &sides)?
    };
    let format = arguments.write.format();
    write_document(
        &arguments.write,
        &match format {
            DocumentFormat::Json => page::json(&comparison),
            DocumentFormat::Md => page::markdown(&comparison),
            DocumentFormat::Html => page::html(&comparison),
            DocumentFormat::Page => page::terminal(&comparison, style()),
        },
    )?;
    // The pages contain this warning; a program that reads the document may not check for it.
    if let (DocumentFormat::Json, Some(words)) = (format, page::nothing_decided(&comparison)) {
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
) -> Result<Comparison> {
    let primary = arguments.primary.as_deref().map(|name| Quantity::named(name, origin));
    let primary = primary.transpose();
    let primary = primary.map_err(|problem| Failure::usage(format!("--primary: {problem}")))?;
    let known: Vec<_> = sides.iter().map(Side::layout).collect();
    let layouts = arguments.gpus.map(|gpus| Layouts::new(gpus, &arguments.tensor_parallel, &known));
    let layouts = layouts.transpose().map_err(Failure::usage)?;
    let margins = arguments.margin.map_or(Margins::DEFAULT, Margins::all);
    let terms = Terms { primary, margins, force: arguments.force, layouts };
    Comparison::new(sides, &terms).map_err(|problem| {
        let failure = Failure::usage(problem.to_string());
        match problem {
            ComparisonProblem::NotComparable(objections) => {
                let line = |objection: &Objection| {
                    let (head, words) = page::objection(objection);
                    format!("  {head}: {words}")
                };
                failure
                    .shown(objections.iter().map(line).collect())
                    .hint("--force compares them anyway, with a warning on the page")
            }
            ComparisonProblem::FewSides(_) => failure.hint(
                "name two runs or sets, or one set of several servers; `inferometer runs` lists them",
            ),
            ComparisonProblem::NoCommonLevel(_) => {
                failure.hint("sweep both over levels that they share")
            }
        }
    })
}

/// An argument: the name of a side, where it has one, and what is stored under the rest.
type Typed<'a> = (Option<&'a str>, Stored);

/// The sides of the arguments, the base first. `load` returns one side for each condition or
/// configuration, which is its name. With `joins`, arguments with the same name are one side.
fn read_sides<R>(
    typed: Vec<Typed<'_>>,
    joins: bool,
    load: impl Fn(Stored) -> Result<Vec<Side<R>>>,
) -> Result<Vec<Side<R>>> {
    let alone = typed.len() == 1;
    let mut sides: Vec<Side<R>> = Vec::new();
    for (typed, found) in typed {
        let parts = load(found)?;
        let several = 1 < parts.len();
        for part in parts {
            let letter = || page::letter(sides.len());
            let name = match typed {
                _ if !several => typed.map_or_else(letter, str::to_owned),
                None if alone => part.name.clone(),
                _ => format!("{} {}", typed.map_or_else(letter, str::to_owned), part.name),
            };
            match sides.iter_mut().find(|side| side.name == name) {
                None => sides.push(Side { name, ..part }),
                Some(known) if joins && typed.is_some() => {
                    known.source = format!("{}, {}", known.source, part.source);
                    known.results.extend(part.results);
                }
                Some(_) => {
                    return Err(Failure::usage(format!("two sides are called `{name}`"))
                        .hint("give them different names: base=RUN new=RUN"));
                }
            }
        }
    }
    Ok(sides)
}

fn side<R>(name: String, source: &str, results: Vec<R>) -> Side<R> {
    let (source, rows, failed) = (source.to_owned(), Vec::new(), Vec::new());
    Side { name, source, results, rows, failed, suite: None }
}

fn is_matrix(found: &Stored) -> bool {
    let Stored::Set(set) = found else { return false };
    set.manifest().is_ok_and(|manifest| manifest.study.matrix().is_some())
}

/// Runs of our own. A suite is one side, with its runs by their rows; so is each of several matrices
/// (`of_matrices`), with its runs by their cells and loads. The cells of one matrix, and the conditions
/// of any other set, are separate sides.
fn load_runs(found: Stored, of_matrices: bool, talk: &impl Fn(&str)) -> Result<Vec<Side<Summary>>> {
    let set = match found {
        Stored::Run(run) => return Ok(vec![side(String::new(), run.id(), vec![summary(&run)?])]),
        Stored::Import(import, _) => {
            return Err(Failure::usage(format!("{} was imported, and has no runs", import.id())));
        }
        Stored::Set(set) => set,
    };
    let manifest = set.manifest().map_err(Failure::from_usage)?;
    let source = set.id();
    let replay = replay_finished(&set, &manifest, summary)?;
    if replay.summary.is_none() {
        talk(&format!(
            "warning: set {source} is not finished; only its finished runs are compared"
        ));
    }
    let results = replay.results;
    let (rows, failed, suite) = match &manifest.study.question {
        Question::Suite(suite) => {
            if results.is_empty() {
                return Err(Failure::usage(format!("suite {source} has no finished run"))
                    .hint("resume the suite first"));
            }
            let suite = Some((suite.name.clone(), suite.hash.clone()));
            (suite_rows(&manifest, &results), Vec::new(), suite)
        }
        Question::Matrix(_) if of_matrices => {
            if results.is_empty() {
                let message = format!("no cell of matrix {source} has a finished run");
                return Err(Failure::usage(message)
                    .hint(format!("see the reasons: inferometer report {source}")));
            }
            let row = |point: &Point| {
                let cell = manifest.study.conditions.get(point.condition as usize);
                format!("{} · {}", cell.map_or("", |condition| &condition.name), point.level)
            };
            let failures = set.failures().map_err(Failure::from_usage)?;
            let failed = failures.iter().map(|it| (row(&it.point), it.failure.in_short()));
            (results.iter().map(|result| row(&result.point)).collect(), failed.collect(), None)
        }
        Question::Matrix(_) | Question::Repeat | Question::Sweep(_) => {
            return conditions(source, manifest, results, talk);
        }
    };
    let runs = results.into_iter().map(|result| result.summary).collect();
    Ok(vec![Side { rows, failed, suite, ..side(String::new(), source, runs) }])
}

/// The stored summary of a run, computed again where another version stored it.
fn summary(run: &RunDirectory) -> Result<Summary> {
    match results::kept_summary(run)? {
        Some(summary) => Ok(summary),
        None => Ok(summarize_stored(&run.read().map_err(Failure::from_usage)?)?),
    }
}

fn suite_rows(manifest: &SetManifest, results: &[PointResult]) -> Vec<String> {
    let known = SetSummary::summarize(manifest, results).suite.map(|suite| suite.rows);
    let row = |result: &PointResult| {
        let at = (result.point.condition, result.point.level);
        let row = known.iter().flatten().find(|row| (row.condition, row.level) == at);
        row.map_or_else(String::new, |row| row.name.clone())
    };
    results.iter().map(row).collect()
}

/// The runs of a set by its conditions, in their order; of a matrix only the cells that have any, because
/// the others failed.
pub(crate) fn conditions(
    id: &str,
    manifest: SetManifest,
    results: Vec<PointResult>,
    talk: &impl Fn(&str),
) -> Result<Vec<Side<Summary>>> {
    /// A comparison of more cells is too large to read.
    const CELLS_MAX: usize = 26;
    let is_matrix = manifest.study.matrix().is_some();
    let names = manifest.study.conditions.into_iter().map(|condition| condition.name);
    let mut conditions: Vec<Side<Summary>> = names.map(|name| side(name, id, Vec::new())).collect();
    for PointResult { point, summary } in results {
        if let Some(side) = conditions.get_mut(point.condition as usize) {
            side.results.push(summary);
        }
    }
    let (measured, failed): (Vec<_>, Vec<_>) =
        conditions.into_iter().partition(|side| !side.results.is_empty());
    if !is_matrix {
        let Some(side) = failed.first() else { return Ok(measured) };
        return Err(Failure::usage(format!("set {id} has no finished run of `{}`", side.name))
            .hint("resume the set first"));
    }
    let count = measured.len();
    if count == 0 || CELLS_MAX < count {
        return Err(Failure::usage(format!(
            "matrix {id} has {count} cells with runs, and from 1 to {CELLS_MAX} can be compared"
        ))
        .hint(format!(
            "name some of its runs, such as {id}/0 {id}/1, or compare its cells with: inferometer \
             report {id}"
        )));
    }
    if !failed.is_empty() {
        talk(&format!("{} cells of {id} failed and are left out", failed.len()));
    }
    Ok(measured)
}

/// Results of any tool; runs of our own are converted to the definitions of other tools.
fn load_results(found: Stored, talk: &impl Fn(&str)) -> Result<Vec<Side<ToolResult>>> {
    if let Stored::Import(ref import, number) = found {
        let (id, results) = (import.id(), results::from_import(import, number)?);
        if results.is_empty() {
            return Err(Failure::usage(format!("import {id} has no result")));
        }
        let source = number.map_or_else(|| id.to_owned(), |number| format!("{id}/{number}"));
        return Ok(configurations(&source, results));
    }
    if let Stored::Set(set) = &found
        && let Question::Suite(_) = set.manifest().map_err(Failure::from_usage)?.study.question
    {
        let id = set.id();
        let message = format!("{id} is a suite, and imported results do not have its scenarios");
        return Err(
            Failure::usage(message).hint(format!("compare one of its runs, such as {id}/0"))
        );
    }
    let converted = |Side { name, source, results, .. }: Side<Summary>| {
        side(name, &source, results.iter().map(ToolResult::beside_others).collect())
    };
    Ok(load_runs(found, false, talk)?.into_iter().map(converted).collect())
}

/// In the order in which they appear. A configuration without a name is numbered.
fn configurations(source: &str, results: Vec<ToolResult>) -> Vec<Side<ToolResult>> {
    let mut parts: Vec<Side<ToolResult>> = Vec::new();
    for result in results {
        match parts.iter_mut().find(|part| part.name == result.configuration) {
            Some(known) => known.results.push(result),
            None => parts.push(side(result.configuration.clone(), source, vec![result])),
        }
    }
    for (number, part) in (1..).zip(&mut parts) {
        if part.name.is_empty() {
            part.name = format!("configuration {number}");
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_without_a_name_are_letters() {
        assert_eq!([0, 25, 26].map(page::letter), ["A", "Z", "27"]);
    }

    #[test]
    fn an_import_is_one_side_for_each_of_its_configurations() {
        let of =
            |name: &str| ToolResult { configuration: name.to_owned(), ..ToolResult::default() };
        let found = configurations("import", vec![of("v0"), of(""), of("v1"), of("v0")]);
        let told: Vec<(&str, usize)> =
            found.iter().map(|side| (side.name.as_str(), side.results.len())).collect();
        assert_eq!(told, [("v0", 2), ("configuration 2", 1), ("v1", 1)]);
    }
}
