//! `inferometer suite`: a list of scenarios on one server.

use std::process::ExitCode;

use super::sweep::{Resume, beside_resume};
use crate::arguments::SuiteArguments;
use crate::failure::Failure;
use crate::output;
use crate::set::{self, How};
use crate::suite::{Ready, ask, listed, outline, shown};

pub(crate) fn run(arguments: &SuiteArguments) -> Result<ExitCode, Failure> {
    let results = &arguments.results;
    if arguments.list {
        output::result(&listed(results.page.format())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.show {
        output::result(shown(name)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.price.is_some() && !results.dry_run {
        return Err(Failure::usage("--price is reckoned with in a dry run, and nothing stores it")
            .hint("add --dry-run, or leave it out"));
    }
    if let Some(name) = &arguments.resume {
        return resume(arguments, name);
    }
    let Ready { campaign, secrets, restart_timeout, notes } = ask(arguments)?;
    let how =
        if arguments.virtual_time { How::Virtual } else { How::Live { secrets, restart_timeout } };
    if results.dry_run {
        set::check(&campaign, &how, results)?;
        output::result(&outline(&campaign, &notes, arguments.price, results)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for note in notes.iter().filter(|_| !results.quiet) {
        output::talk(&format!("note: {note}"));
    }
    set::begin_suite(campaign, how, results, &arguments.narrator)
}

fn resume(arguments: &SuiteArguments, name: &str) -> Result<ExitCode, Failure> {
    if arguments.prompts.is_some() {
        return Err(beside_resume("--prompts"));
    }
    let (typed, results) = (arguments.experiment.clone(), &arguments.results);
    let (narrator, virtual_time) = (Some(&arguments.narrator), arguments.virtual_time);
    Resume { name, typed, virtual_time, results, narrator }.go_on()
}
