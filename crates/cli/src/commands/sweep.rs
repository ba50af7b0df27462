//! `inferometer sweep`: many loads, servers side by side, and sets to resume.

use std::process::ExitCode;

use crate::arguments::SweepArguments;
use crate::failure::Failure;
use crate::study::{Begin, Resume};
use crate::sweep;

pub(crate) fn run(arguments: &SweepArguments) -> Result<ExitCode, Failure> {
    let results = &arguments.results;
    if let Some(name) = &arguments.resume {
        let refused = vec![("--virtual", arguments.virtual_time)];
        let typed = arguments.merged();
        return Resume { name, typed, refused, results, narrator: None }.run(None);
    }
    Begin::new(arguments.virtual_time, results).run(sweep::plan(arguments)?)
}
