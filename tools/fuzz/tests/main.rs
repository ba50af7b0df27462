//! Every target on its seeds and on mutations of them: some in the tests, as many as are asked for by
//! `cargo xtask fuzz`.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![expect(clippy::print_stderr, reason = "the command shows what was executed")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fuzz_targets::mutation::Mutations;
use fuzz_targets::{TARGETS, Target};

/// Executions of each target in the tests.
const EXECUTIONS: u64 = 300;
/// No input of a few kilobytes may take longer.
const SLOW: Duration = Duration::from_secs(10);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect(variable))
}

/// The committed inputs of a target, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[expect(clippy::disallowed_methods, reason = "it is this test that takes the time")]
fn drive(target: &Target, executions: u64) {
    let seeds = seeds(target.name);
    let good = seeds.iter().filter(|seed| (target.run)(seed)).count();
    assert!(seeds.len() <= good * 2, "{}: most seeds are what it reads", target.name);
    let mut mutations = Mutations::new(&seeds, number("INFEROMETER_SEED").unwrap_or(1));
    let (began, mut read) = (Instant::now(), 0_u64);
    for execution in 0..executions {
        let input = mutations.next_input();
        let started = Instant::now();
        let ran = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        if ran.is_err() || SLOW < started.elapsed() {
            let path = std::env::temp_dir().join(format!("{}-{execution}", target.name));
            std::fs::write(&path, input).unwrap();
            panic!("{}: input {execution} failed; it is in {}", target.name, path.display());
        }
        read += u64::from(ran.unwrap_or(false));
    }
    let (name, took) = (target.name, began.elapsed().as_secs_f64());
    eprintln!("{name:<12}{executions:>12} executions, {read:>10} inputs read, {took:>8.1} s");
}

#[test]
fn no_input_panics_hangs_or_is_read_in_two_ways() {
    let only = std::env::var("INFEROMETER_TARGET").ok();
    let executions = number("INFEROMETER_EXECUTIONS").unwrap_or(EXECUTIONS);
    let chosen = TARGETS.iter().filter(|it| only.as_deref().is_none_or(|only| only == it.name));
    let driven = chosen.map(|target| drive(target, executions)).count();
    assert!(0 < driven, "there is no such target");
}

/// An entry point of `cargo fuzz` for each.
#[test]
fn every_target_can_be_fuzzed_by_coverage() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for Target { name, .. } in &TARGETS {
        let entry = std::fs::read_to_string(root.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(entry.contains(&format!("fuzz_targets::{name}(data)")), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
