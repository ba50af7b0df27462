//! `inferometer report … --together`: results of any tool on one page, and as a fragment of a site.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use inferometer_store::RunStore;
use serde_json::Value;

use support::{output, text};

fn import(name: &str, configuration: &str, folder: &Path) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/published").join(name);
    let asked = ["import", file.to_str().unwrap(), "--name", configuration, "--json"];
    let ran = output(&asked, folder);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    document["imports"][0]["id"].as_str().unwrap().to_owned()
}

/// Both configurations of the published sweep.
fn published(folder: &Path) -> [String; 2] {
    [("mi300x-mistral-small-24b-v0.jsonl", "v0"), ("mi300x-mistral-small-24b-v1.jsonl", "v1")]
        .map(|(file, name)| import(file, name, folder))
}

fn made(arguments: &[&str], folder: &Path) -> String {
    let ran = output(arguments, folder);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    text(&ran.stdout)
}

fn refused(arguments: &[&str], folder: &Path) -> String {
    let ran = output(arguments, folder);
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran.stderr));
    text(&ran.stderr)
}

fn sweep(folder: &Path) -> String {
    let asked = [
        "sweep",
        "--virtual",
        "--rates",
        "1,3",
        "--requests",
        "80",
        "--input-tokens",
        "64",
        "--output-tokens",
        "32",
        "--engine-step",
        "10ms",
        "--quiet",
    ];
    let ran = output(&asked, folder);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let sets = RunStore::open(folder.join("runs")).unwrap().list().unwrap().sets;
    sets[0].directory.id().to_owned()
}

#[test]
fn a_published_sweep_becomes_one_page_and_a_site() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [v0, v1] = published(folder);
    let path = made(&["report", &v0, &v1, "--together", "--to", "page"], folder);
    assert_eq!(PathBuf::from(path.trim()), Path::new("page").join("report.html"));
    let page = fs::read_to_string(folder.join("page/report.html")).unwrap();
    let [ttft, tpot] = ["Mean TTFT against request rate", "Mean TPOT against request rate"]
        .map(|title| page.find(title).unwrap());
    assert!(ttft < tpot && page.contains("cut: 1,015 of 2,000 requests completed"));
    assert!(folder.join("page/charts/mean-ttft-dark.svg").exists());

    made(
        &[
            "report",
            &v0,
            &v1,
            "--together",
            "--format",
            "site",
            "--to",
            "site",
            "--title",
            "A sweep",
        ],
        folder,
    );
    let index = fs::read_to_string(folder.join("site/index.md")).unwrap();
    assert!(index.starts_with("---\nlayout: default\ntitle: \"A sweep\"\n---\n"), "{index}");
    for line in index.lines().filter_map(|line| line.strip_prefix("{% include_relative ")) {
        let name = line.strip_suffix(" %}").unwrap();
        let chart = fs::read_to_string(folder.join("site").join(name)).unwrap();
        assert!(chart.contains("<svg") && !chart.contains("<script"), "{name}");
    }
    // What a site shows can be taken in again, and says the same.
    let asked = ["import", "site/index.md", "--json"];
    let again: Value = serde_json::from_str(&made(&asked, folder)).unwrap();
    assert_eq!(again["imports"][0]["results"], 14);
    let asked = ["report", &v0, &v1, "--together", "--format", "json"];
    let before: Value = serde_json::from_str(&made(&asked, folder)).unwrap();
    let mean = |sheet: &Value| sheet["latencies"][0]["mean_ms"].as_f64().unwrap();
    let records = again["imports"][0]["import"]["records"].as_array().unwrap();
    for (record, sheet) in records.iter().zip(before["results"].as_array().unwrap()) {
        assert!((mean(&record["result"]) - mean(sheet)).abs() < 1e-9);
        assert_eq!(record["result"]["configuration"], sheet["configuration"]);
    }
}

#[test]
fn an_import_has_a_page_in_its_folder_and_stands_beside_our_own_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [v0, _] = published(folder);
    let path = made(&["report", &v0], folder);
    assert!(path.contains(&v0) && folder.join(path.trim()).exists(), "{path}");
    let set = sweep(folder);
    let (named, ours) = (format!("theirs={v0}"), format!("ours={set}"));
    let asked = ["report", &named, &ours, "--together", "--format", "csv"];
    let table = made(&asked, folder);
    assert_eq!(table.lines().count(), 1 + 7 + 2, "{table}");
    assert!(table.contains("\"theirs\"") && table.contains("\"ours\""), "{table}");
    assert!(table.contains("Mean TTFT from schedule"), "only ours have it: {table}");
    let path = made(&["report", &set, "--format", "site", "--to", "own"], folder);
    assert_eq!(path.trim(), "own");
    assert!(folder.join("own/summary_mean_ttft_ms.html").exists());
}

#[test]
fn what_makes_no_page_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [v0, v1] = published(folder);
    let said = refused(&["report", &v0, &v1, "--together"], folder);
    assert!(said.contains("has no folder") && said.contains("--to FOLDER"), "{said}");
    let said = refused(&["report", &v0, &v1, "--to", "page"], folder);
    assert!(said.contains("--together"), "{said}");
    let asked = ["report", &v0, "--together", "--narrator", "target", "--to", "page"];
    assert!(refused(&asked, folder).contains("--narrator"));
    let asked = ["report", &v0, "--format", "site", "--open"];
    assert!(refused(&asked, folder).contains("--open"));
}
