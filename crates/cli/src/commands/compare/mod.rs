//! `inferometer compare`: two or more runs, sets or imported results, and whether the difference is one.

mod sides;

use std::process::ExitCode;

use inferometer_analysis::comparison::{
    Comparison, ComparisonProblem, LayoutSide, Layouts, Margins, Objection, SheetSide, Side, Terms,
};
use inferometer_analysis::{LatencyOrigin, Quantity};
use inferometer_report::comparison as page;
use inferometer_report::terminal::Style;

use self::sides::Sides;
use super::store;
use crate::arguments::{CompareArguments, CompareFormat};
use crate::failure::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let sides = sides::read(&store(&arguments.store)?, &arguments.sides, talk)?;
    let comparison = match &sides {
        Sides::Runs(sides) => {
            let mut runs = sides.iter().flat_map(|side| &side.runs);
            let is_open = runs.next().is_some_and(|run| run.run.load.is_open());
            let layouts: Vec<LayoutSide<'_>> = sides.iter().map(Side::layout).collect();
            Comparison::of(sides, &terms(arguments, LatencyOrigin::for_load(is_open), &layouts)?)
        }
        Sides::Sheets(sides) => {
            let layouts: Vec<LayoutSide<'_>> = sides.iter().map(SheetSide::layout).collect();
            Comparison::of_sheets(sides, &terms(arguments, LatencyOrigin::Sent, &layouts)?)
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
    zero: LatencyOrigin,
    sides: &[LayoutSide<'_>],
) -> Result<Terms, Failure> {
    let primary = arguments
        .primary
        .as_deref()
        .map(|name| Quantity::named(name, zero))
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
                .hint("--force compares them all the same, and says so on the page")
        }
        ComparisonProblem::FewSides(_) => failure.hint(
            "name two runs or sets, or one set of several servers; `inferometer runs` lists them",
        ),
        ComparisonProblem::NoCommonLevel(_) => {
            failure.hint("sweep both over levels that they share")
        }
    }
}
