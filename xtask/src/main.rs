//! The project's chores: `cargo xtask test` is the one test command.

#![expect(clippy::print_stderr, reason = "a chore talks to whoever runs it")]

mod browser;
mod deployments;
mod exports;
mod prompts;
mod rivals;
mod simulate_speed;
#[cfg(test)]
mod tidy;

use std::ffi::OsStr;
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test                formatting, lints, all quick tests, documentation
cargo xtask docs                rewrite the documentation that is generated from the code
cargo xtask statistics [--runs N] [--seed N]   do intervals cover, and comparisons find, what is known
                                to be true? A thousand simulated runs of each kind, then searches
                                and sweeps of engines drawn at random (many minutes);
                                INFEROMETER_ENGINES draws so many of each instead
cargo xtask real-server URL…    measure servers that you started, every way this tool can (slow)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(),
        ["docs"] => docs(),
        ["real-server", urls @ ..] if !urls.is_empty() => urls.iter().all(|url| real_server(url)),
        ["statistics", words @ ..] => statistics(words),
        ["rivals", words @ ..] => beside_rivals(words),
        ["deployments"] => put_up(None),
        ["deployments", program] => put_up(Some(program)),
        ["exports"] => before_readers(None),
        ["exports", program] => before_readers(Some(program)),
        ["drop-in", words @ ..] => drop_in(words),
        ["browser", files @ ..] => in_browser(files),
        ["prompts", python, tokenizer] => prompts(python, tokenizer),
        ["simulate-speed", words @ ..] => simulate_speed(words),
        _ => {
            eprint!(
                "{HELP}{}{}{}{}{}{}{}",
                browser::HELP,
                deployments::HELP,
                exports::HELP,
                simulate_speed::HELP,
                prompts::HELP,
                rivals::HELP,
                rivals::DROP_IN_HELP
            );
            return ExitCode::from(2);
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn test() -> bool {
    cargo(["fmt", "--all", "--check"])
        && cargo(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
        && cargo(["test", "--workspace"])
        && run(cargo_command(["doc", "--workspace", "--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "--deny warnings"))
}

fn docs() -> bool {
    let rewrite = |package, tests: [&str; 2]| {
        let arguments = ["test", "--package", package].into_iter().chain(tests);
        run(cargo_command(arguments).env("INFEROMETER_REWRITE_DOCS", "1"))
    };
    rewrite("inferometer-report", ["--test", "docs"])
        && rewrite("inferometer-cli", ["--bins", "the_page_about_the_file"])
}

/// Every API and framing against one server; a run that is not valid enough fails the chore.
fn real_server(url: &str) -> bool {
    ["chat", "completions"].into_iter().all(|api| {
        [&["--concurrency", "4"][..], &["--rate", "4"], &["--no-stream"]].into_iter().all(|load| {
            let arguments = ["run", "--release", "--", "run", url, "--api", api]
                .into_iter()
                .chain(["--requests", "24", "--input-tokens", "64", "--output-tokens", "32"])
                .chain(load.iter().copied());
            cargo(arguments)
        })
    })
}

/// What is drawn at random and searched, and how many of it in the chore's own size.
const ENGINES: [(&str, &str, &str, u32); 2] = [
    ("limits of queues, by theory", "inferometer-study", "known_limits", 400),
    ("knees and limits of the embedded engine", "inferometer-cli", "sweep_truth", 40),
];

/// All of it, though a part fails: who waits so long wants to know the rest.
fn statistics(words: &[&str]) -> bool {
    let run = ["run", "--release", "--package", "inferometer-analysis", "--example", "coverage"];
    let mut holds = cargo(run.into_iter().chain(["--"]).chain(words.iter().copied()));
    for (what, package, test, nightly) in ENGINES {
        let engines = std::env::var("INFEROMETER_ENGINES").unwrap_or_else(|_| nightly.to_string());
        let arguments = ["test", "--release", "--quiet", "--package", package, "--test", test];
        let found = self::run(cargo_command(arguments).env("INFEROMETER_ENGINES", &engines));
        let word = if found { "holds" } else { "DOES NOT HOLD" };
        eprintln!("{what}, {engines} drawn: {word}");
        holds &= found;
    }
    holds
}

fn in_browser(files: &[&str]) -> bool {
    let example = ["run", "--package", "inferometer-report", "--example", "sample_report", "--"];
    let make_samples = |folder: &str| cargo(example.into_iter().chain([folder]));
    browser::browser(files, make_samples).inspect_err(|why| eprintln!("browser: {why}")).is_ok()
}

fn put_up(program: Option<&str>) -> bool {
    if program.is_none() && !cargo(["build", "--release", "--package", "inferometer-cli"]) {
        return false;
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = std::path::Path::new(&folder);
    let made = folder.join("release/inferometer");
    let program = program.map_or(made.as_path(), std::path::Path::new);
    let tried = deployments::deployments(program, folder);
    tried.inspect_err(|why| eprintln!("deployments: {why}")).is_ok()
}

fn before_readers(program: Option<&str>) -> bool {
    if program.is_none() && !cargo(["build", "--release", "--package", "inferometer-cli"]) {
        return false;
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = std::path::Path::new(&folder);
    let made = folder.join("release/inferometer");
    let program = program.map_or(made.as_path(), std::path::Path::new);
    exports::exports(program, folder).inspect_err(|why| eprintln!("exports: {why}")).is_ok()
}

fn beside_rivals(words: &[&str]) -> bool {
    let build = || cargo(["build", "--release", "--package", "inferometer-cli"]);
    rivals::rivals(words, build).inspect_err(|why| eprintln!("rivals: {why}")).is_ok()
}

fn drop_in(words: &[&str]) -> bool {
    let build = || cargo(["build", "--release", "--package", "inferometer-cli"]);
    rivals::drop_in(words, build).inspect_err(|why| eprintln!("drop-in: {why}")).is_ok()
}

fn simulate_speed(words: &[&str]) -> bool {
    if !cargo(["build", "--release", "--package", "inferometer-cli"]) {
        return false;
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let made = std::path::Path::new(&folder).join("release/inferometer");
    match simulate_speed::simulate_speed(&made, words) {
        Ok(table) => {
            eprint!("{table}");
            true
        }
        Err(why) => {
            eprintln!("simulate-speed: {why}");
            false
        }
    }
}

fn prompts(python: &str, tokenizer: &str) -> bool {
    if !cargo(["build", "--release", "--package", "inferometer-cli"]) {
        return false;
    }
    let made = std::path::Path::new("target/release/inferometer");
    match prompts::prompts(made, python, tokenizer, std::path::Path::new("target")) {
        Ok(words) => {
            eprintln!("{words}");
            true
        }
        Err(why) => {
            eprintln!("prompts: {why}");
            false
        }
    }
}

fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> bool {
    run(&mut cargo_command(arguments))
}

fn cargo_command<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

fn run(command: &mut Command) -> bool {
    let words: Vec<&OsStr> = command.get_args().collect();
    eprintln!("· cargo {}", words.join(OsStr::new(" ")).display());
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo did not start: {error}");
            false
        }
    }
}
