//! `inferometer import`: other tools' files become results that other commands know.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use inferometer_store::{ImportDirectory, RunStore};
use serde_json::Value;

use support::{inferometer, output, text};

fn published(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/published").join(name)
}

fn import(file: &Path, more: &[&str], folder: &Path) -> Output {
    let file = file.to_str().unwrap();
    let asked: Vec<&str> = ["import", file].into_iter().chain(more.iter().copied()).collect();
    output(&asked, folder)
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stored(folder: &Path) -> Vec<ImportDirectory> {
    let store = RunStore::open(folder.join("runs")).unwrap();
    store.list().unwrap().imports.into_iter().map(|listing| listing.directory).collect()
}

/// The published sweep, with a line that was cut in the middle behind its first.
fn damaged(folder: &Path) -> PathBuf {
    let whole = fs::read_to_string(published("mi300x-mistral-small-24b-v1.jsonl")).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.insert(1, &lines[0][..200]);
    let path = folder.join("damaged.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[test]
fn a_published_sweep_is_kept_shown_listed_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let file = published("mi300x-mistral-small-24b-v1.jsonl");
    let imported = import(&file, &[], folder.path());
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let page = support::words(&imported.stdout);
    let kept = stored(folder.path()).remove(0);
    for expected in [
        "mi300x-mistral-small-24b-v1.jsonl: 7 results of vllm bench serve",
        "120/120",
        "1,015/2,000",
        "cut (1 of 7): Results that were cut: fewer requests completed than were planned.",
        "TTFT from send: time to first token, from the time of sending",
        "ITL per chunk: time between outputs, from an earlier output; one value per chunk of the stream",
        "waiting in the client is hidden",
        &format!("one result is named {}/N", kept.id()),
    ] {
        assert!(page.contains(expected), "{expected:?} is not in\n{page}");
    }
    assert_eq!(kept.foreign().unwrap(), fs::read(&file).unwrap());

    let runs = output(&["runs"], folder.path());
    let listed = text(&runs.stdout);
    assert!(listed.contains(kept.id()) && listed.contains(" vllm bench serve "), "{listed}");
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    assert!(listed.matches(".jsonl").count() <= 1, "the name of the file once: {listed}");
    let listed = document(&output(&["runs", "--json"], folder.path()));
    let listed = &listed["imports"][0];
    assert_eq!((&listed["results"], &listed["broken"]), (&7.into(), &0.into()), "{listed}");
    assert_eq!(listed["file"]["name"], "mi300x-mistral-small-24b-v1.jsonl");

    let verified = output(&["verify", "latest"], folder.path());
    assert!(verified.status.success(), "{}", text(&verified.stdout));
    assert!(text(&verified.stdout).starts_with("verified "), "{}", text(&verified.stdout));
}

#[test]
fn good_records_of_a_broken_file_are_taken_and_the_rest_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let imported = document(&import(&damaged(folder.path()), &["--json"], folder.path()));
    assert_eq!(imported["schema"], "inferometer.imports/1");
    let of_file = &imported["imports"][0];
    assert_eq!((&of_file["results"], &of_file["broken"]), (&7.into(), &1.into()));
    let broken = &of_file["import"]["records"][1]["broken"];
    assert_eq!(broken["line"], 2, "{broken}");
    let unlimited = &of_file["import"]["records"][7]["result"];
    assert_eq!(unlimited["marks"][0]["kind"], "cut", "{unlimited}");
    assert_eq!(unlimited["request_goodput"], Value::Null, "missing is not zero");
    let listed = text(&output(&["runs", "--sizes"], folder.path()).stdout);
    assert!(listed.contains(" vllm bench serve ") && listed.contains(" 7/8 "), "{listed}");
}

#[test]
fn a_file_without_a_result_is_refused_and_the_others_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "nothing here\n").unwrap();
    fs::create_dir(folder.path().join("results")).unwrap();
    let good = published("mi300x4-llama-70b.txt");
    let asked = ["import", "notes.txt", "absent.json", "results", good.to_str().unwrap(), "--json"];
    let imported = output(&asked, folder.path());
    assert_eq!(imported.status.code(), Some(2));
    let said = text(&imported.stderr);
    for expected in [
        "error: notes.txt: no result found",
        "begins with “nothing here”",
        "error: there is no absent.json",
        "error: results is a folder",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in\n{said}");
    }
    let document: Value = serde_json::from_slice(&imported.stdout).unwrap();
    assert_eq!(document["imports"].as_array().unwrap().len(), 1, "{document}");
    let failed: Vec<&Value> =
        document["failed"].as_array().unwrap().iter().map(|failed| &failed["file"]).collect();
    assert_eq!(failed, ["notes.txt", "absent.json", "results"]);
    assert_eq!(stored(folder.path()).len(), 1, "nothing is kept of a file without a result");
}

