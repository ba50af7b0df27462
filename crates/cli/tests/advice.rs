//! `profile`, `tune` and `capacity` on the embedded engine.

use crate::support;

use std::fs;

use support::{Engine, http, output, server_saying, text, words};

const SHORT: [&str; 4] = ["--input-tokens", "64", "--output-tokens", "16"];

#[test]
fn a_learned_profile_is_simulated_with_intervals_and_says_where_it_extrapolates() {
    let folder = tempfile::tempdir().unwrap();
    let probe = ["profile", "--virtual", "--save", "p.toml", "--quiet", "--probe-time", "12s"];
    let lengths = ["--input-tokens", "uniform:16..300", "--output-tokens", "uniform:16..60"];
    let probed = [&probe[..], &["--concurrencies", "1,4,8"], &lengths].concat();
    let ran = output(&probed, folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let profile = fs::read_to_string(folder.path().join("p.toml")).unwrap();
    assert!(profile.contains("[law]") && profile.contains("[fitted.leave_one_out]"), "{profile}");
    let again = output(&probed, folder.path());
    assert_eq!(again.status.code(), Some(2), "a profile is not overwritten");
    let simulate = |load: &[&str]| {
        let flags = ["simulate", "--profile", "p.toml", "--requests", "60", "--quiet"];
        output(&[&flags[..], &SHORT, load].concat(), folder.path())
    };
    let inside = simulate(&["--concurrency", "6", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&inside.stdout).unwrap();
    let found = document.to_string();
    assert!(found.contains("half_width") && !found.contains("extrapolat"), "{found}");
    let beyond = words(&simulate(&["--concurrency", "40"]).stdout);
    assert!(beyond.contains("the simulation extrapolates: up to 40 requests at once"), "{beyond}");
    let other = simulate(&["--concurrency", "4", "--tp", "2"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("learned from one server"), "{}", text(&other.stderr));
}

#[test]
fn an_unusable_law_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    // The second of three runs is of a server that is ten times as slow as the others.
    let mut runs = Vec::new();
    for (concurrency, step) in [("1", "4ms"), ("4", "40ms"), ("8", "4ms")] {
        let load = ["--concurrency", concurrency, "--requests", "40", "--engine-step", step];
        let ran = output(&[&["simulate", "--json"], &load[..], &SHORT].concat(), folder.path());
        let document: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        runs.push(document["run"]["id"].as_str().unwrap().to_owned());
    }
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let fit = |more: &[&str]| {
        let flags = ["fit", "--learn", "--save", "p.toml", "--max-num-batched-tokens", "2048"];
        output(&[&flags[..], &runs, more].concat(), folder.path())
    };
    let refused = fit(&[]);
    assert_eq!(refused.status.code(), Some(4), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("was not saved"), "{}", text(&refused.stderr));
    assert!(!folder.path().join("p.toml").exists());
    assert_eq!(fit(&["--force"]).status.code(), Some(0));
    assert!(folder.path().join("p.toml").exists());
}

const PROBE: [&str; 8] =
    ["--quiet", "--save", "p.toml", "--force", "--concurrencies", "1,2,4", "--probe-time", "18s"];

#[test]
fn a_live_server_is_probed() {
    let folder = tempfile::tempdir().unwrap();
    // Slower than it is, so that a busy machine delays little against a step.
    let slow = ["--mode", "serve", "--profile", "h100-llama-3.1-8b", "--speed", "0.25"];
    let engine = Engine::start(&slow);
    let lengths = ["--input-tokens", "uniform:16..300", "--output-tokens", "uniform:16..40"];
    let ran = output(&[&["profile", &engine.url()], &PROBE[..], &lengths].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let profile = fs::read_to_string(folder.path().join("p.toml")).unwrap();
    // Which runs are valid depends on what else the machine does.
    assert!(profile.contains("[law]"), "{profile}");
    let prompts = engine.truth().requests;
    assert!(12 < prompts.len(), "{}", prompts.len());
}

#[test]
fn a_probe_says_why_runs_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let models = r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;
    let limits = server_saying(move |path| match path {
        "/v1/models" => http("200 OK", "application/json", models),
        _ => http("429 Too Many Requests", "text/plain", "slow down"),
    });
    let url = format!("http://{limits}");
    let probe = |url: &str, more: &[&str]| {
        output(&[&["profile", url], &PROBE[..], more].concat(), folder.path())
    };
    let refused = probe(&url, &["--model", "m"]);
    let said = text(&refused.stderr);
    assert!(refused.status.code() != Some(0) && said.contains("429"), "{said}");
    // A prefix that all prompts share is in the cache after the first.
    let shared = ["--prefix-tokens", "64", "--input-tokens", "200", "--output-tokens", "16"];
    let cached = output(&[&["profile", "--virtual"], &PROBE[..], &shared].concat(), folder.path());
    let said = text(&cached.stderr);
    assert!(cached.status.code() != Some(0) && said.contains("in the prefix cache"), "{said}");
}

#[test]
fn tuning_finds_a_better_setting_and_proves_it() {
    let folder = tempfile::tempdir().unwrap();
    let tune = ["tune", "--max-num-seqs", "4", "--vary", "max_num_seqs=2,32", "--quiet"];
    let load = ["--concurrencies", "32", "--requests", "96", "--seed", "3"];
    let proof = ["--prove", "1", "--repeat", "3", "--engine-speed", "2", "--price", "2/h"];
    let ran = output(&[&tune[..], &load, &SHORT, &proof].concat(), folder.path());
    let (page, said) = (words(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0), "{said}");
    let places = ["max_num_seqs=32", "as set", "max_num_seqs=2"].map(|name| page.find(name));
    assert!(places.is_sorted() && places[0].is_some(), "{page}");
    assert!(page.contains("speculative decoding"), "{page}");
    assert!(said.contains("proven: max_num_seqs=32 changes"), "{said}");
}

#[test]
fn replicas_share_the_load_and_what_no_profile_models_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let tune = |more: &[&str]| {
        let flags = ["tune", "--max-num-seqs", "4", "--requests", "96", "--seed", "3", "--quiet"];
        output(&[&flags[..], &SHORT, more].concat(), folder.path())
    };
    let slo = ["--concurrencies", "16", "--slo", "ttft.p90<100ms", "--vary", "replicas=1,4"];
    let ran = tune(&slo);
    let page = words(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    // Sixteen wait for four places on one server, and nobody waits where each of four has four.
    let [four, one] = ["replicas=4 c=4 at each replica met", "as set c=16 not met"];
    let places = [four, one].map(|row| page.find(row));
    assert!(places.is_sorted() && places[0].is_some(), "{page}");
    let nothing = tune(&["--concurrencies", "4", "--vary", "ub=256,512"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("no profile models `ub`"), "{}", text(&nothing.stderr));
    let undivided = tune(&["--vary", "replicas=1,2"]);
    assert!(text(&undivided.stderr).contains("--concurrencies"), "{}", text(&undivided.stderr));
}

#[test]
fn a_key_of_the_users_own_is_proven_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let engine = env!("CARGO_BIN_EXE_inferometer");
    let serve =
        format!("{engine} engine --port {{port}} --max-num-seqs {{max_num_seqs}} --step {{pace}}");
    let tune = ["tune", "--max-num-seqs", "4", "--vary", "pace=40ms,4ms", "--quiet"];
    let load = ["--concurrencies", "4", "--requests", "24", "--seed", "3", "--serve", &serve];
    let proof = ["--prove", "1", "--repeat", "3", "--price", "2/h", "--profile"];
    let known = ["h100-llama-3.1-8b"];
    let ran = output(&[&tune[..], &load, &SHORT, &proof, &known].concat(), folder.path());
    let (page, said) = (words(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert!(page.contains("`pace`: settings that differ in it alone rank alike"), "{page}");
    assert!(said.contains("proven: pace=4ms changes"), "{said}");
    assert!(said.contains("a million output tokens cost"), "{said}");
}

#[test]
fn a_capacity_is_replicas_with_their_uncertainty() {
    let folder = tempfile::tempdir().unwrap();
    let capacity = ["capacity", "--serve-rate", "100", "--slo", "ttft.p90<1s", "--json", "--quiet"];
    let load = ["--requests", "300", "--max-num-seqs", "8", "--price", "2/h"];
    let ran = output(&[&capacity[..], &load, &SHORT].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let option = &document["options"][0];
    let number = |key: &str| option[key].as_f64().unwrap();
    let wanted = (100.0 / number("rate_per_replica")).ceil();
    assert!((number("replicas") - wanted).abs() < 1e-9, "{document:#}");
    assert!((number("price_per_hour") - 2.0 * wanted).abs() < 1e-9, "{document:#}");
    let between = &option["replicas_between"];
    let (low, high) = (between[0].as_f64().unwrap(), between[1].as_f64().unwrap());
    assert!(low <= wanted && wanted <= high, "{document:#}");
    let without = output(&["capacity", "--serve-rate", "1"], folder.path());
    assert!(text(&without.stderr).contains("needs SLOs"), "{}", text(&without.stderr));
}
