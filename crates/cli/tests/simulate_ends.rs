//! Simulations that are stopped, that fail, that are refused, and that hear strange words.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use inferometer_model::journal::RunStop;
use inferometer_model::telemetry::TelemetrySample;
use inferometer_model::{Moment, Outcome};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use support::{inferometer, observations, output, text};

const ENDLESS: [&str; 6] = ["--engine-step", "10ms", "--concurrency", "8", "--duration", "700h"];

fn start(arguments: &[&str], folder: &Path) -> Child {
    inferometer()
        .args(["simulate", "-q"])
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn interrupt(child: &Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
}

/// Waits until some of the journal is on disk: the simulation is in the middle of it.
fn wait_for_journal(run: &mut Child, folder: &Path) {
    let has_journal = || {
        let run = fs::read_dir(folder.join("runs")).ok()?.next()?.ok()?;
        let journal = fs::metadata(run.path().join("requests.journal")).ok()?;
        Some(10_000 < journal.len())
    };
    while has_journal() != Some(true) {
        assert_eq!(run.try_wait().unwrap(), None, "the simulation ended by itself");
        std::thread::yield_now();
    }
}

fn simulate(arguments: &[&str], folder: &Path) -> Output {
    output(&[&["simulate", "--quiet"], arguments].concat(), folder)
}

fn refused(arguments: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let ran = simulate(arguments, folder.path());
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
}

#[test]
fn ctrl_c_saves_what_was_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = start(&ENDLESS, folder.path());
    wait_for_journal(&mut run, folder.path());
    interrupt(&run);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout).contains("partial"), "{}", text(&ended.stdout));
    let observations = observations(folder.path());
    assert_eq!(observations.ending.stop, RunStop::Drained);
    let counts = observations.outcome_counts();
    assert_eq!(counts[&Outcome::Cancelled], 0, "what was in flight could finish");
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
}

/// Files that would come after it are not begun, and without records it ends so too.
#[test]
fn ctrl_c_ends_all_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[load]\nconcurrency = 8\nduration = \"700h\"\n[engine]\nstep = \"10ms\"\n";
    fs::write(folder.path().join("a.toml"), file).unwrap();
    let mut run = start(&["a.toml", "a.toml"], folder.path());
    wait_for_journal(&mut run, folder.path());
    interrupt(&run);
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(fs::read_dir(folder.path().join("runs")).unwrap().count(), 1);
}

#[test]
fn without_records_a_run_in_which_nothing_worked_is_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--engine-step", "10ms", "--max-model-len", "100", "--requests", "40"];
    let ran = simulate(&[&short[..], &["--records", "none"]].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(4), "{}", text(&ran.stdout));
    assert!(text(&ran.stderr).contains("--records all"), "{}", text(&ran.stderr));
}

#[test]
fn without_records_nothing_is_promised_that_needs_them() {
    let flags: [&[&str]; 4] =
        [&["--strict"], &["--format", "vllm"], &["--slo", "ttft.p99<1s"], &["--output", "x"]];
    for flag in flags {
        refused(&[&["--records", "none"], flag].concat(), &[flag[0], "--records all"]);
    }
}

#[test]
fn of_an_answer_in_one_piece_only_its_end_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--engine-step", "10ms", "--requests", "40", "--no-stream"];
    let whole = [&arguments[..], &["--records", "none", "--json"]].concat();
    let told: Value = serde_json::from_slice(&simulate(&whole, folder.path()).stdout).unwrap();
    for metric in ["ttft_ms", "tpot_ms", "itl_ms"] {
        assert_eq!((&told[metric]["mean"], &told[metric]["n"]), (&Value::Null, &Value::from(0)));
    }
    assert_eq!(told["e2e_ms"]["n"], 40);
}

#[test]
fn a_constant_step_has_the_queues_and_the_bounds_of_its_profile() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--engine-step", "10ms", "--requests", "40", "--json"];
    let document = simulate(&arguments, folder.path()).stdout;
    let document: Value = serde_json::from_slice(&document).unwrap();
    let engine = document["run"]["simulated"]["engine"].as_str().unwrap();
    let listed = output(&["engine", "--list"], folder.path());
    assert!(text(&listed.stdout).contains("h100-llama-3.1-8b"));
    // An H100 with 80 GB, by the defaults of vLLM.
    assert!(engine.contains("max_num_seqs 1024, max_num_batched_tokens 8192"), "{engine}");
    refused(&["--engine-step", "10ms", "--max-model-len", "9999999"], &["9999999"]);
    refused(&["--engine-step", "9000h"], &["--engine-step", "10000s"]);
}