#[test]
fn standard_input_is_a_file_too_and_the_same_file_again_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = published("mi300x4-llama-70b.txt");
    assert!(import(&file, &["-q"], folder.path()).status.success());
    let mut piped = inferometer()
        .args(["import", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(&fs::read(&file).unwrap()).unwrap();
    let piped = piped.wait_with_output().unwrap();
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    assert!(text(&piped.stdout).contains("standard input: "), "{}", text(&piped.stdout));
    assert!(text(&piped.stderr).contains("was imported before"), "{}", text(&piped.stderr));
    assert_eq!(stored(folder.path()).len(), 2);
    let twice = output(&["import", "-", "-"], folder.path());
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice.stderr));
}

#[test]
fn verify_finds_a_changed_file_and_a_changed_summary() {
    let folder = tempfile::tempdir().unwrap();
    assert!(import(&published("mi300x4-llama-70b.txt"), &["-q"], folder.path()).status.success());
    let kept = stored(folder.path()).remove(0);
    let verify = || output(&["verify", "latest"], folder.path());
    let told = |verified: &Output, what: &str| {
        assert_eq!(verified.status.code(), Some(4), "{}", text(&verified.stderr));
        assert!(text(&verified.stdout).contains(what), "{}", text(&verified.stdout));
    };
    let summary = kept.read_summary().unwrap().unwrap();
    kept.write_summary(text(&summary).replacen("1998.36", "2998.36", 1).as_bytes()).unwrap();
    told(&verify(), "summary.json is not, byte for byte, what the file gives");
    kept.write_summary(&summary).unwrap();
    assert!(verify().status.success());

    let foreign = text(&kept.foreign().unwrap()).replacen("1998.36", "2998.36", 1);
    fs::write(kept.foreign_path(), foreign).unwrap();
    told(&verify(), "is not the file that was imported");
}

#[test]
fn the_files_of_every_tool_are_known_by_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interchange/tests/foreign");
    for (fixture, tool) in [
        ("sglang.jsonl", "SGLang bench_serving"),
        ("guidellm-concurrent.json", "GuideLLM"),
        ("guidellm-poisson.json", "GuideLLM"),
        ("aiperf-summary.json", "AIPerf"),
        ("aiperf-requests.jsonl", "AIPerf"),
        ("llm-d.yaml", "llm-d benchmark"),
        ("genai-bench.json", "genai-bench"),
    ] {
        // A name says nothing.
        let file = folder.path().join("results");
        fs::copy(fixtures.join(fixture), &file).unwrap();
        let imported = import(&file, &[], folder.path());
        assert!(imported.status.success(), "{fixture}: {}", text(&imported.stderr));
        let page = text(&imported.stdout);
        assert!(page.lines().nth(2).unwrap().contains(&format!(" of {tool}")), "{page}");
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{fixture}: {line}");
        }
    }
    for kept in stored(folder.path()) {
        let verified = output(&["verify", kept.id()], folder.path());
        assert!(verified.status.success(), "{}", text(&verified.stdout));
    }
}

/// The lines of all blocks in a text, without the spaces behind them.
fn block_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim_end) {
        inside |= line.contains("Serving Benchmark Result");
        if inside {
            lines.push(line);
        }
        inside &= !line.starts_with("======") || line.contains(' ');
    }
    lines
}

#[test]
fn the_blocks_of_a_file_are_printed_again_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = published("mi300x4-llama-70b.txt");
    assert!(import(&file, &["-q"], folder.path()).status.success());
    let printed = output(&["verify", "latest", "--format", "vllm"], folder.path());
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let (written, printed) = (fs::read_to_string(file).unwrap(), text(&printed.stdout));
    assert!(50 < block_lines(&written).len(), "{written}");
    assert_eq!(block_lines(&printed), block_lines(&written));
}

