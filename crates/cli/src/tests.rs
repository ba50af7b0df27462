//! Tests of the documentation: the page of all commands is written from their definitions, and every
//! command line that a page shows is one that this program accepts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory};

use crate::arguments::Arguments;
use crate::bench::with_dashes;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The flags of a command by the headings of its help, each with its row of a table.
type Groups = Vec<(String, Vec<(String, String)>)>;

/// A flag as it is typed, with its other names and its value.
fn typed(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.join(" ");
    let takes_value = argument.get_action().takes_values();
    let long = argument.get_long_and_visible_aliases().unwrap_or_default();
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = long.iter().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    match (names.join(", "), takes_value) {
        (names, _) if names.is_empty() => value,
        (names, false) => names,
        (names, true) if argument.is_require_equals_set() => format!("{names}[={value}]"),
        (names, true) => format!("{names} {value}"),
    }
}

/// The help of a flag, with the values that it takes.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    let values = argument.get_possible_values();
    if !argument.is_hide_possible_values_set() && !values.is_empty() {
        let names: Vec<String> =
            values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        let _ = write!(text, ": {}", names.join(", "));
    }
    cell(&text)
}

/// Text for a cell of a Markdown table: outside of code nothing is markup.
pub(crate) fn cell(text: &str) -> String {
    let escaped = text.split('`').enumerate().map(|(index, part)| {
        let is_code = index % 2 == 1;
        if is_code { part.to_owned() } else { part.replace('<', "\\<").replace('*', "\\*") }
    });
    escaped.collect::<Vec<_>>().join("`").replace('|', "\\|")
}

fn groups(command: &Command) -> Groups {
    let mut groups: Groups = Vec::new();
    let is_shown = |argument: &&Arg| {
        !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
    };
    for argument in command.get_arguments().filter(is_shown) {
        let heading = argument.get_help_heading().unwrap_or("Options");
        let heading = if argument.is_positional() { "Arguments" } else { heading }.to_owned();
        let row = (typed(argument), meaning(argument));
        match groups.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((heading, vec![row])),
        }
    }
    groups
}

fn table(heading: &str, rows: &[(String, String)]) -> String {
    let mut text = format!("**{heading}**\n\n| flag | meaning |\n|---|---|\n");
    for (flag, meaning) in rows {
        let flag = flag.replace('|', "\\|");
        let _ = writeln!(text, "| `{flag}` | {meaning} |");
    }
    text.push('\n');
    text
}

/// The section of a command. Flags that `run` has, too, are listed there alone: whole groups by their
/// headings, others by their names.
fn section(path: &str, command: &Command, of_run: &Groups) -> String {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let about = about.trim_end_matches('.').replacen("\n\n", ".\n\n", 1);
    let usage = usage.trim_start_matches("Usage: ");
    let mut text = format!("## `{path}`\n\n{}.\n\n```text\n{usage}\n```\n\n", cell(&about));
    let (mut headings, mut flags) = (Vec::new(), Vec::new());
    for (heading, rows) in groups(&command) {
        let shared = of_run.iter().find(|(name, _)| *name == heading && path != "inferometer run");
        let of_run = shared.map(|(_, rows)| rows.as_slice()).unwrap_or_default();
        let (also, own): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| of_run.contains(row));
        if !also.is_empty() && also.len() == of_run.len() {
            headings.push(format!("**{heading}**"));
        } else {
            let long = |flag: &str| {
                flag.split([' ', '[', ',']).find(|word| word.starts_with("--")).map(str::to_owned)
            };
            flags.extend(also.iter().filter_map(|(flag, _)| Some(format!("`{}`", long(flag)?))));
        }
        if !own.is_empty() {
            text += &table(&heading, &own);
        }
    }
    if !headings.is_empty() {
        let _ = writeln!(
            text,
            "All flags of [`run`](#inferometer-run) under {}.\n",
            headings.join(", ")
        );
    }
    if !flags.is_empty() {
        let _ = writeln!(text, "As in [`run`](#inferometer-run): {}.\n", flags.join(", "));
    }
    for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
        text += &section(&format!("{path} {}", child.get_name()), child, of_run);
    }
    text
}

