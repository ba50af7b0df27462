//! The project's chores: `cargo xtask test` is the one test command.

#![expect(clippy::print_stderr, reason = "a chore reports its progress")]

mod book;
mod goldens;
mod lines;

use std::path::Path;
use std::process::ExitCode;

use xtask::{cargo, cargo_command, program_or_build, run, target_folder};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match chore(&words) {
        Some(Ok(text)) => {
            eprintln!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Some(Err(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
        None => slow_check(&words),
    }
}

/// The checks that are slow are a program of their own.
fn slow_check(words: &[&str]) -> ExitCode {
    let called = ["run", "--quiet", "--package", "checks", "--"].iter().chain(words).copied();
    match cargo_command(called).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into(),
        Err(error) => {
            eprintln!("error: cargo did not start: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a chore printed or found; `None` for another command.
fn chore(words: &[&str]) -> Option<Result<String, String>> {
    Some(match words {
        ["test"] => passed(test()),
        ["docs"] => passed(docs()),
        ["book"] => target_folder()
            .and_then(|target| book::book(&target, |arguments| cargo(arguments.iter().copied()))),
        ["lines"] => lines::lines(Path::new(".")),
        ["goldens", "record", folder, program @ ..] => {
            program_or_build(program).and_then(|made| goldens::record(&made, Path::new(folder)))
        }
        ["goldens", "compare", folder, program @ ..] => {
            program_or_build(program).and_then(|made| goldens::compare(&made, Path::new(folder)))
        }
        _ => return None,
    })
}

/// What failed has printed why.
fn passed(passed: bool) -> Result<String, String> {
    if passed { Ok(String::new()) } else { Err("the chore failed".to_owned()) }
}

fn test() -> bool {
    cargo(["fmt", "--all", "--check"])
        && cargo(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
        // Every test that fails is named, not only those of the first crate in which one does.
        && run(cargo_command(["test", "--workspace", "--no-fail-fast"])
            .env("RUST_TEST_THREADS", test_threads()))
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
