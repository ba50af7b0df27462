//! The project's chores: `cargo xtask test` is the one test command.

#![expect(clippy::print_stderr, reason = "a chore reports its progress")]

mod book;
mod browser;
mod clean_runs;
mod deployments;
mod exports;
mod goldens;
mod judge_clients;
mod lines;
mod nightly;
mod packages;
mod platforms;
mod predict;
mod prompts;
mod sbom;
mod simulate_speed;
mod ui_list;
mod workers;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(passed) = check(&words) {
        return if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match chore(&words) {
        Some(Ok(text)) => {
            eprintln!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Some(Err(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
        None => {
            eprint!("{}", include_str!("../help.txt"));
            ExitCode::from(2)
        }
    }
}

/// What cargo prints the result of, and whether it passed; `None` for another command.
fn check(words: &[&str]) -> Option<bool> {
    Some(match words {
        ["test"] => test(),
        ["docs"] => docs(),
        ["real-server", urls @ ..] if !urls.is_empty() => urls.iter().all(|url| real_server(url)),
        ["statistics", words @ ..] => statistics(words),
        ["fuzz", words @ ..] => fuzz(words),
        ["seeds"] => seeds("INFEROMETER_SEEDS", "10000"),
        ["seeds", "--count", count] => seeds("INFEROMETER_SEEDS", count),
        ["seeds", "--seed", seed] => seeds("INFEROMETER_SEED", seed),
        _ => return None,
    })
}

/// What a command of its own module found; `None` for an unknown command.
fn chore(words: &[&str]) -> Option<Result<String, String>> {
    Some(match words {
        ["book"] => target_folder()
            .and_then(|target| book::book(&target, |arguments| cargo(arguments.iter().copied()))),
        ["lines"] => lines::lines(Path::new(".")),
        ["goldens", "record", folder, program @ ..] => {
            program_or_build(program).and_then(|made| goldens::record(&made, Path::new(folder)))
        }
        ["goldens", "compare", folder, program @ ..] => {
            program_or_build(program).and_then(|made| goldens::compare(&made, Path::new(folder)))
        }
        ["clean-runs", words @ ..] => trial(words, [20])
            .and_then(|([rounds], program)| clean_runs::clean_runs(&program, rounds)),
        ["live-view", words @ ..] => trial(words, [20])
            .and_then(|([rounds], program)| clean_runs::live_view(&program, rounds)),
        ["deployments", program @ ..] => program_or_build(program)
            .and_then(|made| deployments::deployments(&made, &target_folder()?))
            .map(|()| String::new()),
        ["exports", program @ ..] => program_or_build(program)
            .and_then(|made| exports::exports(&made, &target_folder()?))
            .map(|()| String::new()),
        ["browser", "ui", program @ ..] => program_or_build(program)
            .and_then(|made| browser::ui(made, &target_folder()?))
            .map(|()| String::new()),
        ["browser", files @ ..] => target_folder()
            .and_then(|target| browser::browser(files, &target, make_samples))
            .map(|()| String::new()),
        [name @ ("slurm" | "merge" | "object-store"), program @ ..] => program_or_build(program)
            .and_then(|made| workers::script(name, &made, &target_folder()?))
            .map(|()| String::new()),
        ["judge-clients", folder, program @ ..] => program_or_build(program).and_then(|made| {
            judge_clients::judge_clients(&made, Path::new(folder), &target_folder()?)
        }),
        ["packages", words @ ..] => {
            target_folder().and_then(|target| packages::packages(words, &target))
        }
        ["predict", words @ ..] if !words.is_empty() => program_or_build(&[])
            .and_then(|made| predict::predict(&made, words, &target_folder()?))
            .map(|()| String::new()),
        ["platforms"] => target_folder().and_then(|target| platforms::platforms(&target)),
        ["ui-list", words @ ..] => {
            trial(words, [10_000]).and_then(|([runs], program)| ui_list::ui_list(&program, runs))
        }
        ["kills", words @ ..] => {
            trial(words, [1_000]).and_then(|([count], program)| nightly::kills(&program, count))
        }
        ["soak", words @ ..] => trial(words, [10_000, 600])
            .and_then(|([streams, seconds], program)| nightly::soak(&program, streams, seconds)),
        ["memory", words @ ..] => trial(words, [2_000_000])
            .and_then(|([requests], program)| nightly::memory(&program, requests)),
        ["prompts", python, tokenizer] => program_or_build(&[])
            .and_then(|made| prompts::prompts(&made, python, tokenizer, &target_folder()?)),
        ["simulate-speed", words @ ..] => {
            program_or_build(&[]).and_then(|made| simulate_speed::simulate_speed(&made, words))
        }
        _ => return None,
    })
}

fn target_folder() -> Result<PathBuf, String> {
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    std::path::absolute(folder).map_err(|error| format!("the build folder has no place: {error}"))
}

/// The program that is named, or ours, built in release mode.
fn program_or_build(named: &[&str]) -> Result<PathBuf, String> {
    if let [program] = named {
        return std::path::absolute(program).map_err(|error| error.to_string());
    }
    if !cargo(["build", "--release", "--package", "inferometer-cli"]) {
        return Err("the program was not built".to_owned());
    }
    Ok(target_folder()?.join("release/inferometer"))
}

fn make_samples(folder: &str) -> bool {
    let example = ["run", "--package", "inferometer-report", "--example", "sample_report", "--"];
    cargo(example.into_iter().chain([folder]))
}

fn test() -> bool {
    cargo(["fmt", "--all", "--check"])
        && cargo(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
        && run(cargo_command(["test", "--workspace"]).env("RUST_TEST_THREADS", test_threads()))
        && run(cargo_command(["doc", "--workspace", "--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Tests mostly wait for the programs that they start, so two more than there are cores keep all busy.
fn test_threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores + 2).to_string()
}

fn docs() -> bool {
    let rewrite = |package, tests: [&str; 2]| {
        let arguments = ["test", "--package", package].into_iter().chain(tests);
        run(cargo_command(arguments).env("INFEROMETER_REWRITE_DOCS", "1"))
    };
    rewrite("inferometer-report", ["--test=it", "docs::"])
        && rewrite("inferometer-cli", ["--bins", "the_page_about"])
        && rewrite("inferometer-cli", ["--bins", "the_documentation_has_every_translation"])
        && rewrite("inferometer-cli", ["--test=it", "the_manifest_has_known_fields"])
        && rewrite("xtask", ["--test=tidy", "the_page_about_reliability"])
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

/// Tests that draw random engines: title, package, test and how many engines by default.
const ENGINES: [(&str, &str, &str, u32); 2] = [
    ("limits of queues, by theory", "inferometer-study", "known_limits::", 400),
    ("knees and limits of the embedded engine", "inferometer-cli", "sweep_truth::", 40),
];

/// Tests that print tables: package, tests and how many runs by default.
const TABLES: [(&str, &str, &str); 2] = [
    ("inferometer-analysis", "statistics::tests::", "1000"),
    ("inferometer-runner", "simulation::tests::coverage::", "300"),
];

/// Runs every part even if one fails.
fn statistics(words: &[&str]) -> bool {
    let mut holds = true;
    for (package, tests, runs) in TABLES {
        let mut tables = cargo_command(["test", "--release", "--package", package]);
        tables.args(["--lib", tests, "--", "--nocapture", "--test-threads=1"]);
        tables.env("INFEROMETER_RUNS", runs);
        for pair in words.chunks(2) {
            match pair {
                ["--runs", runs] => tables.env("INFEROMETER_RUNS", runs),
                ["--seed", seed] => tables.env("INFEROMETER_SEED", seed),
                _ => {
                    eprintln!("expected [--runs N] [--seed N]");
                    return false;
                }
            };
        }
        holds &= self::run(&mut tables);
    }
    for (what, package, test, nightly) in ENGINES {
        let engines = std::env::var("INFEROMETER_ENGINES").unwrap_or_else(|_| nightly.to_string());
        let arguments =
            ["test", "--release", "--quiet", "--package", package, "--test", "it", test];
        let found = self::run(cargo_command(arguments).env("INFEROMETER_ENGINES", &engines));
        let word = if found { "holds" } else { "DOES NOT HOLD" };
        eprintln!("{what}, {engines} drawn: {word}");
        holds &= found;
    }
    holds
}

/// Numbers, as far as they are given, and the program: the named one, or a release build.
fn trial<const N: usize>(
    words: &[&str],
    mut numbers: [u64; N],
) -> Result<([u64; N], PathBuf), String> {
    let mut rest = words;
    for number in &mut numbers {
        if let Some((given, behind)) = rest.split_first()
            && let Ok(given) = given.parse()
        {
            (*number, rest) = (given, behind);
        }
    }
    Ok((numbers, program_or_build(rest)?))
}

fn fuzz(words: &[&str]) -> bool {
    let arguments = ["test", "--package", "fuzz-targets", "--test", "it", "no_input"];
    let mut command = cargo_command(arguments);
    command.args(["--", "--nocapture"]).env("INFEROMETER_EXECUTIONS", "1250000");
    for pair in words.chunks(2) {
        match pair {
            ["--executions", executions] => command.env("INFEROMETER_EXECUTIONS", executions),
            ["--target", target] => command.env("INFEROMETER_TARGET", target),
            ["--seed", seed] => command.env("INFEROMETER_SEED", seed),
            _ => {
                eprintln!("expected [--executions N] [--target NAME] [--seed N]");
                return false;
            }
        };
    }
    // Experiment files and bundles are read by the program, which is no library.
    let target = words.chunks(2).find(|pair| pair[0] == "--target").map(|pair| pair[1]);
    let own = match target {
        None => Some("mutated_"),
        Some("experiment") => Some("mutated_files"),
        Some("bundle") => Some("mutated_bundles"),
        Some(_) => None,
    };
    let mut program = cargo_command(["test", "--package", "inferometer-cli", "--bins"]);
    program.args(own);
    program.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    (target == Some("bundle") || run(&mut command)) && (own.is_none() || run(&mut program))
}

fn seeds(variable: &str, value: &str) -> bool {
    let arguments = ["test", "--package", "inferometer-load", "--test", "it", "seeds::every_seed"];
    run(cargo_command(arguments).args(["--", "--nocapture"]).env(variable, value))
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