fn page_of_commands() -> String {
    let mut program = Arguments::command();
    program.build();
    let run = program.find_subcommand("run").unwrap();
    let of_run = groups(run);
    let mut text = "# Commands\n\nGenerated from the definitions of the flags: change those, then run \
                    `cargo xtask docs`.\n\n`inferometer run --help` prints the same in a terminal, for every command. \
                    Values and their notation are described in [the experiment \
                    file](experiment.md#notation), exit codes in \
                    [troubleshooting](troubleshooting.md#exit-codes).\n\n| command | purpose |\n|---|---|\n"
        .to_owned();
    let commands: Vec<&Command> =
        program.get_subcommands().filter(|command| command.get_name() != "help").collect();
    for command in &commands {
        let (name, about) = (command.get_name(), command.get_about().unwrap_or_default());
        let about = cell(&about.to_string());
        let _ = writeln!(text, "| [`{name}`](#inferometer-{name}) | {about} |");
    }
    text.push('\n');
    for command in commands {
        text += &section(&format!("inferometer {}", command.get_name()), command, &of_run);
    }
    format!("{}\n", text.trim_end())
}

/// `cargo xtask docs` writes the page; this fails when it was forgotten.
#[test]
fn the_page_about_commands_lists_every_flag() {
    let page = root().join("docs/commands.md");
    let generated = page_of_commands();
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        std::fs::write(&page, &generated).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap();
    assert!(written == generated, "run `cargo xtask docs`");
}

/// README and the pages of `docs/`, by their names.
fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![root().join("docs")];
    let mut paths = vec![root().join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    for path in paths {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        pages.insert(name, std::fs::read_to_string(&path).unwrap());
    }
    pages
}

/// The command lines in the code blocks of a page. A line that ends with a backslash continues, and so
/// does one whose next line begins with a flag.
fn command_lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut block, mut continues) = (None, false);
    for line in text.lines() {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            block = if block.is_none() { Some(language) } else { None };
            continues = false;
        } else if block.is_some_and(|language| language != "text") {
            let line = line.trim_start_matches("- run: ").trim_start_matches("$ ");
            let begins = line.find("inferometer ").filter(|at| {
                let before = &line[..*at];
                before.is_empty() || before.ends_with("| ") || before.ends_with("&& ")
            });
            if continues || (line.starts_with("--") && !found.is_empty()) {
                let last = found.last_mut().unwrap();
                *last = format!("{} {line}", last.trim_end_matches('\\'));
            } else if let Some(at) = begins {
                found.push(line[at..].to_owned());
            } else {
                continue;
            }
            continues = line.ends_with('\\');
        }
    }
    found
}

/// The words of a line up to a comment, a pipe or a redirection, without what stands for more words.
fn words(line: &str) -> Vec<String> {
    let split = shlex::split(line).unwrap_or_else(|| panic!("a quote is not closed: {line}"));
    let ends = ["|", ">", "2>", ">>", "&&", "&", "#", "…"];
    let words = split.into_iter().take_while(|word| !ends.contains(&word.as_str()));
    words.filter(|word| !word.starts_with('[')).collect()
}

fn refusal(line: &str) -> Option<clap::Error> {
    let words = with_dashes(words(line).into_iter().map(Into::into));
    let refusal = Arguments::command().try_get_matches_from(words).err()?;
    let is_help = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion].contains(&refusal.kind());
    (!is_help).then_some(refusal)
}

#[test]
fn commands_on_pages_are_accepted() {
    let mut refused = Vec::new();
    let mut count = 0;
    for (name, text) in pages() {
        for line in command_lines(&text) {
            count += 1;
            if let Some(error) = refusal(&line) {
                refused.push(format!("{name}: {line}\n{}", error.render()));
            }
        }
    }
    assert!(100 < count, "only {count} commands were found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// In prose a command may be incomplete, but its name and its flags must exist.
#[test]
fn commands_in_prose_exist() {
    let mut refused = Vec::new();
    for (name, text) in pages() {
        let spans = text.split('`').skip(1).step_by(2);
        for span in spans.filter(|span| span.starts_with("inferometer ") && !span.contains('\n')) {
            let unknown = [ErrorKind::InvalidSubcommand, ErrorKind::UnknownArgument];
            if let Some(error) = refusal(span).filter(|error| unknown.contains(&error.kind())) {
                refused.push(format!("{name}: {span}\n{}", error.render()));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn lines_are_found_and_joined() {
    let page = "inferometer no\n```sh\ninferometer run A \\\n  --rate 5   # why\ncurl x | inferometer import -\n\
                - run: inferometer runs\n```\n`inferometer x`\n```text\ninferometer output\n```\n";
    let lines = command_lines(page);
    let found: Vec<String> = lines.iter().map(|line| words(line).join(" ")).collect();
    assert_eq!(found, ["inferometer run A --rate 5", "inferometer import -", "inferometer runs"]);
    assert!(refusal("inferometer run --no-such-flag").is_some());
    assert!(refusal("inferometer run --rate 5 …").is_none());
}
