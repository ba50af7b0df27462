//! Inferometer: measures LLM inference servers, and reports how valid its numbers are.

mod arguments;
mod bench;
mod bench_sweep;
mod commands;
mod draft;
mod experiment;
mod narrator;
mod output;
mod push;
mod report_files;
mod requirements;
mod results;
mod signals;
mod study;
mod terminal;
#[cfg(test)]
mod tests;
mod workers;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use inferometer_model::{Redactor, Secret};
// The measuring library under the names that commands use.
use inferometer_runner::{
    calibration, check, deployed, embedded, environment, failure, measurement, preflight, secrets,
    simulation,
};

use failure::Result;
use inferometer_target::deploy::secret;

/// Requests allocate on the measuring path; this allocator is the fastest we measured there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Engines are processes of their own, so that they take no time from the client.
    if let Ok(program) = std::env::current_exe() {
        embedded::run_engines_with(program);
    }
    if let Some(size) = terminal_size::terminal_size_of(std::io::stdout()) {
        inferometer_report::lines::set_page_width(size.0.0.into());
    }
    let words = bench::with_dashes(std::env::args_os());
    let typed: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let secrets: Vec<Secret> =
        secret::typed(typed.iter().map(AsRef::as_ref)).into_iter().map(Secret::new).collect();
    output::hide(&Redactor::new(&secrets));
    let typed: Vec<String> = typed.iter().skip(1).map(ToString::to_string).collect();
    let words = match experiment::config::with_results(words) {
        Ok(words) => words,
        Err(failure) => return output::report(&failure),
    };
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return output::refuse_arguments(&error, &typed),
    };
    let command = arguments.command.unwrap_or_default();
    terminal::show_progress(&command);
    let code = match run(command) {
        Ok(code) => code,
        Err(failure) => output::report(&failure),
    };
    terminal::flush();
    code
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Suite(arguments) => study::suite(&arguments),
        Command::Matrix(arguments) => study::matrix(&arguments),
        Command::Sweep(arguments) => study::sweep(&arguments),
        Command::Fit(arguments) => commands::fit::run(&arguments),
        Command::Profile(arguments) => study::advice::profile(&arguments),
        Command::Tune(arguments) => study::advice::tune(&arguments),
        Command::Capacity(arguments) => study::advice::capacity(&arguments),
        Command::Simulate(arguments) => commands::simulate::run(&arguments),
        Command::Calibrate(arguments) => commands::calibrate::run(&arguments),
        Command::Require(arguments) => requirements::run(&arguments),
        Command::Report(arguments) => report_files::run(&arguments),
        Command::Import(arguments) => commands::import::run(&arguments),
        Command::Audit(arguments) => commands::audit::run(&arguments),
        Command::Judge(arguments) => commands::judge::run(&arguments),
        Command::Bundle(arguments) => commands::bundle::run(&arguments),
        Command::Export(arguments) => commands::export::run(&arguments),
        Command::Merge(arguments) => workers::merge(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Engine(arguments) => commands::engine::run(&arguments),
        Command::Runs(arguments) => commands::runs::run(&arguments),
        Command::Recover(arguments) => commands::verify::recover(&arguments),
        Command::Plan(arguments) => commands::plan::run(&arguments),
        Command::Config(arguments) => commands::config::run(&arguments),
        Command::Check(arguments) => commands::check::run(&arguments),
        Command::Schema(arguments) => commands::schema(&arguments),
        Command::System(arguments) => commands::system(&arguments),
        Command::Ui(arguments) => commands::ui::run(&arguments),
        Command::Anatomy(arguments) => commands::anatomy::run(&arguments),
        Command::Verify(arguments) => commands::verify::run(&arguments),
        Command::Completions(arguments) => commands::shell::completions(&arguments),
        Command::Man(arguments) => commands::shell::man(&arguments),
    }
}
