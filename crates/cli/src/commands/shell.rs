//! `inferometer completions` and `inferometer man`: for shells and manual pages, from the tables of the
//! flags and of the names that they take.

use std::path::{Path, is_separator};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use inferometer_analysis::metric::METRICS;
use inferometer_engine::profile::catalogue;

use crate::arguments::{Arguments, CompletionsArguments, ManArguments};
use crate::failure::{Failure, Result};
use crate::output;
use crate::study::file::BuiltIns;
use crate::study::matrix::MATRICES;
use crate::study::suite::SUITES;

/// Prints the script that a shell reads.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = Arguments::command().mut_subcommands(with_names);
    clap_complete::generate(arguments.name, &mut command, "inferometer", &mut script);
    output::result(&String::from_utf8_lossy(&script))
}

/// Prints the page of a command or of the program, or writes those of all commands into a folder.
pub(crate) fn man(arguments: &ManArguments) -> Result<ExitCode> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    let named = arguments.page.as_deref();
    let Some(folder) = named.filter(|named| named.to_string_lossy().contains(is_separator)) else {
        command.build();
        let page = match named.and_then(Path::to_str) {
            None => Some(&command),
            Some(name) => command.find_subcommand(name),
        };
        let page = page.ok_or_else(|| {
            let name = named.map(Path::display);
            let name = name.map_or_else(String::new, |name| name.to_string());
            Failure::usage(format!("`{name}` is not a command of inferometer"))
                .hint(format!("to write all pages into a folder: inferometer man ./{name}"))
        })?;
        let mut text = Vec::new();
        clap_mangen::Man::new(page.clone()).render(&mut text).map_err(Failure::from_error)?;
        return output::result(&String::from_utf8_lossy(&text));
    };
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map(|()| ExitCode::SUCCESS).map_err(|error| {
        Failure::usage(format!("the pages cannot be written to {}: {error}", folder.display()))
            .hint("name a folder that you may write to")
    })
}

/// The command with the names that the values of its flags may have.
fn with_names(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|argument| match names(&name, &argument) {
        Some(names) => argument.value_parser(PossibleValuesParser::new(names)),
        None => argument,
    })
}

fn names(command: &str, argument: &Arg) -> Option<Vec<&'static str>> {
    let catalogue = catalogue();
    let files = |of: &BuiltIns| of.files.iter().map(|(name, _)| *name).collect();
    Some(match (command, argument.get_id().as_str()) {
        ("suite", "suite" | "show") => files(&SUITES),
        ("matrix", "matrix" | "show") => files(&MATRICES),
        ("explain", "words") => METRICS.iter().map(|metric| metric.name).collect(),
        (_, "profile") => catalogue.profiles.iter().map(|profile| &*profile.name).collect(),
        (_, "hardware") => catalogue.hardware.iter().map(|gpu| &*gpu.name).collect(),
        (_, "engine_model") => catalogue.models.iter().map(|model| &*model.name).collect(),
        _ => return None,
    })
}
