//! Fits: coefficients that are known are found again, and the shipped profiles tell what was
//! published. Simulations are exact, so these figures are the same on every machine.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use support::{inferometer, output, text};

fn fit(folder: &Path, arguments: &[&str]) -> Value {
    let ran = output(&[&["fit", "--quiet", "--json"], arguments].concat(), folder);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str], wanted: &[&str]) {
    let ran = output(&[&["fit", "--quiet"], arguments].concat(), folder);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    for words in wanted {
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
}

fn published(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/published");
    root.join(name).display().to_string()
}

/// Relative errors of a figure, by row; beyond saturation there is none for TTFT, and a throughput
/// that is given has none.
fn errors(document: &Value, figure: &str) -> Vec<f64> {
    let rows = document["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| figure != "ttft_mean_ms" || row["saturated"] == false);
    let rows = rows.filter(|row| figure != "output_throughput" || row["throughput_given"] == false);
    rows.map(|row| {
        row["played"][figure].as_f64().unwrap() / row["measured"][figure].as_f64().unwrap() - 1.0
    })
    .collect()
}

/// Whether the knee of every series of loads lies in the row where it was measured.
fn has_the_knees(document: &Value) -> bool {
    let knees = document["knees"].as_array().unwrap();
    !knees.is_empty() && knees.iter().all(|knee| knee["measured"] == knee["played"])
}

fn worst(document: &Value, figure: &str) -> f64 {
    errors(document, figure).into_iter().map(f64::abs).fold(0.0, f64::max)
}

#[test]
fn known_coefficients_are_found_again_in_our_own_runs() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "name = \"known\"\n[serve]\nhardware = \"a100-80gb\"\nmodel = \"qwen3-8b\"\n\
                   [coefficients]\neta_compute = 0.31\neta_memory = 0.62\n";
    fs::write(folder.path().join("known.toml"), profile).unwrap();
    let mut runs = Vec::new();
    for slots in ["1", "4", "16", "48"] {
        let load = ["--concurrency", slots, "--requests", "48", "--input-tokens", "700"];
        let engine = ["simulate", "--quiet", "--profile", "known.toml", "--json"];
        let ran = output(&[&engine[..], &load].concat(), folder.path());
        let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
        runs.push(format!("runs/{}", document["run"]["id"].as_str().unwrap()));
    }
    let mut arguments: Vec<&str> = runs.iter().map(String::as_str).collect();
    assert!(runs.iter().all(|run| folder.path().join(run).is_dir()), "{runs:?}");
    let start = ["--hardware", "a100-80gb", "--engine-model", "qwen3-8b", "--save", "found.toml"];
    arguments.extend(start);
    arguments.extend(["--free", "eta_compute,eta_memory"]);
    let document = fit(folder.path(), &arguments);
    let found = |name: &str| document["coefficients"][name].as_f64().unwrap();
    assert!((found("eta_compute") / 0.31 - 1.0).abs() < 0.03, "{document:#}");
    assert!((found("eta_memory") / 0.62 - 1.0).abs() < 0.03, "{document:#}");
    for figure in ["output_throughput", "ttft_mean_ms", "tpot_mean_ms"] {
        assert!(worst(&document, figure) < 0.02, "{figure}: {document:#}");
    }
    let ran = output(&["simulate", "--quiet", "--profile", "found.toml"], folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
}

#[test]
fn a_fit_says_why_it_cannot_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let rates = published("mi300x-mistral-small-24b-v1.jsonl");
    let four = "eta_compute,eta_memory,eta_kv,step_s";
    let h100 = ["--hardware", "h100"];
    let refuse = |arguments: &[&str], wanted: &[&str]| {
        refused(folder.path(), &[arguments, &h100].concat(), wanted);
    };
    refused(folder.path(), &[&rates], &["the measured server is not named", "--profile"]);
    refuse(&[&rates, "--free", four], &["7 rows allow 3", "4 are free"]);
    refuse(&[&rates, "--free", "eta_magic"], &["eta_magic", "eta_compute"]);
    refuse(&["nowhere.jsonl"], &["nowhere.jsonl"]);
    refuse(&[&format!("{rates}@max_num_sheep=3")], &["max_num_sheep"]);
    refuse(&[&rates, "--output-spread", "-1"], &["--output-spread"]);
    refuse(&[&rates, "--free", "none", "--save", "x.toml"], &["--free none", "--save"]);
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("notes.txt", "no result here\n");
    refuse(&["notes.txt"], &["notes.txt"]);
    refuse(&[&rates, "--save", "notes.txt"], &["notes.txt", "exists"]);
    let row = |more: &str| {
        format!(
            "{{\"completed\": 9, \"total_input_tokens\": 90, \"total_output_tokens\": 90, \
             \"output_throughput\": 5, \"request_throughput\": 1, \"mean_ttft_ms\": 5, \
             \"mean_tpot_ms\": 5, \"backend\": \"vllm\", {more}}}\n"
        )
    };
    write("capped.jsonl", &row("\"request_rate\": 3.0, \"max_concurrency\": 2").repeat(2));
    refuse(&["capped.jsonl"], &["line 1", "a cap"]);
    write("bursty.jsonl", &row("\"request_rate\": 3.0, \"burstiness\": 0.5").repeat(2));
    refuse(&["bursty.jsonl"], &["line 1", "Poisson"]);
    let none = inferometer().args(["fit"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn a_fit_is_judged_and_an_unusable_profile_is_not_saved_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    // The same load, ten times as fast the second time: no server is both.
    let row = |name: &str, throughput: f64| {
        format!(
            "[[row]]\nname = \"{name}\"\ninput_tokens = 100\noutput_tokens = 20\nrange_ratio = 0.0\nrequests = 8\n\
             concurrency = 4\noutput_throughput = {throughput:.1}\n"
        )
    };
    fs::write(folder.path().join("rows.toml"), row("a", 100.0) + &row("b", 1_000.0)).unwrap();
    let start = ["rows.toml", "--hardware", "h100", "--engine-model", "llama-3.1-8b"];
    let save = [&["fit", "--save", "bad.toml"], &start[..]].concat();
    let ran = output(&save, folder.path());
    let (page, said) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(4), "{page}{said}");
    assert!(page.contains("UNUSABLE") && page.contains("target 10 %"), "{page}");
    assert!(said.contains("unusable and was not saved") && said.contains("--force"), "{said}");
    assert!(!folder.path().join("bad.toml").exists());
    let ran = output(&[&save[..], &["--force"]].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let unseen = output(&["simulate", "--profile", "bad.toml", "--requests", "5"], folder.path());
    let page = text(&unseen.stdout);
    assert!(page.starts_with("SIMULATED in virtual time"), "{page}");
    assert!(page.contains("Model error in rows that its fit had not seen: output"), "{page}");
}

/// How far a shipped profile is from the figures that it was fitted to.
fn told(profile: &str, results: &[&str], more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let results: Vec<String> = results.iter().map(|name| published(name)).collect();
    let mut arguments: Vec<&str> = results.iter().map(String::as_str).collect();
    arguments.extend(["--profile", profile, "--free", "none"]);
    arguments.extend(more);
    fit(folder.path(), &arguments)
}

#[test]
fn four_mi100_with_devstral_give_the_ten_published_scenarios() {
    let document = told("mi100x4-devstral-24b", &["mi100x4-devstral-24b.toml"], &[]);
    assert_eq!(document["verdict"], "usable", "{document:#}");
    assert!(has_the_knees(&document), "{document:#}");
    assert!(worst(&document, "output_throughput") <= 0.10, "{document:#}");
    assert!(worst(&document, "tpot_mean_ms") <= 0.15, "{document:#}");
    assert!(worst(&document, "ttft_mean_ms") <= 0.25, "{document:#}");
}

#[test]
fn an_mi300x_with_mistral_small_on_v1_gives_the_seven_published_rates() {
    let rows = ["mi300x-mistral-small-24b-v1.jsonl"];
    let document = told("mi300x-mistral-small-24b-v1", &rows, &[]);
    assert!(has_the_knees(&document), "{document:#}");
    assert!(worst(&document, "output_throughput") <= 0.10, "{document:#}");
    assert!(worst(&document, "tpot_mean_ms") <= 0.15, "{document:#}");
    assert!(worst(&document, "ttft_mean_ms") <= 0.25, "{document:#}");
}

/// Its rows at low rates contradict each other (mean TTFT and TPOT fall from 3 to 5 requests/s), so
/// only the throughput beyond saturation and the knee are held to.
#[test]
fn an_mi300x_with_mistral_small_on_v0_gives_the_published_throughput() {
    let rows = ["mi300x-mistral-small-24b-v0.jsonl"];
    let document = told("mi300x-mistral-small-24b-v0", &rows, &[]);
    assert_eq!(document["verdict"], "unusable", "{document:#}");
    assert!(has_the_knees(&document), "{document:#}");
    assert!(worst(&document, "output_throughput") <= 0.10, "{document:#}");
}

/// One throughput of six is a little farther off than the rest.
#[test]
fn four_mi300x_with_llama_70b_give_the_six_published_results() {
    let rows = ["mi300x4-llama-70b.txt", "mi300x4-llama-70b-4096-seqs.txt@max_num_seqs=4096"];
    let spreads = ["--input-spread", "1.1", "--output-spread", "1.0"];
    let document = told("mi300x4-llama-70b", &rows, &spreads);
    let mut throughput = errors(&document, "output_throughput");
    throughput.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    assert!(throughput[4].abs() <= 0.10 && throughput[5].abs() <= 0.12, "{throughput:?}");
    assert!(worst(&document, "tpot_mean_ms") <= 0.15, "{document:#}");
    assert!(worst(&document, "ttft_mean_ms") <= 0.25, "{document:#}");
}

/// The same table by `simulate` itself, in the order of the report and with the client's own prompts.
#[test]
fn simulations_of_the_published_suite_give_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let suite = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/mi100-suite");
    let mut files: Vec<String> = fs::read_dir(suite)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| path.display().to_string())
        .collect();
    files.sort();
    let mut arguments = vec!["simulate", "--quiet", "--json"];
    arguments.extend(files.iter().map(String::as_str));
    let ran = output(&arguments, folder.path());
    let documents: Vec<Value> = serde_json::from_slice(&ran.stdout).unwrap();
    // Output throughput, mean TTFT and mean TPOT, as published.
    let published = [
        (49.26, 1082.20, 18.22),
        (301.77, 1506.74, 41.71),
        (62.84, 12518.39, 46.29),
        (56.28, 43.29, 17.76),
        (160.04, 2097.25, 43.80),
        (97.72, 212.18, 19.71),
        (167.97, 115.15, 22.13),
        (255.92, 158.72, 28.83),
        (384.74, 233.68, 38.19),
        (387.10, 363.17, 76.35),
    ];
    assert_eq!(documents.len(), published.len(), "{}", text(&ran.stderr));
    for (document, (throughput, ttft, tpot)) in documents.iter().zip(published) {
        let vllm = &document["vllm"];
        let off = |value: &Value, wanted: f64| (value.as_f64().unwrap() / wanted - 1.0).abs();
        assert!(off(&vllm["output_throughput"], throughput) <= 0.10, "{vllm}");
        assert!(off(&vllm["ttft_ms"]["mean"], ttft) <= 0.25, "{vllm}");
        assert!(off(&vllm["tpot_ms"]["mean"], tpot) <= 0.15, "{vllm}");
    }
}
