//! `inferometer compare` and `require` on what other tools measured.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::Path;
use std::process::Output;

use inferometer_store::RunStore;
use serde_json::Value;

use support::{output, text};

/// Imports a published file, and returns its id.
fn import(name: &str, folder: &Path) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/published").join(name);
    let known = imports(folder);
    let imported = output(&["import", file.to_str().unwrap()], folder);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    imports(folder).into_iter().find(|id| !known.contains(id)).unwrap()
}

fn imports(folder: &Path) -> Vec<String> {
    let store = RunStore::open(folder.join("runs")).unwrap();
    let listed = store.list().unwrap().imports.into_iter();
    listed.map(|listing| listing.directory.id().to_owned()).collect()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

#[test]
fn published_sweeps_are_compared_level_by_level_without_a_judgement() {
    let folder = tempfile::tempdir().unwrap();
    let [v0, v1] = ["v0", "v1"].map(|version| {
        let id = import(&format!("mi300x-mistral-small-24b-{version}.jsonl"), folder.path());
        format!("{version}={id}")
    });
    let compared = output(&["compare", &v0, &v1], folder.path());
    assert_eq!(compared.status.code(), Some(4), "{}", text(&compared.stderr));
    let page = text(&compared.stdout);
    for expected in [
        "Comparison by TTFT p99",
        "7 results of vLLM",
        "NOT JUDGED",
        "v1 against v0: TTFT p99",
        "NOTHING WAS DECIDED: the differences have no interval",
        "not judged",
        "completed fewer requests than planned",
    ] {
        assert!(page.contains(expected), "no `{expected}` in\n{page}");
    }
    let found = document(&output(&["compare", &v0, &v1, "--json"], folder.path()));
    assert_eq!(found["levels"].as_array().unwrap().len(), 7, "{}", found["unmatched"]);
    assert_eq!(found["sides"][0]["tool"], "vllm");
    let primary = &found["levels"][0]["against"][0]["quantities"][0];
    assert!(primary["change"].is_null() && primary["bare_ratio"].is_f64(), "{primary}");
}

#[test]
fn blocks_that_name_their_gpus_fill_a_node_without_being_told_again() {
    let folder = tempfile::tempdir().unwrap();
    let base = import("mi300x4-llama-70b.txt", folder.path());
    let more = import("mi300x4-llama-70b-4096-seqs.txt", folder.path());
    let asked = ["compare", &base, &more, "--gpus", "8"];
    let page = output(&asked, folder.path());
    let page = text(&page.stdout) + &text(&page.stderr);
    assert!(page.contains("2×4 A") && page.contains("4,551"), "{page}");
    let found = document(&output(&[&asked[..], &["--json"]].concat(), folder.path()));
    let rows = found["layouts"].as_array().unwrap();
    assert_eq!(rows.len(), 6, "two sides at three levels");
    let node = rows[5]["node"]["value"].as_f64().unwrap();
    assert!((node - 2.0 * 2_560.09).abs() < 1e-9, "{node}");
    let typed = [&asked[..], &["--tp", "A=8,B=2", "--json"]].concat();
    let found = document(&output(&typed, folder.path()));
    let layout = |row: usize| (&found["layouts"][row]["replicas"], &found["layouts"][row]["node"]);
    assert_eq!((layout(0).0, layout(1).0), (&Value::from(1), &Value::from(4)));
    assert!((layout(0).1["value"].as_f64().unwrap() - 1_998.36).abs() < 1e-9);
}

#[test]
fn a_run_of_ours_beside_an_import_is_held_to_the_same_load() {
    let folder = tempfile::tempdir().unwrap();
    let import = import("mi300x4-llama-70b.txt", folder.path());
    let simulate = ["simulate", "--concurrency", "128", "--requests", "256", "--quiet"];
    let run = output(&simulate, folder.path());
    assert!(run.status.success(), "{}", text(&run.stderr));
    let asked = ["compare", &format!("{import}/0"), "ours=latest"];
    let refused = output(&asked, folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("simulated in ours"), "{}", text(&refused.stderr));
    let forced = output(&[&asked[..], &["--force", "--json"]].concat(), folder.path());
    let found = document(&forced);
    assert_eq!(found["forced"], true);
    let keys: Vec<&str> = found["objections"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|objection| objection["key"].as_str())
        .collect();
    assert!(keys.contains(&"tool") && keys.contains(&"workload_unknown"), "{keys:?}");
}

#[test]
fn limits_are_held_against_one_imported_result() {
    let folder = tempfile::tempdir().unwrap();
    let import = import("mi300x4-llama-70b.txt", folder.path());
    let first = format!("{import}/0");
    let kept = output(
        &["require", &first, "ttft.p99<5s", "output_throughput>1900", "--junit", "j.xml"],
        folder.path(),
    );
    assert_eq!(kept.status.code(), Some(0), "{}{}", text(&kept.stdout), text(&kept.stderr));
    assert!(text(&kept.stdout).contains("no confidence interval"), "{}", text(&kept.stdout));
    let junit = std::fs::read_to_string(folder.path().join("j.xml")).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"0\"") && junit.contains("vLLM"), "{junit}");
    let missed = output(&["require", &first, "ttft.p99<4s"], folder.path());
    assert_eq!(missed.status.code(), Some(99));
    let several = output(&["require", &import, "ttft.p99<4s"], folder.path());
    assert_eq!(several.status.code(), Some(2));
    assert!(text(&several.stderr).contains("IMPORT/0"), "{}", text(&several.stderr));
    let absent = output(&["require", &first, "e2e.p99<4s", "--json"], folder.path());
    assert_eq!(absent.status.code(), Some(99));
    assert_eq!(document(&absent)["requirements"][0]["verdict"], "undecided");
}