#[test]
fn names_go_to_the_configurations_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (
        published("mi300x-mistral-small-24b-v0.jsonl"),
        published("mi300x-mistral-small-24b-v1.jsonl"),
    );
    let files = [first.to_str().unwrap(), second.to_str().unwrap()];
    let asked = ["import", files[0], files[1], "--name", "V0", "--name", "V1", "--name", "V2"];
    let imported = output(&asked, folder.path());
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    assert!(
        text(&imported.stderr).contains("--name V2 names no configuration: there are only 2"),
        "{}",
        text(&imported.stderr)
    );
    let names: Vec<Vec<String>> = stored(folder.path())
        .iter()
        .rev()
        .map(|import| import.manifest().unwrap().reading.names)
        .collect();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(sorted, [["V0"], ["V1"]]);
    let page = text(&imported.stdout);
    assert!(page.contains("V0: results") && page.contains("V1: results"), "{page}");
    let empty = output(&["import", files[0], "--name", " "], folder.path());
    assert_eq!(empty.status.code(), Some(2), "{}", text(&empty.stderr));
}

#[test]
fn results_without_a_name_stay_apart_from_those_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let result = r#"{"max_concurrency": 8, "mean_ttft_ms": 30.5}"#;
    for name in ["before", "after"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("summary.json"), result).unwrap();
    }
    fs::write(folder.path().join("two.jsonl"), format!("{result}\n{result}\n")).unwrap();
    let configurations = |asked: &[&str]| -> Vec<Value> {
        let imported = document(&output(&[&["import", "--json"], asked].concat(), folder.path()));
        let imports = imported["imports"].as_array().unwrap().iter();
        let records = imports.flat_map(|import| import["import"]["records"].as_array().unwrap());
        records.map(|record| record["result"]["configuration"].clone()).collect()
    };
    assert_eq!(configurations(&["before/summary.json", "after/summary.json"]), ["before", "after"]);
    let both = ["two.jsonl, configuration 1", "two.jsonl, configuration 2"];
    assert_eq!(configurations(&["two.jsonl"]), both);
    let named = ["two.jsonl", "--name", "v0", "--name", "v1"];
    assert_eq!(configurations(&named), ["v0", "v1"]);
    assert_eq!(configurations(&["two.jsonl", "--repeats"]), ["", ""]);
    let spare =
        output(&["import", "before/summary.json", "--name", "a", "--name", "b"], folder.path());
    assert!(text(&spare.stderr).contains("there is only 1"), "{}", text(&spare.stderr));
    for kept in stored(folder.path()) {
        let verified = output(&["verify", kept.id()], folder.path());
        assert!(verified.status.success(), "{}", text(&verified.stdout));
    }
}

#[test]
fn commands_for_measured_runs_say_that_an_import_is_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(import(&published("mi300x4-llama-70b.txt"), &["-q"], folder.path()).status.success());
    let refused = |asked: &[&str], why: &str| {
        let refused = output(asked, folder.path());
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stdout));
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    };
    let import = stored(folder.path()).remove(0);
    refused(&["recover", import.id()], "only runs that were measured here can be recovered");
    refused(&["sweep", "--resume", import.id()], "is an import");
    // The latest that can be used is none.
    refused(&["recover", "latest"], "there is no run `latest`");
    refused(&["sweep", "--resume", "latest"], "there is no run `latest`");
}

#[test]
fn a_fit_takes_an_import_or_one_of_its_results_by_name() {
    let folder = tempfile::tempdir().unwrap();
    assert!(import(&published("mi300x4-llama-70b.txt"), &["-q"], folder.path()).status.success());
    let fit = |result: &str| {
        let server = ["--profile", "mi300x4-llama-70b", "--free", "none", "-q"];
        let asked: Vec<&str> = ["fit", result].into_iter().chain(server).collect();
        output(&asked, folder.path())
    };
    let one = fit("latest/0");
    assert!(one.status.success(), "{}", text(&one.stderr));
    assert!(text(&one.stdout).contains("concurrency 128"), "{}", text(&one.stdout));
    assert!(!text(&one.stdout).contains("concurrency 256"), "{}", text(&one.stdout));
    let absent = fit("latest/9999");
    assert_eq!(absent.status.code(), Some(2));
    assert!(text(&absent.stderr).contains("has no result 9999"), "{}", text(&absent.stderr));
}
