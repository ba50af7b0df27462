//! Tests that draw what they try: cargo runs the same tests as always, with larger counts.

use xtask::{cargo_command, run};

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
pub(crate) fn statistics(words: &[&str]) -> bool {
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
        holds &= run(&mut tables);
    }
    for (what, package, test, nightly) in ENGINES {
        let engines = std::env::var("INFEROMETER_ENGINES").unwrap_or_else(|_| nightly.to_string());
        let arguments =
            ["test", "--release", "--quiet", "--package", package, "--test", "it", test];
        let found = run(cargo_command(arguments).env("INFEROMETER_ENGINES", &engines));
        let word = if found { "holds" } else { "DOES NOT HOLD" };
        eprintln!("{what}, {engines} drawn: {word}");
        holds &= found;
    }
    holds
}

pub(crate) fn fuzz(words: &[&str]) -> bool {
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

pub(crate) fn seeds(variable: &str, value: &str) -> bool {
    let arguments = ["test", "--package", "inferometer-load", "--test", "it", "seeds::every_seed"];
    run(cargo_command(arguments).args(["--", "--nocapture"]).env(variable, value))
}
