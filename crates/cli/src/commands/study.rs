//! `inferometer sweep`, `suite` and `matrix`: studies that are begun, outlined, listed or resumed.

use std::num::NonZeroU32;
use std::process::ExitCode;

use inferometer_model::study::Matrix;
use inferometer_study::play::ResumeOptions;

use crate::arguments::{
    ExperimentArguments, MatrixArguments, PageFormat, SuiteArguments, SweepArguments,
};
use crate::failure::Failure;
use crate::output;
use crate::study::file::BuiltIns;
use crate::study::matrix::{self, MATRICES, Selection};
use crate::study::suite::{self, SUITES};
use crate::study::{Begin, Resume, sweep as sweep_study};

/// Many loads, servers side by side, and searches.
pub(crate) fn sweep(arguments: &SweepArguments) -> Result<ExitCode, Failure> {
    let results = &arguments.results;
    if let Some(name) = &arguments.resume {
        let refused = vec![("--virtual", arguments.virtual_time)];
        let typed = arguments.merged();
        return Resume { name, typed, refused, results, narrator: None }.run(None);
    }
    Begin::new(arguments.virtual_time, results).run(sweep_study::plan(arguments)?)
}

/// A list of scenarios on one server.
pub(crate) fn suite(arguments: &SuiteArguments) -> Result<ExitCode, Failure> {
    let SuiteArguments { results, virtual_time, price, list, show, .. } = arguments;
    if *list || show.is_some() {
        return print_built_in(&SUITES, show.as_deref(), suite::list, results.page.format());
    }
    if price.is_some() && !results.dry_run {
        return Err(Failure::usage("--price applies to a dry run only, and is not stored")
            .hint("add --dry-run, or leave it out"));
    }
    let narrator = Some(&arguments.narrator);
    if let Some(name) = &arguments.resume {
        let refused =
            vec![("--prompts", arguments.prompts.is_some()), ("--virtual", *virtual_time)];
        let typed = arguments.experiment.clone();
        return Resume { name, typed, refused, results, narrator }.run(None);
    }
    let begin = Begin { is_virtual: *virtual_time, results, narrator, price: *price };
    begin.run(suite::plan(arguments)?)
}

/// Servers that are deployed one after the other, each measured in the same way.
pub(crate) fn matrix(arguments: &MatrixArguments) -> Result<ExitCode, Failure> {
    let MatrixArguments { results, virtual_time, list, show, .. } = arguments;
    if *list || show.is_some() {
        return print_built_in(&MATRICES, show.as_deref(), matrix::list, results.page.format());
    }
    if let Some(name) = &arguments.resume {
        let refused = vec![("a matrix", arguments.matrix.is_some()), ("--virtual", *virtual_time)];
        let headers = arguments.headers.clone();
        let typed = ExperimentArguments { headers, ..ExperimentArguments::default() };
        let resume = Resume { name, typed, refused, results, narrator: None };
        return resume.run(Some(&|matrix| resume_options(arguments, matrix)));
    }
    Begin::new(*virtual_time, results).run(matrix::plan(arguments)?)
}

/// `--show NAME`, or else `--list`.
fn print_built_in(
    built_ins: &BuiltIns,
    show: Option<&str>,
    list: fn(PageFormat) -> Result<String, Failure>,
    format: PageFormat,
) -> Result<ExitCode, Failure> {
    match show {
        Some(name) => output::result(built_ins.show(name)?)?,
        None => output::result(&list(format)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is measured of a matrix that is resumed.
fn resume_options(arguments: &MatrixArguments, matrix: &Matrix) -> Result<ResumeOptions, Failure> {
    let lanes = arguments.lanes.map(|lanes| {
        NonZeroU32::new(lanes).ok_or_else(|| Failure::usage("--lanes must be at least 1"))
    });
    let only = if arguments.only.is_empty() {
        None
    } else {
        let selection = Selection::read(&arguments.only, matrix)?;
        let cells = (0_u32..).zip(&matrix.cells);
        let cells = cells.filter(|(_, cell)| selection.takes(matrix, cell));
        let levels = matrix.levels.iter().filter(|level| selection.takes_load(level));
        Some((cells.map(|(place, _)| place).collect(), levels.copied().collect()))
    };
    Ok(ResumeOptions { retry_failed: arguments.retry_failed, only, lanes: lanes.transpose()? })
}
