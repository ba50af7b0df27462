//! `inferometer compare`: two or more runs or sets, and whether the difference is one.

mod sides;

use std::process::ExitCode;

use inferometer_analysis::comparison::{
    Comparison, ComparisonProblem, Layouts, Margins, Objection, Side, Terms,
};
use inferometer_analysis::{Quantity, Zero};
use inferometer_report::comparison as page;
use inferometer_report::terminal::Style;

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
    let terms = terms(arguments, &sides)?;
    let comparison = Comparison::of(&sides, &terms).map_err(refused)?;
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

fn terms(arguments: &CompareArguments, sides: &[Side]) -> Result<Terms, Failure> {
    let is_open =
        sides.iter().flat_map(|side| &side.runs).next().is_some_and(|run| run.run.load.is_open());
    let zero = Zero::of(is_open);
    let primary = arguments
        .primary
        .as_deref()
        .map(|name| Quantity::named(name, zero))
        .transpose()
        .map_err(|problem| Failure::usage(format!("--primary: {problem}")))?;
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let layouts = arguments
        .gpus
        .map(|gpus| Layouts::new(gpus, &arguments.tensor_parallel, &names))
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
