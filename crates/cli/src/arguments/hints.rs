//! What was meant by arguments that cannot be read: flags and commands of other tools, lists where one
//! value is wanted, and misspelt names.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::help::HELP;
use super::{Arguments, foreign};
use crate::experiment::{is_file, nearest};
use crate::failure::Failure;
use crate::output::shell_word;

/// What `inferometer runs` finds by words and not by flags.
const FOUND_BY_WORDS: [&str; 6] = ["--model", "--server", "--url", "--label", "--name", "--id"];

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
        let is_known = flag.starts_with("--") || meant_flags(flag).is_some();
        return is_known.then(|| unknown_flag(flag, command, typed));
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

/// Our flags with the meaning of a name that people try.
fn meant_flags(flag: &str) -> Option<&'static str> {
    let is_tried = |(tried, _): &(&String, &String)| tried.split(' ').any(|it| it == flag);
    HELP.tried_flags.iter().find(is_tried).map(|(_, meant)| meant.as_str())
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
    let names = |own: &Command| -> Vec<String> {
        let flags = own.get_arguments().filter(|argument| !argument.is_hide_set());
        flags
            .flat_map(|flag| flag.get_long_and_visible_aliases().unwrap_or_default())
            .map(|name| format!("--{name}"))
            .collect()
    };
    let (own, measuring) =
        (names(own), whole.find_subcommand("run").map(names).unwrap_or_default());
    if let Some(meant) = meant_flags(flag) {
        let meant: Vec<&str> =
            meant.split(' ').filter(|it| own.iter().any(|own| own == it)).collect();
        if !meant.is_empty() {
            return failure.hint(format!("did you mean {}?", meant.join(" or ")));
        }
    }
    // `bench` has its own reasons for the flags of vLLM's client.
    let foreign = |own: &[String]| foreign::flag_hint(flag, |it| own.iter().any(|own| own == it));
    if command != "bench"
        && let Some(hint) = foreign(&own)
    {
        return failure.hint(hint);
    }
    if command == "runs" && FOUND_BY_WORDS.contains(&flag) {
        let attached = |word: &String| Some(word.strip_prefix(flag)?.strip_prefix('=')?.to_owned());
        let next = typed.iter().skip_while(|word| *word != flag).nth(1).cloned();
        let value = typed.iter().find_map(attached).or(next).and_then(|word| shell_word(&word));
        let value = value.unwrap_or_else(|| "TEXT".to_owned());
        return failure.hint(format!("filter with: inferometer runs {value}"));
    }
    let known: Vec<String> = own.iter().map(|it| it[2..].replace('-', "_")).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let is_of_run = measuring.iter().any(|it| it == flag) || foreign(&measuring).is_some();
    failure.hint(match nearest(flag.trim_start_matches('-'), &known) {
        Some(near) => format!("did you mean --{}?", near.replace('_', "-")),
        None if is_of_run && command != "bench" => {
            format!("it belongs to `inferometer run`; `{name} -h` lists the flags of this command")
        }
        None => format!("`{name} -h` lists the flags that most people need, --help all of them"),
    })
}

fn unknown_command(word: &str, typed: &[String]) -> Option<Failure> {
    let failure = Failure::usage(format!("`{word}` is not a command of inferometer"));
    if word.contains("://") || word.starts_with("localhost") || is_file(word) {
        let words: Option<Vec<String>> = typed.iter().map(|word| shell_word(word)).collect();
        let words = words?.join(" ");
        return Some(failure.hint(format!("to measure it, write: inferometer run {words}")));
    }
    if let Some(command) = HELP.tried_commands.get(word) {
        let url = typed.iter().find(|word| word.contains("://")).and_then(|url| shell_word(url));
        let command = command.replace("URL", url.as_deref().unwrap_or("URL"));
        return Some(failure.hint(format!("write: inferometer {command}")));
    }
    // Two letters the wrong way round are one mistake.
    let whole = Arguments::command();
    let mut names = whole.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name);
    let near = names.find(|name| strsim::damerau_levenshtein(word, name) == 1)?;
    (2 < word.len()).then(|| failure.hint(format!("did you mean: inferometer {near}")))
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
