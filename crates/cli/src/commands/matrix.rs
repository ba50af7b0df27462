//! `inferometer matrix`: servers that are deployed one after the other and measured alike.

use std::num::NonZeroU32;
use std::process::ExitCode;

use inferometer_model::campaign::Matrix;
use inferometer_study::play::ResumeOptions;

use crate::arguments::{ExperimentArguments, MatrixArguments};
use crate::failure::Failure;
use crate::matrix::{self, Selection, listed, shown};
use crate::output;
use crate::study::{Begin, Resume};

pub(crate) fn run(arguments: &MatrixArguments) -> Result<ExitCode, Failure> {
    let MatrixArguments { results, virtual_time, .. } = arguments;
    if arguments.list {
        output::result(&listed(results.page.format())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.show {
        output::result(shown(name)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.resume {
        let refused = vec![("a matrix", arguments.matrix.is_some()), ("--virtual", *virtual_time)];
        let headers = arguments.headers.clone();
        let typed = ExperimentArguments { headers, ..ExperimentArguments::default() };
        let resume = Resume { name, typed, refused, results, narrator: None };
        return resume.run(Some(&|matrix| options(arguments, matrix)));
    }
    Begin::new(*virtual_time, results).run(matrix::plan(arguments)?)
}

fn options(arguments: &MatrixArguments, matrix: &Matrix) -> Result<ResumeOptions, Failure> {
    let lanes = arguments.lanes.map(|lanes| {
        NonZeroU32::new(lanes).ok_or_else(|| Failure::usage("--lanes must be at least 1"))
    });
    let only = if arguments.only.is_empty() {
        None
    } else {
        let selection = Selection::read(&arguments.only, matrix)?;
        let cells = (0_u32..).zip(&matrix.cells).filter(|(_, cell)| selection.takes(cell));
        let levels = matrix.levels.iter().filter(|level| selection.takes_load(level));
        Some((cells.map(|(place, _)| place).collect(), levels.copied().collect()))
    };
    Ok(ResumeOptions { retry_failed: arguments.retry_failed, only, lanes: lanes.transpose()? })
}
