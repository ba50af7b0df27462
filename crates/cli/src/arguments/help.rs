//! Examples of every command, and the short help: `-h` shows the flags that most people need in a line
//! each, `--help` shows all of them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::Command;
use serde::Deserialize;

/// A command with more flags than this has a short help.
const FLAGS_MAX: usize = 20;

/// The texts of `help.toml`, which says what each is.
#[derive(Deserialize)]
pub(super) struct Help {
    later: Vec<String>,
    one_load: Vec<String>,
    headlines: BTreeMap<String, String>,
    examples: BTreeMap<String, Vec<String>>,
    pub(super) tried_commands: BTreeMap<String, String>,
    /// Several names stand before one meaning.
    pub(super) tried_flags: BTreeMap<String, String>,
}

pub(super) static HELP: LazyLock<Help> = LazyLock::new(|| {
    toml::from_str(include_str!("help.toml")).expect("a test reads the embedded table")
});

/// Puts examples below the help, and shortens `-h`.
pub(super) fn shortened(command: Command) -> Command {
    let lines = HELP.examples.get(command.get_name()).into_iter().flatten();
    let lines = lines.fold(String::new(), |text, line| text + "\n  inferometer " + line);
    let command =
        if lines.is_empty() { command } else { command.after_help(format!("Examples:{lines}")) };
    if command.get_arguments().filter(|argument| !argument.is_hide_set()).count() <= FLAGS_MAX {
        return command;
    }
    let is_experiment = command.get_arguments().any(|argument| argument.get_id() == "places");
    let is_sweep = command.get_arguments().any(|argument| argument.get_id() == "rates");
    command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let has = |ids: &[String]| ids.iter().any(|it| it == id);
        let is_left_out = is_experiment && has(&HELP.later) || is_sweep && has(&HELP.one_load);
        match HELP.headlines.get(id).filter(|_| !is_left_out) {
            Some(text) => {
                let long = argument.get_help().cloned().unwrap_or_default();
                argument.help(text.as_str()).long_help(long).hide_short_help(false)
            }
            None => argument.hide_short_help(true),
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn every_command_has_examples_that_parse() {
        let names: Vec<String> =
            Arguments::command().get_subcommands().map(|it| it.get_name().to_owned()).collect();
        for name in names.iter().filter(|name| *name != "help") {
            assert!(HELP.examples.contains_key(name), "{name} has no examples");
        }
        for lines in HELP.examples.values() {
            assert_eq!(lines.len(), 3, "{lines:?}");
            for line in lines {
                let typed = line.split(" > ").next().unwrap();
                let words = shlex::split(&format!("inferometer {typed}")).unwrap();
                let parsed = Arguments::try_parse_from(words);
                let is_help = |error: &clap::Error| error.exit_code() == 0;
                assert!(parsed.as_ref().err().is_none_or(is_help), "{line}: {parsed:?}");
                assert!(line.len() <= 78, "{line} is too wide");
            }
        }
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        for name in
            ["run", "sweep", "suite", "simulate", "matrix", "check", "plan", "fit", "engine"]
        {
            let mut whole = Arguments::command().term_width(80);
            whole.build();
            let command = whole.find_subcommand_mut(name).unwrap();
            let short = command.render_help().to_string();
            let (lines, long) = (short.lines().count(), command.render_long_help().to_string());
            assert!(lines <= 42, "-h of {name} has {lines} lines:\n{short}");
            assert!(lines * 3 < long.lines().count() || name == "matrix", "{name}");
            if let (Some(load), Some(engine)) =
                (long.find("--concurrency"), long.find("--gpu-memory-utilization"))
            {
                assert!(load < engine, "{name} shows the simulator before the load");
            }
        }
    }
}