#[test]
fn what_does_not_fit_is_refused_line_by_line() {
    for command in ["simulate", "run"] {
        let folder = tempfile::tempdir().unwrap();
        let engine = ["--hardware", "v100", "--model", "llama-3.1-405b", "--dtype", "float16"];
        let ran = output(&[&[command], &engine[..]].concat(), folder.path());
        assert_eq!(ran.status.code(), Some(2));
        assert!(3 < text(&ran.stderr).lines().count(), "{}", text(&ran.stderr));
    }
}

#[test]
fn a_vocabulary_beyond_memory_is_refused() {
    let source = ["--source", "vllm-random", "--tokenizer", "vocabulary:4294967295"];
    refused(&source, &["vocabulary:4294967295", "4194304"]);
}

/// A profile whose API process is slow to hand tokens out, by a strange name.
fn slow_hand(folder: &Path) {
    let profile = "name = \"red\\u001b[31m\"\n[serve]\nhardware = \"h100\"\n\
                   model = \"llama-3.1-8b\"\n[front]\nper_output_token_ns = 20000000\n";
    fs::write(folder.join("slow.toml"), profile).unwrap();
}

#[test]
fn the_name_of_a_profile_is_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    slow_hand(folder.path());
    for records in ["none", "all"] {
        let arguments = ["--profile", "slow.toml", "--requests", "40", "--records", records];
        let page = text(&simulate(&arguments, folder.path()).stdout);
        assert!(page.contains("\\u{1b}[31m") && !page.contains('\u{1b}'), "{page}");
    }
}

/// Eight answers at once come through a process that takes 20 ms for each token: it falls behind,
/// and who leaves has not seen what it still holds.
#[test]
fn who_leaves_has_seen_nothing_later() {
    let folder = tempfile::tempdir().unwrap();
    slow_hand(folder.path());
    let load = ["--profile", "slow.toml", "--concurrency", "8", "--requests", "40"];
    let limits = ["--output-tokens", "100", "--total-timeout", "300ms"];
    simulate(&[&load[..], &limits].concat(), folder.path());
    let cut = observations(folder.path()).records;
    let cut: Vec<_> =
        cut.iter().filter(|record| record.ending.outcome == Outcome::TimeoutTotal).collect();
    assert!(!cut.is_empty());
    for record in &cut {
        assert_eq!(record.reads.len(), record.events.len());
        assert!(record.reads.iter().all(|read| read.at() <= record.ending.at), "{record:?}");
    }
    assert!(cut.iter().any(|record| !record.reads.is_empty()));
    let impatient = ["--output-tokens", "100", "--first-token-timeout", "100ms"];
    simulate(&[&load[..], &impatient].concat(), folder.path());
    let records = observations(folder.path()).records;
    let late = records.iter().filter(|it| it.ending.outcome == Outcome::TimeoutFirstToken);
    let late: Vec<_> = late.collect();
    assert!(!late.is_empty(), "the fifth token of the first step is with the client after 100 ms");
    assert!(late.iter().all(|record| record.reads.is_empty() && record.events.is_empty()));
}

fn samples(folder: &Path) -> Vec<TelemetrySample> {
    observations(folder).telemetry.recording().unwrap().samples.clone()
}

#[test]
fn the_engine_is_looked_at_as_often_as_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--engine-step", "10ms", "--requests", "40", "--telemetry-every", "100ms"];
    simulate(&arguments, folder.path());
    let samples = samples(folder.path());
    assert!(10 < samples.len());
    let moments: Vec<Moment> = samples.iter().map(|sample| sample.at).collect();
    // The last is of the end.
    for (number, moment) in (0..).zip(&moments[..moments.len() - 1]) {
        assert_eq!(*moment, Moment::from_nanos(number * 100_000_000));
    }
}

/// Hours between requests: a rest has a beginning and an end, and nothing between.
#[test]
fn a_long_rest_is_not_written_second_by_second() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--engine-step", "10ms", "--requests", "40", "--rate", "0.0001"];
    simulate(&arguments, folder.path());
    let samples = samples(folder.path());
    // A time-out that is looked up in vain parts a rest in two.
    assert!(samples.len() < 40 * 2 * 62, "{} samples of 400,000 s", samples.len());
    assert!(samples.is_sorted_by_key(|sample| sample.at));
    let none = [&arguments[..], &["--records", "none", "--json"]].concat();
    let told: Value = serde_json::from_slice(&simulate(&none, folder.path()).stdout).unwrap();
    let mean = told["kv_usage_mean"].as_f64().unwrap();
    assert!(mean < 1e-4, "nearly all of the time nothing is held, and not {mean} on average");
}
