//! `inferometer calibrate` through the real binary: every part is there, and kept.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::{Path, PathBuf};
use std::process::Output;

use inferometer_analysis::calibration::Calibration;
use serde_json::Value;

use support::{inferometer, text};

fn calibrate(cache: &Path, arguments: &[&str]) -> Output {
    let ran = inferometer()
        .args(["calibrate", "--quick"])
        .args(arguments)
        .env("XDG_CACHE_HOME", cache)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    ran
}

/// The one folder that was made.
fn folder(cache: &Path) -> PathBuf {
    let folders = std::fs::read_dir(cache.join("inferometer/calibration")).unwrap();
    let paths: Vec<PathBuf> = folders.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths[0].clone()
}

fn check_ladder(document: &Value) {
    for kind in ["one_shot", "streamed"] {
        let levels = document["ladder"][kind].as_array().unwrap();
        assert_eq!(levels.len(), 3);
        for level in levels {
            assert_eq!(level["success"], 1.0, "{level}");
            assert!(0.0 < level["requests_per_s"].as_f64().unwrap(), "{level}");
            assert!(0.0 < level["tokens_per_s"].as_f64().unwrap(), "{level}");
            assert!(level["latency_ms"]["p99"].is_f64(), "{level}");
        }
    }
    let streamed = &document["ladder"]["streamed"][0];
    let events_per_request =
        streamed["events_per_s"].as_f64().unwrap() / streamed["requests_per_s"].as_f64().unwrap();
    assert!((64.0..=70.0).contains(&events_per_request), "64 tokens and what ends a stream");
}

fn check_fidelity(document: &Value) {
    let rows = document["fidelity"].as_array().unwrap();
    let asked: Vec<(u64, bool)> = rows
        .iter()
        .map(|row| (row["streams"].as_u64().unwrap(), row["kernel_stamps"].as_bool().unwrap()))
        .collect();
    assert_eq!(asked, [(16, true), (64, true), (16, false), (64, false)]);
    for row in rows {
        let streams = row["streams"].as_u64().unwrap();
        assert_eq!(row["requests"], 2 * streams, "two requests of each slot: {row}");
        assert_eq!(row["dialling"]["opened"], streams, "{row}");
        assert!(0.0 < row["cpu_us_per_token"].as_f64().unwrap(), "{row}");
        assert_eq!(row["requests_unmatched"], 0, "{row}");
        // A busy machine may let the first streams end before the last begin.
        let in_flight = row["in_flight"].as_u64().unwrap();
        assert!((1..=row["streams"].as_u64().unwrap()).contains(&in_flight), "{row}");
        assert!(0.0 <= row["error"]["itl_ms"]["p99"].as_f64().unwrap());
    }
}

fn check_document(document: &Value) {
    assert_eq!(document["schema"], "inferometer.calibration/1");
    assert_eq!(document["method"]["quick"], true);
    check_ladder(document);
    check_fidelity(document);
    let pacing = document["pacing"].as_array().unwrap();
    assert_eq!(pacing.len(), 2);
    for row in pacing {
        assert_eq!(row["success"], 1.0, "{row}");
        assert!(row["delay_ms"]["max"].is_f64() && row["sent_gap_cv"].is_f64(), "{row}");
    }
    let memory = &document["memory"];
    assert_eq!(memory["streams"], 200);
    assert!((1..=200).contains(&memory["in_flight"].as_u64().unwrap()), "{memory}");
    assert!(0.0 < memory["bytes_per_stream"].as_f64().unwrap(), "{memory}");
}

/// Every element that is opened is closed, in order.
fn check_svg(svg: &str) {
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (inside, _) = tag.split_once('>').unwrap();
        let name = inside.split([' ', '/']).find(|part| !part.is_empty()).unwrap();
        if inside.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !inside.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn a_calibration_has_every_part_and_is_kept() {
    let temporary = tempfile::tempdir().unwrap();
    let ran = calibrate(temporary.path(), &["--json"]);
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    check_document(&document);
    assert!(text(&ran.stderr).contains("fidelity: 64 streams, without kernel stamps"));
    let folder = folder(temporary.path());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let kept = Calibration::from_json_bytes(read("calibration.json").as_bytes()).unwrap();
    assert_eq!(document["when"], kept.when);
    assert_eq!(document["files"]["folder"], folder.to_str().unwrap());
    check_svg(&read("throughput.svg"));
    check_svg(&read("latency.svg"));
    assert!(read("calibration.md").contains("](throughput.svg)"));

    // What is damaged is reported and replaced; the page goes to standard output.
    std::fs::write(folder.join("calibration.json"), "{\"schema\":").unwrap();
    let again = calibrate(temporary.path(), &[]);
    assert!(text(&again.stderr).contains("calibration.json is ignored"), "{}", text(&again.stderr));
    assert!(text(&again.stdout).contains("CAPACITY"));
    Calibration::from_json_bytes(read("calibration.json").as_bytes()).unwrap();
    let names = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(names, 4, "no draft is left");
}

#[test]
fn without_a_place_to_keep_it_nothing_is_measured() {
    let ran = inferometer()
        .args(["calibrate", "--quick"])
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOME")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(text(&ran.stderr).contains("XDG_CACHE_HOME"), "{}", text(&ran.stderr));
}
