//! Checks that are too slow for every change, or want programs that not everybody has: `cargo xtask` calls them by
//! the same names as its own chores.

#![expect(clippy::print_stderr, reason = "a check reports its progress")]

mod browser;
mod clean_runs;
mod deployments;
mod drawn;
mod exports;
mod judge_clients;
mod nightly;
mod packages;
mod platforms;
mod predict;
mod prompts;
mod sbom;
mod simulate_speed;
mod ui_list;
mod workers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use xtask::{cargo, program_or_build, target_folder};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(passed) = test(&words) {
        return if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match check(&words) {
        Some(Ok(text)) => {
            eprintln!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Some(Err(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
        None => {
            eprint!(
                "{}",
                concat!(include_str!("../../../xtask/help.txt"), include_str!("../help.txt"))
            );
            ExitCode::from(2)
        }
    }
}

/// What cargo prints the result of, and whether it passed; `None` for another command.
fn test(words: &[&str]) -> Option<bool> {
    Some(match words {
        ["real-server", urls @ ..] if !urls.is_empty() => urls.iter().all(|url| real_server(url)),
        ["statistics", words @ ..] => drawn::statistics(words),
        ["fuzz", words @ ..] => drawn::fuzz(words),
        ["seeds"] => drawn::seeds("INFEROMETER_SEEDS", "10000"),
        ["seeds", "--count", count] => drawn::seeds("INFEROMETER_SEEDS", count),
        ["seeds", "--seed", seed] => drawn::seeds("INFEROMETER_SEED", seed),
        _ => return None,
    })
}

/// What a check of its own module found; `None` for an unknown command.
fn check(words: &[&str]) -> Option<Result<String, String>> {
    Some(match words {
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

fn make_samples(folder: &str) -> bool {
    let example = ["run", "--package", "inferometer-report", "--example", "sample_report", "--"];
    cargo(example.into_iter().chain([folder]))
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
