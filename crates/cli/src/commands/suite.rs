//! `inferometer suite`: a list of scenarios on one server.

use std::process::ExitCode;

use crate::arguments::SuiteArguments;
use crate::failure::Failure;
use crate::output;
use crate::study::{Begin, Resume};
use crate::suite::{self, listed, shown};

pub(crate) fn run(arguments: &SuiteArguments) -> Result<ExitCode, Failure> {
    let SuiteArguments { results, virtual_time, price, .. } = arguments;
    if arguments.list {
        output::result(&listed(results.page.format())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.show {
        output::result(shown(name)?)?;
        return Ok(ExitCode::SUCCESS);
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
