//! `profile`, `tune` and `capacity` on the embedded engine.

use crate::support;

use std::fs;

use support::{output, text, words};

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
