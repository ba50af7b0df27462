//! What was meant by arguments that cannot be read: flags and commands of other tools, lists where one
//! value is wanted, and misspelt names.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Arguments, foreign};
use crate::experiment::{is_file, nearest};
use crate::failure::Failure;

/// First words that people try, and the command that does it.
const COMMANDS: [(&str, &str); 12] = [
    ("profile", "run URL"),
    ("benchmark", "run URL"),
    ("measure", "run URL"),
    ("load", "run URL"),
    ("serve", "engine"),
    ("server", "engine"),
    ("ls", "runs"),
    ("list", "runs"),
    ("show", "report latest"),
    ("open", "report latest --open"),
    ("diff", "compare"),
    ("rm", "runs prune"),
];

/// The failure that says what was meant; `None` leaves the message to clap.
pub(crate) fn explain(error: &clap::Error, typed: &[String]) -> Option<Failure> {
    if let Some(failure) = foreign::translate(typed) {
        return Some(failure);
    }
    let text = |kind| {
        let Some(ContextValue::String(text)) = error.get(kind) else { return None };
        Some(text.as_str())
    };
    let command = typed.first().map_or("", String::as_str);
    let kind = error.kind();
    if kind == ErrorKind::UnknownArgument {
        let flag = text(ContextKind::InvalidArg)?.split(['=', ' ']).next()?;
        return flag.starts_with("--").then(|| unknown_flag(flag, command, typed));
    }
    if kind == ErrorKind::InvalidSubcommand {
        return unknown_command(text(ContextKind::InvalidSubcommand)?, typed);
    }
    if kind != ErrorKind::ValueValidation {
        return None;
    }
    let flag = text(ContextKind::InvalidArg)?.split(' ').next()?;
    several_values(flag, text(ContextKind::InvalidValue)?, command)
}

fn unknown_flag(flag: &str, command: &str, typed: &[String]) -> Failure {
    let whole = Arguments::command();
    let mut own = &whole;
    let mut name = "inferometer".to_owned();
    for word in typed {
        let Some(inner) = own.find_subcommand(word) else { break };
        own = inner;
        name = format!("{name} {word}");
    }
    let failure = Failure::usage(format!("{flag} is not a flag of `{name}`"));
    // `bench` has its own reasons for the flags of vLLM's client.
    if command != "bench"
        && let Some(hint) = foreign::flag_hint(flag)
    {
        return failure.hint(hint);
    }
    let flags = own.get_arguments().filter(|argument| !argument.is_hide_set());
    let names: Vec<String> = flags
        .flat_map(|flag| flag.get_long_and_visible_aliases().unwrap_or_default())
        .map(|name| name.replace('-', "_"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    failure.hint(match nearest(flag.trim_start_matches('-'), &names) {
        Some(near) => format!("did you mean --{}?", near.replace('_', "-")),
        None => format!("`{name} -h` lists the flags that most people need, --help all of them"),
    })
}

fn unknown_command(word: &str, typed: &[String]) -> Option<Failure> {
    let failure = Failure::usage(format!("`{word}` is not a command of inferometer"));
    if word.contains("://") || word.starts_with("localhost") || is_file(word) {
        let words = shlex::try_join(typed.iter().map(String::as_str)).ok()?;
        return Some(failure.hint(format!("to measure it, write: inferometer run {words}")));
    }
    let (_, command) = COMMANDS.iter().find(|(tried, _)| *tried == word)?;
    Some(failure.hint(format!("write: inferometer {command}")))
}

/// `--rate 1,2,4` is a sweep.
fn several_values(flag: &str, value: &str, command: &str) -> Option<Failure> {
    let many = match flag {
        "--rate" => "--rates",
        "--concurrency" => "--concurrencies",
        _ => return None,
    };
    if !value.contains(',') && !value.contains("..") {
        return None;
    }
    let failure = Failure::usage(format!("{flag} is one load, and `{value}` are several"));
    Some(failure.hint(match command {
        "sweep" => format!("write: {many} {value}"),
        _ => format!("several loads are a sweep: inferometer sweep {many} {value}"),
    }))
}
